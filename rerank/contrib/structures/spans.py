"""The spans that labels mark.

A label is O, outside of all spans, or a prefix, a hyphen and a type: B begins a span, I goes on, E ends one, S is one
alone (L and U are E and S, M is I). A span begins where IOB1, IOB2 or BIOES say so, or another type than before goes
on, as in conlleval (Tjong Kim Sang & Buchholz 2000, https://www.clips.uantwerpen.be/conll2000/chunking/output.html).
"""

import re
from collections.abc import Iterable
from functools import cache

from rerank.base.errors import DataError

Span = tuple[int, int, str]  # first token, last + 1, type
PREFIXES = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S", "M": "I", "O": "O"}
_OTHER = re.compile("(?i)([BIESLUM])[-_:/|](.+)|(.+)[-_:/|]([BIESLUM])")


@cache
def parts_of(label: str) -> tuple[str, str]:
    """A label's part in a span, one of B, I, E, S and O, and the type of the span.

    Raises
    ------
    DataError: a label that does not speak of spans.
    """
    prefix, _, kind = label.partition("-")
    if prefix not in PREFIXES or (prefix == "O" and kind):
        form = span_form(label)
        advice = "" if form == label else f"; write {form} for it"
        raise DataError(f"found the label {label!r}; spans have labels such as O, B-NP and I-NP{advice}")
    return PREFIXES[prefix], kind


def spans_of(labels: Iterable[str]) -> list[Span]:
    """The spans of a sentence, in their order.

    >>> spans_of(["B-NP", "I-NP", "B-NP", "O", "I-VP", "I-NP"])
    [(0, 2, 'NP'), (2, 3, 'NP'), (4, 5, 'VP'), (5, 6, 'NP')]
    """
    spans, first, before, kind_before, place = list[Span](), 0, "O", "", -1
    for place, label in enumerate(labels):
        part, kind = parts_of(label)
        goes_on = before in "BI" and part in "IE" and kind == kind_before
        if before != "O" and not goes_on:
            spans.append((first, place, kind_before))
        if part != "O" and not goes_on:
            first = place
        before, kind_before = part, kind
    return [*spans, (first, place + 1, kind_before)] if before != "O" else spans


def span_form(label: str) -> str:
    """The label that one means where it is written in other ways; others stay.

    >>> span_form("B_PER"), span_form("b-per"), span_form("PER-B"), span_form("o"), span_form("NN")
    ('B-PER', 'B-per', 'B-PER', 'O', 'NN')
    """
    if found := _OTHER.fullmatch(label):
        return f"{(found[1] or found[4]).upper()}-{found[2] or found[3]}"
    return "O" if label == "o" else label


def has_spans(labels: Iterable[str]) -> bool:
    """Whether all labels speak of spans, and one does so with a type."""
    labels = list(labels)
    prefixes = {label.partition("-")[0] for label in labels}
    return prefixes <= PREFIXES.keys() and any("-" in label for label in labels)
