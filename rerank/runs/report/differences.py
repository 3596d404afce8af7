"""The candidates of a list next to one another, with what differs from its reference marked: trees, or texts.

What base or chosen candidate have and the reference has not gets ×; what the reference has and they lack gets −B where
the base lacks it, −C where the chosen one does. Of trees these are the brackets that PARSEVAL counts with its default
settings: all nonterminals except roots (TOP, S1, ROOT, unlabelled) and those without a word that counts, function tags
cut, ADVP and PRT the same. Of texts they are words, by the matching blocks of ``difflib``; the nearest of several
references counts, the one that takes the fewest inserted or deleted words.

A tree is nested lists, which the style of the page lays out: it is read aloud and copied like a text, and its width is
that of the words in the reader's font.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby

import numpy as np
from markupsafe import Markup

from rerank.data.symbols import SymbolTable
from rerank.data.trees import Trees, leaves, parse_brackets
from rerank.metrics.parseval import EMPTY_TAG, Parseval, cut_label, equivalents
from rerank.runs.report.page import markup

MAX_WORDS = 2_000  # of a text
WRONG = "×"
KEY = markup(
    '<p class="note"><span class="wrong">A<sup>×</sup></span> is not in the reference; <span class="missed">A<sup>−BC'
    "</sup></span> of the reference is missed by base (B), by the chosen candidate (C), or by both.</p>"
)
_DELETE = frozenset(Parseval.delete)  # labels that are not brackets, tags whose words do not count
_EQUAL = equivalents(Parseval.equal_labels)
Bracket = tuple[str, int, int]  # the label, and the span over the words that count


def mark_text(text: str, mark: str = "") -> Markup:
    """``text`` with its mark, if it has one."""
    kind = "wrong" if mark == WRONG else "missed"
    return markup('<span class="{}">{}<sup>{}</sup></span>', kind, text, mark) if mark else markup("{}", text)


def compare_trees(gold: str, base: str, choice: str, list_id: str | None = None) -> Markup:
    """The trees of one list, drawn; base and chosen are one drawing if they are equal."""
    symbols, marks = SymbolTable(), dict[int, str]()
    raw = [text.encode("utf-8", "surrogateescape") for text in (gold, base, choice)]
    trees = parse_brackets(raw, symbols, path="the report's examples", list_id=list_id)
    for t, letter in enumerate("BC", start=1):
        misses, errors = differences(trees, symbols, t)
        marks |= {k: marks.get(k, "−") + letter for k in misses} | dict.fromkeys(errors, WRONG)
    titles = ["Gold", "Base and chosen"] if base == choice else ["Gold", "Base", "Chosen"]
    figures = [
        markup(
            '<figure><figcaption>{}</figcaption><div class="scroll" tabindex="0" role="region" aria-label="{} tree">'
            '<ul class="tree">{}</ul></div></figure>',
            *(title, title, draw(trees, symbols, t, marks)),
        )
        for t, title in enumerate(titles)
    ]
    return markup('<div class="trees">{}</div>', Markup().join(figures))


def differences(trees: Trees, symbols: SymbolTable, t: int) -> tuple[list[int], list[int]]:
    """(nodes of tree 0, the reference, that tree ``t`` misses; nodes of tree ``t`` that the reference has not).

    Brackets are matched one to one; among equal brackets in one tree the upper ones are matched first. Words whose gold
    tag is punctuation do not count; where the trees have different numbers of words, each tree's own tags decide.
    """
    gold, own = (leaves(trees, symbols.intern(EMPTY_TAG), of) for of in (0, t))
    mask = np.isin(trees.label, [symbols.intern(tag) for tag in _DELETE])
    in_gold = brackets_of(trees, symbols, 0, gold[~mask[gold]])
    in_tree = brackets_of(trees, symbols, t, own[~mask[gold if gold.size == own.size else own]])
    return _surplus(in_gold, in_tree), _surplus(in_tree, in_gold)


def brackets_of(trees: Trees, symbols: SymbolTable, t: int, words: np.ndarray) -> dict[int, Bracket]:
    """The brackets of tree ``t`` by node, over ``words``, the nodes of those that count (int64, ascending)."""
    nodes, brackets = np.arange(*trees.first[t : t + 2]), dict[int, Bracket]()
    nodes = nodes[trees.word[nodes] < 0]
    spans = np.searchsorted(words, [nodes, nodes + trees.size[nodes]]).T.tolist()
    for k, symbol, (start, end) in zip(nodes.tolist(), trees.label[nodes].tolist(), spans, strict=True):
        label = cut_label(symbols.text(symbol))
        if label not in _DELETE and end > start:
            brackets[k] = _EQUAL.get(label, label), start, end
    return brackets


def _surplus(brackets: Mapping[int, Bracket], others: Mapping[int, Bracket]) -> list[int]:
    counts, nodes = Counter(others.values()), list[int]()
    for k, bracket in brackets.items():
        counts[bracket] -= 1
        if counts[bracket] < 0:
            nodes.append(k)
    return nodes


def draw(trees: Trees, symbols: SymbolTable, t: int, marks: Mapping[int, str]) -> Markup:
    """Tree ``t`` as items of a list, without traces unless it has no words; ``marks``: by node."""
    words = {*leaves(trees, symbols.intern(EMPTY_TAG), t).tolist()} or {*leaves(trees, -1, t).tolist()}
    below = dict[int, Markup]()  # the items of a node's children
    for k in reversed(range(*trees.first[t : t + 2].tolist())):
        label, parent = symbols.text(int(trees.label[k])), int(trees.parent[k])
        if k in words:
            item = markup('<li class="leaf"><small>{}</small> {}</li>', label, symbols.text(int(trees.word[k])))
        elif k in below:
            item = markup("<li>{}<ul>{}</ul></li>", mark_text(label, marks.get(k, "")), below[k])
        else:
            continue
        below[parent] = item + below.get(parent, Markup())
    return below[-1]


def compare_texts(source: str | None, references: Sequence[str], base: str, choice: str) -> Markup:
    """The texts of one list from source to chosen; base and chosen are one if they are equal."""
    golds = [_words(text) for text in references]
    misses = [[""] * len(gold) for gold in golds]
    rows = list[tuple[str, Markup]]()
    for letter, title, text in (("B", "Base", base), ("C", "Chosen", choice)):
        words = _words(text)
        marks = [WRONG if golds else ""] * len(words)
        blocks = [SequenceMatcher(None, words, gold, autojunk=False).get_matching_blocks() for gold in golds]
        distances = [len(gold) - 2 * sum(block.size for block in own) for gold, own in zip(golds, blocks, strict=True)]
        if golds:
            k = distances.index(min(distances))
            matches = {block.b + i for block in blocks[k] for i in range(block.size)}
            misses[k] = [mark + letter * (j not in matches) for j, mark in enumerate(misses[k])]
            for block in blocks[k]:
                marks[block.a : block.a + block.size] = [""] * block.size
        rows.append((title, _join(words, marks)))
    if base == choice:
        rows = [("Base and chosen", rows[0][1])]
    for k, (gold, letters) in reversed(list(enumerate(zip(golds, misses, strict=True), start=1))):
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
    return Markup(" ").join(mark_text(" ".join(word for word, _ in run), mark) for mark, run in runs)
