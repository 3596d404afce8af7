"""Folds of a treebank: every sentence parsed once, by a parser that has not seen it, and its list back in its place."""

import gzip
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from commands import Command, refused

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.formats.berkeley import BerkeleyReader
from rerank.data.symbols import SymbolTable
from rerank.readers import folds as treebank_folds
from rerank.readers.base import read_lists
from rerank.readers.folds import Manifest, split
from rerank.readers.trees.charniak import CharniakReader
from rerank.readers.trees.pairs import read_pairs
from rerank.readers.trees.treebank import treebank_files

FILES = {"00/a.mrg": 3, "00/b.mrg": 1, "01/c.mrg.gz": 4, "02/d.mrg": 0, "02/e.mrg": 2}  # and their sentences
TOTAL = sum(FILES.values())


def tree(number: int) -> str:
    return f"( (S (NP-SBJ (-NONE- *)\n    (NN w{number}))\n   (VP (VBZ 1\\/2)) (-LRB- -LRB-)) )"


def sentence(number: int) -> str:
    return f"w{number} 1\\/2 -LRB-"


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    """Ten sentences in five files, trees over several lines."""
    number = 0
    for name, count in FILES.items():
        path = tmp_path / "treebank" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"\n{tree(i)}\n" for i in range(number, number + count)).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        number += count
    return tmp_path / "treebank"


def numbers(path: Path) -> list[int]:
    """The numbers of the sentences in a file of trees or sentences."""
    return [int(word[1:].rstrip(")")) for word in path.read_text().split() if word[0] == "w"]


def parsed(directory: Path, fold: int, form: str = "charniak") -> str:
    """What a parser makes of the sentences of a fold, in a file next to them: ids from 0 in every fold."""
    path, texts = directory / f"{fold:02}" / f"lists.{form}", []
    for i, line in enumerate((directory / f"{fold:02}" / "sentences.txt").read_text().splitlines()):
        words = line.replace("\\/", "/").split()
        trees = [f"(S1 (S {' '.join(f'({tag} {word})' for word in words)}))" for tag in ("NN", "VB")]
        if form == "charniak":
            texts.append(f"2\t{i}\n" + "".join(f"{-i}.5\n{text}\n" for text in trees) + "\n")
        else:
            texts.append("".join(f"{-i}.5\t{text}\n" for text in trees) + "\n")
    path.write_text("".join(texts))
    return str(path)


def joined(
    rerank: Command, directory: Path, files: list[str], *options: str, total: int = TOTAL
) -> tuple[list[str], str]:
    """The first words of the joined lists, and what was said."""
    target = directory.parent / "joined"
    result = rerank("folds", "join", str(directory), *files, "--output", str(target), *options)
    assert result.code == 0, result.err
    form = BerkeleyReader(ids="ordinal") if "berkeley" in options else CharniakReader()
    lists = list(read_lists(form, target))
    assert [each.id for each in lists] == [str(i) for i in range(total)] or "--ids" in options
    return [each.candidates[0].tokens[0] if len(each) else "" for each in lists], result.out + result.err


@pytest.mark.parametrize("by", ["sentences", "files"])
@pytest.mark.parametrize("folds", [2, 4])
def test_every_sentence_is_held_out_once(treebank: Path, tmp_path: Path, folds: int, by: treebank_folds.By) -> None:
    manifest = split([str(treebank)], folds, tmp_path / "folds", by=by)
    owner: dict[int, int] = {}
    for fold in range(folds):
        place = tmp_path / "folds" / f"{fold:02}"
        held, trained = numbers(place / "sentences.txt"), numbers(place / "train.mrg")
        assert numbers(place / "gold.mrg") == held == sorted(held)
        assert sorted(held + trained) == list(range(TOTAL))
        assert trained == sorted(trained)
        assert len(held) == manifest.size(fold)
        owner |= dict.fromkeys(held, fold)
        assert (place / "gold.mrg").read_text() == "".join(f"{' '.join(tree(i).split())}\n" for i in held)
        assert (place / "sentences.txt").read_text() == "".join(f"{sentence(i)}\n" for i in held)
    assert list(manifest.members()) == [owner[i] for i in range(TOTAL)]
    sizes = [manifest.size(fold) for fold in range(folds)]
    if by == "sentences":
        assert [owner[i] for i in range(TOTAL)] == sorted(owner.values())
        assert max(sizes) - min(sizes) <= 1
    else:
        bounds = [range(3), range(3, 4), range(4, 8), range(8, 10)]
        assert all(len({owner[i] for i in members}) == 1 for members in bounds)
        assert sizes == ([5, 5] if folds == 2 else [3, 1, 4, 2])


def test_the_manifest_has_the_digests_of_all_files(treebank: Path, tmp_path: Path) -> None:
    split([str(treebank)], 2, tmp_path / "folds")
    about = json.loads((tmp_path / "folds" / "folds.json").read_text())
    assert [each["sentences"] for each in about["treebank"]] == [*FILES.values()]
    for each, path in zip(about["treebank"], treebank_files(treebank), strict=True):
        data = Path(path).read_bytes()
        text = gzip.decompress(data) if path.endswith(".gz") else data
        assert (each["path"], each["sha256"]) == (path, hashlib.sha256(text).hexdigest())
    assert sorted(path.name for path in (tmp_path / "folds" / "01").iterdir()) == [
        "checksums.json", "gold.mrg", "sentences.txt", "train.mrg",
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "folds").iterdir()) == ["00", "01", "folds.json"]


RAW = [f"<s {i}> W{i}  1/2( </s>".replace("W", "w") for i in range(TOTAL)]


def test_a_sentence_file_goes_with_the_trees(treebank: Path, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text("\n".join(RAW))
    split([str(treebank)], 2, tmp_path / "folds", words=str(words))
    assert (tmp_path / "folds" / "01" / "sentences.txt").read_text().splitlines() == RAW[5:]
    for lines, message in (
        ([*RAW[:4], "<s> w5 1/2 ( </s>", *RAW[5:]], r"words:5: not the sentence of the tree at .*c\.mrg\.gz:2"),
        (RAW[:-1], r"words:10: not the sentence of the tree at .*e\.mrg"),
        ([*RAW, "w10"], r"words: there are 10 trees and more lines"),
    ):
        words.write_text("\n".join(lines))
        with pytest.raises(DataError, match=message):
            split([str(treebank)], 2, tmp_path / "others", words=str(words))
    assert not (tmp_path / "others").exists()


def test_brackets_that_are_words_are_written_as_parsers_need_them(
    tmp_path: Path, rerank: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trees = [f"(S (NN w{i}) (-LRB- ()\n  (X (-RRB- ))))" if i % 2 else f"(S (NN w{i}) (X (Y z)))" for i in range(4)]
    Path("t.mrg").write_text("\n".join(trees))
    Path("words").write_text("w0 z\nw1 ()\nw2 z\nw3 ( )\n")
    for options in ([], ["--sentences", "words"]):
        done = rerank("folds", "split", "t.mrg", "--folds", "2", "-o", f"folds{len(options)}", *options)
        assert done.code == 0, done
        assert "2 trees have brackets that are words, which the folds write -LRB- and -RRB-; recipes" in done.err
    assert Path("folds0/00/sentences.txt").read_text() == "w0 z\nw1 -LRB- -RRB-\n"
    assert Path("folds2/01/sentences.txt").read_text() == "w2 z\nw3 ( )\n"
    expected = "(S (NN w0) (X (Y z)))\n(S (NN w1) (-LRB- -LRB-) (X (-RRB- -RRB-)))\n"
    assert Path("folds0/00/gold.mrg").read_text() == Path("folds0/01/train.mrg").read_text() == expected
    joined(rerank, Path("folds0"), [parsed(Path("folds0"), fold) for fold in range(2)], "--ids", "number", total=4)
    pairs = read_pairs(CharniakReader(), "joined", "t.mrg", SymbolTable(), normalize=True)
    assert [nbest.candidates[0].tokens[0] for nbest, *_ in pairs] == ["w0", "w1", "w2", "w3"]


def test_what_cannot_be_split_leaves_nothing(treebank: Path, tmp_path: Path) -> None:
    target = tmp_path / "folds"
    for names, folds, by, message in (
        ([treebank], 11, "sentences", "10 sentences in 4 files are too few for 11 folds by sentences"),
        ([treebank], 5, "files", "10 sentences in 4 files are too few for 5 folds by files"),
        (["-"], 2, "sentences", "name a file"),
        ([treebank / "02" / "d.mrg"], 2, "sentences", "0 sentences in 0 files"),
    ):
        with pytest.raises(DataError, match=message):
            split([str(name) for name in names], folds, target, by=by)  # type: ignore[arg-type]
    (treebank / "02" / "d.mrg").write_text("(NN a)\n(X (-NONE- *))")
    with pytest.raises(DataError, match=r"d\.mrg:2: a tree without words"):
        split([str(treebank)], 2, target)
    (treebank / "02" / "d.mrg").write_text("(NN a)\n(X y (NN z))")
    with pytest.raises(DataError, match=r"d\.mrg:2: a word beside other children"):
        split([str(treebank)], 2, target)
    with pytest.raises(RecipeError, match="would be overwritten"):
        split([str(treebank)], 2, treebank)
    assert not target.exists()


def test_a_split_that_was_interrupted_goes_on(treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, write = tmp_path / "folds", treebank_folds._write
    split([str(treebank)], 3, tmp_path / "whole")

    def failing(manifest: Manifest, fold: int, place: Path) -> None:
        write(manifest, fold, place)
        if fold == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(treebank_folds, "_write", failing)
    with pytest.raises(KeyboardInterrupt):
        split([str(treebank)], 3, target)
    assert sorted(path.name for path in target.iterdir()) == ["00", "folds.json"]
    written: list[int] = []
    monkeypatch.setattr(treebank_folds, "_write", lambda *each: (written.append(each[1]), write(*each)))
    split([str(treebank)], 3, target)
    assert written == [1, 2]
    for path in (tmp_path / "whole").rglob("*"):
        assert path.is_dir() or path.read_bytes() == (target / path.relative_to(tmp_path / "whole")).read_bytes()


def test_a_directory_holds_one_split(treebank: Path, tmp_path: Path) -> None:
    target = tmp_path / "folds"
    split([str(treebank)], 2, target)
    lists = parsed(target, 0)
    split([str(treebank)], 2, target)
    assert Path(lists).exists()
    with pytest.raises(RecipeError, match="the directory holds another split"):
        split([str(treebank)], 3, target)
    (target / "00" / "train.mrg").write_text("(NN a)")
    with pytest.raises(DataError, match=r"00: fold 0 is not as it was written \(train\.mrg"):
        split([str(treebank)], 2, target)
    (treebank / "00" / "b.mrg").write_text("(NN a)")
    with pytest.raises(RecipeError, match="the directory holds another split, or one of another treebank"):
        split([str(treebank)], 2, target)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("")
    with pytest.raises(RecipeError, match="holds 'notes', but no folds"):
        split([str(treebank)], 2, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]


@pytest.mark.parametrize("by", ["sentences", "files"])
@pytest.mark.parametrize("form", ["charniak", "berkeley"])
def test_lists_come_back_in_the_order_of_the_treebank(
    treebank: Path, tmp_path: Path, rerank: Command, by: str, form: str
) -> None:
    target = tmp_path / "folds"
    assert rerank("folds", "split", str(treebank), "--folds", "3", "-o", str(target), "--by", by).code == 0
    files = [parsed(target, fold, form) for fold in range(3)]
    found, said = joined(rerank, target, files, "--reader", form)
    assert found == [f"w{i}" for i in range(TOTAL)]
    assert "10 lists, 20 candidates" in said
    assert "10 lists spell words differently from their gold trees: set data.normalize: true" in said
    reader = BerkeleyReader(ids="ordinal") if form == "berkeley" else CharniakReader()
    assert sum(1 for _ in read_pairs(reader, tmp_path / "joined", treebank, SymbolTable(), normalize=True)) == TOTAL


@pytest.fixture
def target(treebank: Path, tmp_path: Path) -> Path:
    """Three folds by sentences: 0 to 3, 4 to 6, 7 to 9."""
    split([str(treebank)], 3, tmp_path / "folds")
    return tmp_path / "folds"


def refuse(rerank: Command, target: Path, files: list[str], *parts: str) -> None:
    output = target.parent / "joined"
    refused(rerank("folds", "join", str(target), *files, "-o", str(output), "--on-bad-list", "skip"), *parts)
    assert not output.exists()


def test_lists_of_sentences_that_the_parser_was_trained_on_are_refused(rerank: Command, target: Path) -> None:
    one, two, three = (parsed(target, fold) for fold in range(3))
    refuse(
        rerank, target, [one, three, two],
        f"{three}:3: list 0: the list is of a sentence that the parser of fold 1 was trained on: line 1 of "
        f"{target}/02/sentences.txt; expected the list of line 1 of {target}/01/sentences.txt",
    )  # fmt: skip
    everything = "".join(Path(path).read_text() for path in (one, two, three))
    Path(two).write_text(everything)
    refuse(rerank, target, [one, two, three], "the parser of fold 1 was trained on: line 1 of", "/00/sentences.txt")
    refuse(rerank, target, [one, three], "found 2 files of lists for 3 folds")
    lists = Path(three).read_text().split("\n\n")
    Path(three).write_text("\n\n".join([lists[1], lists[0], *lists[2:]]))
    two = parsed(target, 1)
    refuse(rerank, target, [one, two, three], f"the list is that of line 2, where that of line 1 of {target}/02")


def test_a_sentence_of_several_folds_is_told_by_its_place(rerank: Command, tmp_path: Path) -> None:
    numbers_of = [0, 1, 2, 1, 3, 0]  # the first sentence of the second fold is the second of the first too
    (tmp_path / "t.mrg").write_text("\n".join(map(tree, numbers_of)))
    target = tmp_path / "folds"
    split([str(tmp_path / "t.mrg")], 2, target)
    one, two = (parsed(target, fold) for fold in range(2))
    refuse(rerank, target, [two, one], "the parser of fold 0 was trained on: line 1 of", "/01/sentences.txt")


def test_lists_with_other_words_are_refused(rerank: Command, target: Path) -> None:
    files = [parsed(target, fold) for fold in range(3)]
    text = Path(files[1]).read_text()
    Path(files[1]).write_text(text.replace("(VB w5)", "(VB w0)"))  # one candidate of the second list
    refuse(rerank, target, files, f"{files[1]}:11: list 1: ", "the parser of fold 1 was trained on", "line 1 of")
    Path(files[1]).write_text(text.replace("(VB w5)", "(VB W5)"))
    refuse(rerank, target, files, "the list is not of its sentence, line 2 of", "at word 1 'W5 1/2 -LRB-' and 'w5")
    Path(files[1]).write_text(text.rpartition("2\t2")[0])
    refuse(rerank, target, files, "at least 3 gold trees for 2 lists")
    Path(files[1]).write_text(text + "0\t7\n")
    refuse(rerank, target, files, "3 gold trees for at least 4 lists")


@pytest.mark.parametrize("form", ["charniak", "berkeley"])
def test_bad_lists_are_errors_or_become_empty(rerank: Command, target: Path, form: str) -> None:
    files = [parsed(target, fold, form) for fold in range(3)]
    text = Path(files[0]).read_text()
    broken = text.replace("w0)", "w0").replace("2\t1\n", "x\t1\n").replace("w2", "w2 w2")
    Path(files[0]).write_text(broken)
    output = target.parent / "joined"
    refused(rerank("folds", "join", str(target), *files, "-o", str(output), "--reader", form), f"{files[0]}:")
    assert not output.exists()
    found, said = joined(rerank, target, files, "--reader", form, "--on-bad-list", "skip")
    bad = {0, 1, 2} if form == "charniak" else {0, 2}
    assert found == ["" if i in bad else f"w{i}" for i in range(TOTAL)]
    assert "skipped" in said


def test_ids_of_the_files_are_kept_where_they_differ(rerank: Command, target: Path) -> None:
    files = [parsed(target, fold) for fold in range(3)]
    refused(
        rerank("folds", "join", str(target), *files, "-o", str(target.parent / "joined"), "--ids", "file"),
        "list 0: a list of", "has this id too; without --ids file lists are numbered",
    )  # fmt: skip
    for fold, path in enumerate(files):
        Path(path).write_text(Path(path).read_text().replace("2\t", f"2\tf{fold}-"))
    joined(rerank, target, files, "--ids", "file")
    ids = [each.id for each in read_lists(CharniakReader(), target.parent / "joined")]
    assert ids == ["f0-0", "f0-1", "f0-2", "f0-3", "f1-0", "f1-1", "f1-2", "f2-0", "f2-1", "f2-2"]


def test_what_was_split_is_checked(rerank: Command, target: Path, treebank: Path) -> None:
    files = [parsed(target, fold) for fold in range(3)]
    gold = target / "01" / "gold.mrg"
    text = gold.read_text()
    gold.write_text(text.replace("w4", "w5"))
    refuse(rerank, target, files, "01: fold 1 is not as it was written (gold.mrg")
    gold.write_text(text)
    changed = treebank / "00" / "a.mrg"
    changed.write_text(changed.read_text() + "(NN more)")
    refuse(rerank, target, files, f"{changed}: the file has changed since it was split")
    changed.unlink()
    assert "1 of the treebank's files are gone" in joined(rerank, target, files)[1]
    (target.parent / "joined").unlink()
    about = json.loads((target / "folds.json").read_text())
    for broken in ({}, about | {"version": 2}, about | {"folds": 4}, about | {"order": [[0, 9], [1, 1]]}):
        (target / "folds.json").write_text(json.dumps(broken))
        refuse(rerank, target, files, "folds.json: `rerank folds split` did not write this")
    (target / "folds.json").unlink()
    refuse(rerank, target, files, "has no folds.json; `rerank folds split` writes it")


def test_the_page_from_the_treebank_to_the_lists(
    rerank: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = dict(pages.files("docs/making-lists/parses.md"))
    Path("parse_with_nltk.py").write_text(shown["parse_with_nltk.py"], encoding="utf-8")
    flat = "(S1 (S (NP (PRP I))\n  (VP (VBD saw) (NP (DT a) (NN man)) (PP (IN with) (NP (NNS dogs))))))"
    nested = "(S1 (S (NP (PRP I))\n  (VP (VBD saw) (NP (NP (DT a) (NN boat)) (PP (IN with) (NP (NNS dogs)))))))"
    plain = "(S1 (S (NP (PRP I))\n  (VP (VBD saw) (NP (DT a) (NN boat)))))"
    Path("treebank.mrg").write_text("\n".join([flat, plain, nested, plain.replace("boat", "man")]))
    split(["treebank.mrg"], 2, Path("folds"))
    (loop,) = (body for body in pages.fences("docs/jackknifing.md", "sh") if "for fold in" in body)
    done = subprocess.run(
        ["sh", "-c", loop.replace("python ", f"{sys.executable} ")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result = rerank("folds", "join", "folds", "folds/00/lists", "folds/01/lists", "--output", "train.nbest.gz")
    assert "4 lists, 4 candidates" in result.out
    pairs = list(read_pairs(CharniakReader(), "train.nbest.gz", "treebank.mrg", SymbolTable()))
    assert [nbest.texts[0].count(b"(PP") for nbest, *_ in pairs] == [1, 0, 1, 0]
    assert [nbest.texts[0].count(b"(NP (NP") for nbest, *_ in pairs] == [1, 0, 0, 0]  # what the other fold has taught
