"""A list's trees with everything that templates look at: heads, coordination, clauses, hashes of subtrees.

Candidates of a list share most of their subtrees. ``inside`` identifies a subtree by its content, so that templates
run once per distinct *place*, not once per tree. A place stands for all nodes of a list at which a template of its
scope sees the same; it is one representative node and the candidates in which it occurs, with counts. The features of a
template at a place count in all of the place's candidates.

Scopes, from the smallest view to the largest:

* INSIDE: a node and what is below it, and whether it is the head of its parent;
* UPWARD: the same, with the labels and flags of its ancestors up to ``depth``;
* EDGES: a span with its label, its place in the sentence and the tagged words next to its two edges;
* TREE: a candidate as a whole.

There are two kinds of head: the *syntactic* head carries the function (the preposition of a PP, the auxiliary of a VP),
the *semantic* head the content (the object of a PP, the lexical verb, the noun). The rules are for the labels of the
Penn Treebank with the auxiliary tags AUX and AUXG; pass other tables to ``HeadTable`` for other treebanks.
"""

from typing import NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.symbols import LabelArray, SymbolTable, combine, find_slot
from rerank.data.trees import Trees
from rerank.features.sink import ENTRIES, OVERFLOW, Places, Sink
from rerank.kernels.compile import kernel
from rerank.readers.lists import ROOTS

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
CLASSES = {  # by label, a bit set
    label: sum(bit for bit, labels in MEMBERS.items() if label in labels.split())
    for label in " ".join(MEMBERS.values()).split()
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

    Raises RecipeError: a step does not start with a direction.
    """

    def __init__(self, rules: Rules, symbols: SymbolTable) -> None:
        rules = {label: [*steps, *DEFAULT_RULE] for label, steps in rules.items()}
        for label, step in ((label, step) for label, steps in rules.items() for step in steps):
            if step.split()[:1] not in (["<"], [">"]):
                raise RecipeError(f"head rule of {label} has the step {step!r}; expected < or >, then labels")
        labels = sorted({label for steps in rules.values() for step in steps for label in step.split()[1:]} - {"*"})
        columns = {label: 1 + i for i, label in enumerate(labels)}
        rows = {label: 1 + i for i, label in enumerate(sorted(rules))}
        self._rank = np.zeros((1 + len(rules), 1 + len(labels)), np.uint8)
        self._left = np.zeros((1 + len(rules), max(map(len, [DEFAULT_RULE, *rules.values()]))), np.bool_)
        for label, row in [("", 0), *rows.items()]:
            steps = rules.get(label, DEFAULT_RULE)
            self._rank[row] = len(steps) - 1
            for number in reversed(range(len(steps))):
                direction, *targets = steps[number].split()
                self._left[row, number] = direction == "<"
                for target in targets:
                    self._rank[row, columns[target] if target != "*" else slice(None)] = number
        self._row_of = LabelArray(symbols, rows, np.int16)
        self._column_of = LabelArray(symbols, columns, np.int16)

    def ranks(self, symbols: SymbolTable) -> HeadRanks:
        """The rules over all symbols of the table or a copy of it."""
        return HeadRanks(self._row_of.of(len(symbols)), self._column_of.of(len(symbols)), self._rank, self._left)


ROOT = "S1"  # the one of ROOTS that head rules have
# Bits of Forest.flags.
COORDINATION, ROOT_CLAUSE, SYN_HEAD, SEM_HEAD, IN_COORDINATION = 1, 2, 4, 8, 16


class Forest(NamedTuple):
    """The trees of one list (n nodes, in preorder, see Trees), annotated for templates.

    A preterminal is its own head. ``word`` is the id of the lower-cased word.
    """

    first: np.ndarray  # int64 [N + 1]: nodes of candidate y
    label: np.ndarray  # int32 [n]: symbol id
    word: np.ndarray  # int32 [n]: symbol id, -1 for nonterminals
    parent: np.ndarray  # int32 [n]: -1 for roots
    size: np.ndarray  # int32 [n]
    start: np.ndarray  # int32 [n]
    end: np.ndarray  # int32 [n]
    tree: np.ndarray  # int32 [n]: the candidate that a node belongs to
    syn: np.ndarray  # int32 [n]: syntactic head child
    sem: np.ndarray  # int32 [n]: semantic head child
    syn_leaf: np.ndarray  # int32 [n]: preterminal of the syntactic head word
    sem_leaf: np.ndarray  # int32 [n]: preterminal of the semantic head word
    flags: np.ndarray  # uint8 [n]: COORDINATION, ROOT_CLAUSE, SYN_HEAD and SEM_HEAD of the parent, IN_COORDINATION
    inside: np.ndarray  # uint64 [n]: hash of the subtree
    leaf: np.ndarray  # int32 [m]: preterminals in order; leaf p of candidate y is leaf[leaf_first[y] + p]
    leaf_first: np.ndarray  # int64 [N + 1]
    symbol: np.ndarray  # uint64 [symbols]: hash of a symbol id
    classes: np.ndarray  # uint8 [symbols]: those that the label of each belongs to, see CLASSES
    base: np.ndarray  # float64 [N]: base scores


@kernel
def _head_child(i: int, size: np.ndarray, label: np.ndarray, ranks: HeadRanks) -> int:
    """The head child of nonterminal i: that of lowest rank; among equals, the first from that rank's side."""
    row = ranks.row[label[i]]
    best, best_rank = i + 1, 256
    child, stop = i + 1, i + size[i]
    while child < stop:
        rank = int(ranks.rank[row, ranks.column[label[child]]])
        if rank < best_rank or (rank == best_rank and not ranks.from_left[row, rank]):
            best, best_rank = child, rank
        child += size[child]
    return best


@kernel
def _is_coordination(i: int, size: np.ndarray, label: np.ndarray, classes: np.ndarray) -> bool:
    """Whether a conjunction follows the first conjunct (a child that is not punctuation), and a conjunct follows it."""
    conjuncts, joined = 0, False
    child, stop = i + 1, i + size[i]
    while child < stop:
        kind = classes[label[child]]
        if kind & CONJUNCTION:
            joined = conjuncts > 0
        elif not kind & PUNCTUATION:
            if joined:
                return True
            conjuncts += 1
        child += size[child]
    return False


@kernel
def annotate(f: Forest, syn: HeadRanks, sem: HeadRanks) -> None:
    """Fill all fields of ``f`` beyond those of Trees, from ``f.first .. f.end``, ``symbol`` and ``classes``."""
    leaves = 0
    for y in range(f.first.shape[0] - 1):
        f.leaf_first[y] = leaves
        for i in range(f.first[y], f.first[y + 1]):  # top down: what depends on the nodes above
            f.tree[i] = y
            up = f.parent[i]
            clause = f.classes[f.label[i]] & CLAUSE
            f.flags[i] = 0
            if up < 0 or (
                f.flags[up] & ROOT_CLAUSE and not (clause and _below_clause(up, f.parent, f.label, f.classes))
            ):
                f.flags[i] = ROOT_CLAUSE
            if up >= 0 and f.flags[up] & COORDINATION:
                f.flags[i] |= IN_COORDINATION
            if f.word[i] >= 0:
                f.leaf[leaves] = i
                leaves += 1
                f.syn[i] = f.sem[i] = f.syn_leaf[i] = f.sem_leaf[i] = i
            else:
                f.syn[i] = _head_child(i, f.size, f.label, syn)
                f.sem[i] = _head_child(i, f.size, f.label, sem)
                if _is_coordination(i, f.size, f.label, f.classes):
                    f.flags[i] |= COORDINATION
        for i in range(f.first[y + 1] - 1, f.first[y] - 1, -1):  # bottom up: what depends on the nodes below
            h = combine(np.uint64(f.size[i]), f.symbol[f.label[i]])
            if f.word[i] >= 0:
                h = combine(h, f.symbol[f.word[i]])
            else:
                f.syn_leaf[i], f.sem_leaf[i] = f.syn_leaf[f.syn[i]], f.sem_leaf[f.sem[i]]
                f.flags[f.syn[i]] |= SYN_HEAD
                f.flags[f.sem[i]] |= SEM_HEAD
                child, stop = i + 1, i + f.size[i]
                while child < stop:
                    h = combine(h, f.inside[child])
                    child += f.size[child]
            f.inside[i] = h
    f.leaf_first[f.first.shape[0] - 1] = leaves


@kernel
def _below_clause(i: int, parent: np.ndarray, label: np.ndarray, classes: np.ndarray) -> bool:
    """Whether node i or one of its ancestors is a clause."""
    while i >= 0:
        if classes[label[i]] & CLAUSE:
            return True
        i = parent[i]
    return False


class Grower:
    """Turns the parsed trees of one list into a Forest; holds the head tables and label classes.

    symbols: the table that the trees are read with, or that theirs is a copy of.
    """

    def __init__(self, symbols: SymbolTable, syntactic: Rules = SYNTACTIC, semantic: Rules = SEMANTIC) -> None:
        self._syn, self._sem = (
            HeadTable({ROOT if label in ROOTS else label: steps for label, steps in rules.items()}, symbols)
            for rules in (syntactic, semantic)
        )
        self._classes = LabelArray(symbols, CLASSES, np.uint8)
        self._roots = np.array([symbols.intern(label) for label in (ROOT, *ROOTS)], np.int32)

    def grow(self, trees: Trees, base: np.ndarray, symbols: SymbolTable) -> Forest:
        """Annotate the trees of one list, read with ``symbols``, with base scores ``base`` (float64 [N]).

        The label of a root that says nothing is ROOT, whatever it is in the file: for templates as for PARSEVAL, the
        same trees are the same.
        """
        n = trees.label.size
        room = zip(("tree", "syn", "sem", "syn_leaf", "sem_leaf", "leaf"), np.empty((6, n), np.int32), strict=True)
        roots, label = trees.first[:-1], trees.label
        plain = roots[np.isin(label[roots], self._roots) & (trees.word[roots] < 0)]
        if not np.all(label[plain] == self._roots[0]):
            label = label.copy()
            label[plain] = self._roots[0]
        nodes = trees._replace(label=label, word=np.where(trees.word >= 0, symbols.lower[trees.word], -1))
        forest = Forest(
            **nodes._asdict(),
            **dict(room),
            flags=np.empty(n, np.uint8),
            inside=np.empty(n, np.uint64),
            leaf_first=np.empty(trees.first.size, np.int64),
            symbol=symbols.hashes,
            classes=self._classes.of(len(symbols)),
            base=base,
        )
        annotate(forest, self._syn.ranks(symbols), self._sem.ranks(symbols))
        return forest


INSIDE, UPWARD, EDGES, TREE = 0, 1, 2, 3
EDGE_REACH = 2  # words that templates of scope EDGES may look at on either side of an edge


@kernel
def hash_edges(f: Forest, edges: np.ndarray) -> None:
    """Hash every edge's distances to the ends and the tagged words next to it: ``edges[leaf_first[y] + y + edge]``."""
    for y in range(f.first.shape[0] - 1):
        first, last = f.leaf_first[y], f.leaf_first[y + 1]
        for edge in range(first, last + 1):
            key = combine(combine(np.uint64(1), np.uint64(edge - first)), np.uint64(last - edge))
            for p in range(max(first, edge - EDGE_REACH), min(last, edge + EDGE_REACH)):
                key = combine(key, f.inside[f.leaf[p]])
            edges[edge + y] = key


@kernel
def _key(f: Forest, i: int, scope: int, depth: int, edges: np.ndarray) -> np.uint64:
    if scope == INSIDE:
        return combine(f.inside[i], np.uint64(f.flags[i] & (SYN_HEAD | SEM_HEAD)))
    if scope == UPWARD:
        key = combine(np.uint64(f.flags[i]), f.inside[i])
        for _ in range(depth):
            i = f.parent[i]
            if i < 0:
                break
            key = combine(combine(key, f.symbol[f.label[i]]), np.uint64(f.flags[i]))
        return key
    if scope == EDGES:
        first = f.leaf_first[f.tree[i]] + f.tree[i]
        return combine(combine(f.symbol[f.label[i]], edges[first + f.start[i]]), edges[first + f.end[i]])
    return combine(np.uint64(1), np.uint64(f.tree[i]))


class Finder(NamedTuple):
    """Scratch of ``find_places`` for n nodes."""

    edges: np.ndarray  # uint64: see ``hash_edges``
    keys: np.ndarray  # uint64, size a power of two, more than twice the nodes: hash table of places
    place_at: np.ndarray  # int32: the place in a slot
    place_of: np.ndarray  # int32 [n]: the place of a node, -1 if the scope does not look there
    last: np.ndarray  # int32 [n]: the last candidate of a place
    cursor: np.ndarray  # int32 [n]: where the next entry of a place goes


@kernel
def find_places(f: Forest, scope: int, depth: int, finder: Finder, sink: Sink, out: Places) -> int:
    """Write the entries of all places to ``sink``, and places to ``out``; both have room for one per node."""
    places = 0
    out.first[0] = sink.state[ENTRIES]
    finder.keys[:] = 0
    if scope == EDGES:
        hash_edges(f, finder.edges)
    for y in range(f.first.shape[0] - 1):
        for i in range(f.first[y], f.first[y + 1]):
            finder.place_of[i] = -1
            if (scope == EDGES and f.word[i] >= 0) or (scope == TREE and i > f.first[y]):
                continue
            key = _key(f, i, scope, depth, finder.edges) | np.uint64(1)
            slot = find_slot(finder.keys, key)
            if finder.keys[slot] != key:
                finder.keys[slot], finder.place_at[slot] = key, places
                out.node[places], finder.last[places], out.first[places + 1] = i, -1, 0
                places += 1
            p = finder.place_at[slot]
            finder.place_of[i] = p
            if finder.last[p] != y:
                finder.last[p] = y
                out.first[p + 1] += 1
    for p in range(places):
        out.first[p + 1] += out.first[p]
        finder.cursor[p] = out.first[p]
    for y in range(f.first.shape[0] - 1):
        for i in range(f.first[y], f.first[y + 1]):
            p = finder.place_of[i]
            if p < 0:
                continue
            entry = finder.cursor[p] - 1
            if entry >= out.first[p] and sink.candidate[entry] == y:
                sink.value[entry] += 1
            else:
                sink.candidate[entry + 1], sink.value[entry + 1] = y, 1
                finder.cursor[p] += 1
    sink.state[ENTRIES] = out.first[places]
    return places


def places_of(f: Forest, scopes: np.ndarray, sink: Sink) -> list[Places]:
    """The distinct places of every scope in the forest.

    scopes: int64 [S, 2], each with how many ancestors it sees (UPWARD; 0 for others). If the sink has no room, there
    are no places and its OVERFLOW is set.
    """
    n, S = f.label.size, scopes.shape[0]
    if sink.state[ENTRIES] + S * n > sink.value.size:
        sink.state[OVERFLOW] = 1
        return [Places(np.empty(0, np.int32), np.zeros(1, np.int64))] * S
    capacity = 1 << max(4, int(2 * n + 1).bit_length())
    edges, keys = np.empty(f.leaf.size + f.first.size, np.uint64), np.empty(capacity, np.uint64)
    work = np.empty((3 + S, n), np.int32)
    finder = Finder(edges, keys, np.empty(capacity, np.int32), work[0], work[1], work[2])
    places = list[Places]()
    for (scope, depth), node in zip(scopes.tolist(), work[3:], strict=True):
        out = Places(node, np.empty(n + 1, np.int64))
        total = find_places(f, scope, depth, finder, sink, out)
        places.append(Places(node[:total], out.first[: total + 1]))
    return places
