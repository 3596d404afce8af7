"""What a file of lists is when its reader makes nothing of it: the readers themselves tell whose it is."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Protocol

from rerank.base.errors import DataError, RerankError
from rerank.readers.faults import BadList
from rerank.readers.nbest import NBestList
from rerank.readers.streams import InputStream, PathLike, held, open_file

START, MOST = 1 << 20, 1000  # the bytes of a file, and the lists in them, that are looked at
MOSTLY = 0.5  # a reader reads a file if it can use a larger share of these lists

# What programs write that is no list, by how it starts, and what to do instead.
_JOSHUA = "let Joshua write lists with -top-n 100 -output-format '%i ||| %s ||| %f ||| %c'"
_NO_LISTS = (
    (
        rb"\d+ \|\|\| \(ROOT \(\[\d",
        f"this looks like Joshua's parses, one for each input and without a score: {_JOSHUA}",
    ),
    (
        rb"\d+ \|\|\| [^\t\n]*\t\d+ \|\|\| ",
        f"this looks like what several clients of Joshua's server got, side by side and without scores: {_JOSHUA}",
    ),
    (
        rb"\d+ ?\|\|\| (?!.*\|\|\|).*\S",
        f"this looks like one translation for each input, without scores, as from Joshua's '%i ||| %s': {_JOSHUA}",
    ),
)


class Reads(Protocol):
    """What is asked of a reader; see ``Reader``."""

    @property
    def within(self) -> tuple[Reads, ...]: ...
    @property
    def files(self) -> int | None: ...
    def read(self, path: PathLike) -> Iterator[NBestList | BadList]: ...


def advice_on(reader: Reads, others: Iterable[tuple[str, type[Reads]]], path: str) -> str:
    """What to do about a file of which ``reader`` cannot use the first list; empty if nobody can tell.

    others: the readers to try, by name. A file that cannot be read twice, such as standard input, is not looked into.
    """
    start, leaves = _start(path) if os.path.isfile(path) else None, list(_leaves(reader))
    if start is None or any(_share(leaf, path, start) > MOSTLY for leaf in leaves):
        return ""
    shares = {name: (_share(other, path, start), type(other)) for name, other in _made(others)}
    best = max((share for share, _ in shares.values()), default=0.0)
    kinds = {name: kind for name, (share, kind) in shares.items() if share == best > MOSTLY}
    if any(type(leaf) in kinds.values() for leaf in leaves):  # what its options ask for is not there
        return ""
    for name, kind in kinds.items():
        # A format that takes all files of another, and more, is not the one that is meant.
        if not issubclass(kind, tuple({*kinds.values()} - {kind})):
            how = f"--reader {name} (in a recipe: data.reader: {{name: {name}}})"
            return f"this looks like {name}: use {how if reader.files == 1 else f'the option of: {name}'}"
    return next((what for form, what in _NO_LISTS if re.match(form, start)), "")


def _made(kinds: Iterable[tuple[str, type[Reads]]]) -> Iterator[tuple[str, Reads]]:
    """Readers of single files, where they need no options: those that take any text do."""
    for name, kind in kinds:
        try:
            reader = kind()
        except (TypeError, RerankError):
            continue
        if reader.files == 1:
            yield name, reader


def _leaves(reader: Reads) -> Iterator[Reads]:
    """The readers of single files in ``reader``."""
    for inner in reader.within:
        yield from _leaves(inner)
    if not reader.within:
        yield reader


def _start(path: str) -> bytes | None:
    """The start of a file, decompressed; None if it cannot be read."""
    try:
        with open_file(path, InputStream) as stream:
            start = b""
            while len(start) < START and (piece := stream.read(START - len(start))):
                start += piece
    except DataError:
        return None
    return start


def _share(reader: Reads, path: str, start: bytes) -> float:
    """The share of lists that ``reader`` can use whole, of those that it sees in the start of a file; 0 if none."""
    usable = list[bool]()
    token = held.set(lambda name: InputStream(io.BytesIO(start), name))
    try:
        for nbest in islice(reader.read(path), MOST):
            if isinstance(nbest, BadList) or nbest.size:
                usable.append(not isinstance(nbest, BadList) and not nbest.bad)
    except RerankError:
        return 0.0
    finally:
        held.reset(token)
    if len(start) == START and len(usable) > 1:
        usable.pop()  # the last one was cut
    return sum(usable) / len(usable) if usable else 0.0
