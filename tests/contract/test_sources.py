"""Whatever the lists hold, several training sources are trained on as one file with the lists of all would be."""

from pathlib import Path

import pytest
import small_lists
from sameness import bytes_of
from small_lists import FORMATS, Candidate, Format

from rerank.base.errors import DataError
from rerank.extraction.cache import CorpusCache
from rerank.extraction.extraction import extract_training
from rerank.recipes.recipe import ListRecipe

NAMED = "kaldi", "espnet"  # lists with ids, utt0 and so on, which their references have too
every_format = pytest.mark.parametrize("name", FORMATS)
PARTS = {"one": slice(0, 5), "two": slice(5, None), "all": slice(None)}


def write(form: Format, place: Path, lists: list[list[Candidate]]) -> str:
    """The lists of a source, numbered from 0, and their references."""
    place.mkdir(exist_ok=True)
    words = [candidates[0]["text"].split()[0] for candidates in lists]
    ids = [f"utt{i} " if form.reader["name"] in NAMED else "" for i in range(len(lists))]
    texts = [f"(S1 (a (NN {w})))\n" if form.trees else f"{i}{w} a\n" for i, w in zip(ids, words, strict=True)]
    (place / "references").write_text("".join(texts))
    return form.write(place, lists)


def recipe(form: Format, root: Path, *sources: str) -> ListRecipe:
    """A recipe that trains on some of the sources ``PARTS``, which are written."""
    made = {name: write(form, root / name, small_lists.complete()[part]) for name, part in PARTS.items()}
    settings = small_lists.recipe(form, str(root / "lists"))
    here = str(root / "{split}")
    files = {"gold" if form.trees else "references": f"{here}/references"}
    paths = {"nbest": made["one"].replace(str(root / "one"), here), "train": list(sources), **files}
    templates = {"features.templates": ["BaseScore", "Dense"]}  # some formats have no columns besides the base score
    return settings.change({f"data.{key}": value for key, value in paths.items()} | templates)


@every_format
def test_sources_are_one_after_the_other_and_their_ids_kept_apart(name: str, tmp_path: Path) -> None:
    found = extract_training(recipe(FORMATS[name], tmp_path, "one", "two"))
    whole = extract_training(recipe(FORMATS[name], tmp_path, "all"))
    assert bytes_of(found[0].corpus) == bytes_of(whole[0].corpus)
    assert (found[1].hashes.tolist(), found[1].scale.tolist()) == (whole[1].hashes.tolist(), whole[1].scale.tolist())
    assert found[0].ids == [*(f"one/{i}" for i in whole[0].ids[:5]), *(f"two/{i}" for i in whole[0].ids[:7])]
    assert found[0].corpus.about["sources"] == [["one", 5], ["two", 7]]
    assert "sources" not in whole[0].corpus.about
    turned, _ = extract_training(recipe(FORMATS[name], tmp_path, "two", "one"))
    assert turned.ids == [*found[0].ids[5:], *found[0].ids[:5]]


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "espnet"])  # whose lists are folders
def test_errors_name_the_file_of_their_source(name: str, tmp_path: Path) -> None:
    form, named = FORMATS[name], name in NAMED
    settings = recipe(form, tmp_path, "one", "two")
    gold = "(S1 (a (NN w5)))\n" if form.trees else "utt0 w5 a\nutt1 w6 a\n" if named else "w5 a\n"
    (tmp_path / "two" / "references").write_text(gold)
    found = r"two/references.*1 (gold trees|references) for at least 2 lists of .*two/"
    if named or name == "fairseq":  # ids, and the numbers of inputs, tell which lists have no reference
        lacking = "two/utt2" if named else "two/1"
        found = rf"two/{name}.*: list {lacking}: .*two/references has no line of references with the id of the list"
    with pytest.raises(DataError, match=found):
        extract_training(settings)
    write(form, tmp_path / "two", small_lists.complete()[5:])
    for path in (tmp_path / "two").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"two/.*: no usable list in the file"):
        extract_training(settings)
    path.unlink()
    with pytest.raises(DataError, match=r"two/.*: no such file"):
        extract_training(settings)


def test_a_source_named_twice_counts_once(tmp_path: Path) -> None:
    found, _ = extract_training(recipe(FORMATS["jsonl"], tmp_path, "one", "one"))
    assert found.ids == [str(i) for i in range(5)]


@pytest.mark.parametrize("name", ["jsonl", "merged parses"])
def test_the_cache_knows_the_files_of_all_sources(name: str, tmp_path: Path) -> None:
    form, cache = FORMATS[name], CorpusCache(tmp_path / "cache")
    both = recipe(form, tmp_path, "one", "two")
    keys = [cache.training(settings)[2] for settings in (both, both, recipe(form, tmp_path, "two", "one"))]
    lists = small_lists.complete()
    lists[-1][0]["score"] -= 1.0
    write(form, tmp_path / "two", lists[5:])
    keys.append(cache.training(both)[2])
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
