"""Where a model comes from: what is written along with its weights, and what a reader may rely on."""

from __future__ import annotations

import platform
from datetime import datetime
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, NonNegativeInt

from rerank import __version__

LIBRARIES = ("numpy", "numba", "scipy")  # the libraries that results are computed with


class DevScore(BaseModel):
    """The score by which epochs, and runs, were chosen: as the metric gives it, a fraction or a figure of 0 to 100."""

    model_config = ConfigDict(extra="forbid", strict=True)

    split: str
    measure: str
    score: FiniteFloat


class Imported(BaseModel):
    """The file that weights were read from (``rerank import``), and its SHA-256 after decompression."""

    model_config = ConfigDict(extra="forbid", strict=True)

    file: str
    sha256: str


class Provenance(BaseModel):
    """Where a model comes from. Entries that this program does not know are kept.

    learner, run, seed: of the run that was chosen; epochs: passes over the training lists up to the epoch that was
    kept, including those of a model it continued from; training_data: key of the training corpus, the same for the same
    files, features and program; training_base: the weight of the base score while the learner trained; files: SHA-256
    of the training files after decompression, by what they hold; frame: the columns of the data frame that it was
    trained on, see ``FrameColumns``.
    """

    model_config = ConfigDict(extra="allow", strict=True)

    learner: str = ""
    run: str = ""
    seed: NonNegativeInt = 0
    epochs: NonNegativeInt = Field(default=0, le=1 << 53)
    dev: DevScore | None = None
    training_data: str = ""
    training_base: FiniteFloat | None = None
    files: dict[str, list[str]] = {}
    version: str = ""
    python: str = ""
    platform: str = ""
    libraries: dict[str, str] = {}
    date: str = ""
    imported: Imported | None = None
    frame: dict[str, str | list[str]] | None = None


def provenance(
    *,
    learner: str,
    run: str,
    seed: int,
    epochs: int,
    dev: dict[str, Any] | None,
    training_data: str,
    files: dict[str, list[str]],
    training_base: float | None = None,
) -> dict[str, Any]:
    """What a model says of itself (see ``Provenance``; ``dev``: split, measure and score), with versions and date."""
    made = Provenance(
        learner=learner,
        run=run,
        seed=seed,
        epochs=epochs,
        dev=None if dev is None else DevScore(**dev),
        training_data=training_data,
        training_base=training_base,
        files=files,
        version=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        libraries={name: version(name) for name in LIBRARIES},
        date=datetime.now().astimezone().isoformat(timespec="seconds"),
    )
    return made.model_dump(mode="json", exclude_none=True)


def imported(about: dict[str, Any], file: str, sha256: str) -> dict[str, Any]:
    """The provenance ``about`` for a model with the weights in ``file``: no dev score holds for them."""
    kept = {key: value for key, value in about.items() if key != "dev"}
    return kept | {"imported": Imported(file=file, sha256=sha256).model_dump()}
