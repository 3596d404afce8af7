"""PARSEVAL's counts for all candidates of many lists: words kept, brackets matched and crossed, tags.

Positions are counted in *kept* words. ``edge[leaf]`` is the number of kept words before a leaf, so a node's span is
edge[start]..edge[end], and a node is empty if the two are equal.
"""

from typing import NamedTuple

import numpy as np

from rerank.data.symbols import mix
from rerank.data.trees import Trees
from rerank.kernels.compile import kernel

# Flags of a symbol: as a tag of a word, as the label of a bracket, as a word.
EMPTY, DELETED_TAG, DELETED_BRACKET, NO_LENGTH, QUOTE_TAG, QUOTE_WORD = 1, 2, 4, 8, 16, 32
# Who decides which words are punctuation.
REFERENCE, OWN, EVALB = 0, 1, 2
# Columns of a candidate's row and of a reference's row.
MATCHED, TEST, CROSSING, TAGS, EXACT, NO_CROSSING, FEW_CROSSING, REFUSED, SKIPPED, GOLD_SHIFT, WORD_SHIFT = range(11)
GOLD, WORDS, LENGTH, SENTENCES, UNPARSED = range(5)


class BracketLabels(NamedTuple):
    """The meaning of every symbol id to PARSEVAL; equal numbers are equal labels, tags or words."""

    flags: np.ndarray  # uint8 [symbols]
    bracket: np.ndarray  # int32 [symbols]: as the label of a bracket, without function tags
    tag: np.ndarray  # int32 [symbols]: as the tag of a word
    word: np.ndarray  # int32 [symbols]: as a word


class Sentence(NamedTuple):
    """Working space: the words (without empty nodes) and the brackets of one tree."""

    node: np.ndarray  # int64: the node of every word
    keep: np.ndarray  # bool: whether the word counts
    edge: np.ndarray  # int32: number of kept words before every leaf
    label: np.ndarray  # int32: the label of every bracket
    start: np.ndarray  # int32: its first kept word
    end: np.ndarray  # int32: one past its last


class GoldIndex(NamedTuple):
    """Working space: the reference's brackets by hash, and its smallest bracket around every gap between words."""

    slot: np.ndarray  # int32: hash slot → bracket, -1 free
    times: np.ndarray  # int32: how often a bracket occurs (at the first of equal ones)
    rest: np.ndarray  # int32: how many of these are not matched yet
    outer_start: np.ndarray  # int32: gap p (before word p) → start of the smallest bracket with start < p < end, or -1
    outer_end: np.ndarray  # int32: its end


class Workspace(NamedTuple):
    """The whole working space of ``parseval_rows``."""

    gold: Sentence
    test: Sentence
    by_hash: GoldIndex


def workspace(gold: Trees, candidates: Trees) -> Workspace:
    """Working space large enough for the largest of these trees."""
    n = max(int(np.diff(trees.first).max(initial=1)) for trees in (gold, candidates))
    gold_words, test_words = (
        Sentence(np.empty(n, np.int64), np.empty(n, np.bool_), *(np.empty(n + 1, np.int32) for _ in range(4)))
        for _ in range(2)
    )
    slots = np.empty(2 << n.bit_length(), np.int32)
    return Workspace(gold_words, test_words, GoldIndex(slots, *(np.empty(n + 1, np.int32) for _ in range(4))))


@kernel
def read_words(trees: Trees, t: int, table: BracketLabels, out: Sentence) -> int:
    """Find the words of tree t and keep those whose own tag is not deleted; returns the number of words."""
    words = 0
    for node in range(trees.first[t], trees.first[t + 1]):
        if trees.word[node] >= 0:
            flags = table.flags[trees.label[node]]
            if not flags & EMPTY:
                out.node[words] = node
                out.keep[words] = not flags & DELETED_TAG
                words += 1
    return words


@kernel
def count_kept(trees: Trees, t: int, table: BracketLabels, out: Sentence) -> int:
    """Fill ``edge`` from ``keep``; returns the number of kept words."""
    size, word, leaf = 0, 0, 0
    for node in range(trees.first[t], trees.first[t + 1]):
        if trees.word[node] >= 0:
            out.edge[leaf] = size
            leaf += 1
            if not table.flags[trees.label[node]] & EMPTY:
                size += out.keep[word]
                word += 1
    out.edge[leaf] = size
    return size


@kernel
def read_brackets(trees: Trees, t: int, table: BracketLabels, out: Sentence) -> int:
    """List the brackets of tree t in preorder: nonterminals with a kept word and a label that is not deleted."""
    brackets = 0
    for node in range(trees.first[t], trees.first[t + 1]):
        if trees.word[node] < 0 and not table.flags[trees.label[node]] & DELETED_BRACKET:
            start, end = out.edge[trees.start[node]], out.edge[trees.end[node]]
            if start < end:
                out.label[brackets] = table.bracket[trees.label[node]]
                out.start[brackets] = start
                out.end[brackets] = end
                brackets += 1
    return brackets


@kernel
def _find(slot: np.ndarray, mask: int, gold: Sentence, label: int, start: int, end: int) -> int:
    """Slot of the gold bracket (label, start, end), or the free slot where it belongs."""
    h = mix((np.uint64(label) << np.uint64(42)) ^ (np.uint64(start) << np.uint64(21)) ^ np.uint64(end))
    at = np.int64(h & np.uint64(mask))
    while slot[at] >= 0:
        b = slot[at]
        if gold.start[b] == start and gold.end[b] == end and gold.label[b] == label:
            break
        at = (at + 1) & mask
    return int(at)


@kernel
def index_gold(gold: Sentence, brackets: int, words: int, index: GoldIndex) -> int:
    """Prepare the reference's brackets for ``compare``; returns the mask of the hash table."""
    capacity = 2
    while capacity < 2 * brackets:
        capacity *= 2
    index.slot[:capacity] = -1
    index.outer_start[: words + 1] = -1
    for b in range(brackets):
        at = _find(index.slot, capacity - 1, gold, gold.label[b], gold.start[b], gold.end[b])
        if index.slot[at] < 0:
            index.slot[at] = b
            index.times[b] = 0
        index.times[index.slot[at]] += 1
        for gap in range(gold.start[b] + 1, gold.end[b]):  # in preorder, so the smallest bracket is painted last
            index.outer_start[gap] = gold.start[b]
            index.outer_end[gap] = gold.end[b]
    return capacity - 1


@kernel
def compare(
    test: Sentence, brackets: int, gold: Sentence, gold_brackets: int, index: GoldIndex, mask: int
) -> tuple[int, int]:
    """(matched brackets, test brackets that cross a gold bracket).

    Equal brackets match one to one. [s, e) crosses a gold bracket around gap s that ends before e, or one around
    gap e that starts after s; brackets around a gap are nested, so the smallest decides.
    """
    matches, crossing = 0, 0
    for b in range(gold_brackets):
        index.rest[b] = index.times[b]
    for b in range(brackets):
        start, end = test.start[b], test.end[b]
        at = index.slot[_find(index.slot, mask, gold, test.label[b], start, end)]
        if at >= 0 and index.rest[at] > 0:
            index.rest[at] -= 1
            matches += 1
        cut_left = index.outer_start[start] >= 0 and index.outer_end[start] < end
        if cut_left or index.outer_start[end] > start:
            crossing += 1
    return matches, crossing


@kernel
def _keep_quotes(
    gold_trees: Trees, gold: Sentence, trees: Trees, test: Sentence, words: int, table: BracketLabels
) -> bool:
    """Keep, in both trees, quote marks that are deleted by only one tree's tag; returns whether gold changed."""
    change = False
    for k in range(words):
        if gold.keep[k] != test.keep[k]:
            g, t = gold.node[k], test.node[k]
            quote = QUOTE_TAG & table.flags[gold_trees.label[g]] & table.flags[trees.label[t]]
            if quote and QUOTE_WORD & table.flags[gold_trees.word[g]] & table.flags[trees.word[t]]:
                change = change or not gold.keep[k]
                gold.keep[k] = test.keep[k] = True
    return change


@kernel
def _same_words(
    gold_trees: Trees, gold: Sentence, words: int, trees: Trees, test: Sentence, test_words: int, table: BracketLabels,
    kept: bool,
) -> tuple[bool, int]:  # fmt: skip
    """Whether both trees have the same words in the same order, all or those that are ``kept`` alone, and how many of
    the latter have equal tags."""
    k, tags = 0, 0
    for j in range(test_words):
        if kept and not test.keep[j]:
            continue
        while kept and k < words and not gold.keep[k]:
            k += 1
        if k == words:
            return False, 0
        g, t = gold.node[k], test.node[j]
        if table.word[gold_trees.word[g]] != table.word[trees.word[t]]:
            return False, 0
        tags += gold.keep[k] and table.tag[gold_trees.label[g]] == table.tag[trees.label[t]]
        k += 1
    while kept and k < words and not gold.keep[k]:
        k += 1
    return k == words, tags


@kernel
def _prepare_gold(
    trees: Trees, t: int, table: BracketLabels, words: int, gold: Sentence, index: GoldIndex
) -> tuple[int, int, int]:
    """(kept words, brackets, mask of the hash table) of the reference t under the current ``gold.keep``."""
    size = count_kept(trees, t, table, gold)
    brackets = read_brackets(trees, t, table, gold)
    return size, brackets, index_gold(gold, brackets, words, index)


@kernel
def parseval_rows(
    gold_trees: Trees,
    trees: Trees,
    lists: np.ndarray,
    table: BracketLabels,
    mode: int,
    space: Workspace,
    reference: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Fill ``reference`` (float64 [L, 5], zeros) and ``rows`` (float64 [N, 11], zeros), list by list.

    lists: int64 [L, 2], where the candidates of each begin and end among ``trees``; lists may share some.
    A candidate without words is skipped, one with other words than the reference is refused: EVALB's status 2 and 1.
    Neither adds anything to the sums, nor does the reference of such a sentence.
    """
    gold, test, index = space.gold, space.test, space.by_hash
    at = -1
    for i in range(lists.shape[0]):
        words = read_words(gold_trees, i, table, gold)
        own_size, own_brackets, mask = _prepare_gold(gold_trees, i, table, words, gold, index)
        reference[i, GOLD], reference[i, WORDS], reference[i, SENTENCES] = own_brackets, own_size, 1
        for node in range(gold_trees.first[i], gold_trees.first[i + 1]):
            reference[i, LENGTH] += gold_trees.word[node] >= 0 and not table.flags[gold_trees.label[node]] & NO_LENGTH
        if lists[i, 0] == lists[i, 1]:  # nothing can be chosen: as if it were a parse without words
            reference[i, GOLD], reference[i, WORDS], reference[i, UNPARSED] = 0, 0, 1
        for y in range(lists[i, 0], lists[i, 1]):
            at += 1
            row, size, brackets, change = rows[at], own_size, own_brackets, False
            test_words = read_words(trees, y, table, test)
            agree, tags = _same_words(gold_trees, gold, words, trees, test, test_words, table, False)
            if agree and mode == REFERENCE:
                for k in range(words):
                    test.keep[k] = gold.keep[k]
            test_size = count_kept(trees, y, table, test)
            if test_words == 0 or (test_size == 0 and (mode == EVALB or size == 0)):
                row[SKIPPED], row[GOLD_SHIFT], row[WORD_SHIFT] = 1, -brackets, -size
                continue
            if mode == EVALB:
                if test_size != size and test_words == words:
                    change = _keep_quotes(gold_trees, gold, trees, test, words, table)
                    count_kept(trees, y, table, test)
                    if change:  # the reference was different for this candidate
                        size, brackets, mask = _prepare_gold(gold_trees, i, table, words, gold, index)
                agree, tags = _same_words(gold_trees, gold, words, trees, test, test_words, table, True)
            if agree:
                test_brackets = read_brackets(trees, y, table, test)
                matches, crossing = compare(test, test_brackets, gold, brackets, index, mask)
                row[MATCHED], row[TEST], row[CROSSING], row[TAGS] = matches, test_brackets, crossing, tags
                row[EXACT] = matches == brackets and matches == test_brackets
                row[NO_CROSSING], row[FEW_CROSSING] = crossing == 0, crossing <= 2
                row[GOLD_SHIFT], row[WORD_SHIFT] = brackets - own_brackets, size - own_size
            else:
                row[REFUSED], row[GOLD_SHIFT], row[WORD_SHIFT] = 1, -own_brackets, -own_size
            if change:
                read_words(gold_trees, i, table, gold)
                _, _, mask = _prepare_gold(gold_trees, i, table, words, gold, index)
