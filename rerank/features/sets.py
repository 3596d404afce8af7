"""Named sets of templates: for parses minimal, cj2005 (as in the papers) and extended; those for texts are at the end.

``base`` is empty: a model of the base score alone, for both; ``dense`` is for both too. The base score (LogP) is part
of every model and so of every set; Dense are the other scores of a list, if it has any.
"""

from itertools import product


def _named(text: str) -> list[str]:
    """The templates that a text lists, with a semicolon between them."""
    return [name.strip() for name in text.split(";")]


_EDGES = [
    f"{kind}(binned={binned}, lp={lp}, ls={ls}, rp={rp}, rs={rs})"
    for kind in ("Edges", "WordEdges")
    for binned in (False, True)
    for lp, ls, rp, rs in product(range(3), repeat=4)
    if lp + ls + rp + rs <= 2
]
_CJ2005 = _named("""
    RightBranch; Heavy; CoPar(depths=5); CoLenPar; Word(k=1); Word(k=2); WProj;
    Rule; Rule(ancestors=1); Rule(root=True); Rule(conj=True); Rule(head=word); Rule(words=function);
    Rule(head=word, words=function);
    NGram(n=1, ancestors=1, root=True, conj=True); NGram(n=2, ancestors=1, root=True, conj=True);
    NGram(n=3, ancestors=1, root=True, conj=True); NGram(head=word); NGram(words=function);
    NGramTree; NGramTree(words=all); NGramTree(n=3, words=function);
    HeadTree; HeadTree(heads=semantic); HeadTree(heads=semantic, words=all);
    Heads; Heads(governor=word, dependent=word); Heads(governor=word, dependent=word, heads=semantic); Heads(n=3)
""")
_EXTENDED = _named("""
    Neighbours; Neighbours(l=2); Neighbours(r=2); LexFunHeads; SubjVerbAgr;
    SynSemHeads; SynSemHeads(syntactic=word); SynSemHeads(semantic=word);
    Heads(n=3, governor=word, dependent=word, heads=semantic); WProj(k=2); Rule(ancestors=2);
    LeftBranchLength; RightBranchLength;
    LogCondP; LogCondP(norm=sum); LogCondP(bin=5); LogCondP(norm=sum, bin=5)
""")
_NGRAMS = "TargetNGram; TargetNGram(n=2); TargetNGram(n=3)"

SETS: dict[str, list[str]] = {
    "base": [],
    "minimal": _named("Rule; Rule(ancestors=1); RightBranch; Heavy; Word(k=2); Heads; Dense"),
    "cj2005": [*_CJ2005, *_EDGES, "Dense"],
    "extended": [*_CJ2005, *_EDGES, "Dense", *_EXTENDED],
    "dense": ["BaseScore", "Dense", "Agreement"],
    "dptm": ["Dense", "PhrasePair"],
    "translation": _named(f"""
        Dense; PhrasePair; SourcePhrase; TargetPhrase; PhraseLengths; WordPair; Unaligned; Unaligned(side=target);
        {_NGRAMS}; PhraseBoundary; Jump; Given
    """),
    "text": _named(f"""
        Dense; Agreement; {_NGRAMS}; Length(binned=False); LengthRatio; Copy; Punctuation; CoOccurrence;
        ConsensusNGram; Given
    """),
    "speech": _named(f"Dense; {_NGRAMS}; EditOps; ConsensusNGram; ConsensusEdits; Given"),
    "labels": _named("""
        LabelNGram(n=3); LabelNGram(n=4); LabelNGram(n=5); LabelNGram(n=3, words=last); LabelNGram(n=2, words=all);
        LabelSpan; LabelSpan(see=ends); LabelSpan(see=outside); LabelSpan(see=length);
        SpanNGram; SpanNGram(n=4, words=False)
    """),
}
