"""Results as rows: which run was chosen, what seeds have in common, what a comparison over seeds says."""

import pytest
from synthetic_report import make_metrics, make_runs

from rerank.runs.report.results import (
    chosen_of,
    compare_with_base,
    decided_by,
    groups_of,
    result_rows,
    splits_of,
    spread_of,
    verdict,
    written_score,
)


@pytest.fixture
def metrics():
    return make_metrics(make_runs(), 3)


class TestGroups:
    def test_seeds_of_one_name_are_one_group(self, metrics):
        groups = groups_of(metrics)
        assert {name: len(runs) for name, runs in groups.items()} == {"perceptron": 2, "voted RDA": 2, "AROW": 2}

    def test_the_chosen_run_may_be_named(self, metrics):
        metrics["chosen"] = {"name": "AROW", "seed": 1}
        assert chosen_of(metrics)["training"]["nonzero_weights"] == 352_408


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
        assert written_score(first, "test", "f1").mean == 0.81
        assert written_score(second, "test", "f1") == spread_of(second, "splits", "test", "average", "f1")
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
    def test_what_is_said_is_about_the_predictor_of_the_model(self, metrics):
        """The exact vote may be better on dev, but no model decides by it."""
        metrics["splits"]["dev"]["voted"]["f1"] = 0.99
        assert decided_by(metrics | {"predictor": "fuse"}) == "fuse"
        assert decided_by({}) == "average"

    def test_test_splits_come_first(self):
        assert splits_of({"splits": {"train": {}, "dev": {}, "b": {}, "a": {}}}) == ["b", "a", "dev", "train"]


def test_a_decoding_that_chooses_the_same_as_another_is_no_row_unless_the_model_chooses_by_it() -> None:
    scores = {name: {"f1": 0.5} for name in ("base", "average", "mbr")}
    run = {"name": "one", "splits": {"test": scores}, "alike": {"test": {"mbr": "average"}}}
    for predictor, expected in (("average", ["", "average"]), ("mbr", ["", "average", "mbr"])):
        metrics = {"measure": "f1", "predictor": predictor, "splits": {"test": scores}, "runs": [run]}
        assert [row.predictor for row in result_rows(metrics, "test")] == expected
