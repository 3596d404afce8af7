"""Templates to columns: what a candidate is described by."""
