"""The slow and obvious twin of the feature extractor: plain nodes, one template a function, names as texts.

Nothing is shared among candidates and nothing is hashed; every template is written from its definition.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import nltk

from rerank.features.forest import SEMANTIC, SYNTACTIC, Rules
from rerank.features.template import Template
from rerank.readers.lists import ROOTS

PUNCTUATION = {",", ":", ".", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP"}
CONJUNCTIONS = {"CC", "CONJP"}
CLAUSES = {"S", "SBAR", "SBARQ", "SINV", "SQ"}
DETERMINERS, PRONOUNS = {"DT", "PDT", "WDT", "EX"}, {"PRP", "PRP$", "WP", "WP$"}
FUNCTION_TAGS = {*DETERMINERS, *PRONOUNS, "AUX", "AUXG", "CC", "IN", "MD", "POS", "RP", "TO", "WRB"}
NOMINALS = {"NP", "WHNP", "NN", "NNS", "NNP", "NNPS", "PRP"}
VERBALS = {"VP", "AUX", "AUXG", "MD", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ"}
TABLES = {"syntactic": SYNTACTIC, "semantic": SEMANTIC}
END = "(end)"


@dataclass(eq=False)
class Node:
    """A node of a tree over words start..end - 1; a preterminal has its lower-cased ``word`` and no children."""

    label: str
    parent: "Node | None"
    start: int
    end: int = 0
    word: str = ""
    children: "list[Node]" = field(default_factory=list)

    @property
    def above(self) -> "list[Node]":
        """Ancestors, the lowest first."""
        return [self.parent, *self.parent.above] if self.parent else []

    @property
    def below(self) -> "list[Node]":
        """All nodes of the subtree, this one first."""
        return [self, *(node for child in self.children for node in child.below)]

    @property
    def words(self) -> "list[Node]":
        """Preterminals of the subtree."""
        return [node for node in self.below if not node.children]

    @property
    def phrases(self) -> "list[Node]":
        """Nonterminals of the subtree."""
        return [node for node in self.below if node.children]

    @property
    def length(self) -> int:
        """Number of words."""
        return self.end - self.start


def read(tree: nltk.Tree, parent: Node | None = None, start: int = 0) -> Node:
    """A tree as nodes; the label of a root that says nothing is S1."""
    leaf = isinstance(tree[0], str)
    node = Node("S1" if parent is None and not leaf and tree.label() in ROOTS else tree.label(), parent, start)
    if leaf:
        node.word, node.end = tree[0].lower(), start + 1
        return node
    for child in tree:
        node.children.append(read(child, node, node.children[-1].end if node.children else start))
    node.end = node.children[-1].end
    return node


# Heads and coordinations.


def head_child(node: Node, rules: Rules) -> Node:
    """What the first step of the label's rule that finds a child finds, else the first child."""
    for step in rules.get(node.label, []):
        direction, *labels = step.split()
        for child in node.children if direction == "<" else reversed(node.children):
            if child.label in labels or "*" in labels:
                return child
    return node.children[0]


def head(node: Node, kind: str) -> Node:
    """The preterminal of a node's head word."""
    return head(head_child(node, TABLES[kind]), kind) if node.children else node


def maximal_projection(word: Node, kind: str) -> Node:
    """The highest node that has ``word`` as its head."""
    return [node for node in [word, *word.above] if head(node, kind) is word][-1]


def conjuncts(node: Node) -> list[Node]:
    """Children that neither join nor punctuate."""
    return [child for child in node.children if child.label not in CONJUNCTIONS | PUNCTUATION]


def is_coordination(node: Node | None) -> bool:
    """Does a conjunction stand somewhere between conjuncts?"""
    if node is None or not conjuncts(node):
        return False
    first, last = conjuncts(node)[0], conjuncts(node)[-1]
    return any(child.label in CONJUNCTIONS and first.start < child.start < last.start for child in node.children)


def with_word(node: Node, shown: bool) -> list[str]:
    return [node.label, "/", node.word] if shown else [node.label]


def word_shown(node: Node, words: str) -> bool:
    return not node.children and (words == "all" or (words == "function" and node.label in FUNCTION_TAGS))


def ancestors_of(node: Node, number: int) -> list[str]:
    return [part for above in node.above[:number] for part in ("^", above.label)]


# Templates: from a tree and options to the texts of features, as often as they fire.

Fired = Iterator[list[str]]


def context(node: Node, o: Any) -> list[str]:
    parts = [node.label, *ancestors_of(node, o.ancestors)]
    if o.root and sum(above.label in CLAUSES for above in [node, *node.above]) > 1:
        parts.append("nested")
    if o.conj and is_coordination(node.parent):
        parts.append("conj")
    return [*parts, "|"]


def child_parts(child: Node, o: Any) -> list[str]:
    is_head = child is head_child(child.parent, TABLES[o.heads])
    star = ["*"] if is_head and o.mark_head else []
    if word_shown(child, o.words):
        return [*star, *with_word(child, True)]
    shown = {"none": [], "pos": [":", head(child, o.heads).label], "word": [":", head(child, o.heads).word]}
    return [*star, child.label, *shown[o.head if is_head else o.nonhead]]


def rule(tree: Node, o: Any) -> Fired:
    for node in tree.phrases:
        yield [*context(node, o), "→", *(part for child in node.children for part in child_parts(child, o))]


def ngram(tree: Node, o: Any) -> Fired:
    for node in tree.phrases:
        heads = node.children.index(head_child(node, TABLES[o.heads]))
        padded = [END, *range(len(node.children)), END]
        for i in range(len(padded) - o.n + 1):
            window = padded[i : i + o.n]
            places = [place for place in window if place != END]
            if places:
                side = "*" if heads in places else "<" if max(places) < heads else ">"
                parts = ([END] if at == END else child_parts(node.children[at], o) for at in window)
                yield [*context(node, o), *chain.from_iterable(parts), side]


def word(tree: Node, o: Any) -> Fired:
    for node in tree.words:
        yield [node.word, node.label, *ancestors_of(node, o.k - 1)]


def wproj(tree: Node, o: Any) -> Fired:
    for node in tree.words:
        top = maximal_projection(node, o.heads)
        yield [node.word, node.label, "|", top.label, *ancestors_of(top, o.k)]


def length_bin(length: int) -> str:
    return "len=5+" if length >= 5 else "len=4" if length >= 3 else f"len={length}"


def heavy(tree: Node, _o: Any) -> Fired:
    for node in tree.phrases:
        follows = END
        if node.end < tree.end:
            tag = tree.words[node.end].label
            follows = tag if tag in PUNCTUATION | CONJUNCTIONS else "free"
        yield [node.label, length_bin(node.length), length_bin(tree.end - node.end), follows]


def edges(tree: Node, o: Any) -> Fired:
    shown = [node.word if o.kind == "WordEdges" else node.label for node in tree.words]
    shown = [END, END, *shown, END, END]
    for node in tree.phrases:
        left, right = node.start + 2, node.end + 2
        bins = [length_bin(node.length)] if o.binned else []
        around_left, around_right = shown[left - o.lp : left + o.ls], shown[right - o.rp : right + o.rs]
        yield [node.label, *bins, "|", *around_left, "|", *around_right]


def neighbours(tree: Node, o: Any) -> Fired:
    tags = [END, END, *(node.label for node in tree.words), END, END]
    for node in tree.phrases:
        before, after = tags[node.start + 2 - o.l : node.start + 2], tags[node.end + 2 : node.end + 2 + o.r]
        yield [node.label, length_bin(node.length), "|", *before, "|", *after]


def ngram_tree(tree: Node, o: Any) -> Fired:
    def fragment(node: Node, first: int) -> list[str]:
        if not node.children:
            return with_word(node, word_shown(node, o.words))
        kept = [child for child in node.children if child.end > first and child.start < first + o.n]
        return [node.label, "(", *(part for child in kept for part in fragment(child, first)), ")"]

    for first in range(tree.end - o.n + 1):
        smallest = [node for node in tree.below if node.start <= first and first + o.n <= node.end][-1]
        parts = fragment(smallest, first)
        while parts[-1] == ")":  # what is open at the end is left open
            parts.pop()
        yield parts


def head_tree(tree: Node, o: Any) -> Fired:
    for node in tree.words:
        top = maximal_projection(node, o.heads)
        parts = [top.label, *ancestors_of(top, o.ancestors)]
        while top is not node:
            chosen = head_child(top, TABLES[o.heads])
            parts.append("→")
            for child in top.children:
                parts += ["*", child.label] if child is chosen else [child.label]
            top = chosen
        yield parts + (["/", node.word] if word_shown(node, o.words) else [])


def governed(node: Node, kind: str) -> list[Node]:
    """Children whose heads depend on the head of ``node``: not the head, and no conjuncts."""
    equals = conjuncts(node) if is_coordination(node) else []
    return [c for c in node.children if c is not head_child(node, TABLES[kind]) and c not in equals]


def carriers(node: Node, kind: str) -> list[Node]:
    """The node and all nodes down to its head words, of which a coordination has one a conjunct."""
    if not node.children:
        return [node]
    heads = conjuncts(node) if is_coordination(node) else [head_child(node, TABLES[kind])]
    return [node, *(below for child in heads for below in carriers(child, kind))]


def heads(tree: Node, o: Any) -> Fired:
    def pairs(node: Node) -> list[tuple[Node, Node]]:
        """(dependent, governor) of the words that ``node`` joins."""
        return [
            (below, head(node, o.heads))
            for child in governed(node, o.heads)
            for below in carriers(child, o.heads)
            if not below.children
        ]

    for node in tree.phrases:
        chains = [list(pair) for pair in pairs(node)]
        if o.n == 3:
            chains = [
                [*pair, head(node, o.heads)]
                for child in governed(node, o.heads)
                for below in carriers(child, o.heads)
                for pair in pairs(below)
            ]
        for dependent, *governors in chains:
            parts = with_word(dependent, o.dependent == "word")
            for governor in governors:
                parts += ["<", *with_word(governor, o.governor == "word")]
            yield parts


def lex_fun_heads(tree: Node, _o: Any) -> Fired:
    for node in tree.phrases:
        yield [head(node, "semantic").label, head(node, "syntactic").word]


def syn_sem_heads(tree: Node, o: Any) -> Fired:
    for node in tree.phrases:
        semantic, syntactic = head(node, "semantic"), head(node, "syntactic")
        yield [
            node.label,
            semantic.word if o.semantic == "word" else semantic.label,
            syntactic.word if o.syntactic == "word" else syntactic.label,
        ]


def subj_verb_agr(tree: Node, _o: Any) -> Fired:
    for node in tree.phrases:
        for i, verb in enumerate(node.children):
            subjects = [child for child in node.children[:i] if child.label in NOMINALS]
            if node.label in CLAUSES and verb.label in VERBALS and subjects:
                yield [head(subjects[-1], "semantic").label, head(verb, "syntactic").label]
                break


def same(a: Node, b: Node, depth: int, ignore_preterminals: bool) -> bool:
    """Do two trees agree in their upper ``depth`` levels?"""
    if a.label != b.label and not (ignore_preterminals and not a.children and not b.children):
        return False
    if depth == 1:
        return True
    pairs = zip(a.children, b.children, strict=False)
    return len(a.children) == len(b.children) and all(same(x, y, depth - 1, ignore_preterminals) for x, y in pairs)


def adjacent_conjuncts(tree: Node) -> Iterator[tuple[Node, Node, bool]]:
    for node in tree.phrases:
        if is_coordination(node):
            of_node = conjuncts(node)
            for left, right in pairwise(of_node):
                yield left, right, right is of_node[-1]


def co_par(tree: Node, o: Any) -> Fired:
    for left, right, _ in adjacent_conjuncts(tree):
        for depth in range(1, o.depths + 1):
            yield [str(depth), "same" if same(left, right, depth, o.ignore_preterminals) else "different"]


def co_len_par(tree: Node, o: Any) -> Fired:
    for left, right, last in adjacent_conjuncts(tree):
        longer = max(-o.most, min(o.most, right.length - left.length))
        yield [str(longer), "last" if last else "inner"]


COUNTED: dict[str, Callable[[Node, Any], Fired]] = {
    "Rule": rule,
    "NGram": ngram,
    "Word": word,
    "WProj": wproj,
    "Heavy": heavy,
    "Edges": edges,
    "WordEdges": edges,
    "Neighbours": neighbours,
    "NGramTree": ngram_tree,
    "HeadTree": head_tree,
    "Heads": heads,
    "LexFunHeads": lex_fun_heads,
    "SynSemHeads": syn_sem_heads,
    "SubjVerbAgr": subj_verb_agr,
    "CoPar": co_par,
    "CoLenPar": co_len_par,
}


# Templates with values of their own.


def right_branch(tree: Node) -> dict[str, float]:
    target = [node for node in tree.words if node.label not in PUNCTUATION][-1:] or tree.words[:1]
    on = len(target[0].above)
    return {"on": on, "off": len(tree.phrases) - on}


def branch_length(tree: Node, side: str) -> dict[str, float]:
    phrases = Counter(getattr(node, side) for node in tree.phrases)
    return {"": sum(math.log(1 + phrases[getattr(node, side)]) for node in tree.words)}


def log_cond_p(base: Sequence[float], o: Any) -> list[dict[str, float]]:
    norm = max(base) if o.norm == "best" else max(base) + math.log(sum(math.exp(b - max(base)) for b in base))
    if o.bin == 0:
        return [{"": b - norm} for b in base]
    return [{str(min(64, int((norm - b) * 10 / o.bin))): 1.0} for b in base]


def fire(template: Template, trees: Sequence[Node], base: Sequence[float]) -> list[dict[str, float]]:
    """The features of one template in every tree, by name."""
    found: list[dict[str, float]]
    if template.kind == "Dense":
        found = [{} for _ in trees]  # there are no other scores
    elif template.kind == "LogCondP":
        found = log_cond_p(base, template)
    elif template.kind == "RightBranch":
        found = [right_branch(tree) for tree in trees]
    elif template.kind in ("LeftBranchLength", "RightBranchLength"):
        side = "start" if template.kind == "LeftBranchLength" else "end"
        found = [branch_length(tree, side) for tree in trees]
    else:
        found = [dict(Counter(map(" ".join, COUNTED[template.kind](tree, template)))) for tree in trees]
    return [{f"{template.name}|{text}": float(value) for text, value in features.items()} for features in found]


def reference_features(
    templates: Sequence[Template], trees: Sequence[nltk.Tree], base: Sequence[float]
) -> list[dict[str, float]]:
    """For every candidate of a list: feature name → value, for all templates; nothing is left out but zeros."""
    assert all(dataclasses.is_dataclass(template) for template in templates)
    nodes = [read(tree) for tree in trees]
    every: list[dict[str, float]] = [{} for _ in trees]
    for template in templates:
        for features, more in zip(every, fire(template, nodes, base), strict=True):
            features.update((name, value) for name, value in more.items() if value != 0)
    return every
