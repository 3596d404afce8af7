"""Word lattices: HTK's Standard Lattice Format, and the text of OpenFst and Kaldi.

A file holds one lattice or several: in SLF each begins with its header (``UTTERANCE=``, ``VERSION=``), in the text of
OpenFst a blank line ends each, and a line of one word before its arcs is the id, as ``lattice-copy ark:- ark,t:-``
writes it. The scores of arcs are natural log probabilities, higher is better: the costs of OpenFst are negated, SLF's
are converted from its ``base``. The column ``words`` counts words.

| form | columns |
|---|---|
| SLF | ``am`` (``a=``), ``lm`` (``l=``), ``ngram`` (``n=``), as far as links have them, else 0; ``words`` |
| OpenFst | ``score``; ``words`` |
| Kaldi, weights ``graph,acoustic`` | ``lm`` (all of the graph), ``am``; ``words`` |

References: The HTK Book, chapter "Standard Lattice Format"; https://www.openfst.org (``fstprint``);
https://kaldi-asr.org/doc/lattices.html.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.readers.lines import LineReader
from rerank.readers.problems import Problem, SkippedList
from rerank.readers.streams import PathLike, open_stream

WORDS = "words"
NO_WORDS = frozenset({"", "!NULL", "<eps>", "<epsilon>", "<s>", "</s>", "!SENT_START", "!SENT_END", "#0"})
FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)')
WEIGHT = re.compile(r"[-+.\deE]+(,.*)?|Infinity")  # of an acceptor's arc, which has four fields as one without has
LONG = {"START": "S", "END": "E", "WORD": "W", "acoustic": "a", "language": "l", "ngram": "n"}
SCORES = {"a": "am", "l": "lm", "n": "ngram"}


class Arc(NamedTuple):
    """An arc as a file has it."""

    tail: str
    head: str
    word: str  # empty: none
    scores: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class WordLattice:
    """A lattice whose nodes 0 … N − 1 are in topological order, from the start, 0, to the end, N − 1.

    | field  | type            | meaning |
    |--------|-----------------|---------|
    | names  | K texts         | the columns of scores, ``words`` the last |
    | nodes  | int             | N |
    | tail   | int64 [E]       | where arcs begin, in ascending order |
    | head   | int64 [E]       | where they end, > tail |
    | words  | list of E texts | their words, empty for none |
    | scores | float64 [E, K]  | log probabilities, and whether there is a word |
    """

    id: str
    path: str
    line: int
    names: tuple[str, ...]
    nodes: int
    tail: np.ndarray
    head: np.ndarray
    words: list[str]
    scores: np.ndarray


def read_lattices(path: PathLike, symbols: Mapping[str, str] | None = None) -> Iterator[WordLattice | SkippedList]:
    """The lattices of a file, or of every file in a directory by name; those that cannot be used in their places.

    symbols: words by their numbers, as a table of OpenFst has them.
    """
    if os.path.isdir(path):
        for name in sorted(os.listdir(path)):
            yield from read_lattices(os.path.join(path, name), symbols)
        return
    with open_stream(path) as stream:
        lines = LineReader(stream)
        for ordinal, (first, rows) in enumerate(_blocks(lines)):
            stem = re.split(r"\.(?=[A-Za-z])", os.path.basename(lines.path))[0] if os.path.isfile(path) else ""
            name = stem if stem and not ordinal else f"{stem}-{ordinal + 1}" if stem else str(ordinal)
            slf, at = "=" in rows[0].split("#")[0], first
            if not slf and len(rows[0].split()) == 1 and len(rows) > 1 and len(rows[1].split()) > 2:
                name, rows, at = rows[0].strip(), rows[1:], first + 1
            try:
                name, parsed = _slf(rows, at, name) if slf else (name, _openfst(rows, at, symbols))
                yield _ordered(name, lines.path, first, *parsed)
            except Problem as problem:
                yield SkippedList.of(problem, name, lines.path, first)


def read_symbols(path: PathLike) -> dict[str, str]:
    """The words of a symbol table by their numbers: lines of a word and its number."""
    with open_stream(path) as stream:
        table = dict[str, str]()
        for number, line in LineReader(stream):
            fields = decoded(line).split()
            if fields and (len(fields) != 2 or not fields[1].isdigit()):
                raise DataError(f"found {line[:40]!r}; expected a word and its number", path=stream.path, line=number)
            table |= {fields[1]: fields[0]} if fields else {}
    return table


def _blocks(lines: LineReader) -> Iterator[tuple[int, list[str]]]:
    """The lines of each lattice, and the number of the first: up to a blank one in OpenFst's text, the next header in
    SLF, in which blank lines and comments count for nothing."""
    first, rows, slf, arcs = 0, list[str](), False, False
    for number, line in lines:
        row = decoded(line)
        begins = slf and arcs and row.startswith(("VERSION=", "V=", "UTTERANCE=", "U="))
        if rows and (begins or (not slf and not row.strip())):
            yield first, rows
            rows, arcs = [], False
        if not rows and (not row.strip() or row.startswith("#")):
            continue
        if not rows:
            first, slf = number, "=" in row and not row[0].isdigit()
        arcs = arcs or row.startswith("J=")
        rows.append(row)
    if rows:
        yield first, rows


Parsed = tuple[tuple[str, ...], list[Arc], str | None, dict[str, tuple[float, ...]]]  # columns, arcs, start, ends


def _slf(rows: Iterable[str], line: int, name: str) -> tuple[str, Parsed]:
    """The id and the arcs of a lattice of HTK's."""
    header, nodes, links = dict[str, str](), dict[str, dict[str, str]](), list[tuple[int, dict[str, str]]]()
    into = header
    for number, row in enumerate(rows, start=line):
        for key, value in FIELD.findall("" if row.startswith("#") else row):
            if key == "SUBLAT":
                raise Problem("lattice", "found a sub-lattice; expected the words themselves: expand it", number)
            if key == "I":
                into = nodes.setdefault(value, {})
            elif key == "J":
                into = {}
                links.append((number, into))
            into[LONG.get(key, key)] = value.strip('"') if into is not header else value
    if (size := header.get("L", header.get("LINKS", str(len(links))))) != str(len(links)):
        raise Problem("lattice", f"found {len(links)} links; expected {size}, as the header says: the file may be cut")
    base = _number(header.get("base", "2.718281828459045"), line)
    keys = [key for key in SCORES if any(key in link for _, link in links)]
    said = "S" if header.get("dir", "f").startswith("b") else "E"  # which of its nodes has the word of a link
    arcs = list[Arc]()
    for number, link in links:
        if "S" not in link or "E" not in link:
            raise Problem("lattice", "found a link without its nodes; expected S= and E=", number)
        word = link.get("W", nodes.get(link[said], {}).get("W", ""))
        scores = tuple(_log(_number(link[key], number, f"{key}="), base) if key in link else 0.0 for key in keys)
        arcs.append(Arc(link["S"], link["E"], "" if word in NO_WORDS else word, scores))
    names = tuple(SCORES[key] for key in keys)
    ends = {header["end"]: (0.0,) * len(keys)} if "end" in header else {}
    return header.get("UTTERANCE", header.get("U", name)), (names, arcs, header.get("start"), ends)


def _log(score: float, base: float) -> float:
    """A natural log probability, from one to another base or, with the base 0, from a probability."""
    return score * math.log(base) if base > 0 else math.log(score) if score > 0 else -math.inf


def _openfst(rows: list[str], line: int, symbols: Mapping[str, str] | None) -> Parsed:
    """The arcs of a lattice in OpenFst's text, acceptor or transducer, of which the output counts."""
    arcs, ends, start = list[Arc](), dict[str, tuple[float, ...]](), rows[0].split()[0]
    split = [row.split() for row in rows]
    kaldi, most = any("," in fields[-1] for fields in split), max(map(len, split))
    weighed = all(WEIGHT.fullmatch(fields[3]) for fields in split if len(fields) == 4)
    for number, (fields, row) in enumerate(zip(split, rows, strict=True), start=line):
        states = 1 if len(fields) < 3 else 2
        labels = 0 if states == 1 else 1 if most < 5 and weighed else 2
        given = fields[states + labels :]
        if len(given) > 1 or len(fields) < states + labels:
            raise Problem("lattice", f"found {row!r}; expected 'from to word weight', or 'state weight'", number)
        parts = given[0].split(",")[:2] if given else []
        if parts and len(parts) != 1 + kaldi:
            raise Problem("lattice", f"found the weight {given[0]!r}; expected {1 + kaldi} numbers in each", number)
        scores = tuple(0.0 - _number(part, number) for part in parts) or (0.0,) * (1 + kaldi)
        if states == 1:
            ends[fields[0]] = scores
            continue
        word = fields[1 + labels]
        if symbols is not None and word not in symbols:
            raise Problem("lattice", f"found the word {word!r}; expected a number of the table of symbols", number)
        word = word if symbols is None else symbols[word]
        none = word in NO_WORDS or (symbols is None and word == "0")
        arcs.append(Arc(fields[0], fields[1], "" if none else word, scores))
    if not ends:
        raise Problem("lattice", "found no line of an end, 'state weight'; expected at least one: the file may be cut")
    return ("lm", "am") if kaldi else ("score",), arcs, start, ends


def _number(text: str, line: int, what: str = "") -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise Problem("lattice", f"found {what}{text or 'nothing'}; expected a number", line)
    return value


def _ordered(
    name: str, path: str, line: int, columns: tuple[str, ...], arcs: list[Arc], start: str | None,
    ends: Mapping[str, tuple[float, ...]],
) -> WordLattice:  # fmt: skip
    """The lattice with its nodes in order, without those through which no path goes. Raises Problem."""
    heads, tails = {arc.head for arc in arcs}, {arc.tail for arc in arcs}
    if start is None:
        starts = sorted(tails - heads)
        if len(starts) != 1:
            raise Problem("lattice", f"found {len(starts)} nodes that no arc leads to; expected one, the start")
        start = starts[0]
    ends = ends or dict.fromkeys(heads - tails, (0.0,) * len(columns))
    end = ""  # no state is called so
    arcs += [Arc(state, end, "", scores) for state, scores in ends.items()]
    arcs = [arc for arc in arcs if all(map(math.isfinite, arc.scores))]
    useful = _reached(start, [(arc.tail, arc.head) for arc in arcs]) & _reached(
        end, [(arc.head, arc.tail) for arc in arcs]
    )
    arcs = [arc for arc in arcs if arc.tail in useful and arc.head in useful]
    if not arcs:
        raise Problem("lattice", f"found no path from {start!r} to an end; expected at least one")
    sorter = TopologicalSorter[str]()
    for arc in arcs:
        sorter.add(arc.head, arc.tail)
    try:
        place = {node: number for number, node in enumerate(sorter.static_order())}
    except CycleError as error:
        message = f"found a cycle through the nodes {', '.join(error.args[1][:5])}; expected a lattice without any"
        raise Problem("lattice", message) from None
    arcs.sort(key=lambda arc: place[arc.tail])
    words = [arc.word for arc in arcs]
    scores = np.array([(*arc.scores, float(arc.word != "")) for arc in arcs])
    tail, head = (np.array([place[getattr(arc, key)] for arc in arcs], np.int64) for key in ("tail", "head"))
    return WordLattice(name, path, line, (*columns, WORDS), len(place), tail, head, words, scores)


def _reached(first: str, pairs: list[tuple[str, str]]) -> set[str]:
    """The nodes to which a way leads from ``first``."""
    after = dict[str, list[str]]()
    for tail, head in pairs:
        after.setdefault(tail, []).append(head)
    seen, waiting = {first}, [first]
    while waiting:
        new = set(after.get(waiting.pop(), ())) - seen
        seen |= new
        waiting += new
    return seen
