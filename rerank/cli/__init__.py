"""The command line; see ``rerank --help``."""

from rerank.base.registry import Add

COMMANDS = (  # modules, each of a command or several
    "evaluating", "exporting", "inspecting", "listing", "looking", "ranking", "oracles", "running",
    "starting", "voting", "weighing",
)  # fmt: skip


def register(add: Add) -> None:
    """Make the modules of commands known."""
    for name in COMMANDS:
        add("command", name, f"{__name__}.{name}")
