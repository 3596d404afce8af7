"""IBM model 1 as the paper has it: dense tables, one sentence after the other; and the columns of candidates."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rerank.data.tokens import Tokens, tokenise
from rerank.features.model1 import LEAST, SMALL
from rerank.features.text.lexical import LINK, SMOOTHING

Sentence = Sequence[str]
NULL, UNKNOWN = "(null)", "(unknown)"


def tokens(sentences: Sequence[Sentence]) -> Tokens:
    return tokenise([" ".join(sentence).encode() for sentence in sentences])


class EM(NamedTuple):
    """t[g, w]; how many words each g was expected to give in the last iteration; log p before every iteration."""

    t: np.ndarray
    expected: np.ndarray
    likelihood: list[float]


def dense_em(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], known: int, words: int, iterations: int) -> EM:
    """t of ``words`` words given ``known`` words, and in row 0 the empty word, over pairs of sentences in numbers."""
    t, expected, likelihood = np.full((known + 1, words), 1 / words), np.zeros(known + 1), []
    for _ in range(iterations):
        counts, log_p = np.zeros_like(t), 0.0
        for given, sentence in pairs:
            rows = [0, *(1 + g for g in given)]
            for w in sentence:
                total = sum(t[r, w] for r in rows)
                log_p += math.log(total / len(rows))
                for r in rows:
                    counts[r, w] += t[r, w] / total
        likelihood.append(log_p)
        expected = counts.sum(axis=1)
        t = counts / np.where(expected == 0, 1, expected)[:, None]
    return EM(t, expected, likelihood)


@dataclass
class Direction:
    """Words given words of the other language."""

    t: dict[tuple[str, str], float]  # by given word and word; those left out are 0
    share: dict[str, float]
    fertility: dict[str, float]

    def p(self, word: str, given: str) -> float:
        """t(word | given)."""
        return self.t.get((self.known(given, self.fertility), self.known(word, self.share)), 0.0)

    def smooth(self, word: str, given: str) -> float:
        return (1 - SMOOTHING) * self.p(word, given) + SMOOTHING * self.share[self.known(word, self.share)]

    @staticmethod
    def known(word: str, words: dict[str, float]) -> str:
        return word if word in words else UNKNOWN


def vocabulary(sentences: Sequence[Sentence]) -> list[str]:
    counts = Counter(word for sentence in sentences for word in sentence)
    return [UNKNOWN, *(word for word in sorted(counts) if counts[word] >= LEAST)]


def direction(given: Sequence[Sentence], texts: Sequence[Sentence], iterations: int) -> Direction:
    sides = []
    for sentences in (given, texts):
        names = vocabulary(sentences)
        numbers = [[names.index(word) if word in names else 0 for word in sentence] for sentence in sentences]
        sides.append((names, numbers))
    (from_, given_numbers), (to, numbers) = sides
    em = dense_em(list(zip(given_numbers, numbers, strict=True)), len(from_), len(to), iterations)
    rows = [NULL, *from_]
    t = {(g, w): float(np.float32(em.t[r, c])) for r, g in enumerate(rows) for c, w in enumerate(to)}
    counts = Counter(n for sentence in numbers for n in sentence)
    share = {w: (counts[c] + 1) / (counts.total() + len(to)) for c, w in enumerate(to)}
    times = Counter(n for sentence in given_numbers for n in sentence)
    occurs = {g: times[r - 1] if r else len(given) for r, g in enumerate(rows)}
    fertility = {g: float(em.expected[r] / max(occurs[g], 1)) for r, g in enumerate(rows)}
    return Direction({key: p for key, p in t.items() if p >= SMALL}, share, fertility)


def columns(source: Sentence, text: Sentence, forward: Direction, backward: Direction) -> dict[str, float]:
    """What is said of one candidate."""
    S, T = len(source), len(text)
    given, said = [NULL, *source], [NULL, *text]
    target = sum(math.log(sum(forward.smooth(w, g) for g in given) / (S + 1)) for w in text)
    back = sum(math.log(sum(backward.smooth(s, g) for g in said) / (T + 1)) for s in source)
    gives = [sum(forward.smooth(w, s) / sum(forward.smooth(w, g) for g in given) for w in text) for s in source]
    means = [forward.fertility[forward.known(s, forward.fertility)] for s in source]
    return {
        "target": target,
        "target-rate": target / max(T, 1),
        "source": back,
        "source-rate": back / max(S, 1),
        "inserted": sum(all(forward.p(w, s) < LINK for s in source) for w in text),
        "idle": sum(all(backward.p(s, w) < LINK for s in source) for w in text),
        "deleted": sum(all(backward.p(s, w) < LINK for w in text) for s in source),
        "unsaid": sum(all(forward.p(w, s) < LINK for w in text) for s in source),
        "fertility": sum(abs(phi - mean) for phi, mean in zip(gives, means, strict=True)),
    }
