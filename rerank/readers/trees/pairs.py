"""Lists of parses together with their gold trees."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.readers.base import TRACE, Lists, OnBadList, Problem, Reader, SkipCount, lists_of, usable
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


def open_list(nbest: Lists, symbols: SymbolTable, changed: Counter[str] | None = None) -> tuple[Lists, Trees]:
    """The list and its candidates' trees, without those that are malformed. Raises Problem ("brackets") if all are.

    With ``changed``, words of the trees are ``normalized``, and those that this changes are counted there; the texts of
    the list stay.
    """

    def look(own: Lists) -> Trees:
        return (own if changed is None else own.changed(texts=bracket_words(own.texts))).parsed(symbols)

    nbest, trees = nbest.opened(look)
    return nbest, trees if changed is None else normalized(trees, symbols, changed, CANDIDATES)


def parse_list(nbest: Lists, symbols: SymbolTable, changed: Counter[str] | None = None) -> tuple[Lists, Trees]:
    """``open_list``. Raises Problem ("words") too if the trees are those of different sentences."""
    nbest, trees = open_list(nbest, symbols, changed)
    trace = symbols.intern(TRACE)
    if not (words := leaves(trees, trace)).size:
        return nbest, trees
    first = int(np.searchsorted(trees.first, words[0], side="right")) - 1  # not a failed parse
    if (k := same_yield(trees, trees, first, trace)) < 0:
        return nbest, trees
    differing = difference(yield_words(trees, first, symbols), yield_words(trees, k, symbols))
    message = f"candidates {first + 1} and {k + 1} have different words: {differing}{equal_form(trees, trees, symbols)}"
    raise Problem("words", message, nbest.lines[k], path=nbest.path, list_id=nbest.id)


def read_pairs(
    reader: Reader, nbest_path: PathLike, gold_path: PathLike, symbols: SymbolTable,
    on_bad_list: OnBadList = "error", count: SkipCount | None = None, *, normalize: bool = False,
) -> Iterator[tuple[Lists, Trees, Trees]]:  # fmt: skip
    """(list, trees of its candidates, its gold tree) for every usable list, aligned by order.

    gold_path: a treebank, of one file or many; see ``treebank``. normalize: whether words are brought to one form on
    both sides; see ``words``.

    A bad list is an error, or skipped and counted together with its gold tree. ``count``, if given, also sets the
    policy, and ``on_bad_list`` is ignored.
    """
    count = count if count is not None else SkipCount(on_bad_list)

    def take(nbest: Lists, count: SkipCount) -> tuple[Lists, Trees, Trees] | None:
        changed = unchanged() if normalize else None
        try:
            pair = parse_pair(nbest, symbols, changed)
        except Problem as problem:
            count.bad(problem)
            return None
        count.good(pair[0], changed)
        return pair

    told = reader.knowing(reader.known, normal=normalize)
    yield from usable(lists_of_trees(told, nbest_path, treebank_files(gold_path)), take, count)


def lists_of_trees(reader: Reader, path: PathLike, gold: Sequence[PathLike] | None) -> Iterator[Lists]:
    """Every list, usable or not, with its gold tree if there are files of ``gold`` trees."""
    sides = [] if gold is None else [TreebankSide(gold, partial(_first_apart, reader, path, gold))]
    for nbest, entries in in_step(reader, path, sides):
        yield nbest.changed(gold=entries[0]) if entries and nbest.problem is None else nbest


def _first_apart(reader: Reader, path: PathLike, gold: Sequence[PathLike]) -> str:
    """For a message: the first list whose words are not those of its tree, however they are written."""
    symbols = SymbolTable()
    every = () if any(map(read_once, (path, *gold))) else zip(lists_of(reader, path), read_treebank(gold), strict=False)
    for nbest, tree in every:
        try:
            pair = parse_pair(nbest.sound().changed(gold=tree), symbols, unchanged())
        except Problem:
            continue
        if (k := same_yield(pair[1], pair[2], 0, symbols.intern(TRACE))) < 0:
            continue
        words = difference(yield_words(pair[1], k, symbols), yield_words(pair[2], 0, symbols))
        where = f"list {nbest.id} at line {nbest.line}, whose tree is {tree.path}:{tree.line}"
        return f"; the first with other words than its tree: {where}: {words}"
    return ""


def parse_pair(nbest: Lists, symbols: SymbolTable, changed: Counter[str] | None = None) -> tuple[Lists, Trees, Trees]:
    """A list with its trees and its gold tree parsed; ``changed`` as in ``open_list``. Raises Problem.

    The metric says whose words are those of the gold tree.
    """
    nbest, trees = open_list(nbest.sound(), symbols, changed)
    gold: GoldText = nbest.gold
    texts = [gold.text] if changed is None else bracket_words([gold.text])
    try:
        tree = parse_brackets(texts, symbols, lines=[gold.line])
    except DataError as error:
        message = f"in the gold tree: {error.message}{bracket_advice(texts[0])}"
        problem = Problem("gold tree", message, error.line or gold.line, path=gold.path, list_id=nbest.id)
        raise problem from None
    if changed is not None:
        tree = normalized(tree, symbols, changed, GOLD)
    return nbest, trees, tree
