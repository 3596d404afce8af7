"""The command that applies a model to lists."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from rerank.base.progress import track
from rerank.cli.application import ListReader, OnBadList, PathsCommand, Predictor, app
from rerank.extraction.content.base import make_reader
from rerank.models.model import Model, model_files
from rerank.models.scorer import Ranked, Scorer, write_ranked
from rerank.readers.base import BadList, SkipCount
from rerank.readers.streams import open_output, single_stdin
from rerank.readers.texts.text_list import TextList
from rerank.storage.outputs import check_apart

log = logging.getLogger("rerank")


@app.command(cls=PathsCommand)
def rerank(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model directory.")],
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="Lists to rerank; - for standard input.")] = "-",
    output: Annotated[str, typer.Option("--output", "-o", help="Where to write; compressed by its ending.")] = "-",
    n_best: Annotated[
        int | None,
        typer.Option(
            min=1, help="Write this many candidates per list, in the input's format, with new and old scores."
        ),
    ] = None,
    predictor: Predictor = "average",
    reader: ListReader = None,
    on_bad_list: OnBadList = "error",
    sources: Annotated[
        str | None,
        typer.Option(help="The inputs of lists of texts that do not hold their own, one per line.", show_default=False),
    ] = None,
) -> None:
    """Rerank lists: one line per list, its best candidate, or with --n-best the first candidates of each list.

    The lists are in the format of those that the model was trained on, unless --reader names another. A list without
    candidates gives an empty line and a warning.
    """
    single_stdin(*nbest.split(","), *([sources] if sources is not None else []))
    check_apart([output], [nbest, *nbest.split(","), *([] if sources is None else [sources]), *model_files(model)])
    scorer = Scorer(Model.load(model), predictor)
    form = scorer.reader if reader is None else make_reader(reader)
    count, found = SkipCount(on_bad_list), Counter[str]()
    with open_output(output) as stream:
        opened = scorer.read(form, nbest, count, sources)
        lists = _count_lists(track(scorer.rank(opened), "rerank"), found)
        if n_best is not None:
            write_ranked(stream, form, lists, n_best)
        else:
            for ranked in lists:
                best = b"" if isinstance(ranked, BadList) or not len(ranked.nbest) else _best_text(ranked)
                stream.write(best + b"\n")
    for line in str(count).splitlines()[1:]:
        log.warning("%s", line)
    if found["empty"]:
        what = "an empty line" if n_best is None else "a list without candidates"
        log.warning("%d of the %d lists had no usable candidate: %s each", found["empty"], found["all"], what)
    if not found["all"]:
        log.warning("no list in the input")
    if found["without source"]:
        message = "%d lists came without their source: features of phrases and word pairs are missing; see --sources"
        log.warning(message, found["without source"])
    log.info("%d lists, %d unknown features", count.lists, found["unknown"])


def _count_lists(lists: Iterable[Ranked | BadList], found: Counter[str]) -> Iterator[Ranked | BadList]:
    """Pass ``lists`` on and count them, those without candidates or source, and what the model does not know."""
    for ranked in lists:
        found["all"] += 1
        found["empty"] += isinstance(ranked, BadList) or not len(ranked.nbest)
        if not isinstance(ranked, BadList):
            found["unknown"] += ranked.unknown
            found["without source"] += isinstance(ranked.nbest, TextList) and ranked.nbest.source is None
        yield ranked


def _best_text(ranked: Ranked) -> bytes:
    """The best candidate on one line."""
    return ranked.nbest.texts[int(ranked.order[0])].strip().replace(b"\r", b" ").replace(b"\n", b" ")
