"""The command that makes one answer of every list."""

import logging
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rerank.base.errors import RecipeError
from rerank.base.progress import track
from rerank.base.wording import amount
from rerank.cli.answer import shown_as_json
from rerank.cli.application import (
    Encoding,
    ListReader,
    OnBadList,
    OutputFile,
    Trusted,
    check_files,
    command,
    model_for,
    own_parts,
    warn_of_skipped,
)
from rerank.cli.lattices import decode_lattices
from rerank.cli.measuring import ORDERS, Measured, Option, parsed_options

if TYPE_CHECKING:
    from rerank.models.decoding import Decoded
    from rerank.models.provenance import Decoding
    from rerank.models.scorer import Opened, Scorer
    from rerank.readers.base import SkippedList
    from rerank.readers.streams import OutputStream

    Lists = Iterator[Opened | SkippedList]

log = logging.getLogger("rerank")
AHEAD = 1000  # lists that tell how far scores deviate, where nothing was tuned


@command()
def decode(
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="Lists to decode; - for standard input.")] = "-",
    model: Annotated[
        str | None,
        typer.Option(
            help="A model directory, or the URL of one; by default the base scores count.", show_default=False
        ),
    ] = None,
    by: Annotated[
        Literal["best", "mbr", "fuse", "learned"] | None,
        typer.Option(
            help="The best candidate, the one with the greatest expected gain, or a tree of the brackets that are "
            "probable enough, by the scores or as a model has learned it; by default what the model was tuned to or, "
            "without one, fuse for trees and else mbr.",
            show_default=False,
        ),
    ] = None,
    sharpness: Annotated[
        float | None,
        typer.Option(help="The factor of scores in probabilities, in their deviations; 1 if nothing was tuned."),
    ] = None,
    deviation: Annotated[
        float | None,
        typer.Option(help=f"The deviation of scores; that of the first {AHEAD:,} lists if nothing was tuned."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="The least probability of a bracket, for fuse from 0.5; 0.5 if nothing was tuned."),
    ] = None,
    most: Annotated[
        int | None, typer.Option(help="Compare at most this many candidates with each other (mbr).")
    ] = None,
    gains: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="A function that gives the gains (mbr).", callback=own_parts),
    ] = None,
    metric: Measured = "parseval",
    option: Option = None,
    output: OutputFile = "-",
    reader: ListReader = None,
    trust: Trusted = False,
    encoding: Encoding = None,  # noqa: ARG001 - its callback acts
    on_bad_list: OnBadList = "error",
    sources: Annotated[
        str | None, typer.Option(help="The inputs of lists of texts, one per line, for a model.", show_default=False)
    ] = None,
    space: Annotated[
        Literal["lists", "lattice"],
        typer.Option(help="What is decoded: lists, or word lattices (SLF, or the text of OpenFst and Kaldi)."),
    ] = "lists",
    n: Annotated[
        int | None,
        typer.Option("-n", min=1, help="Write the n best of each lattice as lists in JSON lines.", show_default=False),
    ] = None,
    scales: Annotated[
        str | None,
        typer.Option(metavar="NAME=X,...", help="Weights of the scores of lattices; all 1.", show_default=False),
    ] = None,
    symbols: Annotated[
        str | None, typer.Option(help="The words of lattices by their numbers (OpenFst).", show_default=False)
    ] = None,
    references: Annotated[
        str | None,
        typer.Option(help="References of the lattices, one per line: for error rates, and for -n.", show_default=False),
    ] = None,
) -> None:
    """Decode lists: one line per list, an answer from all its candidates, which for trees need not be one of them.

    Works without a model, on base scores; --metric then says what candidates gain. A list without candidates gives an
    empty line. With --json every line is an object: the list's id, the answer, its place in the input (from 1, null for
    a tree that is no candidate), the probabilities of the candidates and, of fused trees, all brackets with who has
    them.

    With --space lattice NBEST has lattices, and the answer of each is the best of all its paths, by the scores of arcs;
    a model has to weigh nothing but these.
    """
    from rerank.extraction.content.base import make_reader
    from rerank.models.scorer import Scorer
    from rerank.readers.base import SkipCount
    from rerank.readers.streams import open_output
    from rerank.recipes.settings import named

    given = {"sharpness": sharpness, "deviation": deviation, "threshold": threshold, "most": most, "gains": gains}
    known = {key: value for key, value in given.items() if value is not None}
    check_files(nbest, sources, output, model)
    of_lattices = {"-n": n, "--scales": scales, "--symbols": symbols, "--references": references}
    of_lists = {"--by": by, "--reader": reader, "--sources": sources} | {f"--{key}": x for key, x in known.items()}
    _require_none(of_lattices if space == "lists" else of_lists, space)
    if space == "lattice":
        return decode_lattices(
            nbest, output, SkipCount(on_bad_list), model=model, n=n, scales=scales, symbols=symbols,
            references=references,
        )  # fmt: skip
    if model is not None:
        scorer = Scorer(model_for(nbest, model, trust))
    else:
        scorer = _of_base_scores(parsed_options(option or []) | named(metric))
        by = by or ("fuse" if metric == "parseval" else "mbr")
    form = scorer.reader if reader is None else make_reader(reader)
    count = SkipCount(on_bad_list)
    with open_output(output) as stream:
        how, lists = _how(scorer, by, known, scorer.read(form, nbest, count, sources))
        left_out = _write_answers(stream, scorer, how, lists)
    warn_of_skipped(count)
    if left_out:
        log.warning("%s without a vote: words other than those of the best of the list", amount(left_out, "candidate"))


def _require_none(options: dict[str, Any], space: str) -> None:
    """Refuse options that are of another space."""
    for name, value in options.items():
        if value is not None:
            raise RecipeError(f"{name}: it is not for --space {space}; leave it out")


def _of_base_scores(metric: dict[str, Any]) -> "Scorer":
    """The scorer of lists by their base scores, for a metric with these settings."""
    from rerank.models.decoding import base_model
    from rerank.models.scorer import Scorer
    from rerank.recipes.loading import read_settings
    from rerank.recipes.recipe import ListRecipe

    if metric["name"] in ORDERS:
        raise RecipeError(f"{metric['name']} measures orders, and decoding gives no order", key="--metric")
    task = {"parseval": "parse", "gain": "ranking"}.get(metric["name"], "translation")
    recipe = read_settings({"name": "decode", "task": task, "metric": metric, "features": {"set": "base"}})
    assert isinstance(recipe, ListRecipe)
    return Scorer(base_model(recipe))


def _how(scorer: "Scorer", by: str | None, given: dict[str, Any], lists: "Lists") -> "tuple[Decoding | None, Lists]":
    """The decoding that the model was tuned to, or that is ``given``; and the lists, of which some may have been
    read."""
    from pydantic import ValidationError

    from rerank.models.provenance import Decoding, decodings_of
    from rerank.recipes.settings import first_fault

    if by in (None, "best") or by in decodings_of(scorer.model.about):
        tuned = scorer.decoding(by)
        if tuned is None:
            for option in given:
                message = "the answer is the best candidate of each list; say which way to decode with --by"
                raise RecipeError(f"--{option}: {message}")
            return None, lists
        settings = tuned.model_dump() | given
    else:
        settings = {"kind": by, "sharpness": 1.0, **given}
        if "deviation" not in given:
            ahead = list(islice(lists, AHEAD))
            settings["deviation"], lists = _deviation(scorer, ahead), chain(ahead, lists)
    try:
        return Decoding.model_validate(settings), lists
    except ValidationError as error:
        place, message = first_fault(Decoding, error)
        raise RecipeError(f"--{place[0]}: {message}") from None


def _deviation(scorer: "Scorer", lists: "list[Opened | SkippedList]") -> float:
    """The standard deviation of scores from their lists' means; 1 where all are alike."""
    import numpy as np

    from rerank.readers.base import SkippedList

    by_list = [
        ranked.scores for ranked in scorer.rank(lists) if not isinstance(ranked, SkippedList) and ranked.scores.size
    ]
    apart = np.concatenate([np.zeros(0), *(scores - scores.mean() for scores in by_list)])
    deviation = float(np.sqrt(np.mean(apart**2))) if apart.size else 1.0
    return deviation if deviation > 0 and np.isfinite(deviation) else 1.0


def _write_answers(stream: "OutputStream", scorer: "Scorer", how: "Decoding | None", lists: "Lists") -> int:
    """Write the answer of every list; returns how many candidates had no vote."""
    from rerank.readers.base import SkippedList

    left_out = 0
    for item in track(lists, "decode"):
        answer = None if isinstance(item, SkippedList) or not len(item.nbest) else scorer.answer(item, how)
        left_out += 0 if answer is None else answer.left_out
        if shown_as_json():
            stream.write(_as_object(item.id if isinstance(item, SkippedList) else item.nbest.id, answer))
        else:
            stream.write(_as_line(answer))
    return left_out


def _as_line(found: "Decoded | None") -> bytes:
    """The answer of a list on one line; nothing where there is none."""
    from rerank.base.encoding import encoded

    return encoded(" ".join(("" if found is None else found.text).split("\n"))).replace(b"\r", b" ") + b"\n"


def _as_object(name: str, found: "Decoded | None") -> bytes:
    """The answer of a list as a line of JSON."""
    from rerank.storage.strict_json import as_json

    shown: dict[str, Any] = {"id": name, "text": None}
    if found is not None:
        place = None if found.place is None else found.place + 1
        shown |= {"text": found.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), "place": place}
        shown["probabilities"] = found.probabilities.tolist()
        if found.expected is not None:
            shown["expected_gains"] = found.expected.tolist()
        if found.votes:
            shown["brackets"] = [vote.as_object() for vote in found.votes]
    return f"{as_json(shown)}\n".encode()
