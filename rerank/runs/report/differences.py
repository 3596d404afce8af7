"""The candidates of a list next to one another, with what differs from its reference marked: trees, or texts.

What base or chosen candidate have and the reference has not gets ×; what the reference has and they lack gets −B where
the base lacks it, −C where the chosen one does. Of trees these are the brackets that PARSEVAL counts with its default
settings: all nonterminals except roots (TOP, S1, ROOT, unlabelled) and those without a word that counts, function tags
cut, ADVP and PRT the same. Of texts they are words, by the matching blocks of ``difflib``; the nearest of several
references counts, the one that takes the fewest inserted or deleted words.

A tree is nested lists, which the style of the page lays out: it is read aloud and copied like a text, and its width is
that of the words in the reader's font.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from markupsafe import Markup

from rerank.data.symbols import SymbolTable
from rerank.data.trees import parse_brackets
from rerank.metrics.parseval import EMPTY_TAG, Parseval, cut_label, equivalents
from rerank.runs.report.page import markup

MAX_WORDS = 2_000  # of a text
WRONG = "×"
KEY = markup(
    '<p class="note"><span class="wrong">A<sup>×</sup></span> is not in the reference; <span class="missed">A<sup>−BC'
    "</sup></span> of the reference is missed by base (B), by the chosen candidate (C), or by both.</p>"
)
_DELETED = frozenset(Parseval.delete)  # labels that are not brackets, tags whose words do not count
_EQUAL = equivalents(Parseval.equal_labels)


def marked(text: str, mark: str = "") -> Markup:
    """``text`` with its mark, if it has one."""
    kind = "wrong" if mark == WRONG else "missed"
    return markup('<span class="{}">{}<sup>{}</sup></span>', kind, text, mark) if mark else markup("{}", text)


class Node(NamedTuple):
    """A node of a tree; a preterminal and its word are one."""

    label: str
    word: str | None  # None for nonterminals
    parent: int
    start: int  # of the words of the sentence: the first of the node, and one past the last
    end: int


Tree = dict[int, Node]  # by number, in preorder


def compare_trees(gold: str, base: str, chosen: str, list_id: str | None = None) -> Markup:
    """The trees of one list, drawn; base and chosen are one drawing if they are equal."""
    trees = read_trees([gold, base, chosen], list_id)
    lacks, more = zip(*(differences(trees[0], tree) for tree in trees[1:]), strict=True)
    marks: list[dict[int, str]] = [{}, *(dict.fromkeys(nodes, WRONG) for nodes in more)]
    for letter, nodes in zip("BC", lacks, strict=True):
        marks[0] |= {node: marks[0].get(node, "−") + letter for node in sorted(nodes)}
    titles = ["Gold", "Base and chosen"] if base == chosen else ["Gold", "Base", "Chosen"]
    figures = [
        markup(
            '<figure><figcaption>{}</figcaption><div class="scroll" tabindex="0" role="region" aria-label="{} tree">'
            '<ul class="tree">{}</ul></div></figure>',
            *(title, title, draw(tree, of_tree)),
        )
        for title, tree, of_tree in zip(titles, trees, marks, strict=False)
    ]
    return markup('<div class="trees">{}</div>', Markup().join(figures))


def read_trees(texts: Sequence[str], list_id: str | None = None) -> list[Tree]:
    """Bracketed trees, one per text. Empty nodes (-NONE-) are removed, with ancestors left empty, unless nothing would
    be left."""
    symbols = SymbolTable()
    raw = [text.encode("utf-8", "surrogateescape") for text in texts]
    trees = parse_brackets(raw, symbols, path="the report's examples", list_id=list_id)
    made = list[Tree]()
    for first, last in pairwise(trees.first.tolist()):
        labels = [symbols.text(label) for label in trees.label[first:last].tolist()]
        words = [symbols.text(word) if word >= 0 else None for word in trees.word[first:last].tolist()]
        full = [label != EMPTY_TAG for label, word in zip(labels, words, strict=True) if word is not None]
        before = [0, *accumulate(full)]  # words of the sentence to the left of every leaf
        spans = [[before[leaf] for leaf in ends[first:last].tolist()] for ends in (trees.start, trees.end)]
        parents = [max(parent - first, -1) for parent in trees.parent[first:last].tolist()]
        nodes = enumerate(map(Node, labels, words, parents, *spans))
        made.append({k: node for k, node in nodes if node.start < node.end or not any(full)})
    return made


def differences(gold: Tree, tree: Tree) -> tuple[set[int], set[int]]:
    """(nodes of ``gold`` that ``tree`` misses, nodes of ``tree`` that are not in ``gold``).

    Brackets are matched one to one; among equal brackets in one tree the upper ones are matched first. Words whose gold
    tag is punctuation do not count; where the trees have different numbers of words, each tree's own tags decide.
    """
    by_gold, by_tree = (
        [node.label not in _DELETED for node in t.values() if node.word is not None] for t in (gold, tree)
    )
    in_gold = brackets_of(gold, by_gold)
    in_tree = brackets_of(tree, by_gold if len(by_gold) == len(by_tree) else by_tree)
    return _unmatched(in_gold, in_tree), _unmatched(in_tree, in_gold)


def brackets_of(tree: Tree, counts: Sequence[bool]) -> dict[int, tuple[str, int, int]]:
    """Node → label and span over the words that count (bool, by word)."""
    before, brackets = [0, *accumulate(counts)], {}
    for k, node in tree.items():
        label, start, end = cut_label(node.label), before[node.start], before[node.end]
        if node.word is None and label not in _DELETED and end > start:
            brackets[k] = _EQUAL.get(label, label), start, end
    return brackets


def _unmatched(brackets: dict[int, tuple[str, int, int]], others: dict[int, tuple[str, int, int]]) -> set[int]:
    left, unmatched = Counter(others.values()), set()
    for k, bracket in brackets.items():
        left[bracket] -= 1
        if left[bracket] < 0:
            unmatched.add(k)
    return unmatched


def draw(tree: Tree, marks: Mapping[int, str]) -> Markup:
    """``tree`` as items of a list; ``marks``: by node."""
    below: dict[int, Markup] = defaultdict(Markup)  # the items of a node's children
    for k, node in reversed(tree.items()):
        if node.word is None:
            item = markup("<li>{}<ul>{}</ul></li>", marked(node.label, marks.get(k, "")), below[k])
        else:
            item = markup('<li class="leaf"><small>{}</small> {}</li>', node.label, node.word)
        below[node.parent] = item + below[node.parent]
    return below[-1]


def compare_texts(source: str | None, references: Sequence[str], base: str, chosen: str) -> Markup:
    """The texts of one list from source to chosen; base and chosen are one if they are equal."""
    golds = [_words(text) for text in references]
    missed = [[""] * len(gold) for gold in golds]
    rows = list[tuple[str, Markup]]()
    for letter, title, text in (("B", "Base", base), ("C", "Chosen", chosen)):
        words = _words(text)
        marks = [WRONG if golds else ""] * len(words)
        blocks = [SequenceMatcher(None, words, gold, autojunk=False).get_matching_blocks() for gold in golds]
        distances = [len(gold) - 2 * sum(block.size for block in own) for gold, own in zip(golds, blocks, strict=True)]
        if golds:
            k = distances.index(min(distances))
            kept = {block.b + i for block in blocks[k] for i in range(block.size)}
            missed[k] = [mark + letter * (j not in kept) for j, mark in enumerate(missed[k])]
            for block in blocks[k]:
                marks[block.a : block.a + block.size] = [""] * block.size
        rows.append((title, _join(words, marks)))
    if base == chosen:
        rows = [("Base and chosen", rows[0][1])]
    for k, (gold, letters) in reversed(list(enumerate(zip(golds, missed, strict=True), start=1))):
        title = "Reference" if len(golds) == 1 else f"Reference {k}"
        rows.insert(0, (title, _join(gold, [letter and f"−{letter}" for letter in letters])))
    if source is not None:
        rows.insert(0, ("Source", markup("{}", source)))
    nothing = markup('<span class="aside">(no words)</span>')
    items = (markup('<div><dt>{}</dt><dd dir="auto">{}</dd></div>', title, text or nothing) for title, text in rows)
    return markup('<dl class="words">{}</dl>', Markup().join(items))


def _words(text: str) -> list[str]:
    words = text.split()
    return words if len(words) <= MAX_WORDS else [*words[:MAX_WORDS], "…"]


def _join(words: Sequence[str], marks: Sequence[str]) -> Markup:
    """The words, those next to each other with one mark together."""
    runs = groupby(zip(words, marks, strict=True), key=lambda pair: pair[1])
    return Markup(" ").join(marked(" ".join(word for word, _ in run), mark) for mark, run in runs)
