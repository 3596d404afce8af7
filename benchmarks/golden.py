"""Digests of what all recipes make, byte by byte: recorded, compared with what was recorded, and timed in pairs.

    python benchmarks/golden.py record FILE --quick [--data DIR ...] [--only NAME ...] [--jobs 2]
    python benchmarks/golden.py compare FILE --quick [--data DIR ...] [--only NAME ...] [--jobs 2]
    python benchmarks/golden.py pair PYTHON --quick [--rounds 3] [--data DIR ...] [--only NAME ...]

Lists that come with the program are always there. A DIR holds others: parses (`train.gold.gz`), translations
(`train.ref.gz`) or examples (`NAME.svm.gz`); recipes that read what no DIR holds are left out, which is said. `record`
runs every recipe, and one epoch of every learner, in a process of its own and writes a digest of each array of its
models, of its predictions, its history and its metrics without times; `compare` does the same and names what differs
(exit code 1). With --quick, recipes use their own settings for a quick run, those in QUICK, and few lists. `pair` runs
each recipe in turn with this interpreter and with PYTHON, that of another checkout, and prints CPU seconds (the least
of the rounds) and their ratio; the first round, which compiles kernels, does not count.
"""

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

HERE = Path(__file__).parents[1]
SHARED = Path(os.environ.get("RERANK_SHARED") or HERE.parent / "shared") / "data"
FOLDERS = SHARED / "parse/gum", SHARED / "translation/multi30k", SHARED / "binary"
MARKS = {"parses": "train.gold.gz", "translations": "train.ref.gz", "examples": "*.svm.gz"}
FEW_PARSES = "data.train=dev", "training.share=1", "training.epochs=2", "significance.samples=100"
FEW_TRANSLATIONS = (
    "data.train=dev",
    "data.dev=tune",
    "training.share=1",
    "training.epochs=2",
    "significance.samples=100",
)
# A quick run of recipes that say nothing of it.
QUICK: dict[str, tuple[str, ...]] = {
    "learners": ("data.sets=[digits_34]", "data.noise=[0.1]"),
    "learners-fixed": ("data.sets=[digits_34, news_comp]", "seeds=[1]"),
    "tuning": ("data.sets=[news_comp]",),
    "parse-ensemble": ("training.ensemble.seeds=2",),
    "parse-learned": ("training.ensemble.seeds=2",),
    "translation": ("seeds=[1]",),
    "translation-dptm": ("seeds=[1]",),
    "translation-mert": ("mert.split=test_2016", "data.tests=[test_2017]"),
}
LEARNERS = (
    "arda", "arow", "cw", "ftrl", "lm-nwin", "lm-perc", "lm-uwin", "nherd", "nwin", "pa", "perceptron",
    "rda", "scw", "sgd", "sop", "tg", "uwin", "vrda",
)  # fmt: skip
# What tells how long something took, on which machine, or by which state of the code.
VARYING = {
    "seconds", "cpu_seconds", "nonzeros_per_second", "peak_memory_bytes", "code", "training_data", "version", "stages",
    "date", "digest", "time",
}  # fmt: skip


class Work(NamedTuple):
    """A recipe that is run: its name, the file or settings, what is changed in it, and other options."""

    name: str
    recipe: str | dict[str, Any]
    changes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def works(folders: Sequence[Path], quick: bool) -> Iterator[Work]:
    """All recipes, then one epoch of every learner; those over lists that are not here left out."""
    here = {kind: folder for folder in folders for kind, mark in MARKS.items() if any(folder.glob(mark))}
    missing: dict[str, list[str]] = {}
    for path in sorted((HERE / "recipes").rglob("*.yaml")):
        name = path.relative_to(HERE / "recipes").with_suffix("").as_posix()
        text = path.read_text()
        task = yaml.safe_load(text)["task"]
        kind = {"parse": "parses", "translation": "translations", "classification": "examples"}.get(task)
        if ("=DIR" not in text and "=FILE" not in text) or (kind not in here and "{shipped}" in text):
            kind = None  # its lists come with the program, or are generated
        if kind is not None and kind not in here:
            missing.setdefault(kind, []).append(name)
            continue
        yield Work(name, f"{name}.yaml", changes(name, kind, here, quick), quick_option(text, quick))
    if "parses" in here:
        yield from one_epoch(here["parses"])
    else:
        missing.setdefault("parses", []).append("one epoch of every learner")
    for kind, names in missing.items():
        print(f"no --data folder has {kind} ({MARKS[kind]}); left out: {', '.join(names)}", file=sys.stderr)


def quick_option(text: str, quick: bool) -> tuple[str, ...]:
    """--quick, where the recipe knows it."""
    return ("--quick",) if quick and "\nquick:" in text else ()


def changes(name: str, kind: str | None, here: dict[str, Path], quick: bool) -> tuple[str, ...]:
    """Where the lists of a recipe are, and what makes its run quick."""
    if kind is None:
        return QUICK.get(name, ()) if quick else ()
    if name == "classification":
        found = here[kind] / "sentiment_books"
        return f"data.path={found}.svm.gz", f"data.folds={found}.folds.txt"
    few = {"parses": FEW_PARSES, "translations": FEW_TRANSLATIONS}.get(kind, ()) if quick else ()
    return f"data.root={here[kind]}", *few, *(QUICK.get(name, ()) if quick else ())


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
    options = [*changes, *work.options, "--output", str(output), "--engine", "local"]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [python, "-m", "rerank", "run", str(path), *options], cwd=checkout, stdout=subprocess.DEVNULL, stderr=errors
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if process.returncode:
            raise SystemExit(f"{work.name}: exit code {process.returncode}\n{errors.read()[-2000:]}")
    return output, used.ru_utime + used.ru_stime


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
        return json.dumps(kept, sort_keys=True).replace(str(HERE), "").encode()  # checkouts compare equal
    return path.read_bytes()


def without_times(value: Any) -> Any:
    """A value of JSON without what varies from one call to the next."""
    if isinstance(value, dict):
        return {key: without_times(own) for key, own in value.items() if key not in VARYING}
    return [without_times(own) for own in value] if isinstance(value, list) else value


def measured(chosen: list[Work], jobs: int) -> dict[str, dict[str, str]]:
    """The digests of all recipes."""

    def of(work: Work) -> dict[str, str]:
        with tempfile.TemporaryDirectory(prefix="rerank-golden-") as folder:
            output, seconds = run(sys.executable, work, Path(folder))
            found = digests(output)
        print(f"{work.name}: {len(found)} files, {seconds:.1f} CPU seconds", file=sys.stderr, flush=True)
        return found

    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip([work.name for work in chosen], pool.map(of, chosen), strict=True))


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
    parser.add_argument("--data", type=Path, nargs="+", metavar="DIR", default=FOLDERS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="recipes at a time")
    arguments = parser.parse_args()
    folders = [folder.absolute() for folder in arguments.data]
    chosen = [work for work in works(folders, arguments.quick) if arguments.only is None or work.name in arguments.only]
    file = Path(arguments.with_what)
    if arguments.action == "pair":
        pair(chosen, arguments.with_what, arguments.rounds)
    elif arguments.action == "record":
        file.write_text(json.dumps(measured(chosen, arguments.jobs), indent=1) + "\n")
    else:
        raise SystemExit(compare(json.loads(file.read_text()), measured(chosen, arguments.jobs)))


if __name__ == "__main__":
    main()
