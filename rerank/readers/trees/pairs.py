"""Lists of parses together with their gold trees."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.readers.base import TRACE, NBestList, OnBadList, Problem, Reader, SkipCount, SkippedList, lists_of, usable
from rerank.readers.sides import in_step
from rerank.readers.streams import PathLike, read_once
from rerank.readers.trees.treebank import GoldText, TreebankSide, read_treebank, treebank_files
from rerank.readers.trees.trees import Trees, parse_brackets
from rerank.readers.trees.words import (
    CANDIDATES,
    GOLD,
    bracket_advice,
    bracket_words,
    difference,
    equal_form,
    leaves,
    normalized,
    same_yield,
    unchanged,
    yield_words,
)


def open_list(
    nbest: NBestList, symbols: SymbolTable, changed: Counter[str] | None = None
) -> tuple[NBestList, Trees] | SkippedList:
    """The list and its candidates' trees, without those that are malformed; a bad list ("brackets") if all are.

    With ``changed``, words of the trees are ``normalized``, and those that this changes are counted there; the texts of
    the list stay.
    """

    def look(own: NBestList) -> Trees:
        return (own if changed is None else own.changed(texts=bracket_words(own.texts))).trees(symbols)

    opened = nbest.opened(look)
    if changed is None or isinstance(opened, SkippedList):
        return opened
    return opened[0], normalized(opened[1], symbols, changed, CANDIDATES)


def parse_list(
    nbest: NBestList, symbols: SymbolTable, changed: Counter[str] | None = None
) -> tuple[NBestList, Trees] | SkippedList:
    """``open_list``; a bad list ("words") too if the trees are those of different sentences."""
    opened = open_list(nbest, symbols, changed)
    if isinstance(opened, SkippedList):
        return opened
    nbest, trees = opened
    trace = symbols.intern(TRACE)
    if not (words := leaves(trees, trace)).size:
        return nbest, trees
    first = int(np.searchsorted(trees.first, words[0], side="right")) - 1  # not a failed parse
    if (k := same_yield(trees, trees, first, trace)) < 0:
        return nbest, trees
    differing = difference(yield_words(trees, first, symbols), yield_words(trees, k, symbols))
    message = f"candidates {first + 1} and {k + 1} have different words: {differing}{equal_form(trees, trees, symbols)}"
    return SkippedList.of(Problem("words", message), nbest.id, nbest.path, nbest.lines[k])


def read_pairs(
    reader: Reader, nbest_path: PathLike, gold_path: PathLike, symbols: SymbolTable,
    on_bad_list: OnBadList = "error", count: SkipCount | None = None, *, normalize: bool = False,
) -> Iterator[tuple[NBestList, Trees, Trees]]:  # fmt: skip
    """(list, trees of its candidates, its gold tree) for every usable list, aligned by order.

    gold_path: a treebank, of one file or many; see ``treebank``. normalize: whether words are brought to one form on
    both sides; see ``words``.

    A bad list is an error, or skipped and counted together with its gold tree. ``count``, if given, also sets the
    policy, and ``on_bad_list`` is ignored.
    """
    count = count if count is not None else SkipCount(on_bad_list)

    def take(nbest: NBestList | SkippedList, count: SkipCount) -> tuple[NBestList, Trees, Trees] | None:
        changed = unchanged() if normalize else None
        pair = parse_pair(nbest, symbols, changed)
        if isinstance(pair, SkippedList):
            count.bad(pair)
            return None
        count.good(pair[0], changed)
        return pair

    told = reader.knowing(reader.known, normal=normalize)
    yield from usable(lists_of_trees(told, nbest_path, treebank_files(gold_path)), take, count)


def lists_of_trees(
    reader: Reader, path: PathLike, gold: Sequence[PathLike] | None
) -> Iterator[NBestList | SkippedList]:
    """Every list, usable or not, with its gold tree if there are files of ``gold`` trees."""
    sides = [] if gold is None else [TreebankSide(gold, partial(_first_apart, reader, path, gold))]
    for nbest, entries in in_step(reader, path, sides):
        yield nbest.changed(gold=entries[0]) if entries and isinstance(nbest, NBestList) else nbest


def _first_apart(reader: Reader, path: PathLike, gold: Sequence[PathLike]) -> str:
    """For a message: the first list whose words are not those of its tree, however they are written."""
    symbols = SymbolTable()
    every = () if any(map(read_once, (path, *gold))) else zip(lists_of(reader, path), read_treebank(gold), strict=False)
    for nbest, tree in every:
        opened = nbest if isinstance(nbest, SkippedList) else nbest.changed(gold=tree)
        pair = parse_pair(opened, symbols, unchanged())
        if isinstance(pair, SkippedList) or (k := same_yield(pair[1], pair[2], 0, symbols.intern(TRACE))) < 0:
            continue
        words = difference(yield_words(pair[1], k, symbols), yield_words(pair[2], 0, symbols))
        where = f"list {nbest.id} at line {nbest.line}, whose tree is {tree.path}:{tree.line}"
        return f"; the first with other words than its tree: {where}: {words}"
    return ""


def parse_pair(
    nbest: NBestList | SkippedList, symbols: SymbolTable, changed: Counter[str] | None = None
) -> tuple[NBestList, Trees, Trees] | SkippedList:
    """A list with its trees and its gold tree parsed, or why they cannot be used; ``changed`` as in ``open_list``.

    The metric says whose words are those of the gold tree.
    """
    opened = nbest if isinstance(nbest, SkippedList) else open_list(nbest, symbols, changed)
    if isinstance(opened, SkippedList):
        return opened
    nbest, trees = opened
    gold: GoldText = nbest.gold
    texts = [gold.text] if changed is None else bracket_words([gold.text])
    try:
        tree = parse_brackets(texts, symbols, lines=[gold.line])
    except DataError as error:
        problem = Problem("gold tree", f"in the gold tree: {error.message}{bracket_advice(texts[0])}", error.line)
        return SkippedList.of(problem, nbest.id, gold.path, gold.line)
    if changed is not None:
        tree = normalized(tree, symbols, changed, GOLD)
    return nbest, trees, tree
