"""What is kept of lists beside their features, and what they were taken for: checks that find what is amiss."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import rerank
from rerank.extraction.list_checks import doubts_of_lists
from rerank.extraction.sample import (
    MEASURES,
    ListSample,
    ListSampler,
    digest,
    measure_columns,
    sample,
    shared,
    values_of,
)
from rerank.readers.lists import Lists

NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


def text_list(number: int, scores: np.ndarray, names: tuple[str, ...] = ("lm", "score")) -> Lists:
    texts = [f"text {number} {y}".encode() for y in range(len(scores))]
    lines = range(1, len(texts) + 1)
    return Lists.one(str(number), "", 0, texts, lines, scores, column=names.index("score"), names=names)


def twin(values: np.ndarray) -> np.ndarray:
    """The measures by numpy."""
    spread = np.where(values.min(axis=0) == values.max(axis=0), 0.0, values.std(axis=0))
    apart = values - values.mean(axis=0)
    products = (apart * apart[:, :1]).mean(axis=0)
    both = spread * spread[0]
    agreement = np.divide(products, both, out=np.zeros(both.size), where=(both > 0) & (np.arange(both.size) > 0))
    return np.column_stack([values.mean(axis=0), spread, agreement, values.min(axis=0), values.max(axis=0)])


@given(arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=NUMBERS))
def test_measures_equal_those_of_numpy(values: np.ndarray) -> None:
    found = measure_columns(values)
    assert found == pytest.approx(twin(values), rel=1e-6, abs=1e-6)
    assert np.array_equal(measure_columns(np.stack([values, values[::-1]]))[0], found)


def test_what_is_constant_is_so_exactly_and_numbers_of_any_size_give_finite_measures() -> None:
    assert measure_columns(np.full((7, 2), 0.1))[:, :3].tolist() == [[0.1, 0.0, 0.0]] * 2
    assert np.isfinite(measure_columns(np.array([[1e308, -1e308], [-1e308, 1e300]]))).all()


def test_columns_are_found_by_name_the_base_score_first() -> None:
    nbest = text_list(0, np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert values_of(nbest, ("score", "lm")).tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert values_of(nbest, ("anything",)).tolist() == [[2.0], [4.0]]


def digest_of(nbest: Lists, columns: tuple[str, ...]) -> int:
    return digest(nbest.source, nbest.texts, values_of(nbest, columns).tobytes())


def test_a_digest_depends_on_texts_scores_and_source_alone() -> None:
    nbest = text_list(0, np.array([[1.0, 2.0], [3.0, 4.0]]))
    found = digest_of(nbest, ("score",))
    for same in (nbest.replace(id="other", path="other", line=3), nbest.replace(texts=[b" text 0 0\n", b"text 0 1"])):
        assert digest_of(same, ("score",)) == found
    others = (
        nbest.replace(source=b"a"),
        nbest.replace(texts=nbest.texts[::-1]),
        nbest.replace(scores=nbest.scores + 1),
    )
    for other in others:
        assert digest_of(other, ("score",)) != found


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 40), st.integers(1, 12))
def test_parts_give_the_sample_of_the_whole(numbers: list[int], cut: int, most: int) -> None:
    every = [text_list(number, np.array([[1.0, number], [2.0, -number]])) for number in numbers]

    def of(lists: list[Lists]) -> ListSample:
        found = ListSampler(("score", "lm"))
        for nbest in lists:
            found.add(nbest)
        return found.finish()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rerank.extraction.sample.SAMPLE_SIZE", most)
        whole = sample([of(every)])
        parts = sample([of(every[first : first + cut]) for first in range(0, max(len(every), 1), cut)])
        assert all(map(np.array_equal, whole, parts))
        assert whole.digests.size == min(most, len(numbers))
        assert np.all(np.diff(whole.digests.astype(object)) >= 0)


def test_lists_with_fewer_than_two_candidates_are_left_out() -> None:
    found = ListSampler(("score", "lm"))
    found.add(text_list(0, np.zeros((1, 2))))
    found.add(text_list(0, np.zeros((0, 2))))
    assert [array.shape for array in found.finish()] == [(0,), (0, 2, MEASURES), (0, 2)]


def test_shared_lists_are_counted_in_samples_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    both, left, right = (np.unique(rng.integers(0, 1 << 63, size, np.uint64)) for size in (300, 700, 900))
    first, second = np.sort(np.concatenate([both, left])), np.sort(np.concatenate([both, right]))
    assert shared(first, second) == (both.size, second.size)
    assert shared(first, np.zeros(0, np.uint64)) == (0, 0)
    monkeypatch.setattr("rerank.extraction.sample.SAMPLE_SIZE", 400)
    same, looked_at = shared(first[:400], second[:400])
    assert looked_at > 300
    assert same / looked_at == pytest.approx(both.size / second.size, abs=0.07)


DATA = Path(__file__).parents[2] / "data"


def lists(path: Path, references: list[str], texts: list[list[str]], **more: Any) -> Any:
    rows = [{"reference": right, "candidates": [{"text": text, **more} for text in few]}
            for right, few in zip(references, texts, strict=True)]  # fmt: skip
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return rerank.read(path)


@pytest.mark.parametrize(
    ("reference", "text", "said"),
    [
        ("utt1 it rains here", "it rains here", "without the first token of each reference (an id?)"),
        ("it rains here db", "it rains here", "without the last token of each reference (an id, or the name of"),
        ("It Rains here", "it rains here", "without capitals"),
        ("d\u00e9j\u00e0 vu la", "de\u0301ja\u0300 vu la", "in Unicode's form NFKC"),
        ("it rains, here.", "it rains here", "without punctuation marks"),
        ("it rains here", "\u2581it \u2581rain s \u2581here", "with word pieces joined"),
        ("it rains here", "it rain@@ s here", "with word pieces joined"),
        ("it rains here", "it rain ##s here", "with word pieces joined"),
        ("select a from b", "select b from a", "The references are code, which words do not measure"),
        ("(w / want-01 :ARG0 (b / boy))", "(b / boy)", "The references are graphs in brackets"),
        ("tuesday", "monday", "The references have one token each"),
    ],
)
def test_references(reference: str, text: str, said: str, tmp_path: Path) -> None:
    found = lists(tmp_path / "lists.jsonl", [reference] * 3, [[text, text]] * 3)
    assert any(said in line for line in doubts_of_lists(found.first_items()))
    assert doubts_of_lists(found.first_items(), roles={"reference": "reference"}) == []


def test_numbers_that_are_not_used(tmp_path: Path) -> None:
    rows = [{"candidates": [{"text": "a", "gain": 1, "acc": k} for k in (0, 1)]}] * 2
    (tmp_path / "lists.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (line,) = doubts_of_lists(rerank.read(tmp_path / "lists.jsonl").first_items())
    assert line.startswith("Numbers that differ within lists are not used: 'acc' (numbers, 4 of 4). Say what they are")
    assert not doubts_of_lists(rerank.read(tmp_path / "lists.jsonl", roles="acc=unused").first_items())


def test_columns_that_are_the_gain_again(tmp_path: Path) -> None:
    def graded(count: int, graded: bool) -> Any:
        """Lists with a gain, four columns made of it, and two that only go with it."""
        rows = list[Any]()
        for i in range(count):
            gains = [(i + 1) * k for k in range(4)] if graded else [(i + k) % 3 == 0 for k in range(4)]
            rows.append([
                {"text": f"{k}", "gain": gain, "reward": 2 * gain - 1, "iou": gain or k / 9, "loss": -3 * gain,
                 "verifier": 2 * gain + (i + k) / 99, "length": k % 3} for k, gain in enumerate(gains)
            ])  # fmt: skip
        (tmp_path / "lists").write_text("".join(f'{{"candidates": {json.dumps(row)}}}\n' for row in rows))
        return rerank.read(tmp_path / "lists").first_items()

    def told(lists: Any, **roles: str) -> list[str]:
        return [line.split("'")[1] for line in doubts_of_lists(lists, roles=roles) if "as their gain does" in line]

    assert told(graded(19, False)) == []
    assert told(graded(20, False)) == ["iou", "loss", "reward"]
    assert told(graded(20, False), reward="column", iou="unused", loss="base") == ["iou"]
    assert told(graded(20, True)) == ["iou", "loss", "reward", "verifier"]  # whose grades are as different as it is


@pytest.mark.parametrize(("count", "scored", "said"), [(20, False, 1), (19, False, 0), (20, True, 0)])
def test_candidates_whose_order_is_that_of_gains(count: int, scored: bool, said: int, tmp_path: Path) -> None:
    row = [{"text": f"{k}", "gain": int(k == 0), **({"score": k % 2} if scored else {})} for k in range(3)]
    (tmp_path / "lists").write_text(f'{{"candidates": {json.dumps(row)}}}\n' * count)
    found = doubts_of_lists(rerank.read(tmp_path / "lists").first_items())
    assert [line.startswith("The first candidate alone is the best of all lists") for line in found] == [True] * said


@pytest.mark.parametrize("name", ["asr/dev", "asr/test", "llm/dev", "llm/test", "sums/train"])
def test_they_are_silent_on_lists_that_come_with_the_program(name: str) -> None:
    found = rerank.read(DATA / f"{name}.jsonl.gz").first_items()
    assert doubts_of_lists(found) == []


def test_an_account(tmp_path: Path, rerank: Any) -> None:
    rows = [{"qid": f"{i}", "samples": [{"response": f"{i + k}", "reward": k, "passed": k == 1, "model": "m"} for k in
             range(3)]} for i in range(12)]  # fmt: skip
    path = tmp_path / "lists.jsonl.gz"
    path.write_bytes(gzip.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode()))
    assert rerank("look", path).out.splitlines() == [
        f"{path}: jsonl, 12 lists of 3 candidates", 'candidates: samples.response: "0"',
        "base score: none; all are 0, and the first candidate is the base's choice",
        "what is right: gain (passed), 12 of 36 candidates are right", "columns: reward",
        "not used: model (texts, 36 of 36)",
    ]  # fmt: skip
    found = json.loads(rerank("vote", path, "--samples", "10", "--folds", "2", "--json").out)
    assert found["account"]["right"] == "gain (passed), 12 of 36 candidates are right"
    assert found["account"]["measure"] == "mean gain, of the key 'passed'"
    (tmp_path / "bad").write_text('{"candidates": ["a", 1]}\n{"candidates": ["b"]}\n')
    assert "skipped 1 candidate (text)" in rerank("look", tmp_path / "bad").err
    (tmp_path / "texts").write_text('{"id": "a", "candidates": ["a"]}\n')
    refused = rerank("evaluate", tmp_path / "texts", tmp_path / "texts", "--metric", "bleu")
    assert (refused.code, "lists are no sentences" in refused.err) == (2, True)


def test_a_run_has_its_account_and_its_model_the_roles(tmp_path: Path, rerank: Any) -> None:
    rows = [{"qid": f"{i}", "samples": [{"response": f"a {i + k}", "reward": k, "lm": -k} for k in range(3)]}
            for i in range(12)]  # fmt: skip
    text, path = "".join(f"{json.dumps(row)}\n" for row in rows), tmp_path / "lists.jsonl"
    path.write_text(text)
    lists = f"nbest: {path}, train: lists, dev: null, tests: [lists]"
    recipe = tmp_path / "recipe.yaml"
    command = "run", recipe, "-o", tmp_path / "run"
    recipe.write_text(f"name: r\ntask: ranking\nlearner: perceptron\nfeatures: {{set: dense}}\ndata: {{{lists}}}")
    refused = rerank(*command)
    assert (refused.code, "say which key it is: --roles reward=gain (data.roles)" in refused.err) == (2, True)
    path.write_text(text.replace("reward", "am"))
    assert "say which key it is: --roles KEY=gain (data.roles)" in rerank(*command).err
    path.write_text(text)
    recipe.write_text(recipe.read_text()[:-1] + ", roles: {reward: gain}}")
    told = rerank(*command, "--json")
    assert "what is right: gain (reward), from 0 to 2" in told.err
    assert json.loads(told.out)["metrics"]["account"]["right"] == "gain (reward), from 0 to 2"
    assert "<dt>right</dt><dd>gain (reward), from 0 to 2</dd>" in (tmp_path / "run" / "report.html").read_text()
    model = tmp_path / "run" / "model"
    settings = json.loads((model / "model.json").read_text())["settings"]["data"]
    roles = {"samples": "candidates", "response": "text", "qid": "id", "reward": "gain", "lm": "column"}
    assert settings["roles"] == settings["reader"]["roles"] == roles
    assert "is missing" not in rerank("rank", model, path).err
    path.write_text(text.replace("response", "other"))
    assert "'response' is missing, the text in training" in rerank("rank", model, path).err
    assert rerank("look", path, "--roles", "typo=text").err.count("'typo' is missing") == 1
