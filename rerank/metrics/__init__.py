"""Metrics as sums of statistics."""
