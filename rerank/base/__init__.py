"""Parts that know nothing of lists: errors, names, registries, checks of parameters, progress, signals, usage."""
