"""A figure of a paper from the run of its recipe: what metrics.json and history.jsonl hold, as RUN/figure-KIND.svg.

    python benchmarks/paper_figure.py RUN epochs [--measure nonzero_weights] [--runs hinge,logistic]   # after each pass
    python benchmarks/paper_figure.py RUN points [--x nonzero_weights]   # over a grid
    python benchmarks/paper_figure.py RUN sets --runs 'stdev L2,stdev exact'   # one beside another

``epochs``: dev, train, mistakes or nonzero_weights by pass. ``points``: the measure of tests over a key of the grid, or
over the number of weights. ``sets``: the measure of one run over that of another, a point for every set.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from rerank.runs.report.page import Figure, FigureLine, draw

Points = list[tuple[float, float]]


def number(run: dict[str, Any], measure: str) -> float:
    """The main measure of a run on its first test split, or what it says of its training."""
    if measure in run["training"]:
        value = run["training"][measure]
        return float(sum(value) / len(value)) if isinstance(value, list) else float(value)
    of_split = next(iter(run["splits"].values()))
    predictor = run.get("predictor") or run.get("ranked_by")
    return float(of_split[predictor][measure])


def lines_of(points: dict[str, Points], *, joined: bool = True) -> list[FigureLine]:
    """A line for every run, its points from left to right, with their mean where several have one place."""
    lines = []
    for name, pairs in points.items():
        at = defaultdict[float, list[float]](list)
        for x, y in pairs:
            at[x].append(y)
        places = sorted(at)
        lines.append(FigureLine(places, [sum(at[x]) / len(at[x]) for x in places], name, joined=joined))
    return lines


def by_epoch(place: Path, measure: str, runs: list[str]) -> Figure:
    """The measure after every pass."""
    points = defaultdict[str, Points](list)
    for text in (place / "history.jsonl").read_text().splitlines():
        line = json.loads(text)
        if "epoch" in line and measure in line and (not runs or line["run"] in runs):
            points[line["run"]].append((line["epoch"], line[measure]))
    return draw(f"{measure} after each pass", lines_of(points), "pass", measure)


def over(metrics: dict[str, Any], x: str, measure: str, runs: list[str]) -> Figure:
    """The measure of tests over a key of the grid, or over the number of weights."""
    points = defaultdict[str, Points](list)
    for run in metrics["runs"]:
        key = x.rpartition(".")[2]
        name, _, setting = run["name"].partition(f" {key}=")
        place = number(run, x) if x in run["training"] else setting.partition(" ")[0]
        if place != "" and (not runs or name in runs):
            points[name].append((float(place), number(run, measure)))
    return draw(f"{measure} over {x}", lines_of(points), x, measure)


def beside(metrics: dict[str, Any], measure: str, one: str, other: str) -> Figure:
    """The measure of one run over that of another, a point for every set and noise level."""
    found = defaultdict[str, dict[str, float]](dict)
    for run in metrics["runs"]:
        found[f"{run['set']} {run['noise']}"][run["name"]] = number(run, measure)
    points = [(values[one], values[other]) for values in found.values()]
    return draw(f"{measure}, set by set", lines_of({"": points}, joined=False), one, other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("kind", choices=("epochs", "points", "sets"))
    parser.add_argument("--measure")
    parser.add_argument("--x", default="nonzero_weights")
    parser.add_argument("--runs", default="")
    arguments = parser.parse_args()
    metrics = json.loads((arguments.run / "metrics.json").read_text())
    runs = [name for name in arguments.runs.split(",") if name]
    measure = arguments.measure or metrics.get("measure") or metrics["tables"]["measure"]
    if arguments.kind == "epochs":
        figure = by_epoch(arguments.run, arguments.measure or "dev", runs)
    elif arguments.kind == "points":
        figure = over(metrics, arguments.x, measure, runs)
    elif len(runs) == 2:
        figure = beside(metrics, measure, *runs)
    else:
        parser.error("sets needs two runs, as --runs 'stdev L2,stdev exact'")
    path = arguments.run / f"figure-{arguments.kind}.svg"
    path.write_text(figure.standalone())
    print(path)


if __name__ == "__main__":
    main()
