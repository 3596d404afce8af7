"""The page of a run over texts: examples with marked words, MERT, signatures, and which predictor is in front."""

from datetime import UTC, datetime
from typing import Any

from rerank.runs.list_page import Example, Report, render
from rerank.runs.report.headline import signatures

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0"


def metrics(**changes: Any) -> dict[str, Any]:
    """A run with MERT on one test split."""
    systems = {name: {"bleu": 40.0 + k, "ter": 38.0 - k, "length_ratio": 1.0} for k, name in enumerate(
        ("base", "average", "mert", "oracle"))}  # fmt: skip
    tuned = {
        "split": "tune",
        "start": 41.123,
        "score": 42.456,
        "dev": 40.5,
        "start_weights": {"base": 1.0, "sparse": 1.0, "Dense|<LM0>": 0.5},
        "weights": {"base": 0.75, "sparse": 1.25, "Dense|<LM0>": -0.25},
        "seconds": 2.0,
    }
    training = {"learner": "vrda", "loss": "bayes", "epochs": 3, "nonzero_weights": 5, "mert": tuned}
    splits, learner = {"test": systems}, {"name": "vrda"}
    run = {"name": "vrda", "seed": 1, "learner": learner, "dev": 40.5, "training": training, "splits": splits}
    made = {"schema": 1, "task": "translation", "name": "mt", "seed": 1, "measure": "bleu", "metric": "bleu|own",
            "predictor": "mert", "signatures": {"test": {"bleu": SIGNATURE}},
            "runs": [run], "training": training, "splits": splits}  # fmt: skip
    return made | changes


def page(example: Example | None = None, **changes: Any) -> str:
    examples = [example] if example else []
    return render(Report(metrics(**changes), "name: mt", datetime(2025, 1, 2, tzinfo=UTC), 3.0, examples=examples))


def example(**changes: Any) -> Example:
    made = {"split": "test", "list_id": "7", "gold": "a <b> man\na man", "base": "the man", "chosen": "a man",
            "base_gain": 0.2, "chosen_gain": 1.0, "oracle_gain": 1.0, "source": "ein & mann"}  # fmt: skip
    return Example(**(made | changes))


def test_words_that_differ_are_marked_with_signs_and_escaped() -> None:
    text = page(example())
    assert '<dt>Source</dt><dd dir="auto">ein &amp; mann</dd>' in text
    assert '<span class="wrong">the<sup>×</sup></span> man' in text
    assert '<span class="missed">a<sup>−B</sup></span> man' in text
    assert "a &lt;b&gt; man" in text
    assert "<b> man" not in text
    assert '<span class="key wrong">word' in text
    assert "As text" not in text


def test_what_mert_did_is_under_training() -> None:
    text = page()
    section = text.partition('<section id="training">')[2].partition("</section>")[0]
    for part in ("Minimum error rate training", "tune", "41.12", "42.46", "40.50", "Dense|&lt;LM0&gt;", "−0.25"):
        assert part in section
    assert "mert predictor" in text
    without = metrics()
    del without["training"]["mert"]
    assert "Minimum error rate" not in page(training=without["training"], runs=without["runs"])


def test_signatures_of_the_figures() -> None:
    assert f"BLEU: <code>{SIGNATURE}</code>" in page()
    both = {"signatures": {"a": {"bleu": "x", "ter": "t"}, "b": {"bleu": "y", "ter": "t"}}}
    assert signatures(both) == [("BLEU on a", "x"), ("BLEU on b", "y"), ("TER", "t")]
    assert signatures({}) == []
