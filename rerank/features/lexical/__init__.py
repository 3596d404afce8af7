"""Which words translate which: IBM model 1, estimated from sources and references, and what it says of candidates."""
