"""The lists that come with the program: what the files and their README say, and that the scripts make them."""

import gzip
import importlib
import json
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from commands import Command
from small import lists_of

DATA = Path(__file__).parents[2] / "data"
SPLITS = ("train", "dev", "test")
README = (DATA / "README.md").read_text(encoding="utf-8")


def text_of(name: str) -> str:
    return gzip.decompress((DATA / name).read_bytes()).decode()


def objects_of(kind: str, split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text_of(f"{kind}/{split}.jsonl.gz").splitlines()]


def module(name: str) -> ModuleType:
    """A script; it finds its neighbours as it does when run."""
    sys.path.insert(0, str(DATA))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DATA))


@pytest.mark.parametrize(
    ("kind", "endings", "size"),
    [
        ("quickstart", ("nbest", "gold"), 3_000_000),
        ("asr", ("jsonl",), 200_000),
        ("llm", ("jsonl",), 600_000),
        ("sums", ("jsonl",), 600_000),
    ],
)
def test_the_files_are_small_and_hold_neither_time_nor_name(kind: str, endings: tuple[str, ...], size: int) -> None:
    paths = sorted((DATA / kind).iterdir())
    assert [path.name for path in paths] == sorted(f"{split}.{end}.gz" for split in SPLITS for end in endings)
    assert sum(path.stat().st_size for path in paths) <= size
    assert all(path.read_bytes()[:8] == b"\x1f\x8b\x08" + bytes(5) for path in paths)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    ("files", "how", "key", "form"),
    [
        ("quickstart/{}.nbest.gz quickstart/{}.gold.gz", [], "f1", "{:.1f}"),
        ("asr/{}.jsonl.gz", ["--metric", "wer", "--reader", "jsonl"], "wer", "{:.1f}"),
        ("llm/{}.jsonl.gz", ["--metric", "gain", "--reader", "{name: jsonl, base: vote}"], "gain", "{:.3f}"),
    ],
    ids=["quickstart", "asr", "llm"],
)
def test_the_figures_of_the_readme(
    files: str, how: list[str], key: str, form: str, split: str, rerank: Command
) -> None:
    paths = [DATA / name for name in files.format(split, split).split()]
    found = json.loads(rerank("oracle", *paths, *how, "--json").out)
    base, best, chance = (found[name][key] * (1 if key == "gain" else 100) for name in ("base", "oracle", "random"))
    assert best > base > chance or best < base < chance
    cells = f"{found['lists']:,}", f"{found['candidates']:,}", *map(form.format, (base, best, chance))
    assert f"| {split} | {' | '.join(cells)} |" in README


@pytest.mark.parametrize("split", SPLITS)
def test_what_candidates_hold(split: str) -> None:
    """Transcripts are different, the votes of answers are counts, and gains of sums are what the arithmetic says."""
    for item in objects_of("asr", split):
        assert len({each["text"] for each in item["candidates"]}) == len(item["candidates"]) <= 20
    for item in objects_of("llm", split):
        given = [each["answer"] for each in item["candidates"]]
        assert [each["vote"] for each in item["candidates"]] == [
            given.count(answer) / 8 if answer else 0 for answer in given
        ]
        assert {each["gain"] for each in item["candidates"]} <= {0, 1}
    for item in objects_of("sums", split):
        steps = re.findall(r"([-+*])(\d+)", item["source"])
        value = int(re.match(r"\d+", item["source"])[0])
        for operation, number in steps:
            value = {"+": value + int(number), "-": value - int(number), "*": value * int(number)}[operation]
        assert item["reference"] == str(value)
        for each in item["candidates"]:
            assert each["gain"] == (each["answer"] == str(value))
            assert each["answer"] == each["text"].rsplit("=", 1)[-1]
            assert all(each[by] <= each[f"{by}_min"] <= 0 for by in ("logprob", "verifier"))


@pytest.mark.parametrize("split", SPLITS)
def test_the_figures_of_the_sums(split: str) -> None:
    lists = objects_of("sums", split)
    pairs = [([each["answer"] for each in item["candidates"]], item["reference"]) for item in lists]
    first, any_of = (np.mean([right in answers[:most] for answers, right in pairs]) for most in (1, 12))
    votes = np.mean([Counter(answers).most_common(1)[0][0] == right for answers, right in pairs])
    assert f"| {split} | {len(lists)} | {12 * len(lists):,} | {first:.3f} | {votes:.3f} | {any_of:.3f} |" in README


def test_the_search_finds_the_best_path_there_is() -> None:
    """All paths of small networks, one by one."""
    script, language, draw = module("make_asr"), module("asr_language"), module("example_files").Draw("paths")
    model = script.Bigrams([language.sentence(draw) for _ in range(20)], 50)
    for number in range(20):
        words = language.sentence(draw)[:4]
        network = script.hear(words, language.confusions(), module("example_files").Draw(f"network {number}"))
        paths: list[tuple[list[str], int]] = [([], 0)]
        for options in network:
            paths = [(said + list(more), cost + added) for said, cost in paths for more, added in options]
        ranked: dict[str, float] = {}
        for said, cost in paths:
            marked = ["<s>", *said, "</s>"]
            spoken = sum(model.cost(a, b) for a, b in pairwise(marked))
            total = round(cost + script.LM_WEIGHT * spoken, 6)
            ranked[" ".join(said)] = min(total, ranked.get(" ".join(said), total))
        found = script.decode(network, model)
        totals = [round(acoustic + script.LM_WEIGHT * spoken, 6) for _, acoustic, spoken in found]
        assert totals == sorted(totals)
        assert totals[0] == min(ranked.values())
        assert all(ranked[text] == total for (text, _, _), total in zip(found, totals, strict=True))


def test_the_scripts_make_the_shipped_files() -> None:
    """Of the transcripts the first, of the parses the gold trees."""
    for name, text in module("make_search").make_files(1).items():
        assert text_of(f"search/{name}.gz") == text
    assert module("make_asr").make_splits(1, {"train": 25})["train"] == objects_of("asr", "train")[:25]
    script = module("make_quickstart")
    for split, trees in script.treebank(script.SEED).items():
        assert script.gold_text(trees) == text_of(f"quickstart/{split}.gold.gz")


@pytest.mark.parametrize("split", SPLITS)
def test_the_script_makes_the_shipped_parses(split: str) -> None:
    """The first ten lists of at most 15 words, with the grammar of all training trees: a long one takes a minute."""
    script, lists = module("make_quickstart"), lists_of(DATA / "quickstart" / f"{split}.nbest.gz")
    treebank = script.treebank(script.SEED)
    short = [i for i, tree in enumerate(treebank[split]) if len(tree.leaves()) <= 15][:10]
    made = script.nbest_text(split, [treebank[split][i] for i in short], script.estimate(treebank["train"]))
    expected = [re.sub(r"\t.*", f"\t{split}-{number}", lists[i], count=1) for number, i in enumerate(short, start=1)]
    assert made.strip("\n").split("\n\n") == expected
    assert made.count("(S1 ") > 2 * len(expected)


@pytest.mark.parametrize(
    ("name", "sizes", "files"),
    [("make_asr", {"train": 5, "dev": 2}, 2), ("make_quickstart", {"train": 6, "dev": 1, "test": 1}, 6)],
)
def test_a_script_writes_the_same_bytes_each_time(
    name: str, sizes: dict[str, int], files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, written = module(name), {}
    monkeypatch.setattr(script, "SIZES", sizes)
    for place, seed in {"one": "7", "same": "7", "other": "8"}.items():
        script.main(["--output", str(tmp_path / place), "--seed", seed])
        written[place] = {path.name: path.read_bytes() for path in (tmp_path / place).iterdir()}
    assert len(written["one"]) == files
    assert written["one"] == written["same"]
    assert all(written["one"][name] != written["other"][name] for name in written["one"])


def test_a_script_writes_over_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(SystemExit):
        module("make_asr").main(["--output", str(tmp_path / "file")])
    assert "choose another --output" in capsys.readouterr().err
