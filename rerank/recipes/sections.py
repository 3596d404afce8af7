"""Sections of recipes: where lists are, what is extracted from them, how it is trained on, tested and shown."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field

from rerank.base.errors import RecipeError
from rerank.base.names import check_split
from rerank.learn.base_weight import AUTO
from rerank.metrics.significance import TestName
from rerank.recipes.settings import (
    Epochs,
    Grid,
    Samples,
    Section,
    Sections,
    Settings,
    distinct,
    one_or_many,
    part,
)
from rerank.recipes.shipped import placed_root

SplitName = Annotated[str, AfterValidator(check_split)]


class SplitSettings(Section):
    """Where the lists of every split are, whatever they hold. ``{root}`` and ``{split}`` in patterns are filled in, and
    ``{shipped}`` in root by the folder of the lists that come with the program; splits are names, not paths. ``train``
    may name several sources, whose lists are trained on one after the other.

    shard_size: how many MB (10^6 bytes) a shard takes at most, one of the parts in which a corpus is kept and, if there
    are several, trained on.
    """

    root: str = "."
    train: Annotated[tuple[SplitName, ...], Field(min_length=1), one_or_many(str), AfterValidator(distinct)] = (
        "train",
    )
    dev: SplitName | None = "dev"
    tests: Annotated[tuple[SplitName, ...], one_or_many(str), AfterValidator(distinct)] = ("test",)
    nbest: str = "{root}/{split}.nbest.gz"
    reader: Settings
    on_bad_list: Literal["error", "skip"] = "error"
    shard_size: float = Field(default=256.0, ge=0.001, allow_inf_nan=False)

    @property
    def splits(self) -> tuple[str, ...]:
        """All splits, the training split first; a split named twice counts once."""
        return tuple(dict.fromkeys([self.training, *([self.dev] if self.dev else []), *self.tests]))

    @property
    def training(self) -> str:
        """The name of the training split: that of its source or, as no other split can be called, those of several
        with commas between them."""
        return ",".join(self.train)

    def sources_of(self, split: str) -> tuple[str, ...]:
        """What a split is made of: the sources of the training split; any other is one itself."""
        return self.train if split == self.training else (split,)

    def files(self, split: str) -> dict[str, list[str]]:
        """All files of a split, by what they hold, source by source."""
        found: dict[str, list[str]] = {}
        for source in self.sources_of(split):
            for kind, paths in self.files_of(source).items():
                found.setdefault(kind, []).extend(paths)
        return found

    def lists(self, split: str) -> str:
        """The path of a split's lists as its reader takes it, which may name several files."""
        return self.fill("nbest", self.nbest, split)

    @abstractmethod
    def files_of(self, source: str) -> dict[str, list[str]]:
        """The files of one source, by what they hold."""

    @abstractmethod
    def of_files(self, nbest: str, gold: str, sources: str | None) -> Self:
        """The same settings for one set of files."""

    def fill(self, key: str, pattern: str, split: str) -> str:
        """``pattern`` with root and split filled in; a RecipeError names ``key`` where the pattern asks for anything
        else."""
        try:
            return pattern.format(root=placed_root(self.root), split=split)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise RecipeError(
                f"cannot fill {pattern!r} in ({error}); it may use {{root}} and {{split}}", key=f"data.{key}"
            ) from None


class TemplateSettings(Section):
    """Which templates fire and which of their features are kept.

    set: a named set, with ``templates`` added to it; set: null for ``templates`` alone.
    user: functions from a candidate to a mapping of feature name to value, by import path ``module:function``.
    min_lists: keep a feature that varies in at least so many training lists. hash_bits: instead of a table of kept
    features, 2^hash_bits columns that features may share. centred: store values relative to a list's most frequent one.
    """

    set: str | None
    templates: tuple[Any, ...] = ()
    user: dict[str, str] = Field(default_factory=dict)
    min_lists: int = Field(default=5, ge=1)
    hash_bits: int | None = Field(default=None, ge=4, le=30)
    centred: bool = True


class OracleSettings(Section):
    """ties: is the oracle the candidate with the best base score among the best, or "any" of them? auto: any where
    several are equally right, which is so in rankings and where the gains of the training lists have no more than two
    values.
    level: the best gain list by list, or the selection that climbs to the best corpus score.
    corpus_share: how much of a candidate's gain in training is what the corpus score of the oracles gains if the
    candidate takes the place of its list's oracle; the rest is the metric of its sentence."""

    ties: Literal["auto", "base", "any"] = "auto"
    level: Literal["sentence", "corpus"] = "sentence"
    corpus_share: float = Field(default=0.0, ge=0, le=1)


def with_base(learner: Any) -> Any:
    """The settings of a learner over lists; if they do not mention the base score, its weight is found on dev."""
    return {**learner, "base": learner.get("base", AUTO)} if isinstance(learner, dict) else learner


class SelectSettings(Section):
    """Feature selection before training: ``learner`` is trained first, and only columns with a nonzero weight in its
    average stay; the learner proper starts afresh on them. At most ``keep`` columns (a number, or a share in (0, 1)),
    those with the largest weights, or, by ``contribution``, with the largest |weight| · norm of the column: what they
    do to scores. Dense columns always stay and do not count."""

    learner: Annotated[Settings, AfterValidator(with_base)]
    epochs: Epochs | None = None
    keep: float | None = Field(default=None, gt=0)
    by: Literal["weight", "contribution"] = "weight"


class MixingSettings(Section):
    """Training of sections separately, and one state from theirs: ``rerank.learn.mixing.mixing``.

    shards: how many sections; every: combine after every epoch, and let all continue from the combined state, or once,
    at the end; rule: how states are combined, auto being what fits the learner; keep: keep so many columns, those with
    the largest weights across sections (null: all).
    """

    shards: Sections
    every: Literal["epoch", "once"] = "epoch"
    rule: Literal["auto", "sum", "kl", "precision", "updates", "mean"] = "auto"
    keep: int | None = Field(default=None, ge=1)


class TrainingSettings(Section):
    """epochs: passes at most; patience: epochs without a better dev score before training ends (null: never);
    predictor: whose dev score counts; vote: keep what exact voting needs and evaluate the voted predictor; warm_start:
    the directory of a model to continue from (its updates are not logged, so there is then no voted predictor);
    pairs: where losses of two candidates take these from: the oracle and its best-scoring rival, or another source;
    dense: train the weights of dense columns too (false: they stay 0, for MERT to set together with that of the base
    score). checkpoint: seconds between two checkpoints, at least, from which an interrupted training, or voting, is
    resumed. mixing: train sections of the lists separately, by all workers of the engine; null: one after the other.
    share: train on so much of the training lists, from the first on; features are those of all.
    """

    epochs: Epochs = 10
    shuffle: bool = True
    patience: Epochs | None = None
    predictor: Literal["last", "average"] = "average"
    vote: bool = False
    select: SelectSettings | None = None
    warm_start: str | None = None
    pairs: Annotated[Settings, part("oracle")] = Field(default={}, validate_default=True)
    dense: bool = True
    checkpoint: float = Field(default=2.0, ge=0)
    mixing: MixingSettings | None = None
    share: float = Field(default=1.0, gt=0, le=1)


class SignificanceSettings(Section):
    """The test of every predictor against the base, and of runs against one another."""

    test: TestName = "approximate_randomization"
    samples: Samples = 10_000


class RunSettings(Section):
    """A further run of the recipe: a name, and the settings that differ, by dotted key; ``grid`` replaces the
    recipe's."""

    name: str
    set: Settings = Field(default_factory=dict)
    grid: Grid | None = None


class ReportedSettings(Section):
    """What a paper reports, to be shown next to the results: source, and by run (with the point of its grid, if it has
    one) the measures it gives; ``columns``: how many features its runs choose from."""

    source: str
    columns: int | None = Field(default=None, ge=1)
    rows: dict[str, dict[str, float | str]]
