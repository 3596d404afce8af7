"""What knows nothing of lists: errors, names and registries of parts, progress, signals, use of the machine."""
