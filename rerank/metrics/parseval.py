"""PARSEVAL as EVALB computes it (Black et al. 1991; EVALB by Sekine and Collins): labelled brackets of parse trees.

Empty nodes (-NONE-) are removed, with the ancestors they leave empty; function tags and indices of brackets are cut;
nodes with deleted labels are not brackets, words with deleted tags are not words; a bracket without words does not
count. What is left are (label, first word, last word) triples, matched one to one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Range
from rerank.data.symbols import SymbolTable
from rerank.metrics.base import Metric
from rerank.metrics.parseval_kernel import (
    CROSSING,
    DELETED_BRACKET,
    DELETED_TAG,
    EMPTY,
    EVALB,
    EXACT,
    FEW_CROSSING,
    GOLD,
    GOLD_SHIFT,
    LENGTH,
    MATCHED,
    NO_CROSSING,
    NO_LENGTH,
    OWN,
    QUOTE_TAG,
    QUOTE_WORD,
    REFERENCE,
    REFUSED,
    SENTENCES,
    SKIPPED,
    TAGS,
    TEST,
    UNPARSED,
    WORD_SHIFT,
    WORDS,
    BracketLabels,
    first_mismatch,
    parseval_rows,
    workspace,
)
from rerank.metrics.prm import read_prm
from rerank.readers.nbest import ROOTS
from rerank.readers.trees.trees import FOREST, Trees, without_features

Pair = tuple[str, str]
Punctuation = Literal["reference", "own", "evalb"]
MODES: dict[str, int] = {"reference": REFERENCE, "own": OWN, "evalb": EVALB}
EMPTY_TAG = "-NONE-"
QUOTE_WORDS = ("'", '"', "/")  # the words that EVALB takes to be quote marks or possessives
PUNCTUATION_TAGS = (",", ":", "``", "''", ".")
VERSION = 3  # increases whenever a result can change


def cut_label(label: str) -> str:
    """A label without features (``##...##``), function tags and indices: cut at the first '-' or '=', unless it starts
    with one.

    >>> cut_label("NP-SBJ-1"), cut_label("NP=2"), cut_label("-LRB-")
    ('NP', 'NP', '-LRB-')
    """
    label = without_features(label)
    if label.startswith(("-", "=")):
        return label
    return label.partition("-")[0].partition("=")[0]


def equivalents(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """text → the text that represents its class, for the (transitive) equivalence that the pairs span."""
    classes: dict[str, set[str]] = {}
    for a, b in pairs:
        joined = classes.get(a, {a}) | classes.get(b, {b})
        classes.update(dict.fromkeys(joined, joined))
    return {text: min(members) for text, members in classes.items()}


class _Labels:
    """The label table of one set of parameters; grows with the symbols."""

    def __init__(self, metric: "Parseval") -> None:
        self._metric = metric
        self._equal, self._equal_words = equivalents(metric.equal_labels), equivalents(metric.equal_words)
        self._delete_brackets = frozenset(self._equal.get(label, label) for label in metric.delete) | {FOREST}
        self._numbers: dict[str, int] = {}
        self._known = 0
        self._table = BracketLabels(np.zeros(1 << 10, np.uint8), *(np.zeros(1 << 10, np.int32) for _ in range(3)))

    def table(self, symbols: SymbolTable) -> BracketLabels:
        """The table for all current ids of ``symbols``, which must be the same SymbolTable in every call."""
        size = len(symbols)
        if size > self._table.flags.shape[0]:
            room = 1 << size.bit_length()
            self._table = BracketLabels(*(np.concatenate([a, np.zeros(room - a.size, a.dtype)]) for a in self._table))
        for symbol in range(self._known, size):
            self._enter(symbol, symbols.text(symbol))
        self._known = size
        return BracketLabels(*(array[:size] for array in self._table))

    def _enter(self, symbol: int, text: str) -> None:
        tag = cut_label(text)
        label = self._equal.get(tag, tag)
        self._table.bracket[symbol] = self._number(label) if self._metric.labeled else 0
        self._table.tag[symbol] = self._number(label)
        self._table.word[symbol] = self._number(self._equal_words.get(text, text))
        self._table.flags[symbol] = (
            EMPTY * (text == EMPTY_TAG)
            | DELETED_TAG * (not {text, tag}.isdisjoint(self._metric.delete))
            | DELETED_BRACKET * (label in self._delete_brackets)
            | NO_LENGTH * (not {text, tag}.isdisjoint(self._metric.delete_for_length))
            | QUOTE_TAG * (not {text, tag}.isdisjoint(self._metric.quote_labels))
            | QUOTE_WORD * (text in QUOTE_WORDS)
        )

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))


_LABELS: "WeakKeyDictionary[SymbolTable, dict[Parseval, _Labels]]" = WeakKeyDictionary()


class Mismatch(NamedTuple):
    """A candidate's words are not its reference's: where they differ; None if a sentence has ended there.

    position: from 0.
    """

    candidate: int
    position: int
    gold: str | None
    found: str | None

    def __str__(self) -> str:
        gold, found = ("the end" if word is None else repr(word) for word in (self.gold, self.found))
        return f"the trees have different words: at word {self.position + 1} found {found}, the reference has {gold}"


@dataclass(frozen=True)
class Parseval(Metric):
    """Labelled bracketing precision, recall and F of parse trees.

    >>> from rerank.metrics.evaluation import evaluate
    >>> evaluate(["(S1 (S (NP (NN I)) (VP (VB go))))"], ["(S1 (S (NP (NN I)) (VB go)))"]).scores()["f1"]
    0.8

    Reference: Black et al. 1991 (HLT). Time: linear in the nodes of a tree; a row is 11 numbers.

    Parameters
    ----------
    punctuation: who decides which words are deleted. ``reference``: the reference's tags, for both trees. ``own``:
        each tree's own tags, so that the two may count different words. ``evalb``: each tree's own tags, and the
        words that are left must be the same; in the other two modes, all words must be.
    labeled: whether labels must be equal, or only spans.
    delete: labels that are not brackets, and tags whose words are not words.
    delete_for_length: tags whose words do not count towards the length of a sentence.
    equal_labels, equal_words: pairs that count as equal; what two pairs link is equal too.
    quote_labels: ``evalb`` only: tags of quote marks; if one tree deletes the mark and the other does not,
        both keep it.
    cutoff: sentences of at most this length make up the second section of a report.
    max_error: an evaluation with more than one error above this fails; None: one with more than 10, and more than
        half of all sentences.

    A failed parse has one of EVALB's two statuses, and such a sentence is left out of all sums: its reference's
    brackets lower recall as little as its own lower precision. *Skipped* (status 2) is a parse without words, as is
    the choice from a list without candidates. *Refused* (status 1) is a parse whose words are not the reference's:
    an error. All others are valid (status 0). A refused or skipped candidate gains 0.

    Differences from EVALB: empty nodes are removed even if ``delete`` does not list them; a label that starts with '-'
    or '=' (-LRB-) is not cut; equality of labels is transitive; a single sentence without a bracket in either tree
    gains 1; tags are cut as labels are, and both at features, ``DET##lemma=le##``, as in EVALB_SPMRL.
    """

    name: ClassVar[str] = "parseval"

    primary = "f1"
    columns = (
        "matched",
        "test",
        "crossing",
        "correct_tags",
        "exact",
        "no_crossing",
        "two_or_less_crossing",
        "refused",  # 1: the two trees have different words
        "skipped",  # 1: no words are left
        "gold_shift",  # what choosing this candidate adds to the reference's brackets: minus all if it is not valid
        "word_shift",  # the same for the reference's words
    )
    reference_columns = (
        "gold",
        "words",
        "length",
        "sentences",
        "unparsed",  # 1: the list has no candidates; then gold and words are 0
    )

    punctuation: Punctuation = "reference"
    labeled: bool = True
    delete: tuple[str, ...] = (*ROOTS, EMPTY_TAG, *PUNCTUATION_TAGS)
    delete_for_length: tuple[str, ...] = (EMPTY_TAG,)
    equal_labels: tuple[Pair, ...] = (("ADVP", "PRT"),)
    equal_words: tuple[Pair, ...] = ()
    quote_labels: tuple[str, ...] = ()
    cutoff: Annotated[int, Range(0)] = 40
    max_error: Annotated[int, Range(0)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("equal_labels", "equal_words"):
            pairs = tuple(tuple(pair) for pair in getattr(self, key))
            if any(len(pair) != 2 for pair in pairs):
                raise RecipeError("expected pairs of two values", key=key)
            object.__setattr__(self, key, pairs)
        for key in ("delete", "delete_for_length", "quote_labels"):
            object.__setattr__(self, key, tuple(getattr(self, key)))

    @classmethod
    def from_prm(cls, path: Path | str, *, punctuation: Punctuation = "evalb") -> "Parseval":
        """The settings of an EVALB parameter file, which replaces all defaults, including those on labels.

        Punctuation is EVALB's too, unless it is said otherwise.
        """
        return cls(punctuation=punctuation, **read_prm(path))

    def table(self, symbols: SymbolTable) -> BracketLabels:
        """The meaning of every symbol under these parameters; computed once per symbol."""
        known = _LABELS.setdefault(symbols, {})
        if self not in known:
            known[self] = _Labels(self)
        return known[self].table(symbols)

    def stats(self, gold: Trees, candidates: Trees, symbols: SymbolTable) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of one list: its reference (one tree) and N candidates → float64 [R] and [N, K]."""
        reference, rows = self.rows(gold, candidates, np.array([0, candidates.first.size - 1]), symbols)
        return reference[0], rows

    def rows(
        self, gold: Trees, candidates: Trees, lists: np.ndarray, symbols: SymbolTable
    ) -> tuple[np.ndarray, np.ndarray]:
        """float64 [L, R] and [N, K]: statistics of L references and N candidates, ``lists`` (int64 [L + 1]) by list."""
        lists = _offsets(gold, candidates, lists)
        reference = np.zeros((lists.size - 1, len(self.reference_columns)))
        rows = np.zeros((int(lists[-1]), len(self.columns)))
        table, space = self.table(symbols), workspace(gold, candidates)
        parseval_rows(gold, candidates, lists, table, MODES[self.punctuation], space, reference, rows)
        return reference, rows

    def yield_mismatch(
        self, gold: Trees, candidates: Trees, symbols: SymbolTable, lists: np.ndarray | None = None
    ) -> Mismatch | None:
        """The place where the words of a candidate, empty nodes removed, first differ from the reference's, or None.

        Without ``lists``, all candidates belong to the one tree of ``gold``.
        """
        offsets = _offsets(gold, candidates, np.array([0, candidates.first.size - 1]) if lists is None else lists)
        y, position, g, t = first_mismatch(gold, candidates, offsets, self.table(symbols))
        if y < 0:
            return None
        expected = None if g < 0 else symbols.text(int(gold.word[g]))
        word = None if t < 0 else symbols.text(int(candidates.word[t]))
        return Mismatch(int(y), int(position), expected, word)

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """F = 2·matched / (gold + test); 0 if there is no bracket at all."""
        both = reference[..., GOLD] + stats[..., GOLD_SHIFT] + stats[..., TEST]
        return np.asarray(2.0 * stats[..., MATCHED] / np.where(both > 0, both, 1.0))

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Sentence F; 1 if neither tree has a bracket (they are equal), 0 if the parse is not ``valid``."""
        none = (reference[..., GOLD] == 0) & (stats[..., TEST] == 0) & self.valid(stats)
        return np.where(none, 1.0, self.scores(stats, reference))

    def perfect(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:  # noqa: ARG002 - a row knows it
        """Complete matches."""
        return np.asarray(stats[..., EXACT] > 0)

    def valid(self, stats: np.ndarray) -> np.ndarray:
        """Candidates that are neither refused nor skipped; the latter only if the reference has words."""
        return np.asarray((stats[..., REFUSED] == 0) & ((stats[..., SKIPPED] == 0) | (stats[..., WORD_SHIFT] == 0)))

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """f1, precision, recall, exact_match and EVALB's other figures from sums; shares are fractions in [0, 1].

        Shares of sentences refer to the valid ones, those neither refused nor skipped, as in EVALB.
        """
        gold, words = reference[GOLD] + stats[GOLD_SHIFT], reference[WORDS] + stats[WORD_SHIFT]
        skipped = stats[SKIPPED] + reference[UNPARSED]
        counted = reference[SENTENCES] - stats[REFUSED] - skipped
        return {
            "f1": float(self.scores(stats, reference)),
            "precision": _share(stats[MATCHED], stats[TEST]),
            "recall": _share(stats[MATCHED], gold),
            "exact_match": _share(stats[EXACT], counted),
            "average_crossing": _share(stats[CROSSING], counted),
            "no_crossing": _share(stats[NO_CROSSING], counted),
            "two_or_less_crossing": _share(stats[FEW_CROSSING], counted),
            "tagging_accuracy": _share(stats[TAGS], words),
            "sentences": float(reference[SENTENCES]),
            "refused": float(stats[REFUSED]),
            "skipped": float(skipped),
            "valid": float(counted),
        }

    def sections(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, dict[str, float]]:
        """Reports over all sentences and over those within the cut-off, from float64 [L, K] and [L, R]."""
        short = reference[:, LENGTH] <= self.cutoff
        return {
            "all": self.report(stats.sum(axis=0), reference.sum(axis=0)),
            f"length <= {self.cutoff}": self.report(stats[short].sum(axis=0), reference[short].sum(axis=0)),
        }

    @property
    def signature(self) -> str:
        """Every setting that changes F, e.g. ``parseval|punctuation:reference|labeled:yes|...|version:3``."""
        parts = {
            "punctuation": self.punctuation,
            "labeled": "yes" if self.labeled else "no",
            "delete": " ".join(label or "(none)" for label in self.delete),
            "equal": " ".join("=".join(pair) for pair in self.equal_labels),
            "equal words": " ".join("=".join(pair) for pair in self.equal_words),
            "quotes": " ".join(self.quote_labels) if self.punctuation == "evalb" else "",
            "version": str(VERSION),
        }
        return "|".join([self.name, *(f"{key}:{value}" for key, value in parts.items() if value)])


def _offsets(gold: Trees, candidates: Trees, lists: np.ndarray) -> np.ndarray:
    """``lists`` as a writable copy, as read-only arrays would compile the kernels once more."""
    offsets = np.array(lists, dtype=np.int64)
    if offsets.size != gold.first.size or offsets[-1] != candidates.first.size - 1:
        raise DataError(
            f"{gold.first.size - 1} references and {candidates.first.size - 1} candidates for "
            f"{offsets.size - 1} lists of {offsets[-1]} candidates"
        )
    return offsets


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else 0.0
