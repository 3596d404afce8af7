"""Learners by dual ascent: the large-margin perceptron and regularised Winnow."""

from rerank.base.registry import Add


def register(add: Add) -> None:
    """Make the learners known."""
    for name, of in {"lm-nwin": "LMNWin", "lm-perc": "LMPerceptron", "lm-uwin": "LMUWin"}.items():
        add("learner", name, f"{__name__}.large_margin:{of}")
