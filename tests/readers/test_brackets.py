"""Files of trees: every tree with its line, whatever the white space; failed parses keep their places."""

import io
from pathlib import Path

import nltk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_trees import naive_split, printed, spaces, trees

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.readers.streams import InputStream
from rerank.readers.trees import treebank
from rerank.readers.trees.treebank import SentenceText, read_sentences, read_trees
from rerank.readers.trees.trees import FOREST, parse_brackets, to_nltk

PRETTY = b"""( (S (NP-SBJ (PRP It))
     (VP (VBD rained)) (. .)))

( (NP (NN Art)))
"""


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "gold.mrg"
    path.write_bytes(data)
    return path


def test_pretty_printed_and_one_a_line(tmp_path: Path) -> None:
    first, second = read_trees(write(tmp_path, PRETTY))
    assert first == (PRETTY[: PRETTY.index(b"\n\n")], 1)
    assert second == (b"( (NP (NN Art)))", 4)
    lines = b"(NN a)\n(NN b)\r\n\r\n  (NN c)"
    assert list(read_trees(write(tmp_path, lines))) == [(b"(NN a)", 1), (b"(NN b)", 2), (b"(NN c)", 4)]
    assert list(read_trees(write(tmp_path, b"(NN a)(NN b) (NN c)"))) == [(b"(NN a)", 1), (b"(NN b)", 1), (b"(NN c)", 1)]


@settings(max_examples=150, deadline=None)
@given(st.data(), st.lists(trees(8), max_size=5), st.integers(4, 40))
def test_random_trees_white_space_and_chunks(data: st.DataObject, expected: list[nltk.Tree], chunk: int) -> None:
    text = data.draw(spaces(0)) + "".join(data.draw(printed(tree)) + data.draw(spaces(0)) for tree in expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(treebank, "open_stream", lambda path: InputStream(io.BytesIO(text.encode()), path))
        found = list(read_trees("file", chunk=chunk))
    assert [(text.decode(), line) for text, line in found] == naive_split(text.replace("\r\n", "\n"))
    symbols = SymbolTable()
    parsed = parse_brackets([text for text, _ in found], symbols)
    assert [to_nltk(parsed, t, symbols) for t in range(len(found))] == expected


@pytest.mark.parametrize("chunk", [1, 3, 1 << 18])
def test_lines_that_start_with_an_asterisk_are_comments_outside_trees(tmp_path: Path, chunk: int) -> None:
    notice = b"*x*x*x*\n*x* (c) 1995 ((( *x*\n*x*x*x*\n"
    path = write(tmp_path, notice + b"\n( (NP (-NONE- *)\n*\n))\n*\n(NN *)\n*")
    assert list(read_trees(path, chunk=chunk)) == [(b"( (NP (-NONE- *)\n*\n))", 5), (b"(NN *)", 9)]
    with pytest.raises(DataError, match="text outside of a tree"):
        list(read_trees(write(tmp_path, b"(NN a) * (NN b)\n"), chunk=chunk))


@pytest.mark.parametrize("chunk", [1, 3, 1 << 18])
def test_lines_of_sgml_are_passed_over_outside_trees(tmp_path: Path, chunk: int) -> None:
    text = b"<DOC>\n<DATE>1999)</DATE>\n<S ID=7>\n( (NP (NN a)\n<S\n))\n</S>\n(NN <)\n</DOC>"
    assert list(read_trees(write(tmp_path, text), chunk=chunk)) == [(b"( (NP (NN a)\n<S\n))", 4), (b"(NN <)", 8)]
    assert [line for text, line in read_trees(write(tmp_path, text), chunk=chunk, empty_lines=True) if text] == [4, 8]


@pytest.mark.parametrize("chunk", [3, 7, 1 << 18])
@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"(NN a)\n(NN b))\n", 2, r"a '\)' without its '\('"),
        (b"(NN a)\n\nword\n", 3, "text outside of a tree"),
        (b"3\tlist\n-1.5\n(NN a)\n", 1, "text outside of a tree"),
        (b"(NN a)\n(NN \0)\n", 2, "a NUL byte"),
        (b"\0", 1, "a NUL byte"),
        (b"(NN a)\n (S (NN b)\n  (NN c)\n", 2, r"not closed before the end of the file: 1 '\)' missing"),
        (b"(NN a)\n(S (NN b)\n(NN c)\n(NN d)\n", 2, "line 3 starts with '\\(' and is still inside of it"),
        (b"(NN a)\n<S> (NN b)\n", 2, "put trees on lines of their own"),
        (b"(NN a) <S>\n", 1, "text outside of a tree"),
        (b"((", 1, r"2 '\)' missing"),
    ],
)
def test_errors_say_the_line(tmp_path: Path, chunk: int, data: bytes, line: int, message: str) -> None:
    path = write(tmp_path, data)
    with pytest.raises(DataError, match=message) as caught:
        list(read_trees(path, chunk=chunk))
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_a_hint_is_about_the_open_tree_only(tmp_path: Path) -> None:
    path = write(tmp_path, b"(S (NN b)\n(NN c))\n (S (NN d)\n")  # the first tree does not indent, but it is closed
    with pytest.raises(DataError) as caught:
        list(read_trees(path))
    assert "starts with" not in str(caught.value)


def test_endless_trees_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(treebank, "LONGEST", 1 << 20)
    path = write(tmp_path, b"(S (NN a)\n" + b"(NN b)\n" * 300_000)
    with pytest.raises(DataError, match=r"gold\.mrg:1: .*within 1 MiB.*line 2 starts"):
        list(read_trees(path))
    monkeypatch.setattr(treebank, "LONGEST", 100)
    many = write(tmp_path, b"(S (NN a)\n  (NN b))\n" * 2000)  # the limit is one of a tree, not of a file
    assert sum(1 for _ in read_trees(many, chunk=30)) == 2000


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
