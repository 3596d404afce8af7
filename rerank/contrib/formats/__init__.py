"""Formats of lists of programs that few use today, found by `rerank` by their names."""

from rerank.base.registry import Add

READERS = {
    "berkeley": "parsers:BerkeleyReader",
    "espnet": "espnet:EspnetReader",
    "fairseq": "fairseq:FairseqReader",
    "kaldi": "kaldi:KaldiReader",
    "opennmt": "opennmt:OpenNmtReader",
    "sockeye": "sockeye:SockeyeReader",
    "stanford": "parsers:StanfordReader",
}


def register(add: Add) -> None:
    """Make the readers known."""
    for name, place in READERS.items():
        add("reader", name, f"{__name__}.{place}")
