"""Readers of several files as one: scores of other models joined to lists, the lists of several systems merged."""
