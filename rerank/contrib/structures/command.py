"""The command that tags words, or writes the best sequences of labels as lists."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from rerank.base.encoding import amount, encoded
from rerank.base.progress import track
from rerank.cli.application import (
    Encoding,
    ModelPlace,
    OnBadList,
    OutputFile,
    Trusted,
    allow_local_imports,
    check_files,
    command,
    show,
    shown_as_json,
)

if TYPE_CHECKING:
    from rerank.contrib.structures.readers import SequenceReader, TaggedSentence
    from rerank.contrib.structures.tagger import Tagger
    from rerank.readers.problems import SkipCount
    from rerank.readers.streams import OutputStream

Sentences = Annotated[str, typer.Argument(metavar="FILE", help="Sentences; - for standard input.")]
SentenceReader = Annotated[
    str | None,
    typer.Option(
        "--reader",
        help="Format of the sentences, by name or with options, as conllu or {name: conll, columns: [2]}.",
        show_default="that of training, or words",
        callback=allow_local_imports,
    ),
]


@command()
def tag(
    model: ModelPlace,
    file: Sentences = "-",
    output: OutputFile = "-",
    *,
    n_best: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Write this many sequences of labels for a sentence, as lists in JSON lines.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Jackknife: list each fold of FILE, which the model was trained on, by a model of the others.",
            show_default=False,
        ),
    ] = None,
    reader: SentenceReader = None,
    trust: Trusted = False,
    encoding: Encoding = None,  # noqa: ARG001 - its callback acts
    on_bad_list: OnBadList = "error",
) -> None:
    """Tag the words of sentences, in the format that they are in, as they come.

    Columns get one more with the label; CoNLL-U gets it in its place; lines of words become words with labels behind
    slashes. Models that were trained on words with tags, or on trees, expect lines of words, unless --reader names
    another format. With --json every line is an object with the id, the words and the labels.

    With --n-best the best sequences of every sentence become lists, for `rerank run` to rerank: a candidate is its
    words with labels behind slashes; the right ones, where the file has them, are the reference. A tagger knows the
    sentences that it was trained on too well: with --folds their lists are like those of others.
    """
    from rerank.contrib.structures.tagger import Tagger
    from rerank.readers.problems import SkipCount
    from rerank.readers.streams import open_output

    if folds is not None and n_best is None:
        raise typer.BadParameter("--folds is of lists, and needs --n-best")
    check_files(file, None, output, model)
    tagger, count = Tagger.load(model, trust), SkipCount(on_bad_list)
    form = _reader(tagger, reader, labelled=folds is not None)
    with open_output(output) as out:
        if n_best is None:
            _write_tagged(out, tagger, form, file, count)
        else:
            written = _write_lists(out, tagger, form, file, count, n_best, folds)
    count.warn()
    if n_best is not None and output != "-":
        show(f"{amount(written, 'list')}: {output}", lists=written, output=output)


def _write_tagged(out: "OutputStream", tagger: "Tagger", form: "SequenceReader", file: str, count: "SkipCount") -> None:
    """Write sentences with their labels, as they come."""
    from rerank.contrib.structures.readers import as_they_come
    from rerank.storage.documents import as_json

    for batch in as_they_come(track(_sentences(tagger, form, file, count), "tag", unit="sentences"), file):
        for sentence, labels in zip(batch, tagger.tag_many(each.tokens for each in batch), strict=True):
            if shown_as_json():
                line = {"id": sentence.id, "words": sentence.words, "labels": labels}
                out.write(encoded(f"{as_json(line)}\n"))
            else:
                form.write(out, sentence, labels)
        out.flush()


def _write_lists(
    out: "OutputStream", tagger: "Tagger", form: "SequenceReader", file: str, count: "SkipCount", n: int,
    folds: int | None,
) -> int:  # fmt: skip
    """Write the best ``n`` sequences of every sentence; returns the number of lists."""
    from rerank.contrib.structures.fitting import best_of, jackknifed, write_lists
    from rerank.contrib.structures.readers import as_they_come
    from rerank.contrib.structures.recipe import TaggingRecipe
    from rerank.recipes.loading import read_settings

    if folds is None:
        found = best_of(tagger, as_they_come(_sentences(tagger, form, file, count), file), n)
    else:
        recipe = read_settings(tagger.settings)
        assert isinstance(recipe, TaggingRecipe)
        sentences = list(_sentences(tagger, form, file, count, labelled=True))
        found = jackknifed(recipe, sentences, folds, n, int(tagger.about.get("epochs", recipe.training.epochs)))
    return write_lists(out, track(found, "tag", unit="sentences"))


def _reader(tagger: "Tagger", given: str | None, *, labelled: bool = False) -> "SequenceReader":
    """The reader that is named, by default that of training; or of words, where that needs labels."""
    from rerank.contrib.structures.fitting import sequence_reader
    from rerank.storage.documents import read_yaml

    if given is not None:
        return sequence_reader(read_yaml(given) if given.lstrip().startswith("{") else given, "--reader")
    trained = tagger.settings["data"]["reader"]
    words = not labelled and trained["name"] in ("slash", "trees") and tagger.width == 1
    return sequence_reader("words" if words else trained)


def _sentences(
    tagger: "Tagger", form: "SequenceReader", file: str, count: "SkipCount", *, labelled: bool = False
) -> "Iterable[TaggedSentence]":
    """The usable sentences of a file, with labels or, unless they have to be ``labelled``, without."""
    from rerank.contrib.structures.readers import sentences_of
    from rerank.readers.streams import read_in

    found = form.read(file, None if labelled else tagger.width)
    return sentences_of(read_in(tagger.settings["data"]["encoding"], found), count)
