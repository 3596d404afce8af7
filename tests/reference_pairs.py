"""Pair sources, naively: all pairs of a list that a learner may be shown, in turn."""

from typing import NamedTuple

import numpy as np
from reference import OF_GAINS, decision_gap, loss_of, oracle_and_rival

from rerank.learn.pairs import Oracle, PairSource, Sampled

WORD = 2**64 - 1


def splitmix(state: int) -> int:
    """The output of splitmix64 for a state (Steele et al. 2014, Fig. 16)."""
    z = state & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


Judged = tuple[int, int, bool, float, np.ndarray]  # a pair, whether it is a mistake, the loss, all coefficients


class Pairs(NamedTuple):
    """A source, and the seed of a training."""

    source: PairSource = Oracle()
    seed: int = 1

    def drawn(self, epoch: int, i: int, n: int) -> list[tuple[int, int]]:
        """The pairs of list i that are drawn in an epoch."""
        assert isinstance(self.source, Sampled)
        golden = 0x9E3779B97F4A7C15
        key = int(self.source.rule(self.seed, epoch).key)
        state, found = splitmix(key + (int(i) + 1) * golden), []
        for number in range(self.source.draws if n > 1 else 0):
            bits = splitmix(state + (number + 1) * golden)
            x, y = ((bits >> 32) * n) >> 32, ((bits & 0xFFFFFFFF) * (n - 1)) >> 32
            found.append((x, y + (y >= x)))
        return found

    def in_turn(
        self, epoch: int, i: int, f: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, tilt: float = 0.0
    ) -> list[tuple[int, int]]:
        """(y*, y') in the order in which they are learned from; the rivals of an oracle by score − tilt·gain."""
        everyone, t = range(f.size), self.source.tilt
        if isinstance(self.source, Sampled):
            better = {(x, y) if gain[x] > gain[y] else (y, x) for x, y in self.drawn(epoch, i, f.size)}
            apart = [pair for pair in better if gain[pair[0]] - gain[pair[1]] > self.source.threshold]
            return sorted(apart, key=lambda pair: (gain[pair[1]] - gain[pair[0]], pair))
        if self.source.name == "hope-fear":
            star = max(everyone, key=lambda y: (f[y] + t * gain[y], y == oracle, -y), default=-1)
            fears = [y for y in everyone if f[y] - t * gain[y] > f[star] - t * gain[star]]
            return [(star, y) for y in sorted(fears, key=lambda y: (t * gain[y] - f[y], y))]
        star, _ = oracle_and_rival(f, gain, oracle, any_ties)
        others = [y for y in everyone if y != oracle and not (any_ties and gain[y] == gain[oracle])]
        return [(star, y) for y in sorted(others, key=lambda y: (tilt * gain[y] - f[y], y))]

    def judge(
        self, epoch: int, i: int, loss: str, f: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool
    ) -> Judged | None:
        """What a loss makes of list i; None where it has no pair. Losses of whole lists know no pairs but oracles'."""
        if f.size == 0:
            return None
        asked = self
        if loss in ("log", *OF_GAINS):
            if loss == "log" and self.source.name == "hope-fear":
                oracle = max(range(f.size), key=lambda y: (f[y] + self.source.tilt * gain[y], y == oracle, -y))
            asked = Pairs()
        pairs = asked.in_turn(epoch, i, f, gain, oracle, any_ties)
        if not pairs:
            return None
        star, rival = pairs[0]
        mistake = not f[star] > f[rival]
        if loss == "cost" and asked.source.name == "oracle":
            star, rival = asked.in_turn(epoch, i, f, gain, oracle, any_ties, self.source.tilt)[0]
        return star, rival, mistake, *loss_of(loss, f, gain, star, rival, self.source.tilt, any_ties)

    def gap(self, loss: str, f: np.ndarray, gain: np.ndarray, rows: np.ndarray, size: float) -> float:
        """The smallest distance from a decision on a list that gains have a part in, relative to scores and gains."""
        if f.size == 0 or (self.source.name != "hope-fear" and loss != "cost"):
            return np.inf
        seen, t = np.column_stack([rows, gain]), self.source.tilt
        size += t * np.abs(gain).max()
        return min(decision_gap(f - t * gain, seen, size), decision_gap(f + t * gain, seen, size))


ORACLES = Pairs()
