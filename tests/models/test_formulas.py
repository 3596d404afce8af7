"""Weights of columns as other programs take them: their formulas, from their sources, choose what the model chooses."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rerank as package
from rerank.base.errors import DataError
from rerank.models.formulas import formula_lines


def scales(form: Any, weights: dict[str, float]) -> dict[str, float]:
    """The options by name."""
    return {line.split(": ")[0]: float(line.split(": ")[1]) for line in formula_lines(form, weights)}


def test_recognisers_choose_by_their_formulas_what_the_weights_choose() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        decoder, ctc, lm, ngram, length = rng.normal(size=(5, 8))
        w = [*rng.uniform(0.1, 2, 2).tolist(), *rng.normal(size=3).tolist()]
        own = np.array(w) @ [decoder, ctc, lm, ngram, length]
        of = scales("espnet", dict(zip(("decoder", "ctc", "lm", "ngram", "length"), w, strict=True)))
        ctc_weight = of["ctc_weight"]  # espnet2/bin/asr_inference.py
        total = (1 - ctc_weight) * decoder + ctc_weight * ctc
        total += of["lm_weight"] * lm + of["ngram_weight"] * ngram + of["penalty"] * length
        assert np.argmax(total) == np.argmax(own)
        of = scales("icefall", {"acoustic": w[0], "lm": w[2], "attention": w[3], "words": 0.0})
        total = decoder + of["ngram_lm_scale"] * lm + of["attention_scale"] * ngram  # icefall/decode.py
        assert np.argmax(total) == np.argmax(w[0] * decoder + w[2] * lm + w[3] * ngram)


def test_engines_choose_what_the_weights_choose() -> None:
    """By the formulas of their documentation: see ``rerank.models.formulas``."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        found, w = rng.random((2, 9)) < 0.7, rng.random(2)
        raw = rng.normal(size=(2, 9)) * [[20], [0.1]]
        scaled = np.zeros((2, 9))
        for k in range(2):
            low, high = raw[k][found[k]].min(), raw[k][found[k]].max()
            scaled[k][found[k]] = (raw[k][found[k]] - low) / (high - low)
        weights = {"minmax_1": float(w[0]), "minmax_2": float(w[1])}
        linear = json.loads("".join(formula_lines("elastic", weights)))["retriever"]["linear"]["retrievers"]
        assert [(each["retriever"], each["normalizer"]) for each in linear] == [(name, "minmax") for name in weights]
        score = sum(each["weight"] * scaled[k] for k, each in enumerate(linear))
        assert np.argmax(score) == np.argmax(w @ scaled)
        (processor,) = json.loads("".join(formula_lines("opensearch", weights)))["phase_results_processors"]
        own = processor["normalization-processor"]["combination"]["parameters"]["weights"]
        floored = np.where(found & (scaled == 0), 0.001, scaled)  # MIN_SCORE of its min_max; 0 where nothing was found
        assert np.argmax(np.array(own) @ floored / np.sum(own)) == np.argmax(w @ scaled)
        assert np.sum(own) == pytest.approx(1)
        of = scales("nemo", {"am": float(w[0]), "lm": float(w[1]), "length": -0.2})
        score = raw[0] + of["beam_alpha"] * raw[1] + of["beam_beta"] * np.arange(9)
        assert np.argmax(score) == np.argmax(w @ raw - 0.2 * np.arange(9))
        profile = list(formula_lines("vespa", {"bm25(title)": float(w[0]), "closeness(field, vector)": -float(w[1])}))
        expression = profile[2].partition("expression: ")[2]
        for name, row in (("bm25(title)", "a"), ("closeness(field, vector)", "b")):
            expression = expression.replace(name, row)
        assert np.allclose(eval(expression, {"a": raw[0], "b": raw[1]}), w[0] * raw[0] - w[1] * raw[1])
    for form, bad in (("elastic", {"rrf_1": 1.0}), ("opensearch", {"minmax_1": -1.0}), ("vespa", {"a b": 1.0})):
        with pytest.raises(DataError, match=r"rerank weigh --columns|expected a rank feature of Vespa"):
            list(formula_lines(form, bad))  # type: ignore[arg-type]


def test_weights_without_a_place_are_refused() -> None:
    for weights, expected in (
        ({"am": 1.0, "words": 0.1}, "no place for 'words', but one each for am, lm, attention"),
        ({"am": 1.0, "acoustic": 0.1}, "no place for 'acoustic'"),
        ({"am": -1.0, "lm": 0.1}, "above 0; found am -1"),
        ({"lm": 0.1}, "above 0; found none"),
    ):
        with pytest.raises(DataError, match=expected):
            list(formula_lines("icefall", weights))


def test_exported_columns_choose_what_the_model_chooses(tmp_path: Path, rerank: Any) -> None:
    rng = np.random.default_rng(1)
    lists = [
        {"candidates": [{"text": f"t{y}", "score": a, 'l"m,': b, "gain": a + 2 * b} for y, (a, b) in enumerate(values)]}
        for values in rng.normal(size=(40, 5, 2)).tolist()
    ]
    model = package.fit(lists, features=["Dense"], learner={"name": "maxent", "l2": 1.0})
    model.save(tmp_path / "model")
    code = dict[str, Any]()
    exec(rerank("export", tmp_path / "model", "--format", "python").out, code)
    best = [max(line["candidates"], key=code["score"])["text"] for line in lists]
    assert best == [f"t{model.rank(line['candidates']).order[0]}" for line in lists]
    table = rerank("export", tmp_path / "model", "--format", "csv").out.splitlines()
    weights = code["WEIGHTS"]
    assert list(csv.reader(table)) == [["column", "weight"], *([name, repr(w)] for name, w in weights.items())]
    for wrong in (("--json",), ("--top", "1")):
        assert rerank("export", tmp_path / "model", "--format", "csv", *wrong).code == 2
    bare = [
        {"candidates": [{k: v for k, v in one.items() if k != "score"} for one in line["candidates"]]} for line in lists
    ]
    package.fit(bare, features=["Dense"], learner={"name": "maxent", "l2": 1.0}).save(tmp_path / "bare")
    assert len(rerank("export", tmp_path / "bare", "--format", "csv").out.splitlines()) == 2
    words = package.fit(lists, features=["TargetNGram(n=1)"], epochs=1)
    words.save(tmp_path / "words")
    refused = rerank("export", tmp_path / "words", "--format", "csv")
    assert (refused.code, "are no score columns" in refused.err) == (2, True), refused
    assert json.loads(rerank("export", tmp_path / "model", "--json").out)["weights"]["base"] == weights["score"]
