"""Lists in blocks give, to the bit, what the same lists give one by one."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rerank.data.corpus import free_values
from rerank.extraction.extraction import Extracted, extract_split, extract_training
from rerank.extraction.texts import TextContent
from rerank.features.table import FeatureTable
from rerank.readers.lists import OF_LIST, Lists
from rerank.readers.texts import json_lines, text_list
from rerank.readers.texts.jsonl import JsonlReader
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import TextRecipe


def lines(seed: int, number: int = 300) -> Iterator[str]:
    """Ragged lists: now and then one that is bad, or has a candidate that is, or what cannot be in a block."""
    rng = random.Random(seed)
    for i in range(number):
        entries: list[Any] = [
            {"text": f" {rng.choice('abc')} {rng.choice('de')}:é", "score": round(rng.gauss(0, 1), 3), "stop": "eos"}
            | {"lm": rng.choice([-0.0, 0, 1, 2.5, -7]), "n": rng.randrange(400), "gain": rng.randrange(2)}
            | {"answer": rng.choice(["1", "2", " 2 ", "ä", "", None])}
            for _ in range(rng.choice([1, 1, 2, 3, 8, 140]))
        ]
        item: dict[str, Any] = {"id": i, "candidates": entries}
        if rng.random() < 0.3:
            item |= {"source": f'q {i} \\ " :'} | ({"reference": "a"} if rng.random() < 0.5 else {"references": []})
        one = rng.choice(entries)
        match rng.randrange(30) if i else -1:
            case 0:
                del one["lm"]
            case 1:
                one["lm"] = rng.choice([True, "1", None, 1e39, 10**400, 2**70, [1]])
            case 2:
                one["text"] = rng.choice(["a\0b", 3, None, "\ud800", "", '{"a\\\\": 1, "b" : "c"}'])
            case 3:
                one["rare"] = 2
            case 4:
                item["id"] = rng.choice([0, "", None, 1.5, [1], f"x{i}"])
            case 5:
                item["candidates"] = rng.choice(
                    [[], None, ["a"], [entries[0], "b"], [dict(reversed(entries[0].items()))]]
                )
            case 6:
                one["stop"] = rng.choice([1, None, False])
            case 7:
                one["gain"] = rng.choice([1e29, -0.0, None, 0.1])
            case 8:
                one["features"] = {"lm": 1}
            case 10:
                one["answer"] = rng.choice([1, 2.0, True, "a\0b", "\ud800", ["1"]])
            case 11:
                for entry in entries:
                    entry["answer"] = None
            case 12:
                for entry in entries:
                    del entry["answer"]
            case 9:
                for entry in entries:
                    del entry["score"]
        line = json.dumps(item, ensure_ascii=rng.random() < 0.5)
        match rng.randrange(60) if i else -1:
            case 0:
                line = line.replace('"n":', '"lm" : 1, "n":', 1)
            case 1:
                line = line[: rng.randrange(len(line))]
            case 2:
                line = line.replace('"lm": ', '"lm": NaN, "x": ', 1)
            case 3:
                line = "[" * 5000
            case 4:
                line = line.replace('"n": ', '"n": 0.1e', 1)
        yield line


def write(place: Path, seed: int) -> None:
    text = "\n".join(lines(seed)).encode("utf-8", "surrogatepass")
    place.write_bytes(gzip.compress(text if seed % 3 else text.replace("é".encode(), b"\xff", 2), 1))


def recipe(root: Path, answer: str | None = None, **features: Any) -> TextRecipe:
    data: dict[str, Any] = {
        "root": str(root),
        "train": "1",
        "dev": "2",
        "tests": ["3"],
        "nbest": "{root}/{split}.jsonl.gz",
    }
    data |= {"reader": {"name": "jsonl"}, "sources": None, "references": None, "on_bad_list": "skip", "answer": answer}
    made = read_settings({"name": "flat", "task": "ranking", "features": features, "data": data})
    assert isinstance(made, TextRecipe)
    return made


def same(one: Extracted, other: Extracted, tables: tuple[FeatureTable, FeatureTable]) -> None:
    for first, second in ((one.corpus, other.corpus), (one.origins, other.origins)):
        for key in ("lists", "rows", "columns", "values", "base", "gain", "stats", "reference") if first else ():
            assert getattr(first, key).tobytes() == getattr(second, key).tobytes(), key
    for mine, theirs in zip(one.seen, other.seen, strict=True):
        assert mine.tobytes() == theirs.tobytes()
    assert one.ids == other.ids
    assert {**one.about, "seconds": 0} == {**other.about, "seconds": 0}
    assert tables[0].about == tables[1].about
    for key in ("hashes", "template", "first", "symbols", "scale"):
        assert getattr(tables[0], key).tobytes() == getattr(tables[1], key).tobytes()
    assert tables[0].texts == tables[1].texts  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "features",
    [
        {"set": "dense", "answer": "regex:[de]"},
        {"set": None, "templates": ["Given", "Dense"]},
        {"set": "dense", "centred": False},
    ],
)
def test_blocks_give_what_lists_give(features: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for split in (1, 2, 3):
        write(tmp_path / f"{split}.jsonl.gz", split)
    made, taken = recipe(tmp_path, **features), list[int]()
    measured_block = TextContent.measured_block

    def counted(self: TextContent, block: Lists) -> Any:
        pair = measured_block(self, block)
        taken.append(0 if pair is None else block.list_count)
        return pair

    with monkeypatch.context() as patch:
        patch.setattr(TextContent, "measured_block", counted)
        extracted, table = extract_training(made)
        others = [extract_split(made, split, table) for split in ("2", "3")]
    assert sum(taken) > 300
    monkeypatch.setattr(TextContent, "flat", property(lambda _: False))
    monkeypatch.setattr(text_list, "MOST", 1)
    monkeypatch.setattr(JsonlReader, "most", 1)
    expected, known = extract_training(made)
    same(extracted, expected, (table, known))
    for split, other in zip(("2", "3"), others, strict=True):
        same(other, extract_split(made, split, known), (table, known))


@pytest.mark.parametrize("seed", range(4, 10))
@pytest.mark.parametrize(
    "options", [{}, {"duplicates": "drop"}, {"ids": "ordinal", "dense": ("n",)}, {"base": "lm"}], ids=str
)
def test_runs_are_read_as_lists_are(seed: int, options: dict[str, Any], tmp_path: Path) -> None:
    place = tmp_path / "lists.jsonl.gz"
    write(place, seed)
    reader = JsonlReader(**options)

    def told(read: Iterator[Lists]) -> list[Any]:
        every = [vars(nbest).copy() for nbest in read]
        for each in every:
            each |= {"scores": (each["scores"].shape, each["scores"].tobytes()), "lines": list(each["lines"])}
            each |= {"ids": list(each["ids"]), "starts": list(each["starts"]), "first": each["first"].tolist()}
            each |= {"sides": {key: repr(list(of)) for key, of in each["sides"].items() if of[0] != OF_LIST[key]}}
            each |= {"sparse": repr(each["sparse"])}
        return every

    found = told(reader.read(place))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_list, "MOST", 1)
        patch.setattr(JsonlReader, "most", 1)
        patch.setattr(json_lines, "parse_object", json_lines._parse_strictly)
        expected = told(reader.read(place))
    assert found == expected


def test_parts_of_blocks_have_the_lists_of_the_whole(tmp_path: Path) -> None:
    write(tmp_path / "1.jsonl.gz", 1)
    blocks = list(JsonlReader().blocks(tmp_path / "1.jsonl.gz"))
    assert max(block.list_count for block in blocks) > 10
    for block in blocks:
        parts = [block.part(k, k + 1).scores for k in range(block.list_count)]
        assert np.array_equal(block.scores, np.concatenate(parts))


@pytest.mark.parametrize("alike", [True, False])
def test_gains_of_other_answers_are_said(alike: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def sample(k: int) -> dict[str, Any]:
        return {
            "text": f"so {k}",
            "answer": "4" if k < 2 else "5",
            "lm": -k,
            "gain": float(k == 0 or (alike and k < 2)),
        }

    with (tmp_path / "train.jsonl").open("w") as lines:
        for i in range(8):
            print(json.dumps({"id": str(i), "candidates": [sample(k) for k in range(4)]}), file=lines)
    data = {"root": str(tmp_path), "nbest": "{root}/{split}.jsonl", "train": "train", "tests": [], "reader": "jsonl"}
    data |= {"sources": None, "references": None, "dev": None}
    recipe = read_settings({"name": "a", "task": "ranking", "features": {"set": "dense"}, "data": data})
    assert isinstance(recipe, TextRecipe)
    corpus = extract_training(recipe)[0].corpus
    lm = free_values(corpus)[:4]
    assert all(column[0] == column[1] and column[2] == column[3] for column in lm.T), "means over answers"
    said = [one.message for one in caplog.records if "same answer have different gains" in one.message]
    assert bool(said) != alike
    assert alike or said[0].startswith("train: in 8 of 8 lists")
