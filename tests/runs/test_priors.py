"""Priors of columns in recipes: by feature or template, and what refuses them."""

from typing import Any

import numpy as np
import pytest

import rerank
from rerank.base.errors import RecipeError


def lists(count: int = 30) -> list[Any]:
    random = np.random.default_rng(1)
    made = []
    for i in range(count):
        numbers = random.normal(size=(3, 2))
        candidates = [
            {"text": f"answer {k}", "score": 0.0, "columns": {"one": float(a), "two": float(b)}}
            for k, (a, b) in enumerate(numbers)
        ]
        made.append(rerank.NBest(id=f"list {i}", candidates=candidates, gains=[float(a > 0) for a, _ in numbers]))
    return made


UWIN = {"name": "uwin", "base": 0.0, "mu": 0.5, "eta": 1e-9, "loss": "log", "update": "always"}


def weights(learner: Any = UWIN, **training: Any) -> dict[str, float]:
    """The weights of the last predictor by feature, for values as the corpus has them."""
    settings: dict[str, Any] = {"learner": learner, "features": "dense", "epochs": 1}
    model = rerank.fit(lists(), **settings, training={"predictor": "last", **training}).model
    w = model.weights["last"].w
    return {model.table.name(j): float(w[j]) for j in range(w.size)}


def test_features_and_templates_have_priors_of_their_own() -> None:
    """With steps of 1e-9 the gradients are those at w = 0, and weights 2·μ times their sum: in proportion to priors."""
    plain, own = weights(), weights(prior={"Dense": 2.0, "Dense|two": 4.0})
    assert set(plain) == {"Dense|one", "Dense|two"}
    assert own["Dense|one"] == pytest.approx(4 * plain["Dense|one"], rel=1e-6)
    assert own["Dense|two"] == pytest.approx(8 * plain["Dense|two"], rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": "perceptron", "prior": {"Dense": 1.0}}, "perceptron has no priors of columns"),
        ({"prior": {"Dense": 1.0}, "vote": True}, "leave out prior or vote"),
        ({"prior": {"Nothing": 1.0}}, "no feature or template is named 'Nothing'; the templates are BaseScore, Dense"),
        ({"prior": {"Dense": 0.0}}, "training.prior"),
        ({"learner": UWIN | {"balanced": False}, "dense": False}, "which columns that are left out would keep"),
        ({"learner": UWIN | {"balanced": False}, "vote": True}, "begins at positive weights, and has no votes"),
    ],
)
def test_wrong_priors_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        weights(**settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "training",
    [
        {"select": {"learner": {"name": "perceptron"}, "keep": 1, "epochs": 1}},
        {"dense": False}, {"share": 0.5},
    ],
    ids=lambda one: next(iter(one)),
)  # fmt: skip
def test_priors_go_with_whatever_else_is_trained(training: dict[str, Any]) -> None:
    found = weights(prior={"Dense": 2.0}, **training)
    assert all(np.isfinite(list(found.values())))


def test_a_model_to_continue_from_has_its_priors() -> None:
    settings: dict[str, Any] = {"learner": {"name": "uwin", "base": 0.0, "mu": 0.5}, "features": "dense", "epochs": 2}
    first = rerank.fit(lists(), **settings, training={"prior": {"Dense|two": 4.0}})
    more = rerank.fit(lists(), start=first, epochs=1)
    np.testing.assert_array_equal(more.model.state["v"], first.model.state["v"])
    assert sorted(more.model.state["v"][:-1]) == [0.5, 4.0]
