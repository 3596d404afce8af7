"""Recipes of tagging: which sentences, which templates and learner, and how the best sequences are reranked."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from rerank.base.errors import DataError
from rerank.base.ranges import Count, Range
from rerank.contrib.structures.readers import TaggedSentence, sequence_readers
from rerank.readers.detection import recognise
from rerank.readers.reader import readers, settings_of
from rerank.recipes.loading import Task, TaskFiles
from rerank.recipes.recipe import TaskRecipe
from rerank.recipes.sections import EpochSettings, FileSettings
from rerank.recipes.settings import (
    Examples,
    FoldCount,
    Section,
    Settings,
    one_or_many,
    part,
)
from rerank.storage.documents import as_json

HERE = "rerank.contrib.structures"
TAGGING = Task(
    f"{HERE}.recipe:TaggingRecipe", f"{HERE}.kind:TaggingKind", "sequences",
    new=f"{HERE}.recipe:new_recipe", tries=("rerank tag MODEL FILE",),
)  # fmt: skip


class TaggingData(FileSettings):
    """The files of labelled sentences.

    file: where the sentences of a split are.
    reader: their format, with its options: docs/tagging.md.
    """

    file: str = "{root}/{split}.conll"
    reader: Annotated[Settings, part("conll")] = Field(default={}, validate_default=True)

    def path(self, split: str) -> str:
        """The file of a split."""
        return self.fill("file", self.file, split)


class TokenFeatureSettings(Section):
    """The maker of attributes of tokens.

    templates: ``default``, lines in the syntax of CRF++, and files of such lines, in any number.
    cutoff: attributes of fewer tokens of training are left out.
    """

    templates: Annotated[tuple[str, ...], one_or_many(str)] = ("default",)
    cutoff: Count = 1


class RerankSettings(Section):
    """A second stage: the best sequences of every sentence, reranked by features of whole sequences.

    n: the number of sequences for each sentence.
    folds: the number of folds; sequences of training sentences come from taggers trained on the other folds.
    recipe: the settings of the ranking, by dotted key, that differ from the defaults of its task.
    """

    n: Annotated[int, Range(2, 1000)] = 20
    folds: FoldCount = 5
    recipe: Settings = Field(default_factory=dict)


class TaggingRecipe(TaskRecipe):
    """Everything that determines a result of tagging.

    constraints: which labels may follow each other: where all of training mark spans, those that do so (auto), or any
    (none).
    metric: spans, tags, or auto: spans where labels mark spans.
    rerank: a second stage; null: none.
    examples: how many sentences with errors the report shows.
    """

    task: Literal["tagging"] = "tagging"
    data: TaggingData = TaggingData()
    features: Annotated[TokenFeatureSettings, part(key="templates")] = TokenFeatureSettings()
    constraints: Literal["auto", "none"] = "auto"
    metric: Annotated[Settings, part("auto")] = Field(default={}, validate_default=True)
    learner: Annotated[Settings, part("perceptron")] = Field(default={}, validate_default=True)
    training: EpochSettings = EpochSettings()
    rerank: RerankSettings | None = None
    examples: Examples = 8

    common: ClassVar[Collection[str]] = ("data", "metric", "rerank")
    refusal: ClassVar[str] = "a run may not change data, metric or rerank"


FORMATS = "conllu", "slash", "conll"  # that are tried, the pickiest first
SAMPLE_SENTENCES = 50
LABELS = {"conll": ("label", "last"), "conllu": ("label", "upos"), "slash": ("mark", "/"), "trees": ("label", "tags")}
FRACTION = re.compile(r"[-+]?\d*\.\d+(e[-+]?\d+)?|inf")
MIN_OVERLAP = 0.5  # the share that two inventories of labels have in common


def doubt_of_labels(sentences: Iterable[TaggedSentence]) -> str:
    """A sentence where labels do not look like those of the tokens of sentences; empty where they do."""
    every = list(sentences)
    ids = [each.id for each in every if each.id]
    labels = [label for each in every for label in each.labels]
    kinds = {
        f"have one label for all, {labels[0]!r}": len(set(labels)) == 1,
        "have labels that are numbers, and not whole": 2 * len([*filter(FRACTION.fullmatch, labels)]) > len(labels),
        "have labels with slashes between them": 10 * sum("/" in label for label in labels) > len(labels),
        "are analyses, as Apertium writes them, ^word/analysis/analysis$": sum(
            each.tokens[0][0].startswith("^") and each.labels[-1].endswith("$") for each in every) > len(every) / 2,
        "have words with slashes between them": 10 * sum("/" in token[0] for each in every for token in each.tokens
                                                         ) > len(labels),
        "have columns besides with the same labels as the last (of nested spans, name one: label: 2, columns: [1])":
            _have_alternatives(every),
        "repeat one token, with another label each": 2 * sum(
            len(each.tokens) > 1 == len(set(each.words)) for each in every) > len(every),
        "begin with the token '#', as comments do: say comments: '#'": 10 * sum(
            each.tokens[0][0].startswith("#") for each in every) > len(every),
        "have ids that are repeated": len(set(ids)) < len(ids),
    } if labels else {}  # fmt: skip
    fault = next((fault for fault, is_so in kinds.items() if is_so), "")
    message = f"The sentences {fault}: these look like alternatives of words, or weights, and not like labels."
    return message if fault else ""


def check_labels(sentences: Iterable[TaggedSentence], reader: Mapping[str, Any], path: str) -> None:
    """Raises DataError where labels of a file do not look like those of its tokens, unless the reader is told which
    they are."""
    key, usual = LABELS.get(reader["name"], ("", ""))
    if key and key not in reader and (amiss := doubt_of_labels(sentences)):
        spec = f"{{name: {reader['name']}, {key}: {usual}}}"
        advice = f"If these are labels, say so: reader: {spec}, for a command --reader '{spec}'"
        raise DataError(f"{amiss} {advice} (docs/tagging.md)", path=path)


def _have_alternatives(sentences: Sequence[TaggedSentence]) -> bool:
    """Whether a column beside the word has the inventory of the labels: alternatives of one word side by side."""
    labels = {label for each in sentences for label in each.labels}
    columns = zip(*(token for each in sentences for token in each.tokens), strict=False)
    return len(labels) > 1 and any(MIN_OVERLAP * len(labels | had) <= len(labels & had)
                                   for had in map(set, islice(columns, 1, None)))  # fmt: skip


# What is better than the default on thousands of sentences, and worse on a hundred: dev chooses. Tags of UD's Greek-GDT
# and Turkish-IMST, 1,500 sentences, accuracy on dev: perceptron 95.55 and 85.99, pa 95.71 and 86.38, with affixes of
# five 95.89 and 86.96.
RUNS = """\
runs:  # the best on dev is the tagger
- {name: perceptron}
- {name: pa, set: {learner: {name: pa, loss: cost}}}
- name: pa with longer affixes
  set: {learner: {name: pa, loss: cost}, features.templates: [default, "U90:%prefix5[0,0]", "U91:%suffix5[0,0]"]}
"""


def new_recipe(files: TaskFiles) -> list[str]:
    """The lines that `rerank new` writes for files of sentences with labels; see ``Task``."""
    settings, quote = {} if files.reader is None else settings_of(files.reader, "--reader"), files.quote
    if not settings and not any(recognise(path, readers) for path in files.paths):
        name = next((each for each in FORMATS if all(_holds_sentences(each, path) for path in files.paths)), None)
        settings = {"name": name} if name else {}
    if settings.get("name") not in sequence_readers.names():
        return []
    check_labels(_sentences(settings, files.train)[0], settings, files.train)
    alone = len(settings) == 1
    reader = str(settings["name"]) if alone else as_json(settings)
    usual = "  # the last column, or the tag, is the label; docs/tagging.md says how to name another" * alone
    return [
        f"sentences with labels in the format {reader}",
        "task: tagging", "", "data:", f"  root: {quote(files.root)}", f"  file: {quote(files.pattern())}",
        f"  reader: {reader}{usual}",
        f"  train: {quote(files.splits[files.train])}",
        f"  dev: {quote(files.splits[files.dev]) if files.dev else 'null'}",
        f"  tests: [{', '.join(quote(files.splits[path]) for path in files.tests)}]", "",
        "# training: {epochs: 10}", "# rerank: {n: 20, folds: 5}  # a second stage: features of whole sequences",
        *(RUNS.splitlines() if files.dev else ()),
    ]  # fmt: skip


def _sentences(settings: Mapping[str, Any], path: str) -> tuple[list[TaggedSentence], int]:
    """The first sentences of a file, and how many there were with those that cannot be used."""
    options = {key: value for key, value in settings.items() if key != "name"}
    items = list(islice(sequence_readers.get(settings["name"])(**options).read(path), SAMPLE_SENTENCES))
    return [each for each in items if isinstance(each, TaggedSentence)], len(items)


def _holds_sentences(reader: str, path: str) -> bool:
    """Whether a reader finds sentences in a file, more than one, whose labels are fewer than their tokens."""
    try:
        sentences, count = _sentences({"name": reader}, path)
    except DataError:
        return False
    labels = [label for each in sentences for label in each.labels]
    long = sum(len(each.tokens) > 1 for each in sentences)
    return len(sentences) == count > 1 and 2 * long > count and 2 * len(set(labels)) < len(labels)
