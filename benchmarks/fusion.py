"""Runs of two search engines, fused: what each is worth alone, by their ranks, and with learned weights.

    python benchmarks/fusion.py [--queries 100] [--seed 1]

The runs are made here: 40 documents a query, of which 15 % are relevant, with the grade 1 or 2; each engine scores them
by grade and noise, of deviation 1 and 1.6, in units of its own, and returns its best 20.
"""

import argparse
import random
import tempfile
from pathlib import Path

from rerank.contrib.search.fuse import fused
from rerank.runs.report.table import plain_text

ENGINES = (("a.run", 1.0, 5.0), ("b.run", 1.6, 0.1))  # the deviation of its noise, and its unit


def main() -> None:
    """Make the runs, and print what they are worth, and their weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    lines: dict[str, list[str]] = {name: [] for name in ("qrels", *(name for name, *_ in ENGINES))}
    for i in range(arguments.queries):
        grades = {f"d{i}_{k}": int(draw.random() < 0.15) * draw.randint(1, 2) for k in range(40)}
        lines["qrels"] += [f"{i} 0 {name} {grade}\n" for name, grade in grades.items()]
        for engine, noise, unit in ENGINES:
            scores = {name: grade + draw.gauss(0, noise) for name, grade in grades.items()}
            found = sorted(scores, key=lambda name: -scores[name])[:20]
            lines[engine] += [f"{i} Q0 {d} {r} {unit * scores[d]:.4f} x\n" for r, d in enumerate(found, start=1)]
    with tempfile.TemporaryDirectory() as place:
        for name, own in lines.items():
            Path(place, name).write_text("".join(own))
        runs = [f"{place}/{name}" for name, *_ in ENGINES]
        for table in fused(runs, f"{place}/qrels", {"name": "ndcg", "k": 10}).tables():
            print(plain_text(table.rich()) + table.note)


if __name__ == "__main__":
    main()
