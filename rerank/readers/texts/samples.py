"""The data that objects hold on the samples of a language model besides numbers: scores of their steps, how they ended,
whose they are."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rerank.base.errors import RecipeError
from rerank.readers.problems import Problem
from rerank.readers.score_columns import check_names
from rerank.readers.texts.json_lines import JsonReader, number_of, shown

MOST = float(np.finfo(np.float32).max)  # of a feature's value
FINISH, CUT = "finish_reason", "finish_length"  # how a sample ended, and the column: whether at the limit of its length
LIMITS = ("length", "max_tokens", "max_output_tokens", "MAX_TOKENS", "incomplete")  # as servers call it


def product(values: Sequence[float]) -> float:
    """The product, cut to what a feature can hold; for numbers that are no probabilities it may be large."""
    return 0.0 if 0.0 in values else max(-MOST, min(math.prod(values), MOST))


STEPS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "mean": lambda values: math.fsum(values) / len(values),
    "last": lambda values: values[-1],
    "prod": product,
}


@dataclass(frozen=True)
class SampleReader(JsonReader):
    """A reader of samples, each with what an object says of it.

    Parameters
    ----------
    duplicates, ids: see ``JsonReader``.
    steps: the columns that scores of steps give, ``prm:min`` for the least under ``prm``: some of min, mean, last and
        prod.
    labels: the keys of texts, such as ``model``, that are sparse features: ``model=a``.
    """

    steps: tuple[str, ...] = tuple(STEPS)
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.labels, "labels")
        check_names(self.steps, "steps")
        if unknown := set(self.steps) - set(STEPS):
            raise RecipeError(f"found {min(unknown)!r}; expected some of {', '.join(STEPS)}", key="steps")

    def derived(self, entry: Mapping[str, Any], stepped: Iterable[str], k: int = 0) -> dict[str, float]:
        """The numbers of ``derived`` that are asked for."""
        return derived(entry, stepped, self.steps, k)

    def labelled(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        """The sparse features that the texts of a candidate are."""
        if not self.labels:
            return ()
        pairs = ((key, entry.get(key)) for key in self.labels)
        return tuple(f"{key}={value}" for key, value in pairs if isinstance(value, str) and value)


def derived(
    entry: Mapping[str, Any], stepped: Iterable[str], steps: Iterable[str] = STEPS, k: int = 0
) -> dict[str, float]:
    """The numbers that follow from how candidate ``k`` ended, and from scores of its steps under the keys ``stepped``.
    Raises Problem."""
    numbers = {CUT: _is_cut(entry[FINISH])} if FINISH in entry else {}
    for key in stepped:
        if key in entry:
            values = entry[key]
            if not isinstance(values, list) or not values:
                found = "an empty list" if values == [] else shown(values)
                message = f"found {found} as {key!r} of candidate {k}; expected the scores of its steps, numbers"
                raise Problem("columns", message)
            values = [number_of(value, f"a score under {key!r} of candidate {k}", "columns") for value in values]
            numbers |= {f"{key}:{name}": STEPS[name](values) for name in steps}
    return numbers


def stepped(entries: Sequence[Any], but: str = "") -> tuple[str, ...]:
    """The keys under which candidates have scores of their steps: lists of numbers which, unlike ids of tokens, are not
    all whole. but: a key that means something else."""
    pairs = (pair for entry in entries if isinstance(entry, dict) for pair in entry.items())
    return tuple(dict.fromkeys(key for key, value in pairs if type(value) is list and key != but and _scores(value)))


def _scores(values: list[Any]) -> bool:
    kinds = set(map(type, values))
    return float in kinds and kinds <= {float, int}


def _is_cut(reason: Any) -> float:
    """Whether a sample was cut, by its reason to end: a text or, as SGLang has it, an object with a type."""
    return float((reason.get("type") if isinstance(reason, dict) else reason) in LIMITS)
