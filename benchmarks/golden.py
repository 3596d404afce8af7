"""What recipes make, byte by byte, and what they cost: recorded, compared with what was recorded, and timed in pairs.

    python benchmarks/golden.py record FILE [--root DIR] [--only NAME ...]
    python benchmarks/golden.py compare FILE [--root DIR] [--only NAME ...]
    python benchmarks/golden.py pair PYTHON [--rounds 3] [--root DIR] [--only NAME ...]

DIR holds the lists that are not in the repository: parse/gum, translation/multi30k, binary. `record` runs every recipe
below in a process of its own and writes a digest of each array of its models, of its predictions, its history and its
metrics without times; `compare` does the same and names what differs (exit code 1). `pair` runs each recipe in turn
with this interpreter and with PYTHON, that of another checkout, and prints CPU seconds (the least of the rounds) and
their ratio; the first round, which compiles kernels, does not count.
"""

import argparse
import gzip
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

HERE = Path(__file__).parents[1]
SHARED = Path(os.environ.get("RERANK_SHARED") or HERE.parent / "shared") / "data"
LEARNERS = (
    "arda", "arow", "bopr", "cw", "fobos", "ftrl", "lm-nwin", "lm-perc", "lm-uwin", "nherd", "nwin", "pa", "perceptron",
    "rda", "scw", "sgd", "sop", "tg", "uwin", "vrda",
)  # fmt: skip
# What tells how long something took, on which machine, or by which state of the code.
VARYING = {
    "seconds", "cpu_seconds", "nonzeros_per_second", "peak_memory_bytes", "code", "training_data", "version", "stages",
    "date", "digest", "time",
}  # fmt: skip


class Work(NamedTuple):
    """A recipe that is run: its name, the file or settings, and what is changed in it."""

    name: str
    recipe: str | dict[str, Any]
    changes: tuple[str, ...] = ()


def works(root: Path) -> Iterator[Work]:
    """All recipes, those over lists that are not here left out."""
    yield Work("quickstart", "quickstart.yaml")
    yield Work("asr", "asr.yaml")
    yield Work("llm", "llm.yaml")
    yield from here(root / "binary", classification(root / "binary"))
    gum = f"data.root={root / 'parse/gum'}"
    yield from here(root / "parse/gum", [Work("parse", "parse.yaml", (gum,)), *one_epoch(root / "parse/gum")])
    texts = f"data.root={root / 'translation/multi30k'}"
    yield from here(root / "translation/multi30k", [Work("translation", "translation.yaml", (texts, "seeds=[1]"))])


def here(folder: Path, found: list[Work]) -> list[Work]:
    """``found``, or nothing, which is said, where its folder is missing."""
    if folder.is_dir():
        return found
    print(f"{folder} is not here: {', '.join(work.name for work in found)} left out", file=sys.stderr)
    return []


def classification(root: Path) -> list[Work]:
    """One set of examples, fold by fold."""
    name = "sentiment_books"
    changes = f"data.path={root / name}.svm.gz", f"data.folds={root / name}.folds.txt"
    return [Work("classification", "classification.yaml", changes)]


def one_epoch(root: Path) -> list[Work]:
    """One epoch of every learner over the dev lists."""
    recipe = {
        "task": "parse",
        "data": {"root": str(root), "train": "dev", "dev": None, "tests": ["test"], "shard_size": 4000},
        "features": {"set": "cj2005"},
        "learner": {"base": 1},
        "training": {"epochs": 1},
        "significance": {"samples": 100},
    }
    return [Work(f"learner {name}", recipe, (f"learner.name={name}",)) for name in LEARNERS]


def run(python: str, work: Work, folder: Path) -> tuple[Path, float]:
    """The output of a recipe, run by an interpreter in its checkout, and the CPU seconds that it took."""
    checkout = HERE if python == sys.executable else Path(python).absolute().parents[2]
    path = checkout / "recipes" / str(work.recipe)
    if isinstance(work.recipe, dict):
        path = folder / "recipe.yaml"
        path.write_text(yaml.safe_dump(work.recipe))
    output = folder / work.name.replace(" ", "-")
    changes = [word for change in work.changes for word in ("--set", change)]
    command = [python, "-m", "rerank", "run", str(path), *changes, "--output", str(output), "--engine", "local"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{work.name}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return output, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def digests(output: Path) -> dict[str, str]:
    """Digests of what a run left, by file: of contents, so that compression and times count for nothing."""
    found = {}
    for path in sorted(output.rglob("*")):
        name = path.relative_to(output).as_posix()
        if name.startswith(".") or not path.is_file() or path.suffix in {".txt", ".html"}:
            continue
        found[name] = hashlib.sha256(content(path)).hexdigest()[:16]
    return found


def content(path: Path) -> bytes:
    """What counts of a file."""
    if path.suffix == ".npy":
        array = np.load(path, allow_pickle=False)
        return f"{array.dtype} {array.shape}".encode() + array.tobytes()
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return b"".join(f"{key} {arrays[key].dtype}".encode() + arrays[key].tobytes() for key in sorted(arrays))
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix in {".json", ".jsonl"}:
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.suffix == ".jsonl" else None
        kept = [without_times(line) for line in lines] if lines else without_times(json.loads(path.read_text()))
        return json.dumps(kept, sort_keys=True).encode()
    return path.read_bytes()


def without_times(value: Any) -> Any:
    """A value of JSON without what varies from one call to the next."""
    if isinstance(value, dict):
        return {key: without_times(own) for key, own in value.items() if key not in VARYING}
    return [without_times(own) for own in value] if isinstance(value, list) else value


def measured(chosen: list[Work]) -> dict[str, dict[str, str]]:
    """The digests of all recipes."""
    found = {}
    for work in chosen:
        with tempfile.TemporaryDirectory(prefix="rerank-golden-") as folder:
            output, seconds = run(sys.executable, work, Path(folder))
            found[work.name] = digests(output)
        print(f"{work.name}: {len(found[work.name])} files, {seconds:.1f} CPU seconds", file=sys.stderr)
    return found


def compare(recorded: dict[str, dict[str, str]], found: dict[str, dict[str, str]]) -> int:
    """Print what differs; the exit code."""
    differing = 0
    for name, files in found.items():
        before = recorded.get(name, {})
        different = [file for file in {**before, **files} if before.get(file) != files.get(file)]
        print(f"{name}: {'the same bits' if not different else 'differs in ' + ', '.join(different)}")
        differing += bool(different)
    return int(differing > 0)


def pair(chosen: list[Work], other: str, rounds: int) -> None:
    """Print CPU seconds by both interpreters, in turn."""
    print("| recipe | other, CPU s | this, CPU s | this / other |\n|---|---|---|---|")
    for work in chosen:
        seconds: dict[str, list[float]] = {other: [], sys.executable: []}
        for _ in range(rounds + 1):
            for python, taken in seconds.items():
                with tempfile.TemporaryDirectory(prefix="rerank-golden-") as folder:
                    taken.append(run(python, work, Path(folder))[1])
        before, after = (min(taken[1:]) for taken in seconds.values())
        print(f"| {work.name} | {before:.2f} | {after:.2f} | {after / before:.3f} |", flush=True)


def main() -> None:
    """Record, compare or time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare", "pair"])
    parser.add_argument("with_what", metavar="FILE | PYTHON")
    parser.add_argument("--root", type=Path, default=SHARED)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    chosen = [
        work for work in works(arguments.root.absolute()) if arguments.only is None or work.name in arguments.only
    ]
    file = Path(arguments.with_what)
    if arguments.action == "pair":
        pair(chosen, arguments.with_what, arguments.rounds)
    elif arguments.action == "record":
        file.write_text(json.dumps(measured(chosen), indent=1) + "\n")
    else:
        raise SystemExit(compare(json.loads(file.read_text()), measured(chosen)))


if __name__ == "__main__":
    main()
