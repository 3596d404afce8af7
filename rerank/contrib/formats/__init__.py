"""Formats of lists of programs that few use today, found by `rerank` by their names."""

from rerank.base.registry import Add

READERS = {"parsers": ("Berkeley", "Stanford"), "speech": ("Espnet", "Kaldi"),
           "translation": ("Fairseq", "OpenNmt", "Sockeye")}  # fmt: skip


def register(add: Add) -> None:
    """Make the readers known."""
    for module, names in READERS.items():
        for name in names:
            add("reader", name.lower(), f"{__name__}.{module}:{name}Reader")
