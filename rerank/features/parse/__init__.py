"""Templates over parse trees (Collins 2000; Charniak & Johnson 2005); importing this package registers them."""

from rerank.features import answers
from rerank.features.parse import coordination, dependencies, edges, fragments, local, whole

__all__ = ["answers", "coordination", "dependencies", "edges", "fragments", "local", "whole"]
