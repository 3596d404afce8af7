"""Lists to corpora, cached."""
