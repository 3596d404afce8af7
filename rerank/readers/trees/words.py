r"""Words that treebanks and parsers write in different ways, brought to one form.

===================================  ==========================================
what is written                      its form
===================================  ==========================================
``\/``, ``\*``                       ``/``, ``*``
two backticks or apostrophes, “ ” „  ``"``
a backtick, ‘ ’ ‚                    an apostrophe
``( ) [ ] { }``                      -LRB- -RRB- -LSB- -RSB- -LCB- -RCB-
===================================  ==========================================

Whether a quote opens or closes is left to its tag. A bracket that is a word as it is, ``(-LRB- ()``, makes a tree that
is malformed otherwise; it is read where the brackets of its tree balance.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.data.symbols import SymbolTable
from rerank.readers.trees.trees import Trees

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
    """The texts of trees with brackets that are words, as in ``(-LRB- ()``, in a form that can be parsed."""
    return [_LITERAL.sub(_word, text) if b" ()" in text or b" ))" in text else text for text in texts]


def _word(match: re.Match[bytes]) -> bytes:
    return b"(%b %b)" % (match[1], ("❨" if match[2] == b"(" else "❩").encode())


def unchanged() -> Counter[str]:
    """How many words of either side have been changed so far: none."""
    return Counter({CANDIDATES: 0, GOLD: 0})


def changes(changed: Mapping[str, int]) -> str:
    """How many words have been changed, for a message."""
    return f"words normalised: {', '.join(f'{number:,} of {side}' for side, number in changed.items())}"


def normalized(trees: Trees, symbols: SymbolTable, changed: Counter[str], side: str) -> Trees:
    """The trees with their words in normal form; ``changed`` counts the words that this changes, by side."""
    leaves = trees.word >= 0
    found, place = np.unique(trees.word[leaves], return_inverse=True)
    forms = [symbols.intern(normal_word(symbols.text(word))) for word in found.tolist()]
    word = trees.word.copy()
    word[leaves] = np.array(forms, np.int32)[place]
    changed[side] += int(np.count_nonzero(word != trees.word))
    return trees._replace(word=word)
