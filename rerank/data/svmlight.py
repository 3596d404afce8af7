"""The svmlight format: one example per line, its label, then its features as id:value.

    +1 qid:3 2:0.5 17:1 # a comment
    -1 qid:3 1:1 2:0.25
    # blank lines and comment lines are ignored

Joachims (1999); also what libsvm, liblinear and Vowpal Wabbit's converters write.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rerank.base.encoding import DECIMAL, decoded, excerpt
from rerank.base.errors import DataError
from rerank.data.corpus import MAX_COLUMNS, offsets
from rerank.data.labelled import Labelled, canonical, canonical_order

FORM = "LABEL ID:VALUE ..., with whole numbers as ids and decimal numbers as values"
_LABEL = re.compile(r"(?![+-]?(?:nan|inf|infinity)$)[^,\s:]+", re.IGNORECASE)
_ROW = re.compile(
    rb"([^\s:]++)(?!\S)(?:\s++qid:(-?[0-9]{1,18})(?!\S))?((?>(?:\s++0*[0-9]{1,15}:%s(?!\S))*))\s*" % DECIMAL
)


class Rows(NamedTuple):
    """The examples on n lines; of those that are malformed, nothing."""

    heads: list[tuple[bytes, bytes | None]]  # label and qid
    first: np.ndarray  # int64 [n + 1]: the features of line i are first[i]..first[i + 1]
    ids: np.ndarray  # float64 [nnz], rising within a line
    values: np.ndarray  # float64 [nnz]


def parse_rows(lines: Sequence[bytes], highest: int) -> tuple[Rows, dict[int, str]]:
    """Parse lines without comments and white space around them; returns what is wrong with some of them too, by index.
    Ids may be up to ``highest``."""
    heads, texts, faults = list[tuple[bytes, bytes | None]](), list[bytes](), dict[int, str]()
    for index, line in enumerate(lines):
        match = _ROW.match(line)
        if match is None or match.end() < len(line):
            faults[index] = f"found {excerpt(line[match.end() if match else 0 :].split()[0])}; expected {FORM}"
            match = None
        heads.append((match[1], match[2]) if match else (b"", None))
        texts.append(match[3] if match else b"")
    sizes = np.array([text.count(b":") for text in texts], np.int64)
    ids, values = np.array(b"".join(texts).replace(b":", b" ").split(), np.float64).reshape(-1, 2).T
    owner = np.repeat(np.arange(len(texts)), sizes)
    if ((np.diff(owner) == 0) & (np.diff(ids) <= 0)).any():
        order = np.lexsort((ids, owner))
        ids, values = ids[order], values[order]
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(values.astype(np.float32)) | (ids > highest)
    for k in np.flatnonzero(wrong).tolist():
        limits = f"ids up to {highest:,} and values of at most {np.finfo(np.float32).max:.4g}"
        faults.setdefault(int(owner[k]), f"found {ids[k]:.0f}:{values[k]:g}; expected {limits}")
    for k in np.flatnonzero((np.diff(owner) == 0) & (np.diff(ids) == 0)).tolist():
        faults.setdefault(int(owner[k]), f"found id {ids[k]:.0f} twice; expected every id once in an example")
    sound = ~np.isin(owner, list(faults))
    return Rows(heads, offsets(np.bincount(owner[sound], minlength=len(texts))), ids[sound], values[sound]), faults


def parse_examples(chunks: Iterable[tuple[int, Sequence[bytes]]], path: str) -> Labelled:
    """The examples on the lines of a file, some at a time with the number of the first. The id of the first column is 0
    if that is used.

    Raises
    ------
    DataError: no example, or a malformed line; says path and line.
    """
    classes, class_of = dict[str, int](), dict[bytes, int]()
    labels, groups, parts = list[int](), list[int](), list[tuple[np.ndarray, ...]]()
    for first, lines in chunks:
        bare = enumerate((line.partition(b"#")[0].strip() for line in lines), first)
        texts = {number: line for number, line in bare if line}
        rows, faults = parse_rows(list(texts.values()), MAX_COLUMNS - 1)
        for index, (label, group) in enumerate(rows.heads):
            if label not in class_of:
                name = canonical(decoded(label))
                if not (_LABEL.fullmatch(name) and name.isprintable()):
                    message = f"found label {excerpt(label)}; expected a finite number or a word without commas"
                    faults.setdefault(index, message)
                class_of[label] = classes.setdefault(name, len(classes))
            if labels and bool(groups) != (group is not None):
                faults.setdefault(index, "found an example with a qid beside one without; expected all or none")
            labels.append(class_of[label])
            groups += [] if group is None else [int(group)]
        if faults:
            index = min(faults)
            raise DataError(faults[index], path=path, line=list(texts)[index])
        parts.append((np.diff(rows.first), rows.ids.astype(np.int32), rows.values.astype(np.float32)))
    if not labels:
        raise DataError(f"no examples; expected lines {FORM}", path=path)
    sizes, columns, values = map(np.concatenate, zip(*parts, strict=True))
    columns -= np.int32(columns.min(initial=1) > 0)
    names = canonical_order(classes)
    label_of = {name: label for label, name in enumerate(names)}
    order = np.array([label_of[name] for name in classes], np.int64)
    return Labelled(
        rows=offsets(sizes), columns=columns, values=values, label=order[labels], classes=names,
        group=np.array(groups, np.int64), weight=np.ones(len(labels)), width=int(columns.max(initial=-1)) + 1,
    )  # fmt: skip
