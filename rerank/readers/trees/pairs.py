"""Lists of parses together with their gold trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.kernels.compile import kernel
from rerank.readers.base import TRACE, BadCandidate, BadList, NBestList, OnBadList, Reader, SkipCount
from rerank.readers.streams import PathLike, single_stdin, stream_name
from rerank.readers.trees.brackets import read_trees
from rerank.readers.trees.trees import Trees, parse_brackets

_ONE_EACH = "every list needs one gold tree, in the same order"


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
    try:
        trees = nbest.trees(symbols)
    except DataError:
        found = nbest.without(_malformed(nbest, symbols))
        return found if isinstance(found, BadList) else parse_list(found, symbols)
    if len(nbest) > 1:
        k = same_yield(trees, trees, 0, symbols.intern(TRACE))
        if k >= 0:
            difference = _difference(yield_words(trees, 0, symbols), yield_words(trees, k, symbols))
            message = f"candidates 1 and {k + 1} have different words: {difference}"
            return BadList(nbest.id, nbest.path, nbest.lines[k], "words", message)
    return nbest, trees


def _malformed(nbest: NBestList, symbols: SymbolTable) -> list[BadCandidate]:
    """The candidates of a list that are not well-formed trees."""
    found = []
    for place in range(len(nbest)):
        try:
            nbest.some([place]).trees(symbols)
        except DataError as error:
            line = error.line or nbest.lines[place]
            found.append(BadCandidate(nbest.id, nbest.path, line, "brackets", error.message, place))
    return found


def read_parses(
    reader: Reader,
    path: PathLike,
    symbols: SymbolTable,
    on_bad_list: OnBadList = "error",
    count: SkipCount | None = None,
) -> Iterator[tuple[NBestList, Trees]]:
    """The usable lists of ``path`` with their candidates' trees; bad ones are errors, or skipped and counted.

    ``count``, if given, also sets the policy, and ``on_bad_list`` is ignored.

    Raises
    ------
    DataError: a bad list under the policy "error", or an unreadable file.
    """
    count = count if count is not None else SkipCount(on_bad_list)
    for nbest in reader.read(path):
        if isinstance(nbest, BadList):
            count.bad(nbest)
            continue
        found = parse_list(nbest, symbols)
        if isinstance(found, BadList):
            count.bad(found)
            continue
        count.good(found[0])
        yield found


class RawPair(NamedTuple):
    """A list, or a bad one, and the text of its gold tree; no tree has been parsed yet."""

    nbest: NBestList | BadList
    text: bytes
    line: int  # of the text
    path: str  # the file of gold trees


def read_raw_pairs(reader: Reader, nbest_path: PathLike, gold_path: PathLike) -> Iterator[RawPair]:
    """Every list of ``nbest_path`` with its gold tree, aligned by order.

    Raises
    ------
    DataError: more or fewer gold trees than lists; unreadable files.
    """
    single_stdin(nbest_path, gold_path)
    lists_name, gold_name = stream_name(nbest_path), stream_name(gold_path)
    golds = read_trees(gold_path)
    done, gold_line = 0, 0
    for nbest in reader.read(nbest_path):
        gold = next(golds, None)
        if gold is None:
            where = f"the last at line {gold_line}" if done else "the file is empty"
            message = f"{done} gold trees ({where}) for at least {done + 1} lists of {lists_name} (list {nbest.id} at "
            raise DataError(f"{message}line {nbest.line}); {_ONE_EACH}", path=gold_name)
        done, gold_line = done + 1, gold[1]
        yield RawPair(nbest, *gold, gold_name)
    extra = next(golds, None)
    if extra is not None:
        message = f"at least {done + 1} gold trees for the {done} lists of {lists_name}; {_ONE_EACH}"
        raise DataError(message, path=gold_name, line=extra[1])


def read_pairs(
    reader: Reader,
    nbest_path: PathLike,
    gold_path: PathLike,
    symbols: SymbolTable,
    on_bad_list: OnBadList = "error",
    count: SkipCount | None = None,
) -> Iterator[tuple[NBestList, Trees, Trees]]:
    """(list, trees of its candidates, its gold tree) for every usable list, aligned by order.

    A bad list is an error, or skipped and counted together with its gold tree. ``count``, if given, also sets the
    policy, and ``on_bad_list`` is ignored.

    Raises
    ------
    DataError: a bad list under the policy "error"; more or fewer gold trees than lists; unreadable files.
    """
    count = count if count is not None else SkipCount(on_bad_list)
    for raw in read_raw_pairs(reader, nbest_path, gold_path):
        pair = parse_pair(raw, symbols)
        if isinstance(pair, BadList):
            count.bad(pair)
        else:
            count.good(pair[0])
            yield pair


def parse_pair(raw: RawPair, symbols: SymbolTable) -> tuple[NBestList, Trees, Trees] | BadList:
    """A list, its trees and its gold tree, or why they cannot be used."""
    nbest, text, line, gold_name = raw
    found = nbest if isinstance(nbest, BadList) else parse_list(nbest, symbols)
    if isinstance(found, BadList):
        return found
    nbest, trees = found
    try:
        gold = parse_brackets([text], symbols, lines=[line])
    except DataError as error:
        return BadList(nbest.id, gold_name, error.line or line, "gold tree", f"in the gold tree: {error.message}")
    if same_yield(trees, gold, 0, symbols.intern(TRACE)) < 0:
        return nbest, trees, gold
    difference = _difference(yield_words(gold, 0, symbols), yield_words(trees, 0, symbols))
    message = f"the gold tree at {gold_name}:{line} has other words than the candidates ({difference}); {_ONE_EACH}"
    return BadList(nbest.id, nbest.path, nbest.line, "gold words", message)


def _difference(one: list[str], two: list[str]) -> str:
    """Where two sentences differ, for a message."""
    place = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    shown = [" ".join(words[place : place + 3]) or "the end" for words in (one, two)]
    return f"{len(one)} and {len(two)} words; at word {place + 1} {shown[0]!r} and {shown[1]!r}"
