"""The weight of the base score: little while a learner trains, and the best on held-out lists afterwards.

A predictor scores γ·b(y) + w·φ(y). What w is worth compared with b depends on the learner, its step and the number of
lists, so no single number suits all. With ``base: auto`` a learner trains with START_WEIGHT/σ, σ being the standard
deviation of base scores from their lists' means (dense columns are divided by theirs too), and γ ≥ 0 is searched for on
held-out lists after every epoch: exactly, since the metric is constant in γ except where some list's best candidate
changes (Och 2003, section 4).

The best of so many intervals is the best by chance where there are few lists. With fewer than MIN_LISTS_FOR_SEARCH, γ
comes from the most likely weights of the two columns w·φ(y) and b(y), with a penalty (see ``maxent``), unless the base
is as good as what these choose.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.data.corpus import Corpus, standard_scale
from rerank.learn.learner import Learner, Weights, learners
from rerank.learn.mert import ErrorSurface, Line
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import base_unit, scores
from rerank.learn.train import Epoch, Training
from rerank.metrics.metric import Metric, oracles, scored_rows

AUTO = "auto"
# The weight in training, in standard deviations. Chosen on the last 1,500 of GUM's training lists, with 700 and 8,007
# lists to train on and twelve settings of nine learners: from 0 to 0.03 means are the same, from 0.1 on they fall.
START_WEIGHT = 0.01
# Re-splits of five sets (samples of language models, transcripts) with 60, 200 and 500 lists to choose on: the likely γ
# is .05 points better than the best on average: from 2.5 worse to 2.2 better with 60, from .3 worse to .9 better else.
MIN_LISTS_FOR_SEARCH = 500
MAX_LIKELY_GAMMA = 1000.0  # of γ, in units of deviations: where the learned score is of no use, or harms
MIN_WIDTH = 1e-6  # of γ: shorter intervals are not chosen. Windows over neighbours brought nothing on those lists.
MAX_GAMMA = 1e300
ROUNDING = 1e-12  # of a score: scores this near to the best count as equally good


def make_learner(settings: Mapping[str, Any], key: str = "learner", *, base: float = 1.0) -> Learner:
    """The learner that a recipe describes; ``base``: its weight of the base score where the recipe says "auto"."""
    setting = settings.get("base")
    if isinstance(setting, str) and setting != AUTO:
        raise RecipeError(f"found {setting!r}; expected a finite number from 0, or {AUTO}", key=f"{key}.base")
    if setting != AUTO:
        return build(learners, settings, key)
    learner = build(learners, {name: value for name, value in settings.items() if name != "base"}, key)
    return replace(learner, base=base)


def start_weight(lists: Corpus) -> float:
    """START_WEIGHT/σ of training lists; START_WEIGHT where base scores are all alike within lists."""
    return START_WEIGHT * (base_unit(lists) or 1.0)


def best_weight(line: Line, sign: float = 1.0) -> float | None:
    """The γ > 0 in the middle of a line's best interval (the widest of equally good ones); None if γ changes nothing.

    ``sign``: what scores are multiplied by so that higher is better. The last interval, in which the base score alone
    decides, counts as long as twice its beginning.
    """
    first, last = np.searchsorted(line.edges, 0.0, side="right"), np.searchsorted(line.edges, MAX_GAMMA)
    edges, levels = line.edges[first:last], sign * line.scores[first : last + 1]
    if not edges.size:
        return None
    ends = np.concatenate([[0.0], edges, [3 * edges[-1]]])
    width, middle = np.diff(ends), (ends[1:] + ends[:-1]) / 2
    levels[width <= MIN_WIDTH * middle] = -np.inf
    top = np.flatnonzero(levels >= levels.max() - ROUNDING * np.abs(levels.max()))
    return float(middle[top[np.argmax(width[top])]])


@dataclass(frozen=True)
class BaseSearch:
    """The search for γ on held-out lists ``dev``. Higher scores are better, whatever the metric."""

    dev: Corpus
    metric: Metric

    @cached_property
    def base_score(self) -> float:
        """The score of the base itself."""
        return self._score(scored_rows(self.dev, self.metric, self.dev.base))

    def __call__(self, weights: Weights) -> tuple[Weights, float]:
        """``weights`` with the best weight of the base score (their own where it changes nothing), and the score."""
        s = scores(self.dev, Weights(weights.w, 0.0))
        if self.dev.list_count < MIN_LISTS_FOR_SEARCH and (gamma := self.likely_weight(s)) is not None:
            score = self._score(self._rows(s, gamma))
            if score > self.base_score:
                return Weights(weights.w, gamma), score
        best = best_weight(self.line(s), self.metric.sign)
        gamma = weights.base if best is None else best
        return Weights(weights.w, gamma), self._score(self._rows(s, gamma))

    def observe(self, epoch: Epoch) -> None:
        """Give the predictor of an epoch its best weight; epochs are compared by its score."""
        epoch.weights, epoch.score = self(epoch.weights)
        epoch.line |= {"base_weight": epoch.weights.base, "dev": epoch.score}

    def finish(self, training: Training, predictor: str) -> None:
        """Give predictors other than the one that was observed their best weights too."""
        training.weights |= {name: self(other)[0] for name, other in training.weights.items() if name != predictor}

    def _rows(self, s: np.ndarray, gamma: float) -> np.ndarray:
        """float64 [L, K]: the statistics of what s(y) + γ·b(y) chooses; s: float64 [N]."""
        return scored_rows(self.dev, self.metric, s + gamma * self.dev.base)

    def likely_weight(self, s: np.ndarray) -> float | None:
        """The most likely γ where candidates score s(y) + γ·b(y), any candidate with the best gain of its list being
        right. None if s or b says nothing."""
        lists, size = self.dev, s.size
        _, exponent = np.frexp(np.abs(s).max(initial=0))  # of 2: float32 then holds scores of any size
        column, value = np.zeros(size, np.int32), np.ldexp(s, -exponent).astype(np.float32)
        corpus = replace(lists, rows=np.arange(size + 1), columns=column, values=value, width=1, free=1)
        unit = base_unit(lists)
        if unit is None:
            return None
        model = Maxent(l2=1.0, base=0.0, base_rate=unit)
        state = model.init(1)
        model.solve(corpus, oracles(corpus), state, any_ties=True)
        w, gamma = float(state.cells[0]), max(0.0, float(state.cells[1]))
        if w == 0:
            return None
        limit = MAX_LIKELY_GAMMA * unit / float(standard_scale(corpus)[0])
        return float(np.ldexp(min(gamma / w, limit) if w > 0 else limit, exponent))

    def line(self, s: np.ndarray) -> Line:
        """The metric where candidates score s(y) + γ·b(y), for all γ."""
        dev, nothing = self.dev, np.zeros((s.size, 0))
        surface = ErrorSurface.of(dev.lists, nothing, dev.stats, dev.reference, self.metric, dev.base)
        return surface.line(s, surface.base)

    def _score(self, rows: np.ndarray) -> float:
        return self.metric.sign * self.metric.score(rows, self.dev.reference)
