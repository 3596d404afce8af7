"""Bytes that are whole or absent: files, locks, arrays, JSON and YAML, checkpoints."""
