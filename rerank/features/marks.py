"""Constant symbols of templates: separators, flags, numbers and bins, as hashes with their texts.

A mark's hash is that of its text, so a name is rendered from the same symbols that were hashed. A mark that stands
where a label or word may stand has brackets in its text, which no label or word of a tree can have.
"""

from __future__ import annotations

import numpy as np

from rerank.symbols import text_hash

TEXTS: dict[int, str] = {}


def mark(text: str) -> np.uint64:
    """The symbol of a constant; its text is known to every rendering."""
    h = text_hash(text)
    TEXTS[h] = text
    return np.uint64(h)


ARROW, UP, COLON, STAR, BAR = mark("→"), mark("^"), mark(":"), mark("*"), mark("|")
OPEN, CLOSE, END, SLASH = mark("("), mark(")"), mark("(end)"), mark("/")
LEFT, RIGHT = mark("<"), mark(">")
NESTED, CONJUNCT, FREE = mark("nested"), mark("conj"), mark("free")
SAME, DIFFERENT, LAST, INNER = mark("same"), mark("different"), mark("last"), mark("inner")
ON, OFF = mark("on"), mark("off")

# NUMBER[n + NUMBER_OFFSET] is the symbol of the integer n.
NUMBER_OFFSET = 64
NUMBER = np.array([mark(str(n)) for n in range(-NUMBER_OFFSET, NUMBER_OFFSET + 1)], dtype=np.uint64)
# LENGTH_BIN[n] for n = min(length, 5): 1, 2, 3-4 (as 4), 5 and more; 0 for an empty span.
LENGTH_BIN = np.array([mark(f"len={b}") for b in ("0", "1", "2", "4", "4", "5+")], dtype=np.uint64)
