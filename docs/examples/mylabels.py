"""Label classes of another treebank."""

from rerank.features.forest import CONJUNCTION, FUNCTION, MEMBERS, PUNCTUATION

MEMBERS[PUNCTUATION] = "$, $. $("
MEMBERS[CONJUNCTION] = "KON"
MEMBERS[FUNCTION] = "APPR APPRART APPO ART KOUS KOUI KON PTKZU VAFIN VMFIN"


def nothing(_):
    """The module is what is wanted: it gives no features."""
    return {}
