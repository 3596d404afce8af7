"""Experiments with labelled examples, as in the papers on CW, AROW and Winnow: a task of `rerank run`."""

from rerank.base.registry import Add


def register(add: Add) -> None:
    """Make the task known, its metric, and the sets that it generates."""
    add("task", "classification", f"{__name__}.recipe:TASK")
    add("metric", "error", f"{__name__}.results:Classification")
    for name in ("ellipse", "winnow", "zipf"):
        add("generator", name, f"{__name__}.sets:{name.title()}")
