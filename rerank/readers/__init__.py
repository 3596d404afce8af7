"""Readers and writers of N-best lists and trees."""

from rerank.base.registry import Add

READERS = {
    "charniak": "trees.charniak:CharniakReader",
    "joined": "combined:JoinedReader",
    "jsonl": "texts.jsonl:JsonlReader",
    "merged": "combined:MergedReader",
    "moses": "moses:Moses",
    "table": "texts.table:TableReader",
    "trees": "trees.charniak:BareReader",
}


def register(add: Add) -> None:
    """Make the readers known."""
    for name, place in READERS.items():
        add("reader", name, f"{__name__}.{place}")
    add("files", "table", f"{__name__}.detection:TABLE")
