"""Templates over texts (translations, transcripts, samples); importing this package registers them."""

from rerank.features.text import agreement, consensus, edits, lexical, phrases, rank, words

__all__ = ["agreement", "consensus", "edits", "lexical", "phrases", "rank", "words"]
