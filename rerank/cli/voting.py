"""Commands that compare ways to choose from lists in memory: vote and weigh."""

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from rerank.cli.application import MAX_SAMPLES, Encoding, ListReader, OnBadList, Roles, Seed, command, show
from rerank.cli.evaluating import ComparedMetric, metric_settings


@command("vote", "Start", "rerank vote sums")
def vote(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Lists with gains.")],
    *,
    reader: ListReader = None,
    roles: Roles = None,
    answer: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Where texts have answers: boxed, last-number, letter, text, json:KEY, regex:PATTERN, math-verify.",
            show_default="what the lists say",
        ),
    ] = None,
    metric: ComparedMetric = None,
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Numbers to look at, with commas.", show_default="all")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validation of what is learned.")] = 5,
    samples: Annotated[int, typer.Option(min=1, max=MAX_SAMPLES, help="Of the tests of significance.")] = 1000,
    seed: Seed = 1,
    curve: Annotated[
        Path | None,
        typer.Option(help="Write accuracy over the number of samples, as FILE.svg and FILE.json.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Train a model on all lists, and write it here.", show_default=False)
    ] = None,
    encoding: Encoding = None,  # noqa: ARG001 - its callback acts
    on_bad_list: OnBadList = "error",
) -> None:
    """Compare ways to choose one of n samples: votes, the best by a score, learned choices.

    One table, without a recipe or a model. Learned ways are cross-validated over lists; every row is tested against
    majority vote. --save trains a model as `rerank.fit` does, by its defaults: from all numbers and texts.
    """
    if twice := next((path for path in files if files.count(path) > 1), None):
        raise typer.BadParameter(f"{twice} is named twice; its lists would count twice, leave one out")
    if save is not None and columns is not None:
        raise typer.BadParameter("--columns chooses what the table looks at; --save learns from all, leave out one")
    from rerank.readers.given.reading import read
    from rerank.readers.streams import read_once
    from rerank.runs.vote import table_of_votes, write_curve
    from rerank.storage.files import check_output

    for output in filter(None, (curve, save)):
        check_output(output)
    measure = None if metric is None else metric_settings(metric)
    chosen: dict[str, Any] = {} if answer is None else {"answer": answer}
    lists = [read(path, reader, on_bad_list=on_bad_list, roles=roles, **chosen) for path in files]
    kept = save is None or (len(lists) == 1 and not read_once(files[0]))
    every: Any = lists if kept else list(chain.from_iterable(lists))
    how: dict[str, Any] = {"folds": folds, "samples": samples, "seed": seed}
    how["use"] = columns.split(",") if columns else None
    table = table_of_votes(every, measure, curve=curve is not None, **how)
    text = table.table()
    show(*filter(None, [table.compared.doubt]), text.rich(), **table.as_data())
    show(text.note)
    if curve is not None:
        write_curve(table, curve)
    if save is not None:
        from rerank.runs.fitting import fit

        fit(every[0] if every is lists else every, metric=measure, seed=seed, **chosen).save(save)
        show(f"{save}: a model of all lists, by the defaults of `rerank.fit`; the rows above do not measure it")


@command("weigh", "Train", "rerank weigh asr/dev --metric wer")
def weigh(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Lists with scores.")],
    references: Annotated[
        list[str] | None, typer.Argument(metavar="[REF...]", help="References, for lists without.", show_default=False)
    ] = None,
    *,
    metric: ComparedMetric = None,
    reader: ListReader = None,
    roles: Roles = None,
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Scores to weigh, with commas.", show_default="all")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validation.")] = 5,
    resamples: Annotated[int, typer.Option(min=2, max=MAX_SAMPLES, help="Of lists, for intervals of weights.")] = 20,
    restarts: Annotated[int, typer.Option(min=0, max=10_000, help="Searches from random points.")] = 3,
    samples: Annotated[int, typer.Option(min=1, max=MAX_SAMPLES, help="Of the tests of significance.")] = 1000,
    seed: Seed = 1,
    save: Annotated[
        Path | None, typer.Option(help="Write a model with the weights of all lists here.", show_default=False)
    ] = None,
    encoding: Encoding = None,  # noqa: ARG001 - its callback acts
    on_bad_list: OnBadList = "error",
) -> None:
    """Weigh the few scores of lists so that a metric comes out best.

    The weights are found by exact line searches, and shown with intervals and how they vary over folds. The base score,
    maxent, the weights and the best possible choice are compared by cross-validation over lists, each with the p of its
    difference from the base.
    """
    from rerank.readers.given.reading import read
    from rerank.readers.streams import read_once, single_stdin
    from rerank.runs.weigh import table_of_weights, weighed_model

    single_stdin(file, *(references or []))
    measure = metric_settings(metric or "gain")
    lists: Any = read(file, reader, references=references or None, on_bad_list=on_bad_list, roles=roles)
    if save is not None and read_once(file):
        lists = list(lists)
    use = columns.split(",") if columns else None
    how: dict[str, Any] = {"folds": folds, "resamples": resamples, "restarts": restarts, "samples": samples}
    table = table_of_weights(lists, measure, seed=seed, use=use, **how)
    show(*filter(None, [table.compared.doubt]))
    for part in table.tables():
        show(part.rich())
        show(part.note)
    show(**table.as_data())
    if save is not None:
        weighed_model(lists, measure, table).save(save)
        show(f"{save}: a model with the weights of the row {table.learned}", model=save)
