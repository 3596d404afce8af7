"""Templates over texts (translations, transcripts, samples); importing this package registers them."""

from rerank.features import answers
from rerank.features.sequence import whole
from rerank.features.text import agreement, consensus, edits, lexical, phrases, rank, words

__all__ = ["agreement", "answers", "consensus", "edits", "lexical", "phrases", "rank", "whole", "words"]
