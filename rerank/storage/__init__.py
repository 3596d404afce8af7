"""Data on disk that is either whole or absent: files, locks, arrays, JSON and YAML, digests, results of work."""
