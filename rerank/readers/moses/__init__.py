"""Moses-style lists: one candidate per line, its fields separated by ``|||``."""
