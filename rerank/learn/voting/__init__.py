"""Exact voting: the choices of all predictors of a training."""
