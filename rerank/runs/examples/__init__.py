"""The settings of recipes over labelled examples: sets, folds and noise, tuning, baselines, their report."""
