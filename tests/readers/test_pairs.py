"""Lists with gold trees: aligned whatever is skipped, and never aligned by accident."""

import re
from pathlib import Path

import nltk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import read_pairs
from reference_trees import trees, words_of

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.readers.base import SkipCount
from rerank.readers.problems import Problem
from rerank.readers.trees.charniak import CharniakReader
from rerank.readers.trees.treebank import parse_list
from rerank.readers.trees.trees import parse_brackets, same_yield, to_nltk, yield_words

GOOD = ["(S (NN a) (VB b))", "(S (X (NN a)) (VB b))"]
GOLD = "(S (NN a) (VP (VB b)))"


def listing(name: str, texts: list[str]) -> str:
    return f"{len(texts)}\t{name}\n" + "".join(f"-{i}.5\n{text}\n" for i, text in enumerate(texts)) + "\n"


class Files:
    """A list file and a gold file that are read as pairs."""

    def __init__(self, directory: Path) -> None:
        self.nbest, self.gold = directory / "nbest", directory / "gold"
        self.symbols = SymbolTable()

    def write(self, lists: str, gold: str) -> "Files":
        self.nbest.write_text(lists)
        self.gold.write_text(gold)
        return self

    def read(self, policy: str = "error") -> tuple[list[str], SkipCount]:
        count = SkipCount(policy)  # type: ignore[arg-type]
        found = []
        for nbest, candidates, gold in read_pairs(CharniakReader(), self.nbest, self.gold, self.symbols, count=count):
            assert candidates.first.size == len(nbest) + 1
            assert gold.first.size == 2
            found.append(nbest.id)
        return found, count


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@settings(max_examples=200, deadline=None)
@given(st.lists(trees(5), min_size=1, max_size=4), trees(5), st.booleans())
def test_same_yield_is_equality_of_words(candidates: list[nltk.Tree], gold: nltk.Tree, same: bool) -> None:
    if same:
        gold = candidates[0]
    symbols = SymbolTable()
    parsed = parse_brackets([tree.pformat(margin=10**9).encode() for tree in (*candidates, gold)], symbols)
    trace = symbols.intern("-NONE-")
    last = len(candidates)
    every = enumerate([*candidates, gold])
    different = [k for k, tree in every if words_of(tree) and words_of(tree) != words_of(gold)]
    assert same_yield(parsed, parsed, last, trace) == (different[0] if different else -1)
    assert yield_words(parsed, last, symbols) == words_of(gold)


def test_pairs_are_aligned_by_order(files: Files) -> None:
    lists = listing("one", GOOD) + listing("none", []) + listing("two", ["(NN c)"])
    files.write(lists, f"{GOLD}\n(NN any)\n(S\n  (NN c))\n")
    golds = []
    for nbest, candidates, gold in read_pairs(CharniakReader(), files.nbest, files.gold, files.symbols):
        golds.append(str(to_nltk(gold, 0, files.symbols)))
        for t, text in enumerate(nbest.texts):
            assert to_nltk(candidates, t, files.symbols) == nltk.Tree.fromstring(text.decode())
    assert golds == [GOLD, "(NN any)", "(S (NN c))"]


def test_traces_do_not_count(files: Files) -> None:
    gold = "(S (-NONE- *) (NN a) (NP (-NONE- *T*-1)) (VB b) (-NONE- *))"
    files.write(listing("one", GOOD) + listing("two", [gold, *GOOD]), f"{gold}\n{GOLD}")
    assert files.read()[0] == ["one", "two"]


BAD = {
    # reason, list, gold tree, where the error is, part of the message
    "unbalanced": ("brackets", listing("x", [GOOD[0], GOOD[0][:-1]]), GOLD, "nbest:11", "not closed"),
    "bare word": ("brackets", listing("x", ["(S a (VB b))"]), GOLD, "nbest:9", "a word beside"),
    "two trees": ("brackets", listing("x", ["(NN a)(VB b)"]), GOLD, "nbest:9", "more than one tree"),
    "gold word": ("gold tree", listing("x", GOOD), "(S\n a\n (VB b))", "gold:4", "in the gold tree: a word beside"),
    "empty gold": ("gold tree", listing("x", GOOD), "(S () (NN a))", "gold:2", "in the gold tree: a node without"),
    "header": ("too few", listing("x", GOOD).replace("2\t", "3\t"), GOLD, "nbest:12", "found 2"),
    "scores": ("infinite score", listing("x", GOOD).replace("-1.5", "nan"), GOLD, "nbest:10", "finite"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_pairs(files: Files, name: str) -> None:
    reason, bad, gold, place, message = BAD[name]
    files.write(listing("one", GOOD) + bad + listing("two", ["(NN c)"]), f"{GOLD}\n{gold}\n(NN c)\n")
    with pytest.raises(DataError) as caught:
        files.read()
    assert str(caught.value).startswith(f"{files.nbest.parent}/{place}: list x: ")
    assert message in str(caught.value)
    assert "--on-bad-list skip" in str(caught.value)
    found, count = files.read("skip")
    first = count.first | count.first_candidates
    assert found == (["one", "two"] if count.skipped else ["one", "x", "two"])
    assert dict(count.reasons + count.candidate_reasons) == {reason: 1}
    assert f"{files.nbest.parent}/{place}: list x: " in first[reason]


WORDS = {
    # candidates, what is said of them where no gold tree tells which words are right
    "another word": ([*GOOD, "(S (NN a) (VB c))"], "candidates 1 and 3 have different words: 2 and 2 words"),
    "fewer words": ([GOOD[0], "(NN a)"], "at word 2 'b' and 'the end'"),
    "after a failed parse": (["(())", *GOOD, "(NN a)"], "candidates 2 and 4"),
    "failed parses": (["(())", GOOD[0], "(S1)"], None),
    "nothing else": (["(())", "(S1)"], None),
}


@pytest.mark.parametrize("name", WORDS)
def test_candidates_of_different_sentences(files: Files, name: str) -> None:
    texts, message = WORDS[name]
    files.write(listing("x", texts), GOLD)
    assert files.read()[0] == ["x"]
    (nbest,) = CharniakReader().read(files.nbest)
    if message is None:
        parse_list(nbest, files.symbols)
        return
    with pytest.raises(Problem, match=re.escape(message)) as caught:
        parse_list(nbest, files.symbols)
    assert (caught.value.reason, caught.value.line) == ("words", 3 + 2 * (len(texts) - 1))


@pytest.mark.parametrize("gold", ["(S (NN a) (VB B))", "(S (NN a) (VB b) (. .))", "(())", "(S1)"])
def test_a_gold_tree_of_other_words_is_for_the_metric(files: Files, gold: str) -> None:
    files.write(listing("x", GOOD), gold)
    assert files.read()[0] == ["x"]


def test_lists_merged_by_damage_are_noticed_at_the_end(files: Files) -> None:
    merged = listing("one", GOOD).rstrip() + "\n" + listing("two", GOOD).replace("2\ttwo", "x\ttwo")
    files.write(merged + listing("three", GOOD), f"{GOLD}\n" * 3)
    with pytest.raises(DataError, match=r"at least 3 gold trees for 2 lists .* same order$"):
        files.read("skip")
    files.write("", GOLD)
    with pytest.raises(DataError, match=r"at least 1 gold trees for 0 lists"):
        files.read("skip")


def test_a_list_that_is_missing_is_found_by_its_words(files: Files) -> None:
    golds = [GOLD.replace("b", word) for word in "bcd"]
    first, _, last = ([text.replace("b", word) for text in GOOD] for word in "bcd")
    files.write(listing("one", first) + listing("three", last), "\n".join(golds))
    with pytest.raises(DataError, match=r"in the same order; the first whose words are others is three, line 7$"):
        files.read()


def test_unbalanced_gold_cannot_be_skipped(files: Files) -> None:
    files.write(listing("one", GOOD) * 2, f"{GOLD}\n{GOLD[:-1]}\n")
    with pytest.raises(DataError, match=r"gold:2: the tree that starts here is not closed"):
        files.read("skip")
