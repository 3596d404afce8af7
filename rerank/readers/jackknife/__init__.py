"""Jackknifing: folds of a treebank for a parser to be trained on, and its lists joined again."""
