"""Commands that carry out recipes: run, extract, train, test, compare, list."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table as RichTable

from rerank.base.errors import RecipeError
from rerank.base.names import file_name
from rerank.classification import pipeline as classification
from rerank.classification.page import Outcome, sets_table
from rerank.cli.application import Sets, app, out
from rerank.cli.ending import Command
from rerank.engines.settings import Engine, EngineSettings, open_engine
from rerank.features.sets import SETS
from rerank.features.template import templates
from rerank.learn.base import learners
from rerank.learn.losses import LOSSES
from rerank.metrics.base import Metric, metrics
from rerank.readers.base import readers
from rerank.recipes.example_recipe import ClassificationRecipe
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import ListRecipe, TaskRecipe
from rerank.recipes.shipped import about_recipe, find_recipe, shipped_recipes
from rerank.runs import pipeline
from rerank.runs.evaluation import compare_runs
from rerank.runs.report.reported import reported_table
from rerank.runs.report.summary import signatures, summary
from rerank.runs.report.table import plain_text, results_table
from rerank.runs.report.verdict import unbeaten, verdict
from rerank.runs.results import Metrics

RecipeFile = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="The recipe: a YAML file, or a name of `rerank list recipes`.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where results go; runs/NAME by default.", show_default=False)
]
Resume = Annotated[bool, typer.Option("--resume", help="Keep the finished stages and runs of an interrupted run.")]
EngineName = Annotated[
    Literal["auto", "local", "processes", "dask", "ray"] | None,
    typer.Option(
        "--engine", help="Where the work is done: in this process, in processes of this machine, on a cluster."
    ),
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="How many workers; without --engine, that many processes.")
]
Address = Annotated[
    str | None,
    typer.Option("--address", help="The address of a running Dask scheduler or Ray cluster.", show_default=False),
]


def _engine(recipe: TaskRecipe, name: EngineName, workers: int | None, address: str | None) -> Engine:
    """The engine of the recipe, changed as the command line says; results do not depend on it."""
    settings = recipe.engine
    if name is None and workers is not None and settings.name == "auto":
        name = "processes"
    given = {"name": name, "workers": workers, "address": address}
    if name not in (None, settings.name):
        settings = EngineSettings()
    return open_engine(settings.model_copy(update={key: value for key, value in given.items() if value is not None}))


def _recipe(path: Path, sets: list[str] | None, output: Path | None, quick: bool = False) -> tuple[TaskRecipe, Path]:
    recipe = load_recipe(path, sets, quick=quick)
    directory = output if output is not None else Path("runs") / file_name(recipe.name)
    stored, path = directory / "recipe.yaml", find_recipe(path)
    if stored.exists() and stored.samefile(path) and stored.read_text(encoding="utf-8") != recipe.as_yaml():
        raise RecipeError(
            "the recipe.yaml of the results would replace this file; use another --output", path=str(path)
        )
    Command.output = directory
    return recipe, directory


@app.command()
def run(
    recipe: RecipeFile,
    set_: Sets = None,
    output: Output = None,
    resume: Resume = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="With the recipe's settings for a fraction of its time.")
    ] = False,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Extract, train, test and report, as the recipe says."""
    settings, directory = _recipe(recipe, set_, output, quick)
    with _engine(settings, engine, workers, address) as opened:
        if isinstance(settings, ClassificationRecipe):
            result: Metrics = {}
            _print_tables(classification.run(settings, directory, resume=resume, engine=opened))
        else:
            lists = _of_lists(settings, "run")
            result = pipeline.run(lists, directory, resume=resume, engine=opened)
            _print_results(lists, result)
    out.print(f"report: {directory / 'report.html'}")
    _print_unbeaten(result)


@app.command()
def extract(
    recipe: RecipeFile,
    set_: Sets = None,
    output: Output = None,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Build and cache the corpora of a recipe, and say what is in them."""
    settings, directory = _recipe(recipe, set_, output)
    if isinstance(settings, ClassificationRecipe):
        if engine is not None or workers is not None or address is not None:
            raise RecipeError("examples are read by one process; leave out --engine, --workers and --address")
        table = sets_table({"corpora": classification.extract(settings)}).rich()
        out.print(table if out.is_terminal else plain_text(table))
        return
    table = RichTable("split", "lists", "candidates", "nonzeros", "columns", "skipped lists", "skipped candidates")
    with _engine(settings, engine, workers, address) as opened:
        found = pipeline.extract(_of_lists(settings, "extract"), directory, opened)
    for split, counts in found.items():
        numbers = [f"{counts[key]:,}" for key in ("lists", "candidates", "nonzeros", "columns")]
        skipped = [f"{sum(counts[key].values()):,}" for key in ("skipped", "skipped_candidates")]
        table.add_row(split, *numbers, *skipped)
    out.print(table)


@app.command()
def train(
    recipe: RecipeFile,
    set_: Sets = None,
    output: Output = None,
    resume: Resume = False,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Train as the recipe says, without looking at the test splits; leaves the model in OUTPUT/model."""
    settings, directory = _recipe(recipe, set_, output)
    with _engine(settings, engine, workers, address) as opened:
        if isinstance(settings, ClassificationRecipe):
            classification.run(settings, directory, resume=resume, stages=("train",), engine=opened)
            out.print(f"model: {directory / 'model'}")
            return
        lists = _of_lists(settings, "train")
        result = pipeline.run(lists, directory, resume=resume, stages=("train",), engine=opened)
    training = result["training"]
    out.print(f"{training['learner']}: {training['epochs']} epochs, {training['nonzero_weights']:,} nonzero weights")
    out.print(f"model: {directory / 'model'}")
    _print_unbeaten(result)


@app.command("test")
def evaluate_model(
    recipe: RecipeFile,
    set_: Sets = None,
    output: Output = None,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Evaluate the model that `rerank train` left in OUTPUT on the test splits, and report."""
    settings, directory = _recipe(recipe, set_, output)
    lists = _of_lists(settings, "test")
    with _engine(settings, engine, workers, address) as opened:
        result = pipeline.run(lists, directory, resume=True, stages=("test",), engine=opened)
        _print_results(lists, result)
    out.print(f"report: {directory / 'report.html'}")
    _print_unbeaten(result)


def _of_lists(recipe: TaskRecipe, command: str) -> ListRecipe:
    """``recipe``, if it is one of reranking; a RecipeError if ``command`` has nothing to do for its task."""
    if isinstance(recipe, ListRecipe):
        return recipe
    message = f"`rerank {command}` is not for recipes of the task {recipe.task}; `rerank run` trains and tests"
    raise RecipeError(message, key="task")


def _print_tables(outcome: Outcome) -> None:
    for table in outcome.tables:
        shown = table.rich()
        out.print(shown if out.is_terminal else plain_text(shown).rstrip("\n"))
        out.print(f"{table.note}\n")


def _print_unbeaten(result: Metrics) -> None:
    """The last line of a command, where training has not beaten the base."""
    if lost := unbeaten(result):
        out.print(lost)


def _print_results(recipe: ListRecipe, result: Metrics) -> None:
    for split in dict.fromkeys(recipe.data.tests):
        table = results_table(result, split, wide=not out.is_terminal)
        out.print(table if out.is_terminal else plain_text(table))
    for name, text in signatures(result):
        out.print(f"{name}: {text}")
    headline = summary(result)
    if headline is not None:
        out.print(headline["sentence"])
    reported = reported_table(result)
    if reported is not None:
        out.print(reported.rich() if out.is_terminal else plain_text(reported.rich()).rstrip("\n"))


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="The output directory of a run.")],
    run_b: Annotated[
        Path, typer.Argument(metavar="RUN_B", help="The output directory of another run over the same test lists.")
    ],
    predictor: Annotated[
        Literal["base", "oracle", "last", "average", "voted", "mert", "logistic"],
        typer.Option(help="Which selection of either run to compare."),
    ] = "average",
    test_: Annotated[
        Literal["approximate_randomization", "paired_bootstrap", "paired_t", "mcnemar"],
        typer.Option("--test", help="The significance test."),
    ] = "approximate_randomization",
    samples: Annotated[int, typer.Option(min=100, help="Samples of the resampling tests.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling tests.")] = 1,
) -> None:
    """Paired significance between two runs, on every test split that both have."""
    table = RichTable("split", "measure", "A", "B", "A - B", "95 % interval", "A against B")
    signature = ""
    for split, found in compare_runs(run_a, run_b, predictor, test_, samples, seed):
        metric: Metric = found["metric"]
        low, high = map(metric.signed, found["interval"])
        shown = [metric.text(found["a"]), metric.text(found["b"]), metric.signed(found["difference"])]
        said = verdict(found, lower_is_better=found["lower_is_better"])
        table.add_row(split, found["measure"], *shown, f"[{low}, {high}]", said)
        signature = found["signature"]
    out.print(table)
    out.print(signature)


@app.command("list")
def list_(
    kind: Annotated[
        Literal["readers", "templates", "metrics", "learners", "losses", "recipes"] | None,
        typer.Argument(help="What to list; everything by default."),
    ] = None,
) -> None:
    """List the parts that a recipe can name, with their settings."""
    kinds = [kind] if kind else ["readers", "templates", "metrics", "learners", "losses", "recipes"]
    for each in kinds:
        if len(kinds) > 1:
            out.print(each, style="bold")
        for line in _parts(each):
            out.print(line)


def _parts(kind: str) -> list[str]:
    if kind == "recipes":
        return [f"{name}  {about_recipe(path)}" for name, path in shipped_recipes().items()]
    if kind == "losses":
        return sorted(LOSSES)
    if kind == "templates":
        sets = [f"set {name}: {len(members)} templates" for name, members in SETS.items()]
        return [*(describe(name, part) for name, part in templates), *sets]
    for name, registry in (("readers", readers), ("metrics", metrics), ("learners", learners)):
        if name == kind:
            parts = [describe(part, cls) for part, cls in registry]
            return (
                parts
                if kind != "readers"
                else [*parts, "every reader: scores='score', or 'cost' where lower is better"]
            )
    raise RecipeError(f"there are no {kind!r} to list")


def describe(name: str, part: type) -> str:
    """A part with its settings and their defaults, and the first line of its documentation."""
    fields = [
        f.name if f.default is dataclasses.MISSING else f"{f.name}={f.default!r}" for f in dataclasses.fields(part)
    ]
    first = " ".join((part.__doc__ or "").strip().split("\n\n")[0].split())
    return f"{name}({', '.join(fields)})  {first}"
