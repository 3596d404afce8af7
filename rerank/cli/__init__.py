"""The command line; see ``rerank --help``."""
