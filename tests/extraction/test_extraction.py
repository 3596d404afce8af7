"""Extraction: what a split becomes, and when the cache gives it again."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import small
from sameness import assert_same_extracted, assert_same_tables

from rerank import pool as machine
from rerank.base.errors import DataError, RecipeError
from rerank.extraction import extraction
from rerank.extraction.extraction import CorpusCache, check_width, extract_training
from rerank.extraction.trees import TreeContent, make_parseval
from rerank.features.template import SETS
from rerank.runs import experiment
from rerank.storage.files import seal


@pytest.fixture
def data(small_data: Path, tmp_path: Path) -> Path:
    """A copy of the small data that a test may change; the training split is cut to 30 lists."""
    copy = tmp_path / "data"
    shutil.copytree(small_data, copy)
    small.write_slices(copy, {"train": 30})
    return copy


def entries(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} if directory.exists() else set()


def test_the_same_key_is_not_extracted_again(data, tmp_path, monkeypatch):
    store, recipe = CorpusCache(tmp_path / "cache"), small.recipe(data)
    first, table, key = store.training(recipe)
    dev = store.split(recipe, "dev", table, key)
    before = entries(store.directory)
    assert len(before) == 2

    def refuse(*_: Any) -> None:
        raise AssertionError("extracted again")

    monkeypatch.setattr(extraction, "Extraction", refuse)
    # What does not make the corpora makes no difference: learner, seed, name, where the files lie.
    moved = data.with_name("moved")
    data.rename(moved)
    other = small.recipe(moved, learner={"name": "vrda"}, seed=5, name="other", training={"epochs": 9})
    second, again, same_key = store.training(other)
    assert same_key == key
    assert_same_extracted(second, first)
    assert_same_extracted(store.split(other, "dev", again, same_key), dev)
    assert_same_tables(again, table)
    assert entries(store.directory) == before


CHANGES: dict[str, dict[str, Any]] = {
    "templates": {"features": {"templates": ["Rule"]}},
    "min_lists": {"features": {"min_lists": 3}},
    "centred": {"features": {"centred": False}},
    "hash_bits": {"features": {"hash_bits": 12}},
    "metric": {"metric": {"punctuation": "own"}},
    "reader": {"data": {"reader": {"name": "charniak", "duplicates": "drop"}}},
    "policy": {"data": {"on_bad_list": "skip"}},
}


@pytest.mark.parametrize("change", list(CHANGES.values()), ids=list(CHANGES))
def test_a_changed_setting_is_a_new_entry(data, tmp_path, change):
    store = CorpusCache(tmp_path / "cache")
    *_, key = store.training(small.recipe(data))
    *_, other = store.training(small.recipe(data, **change))
    assert other != key
    assert len(entries(store.directory)) == 2


def test_changed_bytes_are_a_new_entry(data, tmp_path):
    store, recipe = CorpusCache(tmp_path / "cache"), small.recipe(data)
    first, table, key = store.training(recipe)
    store.split(recipe, "dev", table, key)
    small.write_slices(data, {"train": 29})
    second, other_table, other = store.training(recipe)
    assert (first.corpus.list_count, second.corpus.list_count) == (30, 29)
    store.split(recipe, "dev", other_table, other)
    assert len(entries(store.directory)) == 4  # the dev split too: its columns are those of another table


def test_compression_is_no_change_and_other_code_is_one(data, tmp_path, monkeypatch):
    store, recipe = CorpusCache(tmp_path / "cache"), small.recipe(data)
    *_, key = store.training(recipe)
    small.write_lists(data / "train.plain", small.lists_of(data / "train.nbest.gz"))
    (data / "train.plain").replace(data / "train.nbest.gz")
    assert store.training(recipe)[2] == key
    monkeypatch.setattr(extraction, "code_digest", lambda _: "another program")
    assert store.training(recipe)[2] != key


@pytest.mark.parametrize("damage", ["split.json", "corpus/header.json", "corpus/values.npy", "table/table_hashes.npy"])
@pytest.mark.parametrize("how", ["missing", "cut short", "a bit flipped"])
def test_a_damaged_entry_is_an_error_that_names_it(data, tmp_path, damage, how):
    store, recipe = CorpusCache(tmp_path / "cache"), small.recipe(data)
    *_, key = store.training(recipe)
    file = store.directory / key / damage
    content = file.read_bytes()
    if how == "missing":
        file.unlink()
    else:
        flipped = content[:-1] + bytes([content[-1] ^ 1])
        file.write_bytes({"cut short": content[: len(content) // 2], "a bit flipped": flipped}[how])
    with pytest.raises(DataError, match=r"corpus is damaged .*; remove .* and run again") as caught:
        store.training(recipe)
    assert f"remove {store.directory / key} and" in str(caught.value)
    assert Path(damage).name in str(caught.value)


def test_ids_that_do_not_fit_are_damage(data, tmp_path):
    store, recipe = CorpusCache(tmp_path / "cache"), small.recipe(data)
    *_, key = store.training(recipe)
    file = store.directory / key / "split.json"
    header = json.loads(file.read_text())
    file.write_text(json.dumps(header | {"ids": header["ids"][:-1]}))
    seal(file.parent)
    with pytest.raises(DataError, match="29 ids for 30 lists"):
        store.training(recipe)


def test_another_users_template_is_a_new_entry(data, tmp_path, monkeypatch):
    module, store = tmp_path / "mine_for_tests.py", CorpusCache(tmp_path / "cache")
    module.write_text("def length(candidate):\n    return {'parens': candidate.text.count('(')}\n")
    monkeypatch.syspath_prepend(tmp_path)
    features = {"templates": [], "user": {"own": "mine_for_tests:length"}, "min_lists": 1}
    _, table, key = store.training(small.recipe(data, features=features))
    assert [table.name(j) for j in range(table.width)] == ["own|parens"]
    module.write_text(module.read_text().replace("{'parens': ", "{'parens': 2 * "))
    assert store.training(small.recipe(data, features=features))[2] != key


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("no_such_module_here:f", "cannot import feature 'no_such_module_here:f': ModuleNotFoundError"),
        ("broken_for_tests:f", "cannot import feature 'broken_for_tests:f': SyntaxError"),
        ("./mine.py:f", "ImportError: expected module:name, as mymodule:Name of the file mymodule.py"),
        ("plain", "unknown feature 'plain'"),
    ],
)
def test_users_templates_that_cannot_be_found(data, tmp_path, monkeypatch, path, hint):
    (tmp_path / "broken_for_tests.py").write_text("def f(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RecipeError, match=hint):
        extract_training(small.recipe(data, features={"user": {"own": path}}))


@pytest.mark.parametrize(
    ("features", "hint"),
    [
        ({"set": "cj2006", "templates": []}, "unknown template set 'cj2006'; did you mean cj2005"),
        ({"set": None, "templates": []}, "no template is named; name a set or templates"),
        ({"templates": ["Rulle"]}, "did you mean Rule"),
        ({"set": None, "templates": ["Rule", "Rule"]}, "Rule is named twice, in features.templates; name it once"),
    ],
)
def test_templates_that_do_not_exist(data, features, hint):
    with pytest.raises(RecipeError, match=hint):
        TreeContent(small.recipe(data, features=features))


def test_a_template_that_the_set_has_may_be_named_besides(data):
    features = {"set": "minimal", "templates": ["Dense", "Word(k=2)", "Word(k=3)"]}
    extractor = TreeContent(small.recipe(data, features=features)).extractor
    assert extractor.names == [*SETS["minimal"], "Word(k=3)"]


def test_a_parameter_file_leaves_no_room():
    with pytest.raises(RecipeError, match=r"metric.prm: an EVALB parameter file leaves no room"):
        make_parseval({"name": "parseval", "prm": "x.prm", "labeled": False})


def test_skipped_lists_are_counted(data, tmp_path):
    lists = small.lists_of(data / "test.nbest.gz")
    lists[3] = lists[3].replace("(S1", "(S1 (", 1)
    candidates = int(lists[3].split()[0])
    lists[7] = "1\tbad\nno number\n(S1 (NN x))"
    small.write_lists(data / "test.nbest.gz", lists)
    with pytest.raises(DataError, match="--on-bad-list skip"):
        experiment.run(small.recipe(data), tmp_path / "runs" / "strict")
    metrics = experiment.run(small.recipe(data, data={"on_bad_list": "skip"}), tmp_path / "runs" / "skip")
    found = metrics["corpora"]["test"]
    assert found["lists"] == 39
    assert (found["skipped"], found["skipped_candidates"]) == ({"score": 1}, {"brackets": 1})
    assert metrics["corpora"]["dev"]["skipped"] == metrics["corpora"]["dev"]["skipped_candidates"] == {}
    written = small.lists_of(tmp_path / "runs" / "skip" / "predictions" / "test.nbest.gz")
    assert len(written) == 40  # those that were skipped are there, without candidates, beside their gold trees
    assert written[7] == "0\tbad"
    assert written[3].startswith(f"{candidates - 1}\t")  # without the one whose tree is damaged
    log = (tmp_path / "runs" / "skip" / "log.txt").read_text()
    assert "skipped 1 list (score); the first: " in log
    assert "skipped 1 candidate (brackets); the first: " in log


def test_no_feature_at_all_is_an_error_that_says_what_to_set(small_data: Path) -> None:
    message = r"features: no feature is left: none of [\d,]+ features varies in 10000 of the 150 training lists; "
    with pytest.raises(RecipeError, match=message + r"set features\.min_lists below 10000, .* features\.set: base"):
        extract_training(small.recipe(small_data, features={"min_lists": 10_000}))
    silent = {"templates": [], "user": {"silent": f"{__name__}:silent"}}
    for hashed in ({}, {"hash_bits": 8}):
        with pytest.raises(RecipeError, match="the templates silent give nothing that varies within any of the 150"):
            extract_training(small.recipe(small_data, features=silent | hashed))


def silent(_: Any) -> dict[str, float]:
    """A template that gives nothing."""
    return {}


@pytest.mark.parametrize("hashed", [{}, {"hash_bits": 8}])
def test_the_base_score_alone_can_be_asked_for(small_data: Path, hashed: dict[str, int]) -> None:
    found, table = extract_training(small.recipe(small_data, features={"set": "base", "templates": []} | hashed))
    assert (found.corpus.list_count, found.corpus.nonzeros) == (150, 0)
    assert table.about["kept"] == 0


def test_a_table_that_cannot_be_numbered_or_held_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_width(2_000_000)
    with pytest.raises(RecipeError, match=r"^features.min_lists: 2,147,483,648 features .* at most 2,147,483,647"):
        check_width(1 << 31)
    monkeypatch.setattr(machine, "memory_limit", lambda: 10**9)
    with pytest.raises(RecipeError, match=r"^features.min_lists: a table of 9,000,000 columns takes 1.8 GB, .*hash"):
        check_width(9_000_000)
