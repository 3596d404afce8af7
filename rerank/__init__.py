"""N-best reranking and structured prediction with sparse linear models.

What a program needs is here, and loaded when it is first asked for::

    model = rerank.fit(lists, features="dense")
    model.best(candidates)

The parts behind it, from the files up: ``rerank.readers`` (lists), ``rerank.features`` (templates), ``rerank.metrics``
(statistics that add up, oracles), ``rerank.data`` (corpora, flat arrays), ``rerank.learn`` (online learners, exact
voting), ``rerank.models`` (a model, stored and at work), ``rerank.runs`` (the course of a recipe).
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rerank.base.encoding import PlainMessages
from rerank.base.errors import RerankError

if TYPE_CHECKING:
    from rerank.features.extract import feature
    from rerank.models.reranker import Ranking, Reranker, load
    from rerank.readers.lists import Candidate
    from rerank.readers.memory.nbest import NBest
    from rerank.readers.memory.reading import example, read
    from rerank.runs.fitting import fit
    from rerank.runs.measuring import Evaluation, evaluate
    from rerank.runs.training import TrainingEvent

    Tagger: Any  # which a part registers
    tagger: Any

__version__ = "0.1.0"

logging.getLogger("rerank").addFilter(PlainMessages())

# The public names that are loaded when they are asked for, and the modules that they are in; others are registered.
_PLACES = {
    "Candidate": "rerank.readers.lists",
    "Evaluation": "rerank.runs.measuring",
    "NBest": "rerank.readers.memory.nbest",
    "Ranking": "rerank.models.reranker",
    "Reranker": "rerank.models.reranker",
    "TrainingEvent": "rerank.runs.training",
    "evaluate": "rerank.runs.measuring",
    "example": "rerank.readers.memory.reading",
    "feature": "rerank.features.extract",
    "fit": "rerank.runs.fitting",
    "load": "rerank.models.reranker",
    "read": "rerank.readers.memory.reading",
}

__all__ = [
    "Candidate", "Evaluation", "NBest", "Ranking", "RerankError", "Reranker", "Tagger", "TrainingEvent", "__version__",
    "evaluate", "example", "feature", "fit", "load", "read", "tagger",
]  # fmt: skip


if not TYPE_CHECKING:  # which would take it for any name

    def __getattr__(name: str) -> Any:
        if name in _PLACES:
            value = getattr(import_module(_PLACES[name]), name)
        elif name in __all__:
            from rerank.base.registry import Registry

            value = Registry("public").get(name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
