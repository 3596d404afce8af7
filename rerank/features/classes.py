"""Classes of labels that templates ask about (punctuation, coordination, clauses, function words), as data."""

import numpy as np

from rerank.data.symbols import LabelArray, SymbolTable

PUNCTUATION, CONJUNCTION, CLAUSE, FUNCTION, NOMINAL, VERBAL = 1, 2, 4, 8, 16, 32

MEMBERS: dict[int, str] = {
    PUNCTUATION: ", : `` '' . -LRB- -RRB- HYPH NFP",
    CONJUNCTION: "CC CONJP",
    CLAUSE: "S SBAR SBARQ SINV SQ",
    FUNCTION: "AUX AUXG CC DT EX IN MD PDT POS PRP PRP$ RP TO WDT WP WP$ WRB",
    NOMINAL: "NP NN NNS NNP NNPS PRP WHNP",
    VERBAL: "VP AUX AUXG MD VB VBD VBG VBN VBP VBZ",
}


class LabelClasses:
    """A bit set for every symbol: the classes its label belongs to. The labels are added to ``symbols``."""

    def __init__(self, symbols: SymbolTable, members: dict[int, str] = MEMBERS) -> None:
        bits: dict[str, int] = {}
        for bit, labels in members.items():
            for label in labels.split():
                bits[label] = bits.get(label, 0) | bit
        self._bits = LabelArray(symbols, bits, np.uint8)

    def bits(self, symbols: SymbolTable) -> np.ndarray:
        """uint8 [symbols]: the classes of all symbols of the table or a copy of it."""
        return self._bits.of(len(symbols))
