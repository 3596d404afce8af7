"""Models: weights, feature table and provenance in one directory of plain files.

Layout: ``model.json`` (version, settings, provenance, SHA-256 of all files, itself included), ``{last,average}.npy``
(and ``mert.npy`` where the model was tuned),
``table.json`` with ``table_*.npy`` (see features.table), ``state_*.npy`` (the learner's state, to go on training) and
``votes_*.npy`` (the logged updates, to vote). Nothing in it is executable; arrays are read without objects.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rerank.errors import ModelError
from rerank.features.table import Table, load_table
from rerank.files import new_directory
from rerank.learn.base import Weights

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Model:
    """A trained model.

    settings: the resolved recipe it was trained by; about: provenance (digest of the training data, epochs, date);
    table: feature → column; weights: by predictor ("last", "average", and "mert" after tuning), for feature values as
    they are, whatever the columns were standardised with in training; state, votes: arrays of the learner's state
    and of its logged updates, empty where they were not kept.
    """

    settings: dict[str, Any]
    about: dict[str, Any]
    table: Table
    weights: dict[str, Weights]
    state: dict[str, np.ndarray] = field(default_factory=dict)
    votes: dict[str, np.ndarray] = field(default_factory=dict)

    def save(self, directory: Path | str) -> None:
        """Write the model; it appears under its name only when complete.

        Raises
        ------
        RunError: the directory cannot be written.
        """
        with new_directory(directory) as new:
            self._write(new)

    def _write(self, directory: Path) -> None:
        self.table.save(directory)
        arrays = {name: weights.w for name, weights in self.weights.items()}
        arrays |= {f"state_{name}": array for name, array in self.state.items()}
        arrays |= {f"votes_{name}": array for name, array in self.votes.items()}
        for name, array in arrays.items():
            np.save(directory / f"{name}.npy", array, allow_pickle=False)
        header = {
            "version": FORMAT_VERSION,
            "settings": self.settings,
            "about": self.about,
            "base": {name: weights.base for name, weights in self.weights.items()},
            "files": {path.name: _digest(path) for path in sorted(directory.iterdir())},
        }
        header["digest"] = _header_digest(header)
        (directory / "model.json").write_text(json.dumps(header, indent=1))

    @staticmethod
    def load(directory: Path | str) -> Model:
        """Read what ``save`` wrote.

        Raises
        ------
        ModelError: not a model, a file missing or changed, arrays that do not fit, another format version.
        """
        source = Path(directory)
        try:
            header = json.loads((source / "model.json").read_text(encoding="utf-8"))
            if header["version"] != FORMAT_VERSION:
                message = f"format version {header['version']}; this program reads {FORMAT_VERSION}"
                raise ModelError(message, path=str(source))
            if header["digest"] != _header_digest(header):
                raise ModelError(
                    "the file is not the one that was saved; copy or train the model again",
                    path=str(source / "model.json"),
                )
            for name, digest in header["files"].items():
                if Path(name).name != name or _digest(source / name) != digest:
                    raise ModelError(
                        "the file is not the one that was saved; copy or train the model again", path=str(source / name)
                    )
            table = load_table(source)
            arrays = {
                name.removesuffix(".npy"): np.load(source / name, allow_pickle=False)
                for name in header["files"]
                if name.endswith(".npy") and not name.startswith("table_")
            }
            weights = {name: Weights(arrays[name], float(base)) for name, base in header["base"].items()}
            if not {"last", "average"} <= set(weights):
                raise KeyError("last, average")
            if any(weight.w.shape != (table.width,) or weight.w.dtype != np.float64 for weight in weights.values()):
                raise ModelError("weights and feature table differ in length or type", path=str(source))
            state = {name[6:]: array for name, array in arrays.items() if name.startswith("state_")}
            votes = {name[6:]: array for name, array in arrays.items() if name.startswith("votes_")}
            return Model(dict(header["settings"]), dict(header["about"]), table, weights, state, votes)
        except FileNotFoundError as error:
            raise ModelError(f"no model here: {Path(error.filename).name} is missing", path=str(source)) from None
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"not a readable model: {type(error).__name__}: {error}", path=str(source)) from None


def _header_digest(header: dict[str, Any]) -> str:
    """Digest of a header without its own digest, however its JSON is laid out."""
    content = {key: value for key, value in header.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
