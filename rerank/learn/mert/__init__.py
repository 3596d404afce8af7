"""Minimum error rate training: few dense weights, by exact line search."""
