"""Slow twins of the templates of texts: from words to feature names with values; and random lists of texts."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st
from rendered_features import by_candidate, names_of

from rerank.data.symbols import SymbolTable
from rerank.features.extract import TextExtractor
from rerank.features.template import make_template
from rerank.features.text.view import make_view
from rerank.readers.lists import Lists, SparseScores, answers_of

Features = dict[str, float]


@dataclass
class One:
    """A candidate as a person would write it down. Spans are half open: source a..b gave words c..d."""

    words: list[str]
    phrases: list[tuple[int, int, int, int]] = field(default_factory=list)
    points: list[tuple[int, int]] = field(default_factory=list)
    base: float = 0.0
    scores: tuple[float, ...] = ()
    given: dict[str, float] = field(default_factory=dict)
    answer: str = ""


@dataclass
class Lines:
    """A list of candidates for one source."""

    source: list[str]
    candidates: list[One]
    names: tuple[str, ...] = ()


def span(first: int, last: int) -> str:
    """first..last (half open) as decoders write it."""
    return str(first) if last == first + 1 else f"{first}-{last - 1}"


def segmentation(one: One) -> bytes:
    """The phrases as Moses writes them; an empty target side looks like its first word."""
    return " ".join(f"{span(a, b)}={span(c, max(d, c + 1))}" for a, b, c, d in one.phrases).encode()


def text_list(lines: Lines) -> Lists:
    """The list as a reader gives it: the base score is the last column."""
    ones = lines.candidates
    given = [(name, value) for one in ones for name, value in one.given.items()]
    return Lists.one(
        id="7",
        path="lists",
        line=1,
        texts=[" ".join(one.words).encode() for one in ones],
        lines=range(1, len(ones) + 1),
        scores=np.array([[*one.scores, one.base] for one in ones], np.float64).reshape(len(ones), len(lines.names) + 1),
        column=len(lines.names),
        names=(*lines.names, "total"),
        segmentation=[segmentation(one) for one in ones],
        alignment=[" ".join(f"{s}-{t}" for s, t in one.points).encode() for one in ones],
        sparse=SparseScores(
            np.cumsum([0] + [len(one.given) for one in ones]),
            [name.encode() for name, _ in given],
            np.array([value for _, value in given], np.float64),
        ),
        answers=answers_of([one.answer.encode() for one in ones]),
    )


@cache
def made(specs: tuple[Any, ...], **options: Any) -> TextExtractor:
    """An extractor, one for all lists: it must forget the last one."""
    return TextExtractor([make_template(spec) for spec in specs], SymbolTable(), **{"centred": False, **options})


def extracted(specs: Sequence[Any], lines: Lines, **options: Any) -> list[Features]:
    """For every candidate: feature name → value (not centred unless asked)."""
    extractor = made(tuple(specs), **options)
    nbest = text_list(lines)
    view = make_view(nbest, " ".join(lines.source).encode(), extractor.symbols)
    features = extractor.features(view, nbest)
    return by_candidate(features, names_of(features, extractor), len(lines.candidates))


def expected(spec: str, lines: Lines) -> list[Features]:
    """What the slow twin gives; features with one value on all candidates vary nowhere and are left out."""
    name, _, rest = spec.partition("(")
    options = dict(part.strip().split("=") for part in rest.rstrip(")").split(",") if part)
    found = [{f"{spec}|{key}": value for key, value in features.items()} for features in TWINS[name](lines, **options)]
    names = {key for features in found for key in features}
    varying = {key for key in names if len({features.get(key, 0.0) for features in found}) > 1}
    return [{key: value for key, value in features.items() if key in varying and value} for features in found]


Twin = Callable[..., list[Features]]
TWINS: dict[str, Twin] = {}


def alone(twin: Callable[..., Any]) -> Twin:
    """A twin that looks at one candidate gives the names that fire, or names with values."""

    def whole(lines: Lines, **options: str) -> list[Features]:
        return [dict(Counter(twin(lines.source, one, **options))) for one in lines.candidates]

    return whole


def named(name: str) -> Callable[[Twin], Twin]:
    def enter(twin: Twin) -> Twin:
        TWINS[name] = twin
        return twin

    return enter


def joined(words: Sequence[str]) -> str:
    return " ".join(words)


def shared(lines: Lines, values: list[float], answers: str) -> list[float]:
    """Where candidates have answers, and not each its ``own``: the mean over those with the same one."""
    alike = [[z for z in lines.candidates if z is y or (z.answer and z.answer == y.answer)] for y in lines.candidates]
    value = {id(y): own for y, own in zip(lines.candidates, values, strict=True)}
    return values if answers == "own" else [sum(value[id(z)] for z in same) / len(same) for same in alike]


@named("Dense")
def dense(lines: Lines, answers: str = "mean") -> list[Features]:
    columns = [shared(lines, [one.scores[k] for one in lines.candidates], answers) for k in range(len(lines.names))]
    return [{name: column[y] for name, column in zip(lines.names, columns, strict=True)}
            for y in range(len(lines.candidates))]  # fmt: skip


@named("SameAnswer")
def votes(lines: Lines) -> list[Features]:
    times = Counter(one.answer for one in lines.candidates if one.answer)
    return [{"": math.log(times[one.answer])} if times and one.answer else {} for one in lines.candidates]


@named("Within")
def within(lines: Lines, bins: str = "0") -> list[Features]:
    columns = {"(base)": [one.base for one in lines.candidates]}
    columns |= {name: [one.scores[k] for one in lines.candidates] for k, name in enumerate(lines.names)}
    rows: list[Features] = [{} for _ in lines.candidates]
    for name, scores in columns.items():
        for row, score in zip(rows, scores if len({*scores}) > 1 else (), strict=False):
            twice, others = sum((x < score) + (x <= score) for x in scores) - 1, len(scores) - 1
            row[f"{name} rank"] = twice / 2 / others
            row[f"{name} gap"] = (max(scores) - score) / (max(scores) - min(scores))
            row[f"{name} best"] = float(score == max(scores))
            row[f"{name} bin={min(twice * int(bins) // (2 * others), int(bins) - 1)}"] = float(bins != "0")
    return rows


def signed(number: int, most: int) -> str:
    clipped = max(-most, min(most, number))
    return f"{clipped:+d}" if clipped else "0"


@named("Unaligned")
@alone
def unaligned(source: list[str], one: One, side: str = "source") -> list[str]:
    if side == "source":
        return [word for i, word in enumerate(source) if i not in {s for s, _ in one.points}]
    return [word for i, word in enumerate(one.words) if i not in {t for _, t in one.points}]


@named("CoOccurrence")
@alone
def together(source: list[str], one: One, words: str = "50", band: str = "0") -> list[str]:
    most, off = int(words), int(band)
    return [
        f"{a} → {b}"
        for s, a in enumerate(source[:most])
        for t, b in enumerate(one.words[:most])
        if off == 0 or abs(s * len(one.words) - t * len(source)) <= off * len(one.words)
    ]


def ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


TWINS |= {
    "BaseScore": lambda lines, answers="mean": [
        {"": score} for score in shared(lines, [one.base for one in lines.candidates], answers)
    ],
    "Given": lambda lines: [one.given for one in lines.candidates],
    "PhrasePair": alone(
        lambda source, one: [joined([*source[a:b], "→", *one.words[c:d]]) for a, b, c, d in one.phrases]
    ),
    "SourcePhrase": alone(lambda source, one: [joined(source[a:b]) for a, b, _, _ in one.phrases]),
    "TargetPhrase": alone(lambda _, one: [joined(one.words[c:d]) for _, _, c, d in one.phrases]),
    "PhraseLengths": alone(
        lambda _, one, most="5": [f"{min(b - a, int(most))} → {min(d - c, int(most))}" for a, b, c, d in one.phrases]
    ),
    "PhraseBoundary": alone(
        lambda _, one: [f"{one.words[c - 1]} | {one.words[c]}" for _, _, c, d in one.phrases if c > 0 and d > c]
    ),
    "Jump": alone(
        lambda _, one, most="6": [
            signed(phrase[0] - end, int(most))
            for phrase, end in zip(one.phrases, [0, *(b for _, b, _, _ in one.phrases)], strict=False)
        ]
    ),
    "WordPair": alone(lambda source, one: [f"{source[s]} → {one.words[t]}" for s, t in one.points]),
    "TargetNGram": alone(
        lambda _, one, n="1": map(joined, ngrams(one.words if n == "1" else ["<s>", *one.words, "</s>"], int(n)))
    ),
    "LengthRatio": alone(
        lambda source, one: [f"{min(30, math.floor(10 * len(one.words) / len(source))) / 10:.1f}"] if source else []
    ),
}


BINS = ["0", "1", "2", "3", "4", "5", "6", "7", "8-9", "10-11", "12-15", "16-19", "20-23", "24-31", "32-39"]


@named("Length")
@alone
def length(_source: list[str], one: One, binned: str = "True") -> Any:
    number = len(one.words)
    if binned == "False":
        return {"words": number}
    return [found for found in BINS if int(found.split("-")[0]) <= number <= int(found.split("-")[-1])]


def has_digit(word: str) -> bool:
    return any(c in "0123456789" for c in word)


def is_mark(word: str) -> bool:
    return all(c in ".,;:!?-()[]\"'…„“«»¿·、。！？" for c in word)


@named("Copy")
@alone
def copied(source: list[str], one: One) -> Features:
    if not source:
        return {}
    found = [word for word in one.words if word in source]
    digits = [word for word in one.words if has_digit(word)]
    return {
        "copied": len(found),
        "rate": len(found) / len(one.words) if one.words else 0.0,
        "digits": sum(word in source for word in digits),
        "new-digits": sum(word not in source for word in digits),
    }


@named("Punctuation")
@alone
def punctuation(source: list[str], one: One, most: str = "3") -> list[str]:
    if not source:
        return []
    final = [words[-1] if words and is_mark(words[-1]) else "" for words in (source, one.words)]
    more = sum(map(is_mark, one.words)) - sum(map(is_mark, source))
    return [f"final {'same' if final[0] == final[1] else 'different'}", f"count {signed(more, int(most))}"]


def ranked(lines: Lines) -> list[int]:
    """The candidates by base score, best first."""
    return sorted(range(len(lines.candidates)), key=lambda y: -lines.candidates[y].base)


def others(lines: Lines, y: int, scale: str, among: Sequence[int]) -> dict[int, float]:
    """P(z) of the candidates other than y."""
    bases = {z: int(scale) / 10 * lines.candidates[z].base for z in among if z != y}
    shares = {z: math.exp(base - max(bases.values())) for z, base in bases.items()}
    return {z: share / sum(shares.values()) for z, share in shares.items()}


@named("ConsensusNGram")
def consensus_ngram(lines: Lines, n: str = "4", scale: str = "10") -> list[Features]:
    def precision(y: int, z: int, order: int) -> float:
        own = Counter(ngrams(lines.candidates[y].words, order))
        return (own & Counter(ngrams(lines.candidates[z].words, order))).total() / max(own.total(), 1)

    total = range(len(lines.candidates))
    return [
        {
            str(order): sum(p * precision(y, z, order) for z, p in others(lines, y, scale, total).items())
            for order in range(1, int(n) + 1)
        }
        for y in total
    ]


def alignment(old: tuple[str, ...], new: tuple[str, ...]) -> list[tuple[str, str]]:
    """Edits (old word, new word; "" for none): fewest, then most substitutions, then as EditOps describes.

    Words at both ends are matched first; the rest is settled from the end: diagonally, else deletions first.
    """
    if old and new and old[0] == new[0]:
        return alignment(old[1:], new[1:])
    if old and new and old[-1] == new[-1]:
        return alignment(old[:-1], new[:-1])

    @cache
    def best(i: int, j: int) -> tuple[int, int, tuple[tuple[str, str], ...]]:
        """(edits, −substitutions, edits made) for the first i and j words."""
        options = []
        if i and j:
            edits, negative, path = best(i - 1, j - 1)
            edit = old[i - 1] != new[j - 1]
            made = (*path, (old[i - 1], new[j - 1])) if edit else path
            options.append((edits + edit, negative - edit, made))
        if i:
            edits, negative, path = best(i - 1, j)
            options.append((edits + 1, negative, (*path, (old[i - 1], ""))))
        if j:
            edits, negative, path = best(i, j - 1)
            options.append((edits + 1, negative, (*path, ("", new[j - 1]))))
        return min(options, key=lambda option: option[:2], default=(0, 0, ()))

    return list(best(len(old), len(new))[2])


@named("EditOps")
def edit_ops(lines: Lines) -> list[Features]:
    found = []
    for one in lines.candidates:
        edits = alignment(tuple(lines.candidates[ranked(lines)[0]].words), tuple(one.words))
        found.append(dict(Counter(f"{old or '(nothing)'} → {new or '(nothing)'}" for old, new in edits)))
    return found


@named("ConsensusEdits")
def consensus_edits(lines: Lines, top: str = "10", scale: str = "10") -> list[Features]:
    found = []
    for y, one in enumerate(lines.candidates):
        sums = dict.fromkeys(("substitutions", "insertions", "deletions"), 0.0)
        chosen = ranked(lines)[: int(top)]
        if chosen != [y]:
            for z, p in others(lines, y, scale, chosen).items():
                for old, new in alignment(tuple(lines.candidates[z].words), tuple(one.words)):
                    sums["substitutions" if old and new else ("deletions" if old else "insertions")] += p
        found.append(sums)
    return found


# Random lists

VOCABULARY = ["a", "b", "c", "d", "the", "12", "a4", ".", ",", "!?", "…", "。", "·", "日本", "x-y", "→", "«", "café"]
BASES = st.sampled_from([-1.0, -1.0, -0.5, 0.0, -3.75, -20.0, -1000.0])


@st.composite
def phrases_of(draw: st.DrawFn, source: int, target: int) -> list[tuple[int, int, int, int]]:
    """Target spans that cover the candidate in order, some empty, each with any source span."""
    if not source:
        return []
    cuts = sorted({0, target, *draw(st.lists(st.integers(0, target), max_size=4))})
    found = []
    for c, d in pairwise(cuts):
        dropped = draw(st.integers(0, 4)) == 0
        for last in [c, d] if dropped and d == c + 1 else [d]:
            a = draw(st.integers(0, source - 1))
            found.append((a, draw(st.integers(a + 1, source)), c, last))
    return found


@st.composite
def lists_of_texts(draw: st.DrawFn, most: int = 5) -> Lines:
    """Candidates that share most of their words; empty sources, candidates and lists among them."""
    source = draw(st.lists(st.sampled_from(VOCABULARY), max_size=6))
    names = draw(st.sampled_from([(), ("LM0",), ("LM0", "a score", "d")]))
    candidates: list[One] = []
    for _ in range(draw(st.integers(0, most))):
        words = draw(st.lists(st.sampled_from(VOCABULARY), max_size=8))
        if candidates and draw(st.integers(0, 3)):
            before = candidates[-1].words
            at = draw(st.integers(0, len(before)))
            words = [*before[:at], *words[:1], *before[at + draw(st.integers(0, 1)) :]]
        T, S = len(words), len(source)
        points = st.tuples(st.integers(0, max(S - 1, 0)), st.integers(0, max(T - 1, 0)))
        numbers = st.floats(-50, 50, width=32)
        candidates.append(
            One(
                words,
                draw(phrases_of(S, T)),
                draw(st.lists(points, max_size=6, unique=True)) if S and T else [],
                draw(BASES),
                tuple(draw(numbers) for _ in names),
                draw(st.dictionaries(st.sampled_from(["sp_1", "sp_2", "dis=x"]), numbers, max_size=2)),
                draw(st.sampled_from(["", "4", "4", "5", "six"])),
            )
        )
    return Lines(source, candidates, names)


# A list for features written out by hand

EIN_MANN = Lines(
    ["ein", "mann", "nimmt", "2", "fotos", "."],
    [
        One(
            ["a", "man", "takes", "2", "photos", "."],
            [(0, 2, 0, 2), (2, 3, 2, 3), (3, 5, 3, 5), (5, 6, 5, 6)],
            [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)],
            -1.0,
            (-20.5, -6.0),
            answer="2",
        ),
        One(
            ["the", "man", "photos", "is", "taking"],
            [(0, 1, 0, 1), (1, 2, 1, 2), (4, 5, 2, 3), (2, 3, 3, 5)],
            [(0, 0), (1, 1), (4, 2), (2, 4)],
            -2.5,
            (-31.25, -5.0),
            {"dlr_back": 1.0},
            "2",
        ),
        One([], base=-9.0, scores=(0.0, 0.0)),
    ],
    ("LM0", "WordPenalty0"),
)
