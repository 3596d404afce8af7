"""Lists of texts, with what stands beside them: sources, references, scores of other models, other systems."""
