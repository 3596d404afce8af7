"""Try many bad inputs: ``python -m fuzz``; see ``--help``. Exit code 1 if one of them fails."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from .campaign import Campaign, Summary
from .targets import TARGETS
from .worker import SECONDS


def main(
    count: Annotated[int, typer.Option(min=1, help="How many inputs.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Input i is a function of the seed and i.")] = 1,
    first: Annotated[int, typer.Option(min=0, help="The number of the first input.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    target: Annotated[str | None, typer.Option(help="This target alone (its inputs are others then).")] = None,
    checked: Annotated[
        Literal["all", "half", "none"], typer.Option(help="Which inputs are tried in kernels that check their bounds.")
    ] = "half",
    seconds: Annotated[float, typer.Option(help="Time for one input; more is a hang.")] = SECONDS,
    output: Annotated[Path, typer.Option(help="Where failing inputs are kept.")] = Path("runs/fuzz"),
) -> None:
    """Damage samples of every format, try them, and print what came of it."""
    if target is not None and target not in TARGETS:
        raise typer.BadParameter(f"known: {', '.join(TARGETS)}", param_hint="--target")
    campaign = Campaign(seed, count, output.resolve(), first, jobs, target, checked, seconds)
    summary = campaign.run()
    _print(summary, campaign, Console(width=140))
    raise typer.Exit(1 if summary.failures else 0)


def _print(summary: Summary, campaign: Campaign, console: Console) -> None:
    console.print(summary.table())
    console.print(f"{summary.total:,} inputs of seed {campaign.seed}, {summary.large} of them large", highlight=False)
    for number, tried in summary.failures[:20]:
        last = tried.outcome.details.strip().splitlines()[-1:]
        console.print(f"input {number}, {tried.target}: {tried.outcome.kind}: {' '.join(last)[:200]}", markup=False)
    if summary.failures:
        console.print(
            f"{len(summary.failures)} inputs failed; they are in {campaign.output / 'failures'}", highlight=False
        )


if __name__ == "__main__":
    typer.run(main)
