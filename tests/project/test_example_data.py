"""The speech and language-model examples: what the files hold, and that the scripts make them."""

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
from rapidfuzz.distance import Levenshtein

DATA = Path(__file__).parents[2] / "data"
SPLITS = ("train", "dev", "test")
README = (DATA / "README.md").read_text(encoding="utf-8")


def lists_of(kind: str, split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((DATA / kind / f"{split}.jsonl.gz").read_bytes()).splitlines()]


def module(name: str) -> ModuleType:
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


def test_the_search_example_is_what_its_script_makes() -> None:
    for name, text in module("make_search").make_files(1).items():
        assert gzip.decompress((DATA / "search" / f"{name}.gz").read_bytes()).decode() == text


@pytest.mark.parametrize("split", SPLITS)
def test_the_figures_of_the_speech_example(split: str) -> None:
    sums, lists = np.zeros(3), lists_of("asr", split)
    words = candidates = 0
    for item in lists:
        said = item["reference"].split()
        errors = [Levenshtein.distance(entry["text"].split(), said) for entry in item["candidates"]]
        sums += errors[0], min(errors), sum(errors) / len(errors)
        words, candidates = words + len(said), candidates + len(errors)
        assert len({entry["text"] for entry in item["candidates"]}) == len(errors) <= 20
    base, oracle, chance = 100 * sums / words
    assert 18 < base < 26
    assert oracle < 10
    assert chance > base + 5
    row = f"| {split} | {len(lists)} | {candidates:,} | {base:.1f} | {oracle:.1f} | {chance:.1f} |"
    assert row in README


@pytest.mark.parametrize("split", SPLITS)
def test_the_figures_of_the_language_model_example(split: str) -> None:
    lists = [item["candidates"] for item in lists_of("llm", split)]
    gains = [[entry["gain"] for entry in candidates] for candidates in lists]
    assert {len(one) for one in gains} == {8}
    assert {gain for one in gains for gain in one} == {0, 1}
    votes = [max(candidates, key=lambda entry: entry["vote"])["gain"] for candidates in lists]
    for candidates in lists:
        given = [entry["answer"] for entry in candidates]
        assert [entry["vote"] for entry in candidates] == [given.count(answer) / 8 if answer else 0 for answer in given]
    base, oracle, chance = float(np.mean(votes)), float(np.mean([max(one) for one in gains])), float(np.mean(gains))
    assert chance + 0.1 < base < oracle - 0.05
    row = f"| {split} | {len(gains)} | {8 * len(gains):,} | {base:.3f} | {oracle:.3f} | {chance:.3f} |"
    assert row in README


@pytest.mark.parametrize("split", SPLITS)
def test_the_figures_of_the_sums(split: str) -> None:
    """Gains are what the arithmetic says."""
    lists = lists_of("sums", split)
    for item in lists:
        steps = re.findall(r"([-+*])(\d+)", item["source"])
        value = int(re.match(r"\d+", item["source"])[0])
        for operation, number in steps:
            value = {"+": value + int(number), "-": value - int(number), "*": value * int(number)}[operation]
        assert item["reference"] == str(value)
        for each in item["candidates"]:
            assert each["gain"] == (each["answer"] == str(value))
            assert each["answer"] == each["text"].rsplit("=", 1)[-1]
            assert all(each[by] <= each[f"{by}_min"] <= 0 for by in ("logprob", "verifier"))
    pairs = [([each["answer"] for each in item["candidates"]], item["reference"]) for item in lists]
    first, any_of = (np.mean([right in answers[:most] for answers, right in pairs]) for most in (1, 12))
    votes = np.mean([Counter(answers).most_common(1)[0][0] == right for answers, right in pairs])
    assert 0.35 < first < votes - 0.1 < any_of - 0.2
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


def test_the_script_makes_the_shipped_lists() -> None:
    """The first of each split; for the first split that is what the file starts with."""
    assert module("make_asr").make_splits(1, {"train": 25})["train"] == lists_of("asr", "train")[:25]


def test_the_command_writes_the_same_bytes_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = module("make_asr")
    monkeypatch.setattr(script, "SIZES", {"train": 5, "dev": 2})
    for name, seed in {"one": "7", "same": "7", "other": "8"}.items():
        script.main(["--output", str(tmp_path / name), "--seed", seed])
    one, same, other = (
        {p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "same", "other")
    )
    assert one == same
    assert all(one[name] != other[name] for name in one)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(SystemExit):
        script.main(["--output", str(tmp_path / "file")])
    assert "choose another --output" in capsys.readouterr().err
