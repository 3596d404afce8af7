"""Data as flat arrays: symbols, the corpus, labelled examples and generated ones."""
