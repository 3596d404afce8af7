"""From the trees of one list to its sparse features: all templates, once a distinct place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.errors import RecipeError, RerankError
from rerank.features import marks
from rerank.features.forest import Forest, Grower
from rerank.features.heads import SEMANTIC, SYNTACTIC, Rules
from rerank.features.places import TREE, UPWARD, Places, places_of
from rerank.features.sink import BITS, CANDIDATES, FEATURES, OVERFLOW, add_named, clear, new_sink
from rerank.features.template import Template
from rerank.readers.trees import Trees
from rerank.symbols import SymbolTable, text_hash

# A user's template: from a candidate to its features by name.
UserTemplate = Callable[[Any], Mapping[str, float]]
LARGEST = float(np.finfo(np.float32).max)  # values are float32


class ListFeatures(NamedTuple):
    """The F features of one list that differ among its candidates, and their values (E entries).

    A value is how often the feature fires in a candidate. Where the list is ``centred``, the feature's most
    frequent value in the list is subtracted: scores move by a constant of the list, and most entries vanish.
    ``symbols`` is the extractor's own buffer: it holds until the next list is extracted.
    """

    hashes: np.ndarray  # uint64 [F]: identities (see sink.identity)
    full: np.ndarray  # uint64 [F]: whole hashes
    template: np.ndarray  # int32 [F]
    symbols: np.ndarray  # uint64 [S]: symbols of feature i are symbols[symbol_first[i]:symbol_last[i]]
    symbol_first: np.ndarray  # int64 [F]
    symbol_last: np.ndarray  # int64 [F]
    first: np.ndarray  # int64 [F + 1]: entries of feature i
    candidate: np.ndarray  # int32 [E]
    value: np.ndarray  # float32 [E]


@kernel
def _count_equal(values: np.ndarray, row: int, candidates: int, value: np.float32) -> int:
    count = 0
    for y in range(candidates):
        count += values[row + y] == value
    return count


@kernel
def _origin(values: np.ndarray, row: int, candidates: int, centred: bool) -> tuple[int, np.float32]:
    """(how many entries the feature at ``row`` needs, the value that is not stored); (0, _) where it does not vary.

    The value is the most frequent one (the smallest of several) among those of the first few candidates: lists hold
    only a handful of distinct ones.
    """
    best = values[row]
    most = _count_equal(values, row, candidates, best)
    if most == candidates:
        return 0, best
    if not centred:
        best = np.float32(0)
        return candidates - _count_equal(values, row, candidates, best), best
    trial = 1
    while 2 * most <= candidates and trial < min(candidates, 8):
        value = values[row + trial]
        count = _count_equal(values, row, candidates, value)
        if count > most or (count == most and value < best):
            best, most = value, count
        trial += 1
    return candidates - most, best


@kernel
def collect_sizes(
    values: np.ndarray, features: int, candidates: int, centred: bool, kept: np.ndarray, origin: np.ndarray
) -> tuple[int, int]:
    """Which features vary (``kept`` int32, ``origin`` float32), and how many entries they have."""
    n, entries = 0, 0
    for i in range(features):
        stored, value = _origin(values, i * candidates, candidates, centred)
        if stored > 0:
            kept[n], origin[n] = i, value
            n += 1
            entries += stored
    return n, entries


@kernel
def collect_entries(
    values: np.ndarray,
    candidates: int,
    kept: np.ndarray,
    origin: np.ndarray,
    first: np.ndarray,
    candidate: np.ndarray,
    value: np.ndarray,
) -> None:
    """Write the entries of the kept features; ``candidate`` and ``value`` have one place more than entries."""
    e = 0
    for n in range(kept.shape[0]):
        first[n] = e
        row = kept[n] * candidates
        for y in range(candidates):
            candidate[e], value[e] = y, values[row + y] - origin[n]
            e += values[row + y] != origin[n]
    first[kept.shape[0]] = e


class _Family(NamedTuple):
    """The templates that run in one kernel call."""

    fire: Callable[..., None]
    place: tuple[int, int]  # scope and depth
    ids: np.ndarray
    seeds: np.ndarray
    options: np.ndarray


class Extractor:
    """Runs templates over lists of trees.

    Parameters
    ----------
    templates: built-in templates.
    symbols: the table that the trees were parsed with.
    user: users' templates by name; they get a Candidate and return a mapping of feature name to value.
    centred: subtract each feature's most frequent value in the list (see ListFeatures).
    heads: head rules by kind ("syntactic", "semantic") and label; they replace those of heads.py for these labels.
    bits: how many bits of a feature's hash tell it apart; below 64 features may share a column (hashed mode).
    """

    def __init__(
        self,
        templates: Sequence[Template],
        symbols: SymbolTable,
        *,
        user: Mapping[str, UserTemplate] | None = None,
        centred: bool = True,
        bits: int = 64,
        heads: Mapping[str, Rules] | None = None,
    ) -> None:
        self.symbols, self.centred = symbols, centred
        self.user = dict(user or {})
        self.names = [template.name for template in templates] + list(self.user)
        if len(set(self.names)) != len(self.names):
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise RecipeError(f"template {twice[0]} is named twice; every template can be used once")
        self._families = _families(templates)
        self._user_first = len(templates)
        given = heads or {}
        syntactic, semantic = SYNTACTIC | dict(given.get("syntactic", {})), SEMANTIC | dict(given.get("semantic", {}))
        self._grower = Grower(symbols, syntactic, semantic)
        self._sink = new_sink(1 << 12, 1 << 16, 64, bits)
        for text in marks.TEXTS.values():
            symbols.intern(text)

    def features(self, trees: Trees, base: np.ndarray, candidates: Sequence[Any] = ()) -> ListFeatures:
        """The features of one list, from its trees and base scores (float64 [N]).

        ``candidates`` are needed for users' templates only.

        Raises
        ------
        RecipeError: a user's template failed, or gave something that is no finite number.
        ValueError: not one base score, or (for users' templates) not one candidate, a tree.
        """
        total = trees.first.size - 1
        if base.shape != (total,) or (self.user and len(candidates) != total):
            raise ValueError(f"{total} trees with {base.size} base scores and {len(candidates)} candidates")
        forest = self._grower.grow(trees, np.ascontiguousarray(base, np.float64))
        places: dict[tuple[int, int], Places] = {}
        for family in self._families:
            if family.place not in places:
                places[family.place] = places_of(forest, *family.place)
        named = [self._call(name, function, candidates) for name, function in self.user.items()]
        while True:
            if (room := self._sink.hashes.size * total) > self._sink.values.size:
                self._sink = self._sink._replace(values=np.empty(room, np.float32))
            self._run(forest, places, total, named)
            if not self._sink.state[OVERFLOW]:
                return self._collect(total)
            sizes = 2 * self._sink.hashes.size, 2 * self._sink.symbols.size, max(total, 1)
            self._sink = new_sink(*sizes, int(self._sink.state[BITS]))

    def _run(self, forest: Forest, places: dict[tuple[int, int], Places], total: int, named: list[Any]) -> None:
        sink = self._sink
        clear(sink, total)
        for family in self._families:
            family.fire(forest, places[family.place], sink, family.ids, family.seeds, family.options)
        for i, arrays in enumerate(named):
            template = self._user_first + i
            add_named(sink, template, np.uint64(text_hash(self.names[template])), *arrays)

    def _call(
        self, name: str, function: UserTemplate, candidates: Sequence[Any]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        hashes, owner, values = [], [], []
        for y, candidate in enumerate(candidates):
            try:
                pairs = [(str(feature), float(value)) for feature, value in function(candidate).items()]
            except RerankError:
                raise
            except Exception as error:
                raise RecipeError(f"template {name} failed on a candidate: {type(error).__name__}: {error}") from error
            for feature, value in pairs:
                if not abs(value) <= LARGEST:
                    message = f"expected a finite number, at most {LARGEST:.3g}"
                    raise RecipeError(f"template {name} gave {feature!r} the value {value}; {message}")
                symbol = self.symbols.intern(feature)
                hashes.append(self.symbols.hashes[symbol])
                owner.append(y)
                values.append(value)
        return np.array(hashes, np.uint64), np.array(owner, np.int32), np.array(values, np.float32)

    def _collect(self, total: int) -> ListFeatures:
        sink = self._sink
        features = int(sink.state[FEATURES])
        kept, origin = np.empty(features, np.int32), np.empty(features, np.float32)
        n, entries = collect_sizes(sink.values, features, int(sink.state[CANDIDATES]), self.centred, kept, origin)
        kept, origin = kept[:n], origin[:n]
        first = np.empty(n + 1, np.int64)
        candidate, value = np.empty(entries + 1, np.int32), np.empty(entries + 1, np.float32)
        collect_entries(sink.values, total, kept, origin, first, candidate, value)
        return ListFeatures(
            sink.hashes[kept],
            sink.full[kept],
            sink.template[kept],
            sink.symbols,
            sink.symbol_first[kept],
            sink.symbol_first[kept + 1],
            first,
            candidate[:-1],
            value[:-1],
        )


def _families(templates: Sequence[Template]) -> list[_Family]:
    """Group templates by kernel and scope, so that a list needs one call a group."""
    depth = max((template.depth for template in templates if template.scope == UPWARD), default=0)
    groups: dict[tuple[Any, int], list[int]] = {}
    for number, template in enumerate(templates):
        groups.setdefault((template.fire, template.scope), []).append(number)
    families = []
    for (fire, scope), numbers in groups.items():
        seeds = np.array([templates[i].seed for i in numbers], np.uint64)
        options = np.array([templates[i].options() for i in numbers], np.int64)
        place = (scope, depth if scope == UPWARD else 0)
        families.append(_Family(fire, place, np.array(numbers, np.int64), seeds, options))
    return sorted(families, key=lambda family: (family.place[0] == TREE, family.ids[0]))
