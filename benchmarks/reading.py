"""From files of lists to corpora and models: CPU microseconds a list, and CPU seconds beside LightGBM and scikit-learn.

    python benchmarks/reading.py [--lists 50000] [--rows 1000000] [--beside CHECKOUT]

JSON lines have lists of two candidates with four numbers each; the table (Parquet) has lists of eight rows with a base
score, two columns, a text and a gain that the numbers know a part of. Every measurement is a process of its own, with
its workers, which has loaded its kernels before. LightGBM (lambdarank, 100 trees) and scikit-learn (logistic regression
on the differences from the mean of the list) read the same table; they are left out where they are not installed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

SIZE = 8
COLUMNS = ["logprob", "reward", "length"]


def main() -> None:
    """Write the files, and measure everything in turn, also in another checkout where one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, default=50_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--beside", help="the directory of another version of the program")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        name, place = arguments.one
        MEASURES[name](Path(place, "few"))
        start = spent()
        MEASURES[name](Path(place, "all"))
        print(json.dumps(spent() - start))
        return
    with TemporaryDirectory() as place:
        for name, lists, rows in (("few", 500, 80 * SIZE), ("all", arguments.lists, arguments.rows)):
            Path(place, name).mkdir()
            write(Path(place, name), lists, rows // SIZE)
        for name in MEASURES:
            if (package := {"lightgbm": "lightgbm", "sklearn": "sklearn"}.get(name)) and find_spec(package) is None:
                continue
            unit, count = ("µs a list", arguments.lists / 1e6) if name in ("read", "extract") else ("s", 1)
            seconds = {"": run(name, place, Path(__file__).parents[1])}
            if arguments.beside and name in OURS:
                seconds["beside"] = run(name, place, Path(arguments.beside))
            print(json.dumps({name: {key: round(value / count, 2) for key, value in seconds.items()}, "unit": unit}))


def run(name: str, place: str, checkout: Path) -> float:
    """The CPU seconds of a measurement with the program in a checkout."""
    paths = os.pathsep.join(filter(None, [str(checkout), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, __file__, "--one", name, place]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, check=True, text=True)
    return float(done.stdout.splitlines()[-1])


def spent() -> float:
    """The CPU seconds of this process, and of its workers that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


def problem(lists: int, size: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Lists by number, with three numbers for each candidate and whether it is right."""
    rng = np.random.default_rng(0)
    for i in range(lists):
        x = rng.standard_normal((size, 3))
        yield i, x, x.sum(axis=1) + rng.standard_normal(size) > 1


def write(place: Path, lists: int, groups: int) -> None:
    """The files of a size."""
    import pyarrow
    from pyarrow import parquet

    with (place / "lists.jsonl").open("w") as out:
        for i, x, right in problem(lists, 2):
            candidates = [
                {
                    "text": f"It is {i}, candidate {k}.",
                    "score": round(float(base), 5),
                    "reward": round(float(reward), 5),
                }
                | {"length": int(20 + 5 * length), "gain": int(right[k])}
                for k, (base, reward, length) in enumerate(x)
            ]
            out.write(json.dumps({"id": f"q{i}", "source": f"What is {i}?", "candidates": candidates}) + "\n")
    ids, x, right = zip(*problem(groups, SIZE), strict=True)
    columns = dict(zip(COLUMNS, np.concatenate(x).T, strict=True))
    texts = [f"It is {i}, candidate {k}." for i in ids for k in range(SIZE)]
    table = {"prompt": np.repeat(ids, SIZE), "text": texts, "right": np.concatenate(right), **columns}
    parquet.write_table(pyarrow.table(table), place / "rows.parquet")


def read(place: Path) -> None:
    """JSON lines to lists in memory."""
    import rerank

    for _ in rerank.read(place / "lists.jsonl", "jsonl"):
        pass


def extract(place: Path) -> None:
    """JSON lines to a corpus of dense columns."""
    from rerank.extraction.extraction import extract_training
    from rerank.recipes.loading import read_settings

    data: dict[str, Any] = {"root": str(place), "train": "lists", "dev": None, "tests": [], "reader": {"name": "jsonl"}}
    data |= {"nbest": "{root}/{split}.jsonl", "sources": None, "references": None}
    extract_training(read_settings({"name": "dense", "task": "ranking", "features": {"set": "dense"}, "data": data}))  # type: ignore[arg-type]


def fit(place: Path) -> None:
    """A table to a fitted model."""
    import rerank

    names: dict[str, Any] = {"group": "prompt", "text": "text", "gain": "right", "score": "logprob"}
    rerank.fit(place / "rows.parquet", columns=COLUMNS[1:], features="dense", **names)


def numbers(place: Path) -> tuple[np.ndarray, np.ndarray]:
    """float64 [N, 3] and bool [N] of a table."""
    import pandas

    frame = pandas.read_parquet(place / "rows.parquet")
    return frame[COLUMNS].to_numpy(), frame["right"].to_numpy()


def lightgbm(place: Path) -> None:
    """The same by LightGBM."""
    from lightgbm import LGBMRanker

    x, right = numbers(place)
    LGBMRanker(n_jobs=1, verbose=-1).fit(x, right.astype(int), group=np.full(len(x) // SIZE, SIZE))


def sklearn(place: Path) -> None:
    """The same by scikit-learn, candidate by candidate."""
    from sklearn.linear_model import LogisticRegressionCV

    x, right = numbers(place)
    means = x.reshape(-1, SIZE, x.shape[1]).mean(axis=1)
    LogisticRegressionCV(Cs=4, cv=5, l1_ratios=(0,), use_legacy_attributes=False).fit(
        x - np.repeat(means, SIZE, axis=0), right
    )


OURS = "read", "extract", "fit"
MEASURES: dict[str, Callable[[Path], None]] = {
    function.__name__: function for function in (read, extract, fit, lightgbm, sklearn)
}

if __name__ == "__main__":
    main()
