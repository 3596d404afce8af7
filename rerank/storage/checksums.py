"""Checksums of the files in a directory, written with them: changes by a disk, a copy or a hand are noticed.

They are CRC-32 (zlib), computed at gigabytes per second; they detect damage, not malice.
"""

import zlib
from pathlib import Path

from rerank.storage.arrays import DAMAGE, open_plain
from rerank.storage.strict_json import as_json, read_object

NAME = "checksums.json"
_CHUNK = 1 << 20


def checksum(path: Path) -> str:
    """CRC-32 of a file's bytes, 8 hexadecimal digits.

    Raises
    ------
    OSError, ValueError: it cannot be read, or is not a plain file.
    """
    found, buffer = 0, bytearray(_CHUNK)
    with open_plain(path) as stream:
        while count := stream.readinto(buffer):  # type: ignore[attr-defined]
            found = zlib.crc32(memoryview(buffer)[:count], found)
    return f"{found:08x}"


def seal(directory: Path) -> None:
    """Write the checksums of all files in a directory (not below it) next to them.

    Raises
    ------
    OSError: it cannot be written.
    """
    files = {path.name: checksum(path) for path in sorted(directory.iterdir()) if path.is_file() and path.name != NAME}
    (directory / NAME).write_text(as_json({"files": files}, indent=1) + "\n", encoding="utf-8")


def listed(directory: Path) -> set[str]:
    """The names of the files in a directory that this program has written as a whole: those listed with checksums in
    ``checksums.json`` or in the header of a model, and that file itself. Empty for any other directory."""
    for name in (NAME, "model.json"):
        try:
            return {name, *dict(read_object(directory / name)["files"])}
        except DAMAGE:
            continue
    return set()


def verify(directory: Path) -> None:
    """Check that the files in a directory are those that ``seal`` saw.

    Raises
    ------
    ValueError: one has changed; begins with its name.
    OSError: one is missing, or cannot be read.
    """
    for name, expected in read_object(directory / NAME)["files"].items():
        found = checksum(directory / name)
        if found != expected:
            raise ValueError(f"{name}: its checksum is {found}; it was {expected} when the file was written")
