"""Checks of what lists were taken for. While one fails, nothing is claimed of them; naming the role in question, as
``--roles reference=reference``, lifts it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from rerank.base.encoding import decoded
from rerank.metrics.base import Metric
from rerank.metrics.gain import Gain
from rerank.metrics.text import Form, normalized
from rerank.readers.nbest import NBestList
from rerank.readers.texts.text_list import TextList
from rerank.runs.doubts import NORMAL, UNSPACED, joined

SAMPLE = 500  # lists that are looked at
LACKING = 0.05  # the share of tokens that no candidate has, at the least, that says something
NEARLY = 0.9  # of lists
UNSUITED = "which words do not measure"
REFERENCE = "reference"
_CODE = re.compile(r"^\s*(select\b.*\bfrom\b|(def|class|import) \w)|[;{]\s*$|^\s*(public|static|return|#include)\b",
                   re.IGNORECASE | re.MULTILINE)  # fmt: skip
# Molecules: atoms, rings and branches; a letter before a bond, a ring or a branch tells them from words and numbers.
_ATOMS = re.compile(r"(?:\[[^\]\s]+\]|Br|Cl|[BCNOPSFIHbcnops]|[-=#$:/\\().~>+*]|%\d\d|\d)+")
_BOND = re.compile(r"[A-Za-z\])][\d=#(]")
_GRAPH = re.compile(r"^\s*\(\s*\S+\s*(/|\(|:\w)|:ARG\d")

# Changes of references or of both sides, with what it means that one of them makes up for most of what is lacking.
_BOTH: Mapping[str, Callable[[str], str]] = {
    **{what: partial(normalized, forms=forms) for what, forms in NORMAL if "blanks" not in forms},
    "with word pieces joined": joined,
}
_ENDS: Mapping[str, slice] = {
    "without the first token of each reference (an id?)": slice(1, None),
    "without the last token of each reference (an id, or the name of a database?)": slice(-1),
}


def doubts_of_lists(
    lists: Iterable[NBestList], metric: Metric | None = None, roles: Mapping[str, str] | None = None
) -> list[str]:
    """A sentence for every check that the first lists fail: numbers that are not used, references that are written in
    another way, or that a metric of words does not suit.

    metric: what is measured, where that is known. roles: those that the user has named.
    """
    few = [nbest for nbest, _ in zip(lists, range(SAMPLE), strict=False) if isinstance(nbest, TextList) and len(nbest)]
    found = [_unused(few[0])] if few else []
    if REFERENCE not in (roles or {}).values() and not isinstance(metric, Gain):
        sides = [([*map(decoded, nbest.texts)], decoded(nbest.references[0])) for nbest in few if nbest.references]
        found += doubts_of_references(sides, metric)
    return [line for line in found if line]


def doubts_of_references(sides: Sequence[tuple[list[str], str]], metric: Metric | None = None) -> list[str]:
    """``doubts_of_lists`` on references alone, each beside the texts that are compared with it."""
    words = metric is None or metric.name not in ("cer", "match")
    forms: dict[Form, bool] = {"case": getattr(metric, "lowercase", False), **getattr(metric, "normalize", {})}
    if any(forms.values()):
        sides = [([normalized(text, forms) for text in texts], normalized(right, forms)) for texts, right in sides]
    found = [_written(sides), _unsuited([right for _, right in sides]) if words else ""]
    return [line for line in found if line]


def _unused(nbest: TextList) -> str:
    if nbest.roles is None or not nbest.roles.doubtful:
        return ""
    shown = "; ".join(f"{key!r} ({nbest.roles.unused[key]})" for key in nbest.roles.doubtful)
    advice = f"Say what they are: --roles {nbest.roles.doubtful[0]}=column, or unused."
    return f"Numbers that differ within lists are not used: {shown}. {advice}"


def _written(sides: Sequence[tuple[list[str], str]]) -> str:
    """What makes up for at least half of the tokens of references that no candidate has."""
    lacking = _lacking([(texts, right.split()) for texts, right in sides])
    if lacking < LACKING:
        return ""
    tried = dict[str, float]()
    for what, change in _BOTH.items():
        tried[what] = _lacking([([*map(change, texts)], change(right).split()) for texts, right in sides])
    more = [len(right.split()) - sum(len(text.split()) for text in texts) / len(texts) for texts, right in sides]
    if sum(more) > len(more) / 2:  # an id is a token that candidates do not have
        for what, part in _ENDS.items():
            tried[what] = _lacking([(texts, right.split()[part]) for texts, right in sides])
    best = min(tried, key=lambda what: tried[what])
    if tried[best] > lacking / 2:
        return ""
    before, after = (f"{100 * share:.0f} %" for share in (lacking, tried[best]))
    lacks = f"No candidate has {before} of the references' tokens, {best} {after}"
    return f"{lacks}: write both in one way, or say that they are as they should be: --roles reference={REFERENCE}."


def _lacking(sides: Sequence[tuple[list[str], list[str]]]) -> float:
    """The share of the tokens of references that no candidate of their list has."""
    missing, every = 0, 0
    for texts, right in sides:
        had = {token for text in texts for token in text.split()}
        missing += sum(token not in had for token in right)
        every += len(right)
    return missing / every if every else 0.0


def _unsuited(references: Sequence[str]) -> str:
    """Why a metric of words does not suit references."""
    if not references:
        return ""
    bonds = sum(_BOND.search(text.replace(" ", "")) is not None for text in references)
    kinds = {
        "are code": lambda text: _CODE.search(text) is not None,
        "are graphs in brackets": lambda text: _GRAPH.search(text) is not None,
        "are chemical strings (SMILES)": lambda text: bonds > 0 and _ATOMS.fullmatch(text.replace(" ", "")) is not None,
        "have one token each": lambda text: len(text.split()) == 1 and not UNSPACED.search(text),
    }
    what = next((what for what, is_so in kinds.items() if sum(map(is_so, references)) > NEARLY * len(references)), "")
    if not what:
        return ""
    advice = "measure what is right as a whole (--metric match), a gain of each candidate (gain), or cer"
    return f"The references {what}, {UNSUITED}; {advice}; or say --roles reference={REFERENCE}."
