"""What a significance test says, in words: which side is better, or that chance explains it; and what dev says."""

from collections.abc import Mapping
from typing import Any

from rerank.runs.report.measures import p_value, primary_of

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
    """What to say where the chosen run did not beat the base on the lists that epochs, or what a batch learner learns
    from, were chosen by; else ""."""
    base = metrics.get("training", {}).get("base") or {}
    if base.get("beaten") is not False or "mert" in metrics["training"]:  # MERT weighs the base score again
        return ""
    measure = primary_of(metrics)
    if (folds := metrics["training"].get("columns") or {}).get("lists"):
        score = f"{measure.heading} {measure.text(folds['base'])}"
        said = f"Nothing beat the base on {folds['lists']} training lists held out in turn ({score})"
        return f"{said}: the model {'is' if base['kept'] else 'may be no better than'} the base itself."
    found = f"No epoch beat the base on {base['split']} ({measure.heading} {measure.text(base['dev'])})"
    decoded = metrics["training"].get("decode") or {"use": ""}
    if decoded["use"]:
        reached = decoded[decoded["use"]]["dev"]
        if reached < base["dev"] if measure.lower_is_better else reached > base["dev"]:
            return f"{found} by its best candidates; with {decoded['use']} it reaches {measure.text(reached)} there."
    if base["kept"]:
        return f"{found}: the model is the base itself."
    return f"{found}: this model does harm there; `base: auto` finds the weight of the base score."
