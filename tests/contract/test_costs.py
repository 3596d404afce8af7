"""Every reader can take its base scores for costs, and lists whose base scores look like costs are remarked on."""

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_lists
from outcomes import read_lists
from small_lists import FORMATS, recipe

from rerank.base.errors import RecipeError
from rerank.extraction.extraction import extract_training
from rerank.readers.lists import Lists
from rerank.readers.reader import Reader, SkipCount, make_reader, readers

TREES = {
    "charniak": {"name": "charniak"}, "berkeley": {"name": "berkeley"}, "groups": {"name": "berkeley"},
    "trees": {"name": "trees"}, "stanford": {"name": "stanford"},
}  # fmt: skip
every_reader = pytest.mark.parametrize("name", [*FORMATS, *TREES])


def write(name: str, root: Path, sign: float) -> str:
    """Lists whose first candidate has the best base score, or with ``sign`` -1 the worst."""
    found = small_lists.complete()
    for candidates in found:
        for one in candidates:
            one["score"] *= sign
    if name in FORMATS:
        return FORMATS[name].write(root, found)
    lines = []
    for i, candidates in enumerate(found):
        lines += [f"{len(candidates)}\t{i}"] * (name in ("charniak", "berkeley"))
        between = "\t" if name in ("groups", "trees") else "\n"
        for k, one in enumerate(candidates, start=1):
            start = f"# Parse {k} with score " if name == "stanford" else ""
            lines.append(f"{start}{one['score']}{between}(S1 (X{one['text'][-1]} x))")
        lines.append("")
    (root / name).write_text("\n".join(lines) + "\n")
    return str(root / name)


def reader_of(name: str, scores: str | None) -> Reader:
    spec = dict(FORMATS[name].reader) if name in FORMATS else dict(TREES[name])
    return make_reader(spec | ({"scores": scores} if scores else {}))


def read(reader: Reader, path: str) -> list[Lists]:
    found = list(reader.read(path))
    assert len(found) == small_lists.LISTS
    assert not any(nbest.problem is not None for nbest in found)
    return [nbest for nbest in found if nbest.problem is None]


def written(reader: Reader, nbest: Lists, scores: np.ndarray | None) -> bytes:
    out = io.BytesIO()
    order = None if scores is None else np.argsort(scores).tolist()
    reader.write(out, nbest, order, scores)
    return out.getvalue()


def test_all_readers_are_here() -> None:
    named = {form.reader["name"] for form in FORMATS.values()} | {spec["name"] for spec in TREES.values()}
    assert {name for name, _ in readers} <= named


@every_reader
def test_costs_are_negated_where_they_are_read_and_no_other_scores(name: str, tmp_path: Path) -> None:
    path = write(name, tmp_path, -1.0)
    for plain, cost in zip(*(read(reader_of(name, sign), path) for sign in ("score", "cost")), strict=True):
        np.testing.assert_array_equal(cost.base, -plain.base)
        others = np.arange(plain.scores.shape[1]) != plain.column
        sign = -1.0 if name == "sockeye" else 1.0  # all that sockeye writes are costs
        np.testing.assert_array_equal(cost.scores[:, others], sign * plain.scores[:, others])
        assert (cost.texts, cost.column, cost.id) == (plain.texts, plain.column, plain.id)


@every_reader
def test_lists_are_written_with_the_files_own_sign(name: str, tmp_path: Path) -> None:
    path, new = write(name, tmp_path, -1.0), np.array([0.25, 0.0, 4.5])
    plain, cost = (reader_of(name, sign) for sign in ("score", "cost"))
    for one, two in zip(read(plain, path), read(cost, path), strict=True):
        assert written(cost, two, None) == written(plain, one, None)
        assert b"4.5" in written(cost, two, new)
        # The order is that of the scores, which are the other way round in the file.
        out = io.BytesIO()
        plain.write(out, one, np.argsort(new).tolist(), 0.0 - new)
        assert written(cost, two, new) == out.getvalue()


@every_reader
def test_base_scores_that_look_like_costs_are_remarked_on(name: str, tmp_path: Path) -> None:
    default = reader_of(name, None)
    for sign, remark in ((1.0, False), (-1.0, True)):
        path, count = write(name, tmp_path, sign), SkipCount()
        list(read_lists(default, path, count=count))
        message = "the first candidate has the lowest base score in 100 % of the lists; if these are costs, set "
        assert (message + "data.reader.scores: cost" in str(count)) == remark
        assert count.as_dict().get("lowest_first") == ({"lists": 12, "of": 12} if remark else None)
    other, count = reader_of(name, "score" if name == "sockeye" else "cost"), SkipCount()
    list(read_lists(other, write(name, tmp_path, -1.0), count=count))
    assert len(str(count).splitlines()) == 1


@pytest.mark.parametrize(
    "spec", [{"name": "merged", "of": {"name": "moses", "scores": "cost"}}, {"name": "merged", "scores": "cost"}]
)
def test_systems_may_have_costs(spec: dict[str, Any], tmp_path: Path) -> None:
    path = write("merged", tmp_path, -1.0)
    plain = read(make_reader({"name": "merged"}), path)
    for one, two in zip(plain, read(make_reader(spec), path), strict=True):
        np.testing.assert_array_equal(two.base, -one.base)
        assert written(make_reader(spec), two, np.array([1.0, 3.0, 2.0])).count(b"||| -3.0") == 1


def test_options_of_a_reader_can_be_named_in_braces(tmp_path: Path) -> None:
    path = write("moses", tmp_path, -1.0)
    assert read(make_reader("{name: moses, scores: cost}"), path)[0].base.tolist() == [-1.0, -2.0, -3.0]
    for text, message in {"{name: moses": "not valid YAML", "{scores: cost}": "no reader is named"}.items():
        with pytest.raises(RecipeError, match=message):
            make_reader(text)


def test_extraction_logs_and_keeps_the_remark(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write("moses", tmp_path, -1.0)
    with caplog.at_level(logging.WARNING, "rerank"):
        found = extract_training(recipe(FORMATS["moses"], path))[0]
    assert found.about["lowest_first"] == {"lists": 12, "of": 12}
    said = [record.getMessage() for record in caplog.records if "lowest base score" in record.getMessage()]
    assert len(said) == 1
    caplog.clear()
    form = FORMATS["moses"]
    settings = recipe(form, path, reader={"name": "moses", "scores": "cost"})
    found = extract_training(settings)[0]
    assert "lowest_first" not in found.about
    assert found.corpus.base[:3].tolist() == [-1.0, -2.0, -3.0]
