"""Constant symbols of templates: separators, flags, numbers and bins, as hashes with their texts.

A mark's hash is that of its text, so a name is rendered from the same symbols that were hashed. A mark that may appear
in place of a label or word has brackets in its text, which no label or word of a tree can have.
"""

import numpy as np

from rerank.data.symbols import text_hash

TEXTS: dict[int, str] = {}


def mark(text: str) -> np.uint64:
    """The symbol of a constant, whose text is known whenever names are rendered."""
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

# Marks of the start and end of a text, and of signed numbers.
TEXT_START, TEXT_END = mark("<s>"), mark("</s>")
# SIGNED[n + SIGNED_OFFSET] is the symbol of n as a difference: +2, 0, -1.
SIGNED_OFFSET = 64
SIGNED = np.array([mark(f"{n:+d}" if n else "0") for n in range(-SIGNED_OFFSET, SIGNED_OFFSET + 1)], dtype=np.uint64)
# RATIO[n] is the symbol of n/10.
RATIO = np.array([mark(f"{n / 10:.1f}") for n in range(31)], dtype=np.uint64)
NOTHING = mark("(nothing)")  # takes the place of a word that is not there
# What counts and shares of words are called.
COPIED, RATE, DIGITS, NEW_DIGITS = mark("copied"), mark("rate"), mark("digits"), mark("new-digits")
RANK = mark("rank")
FINAL, COUNT, WORDS = mark("final"), mark("count"), mark("words")
SUBSTITUTIONS, INSERTIONS, DELETIONS = mark("substitutions"), mark("insertions"), mark("deletions")
# LENGTHS[i] is the symbol of the lengths from LENGTH_FROM[i] to below the next: 3, 10-11, 1024+.
LENGTH_FROM = np.array([*range(9), 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256, 512, 1024], np.int64)
_ENDS = zip(LENGTH_FROM[:-1].tolist(), (LENGTH_FROM[1:] - 1).tolist(), strict=True)
_TEXTS = [*(str(a) if a == b else f"{a}-{b}" for a, b in _ENDS), f"{LENGTH_FROM[-1]}+"]
LENGTHS = np.array([mark(text) for text in _TEXTS], dtype=np.uint64)
