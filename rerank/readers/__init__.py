"""Readers and writers of N-best lists and trees."""
