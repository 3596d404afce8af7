"""Minimum error rate training on Moses-style lists: CPU seconds, and the metric before and after.

    python benchmarks/mert.py --root DIR [--split tune] [--other dev] [--set restarts=20] ...

DIR holds `SPLIT.nbest.gz`, `SPLIT.ref.gz` and `decoder.weights.txt`, the weights to start from; without --root,
`data/translation/multi30k` where RERANK_SHARED points, else in ../shared. --set changes a setting of MERT. The clock
runs while weights are searched for, not while lists are read, and not for the compilation of kernels. The weights
found are also scored on --other.
"""

import argparse
import gzip
import json
import os
import resource
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from rerank.learn.mert import ErrorSurface, MertResult, MertSettings, mert
from rerank.metrics.ngrams import Bleu
from rerank.readers.moses import Moses

SHARED = Path(os.environ.get("RERANK_SHARED") or Path(__file__).parents[2] / "shared")


class Split(NamedTuple):
    """The arrays of a split: see ``mert``."""

    lists: np.ndarray
    features: np.ndarray
    stats: np.ndarray
    reference: np.ndarray


def main() -> None:
    """Measure on the lists at --root."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=SHARED / "data" / "translation" / "multi30k")
    parser.add_argument("--split", default="tune")
    parser.add_argument("--other", default="dev")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    if not arguments.root.exists():
        raise SystemExit(f"{arguments.root} is not here: nothing measured")
    changes = dict(change.split("=", 1) for change in arguments.set)
    settings = MertSettings(**{key: yaml.safe_load(value) for key, value in changes.items()})
    start, metric = decoder_weights(arguments.root / "decoder.weights.txt"), Bleu()
    split, other = (read(arguments.root, name, metric) for name in (arguments.split, arguments.other))
    few = Split(split.lists[:11], *(part[: split.lists[10]] for part in split[1:3]), split.reference[:10])
    mert(*few, metric, start, MertSettings(random=1, restarts=1, iterations=1))
    before, wall = time.process_time(), time.perf_counter()
    result = mert(*split, metric, start, settings)
    seconds, wall = time.process_time() - before, time.perf_counter() - wall
    print(json.dumps(report(split, other, metric, start, result) | measured(seconds, wall), indent=1))


def decoder_weights(path: Path) -> np.ndarray:
    """float64 [F]: the weights of the lists' columns, in their order; those of other features are left out."""
    lines = (line.split() for line in path.read_text().splitlines() if not line.startswith("UnknownWordPenalty"))
    return np.array([float(value) for line in lines for value in line[1:]])


def read(root: Path, split: str, metric: Bleu) -> Split:
    """Dense features and statistics of a split; the total is no feature."""
    references = gzip.decompress((root / f"{split}.ref.gz").read_bytes()).split(b"\n")
    features, stats, reference = [], [], []
    for nbest, text in zip(Moses().read(root / f"{split}.nbest.gz"), references, strict=False):
        if nbest.problem is not None:
            raise SystemExit(f"{root}/{split}.nbest.gz: list {nbest.id}: {nbest.problem}")
        expected, rows = metric.list_stats(nbest, [text])
        features.append(nbest.scores[:, :-1])
        stats.append(rows)
        reference.append(expected)
    lists = np.cumsum([0] + [len(rows) for rows in stats])
    return Split(lists, np.vstack(features), np.vstack(stats), np.vstack(reference))


def report(split: Split, other: Split, metric: Bleu, start: np.ndarray, result: MertResult) -> dict[str, Any]:
    """What was found."""
    on_other = ErrorSurface.of(*other, metric)
    return {
        "signature": metric.signature,
        "lists": split.lists.size - 1,
        "candidates": int(split.lists[-1]),
        "features": start.size,
        "start": round(result.start_score, 4),
        "score": round(result.score, 4),
        "runs": [round(run.score, 4) for run in result.runs],
        "steps": [run.steps for run in result.runs],
        "start_on_other": round(on_other.score(start), 4),
        "score_on_other": round(on_other.score(result.weights), 4),
        "runs_on_other": [round(on_other.score(run.weights), 4) for run in result.runs],
    }


def measured(seconds: float, wall: float) -> dict[str, Any]:
    """What it cost."""
    return {
        "cpu_seconds": round(seconds, 2),
        "wall_seconds": round(wall, 2),
        "cores": os.cpu_count() or 1,
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }


if __name__ == "__main__":
    main()
