"""A candidate as users see it: made by them, or by a list when it is asked for."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rerank.base.encoding import encoded
from rerank.data.symbols import SymbolTable
from rerank.readers.trees.trees import parse_brackets, to_nltk

if TYPE_CHECKING:
    import nltk  # takes a second and 95 MB: only where a user asks for its trees

TRACE = "-NONE-"  # the tag of traces, words that are not in the sentence
NOTHING: Mapping[str, float] = {}

PRETERMINAL = re.compile(r"\(\s*([^\s()]*)\s+([^\s()]+)\s*\)")


class Candidate:
    """What is chosen from: a text or a tree, and the numbers that are known of it.

    Parameters
    ----------
    text: the text; for a parse, its tree in brackets.
    score: the base score, the generator's own; higher is better. None if there is none.
    columns: numbers by name that every candidate has, such as the scores of other models.
    features: numbers by name that few candidates have (sparse features); the others have 0.
    tree: in place of the text, a parse as an ``nltk.Tree`` or in brackets.
    segmentation: which words of the source gave which words of the text, ``5-7=5 8=6-7``; None if that is unknown.
    alignment: which words of source and text belong together, ``0-0 2-1``; None if that is unknown.

    Raises
    ------
    TypeError: both a text and a tree, or neither.
    """

    __slots__ = ("_alignment", "_columns", "_features", "_score", "_segmentation", "_text")

    def __init__(
        self,
        text: str | None = None,
        score: float | None = None,
        columns: Mapping[str, float] = NOTHING,
        features: Mapping[str, float] = NOTHING,
        *,
        tree: "nltk.Tree | str | None" = None,
        segmentation: str | None = None,
        alignment: str | None = None,
    ) -> None:
        if (text is None) == (tree is None):
            raise TypeError("expected a text or a tree" + ("" if text is None else ", found both"))
        self._text = str(tree) if text is None else text
        self._score, self._columns, self._features = score, columns, features
        self._segmentation, self._alignment = segmentation, alignment

    @property
    def text(self) -> str:
        """The text, or the tree in brackets; bytes that are not UTF-8 are surrogate escapes."""
        return self._text

    @property
    def score(self) -> float | None:
        """The base score; None if it is not known."""
        return self._score

    @property
    def columns(self) -> Mapping[str, float]:
        """The other numbers that all candidates have, by name."""
        return self._columns

    @property
    def features(self) -> Mapping[str, float]:
        """The sparse features that come with the candidate."""
        return self._features

    @property
    def segmentation(self) -> str | None:
        """The phrases that the text was made of, if they are known."""
        return self._segmentation

    @property
    def alignment(self) -> str | None:
        """The word alignment, if it is known."""
        return self._alignment

    @property
    def tokens(self) -> list[str]:
        """The words of the tree, without traces; of a text, what is between white space."""
        if self.text.lstrip().startswith("("):
            return [word for tag, word in PRETERMINAL.findall(self.text) if tag != TRACE]
        return self.text.split()

    @property
    def tree(self) -> "nltk.Tree":
        """The parse tree.

        Raises
        ------
        DataError: the text is not a tree, or the tree is too deep for nltk.
        """
        symbols = SymbolTable()
        return to_nltk(parse_brackets([encoded(self.text)], symbols), 0, symbols)

    def __repr__(self) -> str:
        numbers = {"score": self.score, "columns": dict(self.columns), "features": dict(self.features)}
        shown = "".join(f", {name}={value!r}" for name, value in numbers.items() if value or value == 0.0)
        return f"Candidate({self.text!r}{shown})"
