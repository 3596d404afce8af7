"""From templates to columns: how candidates are described."""

from rerank.base.registry import Add

TEMPLATES = {  # by module; they are called like their classes
    "answers": "Agreement",
    "parse.coordination": "CoPar CoLenPar",
    "parse.dependencies": "Heads LexFunHeads SynSemHeads SubjVerbAgr",
    "parse.edges": "Edges WordEdges Neighbours Heavy",
    "parse.fragments": "NGramTree HeadTree",
    "parse.local": "Rule NGram Word WProj",
    "parse.whole": "RightBranch LeftBranchLength RightBranchLength LogP LogCondP",
    "scores": "Dense BaseScore Within",
    "text.agreement": "LengthRatio Length Copy Punctuation",
    "text.consensus": "ConsensusNGram",
    "text.edits": "ConsensusEdits EditOps",
    "text.phrases": "PhrasePair SourcePhrase TargetPhrase PhraseLengths PhraseBoundary Jump",
    "text.rank": "Rank BaseGap Given",
    "text.words": "TargetNGram WordPair Unaligned CoOccurrence",
}


def register(add: Add) -> None:
    """Make the templates known."""
    for module, names in TEMPLATES.items():
        for name in names.split():
            add("template", name, f"{__name__}.{module}:{name}")
