"""Commands and recipes with options, runs and files that were made for something else; names."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rerank.base.errors import DataError
from rerank.features.sets import SETS
from rerank.learn.base import learners
from rerank.metrics.base import metrics
from rerank.readers.base import readers

from .reading import Rng, holds
from .runs import KINDS
from .using import POLICIES, TEXT_METRICS, choice, command

PREDICTORS = ("last", "average", "voted", "mert")
READERS = (*(name for name, _ in readers), "nobody:Reader")
METRICS = ("parseval", "gain", *TEXT_METRICS)
TESTS = ("approximate_randomization", "paired_bootstrap", "paired_t", "mcnemar")
NUMBERS = (1, 2, 3, 1000, 0, -1, 10**30)
FILES = ("lists", "gold", "references", "sources", "weights", "run/metrics.json", "run", "nowhere", "")
MODELS = (*("run/model",) * 12, "run", "lists", "nowhere")
PERCENT_OF_WORDS = 35  # how many of the options that a command has are given


def check_crossed(directory: Path, rng: Rng) -> int:
    """A command on a model or lists, with any of its options: done, or refused with one message and no output."""
    line = COMMANDS[choice(rng, tuple(COMMANDS))](directory, rng)
    return _judged(directory, *line)


def check_compared(directory: Path, rng: Rng) -> int:
    """Two runs compared, or a command on one of them."""
    line = (_compare, _compare, _compare, _stored, _inspect)[int(rng.integers(5))](directory, rng)
    return _judged(directory, *line)


def _judged(directory: Path, *line: object) -> int:
    code, _, err = command(*line)
    shown = f"{' '.join(map(str, line))}: exit code {code}: {err[-2000:]}"
    holds("Traceback" not in err and "This ended `" not in err, f"foreseen: {shown}")
    if code == 0:
        return 1
    holds(code == 2, shown)
    holds("Usage:" in err or f"\n{err}".count("\nerror: ") == 1, f"one message: {shown}")
    written = [name for name in ("out", "out.gz", "new") if (directory / name).exists()]
    holds(not written, f"no output of a command that failed: {written}, {shown}")
    raise DataError("refused", path=str(directory))


def _some(rng: Rng, **values: tuple[object, ...]) -> list[object]:
    """Some of the options: each with one of its values; () is one without."""
    found: list[object] = []
    for name, allowed in values.items():
        if rng.integers(100) < PERCENT_OF_WORDS:
            found += [f"--{name.replace('_', '-')}", *([choice(rng, allowed)] if allowed else [])]
    return found


def _file(directory: Path, rng: Rng, *likely: str) -> Path:
    return directory / choice(rng, (*likely * 4, *FILES))


def _rerank(directory: Path, rng: Rng) -> list[object]:
    options = _some(
        rng, predictor=PREDICTORS, reader=READERS, on_bad_list=POLICIES, n_best=NUMBERS,
        sources=tuple(directory / name for name in FILES), output=(directory / "out",),
    )  # fmt: skip
    return ["rerank", directory / choice(rng, MODELS), _file(directory, rng, "lists"), *options]


def _inspect(directory: Path, rng: Rng) -> list[object]:
    options = _some(rng, predictor=PREDICTORS, top=NUMBERS, feature=("a", "", "\x1b"), ablate=(), provenance=())
    return ["inspect", directory / choice(rng, MODELS), *options]


def _explain(directory: Path, rng: Rng) -> list[object]:
    files = tuple(directory / name for name in FILES)
    options = _some(rng, predictor=PREDICTORS, top=NUMBERS, gold=files, sources=files, reader=READERS)
    ids = ("0", "1", "wsj-1", "a", "S-0", "train-1", "\x1b[2J", "")
    model, lists = directory / choice(rng, MODELS), _file(directory, rng, "lists")
    return ["explain", model, lists, "--list", choice(rng, ids), *options]


def _compare(directory: Path, rng: Rng) -> list[object]:
    options = _some(rng, predictor=("base", "oracle", *PREDICTORS), test=TESTS, seed=NUMBERS)
    runs = [directory / choice(rng, ("run", "run", "other", "run/model", "lists", "nowhere")) for _ in "ab"]
    return ["compare", *runs, "--samples", 100, *options]


def _evaluate(directory: Path, rng: Rng) -> list[object]:
    files = [_file(directory, rng, "gold", "references") for _ in range(int(rng.integers(1, 5)))]
    options = _some(
        rng, metric=METRICS, punctuation=("reference", "own", "evalb"), form=("lines", "tab", "id"), sentences=(),
        significance=(), prm=(_file(directory, rng),), reference=(_file(directory, rng, "references"),),
        option=("tokenize=13a", "order=0", "lowercase=maybe", "beta", "=", "smooth_method={"),
    )  # fmt: skip
    return ["evaluate", *files, *options]


def _export(directory: Path, rng: Rng) -> list[object]:
    options = _some(
        rng, predictor=PREDICTORS, top=NUMBERS, sort=("weight", "name"), format=("text", "moses"),
        output=(directory / "out", directory / "out.gz"),
    )  # fmt: skip
    return ["export", directory / choice(rng, MODELS), *options]


def _import(directory: Path, rng: Rng) -> list[object]:
    like = directory / choice(rng, MODELS)
    return ["import", _file(directory, rng, "weights"), "--like", like, "--output", directory / "new"]


def _oracle(directory: Path, rng: Rng) -> list[object]:
    options = _some(
        rng, reader=READERS, metric=METRICS, form=("lines", "tab", "id"), on_bad_list=POLICIES,
        reference=(_file(directory, rng, "references"),), punctuation=("own", "evalb"),
    )  # fmt: skip
    references = [_file(directory, rng, "gold", "references")] if rng.integers(5) else []
    return ["oracle", _file(directory, rng, "lists"), *references, *options]


def _stored(directory: Path, rng: Rng) -> list[object]:
    """The recipe of a run, whose data are not there any more."""
    name = choice(rng, ("run", "train", "extract", "test"))
    where = directory / choice(rng, ("run", "other", "fresh", "lists"))
    sets = ("task=parse", "task=classification", "learner.name=pa", "data.reader.name=jsonl", f"data.root={directory}")
    return [name, directory / "run/recipe.yaml", "-o", where, *_some(rng, set=sets, resume=())]


COMMANDS: dict[str, Callable[[Path, Rng], list[object]]] = {
    "rerank": _rerank, "inspect": _inspect, "explain": _explain, "evaluate": _evaluate, "export": _export,
    "import": _import, "oracle": _oracle,
}  # fmt: skip


def fitting(lists: bytes) -> tuple[str, str]:
    """A task and a reader for what looks like ``lists``."""
    if lists.startswith(b"{"):
        return ("translation", "sockeye") if b'"translations"' in lists else ("ranking", "jsonl")
    if b" ||| " in lists:
        return "translation", "moses"
    if b"\nH-" in lists:
        return "translation", "fairseq"
    return "parse", "berkeley" if lists[:1] == b"-" else "charniak"


def crossed_recipe(directory: Path, rng: Rng) -> dict[str, Any]:
    """A recipe of any task over the lists in ``directory``, with parts that may be another task's."""
    task, reader = fitting((directory / "lists").read_bytes()) if rng.integers(4) else ("", "")
    task, reader = task or choice(rng, KINDS), reader if rng.integers(4) and reader else choice(rng, READERS)
    data: dict[str, Any] = {"root": str(directory), "train": "train", "dev": None, "tests": [], "nbest": "{root}/lists"}
    data |= {"reader": {"name": reader}, "on_bad_list": choice(rng, POLICIES)}
    if task == "parse":
        data["gold"] = choice(rng, ("{root}/gold", "{root}/gold", "{root}/references"))
    else:
        sources, references = (None, "{root}/sources", "{root}/nowhere"), (None, ["{root}/references"], ["{root}/gold"])
        data |= {"sources": choice(rng, (None, *sources)), "references": choice(rng, (None, *references))}
    made: dict[str, Any] = {"task": task, "data": data, "training": {"epochs": 1}, "learner": {"base": 1.0}}
    parts = {
        "features": {"set": choice(rng, tuple(SETS)), "min_lists": 1},
        "metric": {"name": choice(rng, tuple(name for name, _ in metrics))},
        "learner": {"name": choice(rng, tuple(name for name, _ in learners)), "base": choice(rng, (1.0, "auto"))},
    }
    made |= {name: part for name, part in parts.items() if rng.integers(3) == 0}
    return made


def check_crossed_recipe(directory: Path, rng: Rng) -> int:
    """Extraction and an epoch with parts of different tasks."""
    (directory / "recipe.yaml").write_text(json.dumps(crossed_recipe(directory, rng)))
    name = choice(rng, ("extract", "train", "train", "run"))
    return _judged(directory, name, directory / "recipe.yaml", "-o", directory / "runs" / "out")


NAMES = (
    "..", ".", "../up", "../../up", "a/b", "a/../../b", "/", "", " ", "-", "~", "$HOME", "{split}", "{root}", "%s",
    "train",
    "x" * 300, "é", "\u202egold", "a\nb", "\x1b[2J", "\0", "\x7f", "\udc80", "\ud800", "CON", "a.gz", ".cache", "model",
    "recipe.yaml", "predictions", "null", "1e5",
)  # fmt: skip


def check_split_names(directory: Path, rng: Rng) -> int:
    """Splits of odd names: what is written lies in the output directory and its cache, and the input stays."""
    given = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    absolute = (str(directory / "lists"), str(directory / "elsewhere"), f"{directory}/inside/lists")
    train, dev, test = (choice(rng, (*NAMES, *absolute)) if rng.integers(2) else name for name in ("train", "dev", "t"))
    data = {"root": str(directory), "nbest": "{root}/lists", "gold": "{root}/gold"}
    data |= {"train": train, "dev": dev, "tests": [test]}
    made = {"task": "parse", "data": data, "training": {"epochs": 1}, "significance": {"samples": 100}}
    recipe = directory / "recipe.json"
    recipe.write_text(json.dumps(made | {"features": {"set": "minimal", "min_lists": 1}}))
    try:
        return _judged(directory, choice(rng, ("run", "extract")), recipe, "-o", directory / "inside" / "out")
    finally:
        kept = (directory / "inside" / "out", directory / "inside" / ".cache")
        for path in directory.rglob("*"):
            within = path == recipe or path in given or any(path.is_relative_to(place) for place in kept)
            holds(within or path.is_dir(), f"nothing outside: {path}, {data}")
        holds(all(path.read_bytes() == content for path, content in given.items()), f"the input stays: {data}")
