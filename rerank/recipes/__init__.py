"""YAML to typed settings."""
