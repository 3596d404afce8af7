"""Commands with options, runs and files that were made for something else."""

from collections.abc import Callable
from pathlib import Path

from rerank.base.errors import DataError
from rerank.readers.base import readers

from .reading import Rng, holds
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
    return ["rank", directory / choice(rng, MODELS), _file(directory, rng, "lists"), *options]


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
        normalize=(), significance=(), prm=(_file(directory, rng),),
        reference=(_file(directory, rng, "references"),),
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
        reference=(_file(directory, rng, "references"),), punctuation=("own", "evalb"), normalize=(),
    )  # fmt: skip
    references = [_file(directory, rng, "gold", "references")] if rng.integers(5) else []
    return ["oracle", _file(directory, rng, "lists"), *references, *options]


def _stored(directory: Path, rng: Rng) -> list[object]:
    """The recipe of a run, whose data are not there any more."""
    name = "run"
    where = directory / choice(rng, ("run", "other", "fresh", "lists"))
    sets = ("task=parse", "task=classification", "learner.name=pa", "data.reader.name=jsonl", f"data.root={directory}")
    return [name, directory / "run/recipe.yaml", "-o", where, *_some(rng, set=sets, resume=())]


COMMANDS: dict[str, Callable[[Path, Rng], list[object]]] = {
    "rank": _rerank, "inspect": _inspect, "explain": _explain, "evaluate": _evaluate, "export": _export,
    "import": _import, "oracle": _oracle,
}  # fmt: skip
