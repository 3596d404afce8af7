"""Recipes over lists of texts: translations, transcripts, samples of a language model."""

import re
from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rerank.base.errors import RecipeError
from rerank.readers.base import readers
from rerank.readers.detection import named_like
from rerank.readers.several import make_reader
from rerank.readers.texts.answers import check_rule
from rerank.readers.texts.roles import ROWS
from rerank.recipes.recipe import TASKS, ListRecipe
from rerank.recipes.sections import SplitName, SplitSettings, TemplateSettings
from rerank.recipes.settings import Section, Settings, literal, named, one_or_many, part

METRICS = {task: TASKS[task]["metric"] for task in ("translation", "speech", "ranking")}
DERIVED, UNDERIVED = "translation", "text"  # the sets that AUTO stands for
_JSON = re.compile(r"\.jsonl?(\.\w+)?$")  # by the name of a file, compressed or not


class TextDataSettings(SplitSettings):
    """The files of lists of texts, of their sources and of their references.

    sources: where the inputs are, one per line; null: in the lists, or unknown.
    references: where the references are, in one file or several; null: in the lists, or (for a gain) not needed.
    form: what a file of references holds: lines are one on each, as it stands, tab several on each with tabs between
    them, id one on each with the id of its list; auto lines that may have ids, also those of sources, which is said.
    answer: how the answer is found in the text of a candidate that does not have one under ``answer``: ``boxed``,
    ``last-number``, ``letter``, ``text``, ``json:KEY``, ``regex:PATTERN`` or ``math-verify``; null: it has none, unless
    the lists say what is right.
    roles: what keys of JSON are, where their names and kinds do not tell: ``{samples: candidates, passed: gain}``.
    """

    sources: str | None = "{root}/{split}.src.gz"
    references: Annotated[tuple[str, ...] | None, one_or_many(str)] = ("{root}/{split}.ref.gz",)
    form: Literal["auto", "lines", "tab", "id"] = "auto"
    answer: Annotated[str | None, AfterValidator(check_rule)] = None
    roles: dict[str, str] | None = None
    reader: Annotated[Settings, part("moses")] = Field(default={}, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _of_json(cls, values: Any) -> Any:
        """Lists in files of JSON are read as such, and hold sources and references themselves, unless others are named;
        where they hold the right answers the rule for answers is the reader's too."""
        if not isinstance(values, dict) or not isinstance(reader := named(values.get("reader", {})), dict):
            return values
        if "name" not in reader and (like := named_like(str(values.get("nbest")))):
            reader = {"name": like, **reader}
        if "name" not in reader and _JSON.search(str(values.get("nbest"))):
            reader = {"name": "jsonl", **reader}
            values = {"sources": None, "references": None, **values, "reader": reader}
        if reader.get("name") == "table" or _of_search(reader.get("name")):
            values = {"sources": None, "references": None, **values, "reader": reader}
        for key in ("answer", "roles"):
            if reader.get("name") in ROWS and values.get(key) is not None:
                values = {**values, "reader": (reader := {key: values[key], **reader})}
        return values

    def files_of(self, source: str) -> dict[str, list[str]]:
        files = {"nbest": make_reader(self.reader, "data.reader").paths(self.lists(source))}
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


def _names_alone(values: dict[str, Any]) -> bool:
    """Whether the lists of a recipe have names of documents as texts."""
    data = values.get("data")
    reader = named(data.get("reader", {})) if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(reader, dict):
        return False
    return _of_search(reader.get("name", named_like(str(data.get("nbest")))))


def _of_search(name: Any) -> bool:
    """Whether the texts of a reader are names of documents, which are nothing to learn from."""
    return name in readers and readers.get(name).use == "search"


class TextFeatureSettings(TemplateSettings):
    """Templates of texts: the sets are dense, dptm, translation, text and speech; auto is translation for lists with
    segmentations, text for others.

    apart: score columns that learning leaves out, whose values in training lists do not matter: ``mert`` weighs them.
    """

    apart: tuple[str, ...] = ()


class MertStage(Section):
    """MERT (Och 2003), after training: the weights of the dense columns, of the base score and of the learned sparse
    score as a whole, for the best corpus score of a split.

    split: the lists to tune on.
    columns: the score columns that are weighed beside the learned score, base and dense columns included, as a whole:
        such as the score of a neural model and the number of words; null: all that is dense, each by itself.
    predictor: the predictor whose weights the search starts from, and whose sparse score it takes.
    settings: the settings of the search.
    """

    split: SplitName = "tune"
    columns: tuple[str, ...] | None = None
    predictor: Literal["last", "average"] = "average"
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
    metrics: tuple[Literal["ter"], ...] = ()
    mert: MertStage | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_names(cls, values: Any) -> Any:
        """Names of documents are nothing to learn from."""
        alone = isinstance(values, dict) and _names_alone(values)
        return values | {"features": named(values.get("features", {}), "dense", "set")} if alone else values

    @model_validator(mode="after")
    def _weighed(self) -> Self:
        """What learning leaves out has a weight from MERT alone."""
        columns = () if self.mert is None else self.mert.columns
        if columns is not None and (left := [name for name in self.features.apart if name not in columns]):
            raise RecipeError(
                f"found {left[0]!r}, which nothing weighs; name it in mert.columns too", key="features.apart"
            )
        return self

    @property
    def splits(self) -> tuple[str, ...]:
        """All splits that are read, the training split first."""
        return tuple(dict.fromkeys([*self.data.splits, *([self.mert.split] if self.mert else [])]))

    @property
    def predictor(self) -> str:
        return "mert" if self.mert is not None else self.training.predictor
