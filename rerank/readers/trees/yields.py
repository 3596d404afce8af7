"""The words of trees: whether they are those of another tree, and where they differ."""

from rerank.data.symbols import SymbolTable
from rerank.kernels.compile import kernel
from rerank.readers.candidate import TRACE
from rerank.readers.trees.trees import Trees
from rerank.readers.trees.words import GOLD, normalized, unchanged


@kernel
def same_yield(trees: Trees, other: Trees, t: int, trace: int) -> int:
    """The first of ``trees`` whose words differ from those of tree ``t`` of ``other``, -1 if all have the same words.

    Words under the label ``trace`` (a symbol id) do not count, nor do trees without words.
    """
    last = other.first[t + 1]
    for k in range(trees.first.shape[0] - 1):
        node, end, mate = trees.first[k], trees.first[k + 1], other.first[t]
        while node < end and (trees.word[node] < 0 or trees.label[node] == trace):
            node += 1
        if node == end:
            continue
        while True:
            while node < end and (trees.word[node] < 0 or trees.label[node] == trace):
                node += 1
            while mate < last and (other.word[mate] < 0 or other.label[mate] == trace):
                mate += 1
            if node == end or mate == last:
                break
            if trees.word[node] != other.word[mate]:
                return k
            node += 1
            mate += 1
        if node < end or mate < last:
            return k
    return -1


def yield_words(trees: Trees, t: int, symbols: SymbolTable) -> list[str]:
    """The words of tree ``t``, without traces."""
    nodes = range(int(trees.first[t]), int(trees.first[t + 1]))
    leaves = [(symbols.text(int(trees.label[i])), int(trees.word[i])) for i in nodes if trees.word[i] >= 0]
    return [symbols.text(word) for label, word in leaves if label != TRACE]


def equal_form(trees: Trees, other: Trees, symbols: SymbolTable) -> str:
    """For a message about words that differ: whether those of ``trees`` would be those of tree 0 if normalised."""
    forms = [normalized(each, symbols, unchanged(), GOLD) for each in (trees, other)]
    equal = same_yield(forms[0], forms[1], 0, symbols.intern(TRACE)) < 0
    return "; they differ in escapes, quotes or brackets only: set data.normalize: true (--normalize)" if equal else ""


def difference(one: list[str], two: list[str]) -> str:
    """Where two sentences differ, for a message."""
    place = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    shown = [" ".join(words[place : place + 3]) or "the end" for words in (one, two)]
    return f"{len(one)} and {len(two)} words; at word {place + 1} {shown[0]!r} and {shown[1]!r}"
