"""Commands for jackknifing: the folds of a treebank, and the lists of their parsers joined."""

import logging
from pathlib import Path
from typing import Annotated, Literal

import typer

from rerank.base.progress import track
from rerank.base.wording import amount
from rerank.cli.answer import show
from rerank.cli.application import OnBadList, OutputFile, app, command, warn_of_skipped

log = logging.getLogger("rerank")
group = typer.Typer(no_args_is_help=True, help="Jackknifing: split a treebank, and join the lists of its parts.")
app.add_typer(group, name="folds")


@command("split", group)
def split_treebank(
    treebank: Annotated[list[str], typer.Argument(metavar="TREEBANK...", help="Files, folders or patterns.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The directory of the folds.")],
    number: Annotated[int, typer.Option("--folds", min=2, max=500, help="How many folds.")] = 20,
    sentences: Annotated[
        str | None,
        typer.Option(help="What parsers are given: a file of sentences, one per line.", show_default=False),
    ] = None,
    by: Annotated[
        Literal["sentences", "files"], typer.Option(help="Consecutive sentences, or whole files, make a fold.")
    ] = "sentences",
) -> None:
    """Split a treebank: for every fold, the trees to train a parser on and the sentences to parse with it.

    Folds that an interrupted call has completed are kept.
    """
    from rich.table import Table

    from rerank.readers.folds import SENTENCES, TRAIN, split

    manifest = split(treebank, number, output, words=sentences, by=by)
    table, entries = Table("fold", TRAIN, SENTENCES), []
    total = sum(map(manifest.size, range(number)))
    for fold in range(number):
        size, place = manifest.size(fold), str(manifest.place(output, fold))
        table.add_row(place, amount(total - size, "tree"), amount(size, "sentence"))
        entries.append({"fold": place, "trees": total - size, "sentences": size})
    show(table, folds=entries)


@command("join", group)
def join_lists(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `rerank folds split` has written.")],
    lists: Annotated[list[str], typer.Argument(metavar="LISTS...", help="The lists of every fold, in order.")],
    output: OutputFile,
    reader: Annotated[str, typer.Option(help="Format of the lists.")] = "charniak",
    ids: Annotated[
        Literal["number", "file"], typer.Option(help="Number lists through the treebank, or keep their ids.")
    ] = "number",
    on_bad_list: OnBadList = "error",
) -> None:
    """Join the lists of all folds in the order of the treebank.

    A list that is not of its fold's sentence is refused.
    """
    from rerank.extraction.content.base import make_reader
    from rerank.readers.base import ListWriter, SkipCount, SkippedList
    from rerank.readers.folds import NAME, Joining
    from rerank.readers.streams import open_output
    from rerank.storage.outputs import check_apart

    check_apart([output], [*lists, directory / NAME, *directory.glob("*/*")])
    form, count = make_reader(reader), SkipCount(on_bad_list)
    joining = Joining(directory, lists, form, count, ids)
    if missing := joining.manifest.check_sources():
        log.warning(
            "%d of the treebank's files are gone, the first %s: whether they have changed is unknown",
            len(missing),
            missing[0],
        )
    with open_output(output) as stream:
        writer = ListWriter(stream, form)
        for item in track(joining.lists(), "join"):
            if isinstance(item, SkippedList):
                writer.bad(item)
            else:
                writer.good(item)
        writer.finish()
    lines = str(count).splitlines()
    show(lines[0], summary=lines[0], lists=count.lists, skipped=count.skipped)
    warn_of_skipped(count)
    if joining.normalized:
        message = "%d lists spell words differently from their gold trees: set data.normalize: true in recipes"
        log.warning(message, joining.normalized)
