"""Sections of recipes: where lists are, what is extracted from them, how it is trained on, tested and shown."""

from abc import abstractmethod
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from rerank.base.encoding import check_split
from rerank.base.errors import RecipeError
from rerank.base.ranges import Count, NotNegative, Positive, Range
from rerank.metrics.metric import TestName
from rerank.recipes.settings import (
    Epochs,
    Grid,
    Samples,
    Section,
    Settings,
    Share,
    Workers,
    distinct,
    one_or_many,
    part,
    root_folder,
)
from rerank.storage.streams import check_encoding, in_memory

SplitName = Annotated[str, AfterValidator(check_split)]
HOLDOUT = "holdout"  # the split of the training lists that are set apart


class FileSettings(Section):
    """The files of every split. ``{root}`` and ``{split}`` in patterns are filled in.

    root: a directory, substituted for ``{root}``; ``{shipped}`` in it is the folder of the data that come with the
    program.
    train, dev, tests: the splits that are trained on, that choose epoch and run (null: the last epoch of the first
    run), and that are evaluated. Splits are names (letters, digits, ``_``, with ``.+-`` and spaces between them), not
    paths.
    reader: the format, with its options.
    encoding: the encoding of all text files, if it is not UTF-8, by its name in Python: ``latin-1``, ``cp1252``,
    ``gbk``.
    on_bad_list: whether a list, or sentence, that cannot be used is an error, or is left out and counted.
    """

    root: str = "."
    train: Annotated[tuple[SplitName, ...], Field(min_length=1), one_or_many(str), AfterValidator(distinct)] = (
        "train",
    )
    dev: SplitName | None = "dev"
    tests: Annotated[tuple[SplitName, ...], one_or_many(str), AfterValidator(distinct)] = ("test",)
    reader: Settings
    encoding: Annotated[str, AfterValidator(check_encoding)] | None = None
    on_bad_list: Literal["error", "skip"] = "error"

    def fill(self, key: str, pattern: str, split: str) -> str:
        """``pattern`` with root and split filled in; a RecipeError names ``key`` where the pattern asks for anything
        else."""
        try:
            return pattern.format(root=root_folder(self.root), split=split)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise RecipeError(
                f"cannot fill in {pattern!r} ({error}); only {{root}} and {{split}} may stand in it", key=f"data.{key}"
            ) from None


class SplitSettings(FileSettings):
    """The files of the lists of every split, whatever they hold.

    train: the split that is trained on; several, as ``[news, web]``, are sources, trained on one after the other.
    dev: the split on which epochs, runs and the weight of the base score are chosen. null: the last tenth of the
    training lists takes its place if ``learner.base`` is ``auto``; with a number, the last epoch of the first run is
    taken. ``holdout`` are the lists set apart.
    holdout: a share of the training lists that is not trained on, the split ``holdout``. Settings (runs, points of a
    grid) are chosen on it; with ``dev: holdout``, epochs, the weight of the base score and decoding too.
    tests: the splits that are evaluated and reranked. Splits are names (letters, digits, ``_``, with ``.+-`` and spaces
    between them), not paths.
    nbest: where the lists of a split are.
    reader: the format of the lists, with its options; of texts by default ``jsonl`` if ``nbest`` names files of JSON.
    shard_size: how many MB (10^6 bytes) a part of the corpus takes at most, unless it is a single list. One part at a
    time is in memory; every epoch has a random order of the parts, and of the lists in each. 256 MB hold 32 million
    nonzeros.
    """

    holdout: Annotated[float, Range(above=0, below=1)] | None = None
    nbest: str = "{root}/{split}.nbest.gz"
    shard_size: Annotated[float, Range(0.001)] = 256.0

    @model_validator(mode="after")
    def _check_holdout(self) -> Self:
        """The lists set apart are neither trained on nor tested."""
        if self.holdout is not None and HOLDOUT in (*self.train, *self.tests):
            raise ValueError(
                f"with data.holdout, {HOLDOUT!r} are training lists set apart; give that split another name"
            )
        return self

    @property
    def splits(self) -> tuple[str, ...]:
        """All splits, the training split first; a split named twice counts once."""
        apart = [HOLDOUT] if self.holdout is not None else []
        return tuple(dict.fromkeys([self.training, *([self.dev] if self.dev else []), *apart, *self.tests]))

    @property
    def training(self) -> str:
        """The name of the training split: that of its source or, as no other split can be called, those of several
        with commas between them."""
        return ",".join(self.train)

    def sources_of(self, split: str) -> tuple[str, ...]:
        """The contents of a split: the sources of the training split, also for the lists set apart; any other is one
        itself."""
        return self.train if split == self.training or self.is_holdout(split) else (split,)

    def is_holdout(self, split: str | None) -> bool:
        """Whether this is the split of the training lists that are set apart."""
        return self.holdout is not None and split == HOLDOUT

    def files(self, split: str) -> dict[str, list[str]]:
        """All files of a split, by what they hold, source by source; none where a program holds the lists."""
        by_kind: dict[str, list[str]] = {}
        for source in (source for source in self.sources_of(split) if source not in in_memory()):
            for kind, paths in self.files_of(source).items():
                by_kind.setdefault(kind, []).extend(paths)
        return by_kind

    def lists(self, split: str) -> str:
        """The path of a split's lists as its reader takes it, which may name several files."""
        return self.fill("nbest", self.nbest, split)

    @abstractmethod
    def files_of(self, source: str) -> dict[str, list[str]]:
        """The files of one source, by what they hold."""

    @abstractmethod
    def of_files(self, nbest: str, gold: str, sources: str | None) -> Self:
        """The same settings for one set of files."""


class TemplateSettings(Section):
    """The templates that fire, and the features of theirs that are kept.

    set: a named set, to which ``templates`` and ``user`` are added; ``base`` is the base score alone, null no set.
    templates: further templates, as ``Name``, ``Name(option=value)`` or ``{Name: {option: value}}``.
    user: functions from a candidate to a mapping of feature name to value, by import path ``module:function``.
    min_lists: a feature is kept if it varies in at least this many training lists.
    hash_bits: 2^hash_bits columns shared by all features in place of a table and the cut. A column takes 70 to 150
    bytes, depending on the learner; what exceeds the memory is refused before anything is read.
    centred: store values minus the most frequent value in the list: fewer nonzeros, the same model. Always false where
    a run grows trees, which compare values of different lists.
    """

    set: str | None
    templates: Annotated[tuple[Any, ...], one_or_many(str, dict)] = ()
    user: dict[str, str] = Field(default_factory=dict)
    min_lists: Count = 5
    hash_bits: Annotated[int, Range(4, 30)] | None = None
    centred: bool = True


class EngineSettings(Section):
    """name: local (this process), processes (on this machine), dask (on a cluster, or on this machine); auto is this
    process, and processes for work that turns out to be long.

    workers: how many work at once, all cores by default; a running cluster brings its own. address: the address of a
    running Dask scheduler.
    """

    name: Literal["auto", "local", "processes", "dask"] = "auto"
    workers: Workers | None = None
    address: str | None = None


class OracleSettings(Section):
    """The candidates of a list that are right.

    ties: which of several candidates with the highest gain is right: the one with the best base score (``base``), or
    any of them (``any``; learners take the best-scoring one). auto is ``any`` for rankings and where the gains of the
    training lists have at most two values, as for right and wrong, else ``base``.
    corpus_share: the share of a candidate's gain in training that is the change of the oracles' corpus score if the
    candidate takes the place of its list's oracle (times the number of lists). The rest is its own gain.
    """

    ties: Literal["auto", "base", "any"] = "auto"
    corpus_share: Annotated[float, Range(0, 1)] = 0.0


def with_base(learner: Any) -> Any:
    """The settings of a learner over lists; if they do not mention the base score, its weight is found on dev."""
    return {**learner, "base": learner.get("base", "auto")} if isinstance(learner, dict) else learner


class SelectSettings(Section):
    """Feature selection before training: ``learner`` is trained first, and only columns with a weight in its average
    stay; the recipe's learner then starts from the beginning on them. Dense columns always stay and do not count.

    learner: the learner of that first training.
    keep: at most this many columns; below 1: at most this share of all.
    by: which columns are the largest: by weight, or by weight times the norm of the column.
    """

    learner: Annotated[Settings, part(), AfterValidator(with_base)]
    keep: Positive | None = None
    by: Literal["weight", "contribution"] = "weight"


class EnsembleSettings(Section):
    """One model from several trainings: the sum of their weights, each divided by the standard deviation of its scores
    from their lists' means on dev. It ranks by all of them, and is as fast as one.

    seeds: the number of orders of the lists, by the seeds ``seed``, ``seed`` + 1000 and so on.
    keep: columns that stay in the sum, those with the largest weight times the norm of the column; below 1: a share of
    all; null: all. Dense columns always stay and do not count.
    """

    seeds: Annotated[int, Range(1, 1000)] = 1
    keep: Positive | None = None


class EpochSettings(Section):
    """The passes over what is trained on.

    epochs: passes at most.
    shuffle: a new order in every epoch (from seed and epoch), or the file's.
    patience: end after this many epochs without a better dev score; null: never.
    predictor: the weights, those of the last update or the average of all, whose dev score chooses epoch and run.
    """

    epochs: Epochs = 10
    shuffle: bool = True
    patience: Epochs | None = None
    predictor: Literal["last", "average"] = "average"


class TrainingSettings(EpochSettings):
    """The passes over the training lists.

    vote: keep the updates and evaluate the voted predictor too, which takes longer than training; ``first``: with the
    first seed alone.
    bound: say what theory allows of the mistakes of the first epoch, too.
    select: select features in a first training.
    start: a model to continue from, with the same learner, settings and templates: it gets the features of the
    training lists, too. There is no voted predictor.
    pairs: which two candidates pairwise losses compare.
    dense: train the weights of dense columns; false: they stay 0, for MERT to set.
    checkpoint: seconds between two epochs that are saved, at least, and at least twenty times as many as saving takes;
    ``--resume`` continues from the last saved epoch.
    ensemble: train several models and sum up their weights; dev is needed, and there is no voted predictor.
    share: train on this share of the training lists, drawn by the seed; features come from all lists.
    curve: train the chosen run on these shares of the lists too; the report draws the scores and says whether more
    lists would help.
    """

    vote: bool | Literal["first"] = False
    bound: bool = False
    select: SelectSettings | None = None
    start: str | None = None
    pairs: Annotated[Settings, part("oracle")] = Field(default={}, validate_default=True)
    dense: bool = True
    checkpoint: NotNegative = 2.0
    ensemble: EnsembleSettings | None = None
    share: Share = 1.0
    curve: Annotated[tuple[Share, ...], one_or_many(int, float)] = ()


class DecodeSettings(Section):
    """One answer from a whole list, as a predictor beside the best candidate: docs/decoding.md.

    kinds: the ways to decode that are tuned on dev and evaluated: ``mbr``, ``fuse`` (trees alone) and ``learned``
    (trees alone; needs scikit-learn). null: mbr and fuse for parses, mbr for translation and speech, and for rankings
    if candidates have answers, else none.
    use: the model's decision: ``auto`` is the best on dev, which may be the best candidate, and of equals the simplest;
    ``best`` is always the best candidate.
    sharpness: the factor of scores in probabilities, with scores in units of their deviation on dev; null: the best on
    dev, and 2 where the probability of brackets is learned.
    threshold: the least probability of a bracket, of one half or more unless it is learned; null: the best on dev.
    most: at most this many candidates of a list, the best by score, are compared with each other (mbr): all pairs are,
    unless candidates have answers.
    gains: a function from candidates to the gains of each (rows) if another is the reference (columns), by import path
    ``module:function``, in place of the metric.
    margin: the lead in probability that the best answer (candidate, if there are no answers) needs over the next; with
    a smaller lead none is given. The model then decodes by mbr, unless ``use`` says otherwise.
    below: with a smaller lead, ``abstain``, or take the best candidate by ``base`` score.
    """

    kinds: Annotated[tuple[Literal["mbr", "fuse", "learned"], ...] | None, one_or_many(str)] = None
    use: Literal["auto", "best", "mbr", "fuse", "learned"] = "auto"
    sharpness: Positive | None = None
    threshold: Annotated[float, Range(0, below=1)] | None = None
    most: Annotated[int, Range(2)] = 200
    gains: str | None = None
    margin: Annotated[float, Range(0, 1)] = 0.0
    below: Literal["abstain", "base"] = "abstain"


class SignificanceSettings(Section):
    """The test of every predictor against the base, and of runs against one another.

    test: the test.
    samples: the number of samples of the resampling tests.
    """

    test: TestName = "approximate_randomization"
    samples: Samples = 10_000


class RunSettings(Section):
    """Runs with settings of their own.

    name: the run's name in tables.
    set: the settings that differ, by dotted key.
    grid: takes the place of the recipe's.
    """

    name: str
    set: Settings = Field(default_factory=dict)
    grid: Grid | None = None


R = TypeVar("R", bound=RunSettings)


def different_names(runs: tuple[R, ...]) -> tuple[R, ...]:
    """``runs``; a ValueError where two have the same name, by which results tell them apart."""
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        raise ValueError("two runs have the same name")
    return runs


class ReportedSettings(Section):
    """Figures from a paper, shown next to the results.

    source: where the numbers come from.
    rows: the numbers by run (with the point of its grid), or of ``base`` and ``oracle``. A measure is taken on the
    first test split, or is ``SPLIT.MEASURE``, or ``nonzero_weights`` or ``seconds`` of the training.
    """

    source: str
    rows: dict[str, dict[str, float | str]]
