"""The script for jackknifing, as its page calls it: every sentence is held out once, and its list is in its place."""

import shlex
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from pairs import read_pairs

from rerank.data.symbols import SymbolTable
from rerank.readers.trees.charniak import CharniakReader

SCRIPT = Path(__file__).parents[2] / "recipes" / "jackknife.py"
FLAT = "(S1 (S (NP (PRP I))\n  (VP (VBD saw) (NP (DT a) (NN man)) (PP (IN with) (NP (NNS dogs))))))"
NESTED = "(S1 (S (NP (PRP I))\n  (VP (VBD saw) (NP (NP (DT a) (NN boat)) (PP (IN with) (NP (NNS dogs)))))))"
PLAIN = "(S1 (S (NP (PRP I))\n  (VP (VBD saw) (NP (DT a) (NN boat)))))"
TREES = FLAT, PLAIN, NESTED, PLAIN.replace("boat", "man")


def jackknife(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, check=False)


@pytest.fixture
def folds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folds of two sentences each, with the lists that a parser makes of them."""
    monkeypatch.chdir(tmp_path)
    Path("parse_with_nltk.py").write_text(dict(pages.files("docs/making-lists/parses.md"))["parse_with_nltk.py"])
    Path("treebank.mrg").write_text("\n".join(TREES))
    assert jackknife("split", "2", "folds", "treebank.mrg").returncode == 0
    (loop,) = (body for body in pages.fences("docs/jackknifing.md", "sh") if "for fold in" in body)
    done = subprocess.run(["sh", "-c", loop.replace("python ", f"{shlex.quote(sys.executable)} ")], check=False)
    assert done.returncode == 0
    return tmp_path / "folds"


def test_lists_come_back_in_the_order_of_the_treebank(folds: Path) -> None:
    golds, trained = ([(folds / f"0{k}" / name).read_text() for k in (0, 1)] for name in ("gold.mrg", "train.mrg"))
    assert golds == trained[::-1]
    assert [line for text in golds for line in text.splitlines()] == [" ".join(tree.split()) for tree in TREES]
    assert (folds / "01" / "sentences.txt").read_text() == "I saw a boat with dogs\nI saw a man\n"
    done = jackknife("join", "folds", "folds/00/lists", "folds/01/lists")
    assert done.returncode == 0, done.stderr
    Path("joined").write_bytes(done.stdout)
    pairs = list(read_pairs(CharniakReader(), "joined", "treebank.mrg", SymbolTable()))
    assert [nbest.id for nbest, *_ in pairs] == ["0", "1", "2", "3"]
    assert [nbest.texts[0].count(b"(PP") for nbest, *_ in pairs] == [1, 0, 1, 0]
    assert [nbest.texts[0].count(b"(NP (NP") for nbest, *_ in pairs] == [1, 0, 0, 0]  # what the other fold has taught


@pytest.mark.usefixtures("folds")
def test_exchanged_files_are_refused() -> None:
    done = jackknife("join", "folds", "folds/01/lists", "folds/00/lists")
    assert done.returncode == 1
    assert b"folds/01/lists:1: not the list of its sentence, 'I saw a man with dogs'" in done.stderr
