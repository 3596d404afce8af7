"""Results of a report: rows, tables, tests in words, numbers; what is marked in trees and texts."""

import doctest
import io
import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from synthetic_report import SENTENCES, make_metrics, make_run, make_runs

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.data.trees import parse_brackets, subset
from rerank.metrics.gain import Gain
from rerank.metrics.parseval import Parseval
from rerank.runs.report import table
from rerank.runs.report.results import (
    base_warning,
    compare_with_base,
    exact_match_loss,
    groups_of,
    main_score,
    result_rows,
    results_table,
    splits_of,
    spread_of,
    verdict,
)
from rerank.runs.report.table import (
    MEASURES,
    Spread,
    duration,
    fixed,
    measures_of,
    own_measure,
    p_value,
    plain_text,
    primary_of,
    signed,
)
from rerank.runs.results import compare_texts, compare_trees, differences, draw


@pytest.fixture
def metrics():
    return make_metrics(make_runs(), 3)


class TestRows:
    def test_means_deviations_and_differences(self, metrics):
        rows = {(row.name, row.predictor): row for row in result_rows(metrics, "test")}
        row = rows["perceptron", "average"]
        assert row.scores["f1"].mean == pytest.approx((0.8363 + 0.8370) / 2)
        assert row.scores["f1"].deviation == pytest.approx(0.0007 / 2**0.5)
        assert row.difference == pytest.approx((0.8363 + 0.8370) / 2 - 0.8232)
        assert len(row.runs) == 2

    def test_a_row_counts_the_seeds_that_have_the_predictor(self, metrics):
        """Those that voted, say, where the first seed alone did."""
        metrics["runs"][0]["splits"]["test"]["voted"] = {"f1": 0.82}
        rows = {(row.name, row.predictor): row for row in result_rows(metrics, "test")}
        assert len(rows["perceptron", "voted"].runs) == 1
        assert rows["perceptron", "voted"].scores["f1"].mean == 0.82
        assert len(rows["perceptron", "average"].runs) == 2

    def test_each_run_is_shown_by_the_predictor_that_ranks_its_lists(self, metrics):
        """Whichever that of the chosen run is."""
        for run in metrics["runs"]:
            run["ranked_by"] = "last" if run["name"] == "perceptron" else "average"
            run["splits"]["test"]["last"] = {"f1": 0.81}
        first, second, _ = groups_of(metrics).values()
        assert main_score(first, "test", "f1").mean == 0.81
        assert main_score(second, "test", "f1") == spread_of(second, "splits", "test", "average", "f1")
        shown = [(row.name, row.predictor) for row in result_rows(metrics, "test") if row.predictor == "last"]
        assert shown == [("perceptron", "last")]


class TestComparison:
    def runs(self, *tests):
        return [{"significance": {"test": {"average_vs_base": test}}} for test in tests]

    def test_largest_p_and_widest_interval(self):
        tests = [
            {"test": "paired_bootstrap", "difference": 0.01, "p": 0.02, "interval": [0.001, 0.03]},
            {"test": "paired_bootstrap", "difference": 0.02, "p": 0.01, "interval": [0.004, 0.05]},
        ]
        found = compare_with_base(self.runs(*tests), "test", "average")
        assert found == {
            "test": "paired_bootstrap", "difference": pytest.approx(0.015), "p": 0.02, "interval": (0.001, 0.05)
        }  # fmt: skip
        assert verdict(found, amount="1.50 F") == "1.50 F better, p .020"

    def test_seeds_that_disagree_decide_nothing(self):
        tests = [
            {"test": "paired_bootstrap", "difference": sign * 0.01, "p": 0.01, "interval": [-0.02, 0.02]}
            for sign in (1, -1)
        ]
        found = compare_with_base(self.runs(*tests), "test", "average")
        assert verdict(found) == "the seeds disagree, p .010"

    @pytest.mark.parametrize("name", ["mcnemar", "paired_t"])
    def test_an_interval_of_something_else_is_not_shown(self, name):
        test = {"test": name, "difference": 0.01, "p": 0.02, "interval": [0.001, 0.03]}
        assert compare_with_base(self.runs(test), "test", "average")["interval"] is None


class TestChoice:
    def test_test_splits_come_first(self):
        assert splits_of({"splits": {"train": {}, "dev": {}, "b": {}, "a": {}}}) == ["b", "a", "dev", "train"]


def test_a_decoding_that_chooses_the_same_as_another_is_no_row_unless_the_model_chooses_by_it() -> None:
    scores = {name: {"f1": 0.5} for name in ("base", "average", "mbr")}
    run = {"name": "one", "splits": {"test": scores}, "alike": {"test": {"mbr": "average"}}}
    for predictor, expected in (("average", ["", "average"]), ("mbr", ["", "average", "mbr"])):
        metrics = {"measure": "f1", "predictor": predictor, "splits": {"test": scores}, "runs": [run]}
        assert [row.predictor for row in result_rows(metrics, "test")] == expected


def single(name="only", **more):
    run = make_run(name, 1, {"name": "perceptron"}, 0.8391, 0.8379, 1234, **more)
    return make_metrics([run], 0)


def lines(metrics, split="test"):
    """Cells of the plain text's lines, by first cell."""
    return plain_text(results_table(metrics, split).rich()).splitlines()


def test_numbers_of_several_seeds(metrics):
    line = next(line for line in lines(metrics) if "perceptron" in line)
    assert "perceptron (2 seeds)" in line
    assert "83.67 ±0.05" in line  # (83.63 + 83.70) / 2 = 83.665, 0.07 / √2 = 0.0495
    assert line.split()[-1] == "300,813"
    assert "better, p < .001" in line


def test_eighty_columns_are_enough(metrics):
    console = Console(file=io.StringIO(), width=80, color_system=None)
    table = results_table(metrics, "test", narrow=True).rich(narrow=True)
    with console.capture() as captured:
        console.print(table)
    text = captured.get()
    assert "300,813" in text
    assert "better," in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_names_are_not_taken_for_markup():
    assert "[red]x[/red]" in plain_text(results_table(single("[red]x[/red]"), "test").rich())


def test_intervals_of_differences_are_bars(metrics):
    table = results_table(metrics, "test")
    low, high = metrics["significance"]["test"]["average_vs_base"]["interval"]
    assert table.bars[:2] == [None, None]
    bar = next(
        bar for row, bar in zip(table.rows, table.bars, strict=True) if row[:2] == ["voted RDA (2 seeds)", "average"]
    )
    assert bar.low < bar.point < bar.high
    assert (bar.high, bar.low <= low) == (high, True)


def test_what_the_model_chooses_by_stands_out():
    metrics = single(voted=False)
    systems, tests = metrics["splits"]["test"], metrics["significance"]["test"]
    systems["mbr"], tests["mbr_vs_base"] = dict(systems["average"]), tests["average_vs_base"]
    rows = results_table(metrics | {"predictor": "mbr"}, "test")
    assert [row[1] for row in rows.rows] == ["", "", "average", "mbr"]
    assert rows.best == {(3, k) for k in range(1, 5)}


def outcome(difference: float, p: float = 0.004, test: str = "approximate_randomization") -> dict[str, object]:
    return {"test": test, "difference": difference, "p": p, "interval": [difference, difference]}


@pytest.mark.parametrize("test", ["approximate_randomization", "paired_bootstrap"])
def test_the_measure_says_which_sign_is_better(test: str) -> None:
    assert verdict(outcome(0.1, test=test)) == "better, p .004"
    assert verdict(outcome(-0.1, test=test)) == "worse, p .004"
    assert verdict(outcome(-0.1, test=test), lower_is_better=True) == "better, p .004"
    assert verdict(outcome(0.1, test=test), lower_is_better=True) == "worse, p .004"


@pytest.mark.parametrize("test", ["mcnemar", "paired_t"])
@pytest.mark.parametrize("lower_is_better", [False, True])
def test_more_right_answers_and_gains_are_always_better(test: str, lower_is_better: bool) -> None:
    """Their difference is none of the measure, so its amount in the measure is left out."""
    assert verdict(outcome(0.1, test=test), lower_is_better=lower_is_better, amount="3.00 F") == "better, p .004"
    assert verdict(outcome(-0.1, test=test), lower_is_better=lower_is_better) == "worse, p .004"


@pytest.mark.parametrize(("p", "text"), [(0.0499, "better"), (0.05, "not significant"), (0.43, "not significant")])
def test_from_five_hundredths_on_nothing_is_claimed(p: float, text: str) -> None:
    assert verdict(outcome(0.1, p), amount="1.00 F").replace("1.00 F ", "").split(",")[0].endswith(text)


@pytest.mark.parametrize(
    ("use", "dev", "said"),
    [
        ("", 0.9, "does harm there"),
        ("fuse", 0.84, "does harm there"),
        ("fuse", 0.86, "by its best candidates; with fuse it reaches 86.00 there."),
    ],
)
def test_a_model_that_is_better_when_it_decodes_does_no_harm(use: str, dev: float, said: str) -> None:
    base = {"beaten": False, "kept": False, "split": "dev", "dev": 0.85}
    decoded = {"use": use, "fuse": {"dev": dev}}
    assert said in base_warning({"training": {"base": base, "decode": decoded}})
    assert "does harm" in base_warning({"training": {"base": base, "decode": None}})
    assert base_warning({"training": {"base": base | {"beaten": True}, "decode": decoded}}) == ""


def test_what_a_decision_gives_up_is_said() -> None:
    """In entirely right trees: only where trees are made, and where it costs some."""
    scores = {"average": {"exact_match": 0.3217}, "learned": {"exact_match": 0.271}, "mbr": {"exact_match": 0.3217}}
    for predictor in ("learned", "mbr", "average"):
        decision = {"predictor": predictor, "ranked_by": "average"}
        said = exact_match_loss({"decision": decision, "splits": {"test": scores}}, "test")
        assert ("27.1 % are entirely right, of the best candidates 32.2 %: learned gives" in said) == (
            predictor == "learned"
        )
        assert bool(said) == (predictor == "learned")
    assert exact_match_loss({"splits": {"test": {"average": {}}}}, "test") == ""


def test_the_examples_in_the_docstrings():
    assert doctest.testmod(table).failed == 0


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0, "< .001"), (0.00099, "< .001"), (0.001, ".001"), (0.0496, ".050"), (0.9994, ".999"), (0.9996, "> .999")],
)
def test_p_values(p, text):
    assert p_value(p) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0.00 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (3599.6, "1 h 00 min")]
)
def test_durations_carry_over(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize("write", [fixed, signed, p_value, duration, table.count])
def test_what_is_not_a_number_is_a_dash(write):
    assert write(None) == write(math.nan) == write(math.inf) == "–"


def test_measures_are_in_the_order_of_columns():
    assert [*measures_of({})] == [measure.key for measure in MEASURES]
    assert primary_of({}).key == "f1"


def test_sample_standard_deviation_and_standard_error():
    mean, deviation, error, values = Spread.of([0.1, 0.2, 0.3, 0.4])
    assert (mean, values) == (pytest.approx(0.25), 4)
    assert deviation == pytest.approx((0.05 / 3) ** 0.5)
    assert error == pytest.approx(deviation / 2)


def test_higher_is_better_but_for_errors_and_gains_that_say_so():
    assert [each.key for each in MEASURES if each.lower_is_better is not False] == ["ter", "error", "wer", "cer"]
    assert measures_of(own_measure(Gain(lower=True)))["gain"].lower_is_better is True


def marked(gold, tree):
    """(brackets missed in gold, brackets wrong in the tree), with their words, from left to right."""
    trees, symbols = parsed(gold, tree)
    return tuple([named(trees, symbols, k) for k in nodes] for nodes in differences(trees, symbols, 1))


def parsed(*texts):
    symbols = SymbolTable()
    return parse_brackets([text.encode() for text in texts], symbols), symbols


def drawn(tree):
    """The tree that a drawing shows, in brackets."""
    text = str(draw(*parsed(tree), 0, {}))
    for tag, bracket in {"<li>": " (", '<li class="leaf"><small>': " (", "</small>": "", "</li>": ")"}.items():
        text = text.replace(tag, bracket)
    return ET.fromstring(f"<x>{text.replace('<ul>', '').replace('</ul>', '')}</x>").text.strip()


def named(trees, symbols, k):
    below = range(k, k + trees.size[k])
    words = [
        symbols.text(trees.word[i]) for i in below if trees.word[i] >= 0 and symbols.text(trees.label[i]) != "-NONE-"
    ]
    return " ".join([symbols.text(trees.label[k]), *words])


def marks(page):
    """The marked parts of trees or texts, by the title above each."""
    root = ET.fromstring(str(page))
    found = {}
    for part in root.iter():
        if part.tag in ("figcaption", "dt"):
            marked_parts = found.setdefault(part.text, [])
        if part.tag == "span" and part.get("class") in ("wrong", "missed"):
            assert (part.get("class") == "wrong") == (part[0].text == "×")
            marked_parts.append(f"{part.text}{part[0].text}")
    return found


class TestBrackets:
    def test_attachment(self):
        gold = "(S1 (S (NP (PRP I)) (VP (VBD saw) (NP (NN it)) (PP (IN in) (NP (NN May))))))"
        tree = "(S1 (S (NP (PRP I)) (VP (VBD saw) (NP (NP (NN it)) (PP (IN in) (NP (NN May)))))))"
        assert marked(gold, tree) == ([], ["NP it in May"])
        assert marked(tree, gold) == (["NP it in May"], [])

    def test_brackets_are_matched_one_to_one(self):
        trees, symbols = parsed("(S1 (NP (NP (NN a) (NN b))))", "(S1 (NP (NN a) (NN b)))")
        assert differences(trees, symbols, 1) == ([2], []), "the lower one of two equal brackets is left over"

    def test_gold_decides_what_punctuation_is(self):
        gold, tree = "(S1 (S (NP (NN a)) (: -) (NN b)))", "(S1 (S (NP (NN a) (HYPH -)) (NN b)))"
        assert marked(gold, tree) == ([], [])
        assert marked(tree, gold) == (["NP a -"], ["NP a"])

    def test_empty_nodes_are_gone_unless_they_are_all(self):
        gold = "(S1 (S (NP-SBJ (-NONE- *)) (VP (VB Go) (NP (-NONE- *T*) (NN home)))))"
        assert marked(gold, "(S1 (S (VP (VB Go) (NP (NN home)))))") == ([], [])
        assert drawn(gold) == "(S1 (S (VP (VB Go) (NP (NN home)))))"
        assert drawn("(S1 (NP (-NONE- *)))") == "(S1 (NP (-NONE- *)))"

    def test_what_is_not_a_tree(self):
        with pytest.raises(DataError, match=r"examples: list demo-3: the tree is not closed"):
            compare_trees("(S1 (NN a))", "(S1 (NN a)", "(S1 (NN a))", "demo-3")


LABELS = st.sampled_from(["S", "NP", "NP-SBJ", "VP", "ADVP", "PRT", "X", "S1", ","])
TAGS = st.sampled_from(["NN", "VB", ",", ".", "''"])


@st.composite
def bracketed(draw, words, depth=4):
    """A random tree over ``words``, with tags of its own and an empty node here and there."""

    def over(first, last, level):
        if last - first == 1 and (level == 0 or draw(st.booleans())):
            return f"({draw(TAGS)} {words[first]})"
        label = draw(LABELS)
        if level == 0:
            inside = "".join(f"({draw(TAGS)} {word})" for word in words[first:last])
        else:
            cuts = sorted(draw(st.sets(st.integers(first + 1, last - 1), max_size=2))) if last - first > 1 else []
            bounds = [first, *cuts, last]
            inside = "".join(over(a, b, level - 1) for a, b in pairwise(bounds))
        empty = "(NP (-NONE- *))" if draw(st.integers(0, 9)) == 0 else ""
        return f"({label} {empty}{inside})"

    return f"(S1 {over(0, len(words), depth)})"


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_counts_are_those_of_the_metric(data):
    words = [f"w{i}" for i in range(data.draw(st.integers(1, 7)))]
    gold, tree = data.draw(bracketed(words)), data.draw(bracketed(words))
    metric, (trees, symbols) = Parseval(), parsed(gold, tree)
    reference, rows = metric.stats(subset(trees, [0]), subset(trees, [1]), symbols)
    missed, wrong = differences(trees, symbols, 1)
    matched = rows[0, metric.columns.index("matched")]
    assert matched + len(missed) == reference[metric.reference_columns.index("gold")]
    assert matched + len(wrong) == rows[0, metric.columns.index("test")]


class TestTrees:
    def test_marks_of_a_sentence(self):
        page = compare_trees(
            "(S1 (S (NP (NN a) (NN b)) (VP (VB c) (NP (NN d) (NN e)))))",
            "(S1 (S (NN a) (NN b) (VP (VB c) (ADJP (NN d) (NN e)))))",
            "(S1 (S (NP (NN a) (NN b)) (VB c) (NP (NN d) (NN e))))",
        )
        assert marks(page) == {"Gold": ["NP−B", "VP−C", "NP−B"], "Base": ["ADJP×"], "Chosen": []}

    @pytest.mark.parametrize("sentence", SENTENCES)
    def test_a_drawing_is_the_tree(self, sentence):
        for text in sentence:
            assert drawn(text) == text

    def test_a_failed_parse_is_drawn_as_a_trace(self):
        assert "<small>-NONE-</small>" in compare_trees("(S (NP (NN a)) (NN b))", "(())", "(S (NP (NN a)) (NN b))")


class TestTexts:
    def test_both_are_marked(self):
        page = compare_texts("ein Mann geht", ["a man walks here"], "man a walks", "a man goes here")
        assert marks(page) == {
            "Source": [],
            "Reference": ["a−B", "walks−C", "here−B"],
            "Base": ["a×"],
            "Chosen": ["goes×"],
        }

    def test_the_nearest_reference_counts_and_the_first_of_equals(self):
        found = marks(compare_texts(None, ["a b c d", "a b", "b a"], "a b", "c d"))
        assert found == {
            "Reference 1": ["a b−C"], "Reference 2": [], "Reference 3": [], "Base": [], "Chosen": []
        }  # fmt: skip

    def test_equal_choices_are_one_text(self):
        assert marks(compare_texts(None, ["a"], "b", "b")) == {"Reference": ["a−BC"], "Base and chosen": ["b×"]}

    def test_without_words_to_compare(self):
        assert marks(compare_texts(None, [], "a", "")) == {"Base": [], "Chosen": []}
        page = compare_texts(None, [""], "a", "")
        assert marks(page) == {"Reference": [], "Base": ["a×"], "Chosen": []}
        assert page.count("(no words)") == 2

    def test_everything_is_escaped(self):
        page = compare_texts("ein & mann", ["a <b> man"], "the man", "a <b> man")
        assert "ein &amp; mann" in page
        assert "a &lt;b&gt;" in page
        assert "<b>" not in page
