"""Treebanks as they are shipped, each tree once; lists of parses, bad ones in their places with the reason; words that
are written in several ways have one form on both sides."""

import gzip
import io
import json
import os
import re
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import small
from commands import Command, refused
from outcomes import good, outline, problem_of
from pairs import read_pairs

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.data.trees import GOLD, bracket_words, no_changes, normal_trees, normal_word, parse_brackets, yield_words
from rerank.metrics.evaluation import evaluate, refused_list
from rerank.metrics.parseval import Parseval
from rerank.readers.lists import Lists
from rerank.readers.reader import SkipCount
from rerank.readers.trees.charniak import CharniakReader
from rerank.readers.trees.treebank import read_treebank, treebank_files
from rerank.runs import experiment

TREES = ["( (S (NP-SBJ (PRP It))\n     (VP (VBD rained))\n     (. .)) )", "( (NP (NN Art)) )", "( (INTJ (UH No)) )"]


def put(root: Path, name: str, text: str) -> str:
    """A file below ``root``, compressed if its name says so."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


@pytest.fixture
def wsj(tmp_path: Path) -> Path:
    """Three sections with a tree each, as the Penn Treebank prints them, and what lies around them."""
    put(tmp_path, "wsj/00/wsj_0001.mrg", f"\n{TREES[0]}\n")
    put(tmp_path, "wsj/02/wsj_0199.MRG.gz", TREES[1])
    put(tmp_path, "wsj/02-more/wsj_0200.mrg", f"*x* a notice *x*\n\n{TREES[2]}\n")
    for other in ("wsj/readme.txt", "wsj/00/._wsj_0001.mrg", "wsj/00/wsj_0001.pos"):
        put(tmp_path, other, "not a tree")
    return tmp_path / "wsj"


def texts(*names: str | Path) -> list[str]:
    return [gold.text.decode() for gold in read_treebank(treebank_files(*names))]


def test_a_folder_a_pattern_and_a_list_of_files(wsj: Path) -> None:
    assert texts(wsj) == TREES
    assert texts(wsj / "0*") == TREES
    assert texts(wsj / "0[02]") == TREES[:2]
    assert texts(wsj / "**" / "*.mrg") == [TREES[0], TREES[2]]
    assert texts(wsj / "02", wsj / "00") == texts(f"{wsj}/02,{wsj}/00/*.mrg") == [TREES[1], TREES[0]]


@pytest.mark.parametrize("ending", [".mrg", ".prd", ".psd", ".mrg.gz", ".psd.xz"])
def test_endings_of_a_folder(tmp_path: Path, ending: str) -> None:
    put(tmp_path, f"b{ending}", "")
    put(tmp_path, f"a{ending}", "")
    assert treebank_files(tmp_path) == [f"{tmp_path}/a{ending}", f"{tmp_path}/b{ending}"]


def test_a_file_is_taken_by_its_name(tmp_path: Path) -> None:
    odd = put(tmp_path, "a,[b]*.txt", TREES[0])
    assert texts(odd) == TREES[:1]
    assert treebank_files("-") == ["-"]
    assert treebank_files("none.mrg") == ["none.mrg"]  # opening it says what is wrong


@pytest.mark.parametrize(
    ("files", "name", "message"),
    [
        (["a.txt"], "", r"t: no file below this folder ends in \.mrg, \.prd, \.psd; for others .*\*\.parse"),
        (["mrg/a.mrg", "prd/a.prd"], "", r"t: files below this folder end in \.mrg and \.prd; name one .*/\*\.mrg$"),
        (["a.mrg", "a.mrg.gz"], "", r"t/a\.mrg(\.gz)?: is there as .*a\.mrg(\.gz)? too"),
        (["a.mrg"], "*.prd", r"t/\*\.prd: no file matches this pattern"),
        (["a.mrg"], "a.mrg,{root}/../t/a.mrg", r"t/\.\./t/a\.mrg: is named twice, here and as .*t/a\.mrg"),
        (["a.mrg"], ",", "a file name is empty"),
        (["a.mrg"], "*\0", "no file matches"),
    ],
)  # fmt: skip
def test_names_that_stand_for_no_treebank(tmp_path: Path, files: list[str], name: str, message: str) -> None:
    root = tmp_path / "t"
    for file in files:
        put(root, file, TREES[0])
    with pytest.raises(DataError, match=message):
        treebank_files(f"{root}/{name.replace('{root}', str(root))}" if name else str(root))


def test_links_to_folders_are_followed_but_not_in_circles(wsj: Path, tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "linked").symlink_to(wsj / "00")
    assert texts(tmp_path / "some") == TREES[:1]
    (tmp_path / "some" / "circle").symlink_to(tmp_path)
    with pytest.raises(DataError, match="is a link to a folder that is read anyway"):
        treebank_files(tmp_path / "some")


def test_words_tell_what_lists_that_can_be_read_once_lack(wsj: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lists")
    one = b"1\ta\n-1\n(NP (NN Art))\n\n"
    writer = threading.Thread(target=(tmp_path / "lists").write_bytes, args=(one,), daemon=True)
    writer.start()
    with pytest.raises(DataError, match=r"gold trees for 1 list.*; the first whose words are others is a, line 1$"):
        list(read_pairs(CharniakReader(), tmp_path / "lists", wsj, SymbolTable()))
    writer.join()


def test_errors_name_the_file_among_many(wsj: Path, tmp_path: Path) -> None:
    def read(lists: str) -> None:
        nbest = put(tmp_path, "lists", lists)
        list(read_pairs(CharniakReader(), nbest, wsj, SymbolTable()))

    one, two = "1\ta\n-1\n(NP (NN Art))\n\n", "1\tb\n-1\n(S (PRP It) (VBD rained) (. .))\n\n"
    with pytest.raises(DataError, match=r"wsj/02-more/wsj_0200\.mrg:3: at least 3 gold trees for 2 lists"):
        read(two + one)
    with pytest.raises(DataError, match=r"wsj/02-more/wsj_0200\.mrg:3: 3 gold trees for at least 4 lists.*order$"):
        read(two + one + "1\tc\n-1\n(UH No)\n\n0\td\n")
    put(wsj, "02/wsj_0199.MRG.gz", "(S a (NN b))")
    with pytest.raises(DataError, match=r"wsj/02/wsj_0199\.MRG\.gz:1: list a: in the gold tree: a word beside"):
        read(two + one)
    put(wsj, "02-more/wsj_0200.mrg", "(NN a")
    with pytest.raises(DataError, match=r"wsj_0200\.mrg:1: the tree that starts here is not closed"):
        texts(wsj)


def spread(root: Path, split: str, places: list[int]) -> None:
    """The gold trees of a split in several files of a folder, cut at ``places``, in place of the one file."""
    golds = small.golds_of(root / f"{split}.gold.gz")
    for number, (first, last) in enumerate(zip([0, *places], [*places, len(golds)], strict=True)):
        put(root, f"{split}/{number:02}/wsj.mrg", "".join(f"{tree}\n" for tree in golds[first:last]))
    (root / f"{split}.gold.gz").unlink()


def test_recipes_and_commands_take_treebanks(small_data: Path, tmp_path: Path, rerank: Command) -> None:
    root = tmp_path / "data"
    root.mkdir()
    small.write_slices(root)
    whole = rerank("oracle", f"{root}/test.nbest.gz", f"{root}/test.gold.gz").out
    spread(root, "train", [0, 30, 31, 100])
    spread(root, "test", [11])
    assert rerank("oracle", f"{root}/test.nbest.gz", f"{root}/test").out == whole
    gold = ["{root}/{split}/00", "{root}/{split}/0[1-9]/*.mrg"]
    found = experiment.run(small.recipe(root, data={"gold": gold, "dev": None}), tmp_path / "runs" / "a")
    expected = experiment.run(small.recipe(small_data, data={"dev": None}), tmp_path / "others" / "b")
    assert small.without_clock(found["splits"]) == small.without_clock(expected["splits"])
    trees = put(tmp_path, "hyp", "".join(one.split("\n")[2] + "\n" for one in small.lists_of(root / "test.nbest.gz")))
    scores = rerank("evaluate", trees, f"{root}/test").out
    assert scores == rerank("evaluate", trees, str(small_data / "test.gold.gz")).out
    refused(rerank("evaluate", trees, f"{root}/*.mrg"), "no file matches this pattern")
    model = str(tmp_path / "runs" / "a" / "model")
    explained = rerank("explain", model, f"{root}/test.nbest.gz", "--list", "test-3", "--gold", f"{root}/test")
    assert (explained.code, "oracle" in explained.out) == (0, True)
    assert (
        len(json.loads((tmp_path / "runs" / "a" / "model" / "model.json").read_text())["about"]["files"]["gold"]) == 5
    )


A = b"2\ta\n-1.5\n(S1 (NN one))\n-2.25\n(S1 (NN two))\n\n"
B = b"1\tb\n-3\n(S1 (NN three))\n\n"
C = b"1\tc\n-4.5\n(S1 (NN four))\n\n"


def read(tmp_path: Path, data: bytes, reader: CharniakReader | None = None) -> list[Lists]:
    path = tmp_path / "lists"
    path.write_bytes(data)
    return list((reader or CharniakReader()).read(path))


def test_a_list_has_its_texts_scores_and_lines(tmp_path: Path) -> None:
    first, second = map(good, read(tmp_path, A + B))
    assert (first.id, first.line, first.path) == ("a", 1, str(tmp_path / "lists"))
    assert first.texts == [b"(S1 (NN one))", b"(S1 (NN two))"]
    assert list(first.lines) == [3, 5]
    assert first.scores.tolist() == [[-1.5], [-2.25]]
    assert first.base.dtype == np.float64
    assert first.base.tolist() == [-1.5, -2.25]
    assert (second.id, second.line, list(second.lines), second.base.tolist()) == ("b", 7, [9], [-3.0])


def test_headers(tmp_path: Path) -> None:
    tail = b"\n-1\n(NN x)\n\n"
    heads = [b"1", b"1 wsj 0001 (x)", b"1\t\tid ", b" 1  7"]
    found = read(tmp_path, b"".join(head + tail for head in heads))
    assert outline(found) == [("0", 1), ("wsj 0001 (x)", 1), ("id", 1), ("7", 1)]
    numbered = read(tmp_path, b"".join(head + tail for head in heads), CharniakReader(ids="ordinal"))
    assert outline(numbered) == [("0", 1), ("1", 1), ("2", 1), ("3", 1)]


def test_lists_without_candidates_are_valid(tmp_path: Path) -> None:
    for blank in (b"\n", b""):
        found = read(tmp_path, b"0\tnone\n" + blank + A + b"0\tmore\n" + blank + B + b"0\tlast")
        assert outline(found) == [("none", 0), ("a", 2), ("more", 0), ("b", 1), ("last", 0)]
        empty = good(found[0])
        assert (empty.base.shape, empty.scores.shape[0], list(empty.candidates)) == ((0,), 0, [])


def test_several_scores_and_the_column_of_the_base(tmp_path: Path) -> None:
    data = b"2\ta\n0.5\t-1 3e2\n(NN x)\n.25 -2 1\n(NN y)\n"
    first = good(read(tmp_path, data)[0])
    assert first.scores.tolist() == [[0.5, -1, 300], [0.25, -2, 1]]
    assert first.base.tolist() == [0.5, 0.25]
    assert good(read(tmp_path, data, CharniakReader(score=1))[0]).base.tolist() == [-1, -2]
    (bad,) = read(tmp_path, data, CharniakReader(score=3))
    assert (bad.problem.reason, bad.line) == ("columns", 2)
    assert "found 3 scores" in bad.problem.message


def test_white_space_before_trees_and_scores(tmp_path: Path) -> None:
    found = read(tmp_path, b"2\tx\n  -1 \n\t(NN x) \n -2\n (NN y)\n\n" + B)
    assert outline(found) == [("x", 2), ("b", 1)]
    assert good(found[0]).base.tolist() == [-1, -2]


BAD = {
    # reason, what it is, the bad list's line in error (from 1), part of the message
    "garbage header": ("header", b"x\ty\n-1\n(NN x)\n\n", 1, "expected its header"),
    "endless count": ("header", b"9" * 5000 + b"\tx\n-1\n(NN x)\n\n", 1, "..."),
    "tree first": ("header", b"(NN x)\n\n", 1, "'(NN x)'"),
    "tree for an id": ("header", b"1\t( (NN x) )\n\n", 1, "expected its header"),
    "one missing": ("too few", b"3\tx\n-1\n(NN x)\n-2\n(NN y)\n\n", 6, "says 3 candidates; found 2"),
    "tree missing": ("too few", b"2\tx\n-1\n(NN x)\n-2\n\n", 5, "found 1 and a score without its tree"),
    "blank inside": ("too few", b"2\tx\n-1\n(NN x)\n\n-2\n(NN y)\n\n", 4, "found 1"),
    "a large claim": ("too few", b"999999999\tx\n" + b"-1\n(NN x)\n" * 9000 + b"\n", 18002, "found 9000"),
    "one more": ("too many", b"1\tx\n-1\n(NN x)\n-2.5\n(NN y)\n\n", 4, "found '-2.5'"),
    "one more, indented": ("too many", b"1\tx\n-1\n  (NN x)\n-2.5\n(NN y)\n\n", 4, "found '-2.5'"),
    "a word": ("score", b"2\tx\n-1\n(NN x)\nhigh\n(NN y)\n\n", 4, "found 'high'"),
    "no score": ("score", b"2\tx\n-1\n(NN x)\n(NN y)\n-2\n\n", 4, "found '(NN y)'"),
    "white space": ("too few", b"1\tx\n \n(NN x)\n\n", 2, "found 0"),
    "nan": ("infinite score", b"2\tx\n-1\n(NN x)\nnan\n(NN y)\n\n", 4, "found 'nan'"),
    "overflow": ("infinite score", b"1\tx\n1 1e999\n(NN x)\n\n", 2, "1e999"),
    "columns": ("columns", b"2\tx\n-1 2\n(NN x)\n-1\n(NN y)\n\n", 4, "found 1 scores; most candidates of the list"),
    "a word for a tree": ("tree", b"1\tx\n-1\nNN\n\n", 3, "found 'NN'; expected the candidate's tree"),
    "nul": ("nul", b"1\tx\n-1\n(NN \0)\n\n", 3, "NUL"),
    "nul in the id": ("nul", b"1\tx\0\n-1\n(NN y)\n\n", 1, "NUL"),
    "used id": ("duplicate id", b"1\ta\n-1\n(NN y)\n\n", 1, "list at line 1; the reader's option ids: ordinal"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_lists_stand_in_their_places(tmp_path: Path, name: str) -> None:
    reason, data, line, message = BAD[name]
    found = read(tmp_path, A + data + B + C)
    bad = found[1]
    assert [kind for _, kind in outline(found)] == [2, reason, 1, 1]
    assert [one.id for one in (found[0], *found[2:])] == ["a", "b", "c"]
    assert (problem_of(bad).path, problem_of(bad).line) == (str(tmp_path / "lists"), A.count(b"\n") + line)
    assert message in problem_of(bad).message
    assert bad.id == {"header": "1", "duplicate id": "a"}.get(reason, bad.id)
    assert [kind for _, kind in outline(read(tmp_path, A + data.rstrip()))] == [2, reason]  # at the end of a file


@pytest.mark.parametrize("reason", ["too few", "header"])
def test_lists_without_ids_and_damaged_headers_behind_a_bad_list(tmp_path: Path, reason: str) -> None:
    bare = {"too few": b"1\n\n", "header": b"x\n-1\n(NN x)\n\n"}[reason]
    found = read(tmp_path, BAD["one missing"][1] + bare + b"1\n-1\n(NN x)\n\n" + b"0\n\n" + C)
    assert outline(found) == [("x", "too few"), ("1", reason), ("2", 1), ("3", 0), ("c", 1)]


@pytest.mark.parametrize("name", [name for name, bad in BAD.items() if bad[0] not in ("header", "too many")])
def test_the_next_list_is_found_without_blank_lines_too(tmp_path: Path, name: str) -> None:
    reason, data, _, _ = BAD[name]
    if name != "blank inside":
        data = data.replace(b"\n\n", b"\n")
    text = A.replace(b"\n\n", b"\n") + data + B.replace(b"\n\n", b"\n") + C
    assert [kind for _, kind in outline(read(tmp_path, text))] == [2, reason, 1, 1]


def test_write_gives_back_what_was_read(tmp_path: Path) -> None:
    text = A.replace(b"-2.25", b"-2.25\t0.1").replace(b"-1.5", b"-1.5\t1e-300") + B.replace(b"-3", b"-3.0")
    out = io.BytesIO()
    for nbest in read(tmp_path, text + b"0\tnone\n\n"):
        CharniakReader().write(out, good(nbest))
    assert out.getvalue() == text + b"0\tnone\n\n"


# Forms, with the ways to write them.
WAYS = {
    "1/2": [r"1\/2"],
    "S&P*": [r"S&P\*"],
    '"': ["``", "''", "“", "”", "„"],
    "'": ["`", "‘", "’"],
    "don't": ["don’t"],
    "-LRB-": ["("],
    "-RRB-": [")"],
    "-LSB-a-RSB-": ["[a]"],
    "-LCB--RCB-": ["{}"],
    "5'": ["5’"],
    "5''": ["5’’"],
    "*T*-1": [],
    "und": [],
}


@pytest.mark.parametrize(("form", "way"), [(form, way) for form, ways in WAYS.items() for way in [form, *ways]])
def test_a_word_has_one_form(form: str, way: str) -> None:
    assert normal_word(way) == form


def words_of(text: str) -> tuple[list[str], Counter[str]]:
    symbols, changed = SymbolTable(), no_changes()
    trees = normal_trees(parse_brackets(bracket_words([text.encode()]), symbols), symbols, changed, GOLD)
    return yield_words(trees, 0, symbols), changed


def test_trees_are_normalized_and_changes_counted() -> None:
    found, changed = words_of(r"(S (NN 1\/2) (`` ``) (NN b) (NN 1\/2) (-NONE- *) (X (NN b)) ('' ”))")
    assert found == ["1/2", '"', "b", "1/2", "b", '"']
    assert changed == {"candidates": 0, "gold trees": 4}


def test_brackets_that_are_words_are_read() -> None:
    found, changed = words_of("( (S (-LRB- ()(NN a) (X (-RRB- ))) (NP (-LRB- -LRB-))) )")
    assert (found, changed[GOLD]) == (["-LRB-", "a", "-RRB-", "-LRB-"], 2)
    plain = [b"(S (NN a) (VP (VB b) ) )", b"( (S (NN a)) )", b"(S1 ())", b"( (S1 ()) )"]  # two failed parses
    assert bracket_words(plain) == plain


def pairs(directory: Path, candidates: list[str], gold: str, *, normalize: bool) -> tuple[SkipCount, list[bytes]]:
    """One list and its gold tree, read; returns the counts and the texts of the list. Other words are an error."""
    nbest, golds, count = directory / "nbest", directory / "gold", SkipCount()
    nbest.write_text(f"{len(candidates)}\tone\n" + "".join(f"-1\n{text}\n" for text in candidates) + "\n")
    golds.write_text(gold)
    metric, symbols = Parseval(), SymbolTable()
    found = list(read_pairs(CharniakReader(), nbest, golds, symbols, count=count, normalize=normalize))
    for each, trees, tree in found:
        if said := refused_list(metric, each, tree, trees, metric.stats(tree, trees, symbols)[1], symbols):
            raise DataError(said)
    return count, [text for each, *_ in found for text in each.texts]


def test_both_sides_are_compared_in_one_form(tmp_path: Path) -> None:
    candidates = [r"(S (`` ``) (NN 1\/2) (-LRB- ())", '(S (`` ") (NN 1/2) (-LRB- -LRB-))']
    count, texts = pairs(tmp_path, candidates, r"(S (`` “) (NN 1\/2) (-LRB- -LRB-))", normalize=True)
    assert texts == [text.encode() for text in candidates]  # as they are written
    assert count.as_dict()["normalized"] == {"candidates": 3, "gold trees": 2}
    assert "words normalised: 3 of candidates, 2 of gold trees" in str(count)
    twice = SkipCount()
    twice.add(count)
    twice.add(count)
    assert twice.as_dict()["normalized"] == {"candidates": 6, "gold trees": 4}
    for one in candidates:
        with pytest.raises(DataError):
            pairs(tmp_path, [one], "(S (`` “) (NN 1/2) (-LRB- -LRB-))", normalize=False)
    with pytest.raises(DataError, match="at word 2 found 'b', the reference has '2'"):
        pairs(tmp_path, ["(S (NN `) (NN b))"], "(S (NN ') (NN 2))", normalize=True)


def test_words_that_differ_in_form_only_are_said_to(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"set data\.normalize: true") as caught:
        pairs(tmp_path, ["(S (NN a) (`` ``))"], '(S (NN a) (`` "))', normalize=False)
    assert "at word 2" in str(caught.value)
    with pytest.raises(DataError) as caught:
        pairs(tmp_path, ["(S (NN a) (`` ``))"], '(S (NN b) (`` "))', normalize=False)
    assert "data.normalize" not in str(caught.value)


def test_brackets_that_are_words_are_named_where_words_stay_as_they_are(tmp_path: Path) -> None:
    good, bad, said = (
        "(S (NN a) (-LRB- -LRB-) (-RRB- -RRB-))",
        "(S (NN a) (-LRB- ()(-RRB- )))",
        r"; brackets are words in it: set data\.norm",
    )
    for candidates, gold in (([bad], good), ([good], bad)):
        with pytest.raises(DataError, match=said):
            pairs(tmp_path, candidates, gold, normalize=False)
        pairs(tmp_path, candidates, gold, normalize=True)
    with pytest.raises(DataError, match="word beside") as caught:
        pairs(tmp_path, ["(S a (NN b))"], good, normalize=True)
    assert "brackets are words" not in str(caught.value)


def test_evaluation_in_one_form() -> None:
    gold, test = r"(S (NP (NN 1\/2)) (-LRB- -LRB-))", "(S (NN 1/2) (-LRB- ())"
    changed = no_changes()
    found = evaluate([gold], [test], changed=changed).scores()
    assert found == evaluate([gold], [test.replace("1/2", r"1\/2").replace("()", "-LRB-)")]).scores()
    assert changed == {"candidates": 1, "gold trees": 1}


# In recipes and commands: words of the small lists, as candidates and gold trees write them, and their form.
WRITTEN = {"the": (r"1\/2", "1/2", "1/2"), "a": ("``", "”", '"'), "of": ("(", "-LRB-", "-LRB-")}


def written(root: Path, side: int | None) -> None:
    """The small lists in a folder, with words in the ways of either side, or (None) in normal form on both."""
    root.mkdir()
    small.write_slices(root)
    for split in small.SIZES:
        for place, name in enumerate((f"{split}.nbest.gz", f"{split}.gold.gz")):
            ways = {word: forms[2 if side is None else place] for word, forms in WRITTEN.items()}
            if place == 0:
                small.write_lists(root / name, [rewritten(one, ways) for one in small.lists_of(root / name)])
            else:
                small.write_golds(root / name, [rewritten(one, ways) for one in small.golds_of(root / name)])


def rewritten(text: str, ways: dict[str, str]) -> str:
    return re.sub(r"(\([^\s()]+) (\w+)\)", lambda match: f"{match[1]} {ways.get(match[2], match[2])})", text)


def test_recipes_and_commands_bring_words_to_one_form(tmp_path: Path, rerank: Command) -> None:
    written(tmp_path / "mixed", 0)
    written(tmp_path / "plain", None)
    mixed, plain = (str(tmp_path / name / "test") for name in ("mixed", "plain"))
    about = small.recipe(tmp_path / "mixed", data={"normalize": True})
    found = experiment.run(about, tmp_path / "a" / "run")
    expected = experiment.run(small.recipe(tmp_path / "plain"), tmp_path / "b" / "run")
    assert small.without_clock(found["splits"]) == small.without_clock(expected["splits"])
    golds = Counter(re.findall(r" (\w+)\)", "\n".join(small.golds_of(small.QUICKSTART / "test.gold.gz")[:40])))
    counts = found["corpora"]["test"]["normalized"]
    assert counts["gold trees"] == golds["a"]
    assert counts["candidates"] > golds["the"] + golds["a"] + golds["of"]
    oracle = rerank("oracle", f"{mixed}.nbest.gz", f"{mixed}.gold.gz", "--normalize")
    assert oracle.out == rerank("oracle", f"{plain}.nbest.gz", f"{plain}.gold.gz").out
    assert f"words normalised: {counts['candidates']:,} of candidates, {golds['a']:,} of gold trees" in oracle.err
    best = rerank("rank", str(tmp_path / "a/run/model"), f"{mixed}.nbest.gz").out
    forms = {forms[0]: forms[2] for forms in WRITTEN.values()}
    normal = re.sub(r"(?<=\(\w\w) (1\\/2|``|\()\)", lambda match: f" {forms[match[1]]})", best)
    assert normal == rerank("rank", str(tmp_path / "b/run/model"), f"{plain}.nbest.gz").out
    (tmp_path / "best").write_text(best.replace(" ()", " -LRB-)"))  # in a file of trees brackets must balance
    scored = rerank("evaluate", str(tmp_path / "best"), f"{mixed}.gold.gz", "--normalize").out
    assert f"best: words normalised: {golds['the'] + golds['a']:,} of candidates, {golds['a']:,} of gold" in scored
    refused(rerank("evaluate", "best", "gold", "--metric", "bleu", "--normalize"), "--normalize is for parseval")
    refused(rerank("oracle", "best", "gold", "--metric", "bleu", "--normalize"), "--normalize is for parseval")
