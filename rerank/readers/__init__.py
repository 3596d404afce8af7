"""Readers and writers of N-best lists and trees."""

from rerank.base.registry import Add

READERS = {
    "charniak": "trees.charniak:CharniakReader",
    "joined": "combined.joining:JoinedReader",
    "jsonl": "texts.jsonl:JsonlReader",
    "letor": "texts.letor:LetorReader",
    "merged": "combined.merging:MergedReader",
    "moses": "moses.reader:Moses",
    "openai": "texts.openai:OpenAiReader",
    "parallel": "texts.parallel:ParallelReader",
    "preferences": "texts.preferences:PreferencesReader",
    "table": "texts.table:TableReader",
    "trec": "texts.trec:TrecReader",
    "trees": "trees.bare:BareReader",
}

SEQUENCE_READERS = {
    "conll": "sequences.conll:ConllReader",
    "conllu": "sequences.conllu:ConlluReader",
    "slash": "sequences.slash:SlashReader",
    "trees": "sequences.trees:TaggedTrees",
    "words": "sequences.slash:WordReader",
}


def register(add: Add) -> None:
    """Make the readers known: of lists, and of sentences."""
    for name, place in READERS.items():
        add("reader", name, f"{__name__}.{place}")
    for name, place in SEQUENCE_READERS.items():
        add("sequence_reader", name, f"{__name__}.{place}")
