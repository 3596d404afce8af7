"""One input tried: what came of it, in one word, and whether that may be."""

import os
import traceback
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rerank.base.errors import DataError, ModelError, RecipeError, RerankError, RunError

from .targets import TARGETS, Case

LONGEST_MESSAGE = 3000
OUTCOMES = ("read", "empty", "refused at a line", "refused")  # what may be; all else is a failure


class Outcome(NamedTuple):
    """What came of an input: one of OUTCOMES, or a failure with its details."""

    kind: str
    details: str = ""

    @property
    def failed(self) -> bool:
        """Whether it may not be."""
        return self.kind not in OUTCOMES


def write_case(case: Case, directory: Path) -> None:
    for name, data in case.files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def judge(case: Case, directory: Path, seed: int, number: int) -> Outcome:
    """Try the files of ``case``, which are in ``directory``."""
    rng = np.random.default_rng([seed, number, 1])
    try:
        found = TARGETS[case.target].check(directory, rng)
    except RerankError as error:
        return _placed(error, directory, case)
    except MemoryError:
        return Outcome("too much memory", traceback.format_exc(limit=-6))
    except Exception as error:
        return Outcome(type(error).__name__, traceback.format_exc(limit=-8))
    return Outcome("read" if found else "empty")


def _placed(error: RerankError, directory: Path, case: Case) -> Outcome:
    """A refusal must say where, on one line that a terminal can show."""
    text = str(error)
    details = f"{type(error).__name__}: {text[:1000]}"
    if isinstance(error, RunError):
        return Outcome("failed run", details)
    if len(text) > LONGEST_MESSAGE or not text.replace("\n", "").replace("\t", "").isprintable():
        return Outcome("unreadable message", details)
    if isinstance(error, RecipeError):
        placed = error.key is not None or error.path is not None or case.target == "recipe"
        return Outcome("refused" if placed else "no place", details)
    path = error.path if isinstance(error, DataError | ModelError) else None
    if path is None or (case.target != "recipe" and str(directory) not in os.fspath(path)):
        return Outcome("no place", details)
    line = isinstance(error, DataError) and (error.line is not None or error.list_id is not None)
    return Outcome("refused at a line" if line else "refused", details)
