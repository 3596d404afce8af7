"""Recipes: what all tasks have in common, those over lists, and those of reranking parses and texts.

Defaults live here, in the sections, and in the classes that a recipe names, nowhere else.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from rerank.base.errors import RecipeError
from rerank.base.registry import texts_in
from rerank.parts import trees
from rerank.readers.detection import reader_by_name
from rerank.readers.reader import make_reader, readers
from rerank.readers.trees.treebank import treebank_files
from rerank.recipes.sections import (
    DecodeSettings,
    EngineSettings,
    OracleSettings,
    ReportedSettings,
    RunSettings,
    SignificanceSettings,
    SplitName,
    SplitSettings,
    TemplateSettings,
    TrainingSettings,
    different_names,
    with_base,
)
from rerank.recipes.settings import (
    MAX_POINTS,
    Examples,
    Grid,
    Section,
    Seed,
    Seeds,
    Settings,
    as_settings,
    change,
    grid_points,
    literal,
    one_or_many,
    part,
    validate,
)
from rerank.storage.documents import as_yaml

AUTO = "auto"  # a set of templates: the one that suits the lists
# What the tasks over lists set unless their recipe says otherwise, beside the defaults of sections: nowhere else.
# docs/results.md has the figures that chose them. A learner or metric that a recipe names has its own defaults.
TASKS: dict[str, Settings] = {
    "parse": {
        "metric": "parseval", "features": {"set": "extended"}, "learner": {"name": "vrda", "loss": "hinge"},
        "training": {"epochs": 14},
    },
    "translation": {
        "metric": "bleu", "features": {"set": AUTO, "min_lists": 2}, "oracle": {"corpus_share": 0.25},
        "learner": {"name": "arda", "loss": "bayes", "eta": 1, "base_rate": 0.1},
    },
    "speech": {
        "metric": "wer", "features": {"set": "speech", "templates": ("Length(binned=False)",), "min_lists": 2},
        "learner": "maxent",
    },
    "ranking": {"metric": "gain", "features": {"set": "text"}, "learner": "maxent"},
}  # fmt: skip
# How lists of a task are decoded unless their recipe says otherwise.
DECODERS: dict[str, tuple[str, ...]] = {"parse": ("mbr", "fuse"), "translation": ("mbr",), "speech": ("mbr",)}


S = TypeVar("S", bound="Single[Any]")


def tree_learner(settings: Any) -> str | None:
    """The first learner among the texts of settings whose predictor is trees, and no sum of weights."""
    return next((text for text in texts_in(settings) if text in trees), None)


# The keys that a recipe ends with where it is written, by place.
LATER = {key: k for k, key in enumerate(("learner", "training", "decode", "significance", "runs", "grid", "quick"), 1)}


class TaskRecipe(Section):
    """The settings of recipes of all tasks. No result depends on the engine, and it is not stored with any.

    name: the run's name, by default the file's without its ending; results go to ``runs/NAME``.
    task: what the candidates are: trees (parse), texts (translation, speech, ranking) or classes (classification).
    about: a note for yourself, shown in the report.
    seed: decides the order of lists in every epoch, resampling, and which examples the report shows.
    seeds: every run once per seed, in place of ``seed``; tables then show mean and standard deviation.
    metric: the measure, with its options.
    runs: runs with settings of their own; there are runs × points of the grid × seeds.
    grid: values by dotted key; every run is made once with every combination, applied after the settings of the run.
    quick: settings, by dotted key, with which the recipe takes a fraction of its time (``rerank run --quick``).
    """

    name: str
    task: str
    engine: Annotated[EngineSettings, part()] = Field(default=EngineSettings(), exclude=True)
    about: str = ""
    seed: Seed = 1
    seeds: Seeds = ()
    metric: Annotated[Settings, part()]
    learner: Settings
    significance: SignificanceSettings = SignificanceSettings()
    runs: Annotated[tuple[RunSettings, ...], one_or_many(dict), AfterValidator(different_names)] = ()
    grid: Grid = Field(default_factory=dict)
    quick: Settings = Field(default_factory=dict)

    common: ClassVar[Collection[str]]  # the sections that a run may not change, which ``refusal`` says
    refusal: ClassVar[str]
    if TYPE_CHECKING:  # of a class of its own in each
        training: Any

    def as_yaml(self) -> str:
        """The resolved recipe, all defaults written out: what is read comes before what is done with it."""
        settings = self.model_dump(mode="json")
        return as_yaml({key: settings[key] for key in sorted(settings, key=lambda key: LATER.get(key, 0))})

    @property
    def run_seeds(self) -> tuple[int, ...]:
        """The seeds that every run is made with."""
        return self.seeds or (self.seed,)

    @property
    def decoders(self) -> tuple[str, ...]:
        """The ways to decode lists besides by their best candidate."""
        return ()

    @property
    def testing(self) -> dict[str, Any]:
        """The test of results, as ``Compared`` has it."""
        return {**self.significance.model_dump(include={"test", "samples"}), "seed": self.seed}

    def change(self, changes: Settings) -> Self:
        """The recipe with other values at dotted keys."""
        return validate(type(self), change(self.model_dump(mode="python"), changes))

    def points(self) -> list[tuple[RunSettings, Settings]]:
        """Every run with every point of its grid."""
        runs = self.runs or (RunSettings(name=str(self.learner.get("name", "run"))),)
        return [(run, point) for run in runs for point in grid_points(self.grid if run.grid is None else run.grid)]

    def expand(self) -> "Sequence[Single[Any]]":
        """Every single run, with one seed; see ``singles``."""
        return self.singles(Single[Any], inner=[{"seed": seed, "seeds": ()} for seed in self.run_seeds])

    def singles(self, kind: type[S], outer: Sequence[Settings] = ({},), inner: Sequence[Settings] = ({},)) -> list[S]:
        """Every single run, as an object of ``kind``: outer axes × runs × points of their grids × inner axes.

        The places of an axis are changed sections: all runs are made at one of ``outer`` after the other, and each at
        all of ``inner`` before the next.
        """
        plain, points = self.model_copy(update={"runs": (), "grid": {}}), self.points()
        if (count := len(points) * len(inner)) > MAX_POINTS:
            message = f"{count:,} runs, with their grids and seeds; at most {MAX_POINTS:,} are made"
            raise RecipeError(message, key="runs")
        singles = [kind.of(plain, run, point) for run, point in points]
        for single in singles:
            if any(getattr(single.recipe, name) != getattr(self, name) for name in self.common):
                raise RecipeError(self.refusal, key=f"runs.{single.run}.set")
        return [single.with_sections(sections | more) for sections in outer for single in singles for more in inner]


R = TypeVar("R", bound=TaskRecipe)


@dataclass(frozen=True)
class Single(Generic[R]):
    """A single run of a recipe: one of its runs at a point of its grid, with the settings of both in ``recipe``, which
    has no runs, grid or further values of an axis of its own."""

    run: str
    point: Settings
    recipe: R

    @classmethod
    def of(cls, plain: R, run: RunSettings, point: Settings) -> Self:
        """A run of the recipe that is ``plain`` otherwise."""
        return cls(run.name, point, plain.change({**run.set, **point}))

    @property
    def name(self) -> str:
        """The run's name with the point of its grid."""
        return " ".join([self.run, *(f"{key.split('.')[-1]}={value}" for key, value in self.point.items())])

    def with_sections(self, sections: Settings) -> Self:
        """The same run with other sections in its recipe."""
        return replace(self, recipe=self.recipe.model_copy(update=sections))


class ListRecipe(TaskRecipe):
    """Everything that determines a result of reranking lists, whatever their candidates are.

    learner: the update rule with its parameters. ``base``, the weight of the base score, is a number from 0 or
    ``auto``: the best on dev, found after every epoch.
    examples: how many lists that got better the report shows, and as many that got worse.
    reported: figures from a paper, shown below the results.
    """

    data: SplitSettings
    features: TemplateSettings
    oracle: OracleSettings = OracleSettings()
    learner: Annotated[Settings, part(), AfterValidator(with_base)]
    training: TrainingSettings = TrainingSettings()
    decode: DecodeSettings = DecodeSettings()
    examples: Examples = 8
    reported: ReportedSettings | None = None

    common: ClassVar[Collection[str]] = ("data", "features", "metric", "decode")  # what the corpora are made of
    refusal: ClassVar[str] = "a run may not change data, features, metric or decode"

    @model_validator(mode="before")
    @classmethod
    def _of_task(cls, values: Any) -> Any:
        """A task brings its own metric, templates and learner."""
        task = values.get("task", cls.model_fields["task"].default) if isinstance(values, dict) else None
        defaults = dict[str, Any]()
        for key, usual in TASKS.get(task, {}).items() if isinstance(task, str) else ():
            own = as_settings(values.get(key, {}), key="set" if key == "features" else "name")
            if key == "features" and isinstance(own, dict) and own.get("set") == "base":
                own = {"templates": (), **own}  # the base score alone has none
            if isinstance(own, dict) and "name" not in own:
                defaults[key] = {**as_settings(usual), **own}
        return {**values, **defaults} if defaults else values

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        """Values stay as they are where trees compare those of different lists."""
        if tree_learner([self.learner, self.grid, [run.set for run in self.runs]]):
            object.__setattr__(self, "features", self.features.model_copy(update={"centred": False}))
        return self

    @model_validator(mode="after")
    def _margin_counts(self) -> Self:
        """A margin is one of expected gains."""
        if self.decode.margin > 0 and "mbr" not in self.decoders:
            raise ValueError(
                f"decode.margin: found {self.decode.margin:g}, but nothing is decoded by mbr here, whose margin it is; "
                "expected decode.kinds with mbr, and lists to tune it on (data.dev) or decode.sharpness"
            )
        return self

    @property
    def splits(self) -> tuple[str, ...]:
        """All splits that are read, the training split first."""
        return self.data.splits

    @property
    def predictor(self) -> str:
        """The predictor whose scores rank lists."""
        return self.training.predictor

    @property
    def decoders(self) -> tuple[str, ...]:
        """The ways to decode lists besides by their best candidate."""
        kinds: tuple[str, ...] = DECODERS.get(self.task, ())
        if self.decode.kinds is not None:
            kinds = self.decode.kinds
        elif getattr(self.data, "answer", None) is not None or (self.decode.margin > 0 and self.task == "ranking"):
            kinds = ("mbr",)
        if self.data.dev is None and self.decode.sharpness is None:  # it is then tuned on lists held out
            kinds = tuple(kind for kind in kinds if kind == "mbr")
        return kinds

    def expand(self) -> list[Single[Self]]:
        runs = list(super().expand())
        for k, run in enumerate(runs):
            training = run.recipe.training
            if training.vote == "first":
                vote = {"vote": run.recipe.seed == self.run_seeds[0]}
                runs[k] = run.with_sections({"training": training.model_copy(update=vote)})
        return runs


class DataSettings(SplitSettings):
    """The files of lists of parses and of their gold trees.

    gold: where the gold trees of a split are: files, folders or patterns such as ``wsj/0[2-9]``; null where the lists
        hold them, as those of a program do.
    normalize: bring words of candidates and gold trees to one form.
    """

    gold: Annotated[Annotated[tuple[str, ...], Field(min_length=1)] | None, one_or_many(str)] = (
        "{root}/{split}.gold.gz",
    )
    reader: Annotated[Settings, part("charniak")] = Field(default={}, validate_default=True)
    normalize: bool = False

    def files_of(self, source: str) -> dict[str, list[str]]:
        files = {"nbest": make_reader(self.reader).paths(self.lists(source))}
        if self.gold is not None:
            files["gold"] = treebank_files(*(self.fill("gold", pattern, source) for pattern in self.gold))
        return files

    def of_files(self, nbest: str, gold: str, sources: str | None) -> Self:
        """The same settings for one set of files; trees have no sources."""
        if sources is not None:
            raise RecipeError("the lists hold trees; sources are for lists of texts")
        return self.model_copy(update={"nbest": literal(nbest), "gold": (literal(gold),)})


class FeatureSettings(TemplateSettings):
    """Templates of trees.

    heads: head rules by kind and label that replace the built-in ones, e.g. ``{syntactic: {NML: ["> NN NNS", ">
    *"]}}``: steps tried in order, ``<`` from the left or ``>`` from the right, then the labels to look for.
    """

    set: str | None
    heads: dict[Literal["syntactic", "semantic"], dict[str, list[str]]] = Field(default_factory=dict)


class Recipe(ListRecipe):
    """Everything that determines a result of reranking parses."""

    task: Literal["parse"] = "parse"
    data: DataSettings = DataSettings()
    features: Annotated[FeatureSettings, part(key="set")]


def _rule(rule: str | None) -> str | None:
    """A rule for answers."""
    from rerank.data.answers import check_rule  # with what it reads formulas by

    return check_rule(rule)


METRICS = {task: TASKS[task]["metric"] for task in ("translation", "speech", "ranking")}
DERIVED, UNDERIVED = "translation", "text"  # the sets that AUTO stands for
_JSON = re.compile(r"\.jsonl?(\.\w+)?$")  # by the name of a file, compressed or not


class TextDataSettings(SplitSettings):
    """The files of lists of texts, of their sources and of their references.

    sources: where the inputs are, one per line; null: in the lists, or unknown.
    references: where the references are, in one file or several; null: in the lists, or (for a gain) not needed.
    form: what each line of references has: ``lines`` one text, ``tab`` several with tabs between them, ``id`` one and
    the id of its list, ``auto`` one and perhaps an id (in sources too).
    answer: how the answer is found in the text of a candidate that does not have one under ``answer``: ``boxed``,
    ``last-number``, ``letter``, ``text``, ``json:KEY``, ``regex:PATTERN`` or ``math-verify``; null: it has none, unless
    the lists say what is right.
    roles: what keys of JSON are, where their names and kinds do not tell: ``{samples: candidates, passed: gain}``.
    """

    sources: str | None = "{root}/{split}.src.gz"
    references: Annotated[tuple[str, ...] | None, one_or_many(str)] = ("{root}/{split}.ref.gz",)
    form: Literal["auto", "lines", "tab", "id"] = "auto"
    answer: Annotated[str | None, AfterValidator(_rule)] = None
    roles: dict[str, str] | None = None
    reader: Annotated[Settings, part("moses")] = Field(default={}, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _of_json(cls, values: Any) -> Any:
        """Lists in files of JSON are read as such, and hold sources and references themselves, unless others are named;
        where they hold the right answers the rule for answers is the reader's too."""
        if not isinstance(values, dict) or not isinstance(reader := as_settings(values.get("reader", {})), dict):
            return values
        if "name" not in reader and (like := reader_by_name(str(values.get("nbest")))):
            reader = {"name": like, **reader}
        if "name" not in reader and _JSON.search(str(values.get("nbest"))):
            reader = {"name": "jsonl", **reader}
            values = {"sources": None, "references": None, **values, "reader": reader}
        if reader.get("name") == "table" or _of_search(reader.get("name")):
            values = {"sources": None, "references": None, **values, "reader": reader}
        for key in (key for key in ("answer", "roles") if values.get(key) is not None):
            from rerank.readers.texts.roles import with_option  # with the forms of JSON

            values = {**values, "reader": (reader := with_option(reader, key, values[key]))}
        return values

    def files_of(self, source: str) -> dict[str, list[str]]:
        files = {"nbest": make_reader(self.reader).paths(self.lists(source))}
        if self.sources is not None:
            files["sources"] = [self.fill("sources", self.sources, source)]
        if self.references is not None:
            files["references"] = [self.fill("references", pattern, source) for pattern in self.references]
        return files

    def of_files(self, nbest: str, gold: str, sources: str | None) -> Self:
        """The same settings for one set of files."""
        changes = {
            "nbest": literal(nbest),
            "references": (literal(gold),),
            "sources": literal(sources) if sources is not None else None,
        }
        return self.model_copy(update=changes)


def _of_search(name: Any) -> bool:
    """Whether the texts of a reader are names of documents, which are nothing to learn from."""
    return isinstance(name, str) and name in readers and readers.get(name).use == "search"


class TextFeatureSettings(TemplateSettings):
    """Templates of texts: the sets are dense, dptm, translation, text and speech; auto is translation for lists with
    segmentations, text for others.

    apart: score columns that learning leaves out, whose values in training lists do not matter: ``mert`` weighs them.
    """

    apart: Annotated[tuple[str, ...], one_or_many(str)] = ()


class MertStage(Section):
    """MERT (Och 2003), after training: the weights of the dense columns, of the base score and of the learned sparse
    score as a whole, for the best corpus score of a split.

    split: the lists to tune on.
    columns: the score columns that are weighed beside the learned score, base and dense columns included, as a whole:
        such as the score of a neural model and the number of words; null: all that is dense, each by itself.
    settings: the settings of the search.
    """

    split: SplitName = "tune"
    columns: Annotated[tuple[str, ...] | None, one_or_many(str)] = None
    settings: Settings = Field(default_factory=dict)


class TextRecipe(ListRecipe):
    """Everything that determines a result of reranking texts.

    metrics: what is reported of the choices besides the usual: ``ter``, by sacrebleu.
    """

    common: ClassVar[Collection[str]] = (*ListRecipe.common, "metrics")
    refusal: ClassVar[str] = "a run may not change data, features, metric, metrics or decode"

    task: Literal["translation", "speech", "ranking"] = "translation"
    data: TextDataSettings = TextDataSettings()
    features: Annotated[TextFeatureSettings, part(key="set")]
    metrics: Annotated[tuple[Literal["ter"], ...], one_or_many(str)] = ()
    mert: MertStage | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_names(cls, values: Any) -> Any:
        """Names of documents are nothing to learn from."""
        data = values.get("data") if isinstance(values, dict) else None
        if not isinstance(data, dict) or not isinstance(reader := as_settings(data.get("reader", {})), dict):
            return values
        if not _of_search(reader.get("name", reader_by_name(str(data.get("nbest"))))):
            return values
        return values | {"features": as_settings(values.get("features", {}), "dense", "set")}

    @model_validator(mode="after")
    def _check_apart(self) -> Self:
        """Check that MERT weighs the columns that learning leaves out."""
        columns = () if self.mert is None else self.mert.columns
        if columns is not None and (missing := [name for name in self.features.apart if name not in columns]):
            raise RecipeError(
                f"found {missing[0]!r}, which nothing weighs; name it in mert.columns too", key="features.apart"
            )
        return self

    @property
    def splits(self) -> tuple[str, ...]:
        """All splits that are read, the training split first."""
        return tuple(dict.fromkeys([*self.data.splits, *([self.mert.split] if self.mert else [])]))

    @property
    def predictor(self) -> str:
        return "mert" if self.mert is not None else self.training.predictor
