"""Lists of texts, with what goes with them: sources and references."""
