"""Outputs too many to list: chains of labels, of which a learner finds the best, and learners that train over them."""
