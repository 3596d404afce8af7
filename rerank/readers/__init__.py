"""Readers and writers of N-best lists and trees; importing this package registers the formats."""

from rerank.readers import berkeley, charniak, columns, fairseq, jsonl, merging, moses, sockeye  # noqa: F401 - they register themselves
