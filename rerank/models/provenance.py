"""The provenance of a model: what is written along with its weights, and what a reader may rely on.

A model holds no code, but its settings can name parts of somebody's own by import path, ``module:Name``, and whoever
ranks with it imports and calls them, if they are trusted. Parts of this program and those that an installed package
registers, which have plain names, run anyway.

A score column is compared with what it was in training by three measures of it in a list: its mean, its standard
deviation, and its correlation with the base score. The unit is the list, as the candidates of one are alike. A measure
is unlike training where the distribution functions over lists differ, somewhere, by more than ``MIN_DISTANCE`` plus
what chance explains, by the bound of Dvoretzky, Kiefer and Wolfowitz with Massart's constant, which holds for all
distributions. So lists drawn like those of training are called unlike them with a probability of at most ``ALPHA``, for
all columns and measures together, and three lists never are. A smaller difference, however many lists show it, is none
to speak of: no two sets of real lists are quite the same."""

import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from itertools import compress
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from rerank import __version__
from rerank.base.errors import ModelError
from rerank.base.ranges import NotNegative, Positive, Range
from rerank.extraction.sample import ListSample
from rerank.readers.reader import settings_within
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import ListRecipe

Kind = Literal["mbr", "fuse", "learned"]
Below = Literal["abstain", "base"]
MAJORITY = 0.5  # the smallest threshold of fused trees
LIBRARIES = ("numpy", "numba", "scipy")  # the libraries that results are computed with
ALPHA, MIN_DISTANCE = 1e-4, 1 / 3
COMPARED = {  # the first measures of columns, in their order, and what messages call them
    "mean": "mean", "spread": "standard deviation", "agreement": "correlation with the base score",
}  # fmt: skip
M = len(COMPARED)
QUANTILES = 8  # of every measure, which are kept


class ColumnSeen(BaseModel):
    """A score column in ``lists`` of two candidates or more: the means over lists of its mean, its standard deviation
    (``spread``) and its correlation with the base score (``agreement``); its least and its greatest value.

    below: for each of the three measures, in how many lists it is at most as large as each of the ``cuts``.
    """

    model_config = ConfigDict(strict=True)

    lists: PositiveInt
    mean: FiniteFloat
    spread: FiniteFloat
    agreement: FiniteFloat
    least: FiniteFloat
    greatest: FiniteFloat
    cuts: list[list[FiniteFloat]] = Field(min_length=M, max_length=M)
    below: list[list[int]]

    @model_validator(mode="after")
    def _check_sizes(self) -> "ColumnSeen":
        if [len(cuts) for cuts in self.cuts] != [len(counts) for counts in self.below]:
            raise ValueError("expected as many counts as cuts")
        return self


class DevScore(BaseModel):
    """The score by which epochs, and runs, were chosen: as the metric gives it, a fraction or a figure of 0 to 100."""

    model_config = ConfigDict(extra="forbid", strict=True)

    split: str
    measure: str
    score: FiniteFloat


class Decoding(BaseModel):
    """The way in which one answer is made of a whole list: see ``rerank.models.decoding``.

    kind: by expected gain (mbr), of all trees (fuse), or of brackets that a ``BracketModel`` judges (learned).
    sharpness, deviation: a candidate with score s has the probability exp(sharpness · s/deviation) over the sum of
    these; the deviation is that of the scores from their lists' means on dev. threshold: how probable a bracket has to
    be (fuse: at least 0.5; learned). slack: what a candidate may be worth less than the fused tree, whose place it then
    takes (learned; see ``Fusion.nearest``). most: how many candidates are compared with each other (mbr).
    gains: a user's function, which is asked for gains (mbr). margin, below: with a smaller margin than that there is no
    answer (abstain), or it is the best candidate by base score (mbr).
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    kind: Kind
    sharpness: Positive
    deviation: Positive = 1.0
    threshold: Annotated[float, Range(0, below=1)] = 0.5
    slack: NotNegative = 0.0
    most: Annotated[int, Range(2)] = 200
    gains: str | None = None
    margin: Annotated[float, Range(0, 1)] = 0.0
    below: Below = "abstain"

    @field_validator("threshold")
    @classmethod
    def _always_a_tree(cls, threshold: float, info: ValidationInfo) -> float:
        if threshold < MAJORITY and info.data.get("kind") != "learned":
            raise ValueError(f"expected {MAJORITY} or more; a learned one may be lower")
        return threshold


class Decision(BaseModel):
    """The way in which a model chooses unless it is asked otherwise.

    predictor: that of its name in results: one whose best candidate is taken, or a way of decoding. ranked_by: the
    predictor whose scores rank lists, and are decoded.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    predictor: Literal["last", "average", "mert", "mbr", "fuse", "learned"] = "average"
    ranked_by: Literal["last", "average", "mert"] = "average"


class Provenance(BaseModel):
    """The provenance of a model. Entries that this program does not know are kept.

    learner, run, seed: of the run that was chosen; epochs: passes over the training lists up to the epoch that was
    kept, including those of a model it continued from; training_data: key of the training corpus, the same for the same
    files, features and program; lists: how many lists these are, 0 where it is not known; training_base: the weight of
    the base score while the learner trained; files: SHA-256 of the training files after decompression, by what they
    hold; columns: what the score columns were like in training, the base score's first; frame: the columns of the data
    frame that it was trained on, see ``FrameColumns``; start: digest of the model that training continued from;
    imported: the file that weights were read from (``rerank import``), and its SHA-256 after decompression; decodings:
    how lists can be decoded, by kind; decision: see ``Decision``.
    """

    model_config = ConfigDict(extra="allow", strict=True)

    learner: str = ""
    run: str = ""
    seed: Annotated[int, Range(0, below=1 << 63)] = 0
    epochs: Annotated[int, Range(0, 1 << 53)] = 0
    dev: DevScore | None = None
    training_data: str = ""
    lists: Annotated[int, Range(0, 1 << 53)] = 0
    training_base: FiniteFloat | None = None
    files: dict[str, list[str]] = {}
    columns: dict[str, ColumnSeen] = {}
    decodings: dict[Kind, Decoding] = {}
    decision: Decision | None = None
    version: str = ""
    python: str = ""
    platform: str = ""
    libraries: dict[str, str] = {}
    date: str = ""
    imported: dict[Literal["file", "sha256"], str] | None = None
    frame: dict[str, str | list[str]] | None = None
    start: str = ""


def provenance(**facts: Any) -> dict[str, Any]:
    """The provenance of a model that is made now: the ``facts`` of its training, by the names of ``Provenance``,
    with versions and date."""
    entry = Provenance(
        **facts,
        version=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        libraries={name: version(name) for name in LIBRARIES},
        date=datetime.now().astimezone().isoformat(timespec="seconds"),
    )
    return entry.model_dump(mode="json", exclude_none=True)


def decodings_of(about: Mapping[str, Any]) -> dict[str, Decoding]:
    """The ways, by kind, in which the lists of a model with this provenance can be decoded."""
    return {kind: Decoding.model_validate(entry) for kind, entry in about.get("decodings", {}).items()}


def imported_provenance(about: dict[str, Any], file: str, sha256: str) -> dict[str, Any]:
    """The provenance ``about`` for a model with the weights in ``file``: nothing that was measured on dev
    holds for them."""
    entries = {key: value for key, value in about.items() if key not in ("dev", "decodings")}
    return entries | {"decision": Decision().model_dump(), "imported": {"file": file, "sha256": sha256}}


Trust = bool | str | Collection[str]  # all code, or none; or that of a module or of several, with what is below them


def require_trusted(parts: Iterable[tuple[str, str]], trust: Trust, path: str) -> None:
    """Refuse a model if ``trust`` does not allow one of its parts, keys with names."""
    modules = () if isinstance(trust, bool) else (trust,) if isinstance(trust, str) else trust

    def allows(name: str) -> bool:
        module = f"{name.partition(':')[0].strip()}."
        return trust is True or any(module.startswith(f"{prefix}.") for prefix in modules)

    if names := [f"{key}: {name}" for key, name in parts if ":" in name and not allows(name)]:
        message = f"names code by import path ({', '.join(names)}), and none of it was imported"
        how = "allow it with --trust, in Python with trust=True or the names of its modules"
        raise ModelError(f"{message}; if you trust it and whoever made the model, {how}", path=path)


def parts_of(settings: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names of all parts that a model with these ``settings`` and this provenance uses or was trained with, each
    with its key."""
    recipe = read_settings(dict(settings)) if settings else None
    if not isinstance(recipe, ListRecipe):
        return  # nothing is ever done by the recipe of such a model
    training, decode = recipe.training, recipe.decode
    for name, path in recipe.features.user.items():
        yield f"features.user.{name}", path
    for spec in recipe.features.templates:
        yield "features.templates", str(next(iter(spec), "") if isinstance(spec, Mapping) else spec).partition("(")[0]
    for reader in settings_within(recipe.data.reader):
        yield "data.reader", str(reader.get("name", ""))
    selectors = [] if training.select is None else [training.select.learner]
    for spec in (recipe.learner, *selectors):
        yield "learner", str(spec.get("name", ""))
        yield "learner.loss", str(spec.get("loss", ""))
    yield "training.pairs", str(training.pairs.get("name", ""))
    yield "metric", str(recipe.metric.get("name", ""))
    for how in (decode.gains, *(entry.get("gains") for entry in about.get("decodings", {}).values())):
        yield "decode.gains", how or ""


def columns_seen(names: Sequence[str], used: Sequence[str], lists: ListSample) -> dict[str, Any]:
    """The record that a model keeps of the score columns ``names`` of its training lists, the base score's first: those
    ``used``, each as a ``ColumnSeen``. Empty where no list has two candidates."""
    columns = {}
    for k, name in enumerate(names if lists.digests.size else ()):
        measures, values = lists.measures[:, k, :M], lists.ranges[:, k]
        # A distribution function may jump at a quantile: it is kept there, and just below.
        quantiles = np.quantile(measures, np.linspace(0, 1, QUANTILES + 1), axis=0, method="inverted_cdf").T
        cuts = [np.unique([of, np.nextafter(of, -np.inf)]) for of in quantiles]
        columns[name] = {
            "lists": len(measures), **dict(zip(COMPARED, measures.mean(axis=0).tolist(), strict=True)),
            "least": float(values.min()), "greatest": float(values.max()), "cuts": [cut.tolist() for cut in cuts],
            "below": [(measures[:, m] <= cut[:, None]).sum(axis=1).tolist() for m, cut in enumerate(cuts)],
        }  # fmt: skip
    return {name: column for name, column in columns.items() if name in used}


def chance(first: Any, second: Any, level: float) -> Any:
    """Distance that chance puts between the distribution functions of two samples of these sizes: this plus
    ``MIN_DISTANCE`` is exceeded by samples of one distribution with a probability below ``level``."""
    return np.sqrt(np.log(4 / level) / 2 * (1 / first + 1 / second))


def columns_unlike(columns: Mapping[str, Any], measures: np.ndarray) -> list[str]:
    """A line for every column of lists (their measures: float64 [S, C, MEASURES]) that is unlike what it was in
    training (``columns_seen``, in the same order)."""
    lines = list[str]()
    for c, (name, column) in enumerate(columns.items() if len(measures) else ()):
        record, here = ColumnSeen.model_validate(column), measures[:, c, :M]
        beyond = MIN_DISTANCE + chance(len(here), record.lists, ALPHA / (M * len(columns)))
        below = [(here[:, m] <= np.array(cuts)[:, None]).mean(axis=1) for m, cuts in enumerate(record.cuts)]
        distances = [
            np.abs(of - np.array(counts) / record.lists).max() for of, counts in zip(below, record.below, strict=True)
        ]
        if unlike := list(compress(COMPARED, np.array(distances) > beyond)):
            mean = dict(zip(COMPARED, here.mean(axis=0), strict=True))
            values = ", ".join(f"{COMPARED[m]} {mean[m]:.4g}, in training {getattr(record, m):.4g}" for m in unlike)
            question = "is its sign or unit another, or is it a file of other lists or another column?"
            lines.append(f"the score column {name!r} is unlike that of the training lists: {values}; {question}")
    return lines
