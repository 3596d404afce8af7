"""``rerank decode --space lattice``: from lattices to lists, to weights, and back."""

import json
import random
from pathlib import Path
from typing import Any

import pytest


def write(path: Path, seed: int, count: int = 40) -> tuple[Path, Path]:
    """Lattices as Kaldi writes them, in which the graph's scores should count more than they do; and their words."""
    draw = random.Random(seed)
    words, texts = [f"w{k}" for k in range(20)], list[str]()
    with path.open("w") as out:
        for u in range(count):
            right = [draw.choice(words) for _ in range(draw.randint(1, 6))]
            out.write(f"utt{u} \n")
            for t, word in enumerate(right):
                for other in draw.sample([word, *draw.sample(words, 2)], 3):
                    graph, acoustic = (draw.gauss(1 + 2 * (word != other), 0.5), draw.gauss(20, 3))
                    out.write(f"{t} {t + 1} {other} {other} {graph:.3f},{acoustic:.3f},\n")
            out.write(f"{len(right)} 0,0,\n\n")
            texts.append(" ".join(right) + "\n")
    references = path.with_suffix(".ref")
    references.write_text("".join(texts))
    return path, references


def rate(err: str) -> float:
    return float(err.partition("WER ")[2].partition(",")[0])


def test_lattices_become_lists_which_give_weights_for_lattices(tmp_path: Path, rerank: Any) -> None:
    (train, right), (test, expected) = (write(tmp_path / f"{seed}.lat", seed) for seed in (1, 2))
    lists = rerank("decode", train, "--space", "lattice", "-n", 20, "--references", right)
    (tmp_path / "lists.jsonl").write_text(lists.out)
    first = json.loads(lists.out.splitlines()[0])
    assert (first["id"], first["reference"]) == ("utt0", right.read_text().splitlines()[0])
    assert first["candidates"][0].keys() == {"text", "lm", "am", "words"}
    assert len({each["text"] for each in first["candidates"]}) == len(first["candidates"])
    assert rerank("weigh", tmp_path / "lists.jsonl", "--metric", "wer", "--save", tmp_path / "model").code == 0
    how = "decode", test, "--space", "lattice", "--references", expected
    before, after = rerank(*how), rerank(*how, "--model", tmp_path / "model")
    assert rate(after.err) < 0.5 * rate(before.err)
    assert "fewest errors 0.00, of 40 lattices" in after.err
    words = json.loads(rerank(*how, "--json", "--scales", "lm=1,am=0.01").out.splitlines()[3])
    assert words["score"] == pytest.approx(words["lm"] + 0.01 * words["am"])


def test_bad_lattices_and_options_that_do_not_fit(tmp_path: Path, rerank: Any) -> None:
    path, right = write(tmp_path / "x.lat", 1, count=2)
    path.write_text(path.read_text() + "bad\n0 1 a a 1,1,\n1 0 b b 1,1,\n0\n\n")
    how = "decode", path, "--space", "lattice"
    said = rerank(*how)
    assert (said.code, "x.lat:" in said.err, "a cycle through the nodes" in said.err) == (2, True, True)
    skipped = rerank(*how, "--on-bad-list", "skip")
    assert (skipped.code, len(skipped.out.splitlines()), "(lattice)" in skipped.err) == (0, 3, True)
    for more, message in (
        (("--references", right, "--on-bad-list", "skip"), "found more lattices than references, of which there are 2"),
        (("--scales", "lm=1,bleu=2"), "found no column 'bleu', which is weighed; arcs have lm, am, words"),
        (("--scales", "lm:1"), "expected a name and a number"),
        (("--by", "mbr"), "--by: it is not for --space lattice"),
        (("--symbols", right), "expected a word and its number"),
    ):
        wrong = rerank(*how, *more)
        assert (wrong.code, message in " ".join(wrong.err.split())) == (2, True), wrong.err
    assert "-n: it is not for --space lists" in rerank("decode", path, "-n", 3).err
