"""Data as flat arrays: symbols, the corpus and its shards, labelled examples and generated ones."""
