"""What the scripts that make example lists share: random choices and files that are the same everywhere."""

import argparse
import gzip
import io
import json
import math
import os
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

List = dict[str, Any]


class Draw:
    """Random choices from one `random.Random`, whose `random()` is the same on all platforms."""

    def __init__(self, seed: str) -> None:
        self.number = random.Random(seed).random

    def one(self, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return options[min(int(self.number() * len(options)), len(options) - 1)]

    def whole(self, first: int, last: int) -> int:
        """A whole number from `first` to `last`."""
        return first + min(int(self.number() * (last - first + 1)), last - first)

    def weighted(self, options: Sequence[T], weights: Sequence[float]) -> T:
        """One of the options, in proportion to its weight."""
        left = self.number() * math.fsum(weights)
        for option, weight in zip(options, weights, strict=True):
            left -= weight
            if left < 0:
                return option
        return options[-1]

    def chance(self, probability: float) -> bool:
        """True in this share of the calls."""
        return self.number() < probability

    def about(self, middle: float, spread: float) -> float:
        """A number around `middle`: the sum of four uniform ones, with standard deviation `spread`."""
        return middle + (sum(self.number() for _ in range(4)) - 2.0) * math.sqrt(3.0) * spread

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """The items in random order."""
        return [item for _, item in sorted(((self.number(), item) for item in items), key=lambda pair: pair[0])]


def json_text(lists: Iterable[List]) -> str:
    """The lists as JSON lines."""
    return "".join(json.dumps(item) + "\n" for item in lists)


def write(path: Path, text: str) -> None:
    """Write a gzip file that depends on the text alone, under a temporary name first."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        stream.write(text.encode())
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(buffer.getvalue())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def run(
    description: str, output: Path, make: Callable[[int], dict[str, list[List]]], arguments: list[str] | None
) -> None:
    """The command line of a script: `make` gives the lists of every split for a seed."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, default=output, help="directory (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        for split, lists in make(options.seed).items():
            write(options.output / f"{split}.jsonl.gz", json_text(lists))
            print(f"{split}: {len(lists)} lists in {options.output}")
    except OSError as error:
        parser.exit(1, f"{parser.prog}: cannot write to {options.output}: {error}; choose another --output\n")
