"""The shipped quickstart data: its format, its promises, and that its script still makes it."""

import gzip
import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from nltk import Tree

DATA = Path(__file__).resolve().parents[2] / "data"
SHIPPED = DATA / "quickstart"
SPLITS = ("train", "dev", "test")
PUNCTUATION = (",", ".")


class List(NamedTuple):
    """A list as it stands in the file."""

    name: str
    scores: list[str]
    trees: list[str]


def text_of(name: str) -> str:
    return gzip.decompress((SHIPPED / name).read_bytes()).decode("ascii")


def lists_of(split: str) -> list[List]:
    blocks = text_of(f"{split}.nbest.gz").split("\n\n")
    assert blocks.pop() == "", "the file ends with an empty line"
    lists = []
    for block in blocks:
        head, *rest = block.split("\n")
        count, name = head.split("\t")
        assert len(rest) == 2 * int(count), name
        lists.append(List(name, rest[::2], rest[1::2]))
    return lists


def brackets(tree: str) -> Counter[tuple[str, int, int]]:
    """Labelled spans without S1, preterminals and punctuation."""
    spans: Counter[tuple[str, int, int]] = Counter()
    open_nodes: list[tuple[str, int]] = []
    words = 0
    for label, word in re.findall(r"\((\S+)(?: ([^\s()]+)\))?|\)", tree):
        if word:
            words += label not in PUNCTUATION
        elif label:
            open_nodes.append((label, words))
        else:
            name, start = open_nodes.pop()
            spans[name, start, words] += name != "S1"
    assert not open_nodes
    return +spans


def counts(candidate: str, gold: str) -> tuple[int, int]:
    """Twice the matched brackets, and the brackets of both: their quotient is F."""
    found, right = brackets(candidate), brackets(gold)
    return 2 * (found & right).total(), found.total() + right.total()


@pytest.fixture(scope="module")
def lists() -> dict[str, list[List]]:
    return {split: lists_of(split) for split in SPLITS}


@pytest.fixture(scope="module")
def gold() -> dict[str, list[str]]:
    return {split: text_of(f"{split}.gold.gz").splitlines() for split in SPLITS}


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """The script as a module; it finds its neighbours as it does when run."""
    sys.path.insert(0, str(DATA))
    try:
        yield importlib.import_module("make_quickstart")
    finally:
        sys.path.remove(str(DATA))


@pytest.fixture(scope="module")
def treebank(script: ModuleType) -> dict[str, list[Tree]]:
    return script.treebank(script.SEED)


def test_the_figures_of_the_readme_are_those_of_the_files(lists, gold):
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    for split in SPLITS:
        sums = {"base": [0.0, 0.0], "oracle": [0.0, 0.0], "random": [0.0, 0.0]}
        for item, tree in zip(lists[split], gold[split], strict=True):
            rows = [counts(candidate, tree) for candidate in item.trees]
            mean = tuple(sum(column) / len(rows) for column in zip(*rows, strict=True))
            for name, row in zip(sums, (rows[0], max(rows, key=lambda row: row[0] / row[1]), mean), strict=True):
                sums[name] = [total + part for total, part in zip(sums[name], row, strict=True)]
        base, oracle, chance = (100 * matched / both for matched, both in sums.values())
        assert 80 < base < 88
        assert 96 < oracle < 99.5
        assert chance < base - 3
        candidates = sum(len(item.trees) for item in lists[split])
        row = f"| {split} | {len(lists[split]):,} | {candidates:,} | {base:.1f} | {oracle:.1f} | {chance:.1f} |"
        assert row in readme


def test_the_script_makes_the_shipped_gold_trees(script, treebank):
    for split in SPLITS:
        assert script.gold_text(treebank[split]) == text_of(f"{split}.gold.gz")


@pytest.mark.parametrize("split", SPLITS)
def test_the_script_makes_the_shipped_lists(split, lists, script, treebank):
    """The first ten of at most 15 words, with the grammar of all training trees: a long one takes a minute."""
    short = [i for i, tree in enumerate(treebank[split]) if len(tree.leaves()) <= 15][:10]
    made = script.nbest_text(split, [treebank[split][i] for i in short], script.estimate(treebank["train"]))
    expected = [lists[split][i]._replace(name=f"{split}-{number}") for number, i in enumerate(short, start=1)]
    for item in expected:
        lines = [line for pair in zip(item.scores, item.trees, strict=True) for line in pair]
        text = "\n".join([f"{len(item.trees)}\t{item.name}", *lines, "\n"])
        assert made.startswith(text)
        made = made.removeprefix(text)
    assert made == ""
    assert sum(len(item.trees) for item in expected) > 2 * len(expected)


def test_the_command_writes_the_same_bytes_each_time(script, monkeypatch, tmp_path):
    monkeypatch.setattr(script, "SIZES", {"train": 6, "dev": 1, "test": 1})
    runs = {"one": "7", "same": "7", "other": "8"}
    for name, seed in runs.items():
        script.main(["--output", str(tmp_path / name), "--seed", seed])
    written = {name: {path.name: path.read_bytes() for path in sorted((tmp_path / name).iterdir())} for name in runs}
    assert sorted(written["one"]) == sorted(f"{split}.{kind}.gz" for split in SPLITS for kind in ("nbest", "gold"))
    assert written["one"] == written["same"]
    assert all(written["one"][name] != written["other"][name] for name in written["one"])
