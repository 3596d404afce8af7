"""From templates to columns: how candidates are described."""
