"""Classes of labels that templates ask about: punctuation, coordination, clauses, function words; as data."""

from __future__ import annotations

import numpy as np

from rerank.symbols import SymbolTable

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
    """Bit set of every symbol: which classes its label belongs to."""

    def __init__(self, members: dict[int, str] = MEMBERS) -> None:
        self._bits: dict[str, int] = {}
        for bit, labels in members.items():
            for label in labels.split():
                self._bits[label] = self._bits.get(label, 0) | bit
        self._of = np.zeros(0, np.uint8)

    def bits(self, symbols: SymbolTable) -> np.ndarray:
        """uint8 [symbols]: the classes of all symbols seen so far."""
        known = self._of.size
        if known < len(symbols):
            new = [self._bits.get(symbols.text(i), 0) for i in range(known, len(symbols))]
            self._of = np.append(self._of, new).astype(np.uint8)
        return self._of
