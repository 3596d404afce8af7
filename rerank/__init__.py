"""N-best reranking and structured prediction with sparse linear models.

The parts, from the files up: ``rerank.readers`` (lists), ``rerank.features`` (templates), ``rerank.metrics``
(statistics that add up, oracles), ``rerank.data`` (corpora, flat arrays), ``rerank.learn`` (online learners, exact
voting), ``rerank.models`` (a model, stored and at work), ``rerank.runs`` (the course of a recipe).
"""

import logging
from importlib.metadata import PackageNotFoundError, version

from rerank.base.escaping import PlainMessages

try:
    __version__ = version("rerank")
except PackageNotFoundError:  # run from a source tree that was not installed
    __version__ = "0+unknown"

logging.getLogger("rerank").addFilter(PlainMessages())

__all__ = ["__version__"]
