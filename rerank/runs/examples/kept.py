"""Finished results on disk, so that an interrupted recipe can be resumed."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import fields
from pathlib import Path

import numpy as np

from rerank import __version__
from rerank.kernels.sources import CLASSIFICATION, code_digest, user_digest
from rerank.recipes.example_recipe import Spec
from rerank.recipes.settings import Settings
from rerank.runs.examples.data import ExampleSet
from rerank.runs.examples.results import Result
from rerank.storage.checkpoints import KeptResult
from rerank.storage.strict_json import as_json

PLAIN = [field.name for field in fields(Result) if field.name not in ("spec", "predictions", "margins")]


def code_of(settings: Settings) -> str:
    """Digest of the code that fits and tests: this program's, and the user's own parts in ``settings``."""
    return f"{code_digest(CLASSIFICATION)[:32]} {user_digest(settings)[:32]}"


def key_of(examples: ExampleSet, noise: float, spec: Spec) -> str:
    """What a result follows from, as a short text: the run, the noise, the examples themselves, and the code."""
    parts = [examples.examples, *([examples.test] if examples.test is not None else [])]
    arrays = [array for part in parts for array in (part.rows, part.columns, part.label, part.values)]
    arrays += [examples.folds] if examples.folds is not None else []
    # One number that all values share (stride 0) is read once.
    sums = [zlib.crc32(np.ascontiguousarray(a if a.strides != (0,) else a[:1]).data) for a in arrays]
    settings = spec.model_dump(mode="json")
    text = as_json([__version__, code_of(settings), examples.name, noise, settings, sums])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def save_results(directory: Path, key: str, results: list[Result]) -> None:
    """Keep the results of one run on one set at one noise level.

    Raises
    ------
    RunError: cannot be written.
    """
    entries = [{name: getattr(each, name) for name in PLAIN} for each in results]
    arrays = {f"{i}-{name}": found for i, each in enumerate(results) for name, found in each.predictions.items()}
    arrays |= {f"margins-{i}": each.margins for i, each in enumerate(results)}
    KeptResult(directory / key, key).save({"results": entries}, arrays)


def load_results(directory: Path, key: str, spec: Spec) -> list[Result] | None:
    """What ``save_results`` kept; None where there is nothing that can be read."""
    stored = KeptResult(directory / key, key).load()
    if stored is None:
        return None
    header, arrays = stored
    results = []
    for i, entry in enumerate(header["results"]):
        own = {name.partition("-")[2]: found for name, found in arrays.items() if name.startswith(f"{i}-")}
        results.append(Result(spec=spec, predictions=own, margins=arrays[f"margins-{i}"], **entry))
    return results
