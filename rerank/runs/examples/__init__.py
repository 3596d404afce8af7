"""What recipes over labelled examples have of their own: sets, folds and noise, tuning, baselines, their report."""
