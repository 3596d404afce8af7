"""Outputs too many to list: spaces in which a learner finds the best output, and learners that train over them."""
