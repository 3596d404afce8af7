"""The command that says what lists hold."""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rerank.base.errors import DataError
from rerank.base.progress import track
from rerank.cli.application import Encoding, ListReader, OnBadList, Roles, command, reader_of, show
from rerank.cli.measuring import Measuring, of_trees

if TYPE_CHECKING:
    from rerank.data.corpus import Corpus
    from rerank.extraction.content import Measured
    from rerank.extraction.seen import SeenLists
    from rerank.metrics.metric import Metric
    from rerank.metrics.oracle import ListStatistics
    from rerank.readers.base import Lists, SkipCount

log = logging.getLogger("rerank")


@command()
def oracle(
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="N-best lists.")],
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="[REF]",
            help="References, by id or in the same order; not for a gain, nor for lists that hold their own.",
            show_default=False,
        ),
    ] = None,
    *,
    reader: ListReader = None,
    roles: Roles = None,
    measuring: Measuring,
    encoding: Encoding = None,  # noqa: ARG001 - its callback acts
    on_bad_list: OnBadList = "error",
) -> None:
    """Figures about lists: base, oracle, anti-oracle and random scores, and how many candidates they have."""
    from dataclasses import asdict

    from rerank.extraction.content import make_reader
    from rerank.extraction.kinds import content_of
    from rerank.extraction.seen import SeenLists
    from rerank.metrics.oracle import ListStatistics
    from rerank.readers.base import Lists, SkipCount
    from rerank.readers.detection import reads
    from rerank.readers.given.reading import ListFile, read
    from rerank.readers.lists import one_by_one
    from rerank.readers.several import format_of
    from rerank.readers.streams import stream_name
    from rerank.readers.trees.charniak import ParseReader
    from rerank.recipes.loading import read_settings
    from rerank.recipes.recipe import ListRecipe
    from rerank.runs.corpora import references_amiss, written_apart

    path, usual = stream_name(nbest), "charniak" if measuring.metric in (None, "parseval") else "moses"
    form = reader_of(nbest, reader, roles, usual)
    bare = reference is None and not isinstance(format_of(make_reader(form)), ParseReader)
    settings = measuring.settings("gain" if bare else "parseval")
    parses = settings["name"] == "parseval"
    if reference is None and (parses or measuring.references):
        what = "parses are measured against gold trees" if parses else "--reference names further references"
        raise DataError(f"expected NBEST REF: {what}", path=path)
    golds = None if reference is None else [reference, *(measuring.references or [])]
    lists = read(nbest, form, references=golds, form=measuring.form, on_bad_list=on_bad_list)
    if not isinstance(lists, ListFile) or (parses and not lists.trees):
        raise DataError("these are lists of texts; for texts, name their measure, as --metric bleu", path=path)
    data = {"normalize": measuring.normalize} if parses else {}
    recipe = read_settings({"name": "oracle", "task": "parse" if parses else "ranking", "metric": settings,
                            "features": {"set": "base"}, "data": data})  # fmt: skip
    assert isinstance(recipe, ListRecipe)
    content, count, shown = content_of(recipe), SkipCount(on_bad_list), list[Lists]()
    measure, seen = content.metric, SeenLists(content.held)
    try:
        with of_trees(*(golds or ()) if parses else ()):
            blocks = one_by_one(lists.blocks(normal=measuring.normalize))
            corpus = _measured_corpus(content.measured(track(blocks, "read"), count), measure, seen, shown)
    except DataError:
        meant = make_reader(reader or usual)
        if reference is None or not reads(meant, reference) or reads(meant, nbest):
            raise
        message = f"{reference} holds lists, and {nbest} does not: they are given the wrong way round"
        raise DataError(f"{message}; expected NBEST REF") from None
    if corpus is None:
        raise count.nothing(path)
    content.check(count)
    amiss = _show_account(path, shown, measure, form.get("roles"))
    statistics = ListStatistics.of(corpus, measure)
    _show_statistics(statistics, count, measure)
    for line in references_amiss(measure, asdict(statistics), seen.finish().lengths, written_apart(amiss)):
        log.warning("%s", line)


def _show_account(path: str, shown: "list[Lists]", measure: "Metric", roles: Any) -> list[str]:
    """Show what the first lists are taken for, and what is amiss with them, which is returned."""
    from rerank.extraction.list_checks import doubts_of_lists
    from rerank.readers.account import Account, said_of, tell

    account = Account.of(path, shown, measure=measure.signature)
    tell(account)
    amiss = doubts_of_lists(shown, measure, roles)
    show(*amiss, doubts=amiss, **said_of(account))
    return amiss


def _measured_corpus(
    found: "Iterable[Measured]", measure: "Metric", seen: "SeenLists", shown: "list[Lists]"
) -> "Corpus | None":
    """The lists as a corpus without features, None if there are none; what they are like goes to ``seen``, the first to
    ``shown``."""
    import numpy as np

    from rerank.data.corpus import Corpus
    from rerank.readers.account import MOST

    every = list[tuple[np.ndarray, ...]]()
    for one in found:
        every.append((one.lists.base, one.stats, one.reference))
        seen.add(one.lists)
        shown += [one.lists][: MOST - len(shown)]
    if not every:
        return None
    lists = np.cumsum([0, *(len(own) for own, *_ in every)])
    base, rows, reference = map(np.concatenate, zip(*every, strict=True))
    gain = measure.gain(rows, np.repeat(reference, np.diff(lists), axis=0))
    empty, columns, values = np.zeros(lists[-1] + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    return Corpus(lists, empty, columns, values, base, gain, rows, reference, np.ones(len(every)), width=0)


def _show_statistics(found: "ListStatistics", count: "SkipCount", measure: "Metric") -> None:
    from dataclasses import asdict

    from rich.table import Table

    from rerank.metrics.parseval import Parseval

    keys = {"precision": "P", "recall": "R", "f1": "F", "exact_match": "exact match", "valid": "valid sentences"}
    texts = {"length_ratio": "{:.3f}".format, "valid": "{:,.0f}".format}
    if not isinstance(measure, Parseval):
        keys = {key: key for key in (measure.primary, "length_ratio") if key in found.base}
    table = Table("selection", *keys.values())
    first = [] if found.first == found.base else ["first"]
    for name in ("base", *first, "oracle", "corpus_oracle", "anti_oracle", "random"):
        report = getattr(found, name)
        cells = [texts.get(key, measure.text)(report[key]) for key in keys]
        table.add_row(name.replace("_", " "), *cells)
    skipped = {"skipped": count.skipped, "skipped_candidates": count.skipped_candidates, "duplicates": count.duplicates}
    show(table, **asdict(found), **skipped)
    show(
        f"lists {found.lists:,}: {found.empty} without, {found.singletons} with one candidate; {count.skipped} skipped",
        f"candidates {found.candidates:,}: least {found.smallest}, mean {found.mean:.1f}, median {found.median:g}, "
        f"most {found.largest}; {count.duplicates:,} duplicates; {count.skipped_candidates} skipped",
    )
    count.warn()
    if placed := sum(found.oracle_ranks):
        share, unique = found.oracle_ranks[0] / placed, f"{100 * found.unique_oracle:.1f} %"
        line = f"the oracle is the base choice in {100 * share:.1f} % of lists, unique in {unique}"
        show(line, oracle_is_base=share)
    show(found.signature)
