"""From one list to its sparse features: all templates; those of trees once a distinct place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.errors import RecipeError, RerankError
from rerank.features import marks
from rerank.features.forest import Grower
from rerank.features.heads import SEMANTIC, SYNTACTIC, Rules
from rerank.features.places import TREE, UPWARD, places_of
from rerank.features.sink import BITS, CANDIDATES, FEATURES, OVERFLOW, Sink, add_named, clear, new_sink
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


class Family(NamedTuple):
    """The templates that run in one kernel call."""

    fire: Callable[..., None]
    scope: int
    ids: np.ndarray
    seeds: np.ndarray
    options: np.ndarray


def families_of(templates: Sequence[Template]) -> list[Family]:
    """Group templates by kernel and scope, so that a list needs one call a group."""
    groups: dict[tuple[Any, int], list[int]] = {}
    for number, template in enumerate(templates):
        groups.setdefault((template.fire, template.scope), []).append(number)
    families = []
    for (fire, scope), numbers in groups.items():
        seeds = np.array([templates[i].seed for i in numbers], np.uint64)
        options = np.array([templates[i].options() for i in numbers], np.int64)
        families.append(Family(fire, scope, np.array(numbers, np.int64), seeds, options))
    return families


class FeatureExtractor:
    """What extractors share: the sink that templates write to, users' templates, and what is made of the sink.

    Subclasses say which ``content`` their templates look at, and call ``_extract`` for a list.

    Parameters
    ----------
    templates: built-in templates.
    symbols: the table that the lists were read with.
    user: users' templates by name; they get a Candidate and return a mapping of feature name to value.
    centred: subtract each feature's most frequent value in the list (see ListFeatures).
    bits: how many bits of a feature's hash tell it apart; below 64 features may share a column (hashed mode).

    Raises
    ------
    RecipeError: a template is named twice, or looks at another content.
    """

    content: ClassVar[str]

    def __init__(
        self,
        templates: Sequence[Template],
        symbols: SymbolTable,
        *,
        user: Mapping[str, UserTemplate] | None = None,
        centred: bool = True,
        bits: int = 64,
    ) -> None:
        self.symbols, self.centred = symbols, centred
        self.user = dict(user or {})
        self.names = [template.name for template in templates] + list(self.user)
        self.free = tuple(template.name for template in templates if template.free)
        if len(set(self.names)) != len(self.names):
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise RecipeError(f"template {twice[0]} is named twice; every template can be used once", key="features")
        for template in templates:
            if template.content != self.content:
                raise RecipeError(
                    f"template {template.name} looks at {template.content}, but the lists are lists of {self.content}; "
                    f"name templates of {self.content} (rerank list templates)"
                )
        self._families = families_of(templates)
        self._user_first = len(templates)
        self._sink = new_sink(1 << 12, 1 << 16, 64, bits)
        for text in marks.TEXTS.values():
            symbols.intern(text)

    def _extract(self, total: int, candidates: Sequence[Any], fire: Callable[[Sink], None]) -> ListFeatures:
        """The features of one list of ``total`` candidates; ``fire`` runs the built-in templates on a sink."""
        named = [self._call(name, function, candidates) for name, function in self.user.items()]
        while True:
            if (room := self._sink.hashes.size * total) > self._sink.values.size:
                self._sink = self._sink._replace(values=np.empty(room, np.float32))
            sink = self._sink
            clear(sink, total)
            fire(sink)
            for template, arrays in enumerate(named, start=self._user_first):
                add_named(sink, template, np.uint64(text_hash(self.names[template])), *arrays)
            if not sink.state[OVERFLOW]:
                return self._collect(total)
            sizes = 2 * sink.hashes.size, 2 * sink.symbols.size, max(total, 1)
            self._sink = new_sink(*sizes, int(sink.state[BITS]))

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


class Extractor(FeatureExtractor):
    """Runs templates over lists of trees.

    ``heads``: head rules by kind ("syntactic", "semantic") and label; they replace those of heads.py for these labels.
    The other parameters are those of FeatureExtractor.
    """

    content = "trees"

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
        super().__init__(templates, symbols, user=user, centred=centred, bits=bits)
        given = heads or {}
        syntactic, semantic = SYNTACTIC | dict(given.get("syntactic", {})), SEMANTIC | dict(given.get("semantic", {}))
        self._grower = Grower(symbols, syntactic, semantic)
        self._depth = max((template.depth for template in templates if template.scope == UPWARD), default=0)
        self._families.sort(key=lambda family: (family.scope == TREE, family.ids[0]))

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
        scopes = {family.scope for family in self._families}
        places = {scope: places_of(forest, scope, self._depth if scope == UPWARD else 0) for scope in scopes}

        def fire(sink: Sink) -> None:
            for family in self._families:
                family.fire(forest, places[family.scope], sink, family.ids, family.seeds, family.options)

        return self._extract(total, candidates, fire)
