"""What the learners of a family share: their state, how it is scored, averaged and combined; ``rules`` has the rest."""
