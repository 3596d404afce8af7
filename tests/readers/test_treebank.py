"""Treebanks as they are shipped: folders, patterns and lists of files, in order, each tree once."""

import gzip
import json
import os
import threading
from pathlib import Path

import pytest
import small
from commands import Command, refused
from pairs import read_pairs

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
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
