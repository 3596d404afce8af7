"""Finished single runs on disk, in directories of their own, from which an interrupted recipe continues."""

from pathlib import Path

from rerank.storage.checkpoints import KeptResult
from rerank.storage.files import remove
from rerank.storage.written import claim

RUNS = ".runs"  # in an output directory, until the recipe is done
TRAINED, UNFINISHED = "trained", "unfinished"  # in the directory of a run: the run, and how far work on it has come


def place_of(directory: Path, name: str) -> Path:
    """Where a single run of the recipe in an output directory is kept."""
    return claim(directory.absolute(), RUNS, name)


def kept(place: Path, key: str) -> KeptResult:
    """What is kept of a finished run; key: digests of everything that it depends on."""
    return KeptResult(place / TRAINED, key)


def is_finished(place: Path) -> bool:
    """Is the run that belongs at ``place`` there?"""
    return (place / TRAINED).exists()


def forget_votes(directory: Path) -> None:
    """Remove what voting has left next to the runs in an output directory: it is done."""
    for place in (directory / RUNS).glob(f"*/{UNFINISHED}"):
        remove(place)
