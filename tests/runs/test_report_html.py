"""The page, its figures, and a paper's numbers beside ours."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import yaml
from browser import assert_nothing_overflows, look, needs_browser
from commands import Command
from synthetic_report import (
    SIGNATURE,
    make_corpus,
    make_examples,
    make_full_report,
    make_metrics,
    make_report,
    make_run,
    make_runs,
    make_trained,
    render,
    trained,
)

from rerank.base.errors import DataError
from rerank.models.model import Model
from rerank.models.scorer import Contribution
from rerank.recipes.loading import load_recipe
from rerank.runs import experiment
from rerank.runs.report.page import FigureLine, draw
from rerank.runs.report.results import reported_table
from rerank.runs.report.table import primary_of
from rerank.runs.results import Example, changes_row, learning_figure, training_figure

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Checks that tags are balanced and collects what tests look at."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.references, self.texts, self.tags = [], [], [], [], [], []
        self.cells, self.headings = [], []
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        values = dict(attributes)
        assert len(values) == len(attributes), f"an attribute of <{tag}> is given twice"
        self.ids += [values["id"]] if "id" in values else []
        self.references += [values[key] for key in ("src", "srcset", "data", "poster", "action") if key in values]
        if "href" in values:
            (self.links if tag in {"a", "use"} else self.references).append(values["href"])
        if tag in {"td", "th"}:
            self.cells.append("")
        if tag in {"h1", "h2", "h3"}:
            self.headings.append((tag, ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open[-1:] == [tag], f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data
        if {"h1", "h2", "h3"} & set(self.open):
            self.headings[-1] = (self.headings[-1][0], self.headings[-1][1] + data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())


@pytest.fixture(scope="module")
def text():
    return render(**make_full_report())


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def small_report():
    """The results of one run, without anything that is only in pages."""
    return make_metrics([make_run("only", 1, {"name": "perceptron"}, 0.8391, 0.8379, 1234, voted=False)], 0)


class TestPage:
    def test_structure(self, text, page):
        assert text.startswith("<!DOCTYPE html>\n<html lang=")
        assert [name for level, name in page.headings if level == "h1"] == ["parse-demo"]
        sections = [name for level, name in page.headings if level == "h2"]
        assert sections == ["Results", "Lists", "Now better", "Now worse", "Weights", "Training", "Data", "Settings"]
        assert len(set(page.ids)) == len(page.ids), "ids are unique"
        assert {link[1:] for link in page.links} <= set(page.ids), "links lead to a place on the page"

    def test_self_contained(self, text, page):
        assert page.references == []
        assert not {"script", "link", "iframe", "img", "object"} & set(page.tags)
        assert set(re.findall(r"https?://[^\"' <)]+", text)) == {"http://www.w3.org/2000/svg"}
        assert "@import" not in text
        assert not re.search(r"url\((?!#)", text)

    def test_results(self, page):
        assert "On test, voted RDA (seed 2), the best of 6 runs on dev, reaches F 83.84 with its average" in page.text
        assert "better, p < .001; interval +0.97 to +2.06" in page.text
        assert "the base has 82.32: 1.52 F better, p < .001." in page.text
        assert "17 % of the way from base to oracle" in page.text  # (83.84 - 82.32) / (91.35 - 82.32)
        cells = [cell.strip() for cell in page.cells]
        place = cells.index("voted RDA (2 seeds) chosen")
        assert cells[place : place + 10] == [
            *("voted RDA (2 seeds) chosen", "average", "83.81 ±0.04", "better, p < .001", "+1.49", "+0.92 to +2.06"),
            *("83.89 ±0.04", "83.75 ±0.04", "37.10 ±0.00", "41,992"),
        ]
        assert SIGNATURE in page.text

    def test_training(self, page):
        assert "Doubling the training lists changes F on test by +0.30" in page.text

    def test_lists(self, text, page):
        """Those whose gain did not change are not there."""
        names = re.findall(r"<summary>(demo_news_bridge-\d) \(test\) · F: base ([\d.]+), chosen ([\d.]+)", text)
        assert names == [
            ("demo_news_bridge-1", "92.31", "100.00"),
            ("demo_news_bridge-2", "76.92", "85.71"),
            ("demo_news_bridge-3", "100.00", "83.33"),
        ]
        assert "−0.3420" in page.cells
        metrics = small_report()
        worse = {name: Example("test", name, "", ("", ""), (1.0, 0.0, 1.0)) for name in "ab"}
        assert [name for _, name in Page(render(metrics | {"task": "ranking"}, examples=[*worse.values()])).headings][
            1:5
        ] == ["Results", "Lists", "Now wrong", "Training"]


def test_changes():
    row = changes_row("test", np.array([0.25, -0.25, 0.0, 0.0]), np.array([True, True, False, True]))
    assert list(row.values()) == ["test", "1 (25.0 %)", "1 (25.0 %)", "1", "1", "4"]


class TestEscaping:
    NASTY = "</style><script>alert('x')</script>&amp;\"<!--"

    def test_everything_a_user_names(self):
        nasty = self.NASTY
        tree = "(S1 (S (NN <b>&lt;) (VB </svg><script>)))"
        run = make_run(nasty, 1, {"name": nasty, "eta": nasty}, 0.83, 0.83, 10)
        metrics = make_metrics([run], 0) | {"name": nasty, "metric": nasty, "version": nasty}
        metrics["corpora"] = {nasty: make_corpus(10, 100, {nasty: 1})}
        metrics["splits"][nasty] = metrics["splits"]["test"]
        run = trained(nasty, [0, 1], [0, 1])
        example = Example(nasty, nasty, tree, (tree, tree), (0.5, 0.6, 1.0), [Contribution(nasty, 1.0, 1.0, 0.0)])
        text = render(metrics, runs=[run], examples=[example], recipe=nasty, machine=[nasty])
        page = Page(text)
        assert "script" not in page.tags
        assert page.tags.count("b") == 11, "the row of the headline in each table"
        assert page.texts.count(nasty) >= 5
        assert "<b>&lt;" in page.text

    def test_characters_that_no_page_may_have(self):
        assert r"a\x00b\x1bc\ud800d\ufffee" in render(small_report(), recipe="a\x00b\x1bc\ud800d\ufffee")


class TestLessThanEverything:
    def test_no_lists(self):
        empty = make_corpus(1, 0, {}) | {"lists": 0}
        nothing = dict.fromkeys(("f1", "precision", "recall", "exact_match"), 0.0)
        empty["statistics"] = {
            **empty["statistics"],
            **{"lists": 0, "candidates": 0, "mean": 0.0, "median": 0.0, "largest": 0, "smallest": 0},
            **{"oracle_ranks": [], "base": nothing, "oracle": nothing},
        }
        splits = {"test": {"base": nothing, "oracle": nothing, "average": nothing}}
        page = Page(render(small_report() | {"corpora": {"test": empty}, "splits": splits}))
        assert "reaches F 0.00" in page.text
        assert "of the way from base to oracle" not in page.text

    def test_a_bad_tree_names_its_list(self):
        with pytest.raises(DataError, match="list demo_news_bridge-1"):
            render(small_report(), examples=[replace(make_examples()[0], texts=("(S1", "(S1"))])


SVG = "{http://www.w3.org/2000/svg}"
LEARNING = {
    "split": "test",
    "slope": 0.005,
    "last": {"test": "paired_t", "difference": 0.008, "p": 0.01},
    "points": [
        {"lists": lists, "dev": score + 0.002, "splits": {"test": score}}
        for lists, score in ((950, 0.82), (4753, 0.83), (9507, 0.838))
    ],
}


@pytest.fixture(scope="module")
def drawn():
    parts = make_report()
    points = FigureLine([0.5, 2], [0.5, 2], "points", [0.1, 0.3], joined=False)
    figures = {
        "dev": training_figure(parts["runs"], parts["metrics"]),
        "learning": learning_figure(LEARNING, primary_of(parts["metrics"]), "dev"),
        "points": draw("Points.", [points], "x", "y", level=(1.0, "level")),
    }
    return {name: figure.svg for name, figure in figures.items()}


def words(svg):
    return [text.text for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_well_formed_without_ids_style_and_anything_outside(drawn):
    for svg in drawn.values():
        root = ET.fromstring(svg)
        assert not {element.get("id") for element in root.iter()} - {None}, "figures stand next to one another"
        assert root.get("role") == "img"
        assert set(re.findall(r"https?://[^\"' ]+", svg)) == {"http://www.w3.org/2000/svg"}
        assert "<style" not in svg


def test_everything_is_inside(drawn):
    for svg in drawn.values():
        root = ET.fromstring(svg)
        width, height = (float(number) for number in root.get("viewBox").split()[2:])
        for text in root.iter(f"{SVG}text"):
            x, y, half = float(text.get("x")), float(text.get("y")), 0.5 * 6.4 * len(text.text)
            middle = x + {"start": half, "middle": 0.0, "end": -half}[text.get("text-anchor")]
            reach = height if "rotate" in text.get("transform", "") else width
            assert middle - half > -half or "rotate" in text.get("transform", "")
            assert 2 * half <= reach
            assert 0 <= y <= height
        for path in root.iter(f"{SVG}path"):
            points = re.findall(r"[ML](\S+?) ([\d.-]+)", path.get("d"))
            assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in points)


def test_a_figure_says_in_words_what_it_shows(drawn):
    said = ET.fromstring(drawn["dev"]).get("aria-label")
    assert said.startswith("Score on dev after every epoch. voted RDA: 83.1")


def test_a_batch_learner_has_no_course_to_draw():
    alone = trained("maxent", [20], [0.9])
    assert training_figure([alone], {}) is None
    both = training_figure([alone, trained("a", [1, 1], [0.7, 0.8])], {"measure": "f1", "chosen": {"name": "maxent"}})
    assert words(both.svg)[-2:] == ["maxent", "a"]


class TestNames:
    def test_the_chosen_run_comes_first_then_the_best_on_dev(self):
        runs = make_runs()
        figure = training_figure([make_trained(run) for run in runs], make_metrics(runs, 0))
        assert words(figure.svg)[-3:] == ["perceptron", "voted RDA", "AROW"]


@needs_browser
def test_nothing_overflows(tmp_path: Path) -> None:
    assert_nothing_overflows(look(render(**make_full_report()), tmp_path))


RUNS = [
    {"name": "perceptron", "set": {"learner": {"name": "perceptron"}}, "grid": {}},
    {"name": "RDA", "set": {"learner": {"name": "vrda"}}},
]
REPORTED = {
    "source": "a paper",
    "rows": {
        "base": {"f1": 0.9},
        "RDA l1=0.1": {"f1": 0.92, "nonzero_weights": 500},
        "RDA l1=7": {"f1": 0.91, "nonzero_weights": 100},
        "perceptron": {"test.f1": "91.3", "seconds": "long"},
    },
}
SETTINGS: dict[str, Any] = {"runs": RUNS, "grid": {"learner.l1": [0.0, 0.1]}, "reported": REPORTED}


@pytest.fixture(scope="module")
def drawn_beside(small_data: Path, workspace: Path) -> Path:
    """The output of a recipe with a paper's numbers: three runs with two seeds each."""
    recipe = small.recipe(small_data, training={"epochs": 2, "share": 0.5}, seeds=[1, 2], **SETTINGS)
    experiment.run(recipe, workspace / "drawn")
    return workspace / "drawn"


@pytest.fixture(scope="module")
def found(drawn_beside: Path) -> dict[str, Any]:
    """metrics.json of that output."""
    return json.loads((drawn_beside / "metrics.json").read_text())


def runs_of(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The entries of a run, seed by seed."""
    return [run for run in found["runs"] if run["name"] == name]


def test_ours_stand_beside_the_papers(found: dict[str, Any]) -> None:
    table = reported_table(found)
    assert table.headings == ["run", "F", "paper", "nonzero weights", "paper", "test F", "paper", "seconds", "paper"]
    rows = {row[0]: list(row[1:]) for row in table.rows}
    base = found["splits"]["test"]["base"]["f1"]
    assert rows["base"] == [f"{100 * base:.2f}", "90.00", "–", "–", f"{100 * base:.2f}", "–", "–", "–"]
    assert rows["RDA l1=7"] == ["–", "91.00", "–", "100", "–", "–", "–", "–"]
    assert rows["RDA l1=0.1"][1:4:2] == ["92.00", "500"]
    assert rows["perceptron"][4] == rows["perceptron"][0]
    assert rows["perceptron"][5:8:2] == ["91.3", "long"]
    weights = [run["training"]["nonzero_weights"] for run in runs_of(found, "RDA l1=0.1")]
    assert rows["RDA l1=0.1"][2] == f"{sum(weights) / 2:,.0f}"


def test_a_share_of_the_training_lists(drawn_beside: Path, found: dict[str, Any]) -> None:
    """A model that goes on with other lists than its own has to adopt them, so it knows the share."""
    assert Model.load(drawn_beside / "model").about["training_data"].endswith(f" 0.5 {found['seed']}")
    assert {run["training"]["lists"] for run in found["runs"]} == {small.SIZES["train"] // 2}


def test_a_quick_run(tmp_path: Path, rerank: Command) -> None:
    path = tmp_path / "r.yaml"
    settings: dict[str, Any] = {"seeds": [1, 2, 3], "runs": RUNS, "training": {"epochs": 10}}
    path.write_text(yaml.safe_dump(settings | {"quick": {"training.share": 0.1, "training.epochs": 3, "seeds": [4]}}))
    usual, quick = load_recipe(path), load_recipe(path, ["training.epochs=5"], quick=True)
    assert (usual.training.share, usual.training.epochs, usual.run_seeds) == (1, 10, (1, 2, 3))
    assert (quick.training.share, quick.training.epochs, quick.run_seeds) == (0.1, 5, (4,))
    path.write_text(yaml.safe_dump(settings))
    done = rerank("run", path, "--quick", "--output", tmp_path / "out")
    assert done.code == 2
    assert "quick: the recipe says nothing of a quick run" in done.err
