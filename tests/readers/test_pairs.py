"""Lists with what belongs to them, trees or texts: aligned whatever is skipped, or an error that says where."""

import re
from pathlib import Path
from typing import Any

import nltk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import read_pairs, read_text_pairs
from reference_trees import trees, words_of

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.data.trees import parse_brackets, same_yield, yield_words
from rerank.readers.lists import Lists
from rerank.readers.moses import Moses
from rerank.readers.problems import Problem
from rerank.readers.reader import Reader, SkipCount, make_reader
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.trees.charniak import CharniakReader
from rerank.readers.trees.treebank import parse_list

LISTS = b"0 ||| a ||| F= 1 ||| -1\n0 ||| b ||| F= 2 ||| -2\n1 ||| c ||| F= 1 ||| -1\n2 ||| d ||| F= 1 ||| -1\n"


class Files:
    """Files of one test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, name: str, data: bytes) -> Path:
        (self.directory / name).write_bytes(data)
        return self.directory / name

    def read(
        self, lists: bytes, source: bytes | None, reference: bytes | None, reader: Reader | None = None, **options: Any
    ) -> list[Lists]:
        sources = None if source is None else self.write("sources", source)
        references = None if reference is None else [self.write("references", reference)]
        path = self.write("lists", lists)
        return list(read_text_pairs(reader or Moses(), path, references=references, sources=sources, **options))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def outline(lists: list[Lists]) -> list[tuple[str, int, bytes, tuple[bytes, ...]]]:
    return [(nbest.id, len(nbest), nbest.source or b"", nbest.references) for nbest in lists]


def test_pairs_by_order(files: Files) -> None:
    pairs = files.read(LISTS, b"s0\ns1\ns2\n", b"r0\n\nr2\tR2\n", form="tab")
    assert outline(pairs) == [("0", 2, b"s0", (b"r0",)), ("1", 1, b"s1", (b"",)), ("2", 1, b"s2", (b"r2", b"R2"))]


def test_lists_that_ids_leave_out_have_theirs_too(files: Files) -> None:
    pairs = files.read(LISTS.replace(b"2 |||", b"3 |||"), b"s0\ns1\ns2\ns3\n", b"r0\nr1\nr2\nr3\n")
    assert outline(pairs)[2:] == [("2", 0, b"s2", (b"r2",)), ("3", 1, b"s3", (b"r3",))]


def test_lists_within_other_readers_begin_where_these_do(tmp_path: Path) -> None:
    (tmp_path / "lists").write_bytes(b"1 ||| a ||| -1\n2 ||| b ||| -2\n")
    (tmp_path / "scores").write_bytes(b"-5\n-6\n")
    (tmp_path / "references").write_bytes(b"1 ||| r1\n2 ||| r2\n")
    inner = {"name": "moses", "first_id": 1}
    lists = str(tmp_path / "lists")
    paths = {"joined": f"{lists},{tmp_path / 'scores'}", "merged": f"{lists},{lists}"}
    for name, path in paths.items():
        reader = make_reader({"name": name, "of": inner}, "reader")
        pairs = list(read_text_pairs(reader, path, references=[tmp_path / "references"], form="id"))
        assert [(nbest.id, nbest.references) for nbest in pairs] == [("1", (b"r1",)), ("2", (b"r2",))]


@pytest.mark.parametrize("policy", ["error", "skip"])
def test_too_few_sources_or_references(files: Files, policy: Any) -> None:
    message = r"references:2: 2 references for at least 3 lists of \S*lists \(list 2 at line 4\)"
    with pytest.raises(DataError, match=message):
        files.read(LISTS, b"s0\ns1\ns2\n", b"r0\nr1\n", count=SkipCount(policy))
    with pytest.raises(DataError, match=r"sources:2: 2 sources for at least 3 lists"):
        files.read(LISTS, b"s0\ns1\n", b"r0\nr1\nr2\n", count=SkipCount(policy))


def test_ids_from_1_are_recognised(files: Files) -> None:
    lists = b"1 ||| a ||| -1\n2 ||| b ||| -1\n"
    with pytest.raises(DataError, match=r"ids seem to start at 1: set data.reader.first_id: 1"):
        files.read(lists, None, b"r1\nr2\n")
    assert outline(files.read(lists, None, b"r1\nr2\n", Moses(first_id=1)))[0] == ("1", 1, b"", (b"r1",))
    with pytest.raises(DataError) as error:
        files.read(LISTS, None, b"r0\nr1\n")
    assert "first_id" not in str(error.value)


def test_missing_lists_at_the_end(files: Files) -> None:
    sources, references = b"s0\ns1\ns2\ns3\ns4\n", b"r0\nr1\nr2\nr3\nr4\n"
    with pytest.raises(DataError, match=r"lists:4: list 3: 3 lists, the last of them 2, for more sources and ref"):
        files.read(LISTS, sources, references)
    count = SkipCount("skip")
    pairs = files.read(LISTS, sources, references, count=count)
    assert outline(pairs)[3:] == [("3", 0, b"s3", (b"r3",)), ("4", 0, b"s4", (b"r4",))]
    assert dict(count.reasons) == {"missing": 2}
    assert pairs[3].scores.shape == (0, 2)
    assert pairs[3].names == ("F", "score")
    (alone,) = files.read(b"", None, b"r0\n", count=SkipCount("skip"))
    assert outline([alone]) == [("0", 0, b"", (b"r0",))]
    assert alone.base.shape == (0,)
    with pytest.raises(DataError, match="no lists, for more references"):
        files.read(b"", None, b"r0\n")
    assert files.read(b"", b"", b"") == []


@pytest.mark.parametrize("policy", ["error", "skip"])
@pytest.mark.parametrize("extra", [0, 1])
def test_sources_and_references_of_different_lengths(files: Files, policy: Any, extra: int) -> None:
    sides = [b"x0\nx1\nx2\n", b"x0\nx1\nx2\nx3\n"]
    shorter, longer = ("sources", "references") if extra else ("references", "sources")
    with pytest.raises(DataError, match=rf"{shorter}: 3 {shorter}, but \S*{longer} has {longer} for more"):
        files.read(LISTS, sides[1 - extra], sides[extra], count=SkipCount(policy))


def test_sources_and_references_of_the_lists_themselves(files: Files) -> None:
    lists = b"""{"source": "s0", "references": ["r0"], "candidates": ["a"]}
{"source": "s1", "references": ["r1", "R1"], "candidates": ["a"]}"""
    found = files.read(lists, None, None, JsonlReader())
    assert outline(found) == [("0", 1, b"s0", (b"r0",)), ("1", 1, b"s1", (b"r1", b"R1"))]
    over = files.read(lists, b"x0\nx1\n", b"y0\ny1\n", JsonlReader())  # files go first
    assert outline(over) == [("0", 1, b"x0", (b"y0",)), ("1", 1, b"x1", (b"y1",))]


def test_what_is_needed_and_missing(files: Files) -> None:
    with pytest.raises(DataError, match=r"list 0: no references: name their files with data\.references"):
        files.read(LISTS, b"s0\ns1\ns2\n", None)
    assert outline(files.read(LISTS, None, None, needs_references=False))[0] == ("0", 2, b"", ())
    count = SkipCount("skip")
    lists = b'{"references": ["r"], "candidates": ["a"]}\n{"source": "s", "candidates": ["a"]}'
    pairs = files.read(lists, None, None, JsonlReader(), count=count)
    assert outline(pairs) == [("0", 1, b"", (b"r",))]
    assert dict(count.reasons) == {"no reference": 1}


def test_readers_of_trees_are_refused(files: Files) -> None:
    with pytest.raises(DataError, match="lists of trees"):
        files.read(b"1\ta\n-1.5\n(S1 (NN one))\n", None, b"r\n", CharniakReader())


GOOD = ["(S (NN a) (VB b))", "(S (X (NN a)) (VB b))"]
GOLD = "(S (NN a) (VP (VB b)))"


def listing(name: str, texts: list[str]) -> str:
    return f"{len(texts)}\t{name}\n" + "".join(f"-{i}.5\n{text}\n" for i, text in enumerate(texts)) + "\n"


class TreeFiles:
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
def tree_files(tmp_path: Path) -> TreeFiles:
    return TreeFiles(tmp_path)


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
def test_bad_pairs(tree_files: TreeFiles, name: str) -> None:
    reason, bad, gold, place, message = BAD[name]
    tree_files.write(listing("one", GOOD) + bad + listing("two", ["(NN c)"]), f"{GOLD}\n{gold}\n(NN c)\n")
    with pytest.raises(DataError) as caught:
        tree_files.read()
    assert str(caught.value).startswith(f"{tree_files.nbest.parent}/{place}: list x: ")
    assert message in str(caught.value)
    assert "--on-bad-list skip" in str(caught.value)
    found, count = tree_files.read("skip")
    first = count.first | count.first_candidates
    assert found == (["one", "two"] if count.skipped else ["one", "x", "two"])
    assert dict(count.reasons + count.candidate_reasons) == {reason: 1}
    assert f"{tree_files.nbest.parent}/{place}: list x: " in first[reason]


WORDS = {
    # candidates, what is said of them where no gold tree tells which words are right
    "another word": ([*GOOD, "(S (NN a) (VB c))"], "candidates 1 and 3 have different words: 2 and 2 words"),
    "fewer words": ([GOOD[0], "(NN a)"], "at word 2 'b' and 'the end'"),
    "after a failed parse": (["(())", *GOOD, "(NN a)"], "candidates 2 and 4"),
    "failed parses": (["(())", GOOD[0], "(S1)"], None),
    "nothing else": (["(())", "(S1)"], None),
}


@pytest.mark.parametrize("name", WORDS)
def test_candidates_of_different_sentences(tree_files: TreeFiles, name: str) -> None:
    texts, message = WORDS[name]
    tree_files.write(listing("x", texts), GOLD)
    assert tree_files.read()[0] == ["x"]
    (nbest,) = CharniakReader().read(tree_files.nbest)
    if message is None:
        parse_list(nbest, tree_files.symbols)
        return
    with pytest.raises(Problem, match=re.escape(message)) as caught:
        parse_list(nbest, tree_files.symbols)
    assert (caught.value.reason, caught.value.line) == ("words", 3 + 2 * (len(texts) - 1))


@pytest.mark.parametrize("gold", ["(S (NN a) (VB B))", "(S (NN a) (VB b) (. .))", "(())", "(S1)"])
def test_a_gold_tree_of_other_words_is_for_the_metric(tree_files: TreeFiles, gold: str) -> None:
    tree_files.write(listing("x", GOOD), gold)
    assert tree_files.read()[0] == ["x"]


def test_lists_merged_by_damage_are_noticed_at_the_end(tree_files: TreeFiles) -> None:
    merged = listing("one", GOOD).rstrip() + "\n" + listing("two", GOOD).replace("2\ttwo", "x\ttwo")
    tree_files.write(merged + listing("three", GOOD), f"{GOLD}\n" * 3)
    with pytest.raises(DataError, match=r"at least 3 gold trees for 2 lists .* same order$"):
        tree_files.read("skip")
    tree_files.write("", GOLD)
    with pytest.raises(DataError, match=r"at least 1 gold trees for 0 lists"):
        tree_files.read("skip")


def test_a_list_that_is_missing_is_found_by_its_words(tree_files: TreeFiles) -> None:
    golds = [GOLD.replace("b", word) for word in "bcd"]
    first, _, last = ([text.replace("b", word) for text in GOOD] for word in "bcd")
    tree_files.write(listing("one", first) + listing("three", last), "\n".join(golds))
    with pytest.raises(DataError, match=r"in the same order; the first whose words are others is three, line 7$"):
        tree_files.read()


def test_unbalanced_gold_cannot_be_skipped(tree_files: TreeFiles) -> None:
    tree_files.write(listing("one", GOOD) * 2, f"{GOLD}\n{GOLD[:-1]}\n")
    with pytest.raises(DataError, match=r"gold:2: the tree that starts here is not closed"):
        tree_files.read("skip")
