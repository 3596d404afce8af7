"""Verdicts in words: which side of a test is better, whether the base was beaten on dev, which figures are blind."""

from collections.abc import Mapping
from typing import Any

from rerank.runs.report.measures import primary_of
from rerank.runs.report.numbers import p_value

LEVEL = 0.05
TESTS_OF_MEASURE = ("approximate_randomization", "paired_bootstrap")  # whose difference is that of corpus scores


def verdict(test: Mapping[str, Any], *, lower_is_better: bool = False, amount: str = "", than: str = "") -> str:
    """The outcome of a test of A against B: a phrase that says how A is.

    test: ``difference`` (of A from B), ``p`` and ``test``, as in metrics.json. lower_is_better: a property of the
    measure, which the resampling tests compare; the differences of the other tests are in gains and in right answers.
    amount: the size of the difference in the measure, with its name; than: the name of B.

    >>> verdict({"test": "paired_bootstrap", "difference": 0.0153, "p": 0.0001}, amount="1.53 F", than="base")
    '1.53 F better than base, p < .001'
    >>> verdict({"test": "mcnemar", "difference": -0.02, "p": 0.005})
    'worse, p .005'
    >>> verdict({"test": "paired_bootstrap", "difference": 0.001, "p": 0.43}, amount="0.10 F", than="base")
    'not significant, p .430'
    """
    chance, difference = f"p {p_value(test['p'])}", test["difference"]
    if not test["p"] < LEVEL or difference == 0:
        return f"not significant, {chance}"
    of_measure = test["test"] in TESTS_OF_MEASURE
    better = (difference < 0) == (lower_is_better and of_measure)
    words = [amount if of_measure else "", "better" if better else "worse", f"than {than}" if than else ""]
    return f"{' '.join(word for word in words if word)}, {chance}"


def unbeaten(metrics: Mapping[str, Any]) -> str:
    """A warning where the chosen run did not beat the base on the lists that epochs, or what a batch learner learns
    from, were chosen by; else ""."""
    base = metrics.get("training", {}).get("base") or {}
    if base.get("beaten") is not False or "mert" in metrics["training"]:  # MERT weighs the base score again
        return ""
    measure = primary_of(metrics)
    if (folds := metrics["training"].get("columns") or {}).get("lists"):
        score = f"{measure.heading} {measure.text(folds['base'])}"
        said = f"Nothing beat the base on {folds['lists']} training lists held out in turn ({score})"
        return f"{said}: the model {'is' if base['kept'] else 'may be no better than'} the base itself."
    said = f"No epoch beat the base on {base['split']} ({measure.heading} {measure.text(base['dev'])})"
    decoded = metrics["training"].get("decode") or {"use": ""}
    if decoded["use"]:
        reached = decoded[decoded["use"]]["dev"]
        if measure.better(reached - base["dev"]) > 0:
            return f"{said} by its best candidates; with {decoded['use']} it reaches {measure.text(reached)} there."
    if base["kept"]:
        return f"{said}: the model is the base itself."
    return f"{said}: this model does harm there; `base: auto` finds the weight of the base score."


def blind_note(metrics: Mapping[str, Any]) -> str:
    """Which figures are blind, and what was chosen where; empty where ``metrics`` does not say."""
    blind = metrics.get("blind")
    if not blind:
        return ""
    chosen = "; ".join(f"on {split}: {', '.join(what)}" for split, what in blind["chosen_on"].items())
    tests = ", ".join(blind["splits"])
    said = f"Blind figures: those of the chosen settings on {tests}" if tests else "No figure is blind"
    return (
        f"{said}. Chosen {chosen}. The program cannot know of choices made by looking at test figures before this run."
    )
