"""Texts whose words have labels behind a slash, as arrays."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rerank.base.encoding import decoded
from rerank.contrib.structures.slash import parted
from rerank.contrib.structures.spans import has_spans, spans_of


class LabelArrays(NamedTuple):
    """Of N texts with W words and S spans; empty where words have no labels. Words, labels and types are hashes."""

    forms: np.ndarray  # uint64 [W]: words without labels
    labels: np.ndarray  # uint64 [W]
    span_first: np.ndarray  # int64 [N + 1]: spans of text y are span_first[y]..span_first[y + 1]
    spans: np.ndarray  # int64 [S, 2]: first word and last + 1, counted over all texts
    types: np.ndarray  # uint64 [S]


def is_labelled(texts: Sequence[bytes]) -> bool:
    """Whether all words of the first text have a label."""
    words = texts[0].split() if texts else []
    return bool(words) and all(0 < word.rfind(b"/") < len(word) - 1 for word in words)


def label_arrays(texts: Sequence[bytes], hash_of: Callable[[str], int]) -> LabelArrays:
    """The arrays of texts; a word without a slash has the label that it is."""
    known = dict[str, tuple[int, int]]()
    forms, labels, counts, spans, types = list[int](), list[int](), [0], list[tuple[int, int]](), list[int]()
    if is_labelled(texts):
        for text in texts:
            first, names = len(forms), list[str]()
            for word in decoded(text).split():
                form, label = parted(word)
                if word not in known:
                    known[word] = hash_of(form), hash_of(label)
                names.append(label)
                forms.append(known[word][0])
                labels.append(known[word][1])
            for begin, end, kind in spans_of(names) if has_spans(names) else ():
                spans.append((first + begin, first + end))
                types.append(hash_of(kind))
            counts.append(len(spans))
    else:
        counts *= len(texts) + 1
    whole = np.array(spans, np.int64).reshape(-1, 2)
    found = np.array(forms, np.uint64), np.array(labels, np.uint64), np.array(counts, np.int64)
    return LabelArrays(*found, whole, np.array(types, np.uint64))
