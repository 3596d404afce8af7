"""The interface of a kind of candidates: reading, features, statistics.

Blocks of lists have their features in one go where every template gives columns (``Template.columns``) for whole
blocks, to the bit those that the same lists have one by one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import Registry, nearest
from rerank.data.corpus import offsets
from rerank.data.symbols import SymbolTable, hash_all
from rerank.features.extract import FeatureExtractor, UserTemplate
from rerank.features.sink import ListFeatures, TooLargeError, find_origin, narrow, write_row
from rerank.features.template import EITHER, SETS, Template, make_template
from rerank.kernels.compile import kernel
from rerank.metrics.metric import Metric
from rerank.readers.inputs import Attach, Side, SplitFile, Stretch
from rerank.readers.lists import Lists, one_by_one
from rerank.readers.reader import Problem, ScoreColumns, SkipCount, make_reader, only_utf8
from rerank.readers.texts.text_list import SCORE
from rerank.recipes.recipe import AUTO, UNDERIVED
from rerank.recipes.sections import SplitSettings, TemplateSettings
from rerank.storage.streams import few_lists, in_memory, read_in

T = TypeVar("T")
SelectedTexts = tuple[Mapping[str, bytes], Sequence[bytes]]  # from a list, by selection, empty for none; its references
Description = tuple[dict[str, dict[str, float]], dict[str, str]]  # measures by selection, and signatures of some
MAX_NAMES = 20  # names of score columns in a message
user_templates: Registry[UserTemplate] = Registry("feature")


class BlockFeatures(NamedTuple):
    """The features of L lists, list by list, with their values (E entries)."""

    table: ListFeatures  # the F' different ones, whose values nobody looks at
    times: np.ndarray | None  # int64 [F']: the number of lists in which each of them varies; None: one
    counts: np.ndarray  # int64 [L]: how many each list has
    which: np.ndarray | slice  # int64 [F]: each by its index among the different ones
    entries: np.ndarray  # int64 [F]
    origin: np.ndarray  # float32 [F]
    candidate: np.ndarray  # int32 [E], counted in its list
    value: np.ndarray  # float32 [E]


@kernel
def collect_lists(
    lists: np.ndarray, columns: np.ndarray, centred: bool, relative: bool, row: np.ndarray, counts: np.ndarray,
    which: np.ndarray, entries: np.ndarray, origin: np.ndarray, candidate: np.ndarray, value: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """``sink.collect`` for features that fire once in every candidate, with the values ``columns`` (float64
    [N, F]); returns how many features vary, each in its list, and how many entries they have."""
    feature, entry = 0, 0
    for i in range(lists.shape[0] - 1):
        first, size = lists[i], lists[i + 1] - lists[i]
        values = row[:size]
        for j in range(columns.shape[1]):
            narrow(columns[first : first + size, j], candidate, -1, relative, values)
            count, least = find_origin(values, candidate, -1, centred)
            if count > 0:
                which[feature], entries[feature], origin[feature] = j, count, least
                entry = write_row(values, candidate, -1, least, candidate, value, entry)
                feature += 1
                counts[i] += 1
    return feature, entry


def flat_features(extractor: FeatureExtractor, symbols: SymbolTable, rows: Lists) -> BlockFeatures:
    """The features of lists; the symbols of their names are added to ``symbols``."""
    lists, kinds, full, names, columns = rows.first, list[int](), list[int](), list[list[int]](), list[np.ndarray]()
    for kind, template in enumerate(extractor.templates):
        for name, values in (template.columns(rows, lists) or {}).items():
            names.append(list(map(symbols.hash_of, name)))
            full.append(hash_all(template.seed, *names[-1]))
            kinds.append(kind)
            columns.append(values)
    L, N, F = lists.size - 1, len(rows), len(columns)
    counts, which, entries = np.zeros(L, np.int64), np.empty(L * F, np.int64), np.empty(L * F, np.int64)
    origin, row = np.empty(L * F, np.float32), np.empty(int(np.diff(lists).max(initial=0)), np.float32)
    candidate, value = np.empty(N * F + 1, np.int32), np.empty(N * F + 1, np.float32)
    matrix, out = np.column_stack([np.zeros((N, 0)), *columns]), (counts, which, entries, origin, candidate, value)
    features, entry_count = collect_lists(lists, matrix, extractor.centred, extractor.relative, row, *out)
    which, ends = which[:features], offsets(list(map(len, names)))
    times = np.bincount(which, minlength=F)
    varying = np.flatnonzero(times)
    hashes, nothing = np.array(full, np.uint64)[varying], np.empty(0, np.float32)
    table = ListFeatures(
        hashes | np.uint64(1), hashes, np.array(kinds, np.int32)[varying],
        np.array([symbol for of_one in names for symbol in of_one], np.uint64), ends[:-1][varying], ends[1:][varying],
        ends[:1], nothing.astype(np.int32), nothing, nothing,
    )  # fmt: skip
    return BlockFeatures(
        table, times[varying], counts, (np.cumsum(times > 0) - 1)[which], entries[:features], origin[:features],
        candidate[:entry_count], value[:entry_count],
    )  # fmt: skip


class Pair(NamedTuple):
    """A list with what its candidates are, trees or words and phrases, and what they are measured against; or several,
    all templates of which give columns, with the columns that these look at."""

    nbest: Lists
    content: Any  # what ``features`` reads
    gold: Any = None  # what ``stats`` compares with


class MeasuredLists(NamedTuple):
    """Lists that can be used, with the metric's statistics."""

    pair: Pair
    reference: np.ndarray  # float64 [L, R]
    stats: np.ndarray  # float64 [N, K]


class Content(ABC, Generic[T]):
    """Lists of one kind of candidates; T is what their texts are parsed to.

    ``names`` are those of the templates in the order of their numbers.

    A content that ``keeps_texts`` enters those of all lists in ``symbols``, for the names of features; only one thread
    may use it. One that does not keeps nothing of a list: threads may share it.
    """

    metric: Metric
    names: list[str]
    extractor: FeatureExtractor
    final: Sequence[Any] = ()  # the measures of selections that need their texts
    free: tuple[str, ...] = ()  # the templates of dense scores, whose columns have no penalty
    needs: Mapping[str, list[str]] = {}  # the templates that need what lists may lack, by that: see ``TextExtractor``
    normalize = False  # whether words are brought to one form
    needs_scores = False  # whether lists must have base scores
    unnamed: ScoreColumns | None = None  # the columns of a model that names none; None: all that there are
    user = False  # whether users' functions are among the templates

    def __init__(
        self, kind: Callable[..., Any], content: str, settings: TemplateSettings, *,
        columns: ScoreColumns | None = None, centred: bool | None = None, keeps_texts: bool = True, **more: Any,
    ) -> None:  # fmt: skip
        """kind: of extractor, with ``more`` settings; content: see ``make_templates``; others: see ``content_of``."""
        templates, user = make_templates(settings, content)
        centred = settings.centred if centred is None else centred
        bits = settings.hash_bits or 64
        extractor = kind(templates, SymbolTable(), user=user, centred=centred, bits=bits, **more)
        self.symbols: SymbolTable = extractor.symbols
        self.extractor, self.keeps_texts = extractor, keeps_texts
        extractor.relative, self.user = settings.centred, bool(settings.user)
        self.names, self.free = extractor.names, extractor.free
        self.columns = self.model_columns = columns  # that lists must have, and that they may have besides

    def read(self, data: SplitSettings, split: str) -> Iterator[Lists]:
        """All lists of a split in order with what other files hold for them, bad ones in their places; quick to send
        elsewhere, as nothing is looked into. If the split has several sources, their names precede the ids.
        """
        return one_by_one(chain.from_iterable(items for _, _, items in self._sources(data, split)))

    def read_stretches(
        self, data: SplitSettings, split: str, lists: int, size: int, *, again: bool = False
    ) -> Iterator[Lists | Stretch]:
        """``read``, as many lists at a time as are read at once; large files are stretches, of so many lists and bytes,
        that nobody has read yet, unless it is ``again``."""
        if (few := few_lists()) is not None:
            for block in chain.from_iterable(items for *_, items in self._sources(data, split)):
                yield block.part(0, min(few, block.list_count))
                few -= block.list_count
                if few <= 0:
                    break
            return
        for source, prefix, items in self._sources(data, split):
            file = None
            many = source in in_memory() or bool(data.encoding) or len(data.files_of(source)["nbest"]) > 1
            if not many and (sides := self.beside(data, source)) is not None:
                reader = make_reader(data.reader).for_columns(self.model_columns)
                file = SplitFile.of(reader, data.files_of(source)["nbest"][0], prefix, *sides, again=again)
            yield from items if file is None else file.stretches(lists, size, items)

    def _sources(self, data: SplitSettings, split: str) -> Iterator[tuple[str, str, Iterator[Lists]]]:
        """The sources of a split, what precedes the ids of their lists, and these."""
        sources = data.sources_of(split)
        for source in sources:
            prefix, load = f"{source}/" * (len(sources) > 1), in_memory().get(source)
            items = chain.from_iterable(map(only_utf8, load(self.model_columns, self.normalize))) if load else None
            lists = read_in(data.encoding, items or self.read_source(data, source))
            named = (one.replace(ids=[f"{prefix}{name}" for name in one.ids]) for one in lists)
            yield source, prefix, named if prefix else lists

    def beside(self, data: SplitSettings, source: str) -> tuple[Sequence[Side], Attach] | None:  # noqa: ARG002
        """The files beside the lists of a source, and what adds their entries to a list; None: stretches need more."""
        return None

    @abstractmethod
    def read_source(self, data: SplitSettings, source: str) -> Iterator[Lists]:
        """The lists of one source, which are in files, as many at a time as are read at once."""

    @abstractmethod
    def pair(self, nbest: Lists, count: SkipCount) -> Pair | None:
        """A list with its reference, both parsed and counted; None if it cannot be used."""

    def comparable(self, nbest: Lists) -> Pair | None:
        """A list of a corpus, without its bad candidates, with what these are as far as they are compared with one
        another."""
        return self.pair(nbest, SkipCount("skip"))

    def measure(self, items: Iterable[Lists], count: SkipCount) -> Iterator[MeasuredLists]:
        """The usable lists. Several stay together where they are ``flat``; if something in them is wrong, their halves
        do, down to the list that it is in."""
        for lists in items:
            if lists.list_count == 1 or not self.flat:
                for nbest in lists.each():
                    if (pair := self.pair(nbest, count)) is not None:
                        reference, stats = self.stats(*pair)
                        count.refuse(self.refusal(pair, stats))
                        yield MeasuredLists(pair, reference[None], stats)
            elif (block := self.measure_block(lists)) is not None:
                count.good(block.pair.nbest)
                count.unknown.update(dict.fromkeys(self.unknown(block.pair.nbest), lists.list_count))
                yield block
            else:
                halves = pairwise((0, lists.list_count // 2, lists.list_count))
                yield from self.measure((lists.part(first, last) for first, last in halves), count)

    @property
    def flat(self) -> bool:
        """Whether blocks of lists stay whole unless something in them is wrong: see ``measure_block``."""
        return False

    def measure_block(self, lists: Lists) -> MeasuredLists | None:  # noqa: ARG002
        """Several lists, where all of them can be used, and nothing in them is left out."""
        return None

    @abstractmethod
    def open(self, nbest: Lists) -> tuple[Lists, T]:
        """A list without a reference, minus the candidates that turn out to be bad, and what its candidates are. Raises
        Problem."""

    def without_bad(self, nbest: Lists) -> Lists:
        """A list of a corpus, minus the candidates that turn out to be bad."""
        return self.open(nbest)[0]

    @property
    def column_names(self) -> tuple[str, ...]:
        """The score columns that lists are held to, the base score's first."""
        columns = self.columns or ScoreColumns(())
        base = columns.base or SCORE
        return (base, *(name for name in columns.names if name != base))

    @property
    def live_columns(self) -> tuple[str, ...]:
        """The columns ``column_names`` that scores depend on: the base score's, and what features look at."""
        has_dense = any(name.startswith(("Dense", "Within")) for name in self.free)
        return self.column_names if has_dense or self.user else self.column_names[:1]

    def hold(self, nbest: Lists) -> Lists:
        """Lists with the score columns alone that they are held to, the base score if these are none. Raises Problem
        where one of them is missing, if only in one of its sources, or the base score."""
        if self.needs_scores and nbest.unscored and len(nbest):
            message = f"found no base score; expected {self.column_names[0]!r}, as in the training lists"
            raise nbest.fault(Problem("columns", message), nbest.size)
        if (columns := self.columns) is None or not len(nbest):
            return nbest
        nbest = nbest.with_names() if columns.names else nbest
        own = columns_of(nbest)
        if own == columns:
            return nbest
        parts = {"": (columns.names, own.names)}
        if own.sources.keys() == columns.sources.keys():  # else the lists are put together differently
            parts |= {f" of {source}": (names, own.sources[source]) for source, names in columns.sources.items()}
        for whose, (names, there) in parts.items():
            if lacking := [name for name in names if name not in there]:
                what = f"score column{'s' * (len(lacking) > 1)} {', '.join(map(repr, lacking))}{whose}"
                more = f" and {len(names) - MAX_NAMES} more" * (len(names) > MAX_NAMES) + " from there" * bool(whose)
                message = f"found no {what}; expected {', '.join(names[:MAX_NAMES])}{more}, as in the training lists: "
                problem = Problem("columns", f"{message}does the reader have the options of training?")
                raise nbest.fault(problem, nbest.size)
        if columns.base not in (None, own.base):
            message = f"the base score is {own.base!r}; expected {columns.base!r}, as in the training lists: "
            raise nbest.fault(Problem("columns", f"{message}set the reader's option base"), nbest.size)
        indices = [nbest.names.index(name) for name in columns.names] or [nbest.column]
        return nbest.replace(names=columns.names, scores=nbest.scores[:, indices], column=indices.index(nbest.column))

    def unknown(self, nbest: Lists) -> tuple[str, ...]:
        """The score columns of lists that are not those of the model; the base score is none of them."""
        columns = self.model_columns or self.unnamed
        if columns is None or not len(nbest) or (nbest.names == columns.names and not nbest.others):
            return ()
        names = (*nbest.names[: nbest.column], *nbest.names[nbest.column + 1 :], *nbest.others)
        return tuple(name for name in names if name not in columns.names)

    def block_features(self, pair: Pair) -> BlockFeatures:
        """The features of lists."""
        if isinstance(pair.content, Lists):
            return flat_features(self.extractor, self.symbols, pair.content)
        one = self.features(pair.nbest, pair.content)
        counts, entries = np.array([one.hashes.size]), np.diff(one.first)
        return BlockFeatures(one, None, counts, slice(None), entries, one.origin, one.candidate, one.value)

    def features(self, nbest: Lists, content: T) -> ListFeatures:
        """The features of a list."""
        try:
            return self.extract(nbest, content)
        except MemoryError:
            message = f"{len(nbest):,} candidates need more memory than there is"
        except TooLargeError as error:
            message = error.message
        message += "; keep fewer candidates per list, or name fewer templates"
        raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id)

    @abstractmethod
    def extract(self, nbest: Lists, content: T) -> ListFeatures:
        """``features`` without the list's name in its errors."""

    @abstractmethod
    def stats(self, nbest: Lists, content: T, gold: Any) -> tuple[np.ndarray, np.ndarray]:
        """The metric's statistics of the reference (float64 [R]) and of every candidate (float64 [N, K])."""

    @abstractmethod
    def text_stats(self, pair: Pair, text: bytes) -> np.ndarray:
        """The metric's statistics (float64 [K]) of a text that need not be a candidate of the list."""

    @abstractmethod
    def pairwise(self, nbest: Lists, content: T, indices: Sequence[int]) -> np.ndarray:
        """float64 [n, n]: what the candidates at ``indices`` gain (rows) if each of them is the reference (columns)."""

    def refusal(self, pair: Pair, stats: np.ndarray) -> str:  # noqa: ARG002
        """The reason why none of a list's candidates (with statistics float64 [N, K]) counts in scores; else ""."""
        return ""

    def check(self, count: SkipCount) -> None:
        """Stop if so many lists of a split are refused that its references cannot be right."""

    @abstractmethod
    def gold_text(self, pair: Pair) -> str:
        """The reference of a list as a report shows it."""

    def describe(self, split: str, names: Sequence[str], lists: Iterable[SelectedTexts]) -> Description:  # noqa: ARG002
        """The measures ``final`` of selections with these ``names`` from the lists of a corpus."""
        return {}, {}


def make_templates(settings: TemplateSettings, content: str) -> tuple[list[Template], dict[str, UserTemplate]]:
    """The templates that a recipe (or a model) names for ``content`` ("trees" or "texts"), and users' functions."""
    name = UNDERIVED if settings.set == AUTO else settings.set  # where no list has been seen: see ``resolve_features``
    if name is not None and name not in SETS:
        raise RecipeError(f"unknown template set {name!r}; {nearest(name, [*SETS, AUTO])}", key="features.set")
    if not name and not settings.templates and not settings.user and settings.set is None:
        message = "no template is named; name a set or templates (set: base is the base score alone)"
        raise RecipeError(message, key="features")
    try:
        templates = [make_template(spec) for spec in (SETS[name] if name else [])]
        in_set = {template.name for template in templates}  # a set is often the default: what it has may be named too
        templates += [more for more in map(make_template, settings.templates) if more.name not in in_set]
    except RecipeError as error:
        raise RecipeError(error.message, key=error.key or "features.templates") from None
    for template in templates:
        if template.content not in (content, EITHER):
            message = f"template {template.kind} looks at {template.content}; these lists hold"
            raise RecipeError(f"{message} {content}", key="features")
    return templates, {name: user_templates.get(path) for name, path in settings.user.items()}


def columns_of(nbest: Lists) -> ScoreColumns:
    """The columns of a list."""
    return ScoreColumns(nbest.names, nbest.names[nbest.column] if nbest.names else None, nbest.by_source)
