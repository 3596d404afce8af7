"""Sparse features of one list of trees or texts: runs all templates, those over trees once per distinct place,
and functions that users write in Python."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import unwrap
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError, RerankError
from rerank.base.interrupts import check
from rerank.data.corpus import FLOAT32_MAX
from rerank.data.symbols import SymbolTable, quick_hash, text_hash
from rerank.data.trees import Trees, parse_brackets
from rerank.features.forest import SEMANTIC, SYNTACTIC, TREE, UPWARD, Grower, Rules, places_of
from rerank.features.scores import score_view
from rerank.features.sink import (
    OVERFLOW,
    ListFeatures,
    Sink,
    TooLargeError,
    add_columns,
    add_named,
    clear,
    features_of,
    larger,
    new_sink,
)
from rerank.features.template import EITHER, TEXTS, Template, make_template, option_records
from rerank.kernels.sources import PACKAGE
from rerank.readers.lists import ListCandidate, Lists

if TYPE_CHECKING:
    from rerank.features.text.view import TextView
    from rerank.readers.memory.nbest import NBest

log = logging.getLogger("rerank")
# A user's template: maps a candidate to its features by name.
UserTemplate = Callable[[Any], Mapping[str, float]]
FIRST_ROOM = 1 << 8, 1 << 11, 1 << 10, 1 << 12  # room of a sink at first: all of it is cleared for every list
MAX_ROOM = 1 << 20  # features and entries; a sink with room for more is dropped after its list


class KernelCall(NamedTuple):
    """Templates that run in one kernel call."""

    fire: Callable[..., None]
    scope: int
    sees: str
    ids: np.ndarray
    seeds: np.ndarray
    options: np.ndarray
    look: Callable[..., tuple[np.ndarray, ...]] | None  # see ``TextTemplate``


def families_of(templates: Sequence[Template]) -> list[KernelCall]:
    """Group templates by kernel, view, scope and the names of their options: a list needs one call per group. Those
    that give columns alone are in none."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, template in enumerate(templates):
        if template.fire is None:
            continue
        key = template.fire, template.scope, template.content, tuple(template.record())
        groups.setdefault(key, []).append(number)
    families = []
    for (fire, scope, sees, _), numbers in groups.items():
        seeds = np.array([templates[i].seed for i in numbers], np.uint64)
        options = option_records([templates[i] for i in numbers])
        look = getattr(type(templates[numbers[0]]), "look", None)
        families.append(KernelCall(fire, scope, sees, np.array(numbers, np.int64), seeds, options, look))
    return families


class FeatureExtractor:
    """The common part of extractors: the sinks that templates write to, users' templates, and the way from a sink to
    features.

    Subclasses say which ``content`` their templates look at, and call ``_extract`` for a list. Threads may share an
    extractor: every call has a sink of its own, and nothing else changes.

    Parameters
    ----------
    templates: built-in templates.
    symbols: the table that the lists are read with, or that theirs is a copy of.
    user: users' templates by name; they get a Candidate and return a mapping of feature name to value.
    centred: subtract each feature's most frequent value in the list (see ListFeatures).
    bits: how many bits of a feature's hash identify it; below 64, features may share a column (hashed mode).

    Values that float32 would not tell apart are relative to their list's mean (see ``narrow``), unless ``relative`` is
    set to False: all values are plain then, as trees need them.

    Raises RecipeError: a template is named twice, or looks at another content.
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
        self.symbols, self.centred, self.relative, self.templates = symbols, centred, True, templates
        self.user = dict(user or {})
        self.names = [template.name for template in templates] + list(self.user)
        self.free = tuple(template.name for template in templates if template.free)
        if twice := sorted({name for name in self.names if self.names.count(name) > 1}):
            where = "as a template and as one of features.user" if twice[0] in self.user else "in features.templates"
            raise RecipeError(f"template {twice[0]} is named twice, {where}; name it once", key="features")
        for template in templates:
            if template.content not in (self.content, EITHER):
                raise RecipeError(
                    f"template {template.name} looks at {template.content}, but the lists are lists of {self.content}; "
                    f"name templates of {self.content} (rerank list templates)"
                )
        self._families = families_of(templates)
        self.bits = bits
        self._sinks: list[Sink] = []  # sinks that no call is using
        for text in TEXTS.values():
            symbols.intern(text)

    def _extract(
        self, rows: Lists, candidates: Sequence[Any], symbols: SymbolTable | None, fire: Callable[[Sink], None]
    ) -> ListFeatures:
        """The features of one list with the scores of ``rows``; ``fire`` runs the templates that have kernels.

        symbols: the table to add the names of scores and of users' features to, if anybody will ask for them.
        """
        hash_of, columns = quick_hash if symbols is None else symbols.hash_of, list[tuple[Any, ...]]()
        for number, template in enumerate(self.templates):
            if template.fire is None and (values := template.columns(rows, rows.first)):
                symbols = np.array([[hash_of(symbol) for symbol in names] for names in values], np.uint64)
                columns.append((number, np.uint64(template.seed), symbols, np.array(list(values.values()), np.float64)))
        user_features = [self._call(name, function, candidates, hash_of) for name, function in self.user.items()]
        try:
            sink = self._sinks.pop()
        except IndexError:
            sink = new_sink(*FIRST_ROOM, self.bits)
        while True:
            clear(sink)
            fire(sink)
            for column in columns:
                add_columns(sink, *column)
            for number, arrays in enumerate(user_features, start=len(self.templates)):
                add_named(sink, number, np.uint64(text_hash(self.names[number])), *arrays)
            if not sink.state[OVERFLOW]:
                break
            from rerank.pool import memory_limit  # psutil: only for lists that need more room

            if (size := sum(array.nbytes for array in sink)) > memory_limit():
                raise TooLargeError(f"its features take more than {size / 1e9:.1f} GB, more than this process may have")
            sink = larger(sink)
        features = features_of(sink, len(rows), self.centred, self.relative)
        if max(sink.hashes.size, sink.value.size) <= MAX_ROOM:
            self._sinks.append(sink)
        return features

    def _call(
        self, name: str, function: UserTemplate, candidates: Sequence[Any], hash_of: Callable[[str], int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        hashes, owner, values = [], [], []
        for y, candidate in enumerate(candidates):
            check()
            try:
                numbers = function(candidate)
                if not hasattr(numbers, "items"):
                    message = f"{name}{_line_of(function)} gave {numbers!r:.60}; expected a dict of numbers by name"
                    raise RecipeError(f"template {message}", path=_place_of(candidate, y))
                found = [(str(feature), hash_of(str(feature)), float(value)) for feature, value in numbers.items()]
            except RerankError:
                raise
            except Exception as error:
                message = f"failed{_line_of(function, error)}: {type(error).__name__}: {error}"
                raise RecipeError(f"template {name} {message}", path=_place_of(candidate, y)) from error
            for feature, number, value in found:
                if not abs(value) <= FLOAT32_MAX:
                    bounds = f"expected a finite number, at most {FLOAT32_MAX:.3g}"
                    message = f"template {name} gave {feature!r} the value {value}; {bounds}"
                    raise RecipeError(message, path=_place_of(candidate, y))
                hashes.append(number)
                owner.append(y)
                values.append(value)
        return np.array(hashes, np.uint64), np.array(owner, np.int32), np.array(values, np.float64)


def _line_of(function: UserTemplate, error: Exception | None = None) -> str:
    """The last line of the user's file that was running when a template raised ``error``, or where the template is."""
    stack = extract_tb(error.__traceback__) if error is not None else []
    frames = [frame for frame in stack if not frame.filename.startswith(f"{PACKAGE}{os.sep}")]
    code = getattr(unwrap(function), "__code__", None)
    if inner := [frame for frame in frames if frame.filename == frames[0].filename]:
        line = f", {inner[-1].line}" if inner[-1].line else ""
        return f" at {inner[-1].filename}:{inner[-1].lineno}{line}"
    return f" at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""  # what it gives is wrong


def _place_of(candidate: Any, index: int) -> str:
    """The place of a candidate as its list has it; else its ``index``, from 0."""
    nbest = getattr(candidate, "nbest", None)
    if nbest is None:
        return f"candidate {index + 1}"
    file = f"{nbest.path}:{nbest.lines[index]}: " if os.path.isfile(nbest.path) else ""
    return f"{file}{nbest.id and f'list {nbest.id}, '}candidate {nbest.indices[index] + 1}"


class Extractor(FeatureExtractor):
    """Runs templates over lists of trees.

    ``heads``: head rules by kind ("syntactic", "semantic") and label; they replace the usual ones for these labels.
    The other parameters are as for FeatureExtractor.
    """

    content = "trees"

    def __init__(
        self,
        templates: Sequence[Template],
        symbols: SymbolTable,
        *,
        heads: Mapping[str, Rules] | None = None,
        **others: Any,
    ) -> None:
        super().__init__(templates, symbols, **others)
        rules = heads or {}
        syntactic, semantic = SYNTACTIC | dict(rules.get("syntactic", {})), SEMANTIC | dict(rules.get("semantic", {}))
        self._grower = Grower(symbols, syntactic, semantic)
        depth = max((template.depth for template in templates if template.scope == UPWARD), default=0)
        self._families.sort(key=lambda family: (family.sees == EITHER, family.scope == TREE, family.ids[0]))
        scopes = list(dict.fromkeys(family.scope for family in self._families if family.sees != EITHER))
        self._scopes = np.array([[scope, depth if scope == UPWARD else 0] for scope in scopes], np.int64).reshape(-1, 2)
        self._scope_of = {scope: index for index, scope in enumerate(scopes)}

    def features(
        self,
        trees: Trees,
        base: np.ndarray,
        candidates: Sequence[Any] = (),
        *,
        rows: Lists | None = None,
        symbols: SymbolTable | None = None,
    ) -> ListFeatures:
        """The features of one list, from its trees and base scores (float64 [N]).

        ``candidates`` are needed only for users' templates, ``rows``, the list, only where scores have names.
        ``symbols``: the table that the trees were read with, if that is a copy of the extractor's.
        """
        total = trees.first.size - 1
        if base.shape != (total,) or (self.user and len(candidates) != total):
            raise ValueError(f"{total} trees with {base.size} base scores and {len(candidates)} candidates")
        table = self.symbols if symbols is None else symbols
        forest = self._grower.grow(trees, np.ascontiguousarray(base, np.float64), table)
        if rows is None:
            rows = Lists.one("", "", 1, [b""] * total, range(total), scores=forest.base[:, np.newaxis])
        scores = score_view(rows, table)

        def fire(sink: Sink) -> None:
            places = places_of(forest, self._scopes, sink)
            for family in self._families:
                check()
                inputs = (scores,) if family.sees == EITHER else (forest, places[self._scope_of[family.scope]])
                family.fire(*inputs, sink, family.ids, family.seeds, family.options)

        return self._extract(rows, candidates, table, fire)


class TextExtractor(FeatureExtractor):
    """Runs templates over lists of texts; the parameters are those of FeatureExtractor.

    ``needs`` has the templates that need a "source", "segmentation" or "alignment", by that; ``lacking`` what of these
    was missing, so that they gave nothing; the first such list is logged.
    """

    content = "texts"

    def __init__(self, templates: Sequence[Template], symbols: SymbolTable, **others: Any) -> None:
        super().__init__(templates, symbols, **others)
        self.needs: dict[str, list[str]] = {}
        for template in templates:
            if need := getattr(template, "needs", ""):
                self.needs.setdefault(need, []).append(template.name)
        self.lacking: dict[str, object] = {}

    def features(
        self, view: "TextView", rows: Lists, candidates: Sequence[Any] = (), *, names: bool = True
    ) -> ListFeatures:
        """The features of one list, ``rows``, and the view of it; ``candidates`` are needed only for users' templates.

        names: add the names of features to the table of symbols.
        """
        total = view.first.size - 1
        if self.user and len(candidates) != total:
            raise ValueError(f"{total} texts with {len(candidates)} candidates")
        has = {"source": view.source.size, "segmentation": len(view.spans), "alignment": len(view.points)}
        for need, lacking in self.needs.items():
            if lacking and total and view.words.size and not has[need]:
                token = object()
                if self.lacking.setdefault(need, token) is token:  # only one of several threads is the first
                    log.warning("a list has no %s: %s give no features there", need, ", ".join(lacking))
        hash_of = self.symbols.hash_of if names else quick_hash
        views: dict[Any, tuple[np.ndarray, ...]] = {None: view}
        for look in {family.look for family in self._families if family.look is not None}:
            views[look] = look(rows.texts, hash_of)

        def fire(sink: Sink) -> None:
            for family in self._families:
                check()
                family.fire(views[family.look], sink, family.ids, family.seeds, family.options)

        return self._extract(rows, candidates, self.symbols if names else None, fire)


Feature = Callable[[ListCandidate, "NBest"], Mapping[str, float]]


def feature(function: Feature) -> Callable[[ListCandidate], Mapping[str, float]]:
    """Decorator that makes a template of a function of (candidate, nbest), the candidate's list, to numbers by name.

    The result can be named wherever users' templates can: in ``fit(features=...)``, and by import path in recipes. The
    list has neither references nor gains: where the model works, nobody knows them.
    """
    from rerank.readers.memory.nbest import NBest  # with the formats of a program's lists

    @wraps(function)
    def template(candidate: ListCandidate) -> Mapping[str, float]:
        return function(candidate, NBest(candidate.nbest.id, candidate.nbest.candidates, candidate.source))

    return template


def fired(template: Any, *candidates: str, source: str = "", **fields: Any) -> dict[str, float]:
    """The features that a template (as in recipes) gives the first of some candidates and not all of them, with their
    values: texts, or trees in brackets, with the base scores −1, −2, and so on.

    A single candidate is compared with an empty text, or a tree of one word. ``fields``: others of a ``Lists``.

    >>> fired("Rule", "(NP (DT the) (NN dog))")
    {'NP | → DT NN': 1.0}
    """
    from rerank.features.text.view import make_view  # with what texts alone need

    template, symbols = make_template(template), SymbolTable()
    nothing = "(X (Y z))" if template.content == "trees" else ""
    texts = [text.encode() for text in (*candidates, *[nothing] * (len(candidates) == 1))]
    base = -np.arange(1.0, len(texts) + 1)
    if template.content == "trees":
        extractor = Extractor([template], symbols, centred=False)
        features = extractor.features(parse_brackets(texts, symbols), base)
    else:
        nbest = Lists.one("", "", 1, texts, range(1, len(texts) + 1), **{"scores": base[:, None]} | fields)
        view = make_view(nbest, source.encode(), symbols)
        features = TextExtractor([template], symbols, centred=False).features(view, nbest)
    values = {}
    for i, (first, last) in enumerate(zip(features.symbol_first, features.symbol_last, strict=True)):
        name = " ".join(symbols.text_of_hash(int(h)) or "?" for h in features.symbols[first:last])
        for e in range(features.first[i], features.first[i + 1]):
            if features.candidate[e] == 0:
                values[name] = round(float(features.value[e]), 4)
    return values
