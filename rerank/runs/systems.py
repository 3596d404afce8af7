"""Which files hold lists of the same inputs: those of several systems, which are fused, and not splits of data."""

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise, zip_longest

from rerank.readers.base import NBestList, Reader, SkippedList, lists_of
from rerank.readers.lines import whole_number
from rerank.readers.several import format_of
from rerank.readers.texts.text_pairs import lists_of_texts

LOOK = 1000  # lists, the first
Inputs = tuple[set[str], set[bytes]]  # the ids that are more than places, and the sources


def inputs_of(reader: Reader, lists: Iterable[NBestList | SkippedList]) -> Inputs:
    """The inputs of the first of ``lists``, which ``reader`` reads. Whole numbers that rise one by one, or count the
    inputs of a file, are places; keys of runs never are."""
    good = [nbest for nbest in islice(lists, LOOK) if isinstance(nbest, NBestList)]
    numbers = [whole_number(nbest.id) for nbest in good]
    rising = all(b is not None and a is not None and b == a + 1 for a, b in pairwise(numbers)) and numbers[:1] != [None]
    placed = (rising or reader.order == "file") and getattr(format_of(reader), "form", "") != "trec"
    sources = {source for nbest in good if (source := getattr(nbest, "source", None))}
    return set() if placed else {nbest.id for nbest in good}, sources


def shared(one: Inputs, other: Inputs) -> str:
    """What two files have in common: at least half of the "ids", or the "sources", of either; empty if nothing."""
    sizes = {
        what: (len(one[k] & other[k]), max(len(one[k]), len(other[k]))) for k, what in enumerate(("ids", "sources"))
    }
    return next((what for what, (both, most) in sizes.items() if most > 1 and 2 * both >= most), "")


def systems(reader: Reader, files: Sequence[str], sources: Sequence[str]) -> tuple[list[list[str]], str]:
    """The files, those of the same inputs together, and what these have in common; sources: of each."""
    groups, what = list[tuple[Inputs, list[str]]](), ""
    for path, beside in zip_longest(files, sources[: len(files)]):
        texts = reader.holds != "trees"
        found = inputs_of(reader, lists_of_texts(reader, path, sources=beside) if texts else lists_of(reader, path))
        alike = ((group, same) for known, group in groups if (same := shared(known, found)))
        group, same = next(alike, ([], ""))
        groups += [] if same else [(found, group)]
        group.append(path)
        what = same or what
    return [group for _, group in groups], what
