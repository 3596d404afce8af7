"""What labels, tags and words mean to PARSEVAL, looked up once per symbol and kept as arrays for the kernels."""

from collections.abc import Iterable

import numpy as np

from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval_kernel import (
    DELETED_BRACKET,
    DELETED_TAG,
    EMPTY,
    NO_LENGTH,
    QUOTE_TAG,
    QUOTE_WORD,
    BracketLabels,
)
from rerank.readers.trees.trees import FOREST

EMPTY_TAG = "-NONE-"
QUOTE_WORDS = ("'", '"', "/")  # the words that EVALB takes to be quote marks or possessives


def cut_label(label: str) -> str:
    """A bracket's label without function tags and indices: cut at the first '-' or '=', unless it starts with one.

    >>> cut_label("NP-SBJ-1"), cut_label("NP=2"), cut_label("-LRB-")
    ('NP', 'NP', '-LRB-')
    """
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


class Labels:
    """The label table of one set of parameters; grows with the symbols."""

    def __init__(
        self,
        *,
        labeled: bool,
        delete: Iterable[str],
        delete_for_length: Iterable[str],
        quote_labels: Iterable[str],
        equal_labels: Iterable[tuple[str, str]],
        equal_words: Iterable[tuple[str, str]],
    ) -> None:
        self._labeled = labeled
        self._equal, self._equal_words = equivalents(equal_labels), equivalents(equal_words)
        self._delete = frozenset(delete)
        self._delete_brackets = frozenset(self._equal.get(label, label) for label in self._delete) | {FOREST}
        self._no_length, self._quotes = frozenset(delete_for_length), frozenset(quote_labels)
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
        label = cut_label(text)
        label = self._equal.get(label, label)
        self._table.bracket[symbol] = self._number(label) if self._labeled else 0
        self._table.tag[symbol] = self._number(self._equal.get(text, text))
        self._table.word[symbol] = self._number(self._equal_words.get(text, text))
        self._table.flags[symbol] = (
            EMPTY * (text == EMPTY_TAG)
            | DELETED_TAG * (text in self._delete)
            | DELETED_BRACKET * (label in self._delete_brackets)
            | NO_LENGTH * (text in self._no_length)
            | QUOTE_TAG * (text in self._quotes)
            | QUOTE_WORD * (text in QUOTE_WORDS)
        )

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))
