"""The command that chooses settings on training lists set apart: tune."""

from pathlib import Path
from typing import Annotated

import typer

from rerank.base.encoding import file_name
from rerank.base.errors import RecipeError
from rerank.cli.answer import out, show
from rerank.cli.application import Sets, command
from rerank.cli.running import Address, EngineName, RecipeFile, Resume, Workers, engine_of, read_recipe

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
    from rerank.recipes.recipe import ListRecipe
    from rerank.runs import pipeline
    from rerank.runs.choice import chosen_recipe
    from rerank.runs.report.choices import choice_table
    from rerank.runs.report.table import plain_text
    from rerank.storage.files import write_text
    from rerank.storage.written import claim

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
    target = claim(output, pipeline.CHOSEN)
    write_text(target, chosen_recipe(settings, metrics["choice"]).as_yaml())
    table = choice_table(metrics)
    shown = (table.rich() if out.is_terminal else plain_text(table.rich()).rstrip("\n"), table.note)
    show(*shown, f"recipe: {target}", choice=metrics["choice"], recipe=target)
