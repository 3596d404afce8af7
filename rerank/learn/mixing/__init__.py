"""Learning on sections apart, and one state from several."""
