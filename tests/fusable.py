"""Generated trees over the same words, for tests of fusion."""

import nltk
import reference_decoding as reference
from hypothesis import strategies as st

from rerank.data.symbols import SymbolTable
from rerank.readers.trees.trees import Trees, parse_brackets

WORDS = 5


@st.composite
def tree_texts(draw: st.DrawFn, words: int = WORDS) -> str:
    """A tree over the words 0, 1, ..., with unary chains, some of them with one label twice, and traces."""

    def node(start: int, end: int, depth: int) -> str:
        label = draw(st.sampled_from(["A", "B", "C-F"]))
        if depth < 3 and draw(st.integers(0, 3)) == 0:
            return f"({label} {node(start, end, depth + 1)})"
        if end - start == 1:
            leaf = f"({draw(st.sampled_from(['X', 'Y']))} {start})"
            return leaf if draw(st.booleans()) else f"({label} {leaf})"
        cut = draw(st.integers(start + 1, end - 1))
        trace = draw(st.sampled_from(["", "", "(-NONE- *)", "(A (-NONE- *))"]))
        return f"({label} {node(start, cut, 0)} {trace} {node(cut, end, 0)})"

    root = draw(st.sampled_from(["S1", "S1", ""]))
    return f"({root} {node(0, words, 0)})"


def parsed(texts: list[str]) -> tuple[SymbolTable, Trees, list[nltk.Tree]]:
    symbols = SymbolTable()
    trees = parse_brackets([text.encode() for text in texts], symbols)
    plain = [reference.without_traces(nltk.Tree.fromstring(text)) for text in texts]
    assert None not in plain
    return symbols, trees, plain  # type: ignore[return-value]
