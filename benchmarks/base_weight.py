"""The weight of the base score: automatic beside numbers set by hand, by the number of training lists.

    python benchmarks/base_weight.py --root DIR [--lists 300 700 2000 9507] [--grid 0.06 0.2] [--set learner.loss=hinge]

DIR holds `{train,dev}.nbest.gz` and `.gold.gz`, lists of parses as data/quickstart has them. For every number n the
first n training lists are extracted once, and one run is trained for `base: auto` and for every number of the grid.
Printed is a table of dev scores: of the base, of `auto`, and of the number that is best on dev. Both the automatic
weight and that number are chosen on dev, so both are optimistic; no test split is read. --set changes the recipe.
"""

import argparse
import gzip
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from rerank.recipes.loading import load_recipe
from rerank.runs import experiment

SHARED = Path(os.environ.get("RERANK_SHARED") or Path(__file__).parents[2] / "shared")
GRID = (0.02, 0.06, 0.2, 0.6, 2.0, 6.0, 20.0)
RECIPE = {
    "task": "parse",
    "features": {"set": "cj2005"},
    "learner": {"name": "vrda", "loss": "hinge"},
    "training": {"epochs": 10},
}


def main() -> None:
    """Measure on the lists at --root."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=SHARED / "data" / "parse" / "gum")
    parser.add_argument("--lists", type=int, nargs="+", default=[300, 700, 2000, 9507])
    parser.add_argument("--grid", type=float, nargs="*", default=GRID)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--work", type=Path, help="where runs and the cache are kept; a temporary folder by default")
    arguments = parser.parse_args()
    if not arguments.root.exists():
        raise SystemExit(f"{arguments.root} is not here: nothing measured")
    logging.getLogger("rerank").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="rerank-base-") as temporary:
        work = arguments.work or Path(temporary)
        print("| training lists | base | auto | weight found | best by hand | its weight | by hand − auto |")
        print("|---|---|---|---|---|---|---|")
        for lists in arguments.lists:
            found = measured(arguments.root.absolute(), work / str(lists), lists, arguments.grid, arguments.set)
            print(row(lists, found), flush=True)


def measured(root: Path, work: Path, lists: int, grid: list[float], changes: list[str]) -> dict[str, Any]:
    """metrics.json of one run for every weight, over the first training lists and all of dev."""
    data = work / "data"
    data.mkdir(parents=True, exist_ok=True)
    write_first(root / "train.nbest.gz", data / "train.nbest.gz", lists, b"\n\n")
    write_first(root / "train.gold.gz", data / "train.gold.gz", lists, b"\n")
    for kind in ("nbest", "gold"):
        (data / f"dev.{kind}.gz").unlink(missing_ok=True)
        (data / f"dev.{kind}.gz").symlink_to(root / f"dev.{kind}.gz")
    places = {"data": {"root": str(data), "tests": [], "shard_size": 4000}}
    recipe = work / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(RECIPE | places | {"grid": {"learner.base": ["auto", *grid]}}))
    return experiment.run(load_recipe(recipe, changes), work / "runs" / "all", tests=False)  # type: ignore[arg-type]


def write_first(source: Path, target: Path, count: int, separator: bytes) -> None:
    """The first lists, or trees, of a file."""
    pieces = gzip.decompress(source.read_bytes()).split(separator)[:count]
    target.write_bytes(gzip.compress(separator.join(pieces) + separator, mtime=0))


def row(lists: int, metrics: dict[str, Any]) -> str:
    """A line of the table."""
    auto, *others = metrics["runs"]
    base, best = auto["training"]["base"], max(others, key=lambda run: run["dev"], default=auto)
    scores = [100 * score for score in (base["dev"], auto["dev"], best["dev"])]
    shown = [f"{score:.2f}" for score in scores]
    weights = f"{base['weights']['average']:.3g}", str(best["learner"]["base"])
    cells = f"{lists:,}", *shown[:2], weights[0], shown[2], weights[1], f"{scores[2] - scores[1]:+.2f}"
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
