"""Files of words that templates look up: clusters, and gazetteers with entries of several words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.readers.lines import LineReader
from rerank.readers.streams import PathLike, open_stream

NAMELESS = "in"  # the kind of entries whose gazetteer has but one


@dataclass(frozen=True)
class Gazetteer:
    """Names of one or several words (joined by blanks) with their kinds."""

    kinds: Mapping[str, str]
    longest: int = field(init=False)
    first: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "longest", max((entry.count(" ") + 1 for entry in self.kinds), default=0))
        object.__setattr__(self, "first", frozenset(entry.partition(" ")[0] for entry in self.kinds))

    def values(self, words: Sequence[str]) -> list[str | None]:
        """For every word ``B-KIND`` at the start of an entry, ``I-KIND`` within, else None; the longest from the left.

        >>> Gazetteer({"New York": "city"}).values(["in", "New", "York"])
        [None, 'B-city', 'I-city']
        """
        found: list[str | None] = [None] * len(words)
        i = 0
        while i < len(words):
            sizes = range(min(self.longest, len(words) - i), 0, -1) if words[i] in self.first else ()
            size = next((size for size in sizes if " ".join(words[i : i + size]) in self.kinds), 0)
            if size:
                kind = self.kinds[" ".join(words[i : i + size])]
                found[i : i + size] = [f"B-{kind}", *[f"I-{kind}"] * (size - 1)]
            i += size or 1
        return found


def read_gazetteer(path: PathLike) -> Gazetteer:
    """A file with an entry per line, or an entry, a tab and its kind."""
    kinds = dict[str, str]()
    for number, fields in _rows(path):
        if len(fields) > 2 or not fields[0].split():
            raise DataError("expected an entry, or an entry, a tab and its kind", path=str(path), line=number)
        kinds[" ".join(fields[0].split())] = fields[1] if len(fields) == 2 else NAMELESS
    return Gazetteer(kinds)


def read_clusters(path: PathLike) -> dict[str, str]:
    """A file with a word, a tab and its cluster per line; or, as Brown clusters have it, bits, a word and its count."""
    clusters = dict[str, str]()
    for number, fields in _rows(path):
        if len(fields) not in (2, 3):
            raise DataError("expected a word, a tab and its cluster", path=str(path), line=number)
        word, cluster = (fields[1], fields[0]) if len(fields) == 3 else fields
        clusters[word] = cluster
    return clusters


def _rows(path: PathLike) -> Iterator[tuple[int, list[str]]]:
    with open_stream(path) as stream:
        for number, line in LineReader(stream):
            if line.strip():
                yield number, decoded(line).split("\t")
