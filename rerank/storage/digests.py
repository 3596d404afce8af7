"""Digests (SHA-256) of files: changes by a disk, a copy or a hand are noticed."""

import hashlib
from pathlib import Path

from rerank.storage.arrays import DAMAGE, check_plain
from rerank.storage.strict_json import as_json, read_object

NAME = "checksums.json"


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    check_plain(path)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def seal(directory: Path) -> None:
    """Write the digests of all files in a directory (not below it) next to them, in ``checksums.json``."""
    files = {path.name: digest(path) for path in sorted(directory.iterdir()) if path.is_file() and path.name != NAME}
    (directory / NAME).write_text(as_json({"files": files}, indent=1) + "\n", encoding="utf-8")


def verify(directory: Path) -> None:
    """Check that the files in a directory are those that ``seal`` saw."""
    for name, expected in read_object(directory / NAME)["files"].items():
        if (actual := digest(directory / name)) != expected:
            raise ValueError(f"{name}: its checksum is {actual}; it was {expected} when the file was written")


def foreign(directory: Path) -> Path | None:
    """A file in a directory that was not written with the others, whose names are in ``checksums.json`` or in the
    header of a model; None if there is none, or no directory."""
    listed = set[str]()
    for name in (NAME, "model.json"):
        try:
            listed |= {name, *dict(read_object(directory / name)["files"])}
        except DAMAGE:
            continue
    return next((path for path in sorted(directory.glob("*")) if path.name not in listed), None)
