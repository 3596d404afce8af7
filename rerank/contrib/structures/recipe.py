"""Recipes of tagging: which sentences, which templates and learner, and how the best sequences are reranked."""

from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from rerank.base.ranges import Range
from rerank.readers.streams import check_encoding
from rerank.recipes.loading import Task
from rerank.recipes.recipe import Single, TaskRecipe
from rerank.recipes.sections import Count, RunSettings, SignificanceSettings, SplitName, different_names
from rerank.recipes.settings import (
    Epochs,
    Examples,
    FoldCount,
    Grid,
    Section,
    Settings,
    distinct,
    one_or_many,
    part,
    placed_root,
)

HERE = "rerank.contrib.structures"
TAGGING = Task(
    f"{HERE}.recipe:TaggingRecipe", f"{HERE}.steps:TaggingSteps", "sequences", f"{HERE}.steps:sizes_table",
    new=f"{HERE}.checks:new_recipe", tries=("rerank tag MODEL FILE",),
)  # fmt: skip


class TaggingData(Section):
    """The files of labelled sentences. ``{root}`` and ``{split}`` in ``file`` are filled in.

    root: a directory, substituted for ``{root}``; ``{shipped}`` in it is the folder of the data of this program.
    train, dev, tests: the splits that are trained on, that choose epoch and run (null: the last epoch of the first
    run), and that are tagged and measured.
    file: where the sentences of a split are.
    reader: their format, with its options: docs/tagging.md.
    encoding: the encoding of the files, if it is not UTF-8, by its name in Python.
    on_bad_list: whether a sentence that cannot be used is an error, or is left out and counted.
    """

    root: str = "."
    train: Annotated[tuple[SplitName, ...], Field(min_length=1), one_or_many(str), AfterValidator(distinct)] = (
        "train",
    )
    dev: SplitName | None = "dev"
    tests: Annotated[tuple[SplitName, ...], one_or_many(str), AfterValidator(distinct)] = ("test",)
    file: str = "{root}/{split}.conll"
    reader: Annotated[Settings, part("conll")] = Field(default={}, validate_default=True)
    encoding: Annotated[str, AfterValidator(check_encoding)] | None = None
    on_bad_list: Literal["error", "skip"] = "error"

    def place(self, split: str) -> str:
        """The file of a split."""
        return self.file.replace("{root}", placed_root(self.root)).replace("{split}", split)


class TokenFeatureSettings(Section):
    """The maker of attributes of tokens.

    templates: ``default``, lines in the syntax of CRF++, and files of such lines, in any number.
    cutoff: attributes of fewer tokens of training are left out.
    clusters, gazetteers: files that templates look up, by the name that these call them by.
    functions: functions of your own (``module:function``) of words and a place, by name.
    """

    templates: Annotated[tuple[str, ...], one_or_many(str)] = ("default",)
    cutoff: Count = 1
    clusters: dict[str, str] = Field(default_factory=dict)
    gazetteers: dict[str, str] = Field(default_factory=dict)
    functions: dict[str, str] = Field(default_factory=dict)


class TaggingTraining(Section):
    """The passes over the sentences.

    epochs: passes over them at most.
    shuffle: a new order in every epoch, from the seed.
    patience: end after this many epochs without a better dev; null: never.
    predictor: the weights after the last update, or the average of those after all.
    average_after: after this many epochs the average begins anew, without the predictors before: with a threshold (l1),
        that leaves few weights in it.
    """

    epochs: Epochs = 10
    shuffle: bool = True
    patience: Epochs | None = None
    predictor: Literal["last", "average"] = "average"
    average_after: Annotated[int, Range(0)] = 0
    curve: ClassVar[tuple[float, ...]] = ()


class RerankSettings(Section):
    """A second stage: the best sequences of every sentence, reranked by features of whole sequences.

    n: the number of sequences for each sentence.
    folds: the number of folds; sequences of training sentences come from taggers trained on the other folds.
    recipe: the settings of the ranking, by dotted key, that differ from those of its task.
    """

    n: Annotated[int, Range(2, 1000)] = 20
    folds: FoldCount = 5
    recipe: Settings = Field(default_factory=dict)


class TaggingRecipe(TaskRecipe):
    """Everything that determines a result of tagging.

    constraints: which labels may follow each other: as those of spans do (``spans``), where all of training do (auto),
    or any (none).
    metric: spans, tags, or auto: spans where labels mark spans.
    rerank: a second stage; null: none.
    runs, grid: runs with settings of their own, which may differ in features, learner, training and constraints.
    examples: how many sentences with errors the report shows.
    """

    task: Literal["tagging"] = "tagging"
    data: TaggingData = TaggingData()
    features: Annotated[TokenFeatureSettings, part(key="templates")] = TokenFeatureSettings()
    constraints: Literal["auto", "spans", "none"] = "auto"
    metric: Annotated[Settings, part("auto")] = Field(default={}, validate_default=True)
    learner: Annotated[Settings, part("perceptron")] = Field(default={}, validate_default=True)
    training: TaggingTraining = TaggingTraining()
    rerank: RerankSettings | None = None
    significance: SignificanceSettings = SignificanceSettings()
    runs: Annotated[tuple[RunSettings, ...], AfterValidator(different_names)] = ()
    grid: Grid = Field(default_factory=dict)
    examples: Examples = 8

    common: ClassVar[Collection[str]] = ("data", "metric", "rerank")
    refusal: ClassVar[str] = "a run may not change data, metric or rerank"

    def expand(self) -> "list[Single[Any]]":
        """Every single run, with one seed; see ``singles``."""
        return self.singles(Single[Any], inner=[{"seed": seed, "seeds": ()} for seed in self.run_seeds])
