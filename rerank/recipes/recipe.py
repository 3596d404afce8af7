"""Recipes: YAML → typed settings. Defaults live here and in the classes that the recipe names, nowhere else."""

from __future__ import annotations

import logging
from abc import abstractmethod
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator

from rerank.base.errors import RecipeError
from rerank.base.names import check_split
from rerank.base.registry import nearest
from rerank.engines.settings import EngineSettings
from rerank.learn.base_weight import AUTO
from rerank.recipes.settings import (
    Epochs,
    Examples,
    Samples,
    Section,
    Sections,
    Seed,
    Seeds,
    Settings,
    assign_all,
    changed,
    grid_points,
    literal,
    named,
    require_few_runs,
    undone,
    validate,
)
from rerank.storage.bounded_yaml import as_yaml, read_yaml

log = logging.getLogger("rerank")
SplitName = Annotated[str, AfterValidator(check_split)]
LARGEST = 1 << 20  # bytes of a recipe; a larger file is something else


class SplitSettings(Section):
    """Where the lists of every split are, whatever they hold. ``{root}`` and ``{split}`` in patterns are filled in;
    splits are names, not paths.

    shard_size: how many MB (10^6 bytes) a shard takes at most, one of the parts in which a corpus is kept and, if there
    are several, trained on.
    """

    root: str = "."
    train: SplitName = "train"
    dev: SplitName | None = "dev"
    tests: tuple[SplitName, ...] = ("test",)
    nbest: str = "{root}/{split}.nbest.gz"
    reader: Settings
    on_bad_list: Literal["error", "skip"] = "error"
    shard_size: float = Field(default=256.0, ge=0.001, allow_inf_nan=False)

    @field_validator("tests", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("tests")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value))

    @property
    def splits(self) -> tuple[str, ...]:
        """All splits, the training split first; a split named twice counts once."""
        return tuple(dict.fromkeys([self.train, *([self.dev] if self.dev else []), *self.tests]))

    @abstractmethod
    def files(self, split: str) -> dict[str, list[str]]:
        """All files of a split, by what they hold."""

    @abstractmethod
    def of_files(self, nbest: str, gold: str, sources: str | None) -> Self:
        """The same settings for one set of files."""

    def fill(self, key: str, pattern: str, split: str) -> str:
        """``pattern`` with root and split filled in; a RecipeError names ``key`` where the pattern asks for anything
        else."""
        try:
            return pattern.format(root=self.root, split=split)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise RecipeError(
                f"cannot fill {pattern!r} in ({error}); it may use {{root}} and {{split}}", key=f"data.{key}"
            ) from None


class DataSettings(SplitSettings):
    """Where lists of parses and their gold trees are."""

    gold: str = "{root}/{split}.gold.gz"
    reader: Settings = Field(default_factory=lambda: {"name": "charniak"})

    @field_validator("reader", mode="before")
    @classmethod
    def _charniak(cls, value: Any) -> Any:
        return named(value, "charniak")

    def path(self, kind: Literal["nbest", "gold"], split: str) -> str:
        """The file of a split."""
        return self.fill(kind, self.nbest if kind == "nbest" else self.gold, split)

    def files(self, split: str) -> dict[str, list[str]]:
        """All files of a split, by what they hold."""
        return {"nbest": [self.path("nbest", split)], "gold": [self.path("gold", split)]}

    def of_files(self, nbest: str, gold: str, sources: str | None) -> Self:
        """The same settings for one set of files; trees have no sources."""
        if sources is not None:
            raise RecipeError("the lists hold trees; sources are for lists of texts")
        return self.model_copy(update={"nbest": literal(nbest), "gold": literal(gold)})


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


class FeatureSettings(TemplateSettings):
    """Templates of trees: the sets are minimal, cj2005 and extended.

    heads: head rules that replace the built-in ones, e.g. {syntactic: {NML: ["> NN NNS", "> *"]}}: steps tried in
    order, "<" from the left or ">" from the right, then the labels to look for.
    """

    set: str | None = "cj2005"
    heads: dict[Literal["syntactic", "semantic"], dict[str, list[str]]] = Field(default_factory=dict)


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
    """

    epochs: Epochs = 10
    shuffle: bool = True
    patience: Epochs | None = None
    predictor: Literal["last", "average"] = "average"
    vote: bool = False
    select: SelectSettings | None = None
    warm_start: str | None = None
    pairs: Settings = Field(default_factory=lambda: {"name": "oracle"})
    dense: bool = True
    checkpoint: float = Field(default=2.0, ge=0)
    mixing: MixingSettings | None = None

    @field_validator("pairs", mode="before")
    @classmethod
    def _oracle(cls, value: Any) -> Any:
        return named(value, "oracle")


class SignificanceSettings(Section):
    """The test of every predictor against the base, and of runs against one another."""

    test: Literal["approximate_randomization", "paired_bootstrap", "paired_t", "mcnemar"] = "approximate_randomization"
    samples: Samples = 10_000


class RunSettings(Section):
    """A further run of the recipe: a name and the settings that differ, by dotted key."""

    name: str
    set: Settings = Field(default_factory=dict)


class ReportedSettings(Section):
    """What a paper reports, to be shown next to the results: source, and by row the measures and figures it gives."""

    source: str
    rows: dict[str, dict[str, float | str]]


class TaskRecipe(Section):
    """What the recipes of all tasks have in common. No result depends on the engine, and it is not stored with any."""

    name: str
    task: str
    engine: EngineSettings = Field(default=EngineSettings(), exclude=True)
    about: str = ""
    seed: Seed = 1
    seeds: Seeds = ()
    metric: Settings

    @field_validator("engine", mode="before")
    @classmethod
    def _only_its_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("seeds")
    @classmethod
    def _no_seed_twice(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) < len(value):
            raise ValueError("a seed stands twice; a spread over equal runs says nothing")
        return value

    @field_validator("seeds", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, int) else value

    def as_yaml(self) -> str:
        """The resolved recipe, all defaults written out."""
        return as_yaml(self.model_dump(mode="json"))


class ListRecipe(TaskRecipe):
    """Everything that determines a result of reranking lists, whatever their candidates are."""

    data: SplitSettings
    features: TemplateSettings
    oracle: OracleSettings = OracleSettings()
    learner: Settings = Field(default_factory=lambda: with_base({"name": "vrda"}))
    training: TrainingSettings = TrainingSettings()
    significance: SignificanceSettings = SignificanceSettings()
    runs: tuple[RunSettings, ...] = ()
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    examples: Examples = 8
    reported: ReportedSettings | None = None

    @field_validator("learner", mode="before")
    @classmethod
    def _vrda(cls, value: Any) -> Any:
        return with_base(named(value, "vrda"))

    @property
    def splits(self) -> tuple[str, ...]:
        """All splits that are read, the training split first."""
        return self.data.splits

    @property
    def predictor(self) -> str:
        """The predictor whose choices are written out and shown."""
        return self.training.predictor

    def expand(self) -> list[tuple[str, Self]]:
        """(name, recipe) of every single run: runs × grid points × seeds; only their training may differ.

        Raises
        ------
        RecipeError: a run changes what the corpora are made of.
        """
        plain = self.model_dump(mode="python")
        plain.update(runs=(), grid={}, seeds=())
        points = grid_points(self.grid)
        runs = self.runs or (RunSettings(name=str(self.learner.get("name", "run"))),)
        require_few_runs(len(runs) * len(points) * max(1, len(self.seeds)))
        expanded = []
        for run in runs:
            for point in points:
                shown = [f"{key.split('.')[-1]}={value}" for key, value in point.items()]
                for seed in self.seeds or (self.seed,):
                    single = validate(type(self), changed(plain, {**run.set, **point, "seed": seed}))
                    if any(getattr(single, part) != getattr(self, part) for part in ("data", "features", "metric")):
                        raise RecipeError("a run may not change data, features or metric", key=f"runs.{run.name}")
                    expanded.append((" ".join([run.name, *shown]), single))
        return expanded


class Recipe(ListRecipe):
    """Everything that determines a result of reranking parses."""

    task: Literal["parse"] = "parse"
    data: DataSettings = DataSettings()
    features: FeatureSettings = FeatureSettings()
    metric: Settings = Field(default_factory=lambda: {"name": "parseval"})

    @field_validator("metric", mode="before")
    @classmethod
    def _parseval(cls, value: Any) -> Any:
        return named(value, "parseval")


# The class of every task's recipe. It is imported when a recipe of its task is read: tasks build on this module.
TASKS = {
    "parse": "rerank.recipes.recipe:Recipe",
    "translation": "rerank.recipes.text_recipe:TextRecipe",
    "speech": "rerank.recipes.text_recipe:TextRecipe",
    "ranking": "rerank.recipes.text_recipe:TextRecipe",
    "classification": "rerank.classification.recipe:ClassificationRecipe",
}


def load_recipe(path: str | Path, overrides: list[str] | None = None) -> TaskRecipe:
    """Read a recipe and apply ``key.path=value`` overrides (values are YAML); its class is that of its task.

    Raises
    ------
    RecipeError: unreadable file, unknown key (with the nearest names) or a value out of range.
    """
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(LARGEST + 1)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"cannot read the recipe: {error}", path=str(path)) from None
    if len(data) > LARGEST:
        raise RecipeError(f"more than {LARGEST >> 20} MiB; expected a recipe, a YAML file of settings", path=str(path))
    try:
        settings = read_yaml(text)
    except ValueError as error:
        raise RecipeError(f"not valid YAML: {error}", path=str(path)) from None
    if not isinstance(settings, dict):
        raise RecipeError("expected a mapping of settings", path=str(path))
    settings.setdefault("name", Path(path).stem)
    changes: Settings = {}
    for override in overrides or []:
        key, equals, value = override.partition("=")
        if not equals or not key:
            raise RecipeError(f"found --set {override!r}, expected --set key.path=value")
        try:
            changes[key.strip()] = read_yaml(value)
        except ValueError as error:
            raise RecipeError(f"the value of --set {override!r} is not valid YAML: {error}", key=key) from None
    for said in assign_all(settings, changes):
        log.info("--set %s of the recipe", said)
    recipe = validate(_class_of(settings.get("task", "parse"), str(path)), settings, path=str(path))
    _require_heeded(recipe, settings, changes)
    return recipe


def _require_heeded(recipe: TaskRecipe, settings: Settings, changes: Settings) -> None:
    """Refuse ``changes`` given by --set that the recipe's seeds, its grid or every one of its runs would override.

    Raises
    ------
    RecipeError: names the setting and what overrides it.
    """
    for key in changes:
        runs = [run.get("set") or {} for run in settings.get("runs") or []]
        by = "seeds" if key == "seed" and recipe.seeds else "grid" if undone(key, settings.get("grid") or {}) else None
        if runs and all(undone(key, run) for run in runs):
            by = "runs"
        if by is not None and by not in changes:
            message = f"--set changes nothing: the recipe's {by} have the last word; add --set '{by}=...' for others"
            raise RecipeError(message, key=key)


def _class_of(task: Any, path: str) -> type[TaskRecipe]:
    if not isinstance(task, str) or task not in TASKS:
        raise RecipeError(f"found {task!r}; {nearest(str(task), TASKS)}", key="task", path=path)
    module, _, name = TASKS[task].partition(":")
    found: type[TaskRecipe] = getattr(import_module(module), name)
    return found


def read_settings(settings: Settings) -> TaskRecipe:
    """The recipe that stored ``settings``, a resolved recipe, describe; its class is that of its task.

    Raises
    ------
    RecipeError: no task, an unknown key or a value out of range.
    """
    return validate(_class_of(settings.get("task"), ""), settings)
