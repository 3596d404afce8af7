"""Lists and candidates that cannot be used: why that is, and what becomes of them. They are counted, or an error that
says how to go on.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, Literal, TypeVar

import numpy as np

from rerank.base.encoding import amount, plain
from rerank.base.errors import DataError, RecipeError
from rerank.data.trees import changes

NUL = "a NUL byte; the file is damaged or not a text file"
UNJUDGED = "unjudged"  # the reason of lists that are left out whatever becomes of bad ones
COST_SHARE, MIN_COST_LISTS = 0.9, 10  # the share of lists that tells costs from scores, and the least number of lists
OnBadList = Literal["error", "skip"]
T = TypeVar("T")
U = TypeVar("U")


class Problem(DataError):  # noqa: N818 - a value as often as an error
    """The reason why a list or a candidate cannot be used. A format gives the reason; ``at`` adds which list or
    candidate it is.

    Parameters
    ----------
    reason: one of the table in docs/formats.md.
    message: what was found and what was expected.
    path, line: where it is; by default the place of the list or candidate.
    list_id: the list.
    index: the candidate's in its list, from 0; None for the list as a whole.
    advice: what to do about it, which ``with_advice`` adds to the message.
    size: the number of candidates of the list, if it is known.
    """

    keys: tuple[str, ...] = ()  # where the fault is in an object of a candidate

    def __init__(
        self, reason: str, message: str, line: int | None = None, *, path: str | None = None,
        list_id: str | None = None, index: int | None = None, advice: str = "", size: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message, path=path, line=line, list_id=list_id)
        self.reason, self.index, self.advice, self.size = reason, index, advice, size

    def at(self, list_id: str, path: str, line: int, index: int | None = None, *, size: int | None = None) -> "Problem":
        """The problem of a list or candidate, with its place where the format has named no other."""
        line, path = self.line or line, self.path or path
        return Problem(
            self.reason, self.message, line, path=path, list_id=list_id, index=index, advice=self.advice, size=size
        )

    @property
    def id(self) -> str:
        """The id of the list."""
        return self.list_id or ""

    @property
    def name(self) -> str:
        """An id for a list that takes the place of a bad one, different from all others in the file."""
        return line_id(self.line or 0) if self.reason in ("header", "duplicate id") else self.id

    def with_advice(self) -> "Problem":
        """The same as an error that ends with advice: its own or else how to continue without it."""
        what, error = "list" if self.index is None else "candidate", copy(self)
        without = f"fix or remove the {what}, or leave out such {what}s with --on-bad-list skip (in a recipe: "
        without += "data.on_bad_list: skip); if most are like it, check that the file is the one you mean"
        message = f"{self.message}; {self.advice or without}"
        error.args = DataError(message, path=self.path, line=self.line, list_id=self.list_id).args
        return error


def line_id(line: int) -> str:
    """A substitute for the id of a list whose own is unknown."""
    return f"line-{line}"


@dataclass
class SkipCount:
    """The policy for bad lists and candidates, and counts of those that were found, and of what is odd."""

    on_bad_list: OnBadList = "error"
    lists: int = 0
    candidates: int = 0
    duplicates: int = 0
    empty: int = 0  # lists without candidates
    reasons: Counter[str] = field(default_factory=Counter)  # bad lists by reason,
    first: dict[str, str] = field(default_factory=dict)  # and the first message for each, with its place
    candidate_reasons: Counter[str] = field(default_factory=Counter)  # the same for candidates left out of good lists
    first_candidates: dict[str, str] = field(default_factory=dict)
    absent: Counter[str] = field(default_factory=Counter)  # candidates whose value is 0 because it lacks, by column
    unknown: Counter[str] = field(default_factory=Counter)  # lists with a column the model does not know, by column
    varying_lists: int = 0  # lists in which base scores differ,
    lowest_first: int = 0  # and those among them whose first candidate has the lowest
    normal_forms: Counter[str] = field(default_factory=Counter)  # words brought to these, by side, where asked for
    refusals: int = 0  # usable lists without a candidate that has the words of the gold tree,
    first_refusal: str = ""  # and what there is to say about the first of them

    def __post_init__(self) -> None:
        check_choice("on_bad_list", self.on_bad_list, ("error", "skip"))
        for key in ("reasons", "candidate_reasons", "absent", "unknown", "normal_forms"):  # may come from JSON
            setattr(self, key, Counter(getattr(self, key)))

    @property
    def skipped(self) -> int:
        """Number of bad lists."""
        return self.reasons.total()

    @property
    def skipped_candidates(self) -> int:
        """Number of candidates that were left out of good lists."""
        return self.candidate_reasons.total()

    @property
    def like_costs(self) -> bool:
        """Whether the first candidate of nearly every list has the lowest base score."""
        return self.varying_lists >= MIN_COST_LISTS and self.lowest_first >= COST_SHARE * self.varying_lists

    def good(self, lists: Any, changes: Mapping[str, int] | None = None) -> None:
        """Count usable ``Lists``, a type that knows of problems, the candidates left out, and words that have been
        ``changes``, by side."""
        for problem in chain(*lists.side("bad")):
            self._skip(problem, self.candidate_reasons, self.first_candidates)
        self.lists += lists.list_count
        self.candidates += len(lists)
        self.duplicates += sum(lists.side("duplicates"))
        self.empty += int(np.count_nonzero(np.diff(lists.first) == 0))
        self.normal_forms.update(changes or {})
        for absent in lists.side("absent"):
            self.absent.update(absent)
        if len(lists):
            base, first = lists.base, lists.first[:-1]
            first = first[first < lists.first[1:]]  # of lists with candidates
            lowest, highest = np.minimum.reduceat(base, first), np.maximum.reduceat(base, first)
            self.varying_lists += int(np.sum(lowest < highest))
            self.lowest_first += int(np.sum((base[first] == lowest) & (lowest < highest)))

    def bad(self, problem: Problem) -> None:
        """Count a bad list."""
        self._skip(problem, self.reasons, self.first)

    def refuse(self, message: str) -> None:
        """Count a usable list as refused, for a reason with its place; no reason counts nothing."""
        self.refusals, self.first_refusal = self.refusals + bool(message), self.first_refusal or message

    def nothing(self, path: str) -> DataError:
        """The message where a file has no usable list: the first bad ones, if there are any."""
        first = "".join(f"; skipped for {reason!r}, first {message}" for reason, message in self.first.items())
        return DataError(f"no usable list in the file{first or ': none has candidates'}", path=path)

    def _skip(self, problem: Problem, reasons: Counter[str], first: dict[str, str]) -> None:
        if self.on_bad_list == "error" and problem.reason != UNJUDGED:
            raise problem.with_advice()
        reasons[problem.reason] += 1
        first.setdefault(problem.reason, str(problem))

    def add(self, more: "SkipCount") -> None:
        """Add the counts of the lists that follow."""
        for key, theirs in vars(more).items():
            own = getattr(self, key)
            if isinstance(theirs, Counter):
                own.update(theirs)
            elif isinstance(theirs, dict):
                setattr(self, key, theirs | own)
            else:
                setattr(self, key, own + theirs if isinstance(theirs, int) else own or theirs)

    def warn(self) -> None:
        """Log what was left out, and what is odd."""
        for line in str(self).splitlines()[1:]:
            logging.getLogger("rerank").warning("%s", line)

    def as_dict(self) -> dict[str, Any]:
        """The counts for reports and provenance; what is odd only where there is something."""
        odd = {
            "refused": self.refusals,
            "absent": dict(sorted(self.absent.items())),
            "unknown_columns": dict(sorted(self.unknown.items())),
            "lowest_first": {"lists": self.lowest_first, "of": self.varying_lists} if self.like_costs else {},
            "normalized": dict(self.normal_forms),
        }
        return {
            "lists": self.lists,
            "candidates": self.candidates,
            "duplicates": self.duplicates,
            "skipped": dict(sorted(self.reasons.items())),
            "skipped_candidates": dict(sorted(self.candidate_reasons.items())),
            **{key: counts for key, counts in odd.items() if counts},
        }

    def __str__(self) -> str:
        totals = f"{amount(self.lists, 'list')}, {amount(self.candidates, 'candidate')}"
        lines = [f"{totals}, {self.duplicates:,} of them duplicates"]
        for reasons, first, what in (
            (self.reasons, self.first, "list"),
            (self.candidate_reasons, self.first_candidates, "candidate"),
        ):
            for reason, count in reasons.most_common():
                lines.append(f"skipped {amount(count, what)} ({reason}); the first: {first[reason]}")
        if self.normal_forms:
            lines.append(changes(self.normal_forms))
        if self.refusals:
            without = "without a candidate that has the words of its gold tree, left out of the scores"
            lines.append(f"{amount(self.refusals, 'list')} {without}; the first: {self.first_refusal}")
        for column, count in sorted(self.absent.items()):
            lines.append(f"{amount(count, 'candidate')} without a value of the score column {column!r}: it is 0 there")
        if self.unknown:
            columns = f"{amount(len(self.unknown), 'score column')} of these lists alone, not of the training lists"
            lines.append(f"{columns}: {', '.join(sorted(self.unknown))}")
        if self.like_costs:
            share = f"{100 * self.lowest_first / self.varying_lists:.0f} % of the lists"
            advice = "if these are costs, set data.reader.scores: cost (or score, where it is cost)"
            lines.append(f"the first candidate has the lowest base score in {share}; {advice}")
        return "\n".join(map(plain, lines))


def filter_usable(items: Iterable[T], take: Callable[[T, SkipCount], U | None], count: SkipCount) -> Iterator[U]:
    """The results of ``take`` for lists (or for lists and what goes with them), where it has one; it counts a list as
    good or bad."""
    return (result for item in items if (result := take(item, count)) is not None)


@cache
def say_once(message: str, level: int = logging.INFO) -> None:
    """Log a line, once for all times that a file is read."""
    logging.getLogger("rerank").log(level, "%s", message)


def check_choice(key: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse an option that is not one of ``choices``."""
    if value not in choices:
        raise RecipeError(f"found {value!r}; expected {' or '.join(map(repr, choices))}", key=key)
