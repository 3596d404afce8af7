"""The outcome of a test in words: which side is better depends on what the test compares."""

import pytest

from rerank.runs.report.results import given_up, unbeaten, verdict


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
    assert said in unbeaten({"training": {"base": base, "decode": decoded}})
    assert "does harm" in unbeaten({"training": {"base": base, "decode": None}})
    assert unbeaten({"training": {"base": base | {"beaten": True}, "decode": decoded}}) == ""


@pytest.mark.parametrize("kept", [True, False])
def test_a_base_that_is_decoded_is_not_the_base_itself(kept: bool) -> None:
    base = {"beaten": False, "kept": kept}
    training = {"base": base, "columns": {"lists": 40, "base": 0.85}, "decode": {"use": "mbr", "mbr": {"dev": 0.9}}}
    said = unbeaten({"training": training})
    assert said.startswith(
        "Nothing beat the base on 40 training lists held out in turn (F 85.00) by its best candidate"
    )
    assert said.endswith("with mbr it reaches 90.00 there.")


def test_what_a_decision_gives_up_is_said() -> None:
    """In entirely right trees: only where trees are made, and where it costs some."""
    scores = {"average": {"exact_match": 0.3217}, "learned": {"exact_match": 0.271}, "mbr": {"exact_match": 0.3217}}
    for predictor in ("learned", "mbr", "average"):
        decision = {"predictor": predictor, "ranked_by": "average"}
        said = given_up({"decision": decision, "splits": {"test": scores}}, "test")
        assert ("27.1 % are entirely right, of the best candidates 32.2 %: learned gives" in said) == (
            predictor == "learned"
        )
        assert bool(said) == (predictor == "learned")
    assert given_up({"splits": {"test": {"average": {}}}}, "test") == ""
