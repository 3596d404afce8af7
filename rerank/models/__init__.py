"""A trained model: stored, described, written as text, and at work."""
