"""The questions of templates about labels, as data: their classes, and head rules, which say which child is the head.

There are two kinds of head: the *syntactic* head carries the function (the preposition of a PP, the auxiliary of a VP),
the *semantic* head the content (the object of a PP, the lexical verb, the noun). The rules are for the labels of the
Penn Treebank with the auxiliary tags AUX and AUXG; pass other tables to ``HeadTable`` for other treebanks.
"""

from typing import NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.symbols import LabelArray, SymbolTable

# Classes of labels: punctuation, coordination, clauses, function words and others.
PUNCTUATION, CONJUNCTION, CLAUSE, FUNCTION, NOMINAL, VERBAL = 1, 2, 4, 8, 16, 32

MEMBERS: dict[int, str] = {
    PUNCTUATION: ", : `` '' . -LRB- -RRB- HYPH NFP",
    CONJUNCTION: "CC CONJP",
    CLAUSE: "S SBAR SBARQ SINV SQ",
    FUNCTION: "AUX AUXG CC DT EX IN MD PDT POS PRP PRP$ RP TO WDT WP WP$ WRB",
    NOMINAL: "NP NN NNS NNP NNPS PRP WHNP",
    VERBAL: "VP AUX AUXG MD VB VBD VBG VBN VBP VBZ",
}

# A rule: for a parent label, steps tried in order; a step is a direction ("<" from the left, ">" from the right)
# and the labels it looks for. "*" stands for any label; if nothing is found, the first child is the head.
Rules = dict[str, list[str]]

_NOUNS = "NN NNS NNP NNPS NX NML"
_VERBS = "VB VBD VBG VBN VBP VBZ"

SYNTACTIC: Rules = {
    "ADJP": ["> JJ JJR JJS ADJP", "> VBN VBG", "> QP CD NN RB", "> *"],
    "ADVP": ["> RB RBR RBS ADVP", "< IN TO RP JJ", "> *"],
    "CONJP": ["> CC", "> RB IN", "> *"],
    "FRAG": ["< S VP NP PP SBAR", "< *"],
    "INTJ": ["< UH", "< *"],
    "LST": ["< LS", "< *"],
    "NAC": [f"> {_NOUNS}", "> NP NAC", "> *"],
    "NP": [f"> {_NOUNS} POS", "> JJR", "< NP", "> PRP CD EX", "> JJ JJS RB QP DT PRP$ WDT WP", "> *"],
    "NML": [f"> {_NOUNS}", "> JJ CD", "> *"],
    "NX": [f"> {_NOUNS}", "< NP NX", "> *"],
    "PP": ["< IN TO VBG VBN RP", "< PP", "< *"],
    "PRN": ["< S NP VP PP SBAR", "< *"],
    "PRT": ["< RP", "< *"],
    "QP": ["> CD", "> NNS NN", "> JJ RB DT", "> *"],
    "RRC": ["< VP", "< NP ADVP ADJP PP", "< *"],
    "S": ["< VP", "< S SBAR", "< AUX MD " + _VERBS, "< ADJP UCP NP", "< *"],
    "S1": ["< S SBAR SQ SBARQ SINV", "< *"],
    "SBAR": ["< IN WHNP WHADVP WHPP WHADJP", "< DT RB", "< S SQ SINV SBAR", "< *"],
    "SBARQ": ["< SQ S SINV", "< SBARQ", "< *"],
    "SINV": ["< AUX MD " + _VERBS, "< VP", "< S SINV", "< *"],
    "SQ": ["< AUX MD " + _VERBS, "< VP SQ", "< *"],
    "UCP": ["< *"],
    "VP": ["< AUX AUXG MD TO", f"< {_VERBS}", "< VP", "< ADJP NP", "< *"],
    "WHADJP": ["< WRB WDT", "> JJ ADJP", "< *"],
    "WHADVP": ["> WRB", "< *"],
    "WHNP": ["< WDT WP WP$ WHADJP WHPP WHNP", "> " + _NOUNS, "< *"],
    "WHPP": ["< IN TO", "< *"],
    "X": ["> *"],
}

SEMANTIC: Rules = {
    **SYNTACTIC,
    "NP": [f"> {_NOUNS}", "< NP", "> PRP CD EX QP", "> JJ JJS JJR RB DT PRP$ WDT WP POS", "> *"],
    "PP": ["> NP", "> S SBAR VP ADJP ADVP PP QP", "> " + _NOUNS, "> IN TO RP", "> *"],
    "SBAR": ["< S SQ SINV SBAR", "< VP", "< *"],
    "SINV": ["< VP", "< S SINV", f"< {_VERBS}", "< *"],
    "SQ": ["< VP", "< SQ", f"< {_VERBS}", "< ADJP", "> NP", "< *"],
    "VP": ["< VP", f"< {_VERBS}", "< ADJP", "> NP", "< AUX AUXG MD TO", "< *"],
    "WHNP": ["> " + _NOUNS, "< WHNP", "< WDT WP WP$", "< *"],
    "WHPP": ["> WHNP WHADVP", "> *"],
}

DEFAULT_RULE = ["< *"]


class HeadRanks(NamedTuple):
    """A head table for kernels: the head of a node is its child of lowest rank, the first in that rank's direction."""

    row: np.ndarray  # int16 [symbols]: rule of a parent label
    column: np.ndarray  # int16 [symbols]: class of a child label
    rank: np.ndarray  # uint8 [rules, classes]: the step that looks for the child
    from_left: np.ndarray  # bool [rules, steps]: the direction of a step


class HeadTable:
    """Head rules compiled to rank matrices over the symbols of a SymbolTable, to which their labels are added.

    Raises
    ------
    RecipeError: a step does not start with a direction.
    """

    def __init__(self, rules: Rules, symbols: SymbolTable) -> None:
        rules = {label: [*steps, *DEFAULT_RULE] for label, steps in rules.items()}
        for label, step in ((label, step) for label, steps in rules.items() for step in steps):
            if step.split()[:1] not in (["<"], [">"]):
                raise RecipeError(f"head rule of {label} has the step {step!r}; expected < or >, then labels")
        labels = sorted({label for steps in rules.values() for step in steps for label in step.split()[1:]} - {"*"})
        self._columns = {label: 1 + i for i, label in enumerate(labels)}
        self._rows = {label: 1 + i for i, label in enumerate(sorted(rules))}
        steps_most = max(map(len, [DEFAULT_RULE, *rules.values()]))
        self._rank = np.zeros((1 + len(rules), 1 + len(labels)), np.uint8)
        self._left = np.zeros((1 + len(rules), steps_most), np.bool_)
        for label, row in [("", 0), *self._rows.items()]:
            self._fill(row, rules.get(label, DEFAULT_RULE))
        self._row_of = LabelArray(symbols, self._rows, np.int16)
        self._column_of = LabelArray(symbols, self._columns, np.int16)

    def _fill(self, row: int, steps: list[str]) -> None:
        ranks = np.full(self._rank.shape[1], len(steps) - 1, np.uint8)
        for step in reversed(range(len(steps))):
            direction, *labels = steps[step].split()
            self._left[row, step] = direction == "<"
            for label in labels:
                ranks[self._columns[label] if label != "*" else slice(None)] = step
        self._rank[row] = ranks

    def ranks(self, symbols: SymbolTable) -> HeadRanks:
        """The rules over all symbols of the table or a copy of it."""
        return HeadRanks(self._row_of.of(len(symbols)), self._column_of.of(len(symbols)), self._rank, self._left)


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
