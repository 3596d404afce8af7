"""Usable lists with what other files hold for them."""

from collections.abc import Iterator, Sequence
from typing import Any

from rerank.data.symbols import SymbolTable
from rerank.data.trees import Trees, no_changes
from rerank.readers.lists import one_by_one
from rerank.readers.reader import Lists, Problem, Reader, SkipCount, count_usable, filter_usable
from rerank.readers.texts.text_files import complete, lists_of_texts
from rerank.readers.trees.treebank import lists_of_trees, parse_pair, treebank_files
from rerank.storage.streams import PathLike


def read_text_pairs(
    reader: Reader, path: PathLike, *, count: SkipCount | None = None, needs_references: bool = True, **sides: Any
) -> Iterator[Lists]:
    every = one_by_one(lists_of_texts(reader, path, **sides))
    lists = (complete(nbest, needs_references=needs_references) for nbest in every)
    return filter_usable(lists, count_usable, SkipCount() if count is None else count)


def read_pairs(
    reader: Reader, path: PathLike, gold: PathLike | Sequence[PathLike], symbols: SymbolTable,
    count: SkipCount | None = None, *, normalize: bool = False,
) -> Iterator[tuple[Lists, Trees, Trees]]:  # fmt: skip
    def take(nbest: Lists, count: SkipCount) -> tuple[Lists, Trees, Trees] | None:
        changed = no_changes() if normalize else None
        try:
            pair = parse_pair(nbest, symbols, changed)
        except Problem as problem:
            count.bad(problem)
            return None
        count.good(pair[0], changed)
        return pair

    told, count = reader.for_columns(reader.model_columns, normal=normalize), SkipCount() if count is None else count
    return filter_usable(lists_of_trees(told, path, treebank_files(gold)), take, count)  # type: ignore[arg-type]
