"""From templates to columns: how candidates are described."""

from rerank.base.registry import Add

TEMPLATES = {  # by module; they are called like their classes
    "parse.heads": "Heads LexFunHeads SynSemHeads SubjVerbAgr CoPar CoLenPar",
    "parse.local": "Rule NGram Word WProj NGramTree HeadTree",
    "parse.spans": "Edges WordEdges Neighbours Heavy RightBranch LeftBranchLength RightBranchLength LogP LogCondP",
    "scores": "Dense BaseScore Within SameAnswer",
    "text.consensus": "ConsensusNGram ConsensusEdits EditOps",
    "text.measures": "LengthRatio Length Copy Punctuation Rank BaseGap Given",
    "text.words": "TargetNGram WordPair Unaligned CoOccurrence PhrasePair SourcePhrase TargetPhrase PhraseLengths "
    "PhraseBoundary Jump",
}


def register(add: Add) -> None:
    """Make the templates known."""
    for module, names in TEMPLATES.items():
        for name in names.split():
            add("template", name, f"{__name__}.{module}:{name}")
