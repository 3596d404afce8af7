"""Trees as arrays: equal to nltk's reading of the same brackets, with exact errors."""

import nltk
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_trees import printed, trees

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.readers.trees import trees as trees_module
from rerank.readers.trees.trees import DEEPEST, parse_brackets, to_nltk

RAINED = b"(S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))"


@settings(max_examples=150, deadline=None)
@given(st.lists(trees(), max_size=4).flatmap(lambda all_: st.tuples(st.just(all_), st.tuples(*map(printed, all_)))))
def test_parsing_gives_back_the_printed_trees(drawn: tuple[list[nltk.Tree], tuple[str, ...]]) -> None:
    expected, texts = drawn
    symbols = SymbolTable()
    parsed = parse_brackets([text.encode() for text in texts], symbols)
    assert parsed.first.size == len(texts) + 1
    assert [to_nltk(parsed, t, symbols) for t in range(len(texts))] == expected


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


def test_no_trees_and_empty_labels() -> None:
    symbols = SymbolTable()
    assert parse_brackets([], symbols).first.tolist() == [0]
    parsed = parse_brackets([b"( (S (NN a)))"], symbols)
    assert to_nltk(parsed, 0, symbols) == nltk.Tree("", [nltk.Tree("S", [nltk.Tree("NN", ["a"])])])


def test_bytes_that_are_not_utf8_survive() -> None:
    symbols = SymbolTable()
    word = b"caf\xe9\xff"
    parsed = parse_brackets([b"(NN " + word + b")"], symbols)
    assert symbols.text(int(parsed.word[0])).encode("utf-8", "surrogateescape") == word


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


def test_errors_count_lines_within_a_tree() -> None:
    with pytest.raises(DataError, match="file:12: a word beside"):
        parse_brackets([b"(S\n (NP (NN a))\n (NN b c))"], SymbolTable(), path="file", lines=[10])


def test_more_new_symbols_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees_module, "ROOM", 4)
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
    with pytest.raises(DataError, match=f"more than {DEEPEST} levels"):
        to_nltk(deep, 0, symbols)
    wide = parse_brackets([b"(S " + b"(NN a)" * depth + b")"], symbols)
    assert len(to_nltk(wide, 0, symbols)) == depth


def test_nltk_can_handle_the_deepest_trees_given_to_it() -> None:
    symbols = SymbolTable()
    texts = [b"(X " * (levels - 1) + b"(NN a)" + b")" * (levels - 1) for levels in (DEEPEST, DEEPEST + 1)]
    parsed = parse_brackets(texts, symbols)
    tree = to_nltk(parsed, 0, symbols)
    assert tree.height() == DEEPEST + 1  # nltk counts the word
    assert tree.leaves() == ["a"]
    assert len(str(tree)) > DEEPEST
    with pytest.raises(DataError, match="levels"):
        to_nltk(parsed, 1, symbols)
