"""``rerank serve``: a model that answers over HTTP."""

from rerank.base.registry import Add


def register(add: Add) -> None:
    """Make the command known."""
    add("command", "serve", f"{__name__}.command")
