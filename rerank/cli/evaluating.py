"""Commands that measure: evaluate texts or trees against references, and what lists hold."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.table import Table as RichTable

from rerank.base.errors import DataError, RecipeError
from rerank.base.progress import track
from rerank.cli.application import OnBadList, app, out
from rerank.data.corpus import Corpus
from rerank.data.symbols import SymbolTable
from rerank.extraction.content.base import make_reader
from rerank.extraction.content.texts import make_text_metric
from rerank.extraction.content.trees import make_parseval
from rerank.metrics.base import Metric
from rerank.metrics.evaluation import evaluate as evaluate_trees
from rerank.metrics.oracle import ListStatistics
from rerank.metrics.parseval import Parseval
from rerank.metrics.significance import compare
from rerank.metrics.text import TextMetric
from rerank.readers.base import NBestList, SkipCount
from rerank.readers.streams import single_stdin, stream_name
from rerank.readers.texts.references import read_lines, read_references
from rerank.readers.texts.text_pairs import read_text_pairs
from rerank.readers.trees.brackets import read_trees
from rerank.readers.trees.pairs import read_pairs
from rerank.readers.trees.treebank import read_treebank, treebank_files
from rerank.readers.trees.words import changes, unchanged
from rerank.runs.report.verdict import verdict
from rerank.storage.bounded_yaml import yaml_value

log = logging.getLogger("rerank")

Prm = Annotated[Path | None, typer.Option(help="An EVALB parameter file.", show_default=False)]
Punctuation = Annotated[
    Literal["reference", "own", "evalb"],
    typer.Option(help="Whose tags decide which words are punctuation; evalb refuses sentences where trees disagree."),
]
Measured = Annotated[
    Literal["parseval", "bleu", "chrf", "ter", "wer", "cer"], typer.Option("--metric", help="The measure.")
]
Form = Annotated[
    Literal["lines", "tab", "id"],
    typer.Option(help="References of texts: one per line, several separated by tabs, or `id ||| reference` lines."),
]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="A setting of a text metric, for example tokenize=13a."),
]
References = Annotated[
    list[str] | None, typer.Option("--reference", metavar="FILE", help="Another file of references of texts.")
]
Normalize = Annotated[
    bool, typer.Option("--normalize", help="Trees: bring escapes, quotes and brackets in words to one form.")
]


def _metric(name: str, options: list[str] | None, prm: Path | None, punctuation: str) -> Metric:
    """The metric that the options of a command describe."""
    if name == "parseval":
        if options:
            raise RecipeError("--option is for text metrics; parseval has --prm and --punctuation")
        spec: dict[str, Any] = {"name": name, "punctuation": punctuation}
        return make_parseval({**spec, "prm": str(prm)} if prm else spec)
    if prm is not None:
        raise RecipeError(f"--prm is for parseval; {name} has none")
    return make_text_metric({"name": name, **_parsed(options or [])})


def _parsed(options: list[str]) -> dict[str, Any]:
    """``NAME=VALUE`` options; values are YAML."""
    found = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise RecipeError(f"found --option {option!r}, expected NAME=VALUE")
        found[key.strip()] = yaml_value(value, f"--option {option!r}")
    return found


@app.command()
def evaluate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="HYP REF [HYP2 ...]", help="What to evaluate, its references, and other systems to compare."
        ),
    ],
    metric: Measured = "parseval",
    prm: Prm = None,
    punctuation: Punctuation = "reference",
    references: References = None,
    form: Form = "lines",
    option: Option = None,
    normalize: Normalize = False,
    sentences: Annotated[bool, typer.Option("--sentences", help="Also print a line for every sentence.")] = False,
    significance: Annotated[
        bool, typer.Option("--significance", help="Test every other system against the first.")
    ] = False,
) -> None:
    """Score trees (one bracketed tree per line or spread over lines) or texts (one per line) against references."""
    if len(files) < 2:
        raise DataError("expected HYP REF [HYP2 ...]: what to evaluate, then its references")
    hypothesis, reference, *further = files
    if significance and not further:
        raise DataError("--significance compares systems; name another one: HYP REF HYP2")
    if further and reference == "-":
        raise DataError("the references are read once for every system; name a file for them", path=stream_name("-"))
    single_stdin(*files, *(references or []))
    measure = _metric(metric, option, prm, punctuation)
    if normalize and isinstance(measure, TextMetric):
        raise RecipeError("--normalize is for trees")
    if isinstance(measure, TextMetric):
        rows = _evaluate_texts(measure, [hypothesis, *further], [reference, *(references or [])], form, sentences)
    else:
        assert isinstance(measure, Parseval)
        if references or form != "lines":
            raise RecipeError("--reference and --form are for text metrics")
        rows = _evaluate_trees(measure, [hypothesis, *further], reference, sentences, normalize)
    if significance:
        _print_significance(measure, further, *rows)


Rows = tuple[list[np.ndarray], np.ndarray]  # statistics of every system (float64 [L, K]), and of the references [L, R]


def _evaluate_trees(measure: Parseval, systems: list[str], reference: str, sentences: bool, normalize: bool) -> Rows:
    """Print the scores of files of trees; returns their statistics."""
    results, said = [], []
    for path in systems:
        changed = unchanged() if normalize else None
        golds = (gold.text for gold in read_treebank(treebank_files(reference)))
        tests = (text for text, _ in read_trees(path))
        results.append(evaluate_trees(golds, tests, measure, gold_path=reference, test_path=path, changed=changed))
        said += [] if changed is None else [f"{Path(path).name}: {changes(changed)}"]
    if sentences:
        for line in results[0].table():
            out.print(line)
    table = RichTable("", *(Path(path).name for path in systems))
    for section in results[0].sections():
        table.add_row(section, *([""] * len(results)))
        for key in results[0].sections()[section]:
            values = [result.sections()[section][key] for result in results]
            table.add_row(f"  {key}", *(_shown(key, value) for value in values))
    out.print(table)
    for line in said:
        out.print(line)
    out.print(measure.signature)
    return [result.stats for result in results], results[0].reference


def _evaluate_texts(measure: TextMetric, systems: list[str], references: list[str], form: str, sentences: bool) -> Rows:
    """Print the scores of files of texts, one sentence per line; returns their statistics."""
    golds = list(read_references(references, form))
    texts = [list(read_lines(path)) for path in systems]
    for path, own in zip(systems, texts, strict=True):
        if len(own) != len(golds):
            message = f"{len(own)} lines for {len(golds)} references of {references[0]}; expected one for each"
            raise DataError(message, path=stream_name(path))
    if not golds:
        raise DataError("no reference in the file", path=references[0])
    shown_golds = [[text.decode("utf-8", "surrogateescape") for text in gold] for gold in golds]
    stats, reports, reference = [], [], np.zeros((0, 0))
    for path, own in zip(systems, texts, strict=True):
        rows = [_sentence(measure, path, line, *pair) for line, pair in enumerate(zip(own, golds, strict=True), 1)]
        reference = np.stack([row for row, _ in rows])
        stats.append(np.concatenate([row for _, row in rows]))
        hypotheses = [text.decode("utf-8", "surrogateescape") for text in own]
        report = measure.report(stats[-1].sum(axis=0), reference.sum(axis=0))
        reports.append({**report, **measure.corpus(hypotheses, shown_golds)})
    if sentences:
        for gain in measure.gain(stats[0], reference):
            out.print(f"{gain:.6f}")
    table = RichTable("", *(Path(path).name for path in systems))
    for key in reports[0]:
        table.add_row(key, *(_measured(measure, key, report[key]) for report in reports))
    out.print(table)
    out.print(measure.corpus_signature(shown_golds))
    return stats, reference


def _sentence(
    measure: TextMetric, path: str, line: int, text: bytes, gold: Sequence[bytes]
) -> tuple[np.ndarray, np.ndarray]:
    """The statistics of a line."""
    try:
        return measure.stats([text], gold)
    except DataError as error:
        raise DataError(error.message, path=stream_name(path), line=line) from None


def _measured(measure: Metric, key: str, value: float) -> str:
    """One number of a report of texts."""
    return measure.text(value) if key == measure.primary else f"{value:,.4g}"


def _print_significance(measure: Metric, names: list[str], stats: list[np.ndarray], reference: np.ndarray) -> None:
    table = RichTable("system", "difference", "95 % interval", "against the first")
    for path, own in zip(names, stats[1:], strict=True):
        test = compare(measure, own, stats[0], reference)
        low, high, difference = (measure.signed(value) for value in (test.low, test.high, test.difference))
        found = verdict(test.as_dict(), lower_is_better=measure.lower_is_better)
        table.add_row(Path(path).name, difference, f"[{low}, {high}]", found)
    out.print(table)


COUNTS = ("sentences", "refused", "skipped")


def _shown(key: str, value: float) -> str:
    if key in COUNTS:
        return f"{value:,.0f}"
    return f"{value:.2f}" if key == "average_crossing" else f"{100 * value:.2f}"


@app.command()
def oracle(
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="N-best lists.")],
    reference: Annotated[str, typer.Argument(metavar="REF", help="References in the same order.")],
    reader: Annotated[
        str | None, typer.Option(help="Format of the lists: charniak for trees, moses for texts.")
    ] = None,
    metric: Measured = "parseval",
    prm: Prm = None,
    punctuation: Punctuation = "reference",
    references: References = None,
    form: Form = "lines",
    option: Option = None,
    normalize: Normalize = False,
    on_bad_list: OnBadList = "error",
) -> None:
    """What lists hold: base, oracle, anti-oracle and random scores, and how many candidates they have."""
    measure, count = _metric(metric, option, prm, punctuation), SkipCount(on_bad_list)
    if normalize and isinstance(measure, TextMetric):
        raise RecipeError("--normalize is for trees")
    form_of_lists = make_reader(reader or ("moses" if isinstance(measure, TextMetric) else "charniak"))
    found: Iterator[tuple[NBestList, np.ndarray, np.ndarray]]
    if isinstance(measure, TextMetric):
        golds = [reference, *(references or [])]
        texts = read_text_pairs(form_of_lists, nbest, references=golds, sources=None, form=form, count=count)
        found = ((pair.nbest, *measure.list_stats(pair.nbest, pair.references)) for pair in texts)
    else:
        assert isinstance(measure, Parseval)
        symbols = SymbolTable()
        pairs = read_pairs(form_of_lists, nbest, reference, symbols, count=count, normalize=normalize)
        found = ((item, *measure.stats(gold, trees, symbols)) for item, trees, gold in pairs)
    sizes, rows, base, own_rows = [0], [], [], []
    for item, own, stats in track(found, "read"):
        sizes.append(sizes[-1] + len(item))
        rows.append(stats)
        base.append(item.base)
        own_rows.append(own)
    if not own_rows:
        raise DataError("no usable list in the file", path=nbest)
    stats, ends = np.concatenate(rows), np.array(sizes)
    repeated = np.repeat(np.stack(own_rows), np.diff(ends), axis=0)
    corpus = Corpus(
        lists=ends,
        rows=np.zeros(int(ends[-1]) + 1, np.int64),
        columns=np.zeros(0, np.int32),
        values=np.zeros(0, np.float32),
        base=np.concatenate(base),
        gain=measure.gain(stats, repeated),
        stats=stats,
        reference=np.stack(own_rows),
        weight=np.ones(len(own_rows)),
        width=0,
    )
    _print_statistics(ListStatistics.of(corpus, measure), count, measure)


def _print_statistics(found: ListStatistics, count: SkipCount, measure: Metric) -> None:
    keys = {"precision": "P", "recall": "R", "f1": "F", "exact_match": "exact match"}
    if not isinstance(measure, Parseval):
        keys = {key: key for key in (measure.primary, "length_ratio") if key in found.base}
    table = RichTable("selection", *keys.values())
    for name in ("base", "oracle", "corpus_oracle", "anti_oracle", "random"):
        report = getattr(found, name)
        cells = [f"{report[key]:.2f}" if key == "length_ratio" else measure.text(report[key]) for key in keys]
        table.add_row(name.replace("_", " "), *cells)
    out.print(table)
    out.print(
        f"lists {found.lists:,}: {found.empty} without, {found.singletons} with one candidate; {count.skipped} skipped"
    )
    out.print(
        f"candidates {found.candidates:,}: least {found.smallest}, mean {found.mean:.1f}, median {found.median:g}, "
        f"most {found.largest}; {count.duplicates:,} duplicates; {count.skipped_candidates} skipped"
    )
    for line in str(count).splitlines()[1:]:
        log.warning("%s", line)
    ranks = np.asarray(found.oracle_ranks)
    if ranks.sum():
        share = 100 * ranks[0] / ranks.sum()
        out.print(
            f"the oracle is the base choice in {share:.1f} % of lists, unique in {100 * found.unique_oracle:.1f} %"
        )
    out.print(found.signature)
