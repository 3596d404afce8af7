"""PARSEVAL as EVALB computes it (Black et al. 1991; EVALB by Sekine and Collins): labelled brackets of parse trees.

Empty nodes (-NONE-) are removed, with the ancestors they leave empty; function tags and indices of brackets are cut;
nodes with deleted labels are not brackets, words with deleted tags are not words; a bracket without words does not
count. What is left are (label, first word, last word) triples, matched one to one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from weakref import WeakKeyDictionary

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Range
from rerank.base.registry import nearest
from rerank.data.symbols import SymbolTable
from rerank.data.trees import FOREST, Trees, without_features
from rerank.metrics import parseval_kernel as counts
from rerank.metrics.metric import Metric
from rerank.metrics.parseval_kernel import BracketLabels
from rerank.readers.lists import ROOTS

Pair = tuple[str, str]
Punctuation = Literal["reference", "own", "evalb"]
MODES: dict[str, int] = {"reference": counts.REFERENCE, "own": counts.OWN, "evalb": counts.EVALB}
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
        union = classes.get(a, {a}) | classes.get(b, {b})
        classes.update(dict.fromkeys(union, union))
    return {text: min(members) for text, members in classes.items()}


class _Labels:
    """The label table of one set of parameters; grows with the symbols."""

    def __init__(self, metric: "Parseval") -> None:
        self._metric = metric
        self._equal, self._equal_words = equivalents(metric.equal_labels), equivalents(metric.equal_words)
        self._delete_brackets = frozenset(self._equal.get(label, label) for label in metric.delete) | {FOREST}
        self._numbers: dict[str, int] = {}
        self._size = 0
        self._table = BracketLabels(np.zeros(1 << 10, np.uint8), *(np.zeros(1 << 10, np.int32) for _ in range(3)))

    def table(self, symbols: SymbolTable) -> BracketLabels:
        """The table for all current ids of ``symbols``, which must be the same SymbolTable in every call."""
        size = len(symbols)
        if size > self._table.flags.shape[0]:
            room = 1 << size.bit_length()
            self._table = BracketLabels(*(np.concatenate([a, np.zeros(room - a.size, a.dtype)]) for a in self._table))
        for symbol in range(self._size, size):
            self._enter(symbol, symbols.text(symbol))
        self._size = size
        return BracketLabels(*(array[:size] for array in self._table))

    def _enter(self, symbol: int, text: str) -> None:
        tag = cut_label(text)
        label = self._equal.get(tag, tag)
        self._table.bracket[symbol] = self._number(label) if self._metric.labeled else 0
        self._table.tag[symbol] = self._number(label)
        self._table.word[symbol] = self._number(self._equal_words.get(text, text))
        self._table.flags[symbol] = (
            counts.EMPTY * (text == EMPTY_TAG)
            | counts.DELETED_TAG * (not {text, tag}.isdisjoint(self._metric.delete))
            | counts.DELETED_BRACKET * (label in self._delete_brackets)
            | counts.NO_LENGTH * (not {text, tag}.isdisjoint(self._metric.delete_for_length))
            | counts.QUOTE_TAG * (not {text, tag}.isdisjoint(self._metric.quote_labels))
            | counts.QUOTE_WORD * (text in QUOTE_WORDS)
        )

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))


_LABELS: "WeakKeyDictionary[SymbolTable, dict[Parseval, _Labels]]" = WeakKeyDictionary()


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
                raise RecipeError("expected pairs, as [[x, y], ...]", key=key)
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
        tables = _LABELS.setdefault(symbols, {})
        if self not in tables:
            tables[self] = _Labels(self)
        return tables[self].table(symbols)

    def stats(self, gold: Trees, candidates: Trees, symbols: SymbolTable) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of one list: its reference (one tree) and N candidates → float64 [R] and [N, K]."""
        reference, rows = self.rows(gold, candidates, None, symbols)
        return reference[0], rows

    def rows(
        self, gold: Trees, candidates: Trees, lists: np.ndarray | None, symbols: SymbolTable
    ) -> tuple[np.ndarray, np.ndarray]:
        """float64 [L, R] and [N, K]: statistics of L references and N candidates, ``lists`` (int64 [L + 1]) by list;
        None: each reference has all candidates, so that there are L times as many rows."""
        L, N = gold.first.size - 1, candidates.first.size - 1
        ends = np.tile([0, N], (L, 1)) if lists is None else np.stack([lists[:-1], lists[1:]], axis=1)
        reference = np.zeros((L, len(self.reference_columns)))
        rows = np.zeros((int(np.diff(ends).sum()), len(self.columns)))
        table, space = self.table(symbols), counts.workspace(gold, candidates)
        counts.parseval_rows(gold, candidates, ends, table, MODES[self.punctuation], space, reference, rows)
        return reference, rows

    def mismatch(self, gold: Trees, candidates: Trees, symbols: SymbolTable) -> str:
        """The first word of a candidate, without empty nodes, that ``gold`` has otherwise; empty if there is none."""
        table = self.table(symbols)

        def words(trees: Trees, t: int) -> list[tuple[int, str]]:
            nodes = slice(trees.first[t], trees.first[t + 1])
            there = (trees.word[nodes] >= 0) & (table.flags[trees.label[nodes]] & counts.EMPTY == 0)
            return [(int(table.word[word]), repr(symbols.text(word))) for word in trees.word[nodes][there].tolist()]

        right, end = words(gold, 0), (-1, "the end")
        for y in range(candidates.first.size - 1):
            pairs = zip_longest(right, words(candidates, y), fillvalue=end)
            for position, ((number, word), (other, text)) in enumerate(pairs, start=1):
                if number != other:
                    return f"the trees have different words: at word {position} found {text}, the reference has {word}"
        return ""

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """F = 2·matched / (gold + test); 0 if there is no bracket at all."""
        both = reference[..., counts.GOLD] + stats[..., counts.GOLD_SHIFT] + stats[..., counts.TEST]
        return np.asarray(2.0 * stats[..., counts.MATCHED] / np.where(both > 0, both, 1.0))

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Sentence F; 1 if neither tree has a bracket (they are equal), 0 if the parse is not ``valid``."""
        none = (reference[..., counts.GOLD] == 0) & (stats[..., counts.TEST] == 0) & self.valid(stats)
        return np.where(none, 1.0, self.scores(stats, reference))

    def perfect(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:  # noqa: ARG002 - a row knows it
        """Complete matches."""
        return np.asarray(stats[..., counts.EXACT] > 0)

    def valid(self, stats: np.ndarray) -> np.ndarray:
        """Candidates that are neither refused nor skipped; the latter only if the reference has words."""
        return np.asarray(
            (stats[..., counts.REFUSED] == 0)
            & ((stats[..., counts.SKIPPED] == 0) | (stats[..., counts.WORD_SHIFT] == 0))
        )

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """f1, precision, recall, exact_match and EVALB's other figures from sums; shares are fractions in [0, 1].

        Shares of sentences refer to the valid ones, those neither refused nor skipped, as in EVALB.
        """
        gold = reference[counts.GOLD] + stats[counts.GOLD_SHIFT]
        words = reference[counts.WORDS] + stats[counts.WORD_SHIFT]
        skips = stats[counts.SKIPPED] + reference[counts.UNPARSED]
        valid = reference[counts.SENTENCES] - stats[counts.REFUSED] - skips
        return {
            "f1": float(self.scores(stats, reference)),
            "precision": _share(stats[counts.MATCHED], stats[counts.TEST]),
            "recall": _share(stats[counts.MATCHED], gold),
            "exact_match": _share(stats[counts.EXACT], valid),
            "average_crossing": _share(stats[counts.CROSSING], valid),
            "no_crossing": _share(stats[counts.NO_CROSSING], valid),
            "two_or_less_crossing": _share(stats[counts.FEW_CROSSING], valid),
            "tagging_accuracy": _share(stats[counts.TAGS], words),
            "sentences": float(reference[counts.SENTENCES]),
            "refused": float(stats[counts.REFUSED]),
            "skipped": float(skips),
            "valid": float(valid),
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


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else 0.0


_LABEL, _PAIR, _NUMBER = "one label", "two values that count as equal", "one number"
_PRM = {  # key of a parameter file → setting, and what stands behind it
    "DELETE_LABEL": ("delete", _LABEL),
    "DELETE_LABEL_FOR_LENGTH": ("delete_for_length", _LABEL),
    "QUOTE_LABEL": ("quote_labels", _LABEL),
    "EQ_LABEL": ("equal_labels", _PAIR),
    "EQ_WORD": ("equal_words", _PAIR),
    "MAX_ERROR": ("max_error", _NUMBER),
    "CUTOFF_LEN": ("cutoff", _NUMBER),
    "LABELED": ("labeled", _NUMBER),
    "DEBUG": ("", _NUMBER),  # which only prints
}


def read_prm(path: Path | str) -> dict[str, Any]:
    """The settings of ``Parseval`` in an EVALB parameter file (``.prm``); what it does not set has EVALB's defaults.

    Three lines this reads::

        DELETE_LABEL TOP
        EQ_LABEL ADVP PRT
        CUTOFF_LEN 40

    Lines that start with '#' and empty lines are ignored. Keys that may be repeated add up; of the others, the last
    counts.
    """
    try:
        text = Path(path).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise DataError(f"cannot read the parameter file: {error.strerror or error}", path=str(path)) from error
    settings: dict[str, Any] = {setting: () for setting, what in _PRM.values() if what != _NUMBER}
    settings |= {"max_error": 10, "cutoff": 40, "labeled": True}
    for line, (key, *values) in enumerate((line.split() or ["#"] for line in text.split("\n")), start=1):
        if key.startswith("#"):
            continue
        setting, what = _PRM.get(key, ("", ""))
        most = 1 if key == "LABELED" else 1 << 31
        if not what:
            raise DataError(f"unknown key {key!r}; {nearest(key, list(_PRM))}", path=str(path), line=line)
        if len(values) != (2 if what == _PAIR else 1):
            raise DataError(f"{key} has {len(values)} values; expected {what}", path=str(path), line=line)
        if what != _NUMBER:
            settings[setting] += (tuple(values) if what == _PAIR else values[0],)
        elif not (values[0].isascii() and values[0].isdigit() and int(values[0]) <= most):
            domain = "0 or 1" if most == 1 else "a number from 0"
            raise DataError(f"{key} is {values[0]!r}; expected {domain}", path=str(path), line=line)
        elif setting:
            settings[setting] = bool(int(values[0])) if key == "LABELED" else int(values[0])
    return settings
