"""Blocks, shards, ranges of hashes, processes: none of them changes what is extracted."""

import codecs
import json
import logging
import os
import pickle
import socket
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_rankings
import small_texts
from hypothesis import given, settings
from hypothesis import strategies as st
from sameness import assert_same, assert_same_extracted, assert_same_tables, bytes_of

from rerank.base.errors import DataError, RecipeError, RunError
from rerank.extraction import blocks, extraction
from rerank.extraction.blocks import Spool
from rerank.extraction.extraction import CorpusCache, divide, extract_split, extract_training
from rerank.extraction.sample import ListSample
from rerank.pool import Engine, Processes
from rerank.readers import inputs
from rerank.recipes.recipe import ListRecipe, TextRecipe

BOTH = pytest.mark.parametrize("policy", ["error", "skip"])


class Pickling(Engine):
    """Tasks in this process, after the way that they and their results would have to others."""

    workers = 2

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Generator[Any, None, None]:
        """See ``Engine``; five tasks are drawn ahead."""
        ahead: list[Any] = []
        for task in tasks:
            ahead.append(task)
            if len(ahead) == 5:
                yield self._one(function, ahead.pop(0))
        for task in ahead:
            yield self._one(function, task)

    def _one(self, function: Callable[[Any], Any], task: Any) -> Any:
        function, task = pickle.loads(pickle.dumps((function, task)))
        return pickle.loads(pickle.dumps(function(task)))


@pytest.fixture
def data(small_data: Path, tmp_path: Path) -> Path:  # noqa: ARG001 - without small data the test is skipped
    """Lists of trees which tests may change: 40 of training, 15 of test."""
    copy = tmp_path / "data"
    copy.mkdir()
    small.write_slices(copy, {"train": 40, "test": 15})
    return copy


def cut_into(monkeypatch: pytest.MonkeyPatch, lists: int, counts: int = 1 << 20) -> None:
    """Blocks of so many lists, and so many counts at once."""
    monkeypatch.setattr(blocks, "BLOCK_LISTS", lists)
    monkeypatch.setattr(extraction, "RANGE", counts)


TREES: dict[str, dict[str, Any]] = {
    "table": {},
    "hashed": {"features": {"hash_bits": 10}},
    "values as they are": {"features": {"centred": False, "min_lists": 1}},
    "users": {"features": {"templates": ["Rule"], "user": {"own": "brackets_for_tests:count"}}},
}


def recipe_of(kind: str, data: Path, shard_size: float = 256.0) -> ListRecipe:
    """A recipe over trees, or over texts with dense columns."""
    if kind in TREES:
        return small.recipe(data, **{**TREES[kind], "data": {"shard_size": shard_size, "dev": None}})
    small_texts.write_task(data)
    return small_texts.recipe(data, data={"shard_size": shard_size})


@pytest.mark.parametrize("kind", [*TREES, "texts"])
def test_blocks_and_shards_change_nothing(kind, data, tmp_path, monkeypatch):
    (tmp_path / "brackets_for_tests.py").write_text("def count(one):\n    return {str(one.text.count('(')): 1}\n")
    monkeypatch.syspath_prepend(tmp_path)
    small.write_slices(data, {"train": 24, "test": 8})
    recipe = recipe_of(kind, data)
    whole, table = extract_training(recipe)
    test = extract_split(recipe, "test", table)
    assert whole.corpus.nonzeros > 0
    assert kind != "texts" or table.free > 0
    size = sum(map(len, bytes_of(whole.corpus).values())) / 1e6
    for lists, counts, count, engine in ((1, 50, 30, Pickling()), (13, 77, 3, Engine())):
        cut_into(monkeypatch, lists, counts)
        cut = recipe_of(kind, data, size / count)
        store = CorpusCache(tmp_path / f"cache{lists}")
        found, found_table, key = store.training(cut, engine)
        other = store.split(cut, "test", found_table, key, engine)
        assert 2 < found.corpus.cuts.size <= count + 1
        assert_same_tables(found_table, table)
        assert (test.origins is None) == (kind == "values as they are")
        if test.origins is not None:
            assert test.origins.list_count == test.origins.candidate_count == len(test.ids)
        for one, reference in ((found, whole), (other, test)):
            assert_same_extracted(one, reference)
            assert one.about["seconds"] > 0
        entries = {path.name for path in (store.directory / key).iterdir()}
        seen = {f"sample_{name}.npy" for name in ListSample._fields}
        assert entries == {"checksums.json", "corpus", "split.json", "table"} | seen


def test_names_are_looked_up_once_a_block_however_many_ranges_there_are(data, monkeypatch):
    cut_into(monkeypatch, 5, 77)
    loaded, load = Counter[tuple[str, int]](), Spool.load

    def counted(self: Spool, number: int, kind: Any) -> Any:
        loaded[kind.__name__, number] += 1
        return load(self, number, kind)

    monkeypatch.setattr(Spool, "load", counted)
    extract_training(recipe_of("table", data))
    assert loaded["FeatureCounts", 0] > 8
    assert max(loaded[name, block] for name in ("FeatureSymbols", "Texts") for block in range(8)) == 1


def damage(data: Path, places: dict[int, str]) -> None:
    """Damage training lists: "tree" or "words" in the list itself, "gold" in its gold tree."""
    lists, golds = small.lists_of(data / "train.nbest.gz"), small.golds_of(data / "train.gold.gz")
    for i, kind in places.items():
        if kind == "tree":
            lists[i] = lists[i].replace("(S1", "(S1 (", 1)
        elif kind == "score":
            lists[i] = "1\tbad\nno number\n(S1 (NN x))"
        else:
            golds[i] = "(S1 (NN other) (NN words))"
    small.write_lists(data / "train.nbest.gz", lists)
    small.write_golds(data / "train.gold.gz", golds)


def test_bad_lists_are_counted_through_all_blocks(data, monkeypatch):
    damage(data, {3: "gold", 17: "score", 18: "tree", 30: "tree", 39: "gold"})
    recipe = small.recipe(data, data={"dev": None, "on_bad_list": "skip"})
    whole, table = extract_training(recipe)
    assert whole.about["skipped"] == {"score": 1}
    assert whole.about["refused"] == 2
    assert whole.about["skipped_candidates"] == {"brackets": 2}
    for lists in (1, 4):  # of one list: blocks without any that can be used
        cut_into(monkeypatch, lists)
        found, found_table = extract_training(recipe, Pickling())
        assert_same_extracted(found, whole)
        assert_same_tables(found_table, table)


@pytest.mark.parametrize("lists", [4, 100])
@pytest.mark.parametrize("places", [{17: "tree", 5: "score", 30: "gold"}, {33: "score", 38: "gold"}])
def test_the_first_bad_list_is_the_error(lists, places, data, tmp_path, monkeypatch):
    damage(data, places)
    small.write_golds(data / "train.gold.gz", small.golds_of(data / "train.gold.gz")[:-1])  # an error behind them
    cut_into(monkeypatch, lists)
    store = CorpusCache(tmp_path / "cache")
    number = small.lists_of(data / "train.nbest.gz")[min(places)].split("\n")[0].split("\t")[1]
    with pytest.raises(DataError, match="fix or remove the list") as caught:
        store.training(small.recipe(data), Pickling())
    assert caught.value.list_id == number
    assert list(store.directory.iterdir()) == []


@BOTH
def test_files_that_do_not_fit_are_an_error_behind_the_lists(policy, data, monkeypatch):
    small.write_golds(data / "train.gold.gz", small.golds_of(data / "train.gold.gz")[:-3])
    cut_into(monkeypatch, 5)
    with pytest.raises(DataError, match="37 gold trees"):
        extract_training(small.recipe(data, data={"on_bad_list": policy}), Pickling())


@BOTH
def test_gold_trees_of_other_sentences(policy, data, monkeypatch):
    damage(data, dict.fromkeys(range(21), "gold"))
    cut_into(monkeypatch, 6)
    with pytest.raises(DataError, match=r"21 of 40 sentences .*list train-1: .*found .*'other'.*in the same order\?"):
        extract_training(small.recipe(data, data={"on_bad_list": policy}))
    found, _ = extract_training(small.recipe(data, data={"on_bad_list": policy}, metric={"max_error": 20}))
    assert (found.about["lists"], found.about["refused"]) == (40, 21)


def test_templates_that_fail_in_a_worker(data, tmp_path, monkeypatch):
    (tmp_path / "fails_for_tests.py").write_text("def fail(one):\n    raise OSError('no such luck')\n")
    said = r"train\.nbest\.gz:3: list train-1, candidate 1: template own failed at .*fails_for_tests\.py:2, .*: no such"
    monkeypatch.syspath_prepend(tmp_path)
    cut_into(monkeypatch, 6)
    recipe = small.recipe(data, features={"user": {"own": "fails_for_tests:fail"}})
    with Engine(Processes(2)) as engine, pytest.raises(RecipeError, match=said):
        extract_training(recipe, engine)


def test_a_warning_is_given_once(data, monkeypatch, caplog):
    small_texts.write_task(data)
    for path in data.glob("*.nbest.gz"):
        small_texts.write_lines(path, [line.rsplit(" ||| ", 1)[0] for line in small_texts.lines_of(path)])
    recipe = small_texts.recipe(data)
    logger, found = logging.getLogger("rerank"), []
    handlers = logger.handlers[:]
    for lists in (100, 5):
        cut_into(monkeypatch, lists)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "rerank"):
            extract_training(recipe, Pickling())
        found.append([record.getMessage() for record in caplog.records])
    assert found[0] == found[1]
    assert len(found[0]) == len(set(found[0])) > 0
    assert logger.handlers == handlers


def test_a_folder_that_a_worker_does_not_see_is_named(tmp_path):
    spool = Spool(str(tmp_path / "gone"))
    with pytest.raises(RunError, match=rf"gone: the worker {socket.gethostname()}, process \d+, does not see this"):
        spool.save(4, {}, {})
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("reader", ["trees", "texts"])
def test_blocks_of_an_extraction_that_was_stopped_are_used(data, tmp_path, monkeypatch, caplog, reader):
    """Whatever they say, too: what is extracted in the end, and what is logged, is that of one that was not stopped.
    A block that was cut off, and those of files that have changed, are made again."""
    if reader == "texts":
        small_texts.write_task(data)
        recipe = small_texts.recipe(data, data={"on_bad_list": "skip"})
        split = data / "train.nbest.gz"
        small_texts.write_lines(split, [line.rsplit(" ||| ", 1)[0] for line in small_texts.lines_of(split)])
    else:
        recipe, split = small.recipe(data, data={"on_bad_list": "skip"}), data / "train.nbest.gz"
    cut_into(monkeypatch, 5)
    made, stop, extract = list[int](), [3], blocks._extract

    def counted(job: Any, block: Any) -> Any:
        if len(made) == stop[0]:
            raise KeyboardInterrupt
        made.append(block.number)
        return extract(job, block)

    monkeypatch.setattr(blocks, "_extract", counted)
    cache = CorpusCache(tmp_path / "cache")
    with pytest.raises(KeyboardInterrupt):
        cache.training(recipe)
    (left,) = (tmp_path / "cache").glob(".*.blocks")
    assert sorted(path.name for path in left.iterdir()) == ["000000", "000001", "000002"]
    os.truncate(left / "000001" / "base.npy", 130)
    made.clear()
    stop[0] = 10**6
    found = list[Any]()
    for place in (cache, CorpusCache(tmp_path / "other")):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "rerank"):
            extracted, table, key = place.training(recipe)
        made.append(-1)
        about = {name: value for name, value in extracted.about.items() if name != "seconds"}
        said = [record.getMessage() for record in caplog.records]
        found.append((extracted.ids, about, bytes_of(extracted.corpus), key, table.about, said))
    assert found[0] == found[1]
    again = made[: made.index(-1)]
    assert again == [1, *range(3, 1 + max(made))]
    assert not list((tmp_path / "cache").glob(".*"))

    stop[0] = 2
    made.clear()
    with pytest.raises(KeyboardInterrupt):
        CorpusCache(tmp_path / "third").training(recipe)
    split.touch()
    stop[0] = 10**6
    made.clear()
    CorpusCache(tmp_path / "third").training(recipe)
    assert made[:2] == [0, 1]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=36), st.integers(1, 200))
def test_shards_are_of_equal_size(sizes: list[int], limit: int) -> None:
    cuts = divide(np.array(sizes), limit)
    assert (cuts[0], cuts[-1]) == (0, len(sizes))
    assert cuts == sorted(set(cuts))
    number = -(-sum(sizes) // limit)
    weights = [sum(sizes[first:last]) for first, last in pairwise(cuts)]
    assert max(weights) < sum(sizes) / number + max(sizes)
    assert len(weights) <= number


HEAD = codecs.BOM_UTF8.decode()


def lines_of(case: str) -> list[str]:
    """120 lists, with what is amiss in some, and blank lines between."""
    drawn, right = small_rankings.draw(np.random.default_rng(3), 120)
    items: list[dict[str, Any]] = [
        {
            "id": f"list {i}",
            "candidates": [
                {"text": f"x{y}", **dict(zip(small_rankings.COLUMNS, row, strict=True)), "gain": gain}
                for y, (row, gain) in enumerate(zip(drawn[i].tolist(), right[i].tolist(), strict=True))
            ],
        }
        for i in range(120)
    ]
    for i, item in enumerate(items):
        if case == "numbered" or (case == "bad" and i == 30):
            del item["id"]
        if case in ("twice", "bad") and i in (50, 90, 91):
            item["id"] = f"list {i - 41}"
        if case == "bad" and i in (60, 61):
            item["candidates"][2]["logprob"] = "none"
        if case == "bad" and i in (7, 77):
            item["candidates"] = []
    lines = [json.dumps(item) for item in items]
    if case in ("bad", "numbered"):
        lines[40] = lines[40][:-9]
        lines.insert(35, " \t")
    return [HEAD + lines[0], *lines[1:]]


def lines_recipe(root: Path, case: str, policy: str) -> TextRecipe:
    (root / "train.jsonl").write_text("\n".join(lines_of(case)) + "\n" * (case == "bad"))
    data = {"nbest": "{root}/{split}.jsonl", "on_bad_list": policy, "dev": None, "tests": []}
    return small_rankings.recipe(root, data=data)


def in_stretches(monkeypatch: pytest.MonkeyPatch, lists: int = 8, size: int = 1 << 12) -> None:
    """Stretches of so many lists and bytes, of the smallest files too."""
    monkeypatch.setattr(inputs, "MIN_SPLIT_BYTES", 0)
    monkeypatch.setattr(blocks, "BLOCK_LISTS", lists)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", size)


@pytest.mark.parametrize("case", ["plain", "numbered", "bad", "twice"])
def test_stretches_are_read_as_the_file_is(case, tmp_path, monkeypatch):
    asked = lines_recipe(tmp_path, case, "skip")
    whole, table = extract_training(asked)
    test = extract_split(asked, "train", table)
    assert (whole.about["skipped"] != {}) == (case != "plain")
    in_stretches(monkeypatch)
    for engine in (Engine(), Pickling()):
        found, found_table = extract_training(asked, engine)
        assert_same_extracted(found, whole)
        assert_same_tables(found_table, table)
        assert_same_extracted(extract_split(asked, "train", table, engine), test)


@pytest.mark.parametrize("case", ["numbered", "bad", "twice"])
def test_the_first_bad_list_of_any_stretch_is_the_error(case, tmp_path, monkeypatch):
    asked, messages = lines_recipe(tmp_path, case, "error"), list[str]()
    for _ in range(2):
        with pytest.raises(DataError) as caught:
            extract_training(asked, Pickling())
        messages.append(str(caught.value))
        in_stretches(monkeypatch)
    assert messages[0] == messages[1]


def test_workers_read_stretches_and_leave_the_same_files(tmp_path, monkeypatch):
    in_stretches(monkeypatch)
    asked, headers = lines_recipe(tmp_path, "twice", "skip"), list[Any]()
    for name, engine in (("one", Engine()), ("two", Engine(Processes(2)))):
        with engine:
            cache = CorpusCache(tmp_path / name)
            extracted, _, key = cache.training(asked, engine)
        headers.append((key, extracted.ids, small.files_of(cache.directory / key / "corpus")))
    assert headers[0] == headers[1]


def test_a_file_that_changes_behind_the_plan_is_an_error(tmp_path, monkeypatch):
    asked = lines_recipe(tmp_path, "plain", "skip")
    in_stretches(monkeypatch)

    class Late(Engine):
        def map(self, function: Any, tasks: Any) -> Any:
            every = list(tasks)
            path = tmp_path / "train.jsonl"
            path.write_bytes(path.read_bytes().replace(b"list 99", b"list 98"))
            return map(function, every)

    with pytest.raises(DataError, match="the file has changed since this run first read it; run it again"):
        extract_training(asked, Late())


def test_compressed_files_are_read_in_stretches_and_rows_by_one_process(tmp_path, monkeypatch):
    small_rankings.write_task(tmp_path)
    whole, _ = extract_training(small_rankings.recipe(tmp_path))
    in_stretches(monkeypatch)
    found, _ = extract_training(small_rankings.recipe(tmp_path), Pickling())
    assert_same(found.corpus, whole.corpus)
    monkeypatch.setattr(inputs.Stretch, "lists", None)
    rows = [
        {"prompt_id": i // 4, "text": f"x{i}", "logprob": i % 5, "reward": i % 3, "gain": i % 2} for i in range(400)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    data = {"nbest": "{root}/{split}.jsonl", "train": "rows", "dev": None, "tests": []}
    assert extract_training(small_rankings.recipe(tmp_path, data=data))[0].corpus.list_count == 100


@pytest.mark.parametrize("policy", ["error", "skip"])
@pytest.mark.parametrize("case", ["whole", "bad", "fewer lists", "fewer references"])
def test_lists_of_moses_and_the_texts_beside_them_are_read_in_stretches(case, policy, tmp_path, monkeypatch):
    small_texts.write_task(tmp_path)
    name = tmp_path / ("train.ref.gz" if case == "fewer references" else "train.nbest.gz")
    lines = small_texts.lines_of(name)
    if case == "bad":
        lines[220] = "junk"
        lines[150:156] = ["25 ||| a ||| LM0= none ||| 0"]
    small_texts.write_lines(name, lines[: -12 if case == "fewer lists" else -2] if case.startswith("fewer") else lines)
    asked, read = small_texts.recipe(tmp_path, data={"on_bad_list": policy}), inputs.Stretch.lists

    def outcome(engine: Engine) -> Any:
        try:
            found, _ = extract_training(asked, engine)
        except DataError as error:
            return str(error)
        return bytes_of(found.corpus), found.ids, {**found.about, "seconds": 0}

    whole, used = outcome(Engine()), list[int]()
    in_stretches(monkeypatch)
    if isinstance(whole, str):  # no account
        monkeypatch.setattr(inputs, "ACCOUNT_LISTS", 5)
    monkeypatch.setattr(inputs.Stretch, "lists", lambda self, seen: used.append(self.at) or read(self, seen))
    assert [outcome(Engine()), outcome(Pickling())] == [whole, whole]
    assert len(set(used)) > 1
    assert isinstance(whole, str) == (case == "fewer references" or (case != "whole" and policy == "error"))
