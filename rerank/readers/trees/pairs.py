"""Lists of parses together with their gold trees."""

from __future__ import annotations

from collections.abc import Iterator

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.kernels.compile import kernel
from rerank.readers.base import TRACE, BadList, Fault, NBestList, OnBadList, Reader, SkipCount
from rerank.readers.sides import in_step
from rerank.readers.streams import PathLike
from rerank.readers.trees.treebank import GoldText, TreebankSide, treebank_files
from rerank.readers.trees.trees import Trees, parse_brackets


@kernel
def same_yield(trees: Trees, other: Trees, t: int, trace: int) -> int:
    """The first of ``trees`` whose words differ from those of tree ``t`` of ``other``, -1 if all have the same words.

    Words under the label ``trace`` (a symbol id) do not count.
    """
    last = other.first[t + 1]
    for k in range(trees.first.shape[0] - 1):
        node, end, mate = trees.first[k], trees.first[k + 1], other.first[t]
        while True:
            while node < end and (trees.word[node] < 0 or trees.label[node] == trace):
                node += 1
            while mate < last and (other.word[mate] < 0 or other.label[mate] == trace):
                mate += 1
            if node == end or mate == last:
                break
            if trees.word[node] != other.word[mate]:
                return k
            node += 1
            mate += 1
        if node < end or mate < last:
            return k
    return -1


def yield_words(trees: Trees, t: int, symbols: SymbolTable) -> list[str]:
    """The words of tree ``t``, without traces."""
    nodes = range(int(trees.first[t]), int(trees.first[t + 1]))
    leaves = [(symbols.text(int(trees.label[i])), int(trees.word[i])) for i in nodes if trees.word[i] >= 0]
    return [symbols.text(word) for label, word in leaves if label != TRACE]


def parse_list(nbest: NBestList, symbols: SymbolTable) -> tuple[NBestList, Trees] | BadList:
    """The list and its candidates' trees, without those that are malformed, or a bad list.

    The reasons are "brackets" for malformed trees, "words" for trees of different sentences.
    """
    opened = nbest.opened(lambda own: own.trees(symbols))
    if isinstance(opened, BadList):
        return opened
    nbest, trees = opened
    if len(nbest) > 1:
        k = same_yield(trees, trees, 0, symbols.intern(TRACE))
        if k >= 0:
            difference = _difference(yield_words(trees, 0, symbols), yield_words(trees, k, symbols))
            message = f"candidates 1 and {k + 1} have different words: {difference}"
            return BadList.of(Fault("words", message), nbest.id, nbest.path, nbest.lines[k])
    return nbest, trees


def read_pairs(
    reader: Reader,
    nbest_path: PathLike,
    gold_path: PathLike,
    symbols: SymbolTable,
    on_bad_list: OnBadList = "error",
    count: SkipCount | None = None,
) -> Iterator[tuple[NBestList, Trees, Trees]]:
    """(list, trees of its candidates, its gold tree) for every usable list, aligned by order.

    gold_path: a treebank, of one file or many; see ``treebank``.

    A bad list is an error, or skipped and counted together with its gold tree. ``count``, if given, also sets the
    policy, and ``on_bad_list`` is ignored.

    Raises
    ------
    DataError: a bad list under the policy "error"; more or fewer gold trees than lists; unreadable files.
    """
    count = count if count is not None else SkipCount(on_bad_list)
    for nbest, (gold,), _ in in_step(reader, nbest_path, [TreebankSide(treebank_files(gold_path))]):
        pair = parse_pair(nbest, gold, symbols)
        if isinstance(pair, BadList):
            count.bad(pair)
        else:
            count.good(pair[0])
            yield pair


def parse_pair(
    nbest: NBestList | BadList, gold: GoldText, symbols: SymbolTable
) -> tuple[NBestList, Trees, Trees] | BadList:
    """A list, its trees and its gold tree, or why they cannot be used."""
    found = nbest if isinstance(nbest, BadList) else parse_list(nbest, symbols)
    if isinstance(found, BadList):
        return found
    nbest, trees = found
    try:
        tree = parse_brackets([gold.text], symbols, lines=[gold.line])
    except DataError as error:
        fault = Fault("gold tree", f"in the gold tree: {error.message}", error.line)
        return BadList.of(fault, nbest.id, gold.path, gold.line)
    if same_yield(trees, tree, 0, symbols.intern(TRACE)) < 0:
        return nbest, trees, tree
    difference = _difference(yield_words(tree, 0, symbols), yield_words(trees, 0, symbols))
    message = f"the gold tree at {gold.path}:{gold.line} has other words than the candidates ({difference}); "
    fault = Fault("gold words", f"{message}every list needs one gold tree, in the same order")
    return BadList.of(fault, nbest.id, nbest.path, nbest.line)


def _difference(one: list[str], two: list[str]) -> str:
    """Where two sentences differ, for a message."""
    place = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    shown = [" ".join(words[place : place + 3]) or "the end" for words in (one, two)]
    return f"{len(one)} and {len(two)} words; at word {place + 1} {shown[0]!r} and {shown[1]!r}"
