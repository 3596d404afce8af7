"""Every reader of named scores holds its lists to the columns of training; a new one needs a line in small_lists."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_lists
from small_lists import LISTS, Candidate, Format, recipe

from rerank.base.errors import DataError
from rerank.extraction.extraction import extract_split, extract_training
from rerank.learn.base import Weights
from rerank.models.model import Model
from rerank.models.scorer import Ranked, Scorer
from rerank.readers.base import Problem, SkipCount, readers
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.several import make_reader
from rerank.readers.trees.charniak import ParseReader

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
        assert isinstance(one, Ranked)
        assert isinstance(two, Ranked)
        np.testing.assert_array_equal(one.scores, two.scores)


def drop(lists: list[list[Candidate]], which: slice, candidates: slice = slice(None)) -> None:
    """Take the last column from some candidates of some lists."""
    for one in lists[which]:
        for candidate in one[candidates]:
            del candidate["tm"]


def test_every_reader_of_texts_is_here() -> None:
    texts = {name for name, cls in readers if not issubclass(cls, ParseReader)}
    assert texts <= {form.reader["name"] for form in small_lists.FORMATS.values()}


@every_format
def test_a_model_names_its_columns_and_their_sources(name: str, models: dict[str, Model]) -> None:
    columns = ScoreColumns.of_table(models[name].table.about)
    assert columns is not None
    base = FORMATS[name].base
    assert (set(columns.names), columns.base) == ({base, *FORMATS[name].columns}, base)
    expected: dict[str, set[str]] = {
        "merged": {"system_1", "system_2"}, "joined": {"moses", "joined"}, "joshua": {"moses"}, "own": {"lists"},
        "merged parses": {"system_1", "system_2"}, "joined parses": {"parses", "joined"},
    }.get(name, {name})  # fmt: skip
    assert set(columns.sources) == expected
    brought = {column for own in columns.sources.values() for column in own}
    assert brought == set(columns.names) - {"system_1", "system_2"}


@every_format
def test_a_list_that_lacks_a_column_is_bad(name: str, models: dict[str, Model], tmp_path: Path) -> None:
    form, model = FORMATS[name], models[name]
    whole, _ = rank(model, form, form.write(tmp_path, small_lists.complete()))
    path = changed(form, tmp_path, lambda lists: drop(lists, slice(2, 3)))
    if form.sparse:  # the file's first lists show that the program writes the label where it is not 0
        found, count = rank(model, form, path)
        assert (len(found), count.absent["tm"]) == (LISTS, 3)
        assert "'tm'" in str(count)
        return
    with pytest.raises(DataError, match=r"list 2"):
        rank(model, form, path)
    found, count = rank(model, form, path, "skip")
    assert isinstance(found[2], Problem)
    assert (count.reasons["columns"] + count.reasons["score"], count.skipped, count.lists) == (1, 1, LISTS - 1)
    same(found[:2] + found[3:], whole[:2] + whole[3:])


@every_format
def test_a_file_that_lacks_a_column_has_no_usable_list(name: str, models: dict[str, Model], tmp_path: Path) -> None:
    form, model = FORMATS[name], models[name]
    path = changed(form, tmp_path, lambda lists: drop(lists, slice(None)))
    if name == "joined":  # the file of scores has another header
        text = (tmp_path / "joined.scores").read_text().split("\n", 1)[0] + "\n" + "1.5\n" * 3 * LISTS
        (tmp_path / "joined.scores").write_text(text)
    with pytest.raises(DataError, match=r"'tm'|'sum'|'mean'|'factor2'|P-"):
        rank(model, form, path)
    found, count = rank(model, form, path, "skip")
    assert all(isinstance(each, Problem) for each in found)
    assert (len(found), count.reasons["columns"]) == (LISTS, LISTS)


@every_format
def test_a_candidate_that_lacks_a_column_does_not_have_0(name: str, models: dict[str, Model], tmp_path: Path) -> None:
    form, model = FORMATS[name], models[name]
    path = changed(form, tmp_path, lambda lists: drop(lists, slice(None), slice(1, 2)))
    if form.sparse:
        _, count = rank(model, form, path)
        assert count.absent == {"tm": LISTS}
        return
    with pytest.raises(DataError):
        rank(model, form, path)
    _, count = rank(model, form, path, "skip")
    assert count.skipped + getattr(count, "skipped_candidates", 0) == LISTS


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
        assert isinstance(each, Ranked)
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
    assert str(count).splitlines()[1:] == ["1 score column the model does not know: lm2"]
    same(found, whole)


@every_format
def test_lists_from_memory_are_held_to_the_columns_too(name: str, models: dict[str, Model], tmp_path: Path) -> None:
    form, scorer = FORMATS[name], Scorer(models[name])
    path = form.write(tmp_path, small_lists.complete())
    whole = next(iter(make_reader(dict(form.reader)).read(path)))
    assert whole.problem is None
    scorer.content.open(whole)
    lacking = whole.changed(names=(form.base,), scores=whole.base.reshape(-1, 1), column=0, sources={})
    with pytest.raises(Problem) as caught:
        scorer.content.open(lacking)
    assert caught.value.reason == "columns"
    other = whole.changed(names=("total", *whole.names), scores=np.insert(whole.scores, 0, 1.0, axis=1), column=0)
    with pytest.raises(Problem, match=re.escape(f"the base score is 'total'; expected {form.base!r}")):
        scorer.content.open(other)
