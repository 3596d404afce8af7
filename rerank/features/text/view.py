"""The view that templates have of a list of texts: words, derivations, word alignments and scores as flat arrays."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rerank.data.corpus import first_unfit, offsets
from rerank.data.symbols import SymbolTable, quick_hash, tokenise
from rerank.features.scores import UNFIT, score_view
from rerank.kernels.compile import kernel
from rerank.readers.lists import Lists
from rerank.readers.problems import Problem

log = logging.getLogger("rerank")
DIGIT, PUNCTUATION = 1, 2  # a word's kind: it has a digit; it has neither letters nor digits
MALFORMED, SOURCE, TARGET, ORDER = 1, 2, 3, 4  # what can be wrong
WHY, CANDIDATE, POSITION = 0, 1, 2  # what ``problem`` says
SOURCE_BEGIN, SOURCE_END, TARGET_BEGIN, TARGET_END = 0, 1, 2, 3  # of a phrase in ``spans``
SOURCE_WORD, TARGET_WORD = 0, 1  # of a point in ``points``
MAX_NUMBER = 1 << 30  # larger numbers are cut to this

_WRONG = {
    MALFORMED: "found {found!r} in the {field}, expected {form}",
    SOURCE: "{found!r} in the {field} points outside of the source, which has {source} words (counted from 0)",
    TARGET: "{found!r} in the {field} points outside of the text, which has {target} words (counted from 0)",
    ORDER: "{found!r} in the {field} overlaps the phrase before it; expected the phrases in the order of the text",
}
_FORMS = {
    "segmentation": "source words = target words, like 5-7=5 or 2=3-4",
    "alignment": "source word - target word, like 2-3",
}


class TextView(NamedTuple):
    """One list of N candidates: S source words, W target words, P phrases, A alignment points, K scores, G sparse.

    Words are hashes. Lists without derivations have no phrases and no points.
    """

    source: np.ndarray  # uint64 [S]
    source_kinds: np.ndarray  # uint8 [S]: DIGIT, PUNCTUATION
    first: np.ndarray  # int64 [N + 1]: words of candidate y are first[y]..first[y + 1]
    words: np.ndarray  # uint64 [W]
    kinds: np.ndarray  # uint8 [W]
    phrase_first: np.ndarray  # int64 [N + 1]
    spans: np.ndarray  # int32 [P, 4]: source first, last + 1, target first, last + 1; in target order
    point_first: np.ndarray  # int64 [N + 1]
    points: np.ndarray  # int32 [A, 2]: source word, target word
    base: np.ndarray  # float64 [N]
    scores: np.ndarray  # float64 [N, K]
    names: np.ndarray  # uint64 [K]: names of the scores; 0 for the base score; empty if scores have no names
    sparse_first: np.ndarray  # int64 [N + 1]
    sparse_names: np.ndarray  # uint64 [G]: names of the sparse features in the list
    sparse: np.ndarray  # float64 [G]


@kernel
def _mark_bytes(data: np.ndarray, i: int, end: int) -> int:
    """Bytes of the punctuation mark at i: ASCII's, or a common one of other scripts (UTF-8); 0 if it is not a mark."""
    c = data[i]
    if c < 128:
        letter = 65 <= c <= 90 or 97 <= c <= 122 or 48 <= c <= 57
        return 0 if letter else 1
    if c == 0xC2 and i + 1 < end and (data[i + 1] in (0xA1, 0xAB, 0xB7, 0xBB, 0xBF)):
        return 2  # inverted marks, guillemets, middle dot
    if i + 2 < end and ((c == 0xE2 and data[i + 1] == 0x80) or (c == 0xE3 and data[i + 1] == 0x80)):
        return 3  # general punctuation, and that of Chinese and Japanese
    if c == 0xEF and i + 2 < end and data[i + 1] == 0xBC and not 0x90 <= data[i + 2] <= 0x99 and data[i + 2] < 0xA1:
        return 3  # full-width forms
    return 0


@kernel
def word_kinds(data: np.ndarray, kinds: np.ndarray) -> None:
    """DIGIT (ASCII), PUNCTUATION or 0 for the words in ``data`` (uint8, cut at ASCII white space)."""
    word, i, size = 0, 0, data.shape[0]
    while i < size:
        if is_blank(data[i]):
            i += 1
            continue
        end, kind = i, PUNCTUATION
        while end < size and not is_blank(data[end]):
            if 48 <= data[end] <= 57:
                kind = DIGIT
            end += 1
        while kind == PUNCTUATION and i < end:
            step = _mark_bytes(data, i, end)
            if step == 0:
                kind = 0
            i += step
        kinds[word] = kind
        word += 1
        i = end


@kernel
def is_blank(c: int) -> bool:
    """Whether this is ASCII white space."""
    return c == 32 or 9 <= c <= 13


@kernel
def _number(data: np.ndarray, p: int) -> tuple[int, int]:
    """(number, end) of the digits at p; (-1, p) if there are none."""
    begin, value = p, 0
    while p < data.shape[0] and 48 <= data[p] <= 57:
        value = min(10 * value + data[p] - 48, MAX_NUMBER)
        p += 1
    return (value, p) if p > begin else (-1, p)


@kernel
def _span(data: np.ndarray, p: int, ranges: bool) -> tuple[int, int, int]:
    """(first, last, end) of ``5`` or, among ``ranges``, ``5-7`` at p; first is -1 if neither is there."""
    first, p = _number(data, p)
    last = first
    if ranges and first >= 0 and p < data.shape[0] and data[p] == 45:
        last, p = _number(data, p + 1)
    return (first, last, p) if last >= first else (-1, -1, p)


@kernel
def _fail(problem: np.ndarray, why: int, y: int, at: int) -> int:
    problem[WHY], problem[CANDIDATE], problem[POSITION] = why, y, at
    return -1


@kernel
def read_derivations(
    data: np.ndarray, source: int, lengths: np.ndarray, first: np.ndarray, rows: np.ndarray, problem: np.ndarray
) -> int:
    """Parse segmentations or word alignments, one line per candidate, to ``rows``, with their offsets in ``first``.

    A segmentation has four columns (int32: source first, last + 1, target first, last + 1): ``5-7=5`` says that source
    words 5 to 7 gave target word 5. A phrase whose one target word is also the first of the next phrase, or would lie
    just after the candidate's end, is a word that was dropped: its target span is empty, as Moses means it. Alignments
    have two: ``2-3`` aligns source word 2 with target word 3. Returns the number of rows; -1 if one is malformed or
    points outside the texts, and then ``problem`` gets (why, candidate, place in ``data``).
    """
    n, p, phrases = 0, 0, rows.shape[1] == 4
    for y in range(lengths.shape[0]):
        first[y] = n
        while p < data.shape[0] and data[p] != 10:
            if is_blank(data[p]):
                p += 1
                continue
            at = p
            a, b, p = _span(data, p, phrases)
            if a < 0 or p >= data.shape[0] or data[p] != (61 if phrases else 45):
                return _fail(problem, MALFORMED, y, at)
            c, d, p = _span(data, p + 1, phrases)
            if c < 0 or (p < data.shape[0] and not is_blank(data[p])):
                return _fail(problem, MALFORMED, y, at)
            if b >= source:
                return _fail(problem, SOURCE, y, at)
            stop = c if phrases and c >= lengths[y] and d == c else d + 1
            if stop > lengths[y]:
                return _fail(problem, TARGET, y, at)
            if phrases:
                if n > first[y] and rows[n - 1, TARGET_END] > c:
                    if rows[n - 1, TARGET_BEGIN] != c or rows[n - 1, TARGET_END] != c + 1:
                        return _fail(problem, ORDER, y, at)
                    rows[n - 1, TARGET_END] = c
                rows[n, SOURCE_BEGIN], rows[n, SOURCE_END] = a, b + 1
                rows[n, TARGET_BEGIN], rows[n, TARGET_END] = c, stop
            else:
                rows[n, SOURCE_WORD], rows[n, TARGET_WORD] = a, c
            n += 1
        p += 1
    first[lengths.shape[0]] = n
    return n


def make_view(nbest: Lists, source: bytes, symbols: SymbolTable | None) -> TextView:
    """The arrays of a list. Its words and names are added to ``symbols``, if given, so that features can be shown.

    ``source`` is the input of the list; it is empty if there is none, and then ``nbest`` must have no derivations.
    """
    N = len(nbest)
    texts = [source, *nbest.texts]
    tokens = tokenise(texts, symbols)
    S = int(tokens.first[1])
    kinds = np.empty(tokens.hashes.size, np.uint8)
    word_kinds(np.frombuffer(b" ".join(texts), np.uint8), kinds)
    first = tokens.first[1:] - S
    lengths = np.diff(first)
    none, nowhere = np.zeros(N + 1, np.int64), np.empty((0, 4), np.int32)
    phrase_first, spans, point_first, points = none, nowhere, none, nowhere[:, :2]
    if nbest.segmentation is not None:
        phrase_first, spans = _derivation(nbest, "segmentation", nbest.segmentation, S, lengths)
    if nbest.alignment is not None:
        point_first, points = _derivation(nbest, "alignment", nbest.alignment, S, lengths)
        if nbest.ended:
            mask = (points[:, 0] < S) & (points[:, 1] < np.repeat(lengths, np.diff(point_first)))
            point_first, points = offsets(mask)[point_first], points[mask]
    scores = score_view(nbest, symbols)
    sparse_first, sparse_names, sparse = none, scores.names[:0], np.empty(0)
    hash_of = quick_hash if symbols is None else symbols.hash_of
    if nbest.sparse is not None:
        sparse_first, sparse = nbest.sparse.first, np.ascontiguousarray(nbest.sparse.values, np.float64)
        sparse_names = np.array([hash_of(name) for name in nbest.sparse.names], np.uint64)
    if (y := first_unfit(scores.scores)) >= 0:
        raise _fault("infinite score", UNFIT, nbest, y)
    if (e := first_unfit(sparse.reshape(-1, 1))) >= 0:
        y = int(np.searchsorted(sparse_first, e, side="right")) - 1
        raise _fault("infinite score", f"found a sparse feature with the value {sparse[e]}", nbest, y)
    words = tokens.hashes[:S], kinds[:S], first, tokens.hashes[S:], kinds[S:]
    derivations = phrase_first, spans, point_first, points
    return TextView(*words, *derivations, *scores, sparse_first, sparse_names, sparse)


def _derivation(
    nbest: Lists, field: str, texts: Sequence[bytes], source: int, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(offsets int64 [N + 1], rows) for the segmentations or alignments ``texts``."""
    raw = b"\n".join(texts)
    first, problem = np.zeros(len(texts) + 1, np.int64), np.zeros(3, np.int64)
    rows = np.empty((len(raw) // 3 + 1, 4 if field == "segmentation" else 2), np.int32)
    end = int(nbest.ended and field == "alignment")  # the end of a sentence is like a word after the last
    read_derivations(np.frombuffer(raw, np.uint8), source + end, lengths + end, first, rows, problem)
    why, y, at = problem.tolist()
    if why:
        word = raw[at:].split(maxsplit=1)[0][:40].decode("utf-8", "replace")
        values = {"found": word, "source": source, "target": int(lengths[y])}
        message = _WRONG[why].format(**values, field=field, form=_FORMS[field])
        raise _fault(field, message, nbest, y)
    return first, rows[: first[-1]]


def _fault(reason: str, message: str, nbest: Lists, y: int) -> Problem:
    """The problem with candidate ``y``."""
    line = nbest.lines[y] if len(nbest.lines) else nbest.line
    return Problem(reason, message, line, path=nbest.path, list_id=nbest.id)
