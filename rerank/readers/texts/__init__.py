"""Lists of texts, with what goes with them: sources, references, scores of other models, other systems."""
