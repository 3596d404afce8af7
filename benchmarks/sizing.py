"""Time and memory as functions of lists, candidates, nonzeros and columns: the constants of docs/sizing.md.

    python benchmarks/sizing.py [--trees DIR] [--texts DIR] [--sizes 500,1000,2000,4000]

Everything is measured at several sizes in processes of its own, on one core, and a straight line is fitted: its slope
is the constant, and how far the points lie from it at most stands beside it. Prints the tables of the page. Without the
lists at --trees and --texts those of data/quickstart are measured, too few to tell anything.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.registry import build
from rerank.data.corpus import Corpus
from rerank.learn.epoch import UpdateLog
from rerank.learn.learner import learners
from rerank.learn.scoring import score_rows
from rerank.learn.train import epoch_order
from rerank.learn.voting import vote
from rerank.metrics.metric import oracles
from rerank.models.model import Model
from rerank.recipes.recipe import ListRecipe, Recipe, TextRecipe
from rerank.runs.corpora import Data

ROOT = Path(__file__).parents[1]
WARM = 40  # lists that load the kernels before the clock starts
EPOCHS = 3  # measured, after one that compiles
# The worked examples: the learner, bytes a second of a disk, cores of a machine and the share of their time that is
# worth while, and the columns at most, beyond which features are hashed (features.hash_bits: 28).
EXAMPLE, READING, CORES, SHARE, MOST_COLUMNS = "vrda", 1e9, 32, 0.85, 1 << 28


class Line(NamedTuple):
    """y = start + slope·x through measured points; off: the largest distance of a point, relative to it."""

    start: float
    slope: float
    off: float


def fit(x: list[float], y: list[float]) -> Line:
    """Least squares; a start or a slope below 0 is 0."""
    slope, start = np.polyfit(x, y, 1)
    if slope < 0:
        slope, start = 0.0, float(np.mean(y))
    if start < 0:
        start, slope = 0.0, float(np.dot(x, y) / np.dot(x, x))
    line = start + slope * np.array(x)
    return Line(float(start), float(slope), float(np.max(np.abs(line - y) / np.array(y))))


# Lists of several sizes


def charniak_lists(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """The lines of every list of parses, with the empty one that ends it."""
    found: list[bytes] = []
    for line in lines:
        found.append(line)
        if not line.strip():
            yield found
            found = []


def moses_lists(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """The lines of every list of texts."""
    for _, group in groupby(lines, key=lambda line: line.partition(b" ||| ")[0]):
        yield list(group)


def write_first(source: Path, target: Path, split: str, count: int) -> None:
    """The first ``count`` lists of a split, with what goes with them, as the split ``train``."""
    for kind in ("nbest", "gold", "ref", "src"):
        path = source / f"{split}.{kind}.gz"
        if path.exists():
            lists = (
                (moses_lists if (source / f"{split}.src.gz").exists() else charniak_lists) if kind == "nbest" else None
            )
            with gzip.open(path) as lines, gzip.open(target / f"train.{kind}.gz", "wb", compresslevel=1) as out:
                for group in islice(lists(lines) if lists else ([line] for line in lines), count):
                    out.writelines(group)


def recipe_of(root: Path) -> ListRecipe:
    """The recipe over the lists in ``root``."""
    data = {"root": str(root), "dev": None, "tests": []}
    if (root / "train.src.gz").exists():
        return TextRecipe.model_validate({"name": "sizing", "task": "translation", "data": data})
    return Recipe.model_validate({"name": "sizing", "data": data})


# In a process of its own


def cpu() -> float:
    """CPU seconds of this process and those that it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def load(root: Path) -> Data:
    """Extract the lists in ``root``, or take them from the cache beside."""
    return Data.load(recipe_of(root), root / "run", ())


def extract(root: Path, warm: Path) -> dict[str, Any]:
    """Extract ``root``, once kernels are loaded by extracting ``warm``."""
    start = cpu()
    load(warm)
    loading, start = cpu() - start, cpu()
    data = load(root)
    seconds, corpus = cpu() - start, data.training.corpus
    return {
        "seconds": seconds, "loading": loading, "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "lists": corpus.list_count, "candidates": corpus.candidate_count, "nonzeros": corpus.nonzeros,
        "columns": corpus.width,
        "disk": sum(path.stat().st_size for path in (root / ".cache").glob("*/corpus/**/*.npy")),
        "table": sum(path.stat().st_size for path in (root / ".cache").glob("*/table/*")),
    }  # fmt: skip


def sections(corpus: Corpus) -> list[Corpus]:
    """A quarter, a half, and all of the lists."""
    return [corpus.slice(0, max(1, corpus.list_count * part // 4)) for part in (1, 2, 4)]


def best_of(function: Callable[[], Any], times: int = EPOCHS) -> float:
    """CPU seconds of the fastest call."""
    found = []
    for _ in range(times):
        start = cpu()
        function()
        found.append(cpu() - start)
    return min(found)


def train(root: Path, name: str) -> dict[str, Any]:
    """Epochs of a learner over sections of the lists in ``root``; "gather": the least that any learner does."""
    corpora = sections(load(root).training.corpus)
    points = []
    for corpus in corpora:
        targets, order = oracles(corpus), epoch_order(corpus.list_count, 1, 0, True)
        if name == "gather":
            w, scores = np.ones(corpus.width), np.empty(corpus.candidate_count)
            run = lambda: score_rows(corpus.rows, corpus.columns, corpus.values, w, scores)  # noqa: B023, E731
        else:
            learner = build(learners, {"name": name}, "learner")
            state = learner.init(corpus.width, corpus.candidate_count)
            run = lambda: learner.epoch(corpus, targets, order, state)  # noqa: B023, E731
        run()
        points.append((corpus.nonzeros, best_of(run)))
    return {"points": points, "columns": corpora[-1].width}


def voting(root: Path, name: str) -> dict[str, Any]:
    """Exact voting on sections of the lists, of predictors from one to three epochs on one thread."""
    corpus = load(root).training.corpus
    targets, learner, log = (oracles(corpus), build(learners, {"name": name}, "learner"), UpdateLog())
    state, points = learner.init(corpus.width, corpus.candidate_count), []
    for epoch in range(3):
        learner.epoch(corpus, targets, epoch_order(corpus.list_count, 1, epoch, True), state, log=log)
        votes = learner.votes(log, corpus)
        vote(votes, corpus.slice(0, 2), threads=1)
        few = corpus.slice(0, max(1, corpus.list_count // 8))
        points.append((votes.survived.size * few.candidate_count, best_of(lambda: vote(votes, few, threads=1), 1)))  # noqa: B023
    stored = sum(array.nbytes for array in votes.arrays().values())
    return {"points": points, "bytes": stored / max(1, votes.columns.size)}


def models(root: Path) -> dict[str, Any]:
    """Saving and loading a model of the lists' features, without state and votes."""
    from rerank.learn.learner import Weights

    data = load(root)
    weights = {name: Weights(np.ones(data.table.width), 1.0) for name in ("last", "average")}
    model = Model(recipe_of(root).model_dump(mode="json"), {}, data.table, weights)
    save = best_of(lambda: model.save(root / "model"))
    return {"save": save, "load": best_of(lambda: Model.load(root / "model")), "columns": data.table.width}


CHILDREN: dict[str, Callable[..., dict[str, Any]]] = {
    "extract": lambda root, warm: extract(Path(root), Path(warm)),
    "train": lambda root, name: train(Path(root), name),
    "voting": lambda root, name: voting(Path(root), name),
    "models": lambda root: models(Path(root)),
}


def child(*arguments: str) -> dict[str, Any]:
    """What a function of CHILDREN gives in a process of its own."""
    command = [sys.executable, __file__, "--child", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# The tables


class Constant(NamedTuple):
    """A row of the page."""

    name: str
    value: float
    unit: str
    off: float | None = None

    def __str__(self) -> str:
        off = "" if self.off is None else f"{100 * self.off:.0f} %"
        return f"| {self.name} | {self.value:.3g} | {self.unit} | {off} |"


def extraction_constants(what: str, root: Path, sizes: list[int], scratch: Path) -> tuple[list[Constant], Path]:
    """Constants of extracting the lists in ``root``, and where the largest section of them is."""
    split, found = ("train" if (root / "train.nbest.gz").exists() else "dev"), []
    for size in [WARM, *sizes]:
        target = scratch / f"{what}-{size}"
        target.mkdir()
        write_first(root, target, split, size)
        if size != WARM:
            found.append(child("extract", str(target), str(scratch / f"{what}-{WARM}")))
    candidates = [each["candidates"] for each in found]
    time_of, memory = (fit(candidates, [each[key] for each in found]) for key in ("seconds", "peak"))
    growth, _ = np.polyfit(*(np.log([each[key] for each in found]) for key in ("lists", "columns")), 1)
    last = found[-1]
    return [
        Constant(f"extraction of {what}", 1e6 * time_of.slope, "µs a candidate", time_of.off),
        Constant(f"memory of extraction, {what}", memory.slope, "bytes a candidate", memory.off),
        Constant(f"candidates of {what}", last["candidates"] / last["lists"], "a list"),
        Constant(f"nonzeros of {what}", last["nonzeros"] / last["candidates"], "a candidate"),
        Constant(f"columns of {what}", last["columns"] / last["lists"], f"a list, at {last['lists']:,} lists"),
        Constant(f"columns of {what} grow as lists to the power", float(growth), ""),
        Constant(f"corpus of {what} on disk", last["disk"] / last["nonzeros"], "bytes a nonzero"),
        Constant(f"table of {what} on disk", last["table"] / last["columns"], "bytes a column"),
        Constant(f"loading kernels, {what}", last["loading"], "s a process"),
        Constant(f"a process, {what}", memory.start / 1e6, "MB"),
    ], scratch / f"{what}-{sizes[-1]}"


class Speed(NamedTuple):
    """A learner: seconds of an epoch a nonzero and a column, bytes of its state a column and a candidate."""

    nonzero: float
    column: float
    state: float
    dual: float
    off: float


def speed_of(root: Path, name: str) -> Speed:
    """Measure a learner; ``gather`` has no state."""
    found = child("train", str(root), name)
    x, y = zip(*found["points"], strict=True)
    line = fit(list(x), list(y))
    return Speed(
        line.slope, line.start / found["columns"], *((0, 0) if name == "gather" else state_bytes(name)), line.off
    )


def state_bytes(name: str) -> tuple[float, float]:
    """Bytes of a learner's state a column, and a candidate."""

    def size(columns: int, candidates: int) -> int:
        state = build(learners, {"name": name}, "learner").init(columns, candidates)
        return sum(array.nbytes for array in state)

    return (size(2000, 0) - size(1000, 0)) / 1000, (size(1000, 1000) - size(1000, 0)) / 1000


def example_rows(known: dict[str, float], speed: Speed) -> list[str]:
    """Lists by the million: corpora, hours of cores and of reading, and machines to extract them within a day."""
    rows = []
    for what in ("trees", "texts"):
        for lists in (10**4, 10**6, 10**8, 10**9) if f"extraction of {what}" in known else ():
            candidates = lists * known[f"candidates of {what}"]
            nonzeros = candidates * known[f"nonzeros of {what}"]
            columns = min(lists * known[f"columns of {what}"], MOST_COLUMNS)
            disk = nonzeros * known[f"corpus of {what} on disk"]
            extraction = candidates * known[f"extraction of {what}"] / 1e6 / 3600
            epoch = (nonzeros * speed.nonzero + columns * speed.column) / 3600
            cells = [
                f"{lists:.0e} {what}", f"{candidates:.1e}", f"{nonzeros:.1e}", f"{disk / 1e9:,.3g} GB",
                f"{extraction:,.2g}", f"{epoch:,.2g}", f"{disk / READING / 3600:,.2g}",
                f"{columns * speed.state / 1e9:.2g} GB", f"{-(-extraction // (24 * CORES * SHARE)):,.0f}",
            ]  # fmt: skip
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def start_up() -> float:
    """CPU seconds of a command that does nothing."""
    command = [sys.executable, "-m", "rerank", "list", "learners"]
    return best_of(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=Path, default=ROOT.parent / "shared/data/parse/gum")
    parser.add_argument("--texts", type=Path, default=ROOT.parent / "shared/data/translation/multi30k")
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[500, 1000, 2000, 4000])
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(CHILDREN[arguments.child[0]](*arguments.child[1:])))
        return
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        trees = arguments.trees if arguments.trees.exists() else ROOT / "data" / "quickstart"
        constants, largest = extraction_constants("trees", trees, arguments.sizes, scratch)
        if arguments.texts.exists():
            constants += extraction_constants("texts", arguments.texts, arguments.sizes, scratch)[0]
        for name in ("perceptron", "vrda"):
            found = child("voting", str(largest), name)
            x, y = zip(*found["points"], strict=True)
            line = fit(list(x), list(y))
            constants.append(Constant(f"voting, `{name}`", 1e9 * line.slope, "ns a predictor and candidate", line.off))
            constants.append(Constant(f"votes of `{name}`", found["bytes"], "bytes a column that an update touches"))
        found = child("models", str(largest))
        constants.append(Constant("saving a model", 1e9 * found["save"] / found["columns"], "ns a column"))
        constants.append(Constant("loading a model", 1e9 * found["load"] / found["columns"], "ns a column"))
        constants.append(Constant("a command that does nothing", start_up(), "s"))
        print("| what | constant | unit | off at most |\n|---|---|---|---|")
        print("\n".join(map(str, constants)))
        print(
            "\n| learner | ns a nonzero | ns a column and epoch | state, bytes a column | a candidate | off at most |"
        )
        print("|---|---|---|---|---|---|")
        speeds = {name: speed_of(largest, name) for name in ["gather", *learners.names()]}
        for name, speed in speeds.items():
            times = f"{1e9 * speed.nonzero:.2f} | {1e9 * speed.column:.1f}"
            print(f"| `{name}` | {times} | {speed.state:.3g} | {speed.dual:.3g} | {100 * speed.off:.0f} % |")
        print("\n| lists | candidates | nonzeros | corpus | extraction, core hours | an epoch, core hours |", end="")
        print(" reading it, hours | state | machines |\n|---|---|---|---|---|---|---|---|---|")
        print("\n".join(example_rows({each.name: each.value for each in constants}, speeds[EXAMPLE])))


if __name__ == "__main__":
    main()
