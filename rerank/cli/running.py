"""Commands that carry out recipes, and compare what they left: run, tune, compare."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rerank.base.encoding import file_name
from rerank.base.errors import RecipeError
from rerank.base.registry import import_object
from rerank.cli import application as cli

if TYPE_CHECKING:
    from rerank.pool import Engine
    from rerank.recipes.recipe import TaskRecipe
    from rerank.runs.experiment import Metrics


Resume = Annotated[bool, typer.Option("--resume", help="Keep the finished stages and runs of an interrupted run.")]


@dataclass
class RecipeOptions:
    """A recipe as a command is given it, and where its results go."""

    recipe: Annotated[
        Path,
        typer.Argument(
            metavar="RECIPE",
            help="The recipe: a YAML file, or a name of `rerank list recipes`.",
            callback=cli.allow_local_imports,
        ),
    ]
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY.PATH=VALUE", help="Change a setting of the recipe; the value is YAML."),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Directory of the results; runs/NAME by default, of tune runs/NAME-tune."),
    ] = None

    def read(self, quick: bool = False, ending: str = "") -> "tuple[TaskRecipe, Path]":
        """The recipe, and the directory of its results, whose name by default ends so."""
        from rerank.recipes.loading import find_recipe, load_recipe

        recipe = load_recipe(self.recipe, self.set_, quick=quick)
        directory = self.output if self.output is not None else Path("runs", file_name(recipe.name + ending))
        record, path = directory / "recipe.yaml", find_recipe(self.recipe)
        if record.exists() and record.samefile(path) and record.read_text(encoding="utf-8") != recipe.as_yaml():
            message = "the recipe.yaml of the results would replace this file; use another --output"
            raise RecipeError(message, path=str(path))
        return recipe, directory


@dataclass
class EngineOptions:
    """The engine by the command line."""

    engine: Annotated[
        Literal["auto", "local", "processes", "dask"] | None,
        typer.Option("--engine", help="Workers: this process, processes of this machine, or those of a cluster."),
    ] = None
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Number of workers; without --engine, of processes.")
    ] = None
    address: Annotated[str | None, typer.Option("--address", help="The address of a running Dask scheduler.")] = None

    def open(self, recipe: "TaskRecipe") -> "Engine":
        """The engine of the recipe, changed as the command line says; results do not depend on it."""
        from rerank.pool import open_engine

        settings, name = recipe.engine.model_dump(), self.engine
        if name is None and self.workers is not None and settings["name"] == "auto":
            name = "processes"
        if name not in (None, settings["name"]):
            settings = {}
        options = {"name": name, "workers": self.workers, "address": self.address}
        return open_engine(**settings | {key: value for key, value in options.items() if value is not None})


@cli.command("run", "Start", "rerank run quickstart", seldom="until")
def run(
    recipe: RecipeOptions,
    *,
    until: Annotated[
        Literal["extract", "train", "test"],
        typer.Option(help="The last stage: extraction alone, a model in OUTPUT/model, or test and report."),
    ] = "test",
    resume: Resume = False,
    quick: Annotated[bool, typer.Option("--quick", help="Use the recipe's own settings for a quick run.")] = False,
    work: EngineOptions,
) -> None:
    """Train, test and report, as a recipe says.

    With --until the run ends earlier: test splits are read by its last stage alone. The same command with --resume goes
    on from there.
    """
    from rerank.recipes.loading import find_recipe, task_named
    from rerank.runs.experiment import background_compilation, experiment
    from rerank.runs.report.results import base_warning, corpora_table
    from rerank.storage.documents import read_yaml
    from rerank.storage.streams import Inputs

    settings, directory = recipe.read(quick)
    if until == "extract" and not task_named(settings.task).lists and work != EngineOptions():
        raise RecipeError("only lists are read by workers; leave out --engine, --workers and --address")
    with work.open(settings) as engine, background_compilation(settings, until):
        outcome = experiment(settings, Inputs(), directory, until=until, resume=resume, engine=engine)
    if until == "extract":
        corpora = outcome.counts()
        cli.show(corpora_table(corpora), corpora=corpora)
        return
    result = outcome.metrics
    if until == "train":
        if training := result.get("training"):
            epochs, weights = training["epochs"], training["nonzero_weights"]
            cli.show(f"{training['learner']}: {epochs} epochs, {weights:,} nonzero weights", training=training)
        cli.show(f"model: {directory / 'model'}", model=directory / "model")
    else:
        show_results(settings, result)
        if quick:
            faster = read_yaml(find_recipe(recipe.recipe).read_text("utf-8"))["quick"]
            part = ", ".join(f"{key} {value}" for key, value in faster.items())
            cli.show(f"A quick run, with {part}: these are not the figures of the whole recipe.", quick=faster)
        cli.show(f"report: {directory / 'report.html'}", report=directory / "report.html")
    if warning := base_warning(result):
        cli.show(warning)


def show_results(recipe: "TaskRecipe", result: "Metrics") -> None:
    """Show ``result``, the content of metrics.json."""
    from rerank.recipes.loading import task_named
    from rerank.runs.report.results import cross_validation_note, headline, reported_table, results_table, signatures

    if tables := task_named(recipe.task).tables:
        for table in import_object(tables)(recipe, result["tables"]):
            cli.show(table, f"{table.note}\n")
        cli.show(metrics=result)
        return
    for split in result["splits"]:
        cli.show(results_table(result, split, narrow=cli.out.is_terminal))
    cli.show(*signatures(result), *filter(None, [cross_validation_note(result)]), metrics=result)
    if summary := headline(result):
        cli.show(summary["sentence"], headline=summary["sentence"])
    if report := reported_table(result):
        cli.show(report)


@cli.command("compare", "Look", "rerank compare runs/quickstart runs/quickstart-voted")
def compare(
    run_a: Annotated[
        Path, typer.Argument(metavar="RUN_A", help="The output directory of a run.", callback=cli.allow_local_imports)
    ],
    run_b: Annotated[
        Path, typer.Argument(metavar="RUN_B", help="The output directory of another run over the same test lists.")
    ],
    predictor: Annotated[
        Literal["base", "oracle", "last", "average", "voted", "mert", "mbr", "fuse", "learned", "logistic"] | None,
        typer.Option(
            metavar="NAME",
            help="Which selection of either run to compare: a predictor, logistic, base or oracle.",
            show_default="what the model of either run chooses",
        ),
    ] = None,
    test_: Annotated[
        Literal["approximate_randomization", "paired_bootstrap", "paired_t", "mcnemar"],
        typer.Option("--test", metavar="NAME", help="The test; or paired_bootstrap, paired_t, mcnemar."),
    ] = "approximate_randomization",
    samples: Annotated[
        int, typer.Option(min=100, max=cli.MAX_SAMPLES, help="Samples of the resampling tests.")
    ] = 10_000,
    seed: cli.Seed = 1,
) -> None:
    """Test the difference between two runs, on every test split that both have."""
    from rerank.runs.compared import compare_runs

    splits = dict[str, Any]()
    for split, both, predictors in compare_runs(run_a, run_b, predictor, test=test_, samples=samples, seed=seed):
        metric, result = both.metric, both.test_between("A", "B").as_dict() | ({"p": None} if both.doubt else {})
        by_what = " and ".join(dict.fromkeys(predictors))
        table = both.table(split, "", heading=metric.heading, of=f"by {by_what}")
        cli.show(*filter(None, [both.doubt]), table, table.note)
        splits[split] = {
            "measure": metric.primary, "lower_is_better": metric.lower_is_better, "predictors": predictors,
            "a": both.score("A"), "b": both.score("B"), "signature": metric.signature, **result, "rows": both.as_data(),
        }  # fmt: skip
    cli.show(next(comparison["signature"] for comparison in splits.values()), splits=splits)


DEFAULT_SEEDS = 3  # of a recipe that names none


@cli.command("tune", "Train", "rerank tune tuning --output runs/tuned")
def tune(
    recipe: RecipeOptions,
    *,
    share: Annotated[
        float, typer.Option("--holdout", min=0.01, max=0.9, help="The share set apart, unless the recipe has one.")
    ] = 0.2,
    resume: Resume = False,
    work: EngineOptions,
) -> None:
    """Choose among the settings of a recipe on training lists set apart.

    Test splits are not read. Every run and grid point is trained with all seeds (three if the recipe names none). The
    simplest within one standard error of the best goes to OUTPUT/chosen.yaml.
    """
    from rerank.recipes.recipe import ListRecipe
    from rerank.runs import experiment
    from rerank.runs.report.results import choice_table
    from rerank.storage.files import write_text
    from rerank.storage.outputs import output_file

    original, output = recipe.read(ending="-tune")
    if not isinstance(original, ListRecipe):
        message = f"`rerank tune` is not for recipes of the task {original.task}; `rerank run` trains and tests"
        raise RecipeError(message, key="task")
    settings = original
    if len(settings.points()) < 2:
        message = "only one setting, so nothing to choose; name values, as grid: {learner.eta: [0.1, 1]}"
        raise RecipeError(message, key="grid")
    if settings.data.holdout is None:
        settings = settings.change({"data.holdout": share})
    if not settings.seeds:
        settings = settings.change({"seeds": [settings.seed + number for number in range(DEFAULT_SEEDS)]})
    with work.open(original) as engine, experiment.background_compilation(settings, "train"):
        metrics = experiment.run(settings, output, resume=resume, tests=False, engine=engine)
    target = output_file(output, experiment.CHOSEN_RECIPE)
    final = settings.change({"runs": (), "grid": {}, "reported": None, **metrics["choice"]["settings"]})
    if not settings.data.is_holdout(settings.data.dev):  # it trains on all lists, for one look at the test splits
        final = final.change({"data.holdout": None})
    write_text(target, final.as_yaml())
    table = choice_table(metrics)
    cli.show(table, table.note, f"recipe: {target}", choice=metrics["choice"], recipe=target)
