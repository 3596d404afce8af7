"""The command that tags words, or writes the best sequences of labels as lists."""

from typing import Annotated

import typer

from rerank.base.encoding import amount, encoded
from rerank.base.progress import track
from rerank.cli import application as cli

Sentences = Annotated[str, typer.Argument(metavar="FILE", help="Sentences; - for standard input.")]
SentenceReader = Annotated[
    str | None,
    typer.Option(
        "--reader",
        help="Format of the sentences, by name or with options, as conllu or {name: conll, columns: [2]}.",
        show_default="that of training, or words",
        callback=cli.allow_local_imports,
    ),
]


@cli.command("tag", "Use", 'echo "the dog barks" | rerank tag runs/tagging/model')
def tag(
    model: cli.ModelPlace,
    file: Sentences = "-",
    output: cli.OutputFile = "-",
    *,
    n_best: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Write this many sequences of labels for a sentence, as lists in JSON lines.",
            show_default=False,
        ),
    ] = None,
    reader: SentenceReader = None,
    trust: cli.Trust = False,
    encoding: cli.Encoding = None,  # noqa: ARG001 - its callback acts
    on_bad_list: cli.OnBadList = "error",
) -> None:
    """Tag the words of sentences, as they come, and write them in the format of the input.

    Columns get one more with the label; CoNLL-U gets it in its place; lines of words become words with labels behind
    slashes. Models that were trained on words with tags, or on trees, expect lines of words, unless --reader names
    another format. With --json every line is an object with the id, the words and the labels.

    With --n-best the best sequences of every sentence become lists, for `rerank run` to rerank: a candidate is its
    words with labels behind slashes; the right ones, where the file has them, are the reference. A tagger knows the
    sentences that it was trained on too well: the lists of a recipe's second stage are by taggers of other folds.
    """
    from rerank.contrib.structures.fitting import best_of, sequence_reader, write_lists
    from rerank.contrib.structures.readers import batches_of, sentences_of
    from rerank.contrib.structures.tagger import Tagger
    from rerank.readers.problems import SkipCount
    from rerank.readers.reader import settings_of
    from rerank.storage.documents import as_json
    from rerank.storage.files import open_output
    from rerank.storage.streams import read_in

    cli.check_files(file, None, output, model)
    tagger, count = Tagger.load(model, trust), SkipCount(on_bad_list)
    settings, own_reader = tagger.settings["data"], tagger.settings["data"]["reader"]
    if reader is not None:
        form = sequence_reader(settings_of(reader, "--reader"), "--reader")
    else:
        plain = own_reader["name"] in ("slash", "trees") and tagger.width == 1
        form = sequence_reader("words" if plain else own_reader)
    items = form.read(file, tagger.width)
    sentences = sentences_of(read_in(settings["encoding"], items), count)
    lists = 0
    with open_output(output) as out:
        if n_best is None:
            for batch in batches_of(track(sentences, "tag", unit="sentences"), file):
                for sentence, labels in zip(batch, tagger.tag_many(each.tokens for each in batch), strict=True):
                    if cli.shown_as_json():
                        line = {"id": sentence.id, "words": sentence.words, "labels": labels}
                        out.write(encoded(f"{as_json(line)}\n"))
                    else:
                        form.write(out, sentence, labels)
                out.flush()
        else:
            best = best_of(tagger, batches_of(sentences, file), n_best)
            lists = write_lists(out, track(best, "tag", unit="sentences"))
    count.warn()
    if n_best is not None and output != "-":
        cli.show(f"{amount(lists, 'list')}: {output}", lists=lists, output=output)
