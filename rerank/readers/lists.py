"""Lists of candidates as their reader gives them, and candidates as users see them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError
from rerank.data.corpus import offsets
from rerank.data.symbols import SymbolTable
from rerank.data.trees import TRACE, normal_text, parse_brackets, to_nltk
from rerank.readers.problems import Problem

if TYPE_CHECKING:
    import nltk  # takes a second and 95 MB: only where a user asks for its trees

# What each list may have besides its candidates, and what it has otherwise.
OF_LIST: Mapping[str, Any] = {
    "source": None,  # the input (bytes)
    "references": (),  # bytes each
    "gold": None,  # the gold tree, a SentenceText
    "missing_grades": (),  # grades of documents that should be in the list, but are not
    "missing": None,  # the Problem why an empty list takes the place of one that should be there
    "raw": None,  # what the reader needs to write it back; has ``select`` if by candidate
    "bad": (),  # Problems of candidates that were left out
    "duplicates": 0,  # candidates that repeat an earlier one (or did, where they are dropped)
    "absent": {},  # how many values are 0 because they are missing, by column
    "problem": None,  # the Problem why the list was left out, which has no candidates here then
}
OF_CANDIDATES = "texts", "lines", "scores", "originals", "answers", "segmentation", "alignment"  # N values each
T = TypeVar("T")
NOTHING: Mapping[str, float] = {}
BLOCK_LISTS = 1 << 11  # lists in a block
GAIN = "gain"  # the score column that holds gains
ROOTS = ("", "TOP", "S1", "ROOT")  # labels of roots, which say nothing
_ROOTS = [[label.encode()] for label in ROOTS if label]
PRETERMINAL = re.compile(r"\(\s*([^\s()]*)\s+([^\s()]+)\s*\)")


class Candidate:
    """A candidate: a text or a tree, and the numbers that are known of it.

    Parameters
    ----------
    text: the text; for a parse, its tree in brackets.
    score: the base score, the generator's own; higher is better. None if there is none.
    columns: numbers by name that every candidate has, such as the scores of other models.
    features: numbers by name that few candidates have (sparse features); the others have 0.
    tree: in place of the text, a parse as an ``nltk.Tree`` or in brackets.
    segmentation: which words of the source gave which words of the text, ``5-7=5 8=6-7``; None if that is unknown.
    alignment: which words of source and text belong together, ``0-0 2-1``; None if that is unknown.
    answer: what the text comes to, such as ``42``: candidates with equal answers vote together; None or empty if it has
        none.

    Raises
    ------
    TypeError: both a text and a tree, or neither.
    """

    def __init__(
        self,
        text: str | None = None,
        score: float | None = None,
        columns: Mapping[str, float] = NOTHING,
        features: Mapping[str, float] = NOTHING,
        *,
        tree: "nltk.Tree | str | None" = None,
        segmentation: str | None = None,
        alignment: str | None = None,
        answer: str | None = None,
    ) -> None:
        if (text is None) == (tree is None):
            raise TypeError("expected a text or a tree" + ("" if text is None else ", found both"))
        self.text = str(tree) if text is None else text  # bytes that are not UTF-8 are surrogate escapes
        self.score, self.columns, self.features = score, columns, features
        self.segmentation, self.alignment, self.answer = segmentation, alignment, answer

    @property
    def tokens(self) -> list[str]:
        """The words of the tree, without traces; of a text, what is between white space."""
        if self.text.lstrip().startswith("("):
            return [word for tag, word in PRETERMINAL.findall(self.text) if tag != TRACE]
        return self.text.split()

    @property
    def tree(self) -> "nltk.Tree":
        """The parse tree.

        Raises
        ------
        DataError: the text is not a tree, or the tree is too deep for nltk.
        """
        symbols = SymbolTable()
        return to_nltk(parse_brackets([encoded(self.text)], symbols), 0, symbols)

    def __repr__(self) -> str:
        numbers = {"score": self.score, "columns": dict(self.columns), "features": dict(self.features)}
        fields = "".join(f", {name}={value!r}" for name, value in numbers.items() if value or value == 0.0)
        return f"Candidate({self.text!r}{fields})"


class ListCandidate(Candidate):
    """A candidate of the list ``nbest``, made when asked for. ``index`` is its place there, from 0."""

    def __init__(self, nbest: "Lists", index: int) -> None:
        self.nbest, self.index = nbest, index

        def part(texts: Sequence[bytes | None] | None) -> str | None:
            return None if texts is None or (text := texts[index]) is None else decoded(text)

        super().__init__(decoded(nbest.original(index)), float(nbest.base[index]), answer=part(nbest.answers))
        self.segmentation = part(nbest.segmentation)
        self.alignment = None if nbest.ended else part(nbest.alignment)  # ends of sentences would be words
        rows, values = nbest.with_names(), self.scores.tolist()
        self.columns = {name: values[k] for k, name in enumerate(rows.names) if k != rows.column}
        if (sparse := nbest.sparse) is not None:
            span, features = slice(*sparse.first[index : index + 2].tolist()), dict[str, float]()
            for key, value in zip(map(decoded, sparse.names[span]), sparse.values[span].tolist(), strict=True):
                features[key] = features.get(key, 0.0) + value  # a name may come twice on a line
            self.features = features

    @property
    def scores(self) -> np.ndarray:
        """float64 [K]: all scores that the file gives."""
        return np.asarray(self.nbest.scores[self.index])

    @property
    def named_scores(self) -> dict[str, float]:
        """The scores by the names of their columns."""
        return dict(zip(self.nbest.with_names().names, self.scores.tolist(), strict=True))

    @property
    def tokens(self) -> list[str]:
        """The words of a tree, without traces; of a text, what is between ASCII white space, as in the built-in
        templates."""
        if self.nbest.of_trees:
            return super().tokens
        return [decoded(word) for word in self.nbest.texts[self.index].split()]

    @property
    def source(self) -> str | None:
        """The input of a text, if it is known."""
        return None if self.nbest.source is None else decoded(self.nbest.source)

    @property
    def tree(self) -> "nltk.Tree":
        nbest, line = self.nbest, self.nbest.lines[self.index]
        try:
            return super().tree
        except DataError as error:
            raise DataError(error.message, path=nbest.path, line=line, list_id=nbest.id) from None


class Candidates(Sequence[ListCandidate]):
    """The candidates of a list as a sequence; each is made when asked for."""

    def __init__(self, nbest: "Lists") -> None:
        self.nbest = nbest

    def __len__(self) -> int:
        return len(self.nbest.texts)

    @overload
    def __getitem__(self, index: int) -> ListCandidate: ...
    @overload
    def __getitem__(self, index: slice) -> list[ListCandidate]: ...
    def __getitem__(self, index: int | slice) -> ListCandidate | list[ListCandidate]:
        selection = range(len(self))[index]
        return ListCandidate(self.nbest, selection) if isinstance(selection, int) else [self[i] for i in selection]


class SparseScores(NamedTuple):
    """Named values of candidates that most candidates do not have."""

    first: np.ndarray  # int64 [N + 1]: those of candidate y are first[y]..first[y + 1]
    names: list[bytes]  # one per entry
    values: np.ndarray  # float64, one per entry

    def select(self, indices: Sequence[int]) -> "SparseScores":
        """The values of the candidates at ``indices``."""
        spans = [range(int(self.first[i]), int(self.first[i + 1])) for i in indices]
        flat = [entry for one in spans for entry in one]
        return SparseScores(offsets(list(map(len, spans))), [self.names[entry] for entry in flat], self.values[flat])

    def part(self, begin: int, end: int) -> "SparseScores | None":
        """The values of the candidates from ``begin`` to ``end``; None if they have none."""
        first = self.first[begin : end + 1]
        own = slice(int(first[0]), int(first[-1]))
        return SparseScores(first - own.start, self.names[own], self.values[own]) if own.stop > own.start else None


def _besides(name: str) -> Any:
    """The value that a list alone has under a name in ``sides``."""

    def value(lists: "Lists") -> Any:
        values = lists.sides.get(name)
        return OF_LIST[name] if values is None else values[0]

    return property(value)


@dataclass(frozen=True, eq=False)
class Lists:
    """L whole lists of N candidates in all, as a file or a program has them: the one form between these and a corpus.

    Of a list alone, its ``id``, its ``line`` and the names in ``OF_LIST`` are attributes too.
    """

    ids: Sequence[str]  # L names
    path: str  # the file
    starts: Sequence[int]  # the L lines where they begin
    texts: list[bytes]  # the N candidates as they are compared, without white space around them
    lines: Sequence[int]  # the N lines of the texts
    scores: np.ndarray  # float64 [N, K]: the scores of every candidate, in the file's order
    first: np.ndarray  # int64 [L + 1]: candidates of list i are first[i]..first[i + 1]
    column: int = 0  # which of the K is the base score
    form: str = ""  # the variant of the format, for writing it back
    of_trees: bool = False  # whether the candidates are trees
    names: tuple[str, ...] = ()  # of the K score columns; empty where the format has none
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the columns of each source, if several
    others: tuple[str, ...] = ()  # sparse features that look like columns but were not asked for
    unscored: bool = False  # whether all base scores are 0 because there are none
    ended: bool = False  # whether alignments may name the end of a sentence, after its last word
    roles: Any = None  # what keys were taken for (Roles), where that had to be found
    sparse: SparseScores | None = None  # sparse features that the file holds
    segmentation: list[bytes] | None = None  # N derivations, ``source span=target span ...``
    alignment: list[bytes] | None = None  # N word alignments, ``source-target ...``
    answers: Sequence[bytes | None] | None = None  # what the N candidates come to, None for one without
    originals: Sequence[bytes] | None = None  # the N candidates as the file has them; None if all are the ``texts``
    sides: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # L values each, by the names in ``OF_LIST``

    source, references, gold, missing_grades = map(_besides, ("source", "references", "gold", "missing_grades"))
    missing, raw, bad, duplicates = map(_besides, ("missing", "raw", "bad", "duplicates"))
    absent, problem = _besides("absent"), _besides("problem")

    @staticmethod
    def one(
        id: str, path: str, line: int, texts: list[bytes], lines: Sequence[int], scores: np.ndarray, column: int = 0,
        **fields: Any,
    ) -> "Lists":  # fmt: skip
        """A list alone; ``fields`` are others, and what it has besides."""
        sides = {key: (fields.pop(key),) for key in OF_LIST.keys() & fields.keys()}
        first = np.array([0, len(texts)])
        return Lists([id], path, [line], texts, lines, scores, first, column, sides=sides, **fields)

    @staticmethod
    def of(problem: Problem) -> "Lists":
        """A list that is left out because of a problem."""
        return Lists.one(problem.id, problem.path or "", problem.line or 0, [], [], np.zeros((0, 1)), problem=problem)

    def __len__(self) -> int:
        """The number of candidates."""
        return len(self.texts)

    @property
    def list_count(self) -> int:
        """The number of lists."""
        return len(self.ids)

    @property
    def id(self) -> str:
        """The name of a list alone."""
        return self.ids[0]

    @property
    def line(self) -> int:
        """The line where a list alone begins."""
        return self.starts[0]

    def side(self, name: str) -> Sequence[Any]:
        """The value of each list under a name."""
        values = self.sides.get(name)
        return [OF_LIST[name]] * self.list_count if values is None else values

    def part(self, first: int, last: int) -> "Lists":
        """Lists first..last - 1."""
        begin, end = self.first[[first, last]].tolist()
        values = {name: getattr(self, name) for name in OF_CANDIDATES}
        fields = {name: value[begin:end] for name, value in values.items() if value is not None}
        return self.replace(
            ids=self.ids[first:last], starts=self.starts[first:last], first=self.first[first : last + 1] - begin,
            sides={key: of_list[first:last] for key, of_list in self.sides.items()},
            sparse=self.sparse and self.sparse.part(begin, end), **fields,
        )  # fmt: skip

    def each(self) -> Iterator["Lists"]:
        """The lists one by one."""
        if self.list_count == 1:
            yield self
            return
        for i in range(self.list_count):
            one = self.part(i, i + 1)
            originals = None if one.originals == one.texts else one.originals
            yield one.replace(originals=originals, answers=one.answers and answers_of(one.answers))

    def original(self, y: int) -> bytes:
        """The text of a candidate as the file has it, with the white space around it."""
        return (self.texts if self.originals is None else self.originals)[y]

    @property
    def base(self) -> np.ndarray:
        """float64 [N]: the base score, the generator's own; higher is better."""
        return np.asarray(self.scores[:, self.column])

    @property
    def by_source(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of every source; the name of a single source is its format, or ``parses``."""
        return self.sources or {"parses" if self.of_trees else self.form or "lists": self.names}

    def with_names(self) -> "Lists":
        """With names for the score columns. Where the format has none the base score is ``score``, and any other
        ``number_2`` if it is the second of its line."""
        if self.names:
            return self
        columns = range(self.scores.shape[1])
        return self.replace(names=tuple("score" if k == self.column else f"number_{k + 1}" for k in columns))

    def alike(self, *, normal: bool = False) -> Sequence[bytes]:
        """A text for every candidate; of trees, equal for equal ones: white space and the label of the root do not
        count, nor, in normal form, does the way of writing words."""
        if not self.of_trees:
            return self.texts
        texts = map(normal_text, self.texts) if normal else self.texts
        trees = (text.replace(b"(", b" ( ").replace(b")", b" ) ").split() for text in texts)
        return [b" ".join([b"(", *tree[2:]] if tree[1:2] in _ROOTS else tree) for tree in trees]

    @property
    def candidates(self) -> Candidates:
        """The candidates of a list alone as objects, each made when asked for."""
        return Candidates(self)

    def select(self, indices: Sequence[int], **changes: Any) -> "Lists":
        """A list alone with the candidates at ``indices``, in that order; ``changes`` are other fields of the list."""
        columns = ((name, getattr(self, name)) for name in OF_CANDIDATES if name != "scores")
        fields: dict[str, Any] = {name: [values[i] for i in indices] for name, values in columns if values is not None}
        fields |= {"scores": self.scores[list(indices)], "sparse": self.sparse and self.sparse.select(indices)}
        if hasattr(raw := self.raw, "select"):
            fields["raw"] = raw.select(indices)
        return self.replace(**fields, **changes)

    def replace(self, **changes: Any) -> "Lists":
        """With other values of some fields or, of a list alone, of what it has besides: ``dataclasses.replace`` in a
        tenth of its time."""
        if besides := {key: (changes.pop(key),) for key in [*changes] if key in OF_LIST}:
            changes["sides"] = {**self.sides, **besides}
        if "id" in changes:
            changes["ids"] = [changes.pop("id")]
        if "first" not in changes and len(texts := changes.get("texts", self.texts)) != len(self.texts):
            changes["first"] = np.array([0, len(texts)])
        copy = object.__new__(Lists)
        vars(copy).update(vars(self), **changes)
        return copy

    def without_raw(self) -> "Lists":
        """The lists without what is needed only to write them back."""
        return self.replace(sides={key: values for key, values in self.sides.items() if key != "raw"})

    @property
    def indices(self) -> list[int]:
        """The place of every candidate among all of the list in the file, bad ones included (unless duplicates are
        dropped)."""
        gaps = {problem.index for problem in self.bad}
        return [index for index in range(len(self) + len(gaps)) if index not in gaps]

    @property
    def size(self) -> int | None:
        """The number of candidates in the file, bad ones included (unless duplicates are dropped); None if a list that
        was left out does not tell."""
        return self.problem.size if self.problem is not None else len(self) + len(self.bad)

    def fault(self, problem: Problem, size: int | None = None) -> Problem:
        """A problem as that of a list alone, with its place."""
        return problem.at(self.id, self.path, self.line, size=size)

    def leave_out(self, problem: Problem, size: int | None = None) -> "Lists":
        """The list as one that is left out because of a problem."""
        return Lists.of(self.fault(problem, size))

    def without(self, problems: Mapping[int, Problem]) -> "Lists":
        """The list without the candidates that have problems (by place in this list), which is left out if none is
        left."""
        if not problems:
            return self
        indices, entries = self.indices, sorted(problems.items())
        new = [problem.at(self.id, self.path, self.lines[i], indices[i]) for i, problem in entries]
        every = (*self.bad, *new)
        if len(problems) == len(self):
            return self.leave_out(every[0], len(every))
        return self.select([i for i in range(len(self)) if i not in problems], bad=every)

    def count_repeats(self, duplicates: Literal["keep", "drop"]) -> "Lists":
        """The list with its repeated candidates counted and, under "drop", without them; those without a text, such as
        rows of numbers alone, repeat nothing."""
        count = repeats_of(self.texts)
        if not count or duplicates == "keep":
            return self.replace(duplicates=count)
        first = {text or y: y for y, text in reversed([*enumerate(self.texts)])}
        return self.select(sorted(first.values()), duplicates=count)

    def open_usable(self, look: Callable[["Lists"], T]) -> tuple["Lists", T]:
        """The list and what ``look`` finds in it, without the candidates that have a Problem of their own; a Problem if
        all have one."""
        try:
            return self, look(self)
        except Problem as whole:
            problems = {}
            for y in range(len(self)):
                try:
                    look(self.select([y]))
                except Problem as problem:
                    problems[y] = problem
            if not problems:
                raise whole from None
        return self.without(problems).sound().open_usable(look)

    def sound(self) -> "Lists":
        """The list; a Problem if it was left out."""
        if self.problem is not None:
            raise self.problem
        return self


def answers_of(texts: Sequence[bytes | None]) -> list[bytes | None] | None:
    """The answers of all candidates, None for those with an empty one; None if no candidate has any."""
    return [text or None for text in texts] if any(texts) else None


def answer_numbers(nbest: Lists) -> np.ndarray:
    """int32 [N]: the answers of a list as numbers, equal for equal ones; -1 for none."""
    numbers: dict[bytes | None, int] = {None: -1}
    answers = nbest.answers or [None] * len(nbest)
    return np.array([numbers.setdefault(answer, len(numbers) - 1) for answer in answers], np.int32)


def plain_texts(texts: Sequence[Any]) -> list[bytes] | None:
    """Texts in UTF-8, as they stand; None if one is no text, or has what UTF-8 or a list has not."""
    try:
        utf8 = "\0".join(texts).encode().split(b"\0")
    except (TypeError, UnicodeEncodeError):
        return None
    return utf8 if len(utf8) == len(texts) else None


def strip_texts(originals: list[bytes]) -> tuple[list[bytes], list[bytes] | None]:
    """The ``texts`` of a list, and those that are ``originals`` where any is not the same."""
    texts = list(map(bytes.strip, originals))  # what has no white space around it is not copied
    return texts, None if texts == originals else originals


def repeats_of(texts: Sequence[bytes]) -> int:
    """The number of texts that repeat an earlier one; those that are empty, as of rows of numbers alone, repeat
    nothing."""
    different = set(texts)
    return len(texts) - len(different) - (max(0, texts.count(b"") - 1) if b"" in different else 0)


def first_with_candidates(items: Iterable[Lists]) -> tuple[Lists | None, Iterator[Lists]]:
    """The first lists among which one has candidates, None if none has; and all ``items``, which are gone through
    once."""
    head, rest = list[Lists](), iter(items)
    for lists in rest:
        head.append(lists)
        if len(lists):
            return lists, chain(head, rest)
    return None, iter(head)


def one_by_one(items: Iterable[Lists]) -> Iterator[Lists]:
    """The lists of a stream one by one."""
    return chain.from_iterable(lists.each() for lists in items)
