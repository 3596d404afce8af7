"""Words that treebanks and parsers write in different ways, as ``\\/`` and ``/``, brought to one form.

Whether a quote opens or closes is left to its tag. A bracket that is a word as it is, ``(-LRB- ()``, makes a tree that
is malformed otherwise; it is read where the brackets of its tree balance.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.data.symbols import SymbolTable
from rerank.readers.trees.trees import TRACE, Trees, is_failed

CANDIDATES, GOLD = "candidates", "gold trees"  # the sides whose words are counted
_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
_ORNAMENTS = {"❨": "-LRB-", "❩": "-RRB-"}  # what parses as a word in place of ( and )
_FORMS = str.maketrans(_BRACKETS | _ORNAMENTS | dict.fromkeys("“”„‟", '"') | dict.fromkeys("`‘’‚‛", "'"))
_AFFECTED = re.compile(r"[][\\`'‘’‚‛“”„‟(){}❨❩]")
_WORD = re.compile(r"(\s)([^\s()]+)(?=\s*\))")  # not a label, which a bracket precedes and something follows
_LITERAL = re.compile(rb"\(([^\s()]+)\s+([()])\)")


def normal_word(word: str) -> str:
    """The form of a word that all ways to write it share."""
    if not _AFFECTED.search(word):
        return word
    form = word.replace("\\/", "/").replace("\\*", "*").translate(_FORMS)
    return '"' if form == "''" else form


def normal_text(text: bytes) -> bytes:
    """The text of a tree with its words in normal form."""
    (text,) = bracket_words([text])
    return encoded(_WORD.sub(lambda match: match[1] + normal_word(match[2]), decoded(text)))


def bracket_words(texts: list[bytes]) -> list[bytes]:
    """The texts of trees with brackets that are words, as in ``(-LRB- ()``, in a form that can be parsed, and that
    ``normal_word`` changes."""
    return [_without_brackets(text, "❨❩") for text in texts]


def escaped(text: bytes) -> bytes:
    """The text of a tree with brackets that are words as -LRB- and -RRB-, as most programs need them."""
    return _without_brackets(text, (_BRACKETS["("], _BRACKETS[")"]))


def _without_brackets(text: bytes, forms: Sequence[str]) -> bytes:
    """The text of a tree with other ``forms`` of "(" and ")" where these are words; not a failed parse, ``(S1 ())``."""
    if (b" ()" not in text and b" ))" not in text) or is_failed(text):
        return text
    return _LITERAL.sub(lambda found: b"(%b %b)" % (found[1], forms[b"()".index(found[2])].encode()), text)


def bracket_advice(text: bytes) -> str:
    """For a message about a tree that is malformed: what to do if brackets are words in it."""
    return "; brackets are words in it: set data.normalize: true (--normalize)" if escaped(text) != text else ""


def unchanged() -> Counter[str]:
    """The numbers of words of both sides that have been changed so far: none."""
    return Counter({CANDIDATES: 0, GOLD: 0})


def changes(changed: Mapping[str, int]) -> str:
    """The number of words that have been changed, for a message."""
    return f"words normalised: {', '.join(f'{number:,} of {side}' for side, number in changed.items())}"


def normalized(trees: Trees, symbols: SymbolTable, changed: Counter[str], side: str) -> Trees:
    """The trees with their words in normal form; ``changed`` counts the words that this changes, by side."""
    leaves = trees.word >= 0
    words, place = np.unique(trees.word[leaves], return_inverse=True)
    forms = [symbols.intern(normal_word(symbols.text(word))) for word in words.tolist()]
    word = trees.word.copy()
    word[leaves] = np.array(forms, np.int32)[place]
    changed[side] += int(np.count_nonzero(word != trees.word))
    return trees._replace(word=word)


def same_yield(trees: Trees, other: Trees, t: int, trace: int) -> int:
    """The first of ``trees`` whose words differ from those of tree ``t`` of ``other``, -1 if all have the same words.

    Words under the label ``trace`` (a symbol id) do not count, nor do trees without words.
    """
    sought, held = other.word[leaves(other, trace, t)], leaves(trees, trace)
    tree, words = np.searchsorted(trees.first, held, side="right") - 1, trees.word[held]
    counts = np.bincount(tree, minlength=trees.first.size - 1)
    place = np.arange(tree.size) - np.repeat(np.cumsum(counts) - counts, counts)
    unlike, fits = (counts != 0) & (counts != sought.size), place < sought.size
    unlike[tree[fits][words[fits] != sought[place[fits]]]] = True
    return int(np.argmax(unlike)) if unlike.any() else -1


def leaves(trees: Trees, trace: int, t: int | None = None) -> np.ndarray:
    """int64: the nodes of all trees, or of tree ``t``, that have words which count."""
    nodes = slice(0, None) if t is None else slice(int(trees.first[t]), int(trees.first[t + 1]))
    return np.flatnonzero((trees.word[nodes] >= 0) & (trees.label[nodes] != trace)) + nodes.start


def yield_words(trees: Trees, t: int, symbols: SymbolTable) -> list[str]:
    """The words of tree ``t``, without traces."""
    return [symbols.text(word) for word in trees.word[leaves(trees, symbols.intern(TRACE), t)].tolist()]


def equal_form(trees: Trees, other: Trees, symbols: SymbolTable) -> str:
    """For a message about words that differ: whether those of ``trees`` would be those of tree 0 if normalised."""
    forms = [normalized(side, symbols, unchanged(), GOLD) for side in (trees, other)]
    equal = same_yield(forms[0], forms[1], 0, symbols.intern(TRACE)) < 0
    return "; they differ in escapes, quotes or brackets only: set data.normalize: true (--normalize)" if equal else ""


def difference(one: list[str], two: list[str]) -> str:
    """The first difference between two sentences, for a message."""
    place = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    shown = [" ".join(words[place : place + 3]) or "the end" for words in (one, two)]
    return f"{len(one)} and {len(two)} words; at word {place + 1} {shown[0]!r} and {shown[1]!r}"
