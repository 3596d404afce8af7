"""N-best reranking and structured prediction with sparse linear models.

The parts, from the files up: ``rerank.readers`` (lists), ``rerank.features`` (templates), ``rerank.metrics``
(statistics that add up, oracles), ``rerank.data`` (corpora, flat arrays), ``rerank.learn`` (online learners, exact
voting), ``rerank.models`` (a model, stored and at work), ``rerank.runs`` (the course of a recipe).
"""

import logging

from rerank.base.escaping import PlainMessages

__version__ = "0.1.0"

logging.getLogger("rerank").addFilter(PlainMessages())

__all__ = ["__version__"]
