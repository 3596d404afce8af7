"""Learning on sections separately, and one state from several."""
