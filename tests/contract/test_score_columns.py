"""Score columns and answers of all formats: the same wherever they stand."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_lists
from commands import COMMANDS, Command
from small_lists import LISTS, Candidate, Format, recipe

from rerank import tagger
from rerank.base.errors import DataError
from rerank.extraction.extraction import extract_split, extract_training
from rerank.learn.learner import Weights
from rerank.models.model import Model
from rerank.models.scorer import Ranked, Scorer
from rerank.readers.reader import Problem, ScoreColumns, SkipCount, make_reader

Change = Callable[[list[list[Candidate]]], Any]
FORMATS = {name: form for name, form in small_lists.FORMATS.items() if form.columns}
every_format = pytest.mark.parametrize("name", FORMATS)


def model_of(form: Format, root: Path) -> Model:
    """A model whose columns are those of complete lists; column j weighs j + 1."""
    settings = recipe(form, form.write(root, small_lists.complete()))
    _, table = extract_training(settings)
    weights = Weights(1.0 + np.arange(table.width), 0.5)
    return Model(settings.model_dump(mode="json"), {}, table, {"last": weights, "average": weights})


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    return {name: model_of(form, tmp_path_factory.mktemp(name)) for name, form in FORMATS.items()}


def changed(form: Format, root: Path, change: Change) -> str:
    found = small_lists.complete()
    change(found)
    return form.write(root, found)


def rank(model: Model, form: Format, path: str, policy: Any = "error") -> tuple[list[Ranked | Problem], SkipCount]:
    scorer, count = Scorer(model), SkipCount(policy)
    return list(scorer.rank(scorer.read(make_reader(dict(form.reader)), path, count))), count


def same(found: list[Ranked | Problem], expected: list[Ranked | Problem]) -> None:
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.scores, two.scores)


def drop(lists: list[list[Candidate]], which: slice, candidates: slice = slice(None)) -> None:
    """Take the last column from some candidates of some lists."""
    for one in lists[which]:
        for candidate in one[candidates]:
            del candidate["tm"]


@every_format
def test_a_model_names_its_columns_and_their_sources(name: str, models: dict[str, Model]) -> None:
    columns = ScoreColumns.of_table(models[name].table.about)
    base = FORMATS[name].base
    assert (set(columns.names), columns.base) == ({base, *FORMATS[name].columns}, base)
    expected: dict[str, set[str]] = {
        "merged": {"system_1", "system_2"}, "joined": {"moses", "joined"}, "joshua": {"moses"}, "own": {"lists"},
        "merged parses": {"system_1", "system_2"}, "joined parses": {"parses", "joined"},
    }.get(name, {name})  # fmt: skip
    assert set(columns.sources) == expected
    brought = {column for own in columns.sources.values() for column in own}
    assert brought == set(columns.names) - {"system_1", "system_2"}


LACKING = {
    "one list": (slice(2, 3), slice(None)),
    "all lists": (slice(None), slice(None)),
    "a candidate of each": (slice(None), slice(1, 2)),
}


@every_format
@pytest.mark.parametrize("what", LACKING)
def test_what_lacks_a_column_is_bad_and_does_not_have_0(
    name: str, what: str, models: dict[str, Model], tmp_path: Path
) -> None:
    form, model = FORMATS[name], models[name]
    whole, _ = rank(model, form, form.write(tmp_path, small_lists.complete()))
    path = changed(form, tmp_path, lambda lists: drop(lists, *LACKING[what]))
    if name == "joined" and what == "all lists":  # the file of scores has another header
        text = (tmp_path / "joined.scores").read_text().split("\n", 1)[0] + "\n" + "1.5\n" * 3 * LISTS
        (tmp_path / "joined.scores").write_text(text)
    if form.sparse and what != "all lists":  # the first lists show that the program writes the label where it is not 0
        found, count = rank(model, form, path)
        assert (len(found), count.absent) == (LISTS, {"tm": 3 if what == "one list" else LISTS})
        assert "'tm'" in str(count)
        return
    said = {"one list": "list 2", "all lists": r"'tm'|'sum'|'mean'|'factor2'|P-"}.get(what)
    with pytest.raises(DataError, match=said):
        rank(model, form, path)
    found, count = rank(model, form, path, "skip")
    if what == "one list":
        assert isinstance(found[2], Problem)
        assert (count.reasons["columns"] + count.reasons["score"], count.skipped, count.lists) == (1, 1, LISTS - 1)
        same(found[:2] + found[3:], whole[:2] + whole[3:])
    elif what == "all lists":
        assert all(isinstance(each, Problem) for each in found)
        assert (len(found), count.reasons["columns"]) == (LISTS, LISTS)
    else:
        assert count.skipped + count.skipped_candidates == LISTS


@every_format
@pytest.mark.parametrize("first", [0, 3, 5])
def test_lists_are_held_to_the_columns_of_training_and_those_of_training_to_the_first(
    name: str, first: int, models: dict[str, Model], tmp_path: Path
) -> None:
    form, model = FORMATS[name], models[name]
    path = changed(form, tmp_path, lambda lists: drop(lists, slice(first, first + 1)))
    ways = [lambda: extract_split(recipe(form, path), "dev", model.table)]
    ways += [lambda: extract_training(recipe(form, path))[0]] if first else []
    for extract in ways:
        if form.sparse:
            assert extract().about["absent"] == {"tm": 3}
            continue
        with pytest.raises(DataError, match=f"list {first}"):
            extract()
    if form.sparse:
        return
    found = extract_split(recipe(form, path, on_bad_list="skip"), "dev", model.table)
    assert (sum(found.about["skipped"].values()), found.corpus.list_count) == (1, LISTS - 1)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        (name, other)
        for name, other in product(FORMATS, FORMATS)
        if FORMATS[name].trees == FORMATS[other].trees and (name == "moses" or other == "jsonl" or FORMATS[name].trees)
    ],
)
def test_lists_of_another_format_are_ranked_where_they_have_the_columns(
    name: str, other: str, models: dict[str, Model], tmp_path: Path
) -> None:
    form, model = FORMATS[other], models[name]
    path = form.write(tmp_path, small_lists.complete())
    lacking = {FORMATS[name].base, *FORMATS[name].columns} - {form.base, *form.columns, "gain"}  # which no model needs
    if lacking:
        with pytest.raises(DataError, match="|".join(f"'{column}'" for column in lacking)):
            rank(model, form, path)
        _, count = rank(model, form, path, "skip")
        assert (count.reasons, count.lists) == ({"columns": LISTS}, 0)
        return
    found, count = rank(model, form, path)
    assert set(count.unknown) == set(form.columns) - set(FORMATS[name].columns)
    weight = {model.table.name(j).partition("|")[2]: 1.0 + j for j in range(model.table.width)}
    for each in found:
        values = dict(zip(each.nbest.names, each.nbest.scores.T, strict=True))
        expected = 0.5 * each.nbest.base + sum(weight.get(column, 0.0) * own for column, own in values.items())
        np.testing.assert_allclose(each.scores, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["moses", "joshua", "jsonl", "joined", "merged", "own", "sockeye", "joined parses", "merged parses"]
)
def test_a_column_that_the_model_does_not_know_is_named(name: str, models: dict[str, Model], tmp_path: Path) -> None:
    form, model = FORMATS[name], models[name]
    whole, count = rank(model, form, form.write(tmp_path, small_lists.complete()))
    assert not count.unknown

    def add(lists: list[list[Candidate]]) -> None:
        for i, one in enumerate(lists):
            for y, candidate in enumerate(one):
                candidate["lm2"] = 10.0 * (i + y)

    if name == "sockeye":
        model = replace(model, table=replace(model.table, about=model.table.about | {"scores": ["score", "factor1"]}))
        found, count = rank(model, form, form.write(tmp_path, small_lists.complete()))
        assert (count.unknown, len(found)) == ({"factor2": LISTS}, LISTS)
        return
    found, count = rank(model, form, changed(form, tmp_path, add))
    assert count.unknown == {"lm2": LISTS}
    assert str(count).splitlines()[1:] == ["1 score column of these lists alone, not of the training lists: lm2"]
    same(found, whole)


@every_format
def test_lists_from_memory_are_held_to_the_columns_too(name: str, models: dict[str, Model], tmp_path: Path) -> None:
    form, scorer = FORMATS[name], Scorer(models[name])
    path = form.write(tmp_path, small_lists.complete())
    whole = next(iter(make_reader(dict(form.reader)).read(path)))
    scorer.content.open(whole)
    lacking = whole.replace(names=(form.base,), scores=whole.base.reshape(-1, 1), column=0, sources={})
    with pytest.raises(Problem) as caught:
        scorer.content.open(lacking)
    assert caught.value.reason == "columns"
    other = whole.replace(names=("total", *whole.names), scores=np.insert(whole.scores, 0, 1.0, axis=1), column=0)
    with pytest.raises(Problem, match=re.escape(f"the base score is 'total'; expected {form.base!r}")):
        scorer.content.open(other)


CASES = {
    "evaluate": "evaluate {data}/best.txt {data}/gold.txt",
    "evaluate systems": "evaluate {data}/best.txt {data}/gold.txt {data}/gold.txt",
    "evaluate texts": "evaluate {data}/gold.txt {data}/best.txt --metric wer --sentences",
    "oracle": "oracle {data}/test.nbest.gz {data}/test.gold.gz",
    "look": "look {data}/samples.jsonl",
    "inspect": "inspect {run}/model --top 2",
    "inspect feature": "inspect {run}/model --feature NP",
    "inspect provenance": "inspect {run}/model --provenance",
    "explain": "explain {run}/model {data}/test.nbest.gz --list test-3 --gold {data}/test.gold.gz --top 3",
    "compare": "compare {run} {run} --samples 100",
    "run --until extract": "run {data}/mine.yaml --output {work}/answers --until extract",
    "run": "run {data}/mine.yaml --output {work}/answers",
    "run --until train": "run {data}/mine.yaml --output {work}/answers --until train",
    "tune": "tune {data}/several.yaml --output {work}/answers-tune",
    "list": "list",
    "list recipes": "list recipes",
    "rank": "rank {run}/model {data}/test.nbest.gz",
    "tag": "tag {data}/tagger {data}/words.txt",
    "tag --n-best": "tag {data}/tagger {data}/words.txt --n-best 2 --output {new}/lists.jsonl",
    "new": "new {data}/samples.jsonl --output {new}/new.yaml",
    "fuse": "fuse search/lexical search/neural --qrels search/qrels",
    "vote": "vote {data}/samples.jsonl --samples 20 --folds 2",
    "weigh": "weigh {data}/samples.jsonl --samples 20 --folds 3 --resamples 2",
}
OTHERS = ("serve", "export", "import")  # have no results to print as an object
NUMBER = re.compile(r"(?<![\w.:|/(-])[+-]?\d[\d,]*(?:\.\d+)?(?![\w.:|/-]*[A-Za-z:|/])")


@pytest.fixture(scope="module")
def places(
    small_data: Path, small_run: Path, workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The files that the cases name."""
    data = tmp_path_factory.mktemp("answers")
    shutil.copytree(small_data, data, dirs_exist_ok=True)
    golds = small.golds_of(data / "test.gold.gz")
    (data / "gold.txt").write_text("".join(f"{tree}\n" for tree in golds))
    lists = small.lists_of(data / "test.nbest.gz")
    (data / "best.txt").write_text("".join(f"{block.splitlines()[2]}\n" for block in lists))
    sample = {"candidates": [{"text": "a", "answer": a, "lm": n, "gain": n % 2} for n, a in enumerate("112")]}
    (data / "samples.jsonl").write_text(f"{json.dumps(sample)}\n" * 6)
    tagger([[("a", "X"), ("b", "Y")]] * 2, reader="slash").save(data / "tagger")
    (data / "words.txt").write_text("a b\n")
    (data / "mine.yaml").write_text(json.dumps(small.settings(small_data, training={"epochs": 1, "vote": False})))
    several = small.settings(small_data, training={"epochs": 1}, grid={"training.epochs": [1, 2]}, seeds=[1])
    (data / "several.yaml").write_text(json.dumps(several))
    return {"data": data, "run": small_run, "work": workspace}


def words_of(name: str, places: dict[str, Path], new: Path) -> list[str]:
    """The words of a case, ``new`` being a directory for what it writes."""
    new.mkdir(exist_ok=True)
    return [word.format(**places, new=new) for word in CASES[name].split()]


def strict(text: str) -> Any:
    """``text`` as JSON, without NaN and repeated keys."""

    def no_constant(name: str) -> None:
        raise AssertionError(name)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), [key for key, _ in pairs]
        return dict(pairs)

    return json.loads(text, parse_constant=no_constant, object_pairs_hook=once)


def leaves(value: Any) -> Iterator[Any]:
    """All values and keys."""
    if isinstance(value, dict):
        yield from value
        value = [*value.values()]
    if isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def holds(found: list[Any], shown: str) -> bool:
    """Is the number ``shown`` one of those ``found``, rounded, or part of a text?"""
    number, digits = float(shown.replace(",", "")), len(shown.partition(".")[2])
    numbers = [float(value) for value in found if isinstance(value, int | float)]
    close = 0.5000001 * 10**-digits
    return any(abs(abs(scale * value) - abs(number)) <= close for value in numbers for scale in (1, 100)) or any(
        shown in value for value in found if isinstance(value, str)
    )


def test_every_command_has_a_case() -> None:
    assert [name for name in COMMANDS if not any(f"{case} ".startswith(f"{name} ") for case in (*CASES, *OTHERS))] == []


@pytest.mark.parametrize("name", CASES)
def test_json_holds_what_the_tables_show(rerank: Command, places: dict[str, Path], tmp_path: Path, name: str) -> None:
    plain = rerank(*words_of(name, places, tmp_path / "a"))
    answer = rerank("--quiet", *words_of(name, places, tmp_path / "b"), "--json")
    assert (plain.code, answer.code, answer.err) == (0, 0, ""), (plain.err, answer.err)
    if name == "rank":
        objects = [strict(line) for line in answer.out.splitlines()]
        texts = [each["text"] for each in objects]
        assert texts == plain.out.splitlines()
        assert [each["id"] for each in objects] == [f"test-{number}" for number in range(1, len(objects) + 1)]
        return
    found = [*leaves(strict(answer.out))]
    assert found, answer.out
    if name != "list":  # whose numbers are in the texts
        missing = [shown for shown in NUMBER.findall(plain.out.replace("95 % interval", "")) if not holds(found, shown)]
        assert not missing, (missing, plain.out)


def test_errors_are_shown_to_the_quiet(rerank: Command, tmp_path: Path) -> None:
    result = rerank("--quiet", "oracle", tmp_path / "none", tmp_path / "none", "--json")
    assert (result.code, result.out) == (2, "")
    assert "no such file" in result.err
