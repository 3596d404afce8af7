"""The command that applies a model to lists."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rerank.base.progress import track
from rerank.base.wording import amount
from rerank.cli.answer import shown_as_json
from rerank.cli.application import (
    Encoding,
    ListReader,
    ModelPlace,
    OnBadList,
    OutputFile,
    Predictor,
    Trusted,
    check_files,
    command,
    model_for,
    warn_of_skipped,
)

if TYPE_CHECKING:
    from rerank.models.scorer import Ranked
    from rerank.readers.base import SkippedList

log = logging.getLogger("rerank")


@command()
def rerank(
    model: ModelPlace,
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="Lists to rerank; - for standard input.")] = "-",
    output: OutputFile = "-",
    n_best: Annotated[
        int | None,
        typer.Option(
            min=1, help="Write this many candidates per list, in the input's format, with new and old scores."
        ),
    ] = None,
    predictor: Predictor = None,
    reader: ListReader = None,
    trust: Trusted = False,
    encoding: Encoding = None,  # noqa: ARG001 - its callback acts
    on_bad_list: OnBadList = "error",
    sources: Annotated[
        str | None,
        typer.Option(help="The inputs of lists of texts that do not hold their own, one per line.", show_default=False),
    ] = None,
) -> None:
    """Rerank lists: one line per list, what the model chooses, or with --n-best the first candidates of each list.

    The lists are in the format of those that the model was trained on, unless --reader names another. A list without
    candidates gives an empty line and a warning. Where the model fuses trees its choice may be none of the candidates,
    which are by score. With --json every line is an object: the list's id, the predictor, the text and the place in the
    input (from 1, null for a tree that is no candidate) of the choice, and the candidates, the first or as many as
    --n-best says, with their places, texts and scores.
    """
    from rerank.extraction.content.base import make_reader
    from rerank.models.scorer import Scorer, write_ranked
    from rerank.readers.base import SkipCount
    from rerank.readers.streams import open_output

    check_files(nbest, sources, output, model)
    scorer = Scorer(model_for(nbest, model, trust), predictor)
    form = scorer.reader if reader is None else make_reader(reader)
    if n_best is not None and scorer.predictor in ("fuse", "learned") and not shown_as_json():
        log.warning(
            "the candidates are in the order of their scores by %s; the model's own choices are trees that it fuses, "
            "which are written without --n-best", scorer.ranked_by,
        )  # fmt: skip
    count, counts = SkipCount(on_bad_list), Counter[str]()
    with open_output(output) as stream:
        opened = scorer.read(form, nbest, count, sources)
        lists = _count_lists(track(scorer.rank(opened), "rerank"), counts)
        if shown_as_json():
            for ranked in lists:
                stream.write(_as_object(ranked, scorer.predictor, n_best or 1))
        elif n_best is not None:
            write_ranked(stream, form, lists, n_best)
        else:
            for ranked in lists:
                stream.write(_best_text(ranked) + b"\n")
    warn_of_skipped(count)
    if counts["empty"]:
        what = "an empty line" if n_best is None else "a list without candidates"
        log.warning("%d of the %d lists had no usable candidate: %s each", counts["empty"], counts["all"], what)
    if not counts["all"]:
        log.warning("no list in the input")
    missing = ", ".join(name for names in scorer.content.needs.values() for name in names)
    if counts["without source"] and missing:
        message = "%d lists came without their source, which features of %s need; see --sources"
        log.warning(message, counts["without source"], missing)
    shown = amount(count.lists, "list"), amount(counts["unknown"], "unknown feature")
    log.info("%s, %s, by the predictor %s", *shown, scorer.predictor)


def _count_lists(lists: "Iterable[Ranked | SkippedList]", found: Counter[str]) -> "Iterator[Ranked | SkippedList]":
    """Pass ``lists`` on and count them, those without candidates or source, and what the model does not know."""
    from rerank.readers.base import SkippedList
    from rerank.readers.texts.text_list import TextList

    for ranked in lists:
        found["all"] += 1
        found["empty"] += not _places(ranked)
        if not isinstance(ranked, SkippedList):
            found["unknown"] += ranked.unknown
            found["without source"] += isinstance(ranked.nbest, TextList) and ranked.nbest.source is None
        yield ranked


def _places(ranked: "Ranked | SkippedList") -> list[int]:
    """The candidates of a list, best first; a bad list has none."""
    order = getattr(ranked, "order", ())
    return [int(y) for y in order]


def _as_object(ranked: "Ranked | SkippedList", predictor: str, most: int) -> bytes:
    """The choice from a list, and its first candidates, as a line of JSON."""
    from rerank.readers.base import SkippedList
    from rerank.storage.strict_json import as_json

    shown: dict[str, Any] = {"id": "", "predictor": predictor, "text": None, "place": None, "candidates": []}
    if isinstance(ranked, SkippedList) or not ranked.order.size:
        return (
            f"{as_json(shown | {'id': ranked.id if isinstance(ranked, SkippedList) else ranked.nbest.id})}\n".encode()
        )
    nbest, scores, answer = ranked.nbest, ranked.scores, ranked.answer
    place = int(ranked.order[0]) if answer is None else answer.place
    candidates = [
        {
            "place": y + 1,
            "text": nbest.texts[y].strip().decode("utf-8", "replace"),
            "score": float(scores[y]),
            "base_score": float(nbest.base[y]),
        }
        for y in _places(ranked)[:most]
    ]
    shown |= {"id": nbest.id, "text": ranked.best.strip().decode("utf-8", "replace"), "candidates": candidates}
    return f"{as_json(shown | {'place': None if place is None else place + 1})}\n".encode()


def _best_text(ranked: "Ranked | SkippedList") -> bytes:
    """The choice on one line; nothing where there is no candidate."""
    text: bytes = getattr(ranked, "best", b"")
    return text.strip().replace(b"\r", b" ").replace(b"\n", b" ")
