"""Random texts that collide often: few words, every kind of white space, empty ones."""

from hypothesis import strategies as st

WORDS = st.sampled_from(["a", "b", "c", "ab", "über", "."])
# What str.split cuts at; line ends that end a line of a file are among them.
SPACES = st.sampled_from(
    [" "] * 12 + ["  ", "\t", "\u00a0", "\u3000", "\u2009", "\u1680", "\x85", "\x1f", "\u202f", "\u205f"]
)


@st.composite
def spaced(draw: st.DrawFn) -> str:
    """Words with white space before, between and behind them."""
    parts = draw(st.lists(WORDS, max_size=9))
    return "".join(draw(SPACES) + part for part in parts) + draw(SPACES)


def plain() -> st.SearchStrategy[str]:
    """Words with one blank between two."""
    return st.lists(WORDS, max_size=9).map(" ".join)


@st.composite
def texts_with_references(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """N candidates and their references, one to three; no candidates, too."""
    return draw(st.lists(spaced(), max_size=4)), draw(st.lists(spaced(), min_size=1, max_size=3))


def encode(texts: list[str]) -> list[bytes]:
    """As readers give them."""
    return [text.encode() for text in texts]
