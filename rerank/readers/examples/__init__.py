"""Labelled examples in the svmlight format."""
