"""Checks of what lists were taken for, and which lists are of the same inputs.

While a check fails, nothing is claimed of lists; naming the role in question, as ``--roles reference=reference``, lifts
it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError
from rerank.metrics.metric import Metric
from rerank.metrics.text import Form, NormalizingMetric, apply_forms
from rerank.readers.lines import whole_number
from rerank.readers.lists import GAIN, Lists, one_by_one
from rerank.readers.reader import Reader
from rerank.storage.streams import read_once

if TYPE_CHECKING:
    from rerank.readers.memory.reading import ListFile

SAMPLE_LISTS, SAMPLE_CANDIDATES = 1000, 10_000  # lists, the first, and their candidates that are looked at
MIN_LACKING_SHARE = 0.05  # the share of tokens that no candidate has, at the least, that says something
MIN_SHARE = 0.9  # of lists
MIN_GAIN_LISTS = 20  # lists of which a column tells all gains, at the least, where it is the gain again
UNSUITED = "which words do not measure"
LACKING_TOKENS = "of the references' tokens,"  # what the check says that references are written as candidates are
REFERENCE = "reference"
UNSPACED_LETTERS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff]")  # of scripts without blanks
_CODE = re.compile(r"^\s*(select\b.*\bfrom\b|(def|class|import) \w)|[;{]\s*$|^\s*(public|static|return|#include)\b",
                   re.IGNORECASE | re.MULTILINE)  # fmt: skip
# Molecules: atoms, rings and branches; a letter before a bond, a ring or a branch tells them from words and numbers.
_ATOMS = re.compile(r"(?:\[[^\]\s]+\]|Br|Cl|[BCNOPSFIHbcnops]|[-=#$:/\\().~>+*]|%\d\d|\d)+")
_BOND = re.compile(r"[A-Za-z\])][\d=#(]")
_GRAPH = re.compile(r"^\s*\(\s*\S+\s*(/|\(|:\w)|:ARG\d")

Sides = Sequence[tuple[list[str], str]]  # the candidates, the base's choice first, and the reference of each list
Way = tuple[str, Callable[[str], str], str]  # of writing both sides: its name, what it does, and what to do about it
Inputs = dict[str, list[str]]  # the ids that are more than places, and the sources
NORMAL: tuple[tuple[str, dict[Form, bool]], ...] = (
    ("without capitals", {"case": True}),
    ("without punctuation marks", {"marks": True}),
    ("without capitals and punctuation marks", {"case": True, "marks": True}),
    ("in Unicode's form NFKC", {"nfkc": True}),
)
_TRIMMINGS: Mapping[str, slice] = {  # parts of references that may be no words of theirs
    "without the first token of each reference (an id?)": slice(1, None),
    "without the last token of each reference (an id, or the name of a database?)": slice(-1),
}


def join_pieces(text: str) -> str:
    """A text whose words are in pieces (``@@``, ``##``, ``▁``), with these joined."""
    text = "".join(text.split()).replace("▁", " ") if "▁" in text else text
    return re.sub(r"@@( |$)| ##|</s>", "", text)


def _ways(metric: Metric | None, *, unspaced: bool) -> Iterator[Way]:
    """The ways to write both sides that may make up for what is lacking."""
    for what, forms in NORMAL:
        how = "write both in one way"
        if isinstance(metric, NormalizingMetric):
            settings = ", ".join(f"{form}: true" for form, yes in {**metric.normalize, **forms}.items() if yes)
            how = f"set the metric's normalize (--metric '{{name: {metric.name}, normalize: {{{settings}}}}}')"
        elif metric is not None and hasattr(metric, "lowercase") and "case" in forms:
            how = f"set the metric's lowercase: true (--metric '{{name: {metric.name}, lowercase: true}}')"
            how += "; bring lists and references to this form" * (len(forms) > 1)
        yield what, partial(apply_forms, forms=forms), how
    yield "with word pieces joined", join_pieces, "join them in the lists, or let the decoder write words"
    if unspaced and metric is not None and metric.name in ("wer", "bleu"):
        how = "no blanks tell words apart: set metric: cer"
        yield "by characters", lambda text: " ".join("".join(text.split())), how


def mixed_answers(lists: Iterable[Lists]) -> tuple[int, int]:
    """The number of lists in which candidates with one answer have several gains (a column), and of all with both."""
    conflicts = every = 0
    for nbest in lists:
        if nbest.answers is not None and GAIN in nbest.names:
            gains = nbest.scores[:, nbest.names.index(GAIN)].tolist()
            pairs = {pair for pair in zip(nbest.answers, gains, strict=True) if pair[0]}
            conflicts += len(pairs) > len({answer for answer, _ in pairs})
            every += 1
    return conflicts, every


def doubts_of_lists(
    lists: Iterable[Lists], metric: Metric | None = None, roles: Mapping[str, str] | None = None
) -> list[str]:
    """A sentence for every check that the first lists fail: numbers that are not used, references that are written in
    another way, or that a metric of words does not suit.

    metric: what is measured; by default gains, where the lists have some. roles: those that the user has named.
    """
    few, size = list[Lists](), 0
    for nbest in islice(lists, SAMPLE_LISTS // 2):
        if not nbest.of_trees and len(nbest) and size < SAMPLE_CANDIDATES:
            few.append(nbest)
            size += len(nbest)
    doubts = list[str]()
    if few and (roles_found := few[0].roles) is not None and (names := roles_found.doubtful):
        listing = "; ".join(f"{name!r} ({roles_found.unused_keys.get(name, 'numbers in objects')})" for name in names)
        advice = f"Say what they are: --roles {names[0]}=column, gain or unused."
        doubts.append(f"Numbers that differ within lists are not used: {listing}. {advice}")
    for name in sorted(gain_copies(few) - {key for key, role in (roles or {}).items() if role in ("column", "base")}):
        message = f"The column {name!r} orders the candidates of all lists as their gain does, as if it were the gain "
        message += f"again, which nobody knows in use: leave it out (--roles {name}=unused), or say that it is "
        doubts.append(f"{message}known: --roles {name}=column.")
    gain_lists = [nbest.scores[:, nbest.names.index(GAIN)] for nbest in few if nbest.unscored and GAIN in nbest.names]
    rankings = [gains for gains in gain_lists if np.ptp(gains)]
    if len(rankings) >= MIN_GAIN_LISTS and all(gains[0] > gains[1:].max() for gains in rankings):
        message = "The first candidate alone is the best of all lists, which have no base score: "
        doubts.append(f"{message}where their order comes from the gain, shuffle the candidates.")
    by_gain = metric.measured if metric is not None else bool(few) and GAIN in few[0].names
    if REFERENCE not in (roles or {}).values() and not by_gain:
        sides = [([*map(decoded, [nbest.texts[nbest.base.argmax()], *nbest.texts])], decoded(nbest.references[0]))
                 for nbest in few if nbest.references]  # fmt: skip
        doubts += doubts_of_references(sides, metric)
    return doubts


def gain_copies(lists: Sequence[Lists]) -> set[str]:
    """The columns that are most likely the gain again: they sort the candidates of all lists that have several gains,
    MIN_GAIN_LISTS at least, as these do, and are as different among the best ones."""
    names = lists[0].names if lists and GAIN in lists[0].names else ()
    rising, falling, best = np.ones(len(names), bool), np.ones(len(names), bool), list[np.ndarray]()
    for nbest in lists if names else ():
        levels, level = np.unique(nbest.scores[:, names.index(GAIN)], return_inverse=True)
        if levels.size > 1 and nbest.names == names:
            rows, first = nbest.scores[np.argsort(level)], np.searchsorted(np.sort(level), np.arange(levels.size))
            least, most = np.minimum.reduceat(rows, first), np.maximum.reduceat(rows, first)
            rising &= (least[1:] > most[:-1]).all(axis=0)
            falling &= (most[1:] < least[:-1]).all(axis=0)
            best.append(rows[first[-1] :])
    if len(best) < MIN_GAIN_LISTS:
        return set()
    values = dict(zip(names, (np.unique(column).size for column in np.concatenate(best).T), strict=True))
    alike = zip(names, (rising | falling).tolist(), strict=True)
    return {name for name, so in alike if so and name != GAIN and values[name] <= values[GAIN]}


def doubts_of_references(sides: Sides, metric: Metric | None = None) -> list[str]:
    """``doubts_of_lists`` on references alone, each beside the texts that are compared with it."""
    doubts, references = [_doubt_of_form(sides, metric)], [right for _, right in sides]
    bonds = sum(_BOND.search(text.replace(" ", "")) is not None for text in references)
    kinds = {
        "are code": lambda text: _CODE.search(text) is not None,
        "are graphs in brackets": lambda text: _GRAPH.search(text) is not None,
        "are chemical strings (SMILES)": lambda text: bonds > 0 and _ATOMS.fullmatch(text.replace(" ", "")) is not None,
        "have one token each": lambda text: len(text.split()) == 1 and not UNSPACED_LETTERS.search(text),
    }
    for what, fits in kinds.items() if metric is None or metric.name not in ("cer", "match") else ():
        if sum(map(fits, references)) > MIN_SHARE * len(references):
            advice = "measure what is right as a whole (--metric match), a gain of each candidate (gain), or cer"
            doubts.append(f"The references {what}, {UNSUITED}; {advice}; or say --roles reference={REFERENCE}.")
            break
    return [line for line in doubts if line]


def _doubt_of_form(sides: Sides, metric: Metric | None) -> str:
    """The change that makes up for at least half of the tokens of references that no candidate has."""
    forms: dict[Form, bool] = {"case": getattr(metric, "lowercase", False), **getattr(metric, "normalize", {})}
    tokenizes, measure = getattr(metric, "tokenize", "none") != "none", cast(Any, metric)

    def tokens(text: str) -> list[str]:
        """The tokens that the metric compares."""
        text = apply_forms(text, forms)
        return (decoded(measure.prepare([encoded(text)])[0]) if tokenizes else text).split()

    def lacking(change: Callable[[str], str] = str, part: slice = slice(None)) -> np.ndarray:
        """The shares of the tokens of references that no candidate of their list has, and that the first one lacks."""
        counts = np.zeros(3)
        for texts, right in sides:
            first, *rest = ({*tokens(change(text))} for text in texts)
            words, had = tokens(change(right))[part], first.union(*rest)
            counts += [sum(one not in had for one in words), sum(one not in first for one in words), len(words)]
        return np.asarray(counts[:2] / max(counts[2], 1))

    if (before := lacking()).max() < MIN_LACKING_SHARE:
        return ""
    no_blanks = 2 * sum(UNSPACED_LETTERS.search(right) is not None for _, right in sides) > len(sides) and not tokenizes
    ways = [(lacking(change), what, how) for what, change, how in _ways(metric, unspaced=no_blanks)]
    more = [len(right.split()) - sum(len(text.split()) for text in texts) / len(texts) for texts, right in sides]
    if sum(more) > len(more) / 2:  # an id is a token that candidates do not have
        ways += [(lacking(part=part), what, "take it out") for what, part in _TRIMMINGS.items()]
    for k, whose in enumerate(("No candidate has", "The base's choices lack")):
        least = min(after[k] for after, *_ in ways)
        after, what, how = next(way for way in ways if way[0][k] <= least + MIN_LACKING_SHARE * before[k])
        if before[k] >= MIN_LACKING_SHARE and after[k] <= before[k] / 2:
            message = f"{whose} {100 * before[k]:.0f} % {LACKING_TOKENS} {what} {100 * after[k]:.0f} %: {how}"
            return f"{message}, or say that they are as they should be: --roles reference={REFERENCE}."
    return ""


def inputs_of(reader: Reader, lists: Iterable[Lists]) -> Inputs:
    """The "ids" and "sources" of the first of ``lists``, which ``reader`` reads. Whole numbers that rise one by one, or
    count the inputs of a file, are places; keys of runs never are."""
    good = [nbest for nbest in islice(one_by_one(lists), SAMPLE_LISTS) if nbest.problem is None]
    numbers = [whole_number(nbest.id) for nbest in good]
    rising = all(b is not None and a is not None and b == a + 1 for a, b in pairwise(numbers)) and numbers[:1] != [None]
    ordinal = (rising or reader.order == "file") and not reader.offers("qrels")
    sources = {decoded(source) for nbest in good if (source := getattr(nbest, "source", None))}
    return {"ids": [] if ordinal else sorted({nbest.id for nbest in good}), "sources": sorted(sources)}


def refuse_systems(files: Sequence["ListFile"]) -> None:
    """Raises DataError where files are those of several systems over the same inputs, and no further lists."""
    inputs = list[tuple[Inputs, str]]()
    for file in files if len(files) > 1 and not any(map(read_once, (file.path for file in files))) else ():
        own = inputs_of(file.reader, file.blocks())
        for other, path in inputs:
            if what := shared(own, other):
                name = file.settings["name"]
                message = f"has lists of the same {what} as {path}; to choose among the candidates of both, name them "
                message += f"as one: {path},{file.path} --reader '{{name: merged, of: {name}}}'"
                others = f"; if the inputs are others, --reader '{{name: {name}, ids: ordinal}}' leaves out the ids"
                raise DataError(message + others * (what == "ids"), path=file.path)
        inputs.append((own, file.path))


def shared(one: Inputs, other: Inputs) -> str:
    """The key that two files share: at least half of the "ids", or the "sources", of either; empty if nothing. Ids of
    lists that have sources, and none in common, begin again."""
    others = one["sources"] and other["sources"] and {*one["sources"]}.isdisjoint(other["sources"])
    for what in () if others else ("ids", "sources"):
        both, most = len({*one[what]} & {*other[what]}), max(len(one[what]), len(other[what]))
        if most > 1 and 2 * both >= most:
            return what
    return ""
