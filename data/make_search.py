"""Make the search example: two runs of invented queries, and judgements."""

import argparse
from pathlib import Path

from example_files import Draw, write

QUERIES, DOCUMENTS, RETURNED = 100, 40, 20
ENGINES = ("lexical", 1.0, 5.0), ("neural", 1.6, 0.1)  # the deviation of an engine's noise, and its unit


def make_files(seed: int) -> dict[str, str]:
    """The text of every file. 15 % of a query's documents are relevant, with the grade 1 or 2; engines score them by
    grade and noise, and return the best."""
    lines: dict[str, list[str]] = {name: [] for name in ("qrels", *(name for name, *_ in ENGINES))}
    for i in range(1, QUERIES + 1):
        draw = Draw(f"{seed}/{i}")
        grades = {f"d{i}-{k}": draw.chance(0.15) * draw.whole(1, 2) for k in range(1, DOCUMENTS + 1)}
        lines["qrels"] += [f"q{i} 0 {name} {grade}" for name, grade in grades.items()]
        for engine, noise, unit in ENGINES:
            scores = {name: round(unit * draw.about(grade, noise), 3) for name, grade in grades.items()}
            best = sorted(scores, key=lambda name: -scores[name])[:RETURNED]
            lines[engine] += [f"q{i} Q0 {name} {rank} {scores[name]} {engine}" for rank, name in enumerate(best, 1)]
    return {name: "\n".join(own) + "\n" for name, own in lines.items()}


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    usual = Path(__file__).resolve().parent / "search"
    parser.add_argument("--output", type=Path, default=usual, help="directory (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices (default: %(default)s)")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, text in make_files(options.seed).items():
        write(options.output / f"{name}.gz", text)


if __name__ == "__main__":
    main()
