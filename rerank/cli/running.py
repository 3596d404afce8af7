"""Commands that carry out recipes, and compare what they left: run, extract, train, test, tune, compare."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rerank.base.encoding import file_name
from rerank.base.errors import RecipeError
from rerank.cli.answer import Command, show
from rerank.cli.application import Sets, command, own_parts

if TYPE_CHECKING:
    from rerank.engines.settings import Engine
    from rerank.recipes.recipe import TaskRecipe


RecipeFile = Annotated[
    Path,
    typer.Argument(
        metavar="RECIPE",
        help="The recipe: a YAML file, or a name of `rerank list recipes`.",
        callback=own_parts,
    ),
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


def engine_of(recipe: "TaskRecipe", name: EngineName, workers: int | None, address: str | None) -> "Engine":
    """The engine of the recipe, changed as the command line says; results do not depend on it."""
    from rerank.engines.settings import EngineSettings, open_engine

    settings = recipe.engine
    if name is None and workers is not None and settings.name == "auto":
        name = "processes"
    given = {"name": name, "workers": workers, "address": address}
    if name not in (None, settings.name):
        settings = EngineSettings()
    return open_engine(settings.model_copy(update={key: value for key, value in given.items() if value is not None}))


def read_recipe(
    path: Path, sets: list[str] | None, output: Path | None, quick: bool = False
) -> "tuple[TaskRecipe, Path]":
    """The recipe, and the directory of its results."""
    from rerank.recipes.loading import load_recipe
    from rerank.recipes.shipped import find_recipe

    Command.sets = sets or []
    recipe = load_recipe(path, sets, quick=quick)
    directory = output if output is not None else Path("runs") / file_name(recipe.name)
    stored, path = directory / "recipe.yaml", find_recipe(path)
    if stored.exists() and stored.samefile(path) and stored.read_text(encoding="utf-8") != recipe.as_yaml():
        raise RecipeError(
            "the recipe.yaml of the results would replace this file; use another --output", path=str(path)
        )
    Command.output = directory
    return recipe, directory


@command()
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
    settings, directory = read_recipe(recipe, set_, output, quick)
    with engine_of(settings, engine, workers, address) as opened:
        lost = _carry_out(settings, directory, resume, ("train", "test"), opened)
    _show_report(directory, lost)


def _carry_out(recipe: "TaskRecipe", directory: Path, resume: bool, stages: tuple[str, ...], engine: "Engine") -> str:
    """Carry out a recipe and show its results; returns what to say where the base was not beaten."""
    from rerank.cli.results import show_results, show_training
    from rerank.runs import pipeline
    from rerank.runs.report.headline import unbeaten

    result = pipeline.run(recipe, directory, resume=resume, stages=stages, engine=engine)
    if "test" in stages:
        show_results(recipe, result)
    else:
        show_training(result, directory / "model")
    return unbeaten(result)


def _show_report(directory: Path, lost: str) -> None:
    """The last lines of a command: where the report is, and that training has not beaten the base, if so."""
    report = directory / "report.html"
    show(f"report: {report}", *([lost] if lost else []), report=report)


@command()
def extract(
    recipe: RecipeFile,
    set_: Sets = None,
    output: Output = None,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Build and cache the corpora of a recipe, and say what is in them."""
    settings, directory = read_recipe(recipe, set_, output)
    if settings.task == "classification" and (engine is not None or workers is not None or address is not None):
        raise RecipeError("examples are read by one process; leave out --engine, --workers and --address")
    from rerank.cli.results import show_counts
    from rerank.runs import pipeline

    with engine_of(settings, engine, workers, address) as opened:
        show_counts(settings, pipeline.extract(settings, directory, opened))


@command()
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
    settings, directory = read_recipe(recipe, set_, output)
    with engine_of(settings, engine, workers, address) as opened:
        lost = _carry_out(settings, directory, resume, ("train",), opened)
    if lost:
        show(lost)


@command("test")
def evaluate_model(
    recipe: RecipeFile,
    set_: Sets = None,
    output: Output = None,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Evaluate the model that `rerank train` left in OUTPUT on the test splits, and report."""
    settings, directory = read_recipe(recipe, set_, output)
    with engine_of(settings, engine, workers, address) as opened:
        lost = _carry_out(settings, directory, True, ("test",), opened)
    _show_report(directory, lost)


@command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="The output directory of a run.", callback=own_parts)],
    run_b: Annotated[
        Path, typer.Argument(metavar="RUN_B", help="The output directory of another run over the same test lists.")
    ],
    predictor: Annotated[
        Literal["base", "oracle", "last", "average", "voted", "mert", "mbr", "fuse", "learned", "logistic"] | None,
        typer.Option(
            help="Which selection of either run to compare.", show_default="what the model of either run chooses"
        ),
    ] = None,
    test_: Annotated[
        Literal["approximate_randomization", "paired_bootstrap", "paired_t", "mcnemar"],
        typer.Option("--test", help="The significance test."),
    ] = "approximate_randomization",
    samples: Annotated[int, typer.Option(min=100, help="Samples of the resampling tests.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling tests.")] = 1,
    by: Annotated[
        Literal["id", "order"],
        typer.Option(help="What tells which lists are the same: their ids or, in different formats, their order."),
    ] = "id",
) -> None:
    """Paired significance between two runs, on every test split that both have."""
    from rich.table import Table

    from rerank.metrics.base import Metric
    from rerank.runs.evaluation import compare_runs
    from rerank.runs.report.rows import verdict

    table = Table("split", "measure", "A", "B", "A - B", "95 % interval", "A against B", "predictor")
    splits: dict[str, Any] = {}
    for split, found in compare_runs(run_a, run_b, predictor, test_, samples, seed, by):
        metric: Metric = found.pop("metric")
        low, high = map(metric.signed, found["interval"])
        shown = [metric.text(found["a"]), metric.text(found["b"]), metric.signed(found["difference"])]
        said = verdict(found, lower_is_better=found["lower_is_better"])
        named = " and ".join(dict.fromkeys(found["predictors"]))
        table.add_row(split, found["measure"], *shown, f"[{low}, {high}]", said, named)
        splits[split] = {**found, "verdict": said}
    show(table, next(found["signature"] for found in splits.values()), splits=splits)


SEEDS = 3  # of a recipe that names none


@command()
def tune(
    recipe: RecipeFile,
    set_: Sets = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where results go; runs/NAME-tune by default.", show_default=False),
    ] = None,
    share: Annotated[
        float, typer.Option("--holdout", min=0.01, max=0.9, help="The share set apart, unless the recipe has one.")
    ] = 0.2,
    resume: Resume = False,
    engine: EngineName = None,
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Choose among the runs and grid points of a recipe on training lists set apart; test splits are not read.

    Every one is trained with all seeds (three if the recipe names none). The simplest within one standard error of the
    best goes to OUTPUT/chosen.yaml.
    """
    from rerank.cli.results import fitting
    from rerank.recipes.recipe import ListRecipe
    from rerank.runs import pipeline
    from rerank.runs.choice import chosen_recipe
    from rerank.runs.report.list_tables import choice_table
    from rerank.storage.files import write_text
    from rerank.storage.outputs import output_file

    given, _ = read_recipe(recipe, set_, output)
    if not isinstance(given, ListRecipe):
        message = f"`rerank tune` is not for recipes of the task {given.task}; `rerank run` trains and tests"
        raise RecipeError(message, key="task")
    settings = given
    if output is None:
        _, output = read_recipe(recipe, set_, Path("runs", file_name(f"{settings.name}-tune")))
    if len(settings.points()) < 2:
        raise RecipeError(
            "only one setting, so nothing to choose; name values, as grid: {learner.eta: [0.1, 1]}", key="grid"
        )
    if settings.data.holdout is None:
        settings = settings.changed({"data.holdout": share})
    if not settings.seeds:
        settings = settings.changed({"seeds": [settings.seed + number for number in range(SEEDS)]})
    with engine_of(given, engine, workers, address) as opened:
        metrics = pipeline.run(settings, output, resume=resume, stages=("train",), engine=opened)
    target = output_file(output, pipeline.CHOSEN)
    write_text(target, chosen_recipe(settings, metrics["choice"]).as_yaml())
    table = choice_table(metrics)
    show(fitting(table.rich()), table.note, f"recipe: {target}", choice=metrics["choice"], recipe=target)
