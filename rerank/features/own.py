"""``rerank.feature``: features that users write in Python."""

from collections.abc import Callable, Mapping
from functools import wraps

from rerank.readers.given.nbest import NBest
from rerank.readers.lists import ListCandidate

Feature = Callable[[ListCandidate, NBest], Mapping[str, float]]


def feature(function: Feature) -> Callable[[ListCandidate], Mapping[str, float]]:
    """Decorator that makes a template of a function of (candidate, nbest), the candidate's list, to numbers by name.

    The result can be named wherever users' templates can: in ``fit(features=...)``, and by import path in recipes. The
    list has neither references nor gains: where the model works, nobody knows them.
    """

    @wraps(function)
    def template(candidate: ListCandidate) -> Mapping[str, float]:
        return function(candidate, NBest.of(candidate.nbest, known=False))

    return template
