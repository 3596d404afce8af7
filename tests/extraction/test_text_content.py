"""Texts as content: pairs of files, columns that are no features, references, figures; lists in blocks."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import small_texts
from sameness import assert_same_extracted, assert_same_tables

from rerank.base.errors import DataError, RecipeError
from rerank.data.corpus import free_values
from rerank.extraction.content import Content, Pair, SelectedTexts
from rerank.extraction.extraction import extract_split, extract_training
from rerank.extraction.kinds import resolve_features
from rerank.extraction.texts import TextContent, final_metrics, without_columns
from rerank.metrics.gain import Gain
from rerank.metrics.ngrams import Bleu
from rerank.metrics.wer import Match, Wer
from rerank.models.model import Model
from rerank.readers.lists import OF_LIST, ListCandidate, Lists
from rerank.readers.reader import SkipCount, filter_usable
from rerank.readers.texts import json_lines, text_list
from rerank.readers.texts.jsonl import JsonlReader
from rerank.recipes.loading import load_recipe, read_settings
from rerank.recipes.recipe import TextRecipe
from rerank.runs import experiment

LINES = [
    {"id": "a", "source": "x y", "references": ["one two", "one\nthree"], "candidates": [
        {"text": "one four", "score": -1.0, "gain": 0.5}, {"text": "one two", "score": -2.0, "gain": 1.0}]},
    {"id": "b", "source": "z", "references": ["five"], "candidates": []},
    {"id": "c", "source": "z", "references": ["six seven"], "candidates": [
        {"text": "six", "score": 0.0, "gain": 0.25}, {"text": "seven six", "score": -1.0, "gain": 0.0}]},
]  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "test.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    return tmp_path


def recipe(root: Path, **settings: Any) -> TextRecipe:
    files = {"root": str(root), "nbest": "{root}/{split}.jsonl", "sources": None, "references": None}
    own = {"data": {**files, "reader": {"name": "jsonl"}}, "features": {"set": "text", "min_lists": 1}}
    return TextRecipe.model_validate({"name": "texts", **own, **settings})


def texts_given(**changes: Any) -> Lists:
    settings: dict[str, Any] = {
        "id": "1", "path": "f", "line": 1, "texts": [b"a  b", b"caf\xc3\xa9 \xff"], "lines": [1, 2],
        "scores": np.array([[1.0, -2.0], [0.5, -3.0]]), "column": 1, "names": ("lm", "score"), "source": b"s t",
    }  # fmt: skip
    return Lists.one(**{**settings, **changes})


def test_candidates_of_texts() -> None:
    first, second = texts_given().candidates
    assert isinstance(first, ListCandidate)
    assert (first.tokens, first.source, first.text) == (["a", "b"], "s t", "a  b")
    assert second.tokens == ["café", "\udcff"]
    assert second.named_scores == {"lm": 0.5, "score": -3.0}
    assert second.scores.tolist() == [0.5, -3.0]
    assert [each.index for each in texts_given().candidates[::-1]] == [1, 0]
    assert texts_given(source=None).candidates[0].source is None
    with pytest.raises(DataError):
        _ = first.tree


def test_a_column_that_is_the_gain_is_no_feature() -> None:
    kept = without_columns(texts_given(), {"lm", "am"})
    assert (kept.names, kept.column, kept.base.tolist()) == (("score",), 0, [-2.0, -3.0])
    assert without_columns(texts_given(), {"other"}).names == ("lm", "score")
    with pytest.raises(RecipeError, match="base score"):
        without_columns(texts_given(), {"score"})


def test_derivations_of_lists_without_a_source_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "test.nbest").write_text("0 ||| one two ||| lm= -1 ||| -1 ||| 0=0 1=1\n")
    (tmp_path / "test.ref").write_text("one two\n")
    files = {
        "root": str(tmp_path),
        "nbest": "{root}/{split}.nbest",
        "references": "{root}/{split}.ref",
        "sources": None,
    }
    settings = recipe(tmp_path, data={**files, "reader": {"name": "moses"}})
    (pair,) = pairs(TextContent(settings), settings.data, SkipCount())
    assert pair.content.spans.shape == (0, 4)


def test_pairs_hold_sources_and_references(data: Path) -> None:
    settings = recipe(data)
    found = list(pairs(TextContent(settings), settings.data, SkipCount()))
    assert [pair.nbest.id for pair in found] == ["a", "b", "c"]
    assert found[0].gold == (b"one two", b"one\nthree")
    assert TextContent(settings).gold_text(found[0]) == "one two\none three"
    assert [pair.nbest.source for pair in found] == [b"x y", b"z", b"z"]  # type: ignore[attr-defined]


def pairs(content: Content[Any], data: Any, count: SkipCount) -> Iterator[Pair]:
    """The usable test lists with their references."""
    return filter_usable(content.read(data, "test"), content.pair, count)


def chosen(content: TextContent, settings: TextRecipe, **places: list[int]) -> Iterator[SelectedTexts]:
    """The texts of the test lists at these places, by selection."""
    for pair, *own in zip(pairs(content, settings.data, SkipCount("skip")), *places.values(), strict=True):
        texts = {name: pair.nbest.texts[y] if y >= 0 else b"" for name, y in zip(places, own, strict=True)}
        yield texts, pair.nbest.references


def test_final_figures_are_sacrebleus(data: Path) -> None:
    settings = recipe(data, metrics=["ter"])
    content = TextContent(settings)
    reports, signatures = content.describe(
        "test", ["base", "same", "best"], chosen(content, settings, base=[0, -1, 0], same=[0, -1, 0], best=[1, -1, 1])
    )
    references = [["one two", "five", "six seven"], ["one\nthree", None, None]]
    texts = {"base": ["one four", "", "six"], "best": ["one two", "", "seven six"]}
    scorers: dict[str, Any] = {
        "bleu": sacrebleu.BLEU(tokenize="none", force=True),
        "chrf": sacrebleu.CHRF(),
        "ter": sacrebleu.TER(),
    }
    for key, scorer in scorers.items():
        for name, hypotheses in texts.items():
            assert reports[name][key] == scorer.corpus_score(hypotheses, references).score
        assert signatures[key] == str(scorer.get_signature())
    assert reports["same"] == reports["base"]
    assert reports["same"] is not reports["base"]


def test_sacrebleu_sees_all_texts_where_its_counts_are_others(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = TextContent(settings := recipe(data))
    found = content.describe("test", ["base"], chosen(content, settings, base=[0, -1, 0]))
    monkeypatch.setattr(Bleu, "counts", lambda *_: [1] * 10)
    assert content.describe("test", ["base"], chosen(content, settings, base=[0, -1, 0])) == found


def test_figures_are_of_the_lists_that_the_corpus_has(tmp_path: Path) -> None:
    """A list with a broken derivation is left out of both."""
    (tmp_path / "test.jsonl").write_text(
        '{"source": "x", "reference": "no", "candidates": [{"text": "a b", "score": 1, "segmentation": "0=5"}]}\n'
        '{"source": "x", "reference": "yes", "candidates": [{"text": "yes", "score": 1, "segmentation": "0=0"}]}\n'
    )
    settings = recipe(tmp_path, features={"set": "dptm"})
    content, count = TextContent(settings), SkipCount("skip")
    assert len(list(pairs(content, settings.data, count))) == 1
    assert dict(count.reasons) == {"segmentation": 1}
    found = content.describe("test", ["base"], chosen(content, settings, base=[0]))
    assert found[0]["base"]["chrf"] == 100.0


def test_what_final_figures_are_of() -> None:
    lowered = Bleu(lowercase=True)
    assert [each.name for each in final_metrics("translation", lowered)] == ["bleu", "chrf"]
    assert final_metrics("translation", lowered)[0] is lowered
    assert [each.name for each in final_metrics("translation", Wer())] == ["bleu", "chrf", "wer"]
    assert [each.name for each in final_metrics("translation", Gain(), ("ter",))] == ["bleu", "chrf", "ter"]
    assert final_metrics("speech", wer := Wer()) == [wer]
    assert final_metrics("ranking", Gain()) == final_metrics("ranking", Match()) == []


def test_without_a_source_there_are_no_phrases(data: Path) -> None:
    content = TextContent(recipe(data, features={"set": "dptm"}))
    nbest = texts_given(source=None, segmentation=[b"0=0 1=1", b"0=0 1=1"])
    features = content.features(*content.open(nbest))  # type: ignore[arg-type]
    assert {content.names[number] for number in features.template} == {"Dense"}


@pytest.fixture(scope="module")
def derivations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The made-up task: dev and test have derivations, the lists of train have lost theirs."""
    root = tmp_path_factory.mktemp("sets")
    small_texts.write_task(root)
    lines = small_texts.lines_of(root / "train.nbest.gz")
    small_texts.write_lines(root / "train.nbest.gz", [line.rpartition(" ||| ")[0] for line in lines])
    return root


AUTO = {"set": "auto", "min_lists": 1}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "text"),
        ({"train": "dev"}, "translation"),
        ({"train": ["train", "dev"]}, "text"),
        ({"train": "dev", "sources": None}, "text"),
        ({"train": "missing"}, "text"),
    ],
)
def test_derivations_decide(derivations: Path, settings: dict[str, object], expected: str) -> None:
    recipe = small_texts.recipe(derivations, features=AUTO, data=settings)
    assert resolve_features(recipe).features.model_dump() == {**recipe.features.model_dump(), "set": expected}


@pytest.mark.parametrize("given", ["dense", "translation", None])
def test_a_set_that_is_named_stays(derivations: Path, given: str | None) -> None:
    recipe = small_texts.recipe(derivations, features={"set": given, "templates": ["Length"]})
    assert resolve_features(recipe) is recipe


def test_a_run_and_its_model_have_the_set_that_was_found(derivations: Path, workspace: Path) -> None:
    directory = workspace / "texts" / "set-found"
    recipe = small_texts.recipe(derivations, features=AUTO, training={"epochs": 1, "vote": False})
    experiment.run(recipe, directory)
    assert Model.load(directory / "model").settings["features"]["set"] == "text"
    assert load_recipe(directory / "recipe.yaml") == resolve_features(recipe)


ODD = (  # values in JSON that few keys take
    "null", "true", "0", "1", "2.0", "1.5", "-0.0", "0.1", "1e29", "9" * 400, "NaN", "0.1e1", "[1]", "{}", '{"lm": 1}',
    '""', '"1"', '"eos"', '"a\\u0000b"', '"\\ud800"', '"{\\"a\\\\\\\\\\": 1}"',
)  # fmt: skip
HUGE = "1e39", str(2**70)  # as gains they end the run


def lines(seed: int, number: int = 160) -> Iterator[str]:
    """Ragged lists: now and then one that is bad, or has a candidate that is, or what cannot be in a block."""
    rng = random.Random(seed)
    for i in range(number):
        entries: list[Any] = [
            {"text": f" {rng.choice('abc')} {rng.choice('de')}:é", "score": round(rng.gauss(0, 1), 3), "stop": "eos"}
            | {"lm": rng.choice([-0.0, 0, 1, 2.5, -7]), "n": rng.randrange(400), "gain": rng.randrange(2)}
            | {"answer": rng.choice(["1", "2", " 2 ", "ä", "", None])}
            for _ in range(rng.choice([1, 1, 2, 3, 8] * 5 + [140]))
        ]
        item: dict[str, Any] = {"id": i, "candidates": entries}
        if rng.random() < 0.3:
            item |= {"source": f'q {i} \\ " :'} | ({"reference": "a"} if rng.random() < 0.5 else {"references": []})
        one, key = rng.choice(entries), rng.choice([*entries[0], "rare", "features"])
        match rng.randrange(30) if i else -1:
            case 0:
                one.pop(key, None)
            case 1:
                for entry in entries:
                    entry.pop(key, None)
            case 2:
                item["candidates"] = rng.choice([[], None, ["a"], [entries[0], "b"], [dict(reversed(one.items()))]])
            case 3:
                item["id"] = rng.choice([0, "", None, 1.5, [1], f"x{i}"])
            case 4 | 5 | 6 | 7 | 8 | 9 | 10:
                one[key] = "ODD"
        odd = rng.choice(ODD if key == "gain" else ODD + HUGE)
        line = json.dumps(item, ensure_ascii=rng.random() < 0.5).replace('"ODD"', odd)
        match rng.randrange(60) if i else -1:
            case 0:
                line = line.replace('"n":', '"lm" : 1, "n":', 1)
            case 1:
                line = line[: rng.randrange(len(line))]
            case 2:
                line = "[" * 5000
        yield line


def write(place: Path, seed: int) -> None:
    text = "\n".join(lines(seed)).encode("utf-8", "surrogatepass")
    place.write_bytes(gzip.compress(text if seed % 3 else text.replace("é".encode(), b"\xff", 2), 1))


def ragged_recipe(root: Path, answer: str | None = None, **features: Any) -> TextRecipe:
    data: dict[str, Any] = {
        "root": str(root),
        "train": "1",
        "dev": "2",
        "tests": ["3"],
        "nbest": "{root}/{split}.jsonl.gz",
    }
    data |= {"reader": {"name": "jsonl"}, "sources": None, "references": None, "on_bad_list": "skip", "answer": answer}
    made = read_settings({"name": "flat", "task": "ranking", "features": features, "data": data})
    return made


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
    made, taken = ragged_recipe(tmp_path, **features), list[int]()
    measure_block = TextContent.measure_block

    def counted(self: TextContent, block: Lists) -> Any:
        pair = measure_block(self, block)
        taken.append(0 if pair is None else block.list_count)
        return pair

    with monkeypatch.context() as patch:
        patch.setattr(TextContent, "measure_block", counted)
        extracted, table = extract_training(made)
        others = [extract_split(made, split, table) for split in ("2", "3")]
    assert sum(taken) > 160
    monkeypatch.setattr(TextContent, "flat", property(lambda _: False))
    monkeypatch.setattr(text_list, "BLOCK_LISTS", 1)
    monkeypatch.setattr(JsonlReader, "draft_lists", 1)
    expected, known = extract_training(made)
    assert_same_extracted(extracted, expected)
    assert_same_tables(table, known)
    for split, other in zip(("2", "3"), others, strict=True):
        assert_same_extracted(other, extract_split(made, split, known))


@pytest.mark.parametrize(
    ("seed", "options"),
    [*enumerate([{}, {}, {"duplicates": "drop"}, {"ids": "ordinal", "dense": ("n",)}, {"base": "lm"}], start=4)],
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
        patch.setattr(text_list, "BLOCK_LISTS", 1)
        patch.setattr(JsonlReader, "draft_lists", 1)
        patch.setattr(json_lines, "plain_object", lambda _: None)
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
    ragged_recipe = read_settings({"name": "a", "task": "ranking", "features": {"set": "dense"}, "data": data})
    corpus = extract_training(ragged_recipe)[0].corpus
    lm = free_values(corpus)[:4]
    assert all(column[0] == column[1] and column[2] == column[3] for column in lm.T), "means over answers"
    said = [one.message for one in caplog.records if "same answer have different gains" in one.message]
    assert bool(said) != alike
    assert alike or said[0].startswith("train: in 8 of 8 lists")


@pytest.mark.parametrize(("lower", "how"), [(False, "count as an empty choice"), (True, "are not measured")])
def test_lists_without_candidates_are_said(
    lower: bool, how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    candidates = [{"text": f"t{k}", "score": k, "gain": k % 2} for k in range(2)]
    lists = [{"candidates": [] if i in (3, 5) else candidates} for i in range(8)]
    (tmp_path / "lists.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lists))
    data = {"nbest": str(tmp_path / "lists.jsonl"), "dev": None, "tests": [], "references": None, "sources": None}
    settings = {"features": {"set": "base"}, "metric": {"name": "gain", "lower": lower}, "data": data}
    with caplog.at_level("INFO", "rerank"):
        extract_training(read_settings({"name": "empty", "task": "ranking"} | settings))
    assert f"train: 2 lists without candidates {how}" in caplog.text
