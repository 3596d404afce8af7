"""The page: whole, escaped, self-contained, the same every time, and there for runs of every kind."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from synthetic_report import (
    SIGNATURE,
    make_corpus,
    make_examples,
    make_full_report,
    make_metrics,
    make_run,
    render,
    trained,
)

from rerank.base.errors import DataError
from rerank.models.scorer import Contribution
from rerank.runs.report.results import signatures
from rerank.runs.results import Answers, Example, changes_row

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


def small():
    """The results of one run, without anything that is only in pages."""
    metrics = make_metrics([make_run("only", 1, {"name": "perceptron"}, 0.8391, 0.8379, 1234, voted=False)], 0)
    del metrics["runs"]
    return metrics


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
        cells = [cell.strip() for cell in page.cells]
        assert "vrda: eta 0.1, l1 1e-05" in cells
        assert "6,200 → 1,354" in cells
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
        metrics = small()
        worse = {name: Example("test", name, "", "", "", 1.0, 0.0, 1.0) for name in "ab"}
        assert [name for _, name in Page(render(metrics | {"task": "ranking"}, examples=[*worse.values()])).headings][
            1:5
        ] == ["Results", "Lists", "Now wrong", "Training"]


def test_signatures_of_the_figures():
    both = {"signatures": {"a": {"bleu": "x", "ter": "t"}, "b": {"bleu": "y", "ter": "t"}}}
    assert signatures(both) == [("BLEU on a", "x"), ("BLEU on b", "y"), ("TER", "t")]
    assert signatures({}) == []


def test_changes():
    base, before = np.array([0, 5, 10, 15]), np.full(4, 0.5)
    after, changed = np.array([0.75, 0.25, 0.5, 0.5]), np.array([True, True, False, True])
    row = changes_row("test", Answers(base, base + changed, before, after, before, changed, None, [], {}, {}))
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
        example = Example(nasty, nasty, tree, tree, tree, 0.5, 0.6, 1.0, [Contribution(nasty, 1.0, 1.0, 0.0)])
        text = render(metrics, runs=[run], examples=[example], recipe=nasty, machine=[nasty])
        page = Page(text)
        assert "script" not in page.tags
        assert page.tags.count("b") == 11, "the row of the headline in each table"
        assert page.texts.count(nasty) >= 5
        assert "<b>&lt;" in page.text

    def test_characters_that_no_page_may_have(self):
        assert r"a\x00b\x1bc\ud800d\ufffee" in render(small(), recipe="a\x00b\x1bc\ud800d\ufffee")


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
        page = Page(render(small() | {"corpora": {"test": empty}, "splits": splits}))
        assert "reaches F 0.00" in page.text
        assert "of the way from base to oracle" not in page.text

    def test_stages_that_have_not_run_leave_no_columns(self):
        run = {"name": "a", "seed": 1, "dev": 0.8312, "learner": {"name": "vrda"}, "training": {"epochs": 3}}
        page = Page(render({"task": "parse", "name": "x", "splits": {}, "corpora": {}, "runs": [run]}))
        cells = [cell.strip() for cell in page.cells]
        assert cells == ["run", "learner", "epochs", "F on dev", "a", "vrda", "3", "83.12"]

    def test_a_bad_tree_names_its_list(self):
        with pytest.raises(DataError, match="list demo_news_bridge-1"):
            render(small(), examples=[replace(make_examples()[0], base="(S1")])
