"""Models: weights, feature table and provenance in one directory of plain files.

Nothing in it is executable; arrays are read without objects. docs/models.md describes the format for other programs.

Corpus hold dense columns standardised, models hold weights for the values as they are: with x' = scale · x in a
corpus, a weight w' of training is the weight w = scale · w' of the values as files have them. The column of the
template BaseScore is the base score, whose one weight is what both are together.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from rerank.base.errors import ModelError, RecipeError
from rerank.base.registry import Registry
from rerank.features.table import FeatureTable, HashedTable, load_table
from rerank.learn.learner import Weights, learners
from rerank.models.provenance import Decision, Provenance, Trust, decodings_of, parts_of, require_trusted
from rerank.parts import trees as tree_readers
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import METRICS, ListRecipe, Recipe, TextRecipe
from rerank.recipes.settings import Section, first_fault
from rerank.storage.documents import as_json, read_object
from rerank.storage.files import DAMAGE, find_directory, new_directory, read_array, save_arrays
from rerank.storage.files import digest as digest_of

FORMAT_VERSION = 1
# Models of other tasks, by an entry that their headers alone have: classes with ``load``, the ``command`` that takes
# them, their ``use``, and for a service ``routes`` (``ModelRoute`` by path), ``health`` and ``warm_up``.
models: Registry[Any] = Registry("model")
HEADER, SEEN, TREES = "model.json", "seen_digests", "trees.txt"
CHANGED_FILE = "the file is not the one that was saved; copy or train the model again"
_Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=64)]
_File = Annotated[str, Field(pattern=r"^([A-Za-z][A-Za-z0-9_]*\.(json|npy)|trees\.txt)$", max_length=72)]
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ModelRoute(NamedTuple):
    """A route of a service for a model: the form of a request, and the function of model, request and limits (of
    ``words`` among others) that gives the answer and how many inputs it has."""

    request: type[Section]
    answer: Callable[[Any, Any, Any], tuple[Any, int]]


class Header(BaseModel):
    """The content of ``model.json`` that all models have."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: int
    settings: dict[str, Any]
    about: Provenance
    files: dict[_File, _Digest]
    digest: _Digest


class ModelHeader(Header):
    """That of a model of lists: with the weight of the base score of each predictor."""

    base: dict[_Name, FiniteFloat]


@dataclass(frozen=True)
class Model:
    """A trained model.

    settings: the resolved recipe it was trained by; about: provenance (see ``provenance``);
    table: feature → column; weights: by predictor ("last", "average", and "mert" after tuning), for feature values as
    they are, whatever the columns were standardised with in training; state, votes: arrays of the learner's state
    and of its logged updates, empty where they were not kept; brackets: those of a ``BracketModel``, empty where none
    was learned; seen: the digests of the training lists, or of a sample (see ``extraction.sample``), empty where
    unknown; digest: that of the header which it was read from.
    """

    settings: dict[str, Any]
    about: dict[str, Any]
    table: FeatureTable
    weights: dict[str, Weights]
    state: dict[str, np.ndarray] = field(default_factory=dict)
    votes: dict[str, np.ndarray] = field(default_factory=dict)
    brackets: dict[str, np.ndarray] = field(default_factory=dict)
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    digest: str = ""

    def weights_of(self, predictor: str, *, linear: bool = True) -> Weights:
        """The weights of a predictor; a ``ModelError`` that says which there are if the model has none for it, or that
        these are trees if they have to be ``linear``."""
        if predictor not in self.weights:
            raise ModelError(f"no weights of {predictor!r}; it has {', '.join(self.weights)}")
        if linear and self.weights[predictor].trees is not None:
            message = f"its scores are no sum of weights but of trees, those of {TREES}, which LightGBM reads"
            raise ModelError(f"{message}; `rerank inspect` shows what each column contributes to them")
        return self.weights[predictor]

    @property
    def decision(self) -> Decision:
        """The way in which it chooses unless it is asked otherwise."""
        return Decision.model_validate(self.about.get("decision", {}))

    def save(self, directory: Path | str) -> None:
        """Write the model; it appears under its name only when complete."""
        with new_directory(directory) as new:
            self.table.save(new)
            arrays = {name: weights.w for name, weights in self.weights.items()}
            for kind in ("state", "votes", "brackets"):
                arrays |= {f"{kind}_{name}": array for name, array in getattr(self, kind).items()}
            save_arrays(new, arrays | ({SEEN: self.seen} if self.seen.size else {}))
            if trees := self.weights["last"].trees:
                (new / TREES).write_bytes(trees.text.tobytes())
            base = {name: weights.base for name, weights in self.weights.items()}
            write_header(new, {"settings": self.settings, "about": self.about, "base": base})

    @staticmethod
    def load(directory: Path | str, trust: Trust = False) -> "Model":
        """Read what ``save`` wrote. Everything is checked; no part that the settings name
        is imported.

        trust: which code the settings may name, for those who use the model to import and call: all (True), none, or
        that of these modules.
        """
        source = str(directory)
        with stored_model(source, ModelHeader) as (folder, header):
            model = _load(folder, header)
            require_trusted(parts_of(model.settings, model.about), trust, source)
            return model


@contextmanager
def stored_model(source: str, kind: type[Header]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Within the block, the folder and header of a model, which has to be of this ``kind`` and as it was saved; what
    cannot be read is a ``ModelError``."""
    try:
        folder = find_directory(Path(source))
        header = read_header(folder, kind)
        check_files(folder, header["files"])
        yield folder, header
    except NotADirectoryError:
        raise ModelError("is a file; expected the directory of a model", path=source) from None
    except FileNotFoundError as error:
        if not Path(source).is_dir():
            raise ModelError("no such directory; check the name", path=source) from None
        within = Path(source, "model")
        hint = f"; did you mean {within}?" if (within / HEADER).is_file() else ""
        raise ModelError(f"no model here: {Path(error.filename).name} is missing{hint}", path=source) from None
    except MemoryError:
        raise ModelError("the model needs more memory than there is", path=source) from None
    except RecursionError:
        raise ModelError("not a readable model: nested too deep", path=source) from None
    except DAMAGE as error:
        raise ModelError(f"not a readable model: {error}", path=source) from None


def _load(source: Path, header: dict[str, Any]) -> Model:
    table, about = load_table(source), header["about"]
    kinds: dict[str, dict[str, np.ndarray]] = {"state": {}, "votes": {}, "brackets": {}, "weights": {}}
    for name in header["files"]:
        kind, _, rest = name.removesuffix(".npy").partition("_")
        if name.endswith(".npy") and kind != "table" and name != f"{SEEN}.npy":
            part, key = (kind, rest) if kind in kinds else ("weights", name.removesuffix(".npy"))
            kinds[part][key] = read_array(source / name)
    trees = None
    if TREES in header["files"]:
        if (grower := str(about.get("learner"))) not in tree_readers:
            raise ValueError(f"it has trees, which its learner, {grower}, does not grow")
        trees = tree_readers.get(grower)((source / TREES).read_bytes(), table.width)
    weights = _weights_of(kinds["weights"], header["base"], trees, table.width)
    if kinds["votes"]:
        from rerank.learn.epoch import Votes

        if set(kinds["votes"]) != set(Votes._fields):
            raise ValueError(f"its votes are {', '.join(sorted(kinds['votes']))}; expected {', '.join(Votes._fields)}")
        Votes(**kinds["votes"]).check(table.width)
    if kinds["brackets"]:
        from rerank.metrics.bracket_model import BracketModel

        BracketModel.of(kinds["brackets"])
    if ("learned" in about.get("decodings", {})) != bool(kinds["brackets"]):
        raise ValueError("it has a bracket model without naming learned fusion, or names it without having one")
    hashes = read_array(source / f"{SEEN}.npy", np.uint64, 1) if f"{SEEN}.npy" in header["files"] else np.zeros(0, "u8")
    parts = kinds["state"], kinds["votes"], kinds["brackets"], hashes
    model = Model(header["settings"], about, table, weights, *parts, digest=header["digest"])
    _check_settings(model)
    decision, names = model.decision, [*weights, *decodings_of(model.about)]
    if not {decision.predictor, decision.ranked_by} <= set(names):
        choice = f"{decision.predictor}, with the scores of {decision.ranked_by}"
        raise ValueError(f"its decision is {choice}; it has {', '.join(names)}")
    return model


def _weights_of(
    arrays: Mapping[str, np.ndarray], bases: Mapping[str, Any], trees: Any, width: int
) -> dict[str, Weights]:
    """The predictors of a model by name; a ValueError unless each has a finite weight for every column."""
    if not {"last", "average"} <= set(bases) or set(bases) != set(arrays):
        text = ", ".join(sorted(arrays)) or "none"
        raise ValueError(f"its weights are {text}; expected those of {HEADER}, last and average among them")
    for name, w in arrays.items():
        if w.shape != (width,) or w.dtype != np.float64:
            message = f"weights and feature table differ in length or type: {name}.npy is {w.dtype} {w.shape}"
            raise ValueError(f"{message}, the table has {width} columns")
        if not np.all(np.isfinite(w)):
            raise ValueError(f"{name}.npy holds weights that are not finite")
    return {name: Weights(arrays[name], float(bases[name]), trees) for name in bases}


def read_header(source: Path, kind: type[Header]) -> dict[str, Any]:
    """The header of the model in a folder, which has to be of this ``kind``."""
    path = source / HEADER
    if path.is_symlink():
        raise ValueError(f"{HEADER} is a link; copy the model with the files that its links lead to")
    header = read_object(path)
    if header.get("version") != FORMAT_VERSION:
        raise ValueError(f"format version {header.get('version')!r}; this program reads {FORMAT_VERSION}")
    own, target = ({*models.names()} & keys for keys in (header.keys(), kind.model_fields.keys()))
    if own != target:
        use = next((models.get(name).use for name in own), "reranks lists")
        takes = next((f"expected one that {models.get(name).use}" for name in target), "")
        takes = takes or next(f"`{models.get(name).command}` takes it" for name in own)
        raise ModelError(f"a model that {use}; {takes}", path=str(source))
    try:
        kind.model_validate(header)
    except ValidationError as error:
        key, message = first_fault(kind, error)
        raise ValueError(f"{HEADER}: {'.'.join(map(str, key))}: {message}") from None
    if header["digest"] != header_digest(header):
        raise ModelError(CHANGED_FILE, path=str(path))
    return header


def check_files(source: Path, digests: dict[str, str]) -> None:
    """Check that the directory has the plain files of ``digests`` and no others; hidden files do not count."""
    present = {entry.name: entry for entry in os.scandir(source) if not entry.name.startswith(".")}
    for name in sorted(present.keys() - digests.keys() - {HEADER}):
        raise ModelError(f"{name} is not part of this model; remove it", path=str(source))
    for name, digest in digests.items():
        path = source / name
        if name == HEADER or not stat.S_ISREG(path.lstat().st_mode):
            raise ValueError(f"{name} is not a plain file")
        if digest_of(path) != digest:
            raise ModelError(CHANGED_FILE, path=str(path))


def _check_settings(model: Model) -> None:
    """Check that the settings are a recipe, and the state holds numbers; see also ``check_state``."""
    if model.settings:
        try:
            read_settings(model.settings)
        except RecipeError as error:
            raise ValueError(f"its settings are not a recipe of this program: {error}") from None
        features = model.settings.get("features")
        bits = features.get("hash_bits") if isinstance(features, dict) else None
        of_table = model.table.bits if isinstance(model.table, HashedTable) else None
        if bits != of_table:
            raise ValueError(f"its settings have features.hash_bits: {bits}, its table {of_table}")
        if more := {"engine", "grid", "runs"} & {key for key, value in model.settings.items() if value}:
            raise ValueError(f"its settings have {min(more)}; expected those of a single run")
        spec = model.settings.get("learner")
        if not isinstance(spec, dict) or not isinstance(spec.get("name"), str):
            raise ValueError("its settings name no learner")
    for name, array in model.state.items():
        if not np.all(np.isfinite(array)):
            raise ValueError(f"state_{name}.npy holds numbers that are not finite")
    if model.state and not {"training_data", "epochs"} <= set(model.about):
        raise ValueError(
            "its provenance lacks training_data and epochs, without which training cannot continue from its state"
        )


def check_state(model: Model, path: str) -> None:
    """Check that the state is one of its learner, for those who continue from it: kernels find their places in prefix
    sums with its counters."""
    spec = model.settings.get("learner", {})
    if not model.state or spec.get("name", "") not in learners:
        return
    from rerank.learn.base_weight import make_learner  # with all that training needs
    from rerank.learn.predictor import predictor_view

    try:
        learner = make_learner(spec)
        fresh = learner.init(model.table.width)
    except RecipeError as error:
        raise ModelError(f"its learner cannot be made: {error}", path=path) from None
    if set(fresh._fields) != set(model.state):  # that of another learner
        return
    arrays = learner.for_corpus(type(fresh)(**model.state), 0)  # variables per candidate: there may be any number
    for name, array, other in zip(fresh._fields, arrays, fresh, strict=True):
        if array.shape != other.shape or array.dtype != other.dtype or model.state[name].ndim != other.ndim:
            form = f"expected {other.dtype} {other.shape} for its learner and table"
            raise ModelError(f"state_{name}.npy is {array.dtype} {array.shape}; {form}", path=path)
        if array.dtype.kind == "i" and np.any((array < 0) | (array > 1 << 53)):
            raise ModelError(f"state_{name}.npy holds a count that is negative or above 2^53", path=path)
    counts, free = predictor_view(arrays).counts, model.table.free
    if counts.updates > 0 and counts.free != free:
        message = f"its state was trained with {counts.free} free columns, its table has {free}"
        raise ModelError(message, path=path)


def model_files(directory: Path | str) -> list[Path]:
    """The contents of a directory that is, or is taken for, a model."""
    return list(Path(directory).iterdir()) if Path(directory).is_dir() else []


def write_header(directory: Path, content: dict[str, Any]) -> None:
    """Write the header of a model: its ``content``, and the digests of the files that are in its directory."""
    files = {path.name: digest_of(path) for path in sorted(directory.iterdir())}
    header = {"version": FORMAT_VERSION, **content, "files": files}
    (directory / HEADER).write_text(as_json(header | {"digest": header_digest(header)}, indent=1))


def header_digest(header: dict[str, Any]) -> str:
    """Digest of a header without its own digest, however its JSON is laid out."""
    content = {key: value for key, value in header.items() if key != "digest"}
    return hashlib.sha256(as_json(content, sort_keys=True).encode()).hexdigest()


def recipe_of(model: Model) -> ListRecipe:
    """The recipe that a model was trained by; a ``ModelError`` if it was trained on something other than lists."""
    task = model.settings.get("task")
    if task in METRICS:
        return TextRecipe.model_validate(model.settings)
    if task != "parse":
        raise ModelError(f"a model of {task or 'another task'}; only models of N-best lists rerank lists")
    return Recipe.model_validate(model.settings)


def raw_weights(weights: Weights, table: FeatureTable) -> Weights:
    """Weights of standardised columns folded back: those of the values as they are."""
    if table.free == 0:
        return weights
    w = np.array(weights.w)
    w[: table.free] *= table.scale
    return weights._replace(w=w)


def one_base(weights: Weights, table: FeatureTable, *, standard: bool = False) -> Weights:
    """The same with the weight of the table's ``base_column`` in that of the base score; ``standard``: weights of
    standardised columns."""
    j = table.base_column
    if j is None or weights.w[j] == 0.0:
        return weights
    w = np.array(weights.w)
    extra, w[j] = float(w[j]) * (float(table.scale[j]) if standard else 1.0), 0.0
    return Weights(w, weights.base + extra)
