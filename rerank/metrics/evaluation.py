"""PARSEVAL of a test file against a reference file: one row per sentence and corpus scores, as EVALB prints them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval import Parseval
from rerank.metrics.parseval_kernel import (
    CROSSING,
    GOLD,
    GOLD_SHIFT,
    LENGTH,
    MATCHED,
    REFUSED,
    SKIPPED,
    TAGS,
    TEST,
    WORD_SHIFT,
    WORDS,
)
from rerank.readers.trees.trees import parse_brackets
from rerank.readers.trees.words import CANDIDATES, bracket_words, normalized
from rerank.readers.trees.words import GOLD as GOLD_TREES

if TYPE_CHECKING:
    import nltk  # takes a second and 95 MB: only where a user asks for its trees

Text: TypeAlias = "bytes | str | nltk.Tree"
BLOCK = 4096  # sentences compared in one kernel call
OK, SKIP, ERROR = 0, 2, 1


class SentenceRow(NamedTuple):
    """One line of EVALB's table; ``status`` is 0 (counted), 1 (refused: other words) or 2 (skipped: no words)."""

    sentence: int
    length: int
    status: int
    recall: float
    precision: float
    matched: int
    gold: int
    test: int
    crossing: int
    words: int
    correct_tags: int
    tagging_accuracy: float


@dataclass(frozen=True)
class Evaluation:
    """Statistics of L sentences under a metric: ``stats`` float64 [L, K], ``reference`` float64 [L, R]."""

    metric: Parseval
    stats: np.ndarray
    reference: np.ndarray

    def scores(self) -> dict[str, float]:
        """Corpus scores; the keys are those of ``Parseval.report``."""
        return self.metric.report(self.stats.sum(axis=0), self.reference.sum(axis=0))

    def sections(self) -> dict[str, dict[str, float]]:
        """Corpus scores for all sentences and for those within the cut-off length."""
        return self.metric.sections(self.stats, self.reference)

    def sentences(self) -> Iterator[SentenceRow]:
        """One row per sentence, in order."""
        for number, (row, gold_row) in enumerate(zip(self.stats, self.reference, strict=True), start=1):
            gold, words = gold_row[GOLD] + row[GOLD_SHIFT], gold_row[WORDS] + row[WORD_SHIFT]
            yield SentenceRow(
                sentence=number,
                length=int(gold_row[LENGTH]),
                status=ERROR if row[REFUSED] else SKIP if row[SKIPPED] else OK,
                recall=float(row[MATCHED] / gold) if gold else 0.0,
                precision=float(row[MATCHED] / row[TEST]) if row[TEST] else 0.0,
                matched=int(row[MATCHED]),
                gold=int(gold),
                test=int(row[TEST]),
                crossing=int(row[CROSSING]),
                words=int(words),
                correct_tags=int(row[TAGS]),
                tagging_accuracy=float(row[TAGS] / words) if words else 0.0,
            )

    def table(self) -> Iterator[str]:
        """The lines of a report with the columns and units (per cent) of EVALB."""
        yield "  Sent.                        Matched  Bracket   Cross        Correct Tag"
        yield " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy"
        yield "=" * 76
        for r in self.sentences():
            yield (
                f"{r.sentence:4d}  {r.length:3d}    {r.status}  {100 * r.recall:6.2f} {100 * r.precision:6.2f}   "
                f"{r.matched:3d}    {r.gold:3d}  {r.test:3d}    {r.crossing:3d}   {r.words:4d}  {r.correct_tags:4d}   "
                f"{100 * r.tagging_accuracy:6.2f}"
            )
        yield "=" * 76
        for title, scores in self.sections().items():
            yield from ("", f"-- {title} --")
            ordered = ((key, scores[key]) for key in _LINES)
            yield from (f"{_LINES[key][0]:25s} = {_LINES[key][1](value)}" for key, value in ordered)


def _per_cent(value: float) -> str:
    return f"{100 * value:6.2f}"


def _count(value: float) -> str:
    return f"{value:6.0f}"


_LINES = {
    "sentences": ("Number of sentence", _count),
    "refused": ("Number of Error sentence", _count),
    "skipped": ("Number of Skip  sentence", _count),
    "recall": ("Bracketing Recall", _per_cent),
    "precision": ("Bracketing Precision", _per_cent),
    "f1": ("Bracketing FMeasure", _per_cent),
    "exact_match": ("Complete match", _per_cent),
    "average_crossing": ("Average crossing", "{:6.2f}".format),
    "no_crossing": ("No crossing", _per_cent),
    "two_or_less_crossing": ("2 or less crossing", _per_cent),
    "tagging_accuracy": ("Tagging accuracy", _per_cent),
}


def evaluate(
    gold: Iterable[Text],
    test: Iterable[Text],
    metric: Parseval | None = None,
    *,
    gold_path: str | None = None,
    test_path: str | None = None,
    changed: Counter[str] | None = None,
) -> Evaluation:
    """Compare bracketed trees with their references, one to one and in order.

    Parameters
    ----------
    gold, test: the trees, as bracketed text or ``nltk.Tree``; read as a stream.
    metric: the settings; PARSEVAL's defaults if None.
    gold_path, test_path: what errors call the two sides; the n-th tree counts as line n.
    changed: counts the words that are changed, by side, as they are brought to one form (see
        ``rerank.readers.trees.words``); None: words stay.

    Raises
    ------
    DataError: a tree cannot be read, a test tree has other words than its reference, the numbers of trees differ, or
        more sentences are refused than the metric's ``max_error`` allows.
    """
    metric = metric or Parseval()
    symbols = SymbolTable()
    stats = [np.zeros((0, len(metric.columns)))]
    reference = [np.zeros((0, len(metric.reference_columns)))]
    pairs = zip_longest(gold, test)
    done, refused = 0, 0
    while block := list(islice(pairs, BLOCK)):
        golds = [_bytes(text) for text, _ in block if text is not None]
        tests = [_bytes(text) for _, text in block if text is not None]
        if changed is not None:
            golds, tests = bracket_words(golds), bracket_words(tests)
        if len(golds) != len(tests):
            path, side, other = (
                (gold_path, "reference", "test") if len(golds) < len(tests) else (test_path, "test", "reference")
            )
            ends = done + min(len(golds), len(tests))
            raise DataError(f"the {side} trees end after {ends}, but there are more {other} trees", path=path)
        lines = list(range(done + 1, done + len(block) + 1))
        gold_trees = parse_brackets(golds, symbols, path=gold_path, lines=lines)
        test_trees = parse_brackets(tests, symbols, path=test_path, lines=lines)
        if changed is not None:
            gold_trees = normalized(gold_trees, symbols, changed, GOLD_TREES)
            test_trees = normalized(test_trees, symbols, changed, CANDIDATES)
        lists = np.arange(len(block) + 1)
        mismatch = metric.yield_mismatch(gold_trees, test_trees, symbols, lists)
        if mismatch is not None:
            raise DataError(str(mismatch), path=test_path, line=done + mismatch.candidate + 1)
        gold_rows, rows = metric.rows(gold_trees, test_trees, lists, symbols)
        stats.append(rows)
        reference.append(gold_rows)
        done += len(block)
        refused += int(rows[:, REFUSED].sum())
        if metric.max_error is not None and refused > metric.max_error + 1:
            raise DataError(
                f"{refused} of the first {done} sentences are refused because deleting punctuation leaves other words "
                f"than in the reference; MAX_ERROR is {metric.max_error}; use the reference's tags or raise it",
                path=test_path,
            )
    return Evaluation(metric, np.concatenate(stats), np.concatenate(reference))


def _bytes(text: Text) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")
