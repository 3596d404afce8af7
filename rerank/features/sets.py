"""Named sets of templates: for parses minimal, cj2005 (as in the papers) and extended; those for texts are at the end.

``base`` is empty: a model of the base score alone, for both; ``dense`` is for both too.
"""

from itertools import product

_REACH = [options for options in product(range(3), repeat=4) if sum(options) <= 2]
_EDGES = [
    f"{kind}(binned={binned}, lp={lp}, ls={ls}, rp={rp}, rs={rs})"
    for kind in ("Edges", "WordEdges")
    for binned in (False, True)
    for lp, ls, rp, rs in _REACH
]

# The base score (LogP) is part of every model and so of every set; Dense are the other scores of a list, if it has any.
SETS: dict[str, list[str]] = {
    "base": [],
    "minimal": ["Rule", "Rule(ancestors=1)", "RightBranch", "Heavy", "Word(k=2)", "Heads", "Dense"],
    "cj2005": [
        "RightBranch",
        "Heavy",
        "CoPar(depths=5)",
        "CoLenPar",
        "Word(k=1)",
        "Word(k=2)",
        "WProj",
        "Rule",
        "Rule(ancestors=1)",
        "Rule(root=True)",
        "Rule(conj=True)",
        "Rule(head=word)",
        "Rule(words=function)",
        "Rule(head=word, words=function)",
        *[f"NGram(n={n}, ancestors=1, root=True, conj=True)" for n in (1, 2, 3)],
        "NGram(head=word)",
        "NGram(words=function)",
        "NGramTree",
        "NGramTree(words=all)",
        "NGramTree(n=3, words=function)",
        "HeadTree",
        "HeadTree(heads=semantic)",
        "HeadTree(heads=semantic, words=all)",
        "Heads",
        "Heads(governor=word, dependent=word)",
        "Heads(governor=word, dependent=word, heads=semantic)",
        "Heads(n=3)",
        *_EDGES,
        "Dense",
    ],
}
SETS["extended"] = [
    *SETS["cj2005"],
    "Neighbours",
    "Neighbours(l=2)",
    "Neighbours(r=2)",
    "LexFunHeads",
    "SubjVerbAgr",
    "SynSemHeads",
    "SynSemHeads(syntactic=word)",
    "SynSemHeads(semantic=word)",
    "Heads(n=3, governor=word, dependent=word, heads=semantic)",
    "WProj(k=2)",
    "Rule(ancestors=2)",
    "LeftBranchLength",
    "RightBranchLength",
    "LogCondP",
    "LogCondP(norm=sum)",
    "LogCondP(bin=5)",
    "LogCondP(norm=sum, bin=5)",
]

_NGRAMS = ["TargetNGram", "TargetNGram(n=2)", "TargetNGram(n=3)"]
SETS |= {
    "dense": ["BaseScore", "Dense"],
    "dptm": ["Dense", "PhrasePair"],
    "translation": [
        "Dense",
        "PhrasePair",
        "SourcePhrase",
        "TargetPhrase",
        "PhraseLengths",
        "WordPair",
        "Unaligned",
        "Unaligned(side=target)",
        *_NGRAMS,
        "PhraseBoundary",
        "Jump",
        "Given",
    ],
    "text": [
        "Dense",
        *_NGRAMS,
        "Length(binned=False)",
        "LengthRatio",
        "Copy",
        "Punctuation",
        "CoOccurrence",
        "ConsensusNGram",
        "Given",
    ],
    "speech": ["Dense", *_NGRAMS, "EditOps", "ConsensusNGram", "ConsensusEdits", "Given"],
}
