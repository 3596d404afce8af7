"""YAML to typed settings."""

from rerank.base.registry import Add

TASKS = "ranking", "speech", "translation", "parse"


def register(add: Add) -> None:
    """Make the tasks known."""
    for name in TASKS:
        add("task", name, f"{__name__}.loading:{name.upper()}")
