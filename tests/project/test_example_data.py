"""The speech and language-model examples: what the files hold, and that the scripts make them."""

import gzip
import importlib
import json
import sys
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
    [("quickstart", ("nbest", "gold"), 3_000_000), ("asr", ("jsonl",), 200_000), ("llm", ("jsonl",), 200_000)],
)
def test_the_files_are_small_and_hold_neither_time_nor_name(kind: str, endings: tuple[str, ...], size: int) -> None:
    paths = sorted((DATA / kind).iterdir())
    assert [path.name for path in paths] == sorted(f"{split}.{end}.gz" for split in SPLITS for end in endings)
    assert sum(path.stat().st_size for path in paths) <= size
    assert all(path.read_bytes()[:8] == b"\x1f\x8b\x08" + bytes(5) for path in paths)


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
    gains = [[entry["gain"] for entry in item["candidates"]] for item in lists_of("llm", split)]
    assert {len(one) for one in gains} == {8}
    assert all(0 <= gain <= 1 for one in gains for gain in one)
    base, oracle, chance = (
        float(np.mean([one[0] for one in gains])), float(np.mean([max(one) for one in gains])), float(np.mean(gains)),
    )  # fmt: skip
    assert base < chance < oracle - 0.3
    row = f"| {split} | {len(gains)} | {8 * len(gains):,} | {base:.2f} | {oracle:.2f} | {chance:.2f} |"
    assert row in README


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


@pytest.mark.parametrize("kind", ["asr", "llm"])
def test_the_script_makes_the_shipped_lists(kind: str) -> None:
    """The first of each split; for the first split that is what the file starts with."""
    script = module(f"make_{kind}")
    made = script.make_splits(1, {"train": 25})
    assert made["train"] == lists_of(kind, "train")[:25]


@pytest.mark.parametrize("kind", ["asr", "llm"])
def test_the_command_writes_the_same_bytes_each_time(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = module(f"make_{kind}")
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
