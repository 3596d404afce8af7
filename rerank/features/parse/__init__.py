"""Templates over parse trees (Collins 2000; Charniak & Johnson 2005); importing this package registers them."""

from rerank.features.parse import branch, coordination, dependencies, edges, fragments, logp, ngram, rule, word

__all__ = ["branch", "coordination", "dependencies", "edges", "fragments", "logp", "ngram", "rule", "word"]
