"""Every update of passive-aggressive learning is the minimiser that it stands for."""

from typing import Any

import numpy as np
import pytest
import reference
from scipy.optimize import minimize
from strategies import random_corpus, run, stored, targets

from rerank.learn.base import State
from rerank.learn.log import UpdateLog
from rerank.learn.rules.pa import PassiveAggressive

VARIANTS = ["hard", "1", "2"]


def one_update(learner: PassiveAggressive, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """(w, w⁺, z, fixed part of the margin, the logged τ) of the first list that a trained learner updates on; the base
    score's coordinate is the last of the vectors."""
    corpus, training = random_corpus(seed), random_corpus(seed + 100)
    rows = np.column_stack([reference.dense(corpus), learner.base_rate * corpus.base])
    before: State = run(learner, training, 1).state
    for i in range(corpus.list_count):
        state, log = stored(before), UpdateLog()
        learner.epoch(corpus, targets(corpus), np.array([i]), state, log=log)
        arrays = log.arrays()
        if log.updates == 1:
            rival = arrays["candidate"][arrays["a"] > 0][0]
            star = arrays["candidate"][arrays["a"] < 0][0]
            w, after = before.cells, state.cells
            fixed = learner.base * float(corpus.base[star] - corpus.base[rival])
            return w, after, rows[star] - rows[rival], fixed, float(arrays["rate"][0] / corpus.weight[i])
    raise AssertionError("no update")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("C", [0.02, 0.5])
def test_an_update_is_the_minimiser(variant: Any, C: float) -> None:
    """argmin ½‖w⁺ − w‖² where m⁺ ≥ 1 − ξ, + Cξ (PA-I) or + Cξ² (PA-II), ξ ≥ 0 (Crammer et al. 2006, eqs. 3, 6, 7)."""
    w, _, z, fixed, tau = one_update(PassiveAggressive(variant=variant, C=C, base_rate=0.25), seed=1)
    price = {"hard": lambda _: 0.0, "1": lambda s: C * s, "2": lambda s: C * s * s}[variant]
    slack = (0.0, 0.0 if variant == "hard" else None)
    found = minimize(
        lambda x: 0.5 * float((x[:-1] - w) @ (x[:-1] - w)) + price(x[-1]),
        np.append(w + z / (z @ z), 0.5 * (variant != "hard")),
        method="SLSQP",
        bounds=[(None, None)] * w.size + [slack],
        constraints={"type": "ineq", "fun": lambda x: fixed + x[:-1] @ z - 1.0 + x[-1]},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(w + tau * z, found.x[:-1], atol=2e-6)
