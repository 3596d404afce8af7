"""The command that says what lists hold."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from rerank.base.errors import DataError
from rerank.base.progress import track
from rerank.cli.answer import show
from rerank.cli.application import Encoding, ListReader, OnBadList, Roles, command, reader_of
from rerank.cli.measuring import Measuring, of_trees

if TYPE_CHECKING:
    import numpy as np

    from rerank.data.corpus import Corpus
    from rerank.metrics.base import Metric
    from rerank.metrics.oracle import ListStatistics
    from rerank.metrics.parseval import Parseval
    from rerank.metrics.text import TextMetric
    from rerank.readers.base import Lists, Reader, SkipCount

    Measurements = Iterator[tuple[Lists, np.ndarray, np.ndarray]]  # lists, statistics of references and of lists

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

    import numpy as np

    from rerank.extraction.content.base import make_reader
    from rerank.extraction.list_checks import doubts_of_lists
    from rerank.metrics.evaluation import check_errors
    from rerank.metrics.oracle import ListStatistics
    from rerank.metrics.parseval import Parseval
    from rerank.metrics.text import TextMetric
    from rerank.readers.account import Account, said_of, tell
    from rerank.readers.base import Lists, SkipCount
    from rerank.readers.detection import reads
    from rerank.readers.streams import stream_name
    from rerank.runs.doubts import references_amiss, written_apart

    measure, references = measuring.make(), measuring.references
    count, lengths, shown = SkipCount(on_bad_list), list[tuple[int, int]](), list[Lists]()
    usual = "moses" if isinstance(measure, TextMetric) else "charniak"
    form_of_lists = make_reader(reader_of(nbest, reader, roles, usual))
    if isinstance(measure, TextMetric):
        golds = None if reference is None else [reference, *(references or [])]
        if golds is None and references:
            raise DataError("expected NBEST REF: --reference names further references", path=stream_name(nbest))
        measured = _measured_texts(measure, form_of_lists, nbest, golds, measuring.form, count, lengths, shown)
    else:
        assert isinstance(measure, Parseval)
        if reference is None:
            raise DataError("expected NBEST REF: parses are measured against gold trees", path=stream_name(nbest))
        measured = _measured_trees(measure, form_of_lists, nbest, reference, count, measuring.normalize, shown)
    try:
        corpus = _measured_corpus(track(measured, "read"), measure)
    except DataError:
        meant = make_reader(reader or usual)
        if reference is None or not reads(meant, reference) or reads(meant, nbest):
            raise
        message = f"{reference} holds lists, and {nbest} does not: they are given the wrong way round"
        raise DataError(f"{message}; expected NBEST REF") from None
    if corpus is None:
        raise count.nothing(stream_name(nbest))
    if isinstance(measure, Parseval):
        check_errors(measure, count.refused, count.lists, count.first_refused)
    account = Account.of(stream_name(nbest), shown, measure=measure.signature)
    tell(account)
    show(**said_of(account))
    amiss = doubts_of_lists(shown, measure, getattr(form_of_lists, "roles", None))
    show(*amiss, doubts=amiss)
    statistics = ListStatistics.of(corpus, measure)
    _show_statistics(statistics, count, measure)
    for line in references_amiss(measure, asdict(statistics), np.array(lengths), written_apart(amiss)):
        log.warning("%s", line)


def _measured_corpus(found: "Measurements", measure: "Metric") -> "Corpus | None":
    """The lists as a corpus without features; None if there are none."""
    import numpy as np

    from rerank.data.corpus import Corpus

    sizes, base, stats, references = [0], [], [], []
    for nbest, of_reference, of_list in found:
        sizes.append(sizes[-1] + len(nbest))
        base.append(nbest.base)
        stats.append(of_list)
        references.append(of_reference)
    if not references:
        return None
    lists, rows, reference = np.array(sizes), np.concatenate(stats), np.stack(references)
    gain = measure.gain(rows, np.repeat(reference, np.diff(lists), axis=0))
    empty, columns, values = np.zeros(sizes[-1] + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    weight = np.ones(len(references))
    return Corpus(lists, empty, columns, values, np.concatenate(base), gain, rows, reference, weight, width=0)


def _measured_texts(
    measure: "TextMetric", reader: "Reader", nbest: str, golds: list[str] | None, form: str, count: "SkipCount",
    lengths: list[tuple[int, int]], shown: "list[Lists]",
) -> "Measurements":  # fmt: skip
    """Lists of texts with their statistics; leaves how long they are in ``lengths``, and the first in ``shown``."""
    from rerank.extraction.seen import lengths_of
    from rerank.readers.account import MOST
    from rerank.readers.texts.text_files import read_text_pairs

    needed = not measure.measured
    lists = read_text_pairs(reader, nbest, references=golds, form=form, count=count, needs_references=needed)
    for texts in lists:
        lengths.append(lengths_of(texts.texts, texts.base, texts.references, texts.answers))
        shown += [texts] if len(shown) < MOST else []
        yield (texts, *measure.list_stats(texts, texts.references))


def _measured_trees(
    measure: "Parseval",
    reader: "Reader",
    nbest: str,
    reference: str,
    count: "SkipCount",
    normalize: bool,
    seen: "list[Lists]",
) -> "Measurements":
    from rerank.data.symbols import SymbolTable
    from rerank.metrics.evaluation import refused_list
    from rerank.readers.account import MOST
    from rerank.readers.trees.treebank import read_pairs

    symbols = SymbolTable()
    with of_trees(reference):
        for item, trees, gold in read_pairs(reader, nbest, reference, symbols, count=count, normalize=normalize):
            shared, stats = measure.stats(gold, trees, symbols)
            seen += [item] if len(seen) < MOST else []
            count.refuse(refused_list(measure, item, gold, trees, stats, symbols))
            yield item, shared, stats


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
