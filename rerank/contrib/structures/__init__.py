"""Labels of words: taggers over chains, perceptrons and conditional random fields, and features of whole sequences."""

from rerank.base.registry import Add

READERS = {
    "conll": "readers:ConllReader",
    "conllu": "readers:ConlluReader",
    "slash": "readers:SlashReader",
    "trees": "readers:TaggedTrees",
    "words": "readers:WordReader",
}


def register(add: Add) -> None:
    """Make the task known, the command, and what they are made of."""
    add("task", "tagging", f"{__name__}.recipe:TAGGING")
    add("command", "tagging", f"{__name__}.command")
    add("model", "labels", f"{__name__}.tagger:Tagger")
    add("public", "Tagger", f"{__name__}.tagger:Tagger")
    add("public", "tagger", f"{__name__}.fitting:tagger")
    add("estimator", "SequenceTagger", f"{__name__}.sequence_tagger:SequenceTagger")
    for name, path in READERS.items():
        add("sequence_reader", name, f"{__name__}.{path}")
    for name in ("LabelNGram", "LabelSpan", "SpanNGram"):
        add("template", name, f"{__name__}.metrics:{name}")
    add("metric", "spans", f"{__name__}.metrics:SpanScore")
    add("metric", "tags", f"{__name__}.metrics:TagAccuracy")
