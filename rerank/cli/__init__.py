"""The command line; see ``rerank --help``."""

from rerank.base.registry import Add

COMMANDS = {  # and the modules that they are in
    "compare": "running", "evaluate": "evaluating", "explain": "inspecting", "export": "inspecting",
    "import": "inspecting", "inspect": "inspecting", "list": "starting", "look": "starting", "new": "starting",
    "oracle": "evaluating", "rank": "ranking", "run": "running", "tune": "running", "vote": "voting",
    "weigh": "voting",
}  # fmt: skip


def register(add: Add) -> None:
    """Make the modules of commands known."""
    for name, module in COMMANDS.items():
        add("command", name, f"{__name__}.{module}")
