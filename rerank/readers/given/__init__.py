"""Lists that a program gives in memory: what users make of their candidates, and what readers make of that."""
