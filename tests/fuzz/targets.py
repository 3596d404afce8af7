"""Targets: which files are damaged, in what ways, and what they are tried with."""

import hashlib
import io
import json
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import small
import small_texts

from rerank.models.model import Model
from rerank.models.weights_text import weight_lines
from rerank.runs import pipeline

from . import crossing, reading, using
from . import samples as given
from .mutations import BINARY, Mutation, Rng, json_value, mutated, yaml_value
from .runs import compared, crossed, directory_files
from .samples import SCORES, Files, all_texts, jsonl, moses, parses, recipes, svmlight

Check = Callable[[Path, Rng], int]


class Target(NamedTuple):
    """What is tried: samples of files that belong together, a check, and mutations of its own.

    weight: how often it comes relative to others. fixed: files (or directories) that are never damaged. large: whether
    it gets large inputs. whole: the share of inputs in which nothing is damaged: there, options are what differs.
    """

    samples: Callable[[], list[Files]]
    check: Check
    own: tuple[Mutation, ...] = ()
    weight: float = 1.0
    fixed: tuple[str, ...] = ()
    large: bool = True
    whole: float = 0.0


def npy_value(data: bytes, rng: Rng) -> bytes:
    """An array with other values, of another type or shape, or with objects."""
    try:
        array = np.array(np.load(io.BytesIO(data), allow_pickle=False))
    except (ValueError, EOFError):
        return data
    extremes = np.array([0, 1, -1, 2**31 - 1, 2**31, 2**40, 2**62, -(2**62), np.inf, np.nan, 1e300, 5e-324])
    with np.errstate(all="ignore"):
        match int(rng.integers(6)):
            case 0 | 1 if array.size:
                for _ in range(int(rng.integers(1, 4))):
                    array.flat[int(rng.integers(array.size))] = choice_as(extremes, array.dtype, rng)
            case 2:
                array = array.astype(
                    str(rng.choice(["float64", "float32", "int64", "int32", "uint8", "bool", "U8", "c16"]))
                )
            case 3:
                array = array.reshape([(-1, 1), (1, -1), (array.size,)][int(rng.integers(3))])
            case 4:
                array = np.resize(array, int(rng.integers(0, array.size + 5)))
            case _:
                array = array.astype(object)
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def choice_as(values: np.ndarray, dtype: np.dtype, rng: Rng) -> np.generic:
    """One of ``values``, as far as ``dtype`` can hold it."""
    return values[int(rng.integers(values.size))].astype(dtype)


TRAINED = ("model", "texts", "corpus", "shards", "table", "weights", "compare")


@cache
def _trained() -> dict[str, list[Files]]:
    """Models, corpora, tables and results of runs of tiny recipes."""
    found: dict[str, list[Files]] = {name: [] for name in TRAINED}
    with tempfile.TemporaryDirectory() as made:
        for name, files in (("trees", parses()[0]), ("texts", moses()[0])):
            root = Path(made) / name
            root.mkdir()
            data = {"nbest": "{root}/lists", "dev": None, "tests": ["test"]}
            for file, content in files.items():
                (root / file).write_bytes(content)
            if name == "trees":
                changes = {"features": {"min_lists": 1}, "learner": {"name": "vrda", "base": 1.0}}
                recipe = small.recipe(root, data={**data, "gold": "{root}/gold"}, **changes)
            else:
                data |= {"sources": "{root}/sources", "references": ["{root}/references"]}
                learner = {"name": "vrda", "base": 1.0}  # few lists, and no others to weigh it on
                recipe = small_texts.recipe(root, data=data, features={"hash_bits": 8}, learner=learner)
            pipeline.run(recipe, root / "run")
            found["texts" if name == "texts" else "model"].append(
                {**directory_files(root / "run/model", "model"), **files}
            )
            for entry in sorted((root).rglob("header.json")):
                found["corpus"].append(directory_files(entry.parent, "corpus"))
            for entry in sorted(root.rglob("shards.json")):
                found["shards"].append(directory_files(entry.parent, "shards"))
            model = Model.load(root / "run/model")
            weights = "".join(line + "\n" for line in weight_lines(model.table, model.weights["average"], top=50))
            if name == "trees":  # the names of hashed columns are their numbers
                found["weights"].append({**directory_files(root / "run/model", "model"), "weights": weights.encode()})
            table = {
                file: content
                for file, content in directory_files(root / "run/model", "table").items()
                if "/table" in file
            }
            found["table"].append(table)
            kept = ("metrics.json", "recipe.yaml")
            run = {file: (root / "run" / file).read_bytes() for file in kept}
            run |= directory_files(root / "run/predictions", "predictions")
            run = {file: content for file, content in run.items() if not file.endswith((".gz", ".txt"))}
            found["compare"].append({f"{side}/{file}": content for side in "ab" for file, content in run.items()})
    return found


def _named(**files: bytes) -> Callable[[], list[Files]]:
    return lambda: [files]


def _each(name: str, samples: Callable[[], list[bytes]]) -> Callable[[], list[Files]]:
    return lambda: [{name: data} for data in samples()]


def _kept(samples: Callable[[], list[Files]], *names: str) -> Callable[[], list[Files]]:
    return lambda: [{name: files[name] for name in names} for files in samples()]


def _with_scores() -> list[Files]:
    return [{"lists": files["lists"], "other": SCORES} for files in moses()[:4]]


def _two_systems() -> list[Files]:
    return [{"lists": files["lists"], "other": moses()[k - 1]["lists"]} for k, files in enumerate(moses()[:5])]


def _examples() -> list[Files]:
    return [{"examples": data, "folds": given.FOLDS, "words": given.VOCABULARY} for data in svmlight()[:1]]


def _references() -> list[Files]:
    texts = (b"the house\nit rains\ngood\n", b"a\tb\tc\n\nd\te\n", b"0 ||| a\n0 ||| b\n1 ||| c\n2 ||| d\n")
    return [{"one": text, "two": texts[0]} for text in texts]


def _list_target(name: str, samples: Callable[[], list[Files]], own: tuple[Mutation, ...] = ()) -> Target:
    return Target(samples, partial(reading.check_lists, name), own, 3.0)


def _made(name: str) -> Callable[[], list[Files]]:
    return lambda: _trained()[name]


JSON, YAML, ARRAYS = (json_value,), (yaml_value,), (npy_value, json_value)

TARGETS: dict[str, Target] = {
    "charniak": _list_target("charniak", lambda: [*_kept(parses, "lists")(), {"lists": given.HEADED}]),
    "berkeley": _list_target("berkeley", lambda: [{"lists": given.GROUPS}, {"lists": given.HEADED}]),
    "moses": _list_target("moses", _kept(moses, "lists")),
    "fairseq": _list_target("fairseq", _named(lists=given.FAIRSEQ)),
    "sockeye": _list_target("sockeye", _named(lists=given.SOCKEYE), JSON),
    "jsonl": _list_target("jsonl", jsonl, JSON),
    "bare trees": _list_target("trees", _each("lists", lambda: list(given.BARE))),
    "stanford": _list_target("stanford", _named(lists=given.STANFORD)),
    "opennmt": _list_target("opennmt", _each("lists", lambda: list(given.OPENNMT))),
    "kaldi": _list_target("kaldi", lambda: [given.KALDI]),
    "espnet": _list_target("espnet", lambda: [given.ESPNET]),
    "openai": _list_target("openai", _named(lists=given.OPENAI), JSON),
    "preferences": _list_target("preferences", _named(lists=given.PREFERENCES), JSON),
    "parallel": _list_target("parallel", _named(lists=given.PARALLEL), JSON),
    "joined": _list_target("joined", _with_scores)._replace(weight=1.0),
    "merged": _list_target("merged", _two_systems)._replace(weight=1.0),
    "joined parses": _list_target("joined parses", _named(lists=given.HEADED, other=SCORES))._replace(weight=1.0),
    "merged parses": _list_target("merged parses", _named(lists=given.HEADED, other=given.GROUPS))._replace(weight=1.0),
    "trees": Target(
        lambda: [dict.fromkeys(("test", "gold"), files["gold"]) for files in parses()], reading.check_trees, weight=3.0
    ),
    "references": Target(_references, reading.check_references, weight=2.0),
    "svmlight": Target(_each("examples", svmlight), reading.check_svmlight, weight=4.0),
    "sentences": Target(_each("sentences", lambda: list(given.SENTENCES)), reading.check_sentences, weight=3.0),
    "folds": Target(_named(folds=given.FOLDS), reading.check_folds, weight=0.5),
    "vocabulary": Target(_named(words=given.VOCABULARY), reading.check_vocabulary, weight=0.5),
    "documents": Target(_named(texts=given.DOCUMENTS), reading.check_documents, weight=0.5),
    "prm": Target(_named(prm=given.PRM), reading.check_prm, weight=1.0),
    "examples": Target(_examples, using.check_examples),
    "parse pairs": Target(parses, partial(using.check_pairs, "parses"), weight=2.0),
    "text pairs": Target(moses, partial(using.check_pairs, "moses"), weight=2.0),
    "jsonl pairs": Target(jsonl, partial(using.check_pairs, "jsonl"), JSON),
    "parse pipeline": Target(parses, partial(using.check_pipeline, "parses"), weight=0.4, large=False),
    "text pipeline": Target(moses, partial(using.check_pipeline, "moses"), weight=0.4, large=False),
    "jsonl pipeline": Target(jsonl, partial(using.check_pipeline, "jsonl"), JSON, 0.4, large=False),
    "recipe": Target(_each("recipe.yaml", recipes), using.check_recipe, YAML, 3.0),
    "corpus": Target(_made("corpus"), using.check_corpus, ARRAYS, 1.5, large=False),
    "table": Target(_made("table"), using.check_table, ARRAYS, 1.0, large=False),
    "shards": Target(_made("shards"), using.check_shards, ARRAYS, 1.0, large=False),
    "weights": Target(_made("weights"), using.check_weights, weight=1.0, fixed=("model/",)),
    "model": Target(_made("model"), using.check_model, ARRAYS, 2.0, ("lists", "gold"), large=False),
    "text model": Target(
        _made("texts"), using.check_model, ARRAYS, 1.0, ("lists", "sources", "references"), large=False
    ),
    "compare": Target(_made("compare"), using.check_compare, (json_value,), 0.5, large=False),
    "crossed": Target(crossed, crossing.check_crossed, weight=8.0, fixed=("run/",), large=False, whole=0.4),
    "compared": Target(compared, crossing.check_compared, weight=1.0, large=False, whole=0.8),
}

LARGE = 0.0015  # the share of large inputs


class Case(NamedTuple):
    """One input: the files of a target, and which of them is damaged; none if that is empty."""

    target: str
    files: Files
    damaged: str
    large: bool


def warm_up() -> None:
    """Make all samples; those of models take some seconds, and kernels."""
    for target in TARGETS.values():
        target.samples()


def make_case(seed: int, number: int, only: str | None = None) -> Case:
    """Input ``number`` of the campaign ``seed``, of one target alone if it is named."""
    from .giants import giant

    rng = np.random.default_rng([seed, number])
    names = [only] if only else list(TARGETS)
    weights = np.array([TARGETS[name].weight for name in names])
    name = str(rng.choice(names, p=weights / weights.sum()))
    target = TARGETS[name]
    samples = target.samples()
    files = dict(samples[int(rng.integers(len(samples)))])
    chosen = [file for file in files if not file.startswith(target.fixed or ("\0",))]
    damaged = str(rng.choice(chosen))
    large = target.large and bool(rng.random() < LARGE)
    if target.whole and rng.random() < target.whole:
        damaged = ""
    elif large:
        files[damaged] = giant(name, files[damaged], rng)
    elif not target.large and "/" in damaged:
        _damage_directory(files, damaged, rng)
    else:
        files[damaged] = mutated(files[damaged], rng, target.own, all_texts())
    return Case(name, files, damaged, large)


def _damage_directory(files: Files, damaged: str, rng: Rng) -> None:
    """Damage, remove or exchange a file of a directory; a model's digests are made to fit again in most cases."""
    draw = rng.random()
    if draw < 0.05:
        del files[damaged]
    elif draw < 0.1:
        files[damaged] = files[str(rng.choice(list(files)))]
    elif draw < 0.3:
        files[damaged] = BINARY[int(rng.integers(len(BINARY)))](files[damaged], rng)
    else:
        own = npy_value if damaged.endswith(".npy") else json_value
        files[damaged] = own(files[damaged], rng)
    if "model/model.json" in files and rng.random() < 0.8:
        sign(files)


def sign(files: Files) -> None:
    """Give a model's header the digests of its files, and its own, as somebody would who means harm."""
    try:
        header = json.loads(files["model/model.json"])
        present = {name.removeprefix("model/"): data for name, data in files.items() if name.startswith("model/")}
        header["files"] = {
            name: hashlib.sha256(present[name]).hexdigest() for name in header["files"] if name in present
        }
        header.pop("digest", None)
        header["digest"] = hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    files["model/model.json"] = json.dumps(header).encode()
