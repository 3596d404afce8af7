"""PARSEVAL of a test file against a reference file: one row per sentence and corpus scores, as EVALB prints them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.data.trees import CANDIDATES, Trees, bracket_words, equal_form, normal_trees, parse_brackets, subset
from rerank.data.trees import GOLD as GOLD_TREES
from rerank.metrics.parseval import Parseval
from rerank.metrics.parseval_kernel import LENGTH, REFUSED
from rerank.readers.reader import Lists
from rerank.readers.trees.treebank import SentenceText

FEW_ERRORS = 10  # errors that say nothing about the other sentences


def refusal(metric: Parseval, gold: Trees, candidates: Trees, symbols: SymbolTable) -> str:
    """The reason why the first of ``candidates`` that is refused is refused; ``gold`` is their one reference."""
    if mismatch := metric.mismatch(gold, candidates, symbols):
        return f"{mismatch}{equal_form(candidates, gold, symbols)}"
    return "what the trees' own punctuation tags leave are different words"


def refused_list(
    metric: Parseval, nbest: Lists, gold: Trees, candidates: Trees, stats: np.ndarray, symbols: SymbolTable
) -> str:
    """The error in a list with statistics ``stats`` (float64 [N, K]), with its place; empty if there is none.

    It is one if no candidate is valid, and not all of them are failed parses.
    """
    if metric.valid(stats).any() or not stats[:, REFUSED].any():
        return ""
    message = refusal(metric, gold, candidates, symbols)
    return str(DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id))


def check_errors(metric: Parseval, errors: int, sentences: int, first: str) -> None:
    """Stop at too many errors among ``sentences``; ``first`` is the message of the first of them.

    ``max_error`` plus one are allowed. Where that is None, so is any number that is not more than ``FEW_ERRORS`` and
    more than half of all: where most sentences have other words, the references are those of other sentences.
    """
    most = metric.max_error
    fault = f"{errors:,} of {sentences:,} sentences have other words than their references; the first: {first}; "
    if most is not None and errors > most + 1:
        message = f"{fault}MAX_ERROR is {most}: raise it to leave such sentences out of the scores"
        raise DataError(message)
    if most is None and errors > FEW_ERRORS and 2 * errors > sentences:
        message = f"{fault}are these the references of the same sentences, in the same order?"
        raise DataError(f"{message} (max_error allows any number)")


if TYPE_CHECKING:
    import nltk  # takes a second and 95 MB: only where a user asks for its trees

Text: TypeAlias = "bytes | str | nltk.Tree | SentenceText"
BLOCK = 4096  # sentences compared in one kernel call
OK, SKIP, ERROR = 0, 2, 1


@dataclass(frozen=True)
class ParsevalResult:
    """Statistics of L sentences under a metric: ``stats`` float64 [L, K], ``reference`` float64 [L, R].

    ``first_error`` is what there is to say about the first sentence of status 1, with its place.
    """

    metric: Parseval
    stats: np.ndarray
    reference: np.ndarray
    first_error: str = ""

    def scores(self) -> dict[str, float]:
        """Corpus scores; the keys are those of ``Parseval.report``."""
        return self.metric.report(self.stats.sum(axis=0), self.reference.sum(axis=0))

    def sections(self) -> dict[str, dict[str, float]]:
        """Corpus scores for all sentences and for those within the cut-off length."""
        short = self.reference[:, LENGTH] <= self.metric.cutoff
        within = self.metric.report(self.stats[short].sum(axis=0), self.reference[short].sum(axis=0))
        return {"all": self.scores(), f"length <= {self.metric.cutoff}": within}

    def sentences(self) -> Iterator[dict[str, int | float]]:
        """A line of EVALB's table for every sentence, in order; ``status`` is 0 (valid), 1 (error: other words) or 2
        (skipped: no words). A sentence that is not valid has no brackets and tags, but the ``words`` of its reference.
        """
        for number, rows in enumerate(zip(self.stats, self.reference, strict=True), start=1):
            n = self._by_name(*rows)
            status = ERROR if n["refused"] else SKIP if n["skipped"] else OK
            gold, words = n["gold"] + n["gold_shift"], n["words"] + (n["word_shift"] if status == OK else 0)
            yield {
                "sentence": number,
                "length": n["length"],
                "status": status,
                "recall": n["matched"] / gold if gold else 0.0,
                "precision": n["matched"] / n["test"] if n["test"] else 0.0,
                "matched": n["matched"],
                "gold": gold,
                "test": n["test"],
                "crossing": n["crossing"],
                "words": words,
                "correct_tags": n["correct_tags"],
                "tagging_accuracy": n["correct_tags"] / words if words else 0.0,
            }

    def _by_name(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, int]:
        """Statistics (float64 [K] and [R]) by their names."""
        names = *self.metric.columns, *self.metric.reference_columns
        return dict(zip(names, map(int, (*stats, *reference)), strict=True))

    def table(self) -> Iterator[str]:
        """The lines of EVALB's report, F-measure added: a line a sentence, their sums, and a summary by length.

        Under crossing brackets EVALB sums up the number of sentences that have none.
        """
        yield "  Sent.                        Matched  Bracket   Cross        Correct Tag"
        yield " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy"
        yield "=" * 76
        for r in self.sentences():
            yield _ROW.format(**r | {key: 100 * r[key] for key in ("recall", "precision", "tagging_accuracy")})
        yield "=" * 76
        n, scores = self._by_name(self.stats.sum(axis=0), self.reference.sum(axis=0)), self.scores()
        yield (
            f"{'':16}{100 * scores['recall']:6.2f} {100 * scores['precision']:6.2f}{n['matched']:7}"
            f"{n['gold'] + n['gold_shift']:7}{n['test']:5}{n['no_crossing']:7}"
            f"{n['words'] + n['word_shift']:7}{n['correct_tags']:6}   {100 * scores['tagging_accuracy']:6.2f}"
        )
        yield "=== Summary ==="
        for title, scores in zip(("All", f"len<={self.metric.cutoff}"), self.sections().values(), strict=True):
            yield from ("", f"-- {title} --")
            figures = ((key, scores[key]) for key in _LINES)
            yield from (f"{_LINES[key][0]:25s} = {_LINES[key][1](value)}" for key, value in figures)


def _per_cent(value: float) -> str:
    return f"{100 * value:6.2f}"


_ROW = (
    "{sentence:4d}  {length:3d}    {status}  {recall:6.2f} {precision:6.2f}   {matched:3d}    {gold:3d}  {test:3d}    "
    "{crossing:3d}   {words:4d}  {correct_tags:4d}   {tagging_accuracy:6.2f}"
)
_LINES = {
    "sentences": ("Number of sentence", "{:6.0f}".format),
    "refused": ("Number of Error sentence", "{:6.0f}".format),
    "skipped": ("Number of Skip  sentence", "{:6.0f}".format),
    "valid": ("Number of Valid sentence", "{:6.0f}".format),
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
) -> ParsevalResult:
    """Compare bracketed trees with their references, one to one and in order.

    A parse without words is skipped, one with other words than its reference is an error (see ``Parseval``). Empty
    texts after the last sentence of the other side are ignored.

    Parameters
    ----------
    gold, test: the trees, as bracketed text or ``nltk.Tree``, or as ``read_sentences`` gives them.
    metric: the settings; PARSEVAL's defaults if None.
    gold_path, test_path: what errors call the two sides; the n-th tree counts as line n unless it says its own.
    changed: counts the words that are changed, by side, as they are brought to one form (see
        ``rerank.data.trees``); None: words stay.
    """
    metric = metric or Parseval()
    symbols = SymbolTable()
    stats = [np.zeros((0, len(metric.columns)))]
    reference = [np.zeros((0, len(metric.reference_columns)))]
    sides = (_texts(gold), _texts(test))
    count, errors, first = 0, 0, ""
    while any(block := [list(islice(side, BLOCK)) for side in sides]):
        number = min(map(len, block))
        golds, tests = (side[:number] for side in block)
        gold_trees = _parse(golds, symbols, gold_path, changed, GOLD_TREES)
        test_trees = _parse(tests, symbols, test_path, changed, CANDIDATES)
        gold_rows, rows = metric.rows(gold_trees, test_trees, np.arange(len(golds) + 1), symbols)
        stats.append(rows)
        reference.append(gold_rows)
        mismatches = np.flatnonzero(rows[:, REFUSED])
        if mismatches.size and not errors:
            k = int(mismatches[0])
            why = refusal(metric, subset(gold_trees, [k]), subset(test_trees, [k]), symbols)
            first = str(DataError(why, path=test_path, line=tests[k].line))
        count, errors = count + len(golds), errors + mismatches.size
        _check_rest([side[number:] for side in block], count, first, gold_path, test_path)
        if metric.max_error is not None:
            check_errors(metric, errors, count, first)
    check_errors(metric, errors, count, first)
    return ParsevalResult(metric, np.concatenate(stats), np.concatenate(reference), first)


def _check_rest(
    block: list[list[SentenceText]], count: int, first: str, gold_path: str | None, test_path: str | None
) -> None:
    """Refuse references or tests that are left over after ``count`` of both, in which ``first`` is the first error."""
    rest = [any(one.text for one in side) for side in block]
    if any(rest):
        path, side, other = (gold_path, "reference", "test") if rest[1] else (test_path, "test", "reference")
        message = f"the {side} trees end after {count}, but there are more {other} trees; where no tree is spread over "
        message += "lines, every line is a sentence, empty ones too"
        raise DataError(f"{message}; the first with other words: {first}" if first else message, path=path)


def _parse(
    sentences: list[SentenceText], symbols: SymbolTable, path: str | None, changed: Counter[str] | None, side: str
) -> Trees:
    """The trees of one side; ``changed`` as in ``evaluate``."""
    texts, lines = [one.text for one in sentences], [one.line for one in sentences]
    if changed is None:
        return parse_brackets(texts, symbols, path=path, lines=lines)
    return normal_trees(parse_brackets(bracket_words(texts), symbols, path=path, lines=lines), symbols, changed, side)


def _texts(texts: Iterable[Text]) -> Iterator[SentenceText]:
    for number, text in enumerate(texts, start=1):
        if isinstance(text, SentenceText):
            yield text
        else:
            yield SentenceText(text if isinstance(text, bytes) else encoded(str(text)), number)
