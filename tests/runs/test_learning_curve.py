"""The learning curve: shares of the lists, their scores, their slope, and what is said about it."""

import json
from pathlib import Path

import numpy as np
import pytest
import small

from rerank.runs import experiment
from rerank.runs.report.table import MEASURES
from rerank.runs.results import learning_figure

F = next(measure for measure in MEASURES if measure.key == "f1")
TER = next(measure for measure in MEASURES if measure.key == "ter")


def entry(scores: list[float], p: float, difference: float, growth: int = 2) -> dict:
    points = [
        {"share": 0.1 * 2**k, "lists": 100 * growth**k, "dev": None, "splits": {"test": score}}
        for k, score in enumerate(scores)
    ]
    last = {"test": "approximate_randomization", "difference": difference, "p": p, "interval": [0, 0]}
    slope = float(np.polyfit(np.arange(len(scores)), scores, 1)[0])
    return {"split": "test", "points": points, "slope": slope, "last": last}


def test_a_curve_with_a_share_of_one_list_does_not_end_the_run(
    small_data: Path, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    training = {"epochs": 1, "curve": [0.001, 0.5, 1]}
    recipe = small.recipe(small_data, data={"dev": None}, training=training, learner={"base": "auto"})
    experiment.run(recipe, workspace / "short")
    found = json.loads((workspace / "short" / "metrics.json").read_text())
    assert [point["share"] for point in found["curve"]["points"]] == [0.5, 1.0]
    assert "training.curve: a share of 0.001 cannot be trained on" in caplog.text


def test_a_run_with_a_curve(small_data: Path, workspace: Path) -> None:
    recipe = small.recipe(small_data, training={"epochs": 2, "curve": [0.5, 1, 0.25]})
    experiment.run(recipe, workspace / "curve")
    found = json.loads((workspace / "curve" / "metrics.json").read_text())
    curve, lists = found["curve"], found["corpora"]["train"]["lists"]
    assert [point["share"] for point in curve["points"]] == [0.25, 0.5, 1.0]
    assert [point["lists"] for point in curve["points"]] == [round(0.25 * lists), round(0.5 * lists), lists]
    assert curve["points"][-1]["splits"]["test"] == found["splits"]["test"]["average"]["f1"]
    alone = small.recipe(small_data, training={"epochs": 2, "share": 0.25})
    part = experiment.run(alone, workspace / "part")
    assert curve["points"][0]["splits"]["test"] == part["splits"]["test"]["average"]["f1"]
    assert "Doubling the training lists changes F on test by" in (workspace / "curve" / "report.html").read_text()


@pytest.mark.parametrize(
    ("found", "measure", "said"),
    [
        (entry([0.80, 0.81, 0.83], 0.01, 0.02), F, "+1.50 (least squares over 3 sizes)"),
        (entry([0.80, 0.81, 0.83], 0.01, 0.02), F, "brought +2.00: better, p .010. More lists are"),
        (
            entry([0.80, 0.84], 0.01, 0.04, growth=4),
            F,
            "from 100 to 400 lists, brought +4.00, +2.00 per doubling: better",
        ),
        (entry([0.80, 0.81, 0.83], 0.30, 0.02), F, "not significant, p .300. More lists may not help"),
        (entry([0.80, 0.83, 0.81], 0.01, -0.02), F, "worse, p .010. More lists may not help"),
        (entry([60.0, 58.0], 0.01, -2.0), TER, "better, p .010. More lists are likely to help"),
    ],
)
def test_what_is_said(found: dict, measure: object, said: str) -> None:
    figure = learning_figure(found, measure, "dev")
    assert said in figure.caption
    assert ">test<" in figure.svg


def test_no_curve() -> None:
    assert learning_figure({}, F, "dev") is None
