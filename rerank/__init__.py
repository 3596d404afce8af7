"""N-best reranking and structured prediction with sparse linear models.

The parts, from the files up: ``rerank.readers`` (lists), ``rerank.features`` (templates), ``rerank.metrics``
(statistics that add up), ``rerank.corpus`` (flat arrays), ``rerank.oracle``, ``rerank.learn`` (online learners, exact
voting), ``rerank.model``, ``rerank.reranker`` (a model at work), ``rerank.pipeline`` (recipes).
"""

import logging
from importlib.metadata import PackageNotFoundError, version

from rerank.escaping import PlainMessages

try:
    __version__ = version("rerank")
except PackageNotFoundError:  # run from a source tree that was not installed
    __version__ = "0+unknown"

logging.getLogger("rerank").addFilter(PlainMessages())

__all__ = ["__version__"]
