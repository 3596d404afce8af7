"""Recipes of classification: which examples, which learners, how they are tuned and what is shown."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator

from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
from rerank.metrics.metric import TestName
from rerank.recipes.loading import Task
from rerank.recipes.recipe import Single, TaskRecipe
from rerank.recipes.sections import RunSettings, SignificanceSettings, different_names
from rerank.recipes.settings import (
    Epochs,
    FoldCount,
    Grid,
    Section,
    Sections,
    Seed,
    Settings,
    change,
    one_or_many,
    part,
)

HERE = "rerank.contrib.classification"
TASK = Task(
    f"{HERE}.recipe:ClassificationRecipe", f"{HERE}.kind:ExampleKind", "examples",
    tables=f"{HERE}.kind:tables_of", new=f"{HERE}.sets:new_recipe", folds=True,
)  # fmt: skip
Noise = Annotated[float, Range(0, below=0.5)]
RUN_KEYS = {"learner", "tune", "training", "runs", "grid", "engine"}  # what a run may change, or has not
SOURCES = ("path", "train", "generator")


class SourceSettings(Section):
    """One set of examples: exactly one of ``path``, ``train`` with ``test``, and ``generator``.

    path: a file, divided into folds.
    folds: a file with the fold number of every example; null: folds are drawn, each with its share of every class.
    drawn: how many folds are drawn.
    train, test: two files, for training and test.
    generator: a part that draws both: winnow (``dimension``), zipf or ellipse (``train``, ``test``), again for every
    seed, except for zipf.
    """

    path: str | None = None
    folds: str | None = None
    drawn: FoldCount = 10
    train: str | None = None
    test: str | None = None
    generator: Annotated[Settings | None, part()] = None

    @property
    def sources(self) -> list[str]:
        """The sources that are given."""
        return [name for name in SOURCES if getattr(self, name)]


class ExampleData(SourceSettings):
    """The examples of one set, or of many.

    root: a directory, substituted for ``{root}`` in paths.
    sets: named sets, a list or a mapping to what describes one; a set without a source of its own is
    ``{root}/NAME.svm.gz`` with ``{root}/NAME.folds.txt``.
    bias: value of a constant feature.
    noise: probabilities with which labels of the training part are flipped; labels of the test part never are.
    """

    root: str = "."
    sets: dict[str, SourceSettings] = Field(default_factory=dict)
    bias: float | None = None
    noise: Annotated[tuple[Noise, ...], Field(min_length=1), one_or_many(int, float)] = (0.0,)

    @field_validator("sets", mode="before")
    @classmethod
    def _usual_files(cls, value: Any) -> Any:
        if isinstance(value, list):
            value = {str(name): {} for name in value}
        if not isinstance(value, dict):
            return value
        sources = {}
        for name, source in value.items():
            source = source or {}
            if isinstance(source, dict) and not any(source.get(key) for key in SOURCES):
                source = {"path": f"{{root}}/{name}.svm.gz", "folds": f"{{root}}/{name}.folds.txt", **source}
            sources[str(name)] = source
        return sources

    def named_sets(self, name: str) -> dict[str, SourceSettings]:
        """All sets by name; the one that ``data`` itself describes is called ``name``."""
        if self.sets and self.sources:
            message = f"found a set described here and {len(self.sets)} under data.sets; remove one or the other"
            raise RecipeError(message, key=f"data.{self.sources[0]}")
        sources: dict[str, SourceSettings] = dict(self.sets) or {name: self}
        for set_name, source in sources.items():
            key, kinds = f"data.sets.{set_name}" if self.sets else "data", source.sources
            if len(kinds) != 1:
                message = (
                    f"found {' and '.join(kinds) or 'no examples'}; expected one of path, train and generator "
                    "(say --set data.path=FILE --set data.folds=FILE, or --set data.generator.name=winnow)"
                )
                raise RecipeError(message, key=key)
            (kind,) = kinds
            if (kind == "train") != (source.test is not None):
                alone = f"cannot be combined with {kind}; a test file goes with train"
                missing = "is missing: the test file that goes with train"
                raise RecipeError(missing if kind == "train" else alone, key=f"{key}.test")
            if kind != "path" and source.folds is not None:
                message = f"found folds together with {kind}, which already has a test part"
                raise RecipeError(message, key=f"{key}.folds")
        return sources


class TuneSettings(Section):
    """Choice of parameters and number of epochs by the error on held-out examples.

    grid: values by dotted key.
    folds: how many folds judge; the recipe's own settings are kept unless others are better by one standard error of
    the mean difference.
    held_out: hold out this share in one random split instead, and take what is best there, as papers do.
    epochs: the most epochs that can be chosen.
    seed: the seed of the split and of the order of examples.
    clean: judge by labels without noise, as papers do that tune on a run of the experiment itself; otherwise held-out
    labels are as noisy as those that train.
    """

    grid: Grid = Field(default_factory=dict)
    folds: FoldCount = 5
    held_out: Annotated[float, Range(above=0, below=1)] | None = None
    epochs: Epochs = 10
    seed: Seed = 1
    clean: bool = False


class SectionSettings(Section):
    """Training of sections of the examples, in a random order, separately.

    count: how many sections, each of at least one example.
    rule: how their predictors are combined: the mean of weights, (kl) weighted by their precisions, or not at all
        (alone): the results are then the means of the sections'.
    """

    count: Sections
    rule: Literal["mean", "kl", "alone"] = "mean"


class ExampleTraining(Section):
    """The passes over the examples.

    epochs: passes, where nothing is tuned.
    shuffle: a new order in every epoch, from the seed.
    predictor: the predictor whose error counts.
    sections: train sections of the examples separately and combine them.
    """

    epochs: Epochs = 5
    shuffle: bool = True
    predictor: Literal["last", "average"] = "average"
    sections: SectionSettings | None = None


class ExampleSignificance(SignificanceSettings):
    """The test of runs against one another, over the test examples of all folds.

    test: the test; null: none.
    against: baselines among the runs; results that differ from each of them are marked by their p.
    """

    test: TestName | None = "mcnemar"  # type: ignore[assignment] # lists are always compared with their base
    against: Annotated[tuple[str, ...], one_or_many(str)] = ()


class ExampleRun(RunSettings):
    """Runs with settings of their own, which may differ in learner, tune and training.

    baseline: a batch learner from scikit-learn instead: ``naive-bayes``, ``maxent`` (with C) or ``svm`` (with C).
    """

    baseline: Annotated[Settings | None, part()] = None


class ExampleReported(Section):
    """A paper's numbers, shown after ours.

    source: where the numbers come from.
    values: the measure in percent, without noise, by set and run.
    ranks: mean ranks by noise level and run.
    seconds: training times, by set and run.
    """

    source: str
    values: dict[str, dict[str, float]] = Field(default_factory=dict)
    ranks: dict[str, dict[str, float]] = Field(default_factory=dict)
    seconds: dict[str, dict[str, float]] = Field(default_factory=dict)

    @field_validator("values", "ranks", "seconds", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        """YAML reads 0.05 and 500 as numbers; they are names here."""
        return {str(key): entry for key, entry in value.items()} if isinstance(value, dict) else value


class ClassificationRecipe(TaskRecipe):
    """Everything that determines a result of classification.

    Every run is trained on every set, at every noise level, with every seed, and on every fold.

    learner: the update rule with its parameters.
    best_of_grid: instead, one column per run: the point with the best mean on the *test* parts, for papers that do so.
    measure: what the table of results shows.
    tables: the tables that are shown.
    reported: a paper's numbers, shown after ours.
    """

    task: Literal["classification"] = "classification"
    data: ExampleData = ExampleData()
    metric: Annotated[Settings, part()] = Field(default_factory=lambda: {"name": "error"})
    learner: Annotated[Settings, part("arow")] = Field(default={}, validate_default=True)
    tune: TuneSettings | None = None
    training: ExampleTraining = ExampleTraining()
    significance: ExampleSignificance = ExampleSignificance()
    runs: Annotated[tuple[ExampleRun, ...], one_or_many(dict), AfterValidator(different_names)] = ()
    best_of_grid: bool = False
    measure: Literal["error", "accuracy"] = "error"
    tables: Annotated[tuple[Literal["results", "ranks", "seconds"], ...], one_or_many(str)] = ("results", "ranks")
    reported: ExampleReported | None = None

    common: ClassVar[Collection[str]]
    refusal: ClassVar[str] = "a run may change learner, tune and training only"

    def expand(self) -> "list[Spec]":
        """Every single run, on one set after the other, at one noise level after the other; see ``singles``.

        Seeds and folds share what is tuned, and so are within a run.
        """
        names = [run.name for run in self.runs]
        for unknown in set(self.significance.against) - set(names):
            message = f"no run is named {unknown!r}; the runs are {', '.join(names) or 'without names'}"
            raise RecipeError(message, key="significance.against")
        baselines = [run for run in self.runs if run.name in self.significance.against]
        if any(run.grid or (run.grid is None and self.grid) for run in baselines):
            message = "a baseline with a grid has a result for each point; give it grid: {}"
            raise RecipeError(message, key="significance.against")
        sets = [{name: source} for name, source in self.data.sets.items()] or [{}]
        changes = [{"sets": chosen, "noise": (noise,)} for chosen, noise in product(sets, self.data.noise)]
        return self.singles(Spec, outer=[{"data": self.data.model_copy(update=change)} for change in changes])


ClassificationRecipe.common = ClassificationRecipe.model_fields.keys() - RUN_KEYS


@dataclass(frozen=True)
class Spec(Single[ClassificationRecipe]):
    """A single run over labelled examples: its recipe has one set and one noise level, its learner, training and
    tuning; ``baseline`` takes the place of the learner."""

    baseline: Settings | None = None

    @classmethod
    def of(cls, plain: ClassificationRecipe, run: RunSettings, point: Settings) -> Self:
        return cls(run.name, point, plain, getattr(run, "baseline", None)).at(point, run.set)

    @property
    def set(self) -> str:
        """The name of the set."""
        return next(iter(self.recipe.data.sets), self.recipe.name)

    @property
    def noise(self) -> float:
        """The noise level."""
        return self.recipe.data.noise[0]

    @property
    def tune(self) -> TuneSettings:
        """How it is tuned, which it must be."""
        assert self.recipe.tune is not None
        return self.recipe.tune

    def at(self, point: Settings, more: Settings | None = None) -> Self:
        """The same run at another point, whose settings of baselines are for baselines alone; ``more``: other changes
        of its recipe, by dotted key."""
        inner = {key: value for key, value in point.items() if key.startswith("baseline.")}
        changes = {key: value for key, value in point.items() if key not in inner}
        baseline = self.baseline and change({"baseline": self.baseline}, inner)["baseline"]
        return replace(self, recipe=self.recipe.change((more or {}) | changes), baseline=baseline)
