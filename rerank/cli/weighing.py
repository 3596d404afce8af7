"""The command that weighs the scores of lists."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rerank.cli.answer import show
from rerank.cli.application import MAX_SAMPLES, MAX_SEED, Encoding, ListReader, OnBadList, Roles, command
from rerank.cli.measuring import Compared, Option, metric_settings


@command()
def weigh(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Lists with scores.")],
    references: Annotated[
        list[str] | None, typer.Argument(metavar="[REF...]", help="References, for lists without.", show_default=False)
    ] = None,
    *,
    metric: Compared = None,
    option: Option = None,
    reader: ListReader = None,
    roles: Roles = None,
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Scores to weigh, with commas.", show_default="all")
    ] = None,
    folds: Annotated[int, typer.Option(min=3, help="Of the cross-validation.")] = 5,
    resamples: Annotated[int, typer.Option(min=2, max=MAX_SAMPLES, help="Of lists, for intervals of weights.")] = 20,
    restarts: Annotated[int, typer.Option(min=0, max=10_000, help="Searches from random points.")] = 3,
    samples: Annotated[int, typer.Option(min=1, max=MAX_SAMPLES, help="Of the tests of significance.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Of folds, tests, draws and directions.")] = 1,
    save: Annotated[
        Path | None, typer.Option(help="Write a model with the weights of all lists here.", show_default=False)
    ] = None,
    encoding: Encoding = None,  # noqa: ARG001 - its callback acts
    on_bad_list: OnBadList = "error",
) -> None:
    """Weigh the few scores of lists so that a metric comes out best, and measure what that is worth on other lists.

    The weights are found by exact line searches, and shown with intervals and how they vary over folds. The base score,
    maxent, the weights and the best possible choice are compared by cross-validation over lists, each with the p of its
    difference from the base.
    """
    from rerank.readers.given.reading import read
    from rerank.readers.streams import read_once, single_stdin
    from rerank.runs.weigh import table_of_weights, weighed_model

    single_stdin(file, *(references or []))
    measure = metric_settings(metric or "gain", option)
    lists: Any = read(file, reader, references=references or None, on_bad_list=on_bad_list, roles=roles)
    if save is not None and read_once(file):
        lists = list(lists)
    use = columns.split(",") if columns else None
    how: dict[str, Any] = {"folds": folds, "resamples": resamples, "restarts": restarts, "samples": samples}
    table = table_of_weights(lists, measure, seed=seed, use=use, **how)
    for part in table.tables():
        show(part.rich())
        show(part.note)
    show(**table.as_data())
    if save is not None:
        weighed_model(lists, measure, table).save(save)
        show(f"{save}: a model with these weights; it knows no margin", model=save)
