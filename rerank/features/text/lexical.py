"""Lexical: IBM model 1 of source and candidate, estimated from the sources and references of the training lists.

With t*(w | g) = (1 − λ) t(w | g) + λ share(w), so that no word is impossible, y a candidate and s its source:

    target       log p(y | s), the sum over words of y of log (mean over words of s and the empty word of t*)
    target-rate  the same, divided by the number of words of y
    source, source-rate: the same for log p(s | y), divided by the number of words of s
    inserted     how many words of y no word of s gives: t(word of y | word of s) < θ for all
    idle         how many words of y give no word of s: t(word of s | word of y) < θ for all
    deleted      how many words of s no word of y gives
    unsaid       how many words of s give no word of y
    fertility    the sum over words of s of |φ − μ|, where φ is how many words of y it gives, in expectation, and μ how
                 many it gives on average in training (Brown et al. 1993 have models of fertilities; this is none)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
from rerank.features.marks import mark
from rerank.features.model1 import LexicalTables, Translations, word_numbers
from rerank.features.scores import Dense, ScoreView
from rerank.features.template import Template, TextTemplate
from rerank.features.text.view import TextView
from rerank.kernels.compile import kernel

COLUMNS = (
    "target", "target-rate", "source", "source-rate", "inserted", "idle", "deleted", "unsaid", "fertility",
)  # fmt: skip
TARGET, TARGET_RATE, SOURCE, SOURCE_RATE, INSERTED, IDLE, DELETED, UNSAID, FERTILITY = range(len(COLUMNS))
SMOOTHING = 0.1  # λ
LINK = 0.05  # θ
MEAN, GIVEN, GIVES, FORWARD, BACKWARD, SCRATCH = range(6)  # rows of scratch space, one number per distinct word


@kernel
def cell(table: Translations, row: int, word: int) -> float:
    """t(word | given word of the row); 0 where the table has no cell."""
    low, high = table.first[row], table.first[row + 1]
    while low < high:
        middle = (low + high) // 2
        if table.word[middle] < word:
            low = middle + 1
        else:
            high = middle
    there = low < table.first[row + 1] and table.word[low] == word
    t: float = table.probability[low] if there else 0.0
    return t


@kernel
def smoothed(table: Translations, t: float, word: int) -> float:
    """t*(word | given) from t(word | given)."""
    probability: float = (1.0 - SMOOTHING) * t + SMOOTHING * table.share[word]
    return probability


@kernel
def look_at_words(tables: LexicalTables, source: np.ndarray, words: np.ndarray, seen: np.ndarray) -> None:
    """The evidence of the source (int32 [S]) for each distinct word (int32 [D]) of the candidates, and of these for the
    source.

    To ``seen`` (float64 [SCRATCH, D]) go MEAN, that of t*(word | source word), and GIVEN and GIVES, the greatest
    t(word | source word) and t(source word | word).
    """
    for d in range(words.shape[0]):
        total = smoothed(tables.forward, cell(tables.forward, 0, words[d]), words[d])
        given = gives = 0.0
        for i in range(source.shape[0]):
            t = cell(tables.forward, 1 + source[i], words[d])
            given, gives = max(given, t), max(gives, cell(tables.backward, 1 + words[d], source[i]))
            total += smoothed(tables.forward, t, words[d])
        seen[MEAN, d], seen[GIVEN, d], seen[GIVES, d] = total / (source.shape[0] + 1), given, gives


@kernel
def add_words(first: np.ndarray, place: np.ndarray, seen: np.ndarray, out: np.ndarray) -> None:
    """Columns that are sums over the words of a candidate; parameters as in ``add_source``."""
    for y in range(out.shape[0]):
        for j in range(first[y], first[y + 1]):
            d = place[j]
            out[y, TARGET] += np.log(seen[MEAN, d])
            out[y, INSERTED] += seen[GIVEN, d] < LINK
            out[y, IDLE] += seen[GIVES, d] < LINK
        out[y, TARGET_RATE] = out[y, TARGET] / max(first[y + 1] - first[y], 1)


@kernel
def add_source(
    tables: LexicalTables, source: np.ndarray, words: np.ndarray, first: np.ndarray, place: np.ndarray,
    seen: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Columns that are sums over the words of the source: added to ``out`` (float64 [N, COLUMNS]).

    Word j of the candidates, of which those of y are first[y]..first[y + 1], is words[place[j]].
    """
    for i in range(source.shape[0]):
        for d in range(words.shape[0]):
            seen[FORWARD, d] = cell(tables.forward, 1 + source[i], words[d])
            seen[BACKWARD, d] = cell(tables.backward, 1 + words[d], source[i])
        empty = smoothed(tables.backward, cell(tables.backward, 0, source[i]), source[i])
        for y in range(out.shape[0]):
            total = empty
            forward = backward = fertility = 0.0
            for j in range(first[y], first[y + 1]):
                d = place[j]
                forward, backward = max(forward, seen[FORWARD, d]), max(backward, seen[BACKWARD, d])
                total += smoothed(tables.backward, seen[BACKWARD, d], source[i])
                t = smoothed(tables.forward, seen[FORWARD, d], words[d])
                fertility += t / (seen[MEAN, d] * (source.shape[0] + 1))
            out[y, SOURCE] += np.log(total / (first[y + 1] - first[y] + 1))
            out[y, DELETED] += backward < LINK
            out[y, UNSAID] += forward < LINK
            out[y, FERTILITY] += abs(fertility - tables.forward.fertility[1 + source[i]])
    for y in range(out.shape[0]):
        out[y, SOURCE_RATE] = out[y, SOURCE] / max(source.shape[0], 1)


def lexical_columns(tables: LexicalTables, source: np.ndarray, words: np.ndarray, first: np.ndarray) -> np.ndarray:
    """float64 [N, COLUMNS]: the columns of the candidates of a list.

    source, words: hashes of words (uint64 [S], [W]); first: int64 [N + 1], candidate y has the words
    first[y]..first[y + 1].
    """
    numbers = word_numbers(tables.source, source)
    distinct, place = np.unique(word_numbers(tables.target, words), return_inverse=True)
    seen, out = np.empty((SCRATCH, distinct.size)), np.zeros((first.size - 1, len(COLUMNS)))
    look_at_words(tables, numbers, distinct, seen)
    add_words(first, place, seen, out)
    add_source(tables, numbers, distinct, first, place, seen, out)
    return out


NAMES = np.array([mark(name) for name in COLUMNS], np.uint64)


@dataclass(frozen=True)
class Lexical(TextTemplate):
    """Log-probabilities of the candidate given the source and of the source given the candidate, and how many words
    either has that the other does not explain, by IBM model 1 (Brown et al. 1993; see the module).

    >>> Lexical(iterations=3).name
    'Lexical(iterations=3)'

    It learns from the sources and references of the training lists, by ``iterations`` of EM; lists in each of ``folds``
    parts of train get what the others say. Time: words of the source times different words of the candidates.
    """

    free: ClassVar[bool] = True
    iterations: Annotated[int, Range(1)] = 5
    folds: Annotated[int, Range(2)] = 5

    sees = "lexical"
    fire = staticmethod(Dense.fire)


def lexical_of(made: Sequence[Template]) -> Lexical | None:
    """The template of these that needs tables, if there is one."""
    templates = [template for template in made if isinstance(template, Lexical)]
    if len(templates) > 1:
        names = ", ".join(template.name for template in templates)
        raise RecipeError(f"found {names}; expected one template Lexical", key="features.templates")
    return templates[0] if templates else None


def lexical_view(tables: LexicalTables, view: TextView) -> ScoreView:
    """The columns of a list as scores."""
    return ScoreView(view.base, lexical_columns(tables, view.source, view.words, view.first), NAMES, view.answers)
