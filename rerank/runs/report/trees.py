"""Trees drawn as inline SVG: a list's gold, base and chosen tree to the same scale.

Words stand on one line with their tags above them. A node is one level above its highest child and in the middle of
its words; its children hang from a bar, and bars and drops of different nodes never cross. Trees of the same words
share the columns of their words, so that they can be compared one below the other.

A bracket that differs from gold is in a dashed box (base and chosen) or a dotted one (gold); the badge in the box says
in letters what the colour and the line say: × is a bracket gold does not have, −B one that base misses, −C one that the
chosen tree misses. Colours come from the page (``--wrong``, ``--missed``, ``--line``).

Differences are those of PARSEVAL: brackets that one tree has and the other lacks.
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from markupsafe import Markup

from rerank.base.encoding import plain
from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval import EMPTY_TAG, Parseval, cut_label, equivalents
from rerank.readers.trees.trees import parse_brackets

_DELETED = frozenset(Parseval.delete)  # labels that are not brackets, tags whose words do not count
_EQUAL = equivalents(Parseval.equal_labels)


class Tree(NamedTuple):
    """One tree in preorder, without empty nodes; a preterminal and its word are one node."""

    labels: list[str]
    words: list[str | None]  # None for nonterminals
    parents: list[int]  # -1 for the root

    @property
    def leaves(self) -> list[int]:
        """The preterminals, from left to right."""
        return [node for node, word in enumerate(self.words) if word is not None]

    @property
    def children(self) -> list[list[int]]:
        """The children of every node, from left to right."""
        children: list[list[int]] = [[] for _ in self.labels]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(node)
        return children

    def spans(self) -> list[tuple[int, int]]:
        """First leaf and one past the last leaf of every node."""
        first, last = [len(self.labels)] * len(self.labels), [0] * len(self.labels)
        for position, leaf in enumerate(self.leaves):
            node = leaf
            while node >= 0:
                first[node], last[node] = min(first[node], position), position + 1
                node = self.parents[node]
        return list(zip(first, last, strict=True))


class Bracket(NamedTuple):
    """A labelled span over the words that count."""

    label: str
    start: int
    end: int


def read_trees(texts: Sequence[str], list_id: str | None = None) -> list[Tree]:
    """Bracketed trees, one per text, for drawing. Empty nodes (-NONE-) are removed, with ancestors left empty."""
    symbols = SymbolTable()
    raw = [text.encode("utf-8", "surrogateescape") for text in texts]
    trees = parse_brackets(raw, symbols, path="the report's examples", list_id=list_id)
    read = []
    for first, last in zip(trees.first[:-1].tolist(), trees.first[1:].tolist(), strict=True):
        labels = [symbols.text(label) for label in trees.label[first:last].tolist()]
        words = [symbols.text(word) if word >= 0 else None for word in trees.word[first:last].tolist()]
        parents = [max(parent - first, -1) for parent in trees.parent[first:last].tolist()]
        read.append(_without_empty(Tree(labels, words, parents)))
    return read


def _without_empty(tree: Tree) -> Tree:
    """``tree`` without -NONE- and nodes above nothing else; unchanged if nothing would be left."""
    kept: set[int] = set()
    for leaf in tree.leaves:
        node = leaf if tree.labels[leaf] != EMPTY_TAG else -1
        while node >= 0 and node not in kept:
            kept.add(node)
            node = tree.parents[node]
    if not kept:
        return tree
    number = {node: new for new, node in enumerate(sorted(kept))}
    return Tree(
        [tree.labels[node] for node in number],
        [tree.words[node] for node in number],
        [number.get(tree.parents[node], -1) for node in number],
    )


def counted_brackets(tree: Tree, words: Sequence[bool]) -> dict[int, Bracket]:
    """Node → bracket, for the nodes that PARSEVAL counts with its default settings.

    These are all nonterminals except roots (TOP, S1, ROOT, unlabelled) and those without a word that counts. Function
    tags are cut; ADVP and PRT are the same. ``words``: which words count.
    """
    before = [0, *accumulate(words)]  # counted words to the left of every position
    brackets = {}
    for node, (first, last) in enumerate(tree.spans()):
        label = cut_label(tree.labels[node])
        if tree.words[node] is None and label not in _DELETED and before[last] > before[first]:
            brackets[node] = Bracket(_EQUAL.get(label, label), before[first], before[last])
    return brackets


def differences(gold: Tree, tree: Tree) -> tuple[frozenset[int], frozenset[int]]:
    """(nodes of ``gold`` that ``tree`` misses, nodes of ``tree`` that are not in ``gold``).

    Brackets are matched one to one; among equal brackets in one tree the upper ones are matched first. Words whose gold
    tag is punctuation do not count; where the trees have different numbers of words, each tree's own tags decide.
    """
    by_gold, by_tree = ([side.labels[leaf] not in _DELETED for leaf in side.leaves] for side in (gold, tree))
    in_gold = counted_brackets(gold, by_gold)
    in_tree = counted_brackets(tree, by_gold if len(by_tree) == len(by_gold) else by_tree)
    return _unmatched(in_gold, in_tree), _unmatched(in_tree, in_gold)


def _unmatched(brackets: dict[int, Bracket], others: dict[int, Bracket]) -> frozenset[int]:
    left = Counter(others.values())
    unmatched = set()
    for node, bracket in brackets.items():
        if left[bracket]:
            left[bracket] -= 1
        else:
            unmatched.add(node)
    return frozenset(unmatched)


EM = 13.0  # px; size of labels and words
LEVEL = 33.0  # px from one level to the next
GAP = 10.0  # px between columns
HALF = 9.0  # px from a label's middle to where lines may begin
MARGIN = 8.0
CORNER = 4.0
BADGE = 0.7  # of EM
SMALLEST = 0.8  # how far a tree may shrink to fit a page before it scrolls

# Widths of Helvetica in thousandths of an em; what is not listed is as wide as a digit.
_WIDTHS = {
    letter: width
    for letters, width in {
        "ijl'|": 230,
        "ft.,:;!/\\ I[]()-`": 300,
        "r": 333,
        'ckJsvxyz*"': 500,
        "FTLZ+=<>~": 610,
        "ABEKPSVXY&": 670,
        "CDHNRUw": 722,
        "GOQ": 778,
        "Mm%": 860,
        "W@": 1000,
    }.items()
    for letter in letters
}


class TreeDrawing(NamedTuple):
    """A drawn tree: its heading, its role (gold, base, chosen), and the SVG element."""

    role: str
    title: str
    svg: Markup


def draw_example(gold: str, base: str, chosen: str, list_id: str | None = None) -> list[TreeDrawing]:
    """The trees of one list, side by side or one below the other; base and chosen are one drawing if they are equal."""
    trees = read_trees([gold, base, chosen], list_id)
    same = trees[1] == trees[2]
    missed_base, wrong_base = differences(trees[0], trees[1])
    missed_chosen, wrong_chosen = differences(trees[0], trees[2])
    every = missed_base | missed_chosen
    missed = {node: "−" + "B" * (node in missed_base) + "C" * (node in missed_chosen) for node in every}
    marks = [missed, dict.fromkeys(wrong_base, "×"), dict.fromkeys(wrong_chosen, "×")]
    titles = {"gold": "Gold"} | ({"both": "Base and chosen"} if same else {"base": "Base", "chosen": "Chosen"})
    trees = [
        tree._replace(labels=[*map(plain, tree.labels)], words=[word and plain(word) for word in tree.words])
        for tree in trees[: len(titles)]
    ]
    columns = [_widths(tree, mark) for tree, mark in zip(trees, marks, strict=False)]
    if len({*map(len, columns)}) == 1:  # as many words: they stand above each other
        columns = [[*map(max, zip(*columns, strict=True))]] * len(trees)
    return [
        TreeDrawing(role, title, Markup(draw(tree, mark, width, f"{title} tree")))
        for (role, title), tree, mark, width in zip(titles.items(), trees, marks, columns, strict=False)
    ]


def draw(tree: Tree, marks: Mapping[int, str], columns: Sequence[float], title: str) -> str:
    """``tree`` as an SVG element. ``marks``: node → badge; ``columns``: width of every word's column in px."""
    children, levels, left = tree.children, _levels(tree), [*accumulate(columns, initial=MARGIN)]
    height = max(levels)
    x = [(left[first] + left[last]) / 2 for first, last in tree.spans()]
    y = [MARGIN + HALF + (height - level) * LEVEL for level in levels]
    full_width, full_height = 2 * MARGIN + sum(columns), 2 * MARGIN + 2 * HALF + height * LEVEL + 1.6 * EM
    lines, nodes = [], []
    for node, below in enumerate(children):
        if below:
            lines.append(_edge((x[node], y[node] + HALF), [(x[child], y[child] - HALF) for child in below]))
        nodes.append(_node(tree, node, x[node], y[node], marks.get(node)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tree" role="img" aria-label={quoteattr(title)} '
        f'style="min-width:{SMALLEST * full_width:.0f}px;max-width:{full_width:.0f}px" '
        f'viewBox="0 0 {full_width:.1f} {full_height:.1f}">'
        f'<path class="edge" d="{" ".join(lines)}"/>{"".join(nodes)}</svg>'
    )


def text_width(text: str) -> float:
    """The approximate width of ``text`` in px, rather too large than too small."""
    thousandths = 0
    for letter in text:
        if unicodedata.combining(letter) or unicodedata.category(letter) == "Cf":
            continue
        wide = unicodedata.east_asian_width(letter) in "WF"
        thousandths += 1020 if wide else _WIDTHS.get(letter, 722 if letter.isupper() else 565)
    return EM * thousandths / 1000


def _node_width(tree: Tree, node: int, marks: Mapping[int, str]) -> float:
    """The width that a nonterminal's box has, or would have."""
    return text_width(tree.labels[node]) + 0.6 * EM + BADGE * text_width(marks.get(node, ""))


def _levels(tree: Tree) -> list[int]:
    """0 for preterminals; one more than the highest child for the others."""
    level = [0] * len(tree.labels)
    for node in range(len(tree.labels) - 1, 0, -1):  # children come after their parents
        parent = tree.parents[node]
        level[parent] = max(level[parent], level[node] + 1)
    return level


def _widths(tree: Tree, marks: Mapping[int, str]) -> list[float]:
    """Columns wide enough for words, tags, and the labels above them."""
    columns = [GAP + max(text_width(tree.words[leaf] or ""), text_width(tree.labels[leaf])) for leaf in tree.leaves]
    spans = tree.spans()
    for node in sorted(range(len(spans)), key=lambda node: spans[node][1] - spans[node][0]):
        if tree.words[node] is None:
            covered = range(*spans[node])
            lacking = _node_width(tree, node, marks) + 4 - sum(columns[position] for position in covered)
            for position in covered:
                columns[position] += max(0.0, lacking) / len(covered)
    return columns


def _edge(parent: tuple[float, float], below: Sequence[tuple[float, float]]) -> str:
    """A stem from ``parent`` to a bar half-way down, and a drop from the bar to every child."""
    x, y = parent
    if len(below) == 1:
        return f"M{x:.1f} {y:.1f}V{below[0][1]:.1f}"
    bar, (first, first_y), (last, last_y) = y + (LEVEL - 2 * HALF) / 2, below[0], below[-1]
    parts = [
        f"M{x:.1f} {y:.1f}V{bar:.1f}",
        f"M{first:.1f} {first_y:.1f}V{bar + CORNER:.1f}Q{first:.1f} {bar:.1f} {first + CORNER:.1f} {bar:.1f}",
        f"H{last - CORNER:.1f}Q{last:.1f} {bar:.1f} {last:.1f} {bar + CORNER:.1f}V{last_y:.1f}",
    ]
    parts += [f"M{middle:.1f} {bar:.1f}V{top:.1f}" for middle, top in below[1:-1]]
    return "".join(parts)


def _node(tree: Tree, node: int, x: float, y: float, badge: str | None) -> str:
    label, word = tree.labels[node], tree.words[node]
    if word is not None:
        return (
            f'<text class="tag" x="{x:.1f}" y="{y + 0.35 * EM:.1f}">{escape(label)}</text>'
            f'<text class="word" x="{x:.1f}" y="{y + 1.75 * EM:.1f}">{escape(word)}</text>'
        )
    if badge is None:
        return f'<text class="label" x="{x:.1f}" y="{y + 0.35 * EM:.1f}">{escape(label)}</text>'
    width = _node_width(tree, node, {node: badge})
    kind = "wrong" if badge == "×" else "missed"
    return (
        f'<g class="{kind}"><rect x="{x - width / 2:.1f}" y="{y - HALF:.1f}" width="{width:.1f}" '
        f'height="{2 * HALF:.1f}" rx="4"/>'
        f'<text class="label" x="{x:.1f}" y="{y + 0.35 * EM:.1f}">{escape(label)}'
        f'<tspan class="badge" dx="2" dy="-3">{badge}</tspan></text></g>'
    )
