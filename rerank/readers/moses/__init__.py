"""Moses-style lists: a candidate a line, its fields between ``|||``."""
