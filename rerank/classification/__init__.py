"""Classification: learners over folds, sets, noise levels and seeds, tuned and compared."""
