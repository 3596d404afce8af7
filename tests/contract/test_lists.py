"""Whatever lists hold: base scores that are costs, and several training sources, which are as one file."""

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_lists
from outcomes import read_lists
from sameness import bytes_of
from small_lists import FORMATS, Candidate, Format, recipe

from rerank.base.errors import DataError, RecipeError
from rerank.extraction.extraction import CorpusCache, extract_training
from rerank.readers.lists import Lists
from rerank.readers.reader import Reader, SkipCount, make_reader, readers
from rerank.recipes.recipe import ListRecipe

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


NAMED = "kaldi", "espnet"  # lists with ids, utt0 and so on, which their references have too
every_format = pytest.mark.parametrize("name", FORMATS)
PARTS = {"one": slice(0, 5), "two": slice(5, None), "all": slice(None)}


def write_source(form: Format, place: Path, lists: list[list[Candidate]]) -> str:
    """The lists of a source, numbered from 0, and their references."""
    place.mkdir(exist_ok=True)
    words = [candidates[0]["text"].split()[0] for candidates in lists]
    ids = [f"utt{i} " if form.reader["name"] in NAMED else "" for i in range(len(lists))]
    texts = [f"(S1 (a (NN {w})))\n" if form.trees else f"{i}{w} a\n" for i, w in zip(ids, words, strict=True)]
    (place / "references").write_text("".join(texts))
    return form.write(place, lists)


def recipe_over(form: Format, root: Path, *sources: str) -> ListRecipe:
    """A recipe that trains on some of the sources ``PARTS``, which are written."""
    made = {name: write_source(form, root / name, small_lists.complete()[part]) for name, part in PARTS.items()}
    settings = small_lists.recipe(form, str(root / "lists"))
    here = str(root / "{split}")
    files = {"gold" if form.trees else "references": f"{here}/references"}
    paths = {"nbest": made["one"].replace(str(root / "one"), here), "train": list(sources), **files}
    templates = {"features.templates": ["BaseScore", "Dense"]}  # some formats have no columns besides the base score
    return settings.change({f"data.{key}": value for key, value in paths.items()} | templates)


@every_format
def test_sources_are_one_after_the_other_and_their_ids_kept_apart(name: str, tmp_path: Path) -> None:
    found = extract_training(recipe_over(FORMATS[name], tmp_path, "one", "two"))
    whole = extract_training(recipe_over(FORMATS[name], tmp_path, "all"))
    assert bytes_of(found[0].corpus) == bytes_of(whole[0].corpus)
    assert (found[1].hashes.tolist(), found[1].scale.tolist()) == (whole[1].hashes.tolist(), whole[1].scale.tolist())
    assert found[0].ids == [*(f"one/{i}" for i in whole[0].ids[:5]), *(f"two/{i}" for i in whole[0].ids[:7])]
    assert found[0].corpus.about["sources"] == [["one", 5], ["two", 7]]
    assert "sources" not in whole[0].corpus.about
    turned, _ = extract_training(recipe_over(FORMATS[name], tmp_path, "two", "one"))
    assert turned.ids == [*found[0].ids[5:], *found[0].ids[:5]]


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "espnet"])  # whose lists are folders
def test_errors_name_the_file_of_their_source(name: str, tmp_path: Path) -> None:
    form, named = FORMATS[name], name in NAMED
    settings = recipe_over(form, tmp_path, "one", "two")
    gold = "(S1 (a (NN w5)))\n" if form.trees else "utt0 w5 a\nutt1 w6 a\n" if named else "w5 a\n"
    (tmp_path / "two" / "references").write_text(gold)
    found = r"two/references.*1 (gold trees|references) for at least 2 lists of .*two/"
    if named or name == "fairseq":  # ids, and the numbers of inputs, tell which lists have no reference
        lacking = "two/utt2" if named else "two/1"
        found = rf"two/{name}.*: list {lacking}: .*two/references has no line of references with the id of the list"
    with pytest.raises(DataError, match=found):
        extract_training(settings)
    write_source(form, tmp_path / "two", small_lists.complete()[5:])
    for path in (tmp_path / "two").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"two/.*: no usable list in the file"):
        extract_training(settings)
    path.unlink()
    with pytest.raises(DataError, match=r"two/.*: no such file"):
        extract_training(settings)


def test_a_source_named_twice_counts_once(tmp_path: Path) -> None:
    found, _ = extract_training(recipe_over(FORMATS["jsonl"], tmp_path, "one", "one"))
    assert found.ids == [str(i) for i in range(5)]


@pytest.mark.parametrize("name", ["jsonl", "merged parses"])
def test_the_cache_knows_the_files_of_all_sources(name: str, tmp_path: Path) -> None:
    form, cache = FORMATS[name], CorpusCache(tmp_path / "cache")
    both = recipe_over(form, tmp_path, "one", "two")
    keys = [cache.training(settings)[2] for settings in (both, both, recipe_over(form, tmp_path, "two", "one"))]
    lists = small_lists.complete()
    lists[-1][0]["score"] -= 1.0
    write_source(form, tmp_path / "two", lists[5:])
    keys.append(cache.training(both)[2])
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
