"""Parts that know nothing of lists: errors, names, registries, progress, signals, resource usage."""
