"""Commands on lists: rerank, evaluate, oracle."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from rich.table import Table as RichTable

from rerank.cli.application import OnBadList, Predictor, app, out
from rerank.corpus import Corpus
from rerank.errors import DataError
from rerank.extraction import make_metric, make_reader
from rerank.metrics.evaluation import evaluate as evaluate_trees
from rerank.metrics.significance import compare
from rerank.model import Model
from rerank.oracle import ListStatistics
from rerank.progress import track
from rerank.readers.base import BadList, SkipCount, readers
from rerank.readers.brackets import read_trees
from rerank.readers.pairs import read_pairs
from rerank.readers.streams import open_output, single_stdin, stream_name
from rerank.reranker import Ranked, Reranker, write_ranked
from rerank.symbols import SymbolTable

log = logging.getLogger("rerank")
Prm = Annotated[Path | None, typer.Option(help="An EVALB parameter file.", show_default=False)]
Punctuation = Annotated[
    Literal["reference", "own", "evalb"],
    typer.Option(help="Whose tags decide which words are punctuation; evalb refuses sentences where trees disagree."),
]


@app.command()
def rerank(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model directory.")],
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="Lists to rerank; - for standard input.")] = "-",
    output: Annotated[str, typer.Option("--output", "-o", help="Where to write; compressed by its ending.")] = "-",
    n_best: Annotated[
        int | None,
        typer.Option(min=1, help="Write so many candidates a list, in the input's format, with new and old scores."),
    ] = None,
    predictor: Predictor = "average",
    reader: Annotated[
        str | None, typer.Option(help="Format of the lists; the model's own by default.", show_default=False)
    ] = None,
    on_bad_list: OnBadList = "error",
) -> None:
    """Rerank lists: one line out a list, its best candidate, or with --n-best the first candidates of each list.

    A list without candidates gives an empty line and a warning.
    """
    reranker = Reranker(Model.load(model), predictor)
    form = reranker.reader if reader is None else make_reader({"name": reader})
    count, found = SkipCount(on_bad_list), Counter[str]()
    with open_output(output) as stream:
        lists = _count_lists(track(reranker.rank(reranker.read(form, nbest, count)), "rerank"), found)
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
    log.info("%d lists, %d unknown features", count.lists, reranker.unknown_features)


def _count_lists(lists: Iterable[Ranked | BadList], found: Counter[str]) -> Iterator[Ranked | BadList]:
    """Pass ``lists`` on while counting them, and those that have no candidate."""
    for ranked in lists:
        found["all"] += 1
        found["empty"] += isinstance(ranked, BadList) or not len(ranked.nbest)
        yield ranked


def _best_text(ranked: Ranked) -> bytes:
    """The best candidate on one line."""
    return ranked.nbest.texts[int(ranked.order[0])].strip().replace(b"\n", b" ")


@app.command()
def evaluate(
    files: Annotated[
        list[str],
        typer.Argument(metavar="HYP REF [HYP2 ...]", help="Trees to evaluate, their references, and further systems."),
    ],
    metric: Annotated[Literal["parseval"], typer.Option(help="The measure.")] = "parseval",
    prm: Prm = None,
    punctuation: Punctuation = "reference",
    sentences: Annotated[bool, typer.Option("--sentences", help="Also a line for every sentence.")] = False,
    significance: Annotated[
        bool, typer.Option("--significance", help="Test every further system against the first.")
    ] = False,
) -> None:
    """Score trees against references, one bracketed tree a line or spread over lines."""
    if len(files) < 2:
        raise DataError("expected HYP REF [HYP2 ...]: trees to evaluate, then their references")
    hypothesis, reference, *further = files
    if significance and not further:
        raise DataError("--significance compares systems; name a further one: HYP REF HYP2")
    if further and reference == "-":
        raise DataError("the references are read once for every system; name a file for them", path=stream_name("-"))
    single_stdin(*files)
    spec: dict[str, object] = {"name": metric, "punctuation": punctuation}
    measure = make_metric({**spec, "prm": str(prm)} if prm else spec)
    results = []
    for path in (hypothesis, *further):
        golds = (text for text, _ in read_trees(reference))
        tests = (text for text, _ in read_trees(path))
        results.append(evaluate_trees(golds, tests, measure, gold_path=reference, test_path=path))
    if sentences:
        for line in results[0].table():
            out.print(line)
    table = RichTable("", *(Path(path).name for path in (hypothesis, *further)))
    for section in results[0].sections():
        table.add_row(section, *([""] * len(results)))
        for key in results[0].sections()[section]:
            values = [result.sections()[section][key] for result in results]
            table.add_row(f"  {key}", *(_shown(key, value) for value in values))
    out.print(table)
    out.print(measure.signature)
    if significance:
        tests_table = RichTable("against the first", "difference", "95 % interval", "p")
        for path, result in zip(further, results[1:], strict=True):
            test = compare(measure, result.stats, results[0].stats, result.reference)
            tests_table.add_row(
                Path(path).name,
                f"{100 * test.difference:+.2f}",
                f"[{100 * test.low:+.2f}, {100 * test.high:+.2f}]",
                f"{test.p:.4f}",
            )
        out.print(tests_table)


COUNTS = ("sentences", "refused", "skipped")


def _shown(key: str, value: float) -> str:
    if key in COUNTS:
        return f"{value:,.0f}"
    return f"{value:.2f}" if key == "average_crossing" else f"{100 * value:.2f}"


@app.command()
def oracle(
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="N-best lists.")],
    reference: Annotated[str, typer.Argument(metavar="REF", help="Gold trees in the same order.")],
    reader: Annotated[str, typer.Option(help="Format of the lists.")] = "charniak",
    prm: Prm = None,
    punctuation: Punctuation = "reference",
    on_bad_list: OnBadList = "error",
) -> None:
    """What lists hold: base, oracle, anti-oracle and random scores, and how many candidates they have."""
    spec: dict[str, object] = {"name": "parseval", "punctuation": punctuation}
    measure = make_metric({**spec, "prm": str(prm)} if prm else spec)
    if reader not in readers:
        readers.get(reader)
    symbols, count = SymbolTable(), SkipCount(on_bad_list)
    sizes, rows, base, references = [0], [], [], []
    pairs = read_pairs(make_reader({"name": reader}), nbest, reference, symbols, count=count)
    for item, trees, gold in track(pairs, "read"):
        own, stats = measure.stats(gold, trees, symbols)
        sizes.append(len(item))
        rows.append(stats)
        base.append(item.base)
        references.append(own)
    if not references:
        raise DataError("no usable list in the file", path=nbest)
    stats, ends = np.concatenate(rows), np.cumsum(sizes)
    repeated = np.repeat(np.stack(references), np.diff(ends), axis=0)
    corpus = Corpus(
        lists=ends,
        rows=np.zeros(int(ends[-1]) + 1, np.int64),
        columns=np.zeros(0, np.int32),
        values=np.zeros(0, np.float32),
        base=np.concatenate(base),
        gain=measure.gain(stats, repeated),
        stats=stats,
        reference=np.stack(references),
        weight=np.ones(len(references)),
        width=0,
    )
    _print_statistics(ListStatistics.of(corpus, measure), count)


def _print_statistics(found: ListStatistics, count: SkipCount) -> None:
    table = RichTable("selection", "P", "R", "F", "exact match")
    for name in ("base", "oracle", "corpus_oracle", "anti_oracle", "random"):
        report = getattr(found, name)
        keys = ("precision", "recall", "f1", "exact_match")
        table.add_row(name.replace("_", " "), *(f"{100 * report[key]:.2f}" for key in keys))
    out.print(table)
    out.print(
        f"lists {found.lists:,}: {found.empty} without, {found.singletons} with one candidate; {count.skipped} skipped"
    )
    out.print(
        f"candidates {found.candidates:,}: least {found.smallest}, mean {found.mean:.1f}, median {found.median:g}, "
        f"most {found.largest}; {count.duplicates:,} duplicates"
    )
    ranks = np.asarray(found.oracle_ranks)
    if ranks.sum():
        share = 100 * ranks[0] / ranks.sum()
        out.print(
            f"the oracle is the base choice in {share:.1f} % of lists, unique in {100 * found.unique_oracle:.1f} %"
        )
    out.print(found.signature)
