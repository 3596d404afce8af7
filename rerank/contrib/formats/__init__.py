"""Formats of lists of programs that few use today, found by `rerank` by their names."""

from rerank.base.registry import Add

READERS = "Berkeley", "Espnet", "Fairseq", "Kaldi", "OpenNmt", "Sockeye", "Stanford"


def register(add: Add) -> None:
    """Make the readers known."""
    for name in READERS:
        add("reader", name.lower(), f"{__name__}.{name.lower()}:{name}Reader")
