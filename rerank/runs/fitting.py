"""``rerank.fit``: the course of a recipe over lists that a program holds."""

import dataclasses
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Unpack

from rerank.base.errors import DataError, RecipeError
from rerank.data.answers import check_rule
from rerank.extraction.content import user_templates
from rerank.extraction.kinds import metric_of
from rerank.features.template import SETS
from rerank.learn.learner import learners
from rerank.metrics.gain import ColumnMetric, Gain
from rerank.metrics.metric import metrics
from rerank.models.model import Model
from rerank.models.reranker import Reranker
from rerank.pool import open_engine
from rerank.readers.inputs import Source
from rerank.readers.lists import GAIN, first_with_candidates
from rerank.readers.memory.nbest import NBest, error_context, skip_bad
from rerank.readers.memory.reading import (
    FrameColumns,
    FrameLists,
    ListFile,
    check_keys,
    first_list,
    holds_trees,
    is_frame,
    lists_from,
    memory_blocks,
)
from rerank.readers.reader import ScoreColumns
from rerank.readers.texts.jsonl import is_table
from rerank.recipes.loading import load_recipe, measuring_recipe, read_settings, task_named
from rerank.recipes.recipe import METRICS, ListRecipe, TaskRecipe
from rerank.recipes.settings import Settings, as_settings
from rerank.runs.experiment import experiment
from rerank.runs.training import IN_MEMORY, Callback
from rerank.storage.streams import Inputs

log = logging.getLogger("rerank")
TRAIN, DEV = "train", "dev"  # the splits of a recipe over lists of a program
DATA_SETTINGS = "on_bad_list", "normalize", "shard_size", "answer"  # what is kept of the data of a recipe that is given

AnyLists = Any  # ``NBest``s, what ``read`` gives, a data frame, or dicts


def fit(
    lists: AnyLists,
    dev: AnyLists | None = None,
    *,
    recipe: str | os.PathLike[str] | Mapping[str, Any] | TaskRecipe | None = None,
    metric: str | Mapping[str, Any] | None = None,
    features: str | Iterable[Any] | Mapping[str, Any] | Callable[..., Any] | None = None,
    learner: str | Mapping[str, Any] | type | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    start: Reranker | str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
    **columns: Unpack[FrameColumns],
) -> Reranker:
    """Train a model. The same lists give the same model, to the bit, as the recipe that says the same.

    Parameters
    ----------
    lists: what to train on: ``NBest``s with references or gains, what ``read`` gives, a data frame, or dicts with the
        keys ``prompt``, ``chosen`` and ``rejected``.
    dev: lists to choose the epoch and the weight of the base score on; without them a tenth of the others is held out.
    recipe: the file of a recipe, its settings, or ``Reranker.recipe``: for everything that is not said here, such as
        ``training``, ``grid`` and ``mert`` (with ``split: dev``). Of its ``data``, only how lists are treated counts.
    metric: what to train for: by default, "gain" where lists have gains, "parseval" for parses, "bleu" for other texts.
    features: the name of a set; or names of sets, templates and functions (see ``rerank.feature``), and of columns of
        the data frame; or the section of a recipe.
    learner: its name or import path, its class, or a mapping of name and parameters.
    epochs, seed: passes over the lists, and the seed of their order.
    start: a model to continue from, or its directory: with its recipe and features unless others are given; maxent is
        then drawn to its weights in place of 0.
    callback: called with a ``TrainingEvent`` after every epoch; what it raises ends the training, and is raised here.
    columns: of a data frame, as in ``read``; the model remembers them. Of other lists, ``answer`` is the rule for
        answers, which the model remembers too; by default as in ``read``.

    Raises
    ------
    RecipeError: an unknown learner, template, metric or setting, or settings that exclude one another. DataError: no
        lists, or lists that cannot be used.
    """
    check_keys("fit", columns)
    if start is not None and not isinstance(start, Reranker | str | os.PathLike):
        raise RecipeError(f"found {type(start).__name__}; expected a model or its directory", key="start")
    if callback is not None and not callable(callback):
        raise RecipeError(f"found {type(callback).__name__}; expected a function of one event", key="callback")
    if dev is lists and isinstance(lists, Iterator):
        raise DataError("dev: found the same iterator as lists, which yields each list only once; expected a list")
    answer = None if is_frame(lists) or is_table(lists) else check_rule(columns.pop("answer", None))
    if isinstance(start, str | os.PathLike):
        start = Reranker(Model.load(os.fspath(start), trust=True))
    if start is not None:
        recipe = start.recipe if recipe is None else recipe
        if is_frame(lists) or is_table(lists):
            lists = start.frame_lists(lists, columns, with_truth=True)
    lists = lists_from(lists, columns if not isinstance(lists, FrameLists) else {})
    answer = getattr(lists, "answer", None) if answer is None else answer
    frame: dict[str, Any] = {}
    if isinstance(lists, FrameLists):
        features, lists = _frame_features(features, lists)
        frame = dict(lists.names)
        if start is not None and (new := [name for name in frame.get("columns", ()) if name not in start.columns]):
            message = f"the model to start from knows no column {new[0]!r}, only {', '.join(start.columns)}"
            raise RecipeError(f"{message}; leave it out, or train without start", key="features")
    dev = None if dev is None else lists_from(dev, frame if is_frame(dev) or is_table(dev) else {})
    settings = _settings(recipe)
    if (task := settings.get("task")) is not None and not task_named(task).lists:
        raise RecipeError(f"a recipe of the task {task}, which has no lists; `rerank run` runs it", key="recipe")
    parts = {"metric": as_settings(metric), "features": _features(features), "learner": _learner(learner), "seed": seed}
    settings |= {key: value for key, value in parts.items() if value is not None}
    for section, key, value in (("training", "epochs", epochs), ("data", "answer", answer)):
        if value is not None:
            settings[section] = {**_mapping(settings.get(section), section), key: value}
    first, lists = first_list(lists)
    settings["task"] = task_of(settings, first)
    measure = metric_of(measuring_recipe(settings["task"], settings.get("metric")))
    how = {"texts": settings["task"] in METRICS, "gains": isinstance(measure, Gain)}
    names_of_start = None if start is None else ScoreColumns.of_table(start.model.table.about)
    source, data, names = _source_of(lists, names_of_start, **how)
    sources = {TRAIN: source}
    if dev is not None:
        sources[DEV], *_ = _source_of(dev, names, **how)
    model = _train(settings, data, sources, start, callback)
    return Reranker(dataclasses.replace(model, about={**model.about, "frame": frame}) if frame else model)


def _train(
    settings: Settings, data: Settings, lists: Mapping[str, Source], start: Reranker | None, callback: Callback | None
) -> Model:
    """The model that a recipe with these ``settings``, and these of the ``data``, makes of the lists of its splits."""
    overrides = {key: value for key, value in _mapping(settings.get("data"), "data").items() if key in DATA_SETTINGS}
    data = {**data, **overrides}
    if start is not None:
        training = _mapping(settings.get("training"), "training")
        if training.get("start") is not None:
            raise RecipeError("found a second model to start from, beside start=...", key="training.start")
        settings["training"] = {**training, "start": IN_MEMORY}
    splits: Settings = {"train": TRAIN, "dev": DEV if DEV in lists else None, "tests": []}
    recipe = read_settings({"name": "fit", **settings, "data": {**data, **splits}})
    assert isinstance(recipe, ListRecipe)
    if missing := set(recipe.splits) - lists.keys():
        message = f"the recipe needs a split {min(missing)!r}; found only {' and '.join(lists)}"
        tuning = "; MERT can tune on dev: say mert: {split: dev}" if getattr(recipe, "mert", None) else ""
        raise RecipeError(message + tuning, key="recipe")
    with error_context(), open_engine(**recipe.engine.model_dump()) as engine:
        source = Inputs(lists, None if start is None else start.model)
        model: Model = experiment(recipe, source, None, until="train", engine=engine, callback=callback).model
    section = model.settings["data"]  # files and splits of this process mean nothing to the users of a model
    data |= {key: section[key] for key in ("answer", "reader") if key in section}
    model_data = type(recipe.data).model_validate(data).model_dump(mode="json")
    model_data |= {key: section[key] for key in ("reader", "roles") if key in model_data}
    settings = {**model.settings, "data": model_data, "training": {**model.settings["training"], "start": None}}
    return dataclasses.replace(model, settings=settings, about={**model.about, "files": {}})


def _settings(recipe: str | os.PathLike[str] | Mapping[str, Any] | TaskRecipe | None) -> Settings:
    """The settings of a recipe as far as they are given."""
    if isinstance(recipe, str | os.PathLike):
        recipe = load_recipe(os.fspath(recipe))
    if isinstance(recipe, TaskRecipe):
        return recipe.model_dump(mode="python") | {"engine": recipe.engine}
    return dict(_mapping(recipe, "recipe"))


def _mapping(section: Any, key: str) -> Mapping[str, Any]:
    """The settings at ``key``; None stands for none."""
    if not isinstance(section, Mapping | None):
        raise RecipeError(f"found {section!r}; expected a mapping of settings", key=key)
    return section or {}


def task_of(settings: Settings, first: NBest) -> str:
    """The task of a recipe: what it says, or else what its metric measures, or a list holds."""
    if "task" in settings:
        return str(settings["task"])
    if (metric := as_settings(settings.get("metric"))) is not None:
        name = metric.get("name") if isinstance(metric, Mapping) else metric
        of_column = isinstance(name, str) and name in metrics and issubclass(metrics.get(name), ColumnMetric)
        usual = {**METRICS, "parse": "parseval"}
        return next((task for task, of in usual.items() if of == name), "ranking" if of_column else "translation")
    if holds_trees(first):
        return "parse"
    return "translation" if first.gains is None else "ranking"


def _source_of(
    lists: AnyLists, columns: ScoreColumns | None, *, texts: bool, gains: bool
) -> tuple[Source, Settings, ScoreColumns | None]:
    """Lists as a split of a recipe: how to go through them, what a recipe says of lists like these, and the columns of
    the first list if a program has made them. Those of a file, which is read again whenever they are gone through, stay
    as they are.

    texts: whether they are lists of texts, not trees; gains: whether their gains are what is trained for.
    """
    if isinstance(lists, ListFile):
        data: Settings = {"reader": dict(lists.settings), "on_bad_list": lists.on_bad_list, "encoding": lists.encoding}
        if texts:
            data |= {"sources": lists.sources and "{root}/{split}.src.gz", "form": lists.form}
            data |= {} if lists.references else {"references": None}
        return lists.blocks, data, None
    with error_context():
        blocks = memory_blocks(lists, texts=texts, gains=gains, columns=columns)
        items = (
            block if block.list_count > 1 else block.count_repeats("keep")
            for block in skip_bad(blocks, getattr(lists, "on_bad_list", "error"))
        )
        rows = [block.without_raw() for block in items]
    first, _ = first_with_candidates(rows)
    if first is None:
        raise DataError("no list with candidates")
    names = first.with_names().names
    columns = columns or ScoreColumns(names, names[first.column])
    dense = [name for name in columns.names if name not in (columns.base, GAIN)]
    reader = {"name": "jsonl", "base": columns.base, "dense": dense}
    data = {"nbest": "{root}/{split}.jsonl.gz", "reader": reader, "sources": None, "references": None}
    return lambda *_: iter(rows), data if texts else {}, columns


def _learner(learner: Any) -> Any:
    if not isinstance(learner, type):
        return as_settings(learner)
    names = [name for name, cls in learners if cls is learner]
    return {"name": names[0] if names else _import_path(learner, "learner")}


def _features(features: Any) -> Settings | None:
    """The section of a recipe."""
    if features is None:
        return None
    if isinstance(features, Mapping):
        user = {
            name: _template(feature) if callable(feature) else feature
            for name, feature in features.get("user", {}).items()
        }
        return {**features, **({"user": user} if user else {})}
    entries = [features] if isinstance(features, str) or callable(features) else list(features)
    sets = [feature for feature in entries if isinstance(feature, str) and feature in SETS]
    if len(sets) > 1:
        raise RecipeError(f"found the sets {' and '.join(sets)}; expected one, and templates", key="features")
    if isinstance(features, str) and not sets:
        return {"set": features}
    others = [feature for feature in entries if feature not in sets and not callable(feature)]
    user = {feature.__name__: _template(feature) for feature in entries if callable(feature)}
    return {"set": sets[0] if sets else None, "templates": others, "user": user}


def _frame_features(features: Any, lists: FrameLists) -> tuple[Any, FrameLists]:
    """The templates that ``features`` name besides columns of a data frame, and the lists with these columns."""
    entries = [features] if isinstance(features, str) else [] if features is None else features
    if not isinstance(entries, Iterable) or isinstance(entries, Mapping):
        return features, lists
    entries, roles = list(entries), {name: key for key, name in lists.names.items() if key != "columns"}
    columns = [name for name in entries if isinstance(name, str) and name in lists.frame.columns and name not in SETS]
    if clashes := [name for name in columns if name in roles]:
        message = f"the column {clashes[0]!r} is the {roles[clashes[0]]}; leave it out of what to learn from"
        raise RecipeError(message, key="features")
    names = list(dict.fromkeys([*lists.names.get("columns", ()), *columns]))
    rest = [feature for feature in entries if feature not in columns]
    if not names and (unused := lists.unused()):
        log.warning("no column is learned from: features=[...] may name %s", ", ".join(map(repr, unused)))
    sets = [SETS.get(feature, (feature,)) for feature in rest if isinstance(feature, str)]
    if columns and not any("Dense" in templates for templates in sets):
        rest = [*rest, "Dense"] if rest else ["dense"]
    lists = dataclasses.replace(lists, names={**lists.names, "columns": names}) if names else lists
    return None if features is None else rest, lists


def _template(function: Callable[..., Any]) -> str:
    path = _import_path(function, "features")
    if user_templates.get(path) is not function:
        raise RecipeError(f"{path} now names another function; pass that one", key="features")
    return path


def _import_path(part: Any, key: str) -> str:
    """The path by which a function or class can be found again."""
    if "<" in part.__qualname__:
        message = f"{part.__qualname__} cannot be found again by the model; define it in a module, outside"
        raise RecipeError(f"{message} of functions", key=key)
    return f"{part.__module__}:{part.__qualname__}"
