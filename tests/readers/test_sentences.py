"""Files of trees by sentence: failed parses keep their places, whatever the form of the file."""

from pathlib import Path

import pytest

from rerank.readers.trees.treebank import SentenceText, read_sentences
from rerank.readers.trees.trees import FOREST

A, B, SPREAD = b"(S (NN a))", b"(S (NN b))", b"(S\n  (NN c))"

FILES = {
    "one a line": (A + b"\n" + B + b"\n", [(A, 1), (B, 2)]),
    "no line end": (A + b"\n" + B, [(A, 1), (B, 2)]),
    "an empty line is a failed parse": (A + b"\n\n" + B + b"\n", [(A, 1), (b"", 2), (B, 3)]),
    "blanks and carriage returns": (A + b"\r\n \t\r\n" + B + b"\r\n", [(A, 1), (b"", 2), (B, 3)]),
    "first and last": (b"\n\n" + A + b"\n\n\n", [(b"", 1), (b"", 2), (A, 3), (b"", 4), (b"", 5)]),
    "nothing but failed parses": (b"\n\n", [(b"", 1), (b"", 2)]),
    "nothing": (b"", []),
    "comments are no sentences": (b"*x* a\n" + A + b"\n* (b\n\n" + B + b"\n*", [(A, 2), (b"", 4), (B, 5)]),
    "brackets alone": (A + b"\n(())\n", [(A, 1), (b"(())", 2)]),
    "several on a line": (A + B + b"\n" + B, [(b"(%s %s %s)" % (FOREST.encode(), A, B), 1), (B, 2)]),
    "trees over lines": (SPREAD + b"\n\n" + A + b"\n\n\n" + B + b"\n\n", [(SPREAD, 1), (A, 4), (B, 7)]),
    "found late": (A + b"\n\n" + B + A + b"\n\n" + SPREAD + b"\n\n", [(A, 1), (B, 3), (A, 3), (SPREAD, 5)]),
    "at the end of one": (A + b"\n" + SPREAD + B + b"\n", [(A, 1), (SPREAD, 2), (B, 3)]),
}


@pytest.mark.parametrize("chunk", [1, 7, 1 << 18])
@pytest.mark.parametrize("name", FILES)
def test_sentences_and_their_lines(tmp_path: Path, name: str, chunk: int) -> None:
    data, expected = FILES[name]
    (tmp_path / "trees").write_bytes(data)
    assert list(read_sentences(tmp_path / "trees", chunk=chunk)) == [SentenceText(*each) for each in expected]


def test_what_is_clear_is_not_held_back(tmp_path: Path) -> None:
    (tmp_path / "trees").write_bytes(A + b"\n" + B + b"\n" + A + b") broken\n")
    found = read_sentences(tmp_path / "trees")
    assert [next(found).text, next(found).text] == [A, B]
