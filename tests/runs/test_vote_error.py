"""What a bound says of the vote, beside what the vote does on a test split."""

from pathlib import Path
from typing import Any

import pytest
import small
import small_rankings

from rerank.runs import experiment

PERCEPTRON: dict[str, Any] = {"learner": {"name": "perceptron", "base": 0.0}, "decode": {"use": "best", "kinds": []}}


@pytest.mark.parametrize("vote", [True, False])
def test_the_error_of_the_vote_stands_beside_its_bound(tmp_path: Path, vote: bool) -> None:
    """Where a candidate is right or wrong, an error is a list that has a right one, and not chosen."""
    root = small_rankings.write_task(tmp_path)
    training = {"epochs": 1, "vote": vote, "bound": True}
    experiment.run(small_rankings.recipe(root, training=training, **PERCEPTRON), tmp_path / "run")
    metrics = small.results(tmp_path / "run")
    bound, splits = metrics["training"]["bound"], metrics["splits"]["test"]
    assert 0.0 < bound["vote_error"] <= 1.0
    if vote:
        lost = splits["oracle"]["gain"] - splits["voted"]["gain"]
        assert bound["vote_error_test"] == pytest.approx(lost, abs=1e-12)
        assert lost > 0.0
    else:
        assert "vote_error_test" not in bound
