"""Templates over texts (translations, transcripts, samples); importing this package registers them."""

from rerank.features.text import agreement, consensus, dense, edits, ngram, phrases, rank, words

__all__ = ["agreement", "consensus", "dense", "edits", "ngram", "phrases", "rank", "words"]
