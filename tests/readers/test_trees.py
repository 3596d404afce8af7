"""Trees: as arrays, in files of any white space, and in lists without scores."""

import io
from itertools import cycle
from pathlib import Path

import nltk
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import read_lists
from reference_trees import naive_split, printed, spaces, trees

from rerank.base.errors import DataError
from rerank.data import trees as trees_module
from rerank.data.symbols import SymbolTable
from rerank.data.trees import FOREST, MAX_LEVELS, parse_brackets, to_nltk
from rerank.readers.trees import treebank
from rerank.readers.trees.charniak import BareReader
from rerank.readers.trees.treebank import SentenceText, open_list, read_sentences, read_trees
from rerank.storage.streams import InputStream

RAINED = b"(S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))"


@settings(max_examples=150, deadline=None)
@given(st.lists(trees(), max_size=4), spaces())
def test_parsing_gives_back_the_printed_trees(expected: list[nltk.Tree], given_spaces: list[str]) -> None:
    symbols, gaps = SymbolTable(), cycle(given_spaces)
    parsed = parse_brackets([printed(tree, gaps).encode() for tree in expected], symbols)
    assert parsed.first.size == len(expected) + 1
    assert [to_nltk(parsed, t, symbols) for t in range(len(expected))] == expected


@settings(max_examples=100, deadline=None)
@given(trees())
def test_arrays_hold_preorder_parents_sizes_and_spans(tree: nltk.Tree) -> None:
    symbols = SymbolTable()
    parsed = parse_brackets([RAINED, tree.pformat(margin=10**9).encode()], symbols)
    first = int(parsed.first[1])
    nodes = list(tree.subtrees())  # preorder, preterminals included
    assert [symbols.text(label) for label in parsed.label[first:]] == [node.label() for node in nodes]
    places = {id(node): first + i for i, node in enumerate(nodes)}
    leaves_before = 0
    for i, node in enumerate(nodes, first):
        preterminal = isinstance(node[0], str)
        assert parsed.size[i] == len(list(node.subtrees()))
        assert parsed.end[i] - parsed.start[i] == len(node.leaves())
        assert (symbols.text(parsed.word[i]) == node[0]) if preterminal else (parsed.word[i] == -1)
        if preterminal:
            assert parsed.start[i] == leaves_before
            leaves_before += 1
        else:
            child = i + 1
            for below in node:
                assert places[id(below)] == child
                assert parsed.parent[child] == i
                child += parsed.size[child]
            assert parsed.start[i] == parsed.start[i + 1]
    assert parsed.parent[first] == -1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"S1", "text outside of a tree"),
        (b"(NN a) b", "text outside of a tree"),
        (b"(NN a)(NN b)", "more than one tree"),
        (b"(NN a))", r"a '\)' without its '\('"),
        (b"(S (NN a)", "not closed"),
        (b"(NN a b)", "a word beside other children"),
        (b"(S a (NN b))", "a word beside other children"),
        (b"(S (NN a) (NP))", "a node without children"),
        (b"(()", "a node without children"),
        (b"(() a)", "a node without children"),
        (b"(S (VP (ADV 0=Heute) (VB 2=schneien)) (MD 1=soll))", "0=word.* discodop treetransforms --splitdisc"),
        (b"( (VP 1=b\n 0=a))", "0=word"),
    ],
)
def test_malformed_trees(text: bytes, message: str) -> None:
    symbols = SymbolTable()
    with pytest.raises(DataError, match=message) as caught:
        parse_brackets([RAINED, text, b"(XX later)"], symbols, path="file", lines=[3, 5, 7], list_id="a")
    assert str(caught.value).startswith("file:5: list a: ")
    assert "XX" not in str(caught.value)
    parsed = parse_brackets([RAINED], symbols)  # the table is still whole
    assert to_nltk(parsed, 0, symbols) == nltk.Tree.fromstring(RAINED.decode())


@pytest.mark.parametrize("text", [b"", b" \n", b"()", b"(())", b"( ( ) )", b"(NN)", b"(S1 (S) (NP ( )))", b"(S)(S)"])
def test_brackets_without_words_are_a_tree_of_a_trace(text: bytes) -> None:
    symbols = SymbolTable()
    parsed = parse_brackets([RAINED, text, RAINED, text], symbols)
    trace = nltk.Tree("-NONE-", ["*"])
    expected = [nltk.Tree.fromstring(RAINED.decode()), trace] * 2
    assert [to_nltk(parsed, t, symbols) for t in range(4)] == expected


@pytest.mark.parametrize("text", [b"(S (X 0=1) (Y x))", b"(S (X 0=1) (Y 0=2))", b"(S (X 1=0))", b"(0=1 (X 10))"])
def test_words_with_equals_signs_are_words(text: bytes) -> None:
    symbols = SymbolTable()
    assert to_nltk(parse_brackets([text], symbols), 0, symbols) == nltk.Tree.fromstring(text.decode())


def test_a_failed_parse_excuses_no_other() -> None:
    with pytest.raises(DataError, match="file:7: a node without children"):
        parse_brackets([b"(())", b"(S (NN a) (NP))"], SymbolTable(), path="file", lines=[3, 7])


def test_more_new_symbols_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees_module, "FIRST_SYMBOLS", 4)
    texts = [b"(T%d w%d)" % (i, i) for i in range(5000)]
    symbols = SymbolTable()
    parsed = parse_brackets(texts, symbols)
    assert [symbols.text(i) for i in parsed.label] == [f"T{i}" for i in range(5000)]
    assert [symbols.text(i) for i in parsed.word] == [f"w{i}" for i in range(5000)]
    again = parse_brackets(texts, symbols)
    assert np.array_equal(parsed.label, again.label)
    assert np.array_equal(parsed.word, again.word)


def test_very_deep_and_very_wide_trees() -> None:
    depth = 100_000
    symbols = SymbolTable()
    deep = parse_brackets([b"(X " * depth + b"(NN a)" + b")" * depth], symbols)
    assert deep.size.tolist() == list(range(depth + 1, 0, -1))
    assert deep.end.tolist() == [1] * (depth + 1)
    with pytest.raises(DataError, match=f"more than {MAX_LEVELS} levels"):
        to_nltk(deep, 0, symbols)
    wide = parse_brackets([b"(S " + b"(NN a)" * depth + b")"], symbols)
    assert len(to_nltk(wide, 0, symbols)) == depth


def test_nltk_can_handle_the_deepest_trees_given_to_it() -> None:
    symbols = SymbolTable()
    texts = [b"(X " * (levels - 1) + b"(NN a)" + b")" * (levels - 1) for levels in (MAX_LEVELS, MAX_LEVELS + 1)]
    parsed = parse_brackets(texts, symbols)
    tree = to_nltk(parsed, 0, symbols)
    assert tree.height() == MAX_LEVELS + 1  # nltk counts the word
    assert tree.leaves() == ["a"]
    assert len(str(tree)) > MAX_LEVELS
    with pytest.raises(DataError, match="levels"):
        to_nltk(parsed, 1, symbols)


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "gold.mrg"
    path.write_bytes(data)
    return path


@settings(max_examples=150, deadline=None)
@given(st.lists(trees(8), max_size=5), spaces(), st.integers(4, 40))
def test_random_trees_white_space_and_chunks(expected: list[nltk.Tree], given_spaces: list[str], chunk: int) -> None:
    gaps = cycle(given_spaces)
    text = next(gaps) + "".join(printed(tree, gaps) + next(gaps) for tree in expected)
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
    monkeypatch.setattr(treebank, "MAX_LINE", 1 << 20)
    path = write(tmp_path, b"(S (NN a)\n" + b"(NN b)\n" * 300_000)
    with pytest.raises(DataError, match=r"gold\.mrg:1: .*within 1 MiB.*line 2 starts"):
        list(read_trees(path))
    monkeypatch.setattr(treebank, "MAX_LINE", 100)
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


ONE = b"(S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))"
TWO = b"(S1 (S (NP (PRP It)) (VP (VBN rained)) (. .)))"
THREE = b"(S1 (NP (NN Art)))"
OVER_LINES = b"(S1 (S (NP (PRP It))\n  (VP (VBN rained))\n\t(. .)))"
VARIANTS = {
    "groups": b"%s\n%s\n\n%s\n\n" % (ONE, TWO, THREE),
    "spread": b"%s\n%s\n\n%s\n" % (ONE, OVER_LINES, THREE),
    "counted": b"2\twsj-1\n%s\n%s\n\n1\twsj-2\n%s\n" % (ONE, TWO, THREE),
    "counted, no blank lines": b"2 wsj-1\n%s\n%s\n1 wsj-2\n%s\n" % (ONE, OVER_LINES, THREE),
    "counted, no ids": b"2\n%s\n%s\n1\n%s\n" % (ONE, TWO, THREE),
}


def _file(root: Path, data: bytes) -> Path:
    (root / "lists").write_bytes(data)
    return root / "lists"


@pytest.mark.parametrize("variant", VARIANTS)
def test_trees_have_base_scores_of_0_and_the_ids_of_headers(variant: str, tmp_path: Path) -> None:
    first, second = read_lists(BareReader(), _file(tmp_path, VARIANTS[variant]))
    assert (first.texts, second.texts) == ([ONE, TWO], [THREE])
    assert (first.base.tolist(), second.base.tolist()) == ([0.0, 0.0], [0.0])
    named = variant.startswith("counted") and "no ids" not in variant
    assert [first.id, second.id] == (["wsj-1", "wsj-2"] if named else ["0", "1"])


def test_what_is_written_is_what_was_read_and_new_scores_come_first(tmp_path: Path) -> None:
    for variant in ("groups", "counted"):
        lists = list(read_lists(BareReader(), _file(tmp_path, VARIANTS[variant])))
        out, scored = io.BytesIO(), io.BytesIO()
        for nbest in lists:
            BareReader().write(out, nbest)
            BareReader().write(scored, nbest, scores=np.arange(len(nbest)) - 1.5)
        assert out.getvalue().rstrip() == VARIANTS[variant].rstrip()
        again = list(read_lists(BareReader(), _file(tmp_path, scored.getvalue())))
        assert [nbest.base.tolist() for nbest in again] == [[-1.5, -0.5], [-1.5]]
        twice = io.BytesIO()
        BareReader().write(twice, again[0], [1, 0], np.array([1.0, 2.0]))
        (last,) = read_lists(BareReader(score=1), _file(tmp_path, twice.getvalue()))
        assert (last.texts, last.scores.tolist()) == ([TWO, ONE], [[2.0, -0.5], [1.0, -1.5]])
        assert last.id == ("wsj-1" if variant == "counted" else "0")


def test_scores_behind_trees_are_scores(tmp_path: Path) -> None:
    (nbest,) = read_lists(BareReader(), _file(tmp_path, b"(NN a) -1.5\n(S (NN a)) -2.5\n(()) -3\n"))
    assert (nbest.texts, nbest.base.tolist()) == ([b"(NN a)", b"(S (NN a))"], [-1.5, -2.5])
    (nbest,) = read_lists(BareReader(score=1), _file(tmp_path, b"-1.5 (NN a) 7\n-2.5 (S (NN a)) 8\n"))
    assert (nbest.texts, nbest.scores.tolist()) == ([b"(NN a)", b"(S (NN a))"], [[-1.5, 7], [-2.5, 8]])


def test_sentences_without_blank_lines_are_no_list(tmp_path: Path) -> None:
    lines = b"".join(b"-1.5 (NN %s)\n" % word * 2 for word in (b"a", b"b", b"c"))
    with pytest.raises(DataError, match="expected one behind the trees of each sentence"):
        list(read_lists(BareReader(), _file(tmp_path, lines)))
    (nbest,) = read_lists(BareReader(), _file(tmp_path, lines + b"\n"))
    assert len(nbest) == 6


def test_a_failed_parse_is_no_candidate(tmp_path: Path) -> None:
    lists = list(BareReader().read(_file(tmp_path, b"(())\n\n%s\n(())\n\n( () )\n\n" % ONE)))
    assert [one.texts for one in lists if one.problem is None] == [[], [ONE], []]
    (only,) = list(BareReader().read(_file(tmp_path, b"1\tx\n(())\n\n")))
    assert (only.id, only.size) == ("x", 0)


@pytest.mark.parametrize("line", [b")y(", b"y (())", b"-1 )y("])
def test_a_line_that_is_neither_a_tree_nor_a_failed_parse_is_an_error(line: bytes, tmp_path: Path) -> None:
    for lists in (b"%s\n%s\n\n%s\n%s\n\n", b"-1 %s\n-2 %s\n\n%s\n-3 %s\n\n"):
        path = _file(tmp_path, lists % (ONE, TWO, line, THREE))
        with pytest.raises(DataError, match=r"lists:4: list 1: "):
            [open_list(nbest, SymbolTable()) for nbest in read_lists(BareReader(), path)]


def test_a_tree_that_does_not_end_is_a_bad_candidate_of_its_list(tmp_path: Path) -> None:
    path = _file(tmp_path, b"%s\n%s\n\n(()\n%s\n\n" % (ONE, TWO, THREE))
    _, last = (open_list(nbest, SymbolTable())[0] for nbest in read_lists(BareReader(), path))
    assert last.texts == [THREE]
    assert [(bad.reason, bad.line) for bad in last.bad] == [("brackets", 4)]


@pytest.mark.parametrize(
    ("text", "reason", "line", "message"),
    [
        (b"3\tx\n%s\n%s\n\n1\ty\n%s\n" % (ONE, TWO, THREE), "too few", 4, "the header says 3 candidates; found 2"),
        (b"1\tx\n%s\n%s\n\n1\ty\n%s\n" % (ONE, TWO, THREE), "too many", 3, "more follows than the 1 candidates"),
        (b"1\ty\n%s\n\n%s\n\n1\tz\n%s\n" % (ONE, TWO, THREE), "header", 4, "expected its header: number of candidates"),
    ],
)
def test_faults_of_headers_end_with_a_list(text: bytes, reason: str, line: int, message: str, tmp_path: Path) -> None:
    found = list(BareReader().read(_file(tmp_path, text)))
    bad = next(one for one in found if one.problem is not None)
    assert (bad.problem.reason, bad.line) == (reason, line)
    assert message in bad.problem.message
    last = found[-1]
    assert last.texts == [THREE]
