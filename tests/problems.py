"""Random lists of dense features with the statistics of a metric, for tests of what optimises one."""

from typing import ClassVar

import numpy as np

from rerank.metrics.metric import Metric
from rerank.metrics.ngrams import Bleu
from rerank.metrics.parseval import Parseval
from rerank.metrics.wer import Wer


class Ratio(Metric):
    """right / asked, of whole numbers: sums have no rounding."""

    name: ClassVar[str] = "ratio"
    primary: ClassVar[str] = "ratio"
    columns: ClassVar[tuple[str, ...]] = ("right", "unused")
    reference_columns: ClassVar[tuple[str, ...]] = ("asked",)
    signature = "ratio"

    def scores(self, stats, reference):
        return stats[..., 0] / np.maximum(reference[..., 0], 1)

    def report(self, stats, reference):
        return {"ratio": float(self.scores(stats, reference))}


class Errors(Ratio):
    lower_is_better: ClassVar[bool] = True
    perfect_gain: ClassVar[float] = 0.0


def problem(seed: int, *, lists: int = 6, longest: int = 5, width: int = 3, metric: Metric | None = None, whole=False):
    """lists, features, stats, reference of random lists: some are empty, some candidates are alike."""
    random = np.random.default_rng(seed)
    metric = metric or Ratio()
    offsets = np.cumsum([0, *random.integers(0, longest + 1, lists)])
    N = int(offsets[-1])
    features = random.integers(-3, 4, (N, width)) / 2 if whole else random.standard_normal((N, width))
    for y in range(1, N):
        if random.random() < 0.2:
            features[y] = features[y - 1]
    if isinstance(metric, Bleu):
        total = np.sort(random.integers(1, 20, (N, 4)), axis=1)[:, ::-1]
        correct = np.floor(total * random.random((N, 1)))
        stats = np.hstack([correct, total, total[:, :1], np.zeros((N, 1))])
        reference = random.integers(5, 20, (lists, 1))
    else:
        stats = random.integers(0, 9, (N, len(metric.columns)))
        reference = random.integers(20, 30, (lists, len(metric.reference_columns)))
    return offsets, features, stats.astype(float), reference.astype(float)


METRICS = {"ratio": Ratio(), "errors": Errors(), "bleu": Bleu(), "parseval": Parseval(), "wer": Wer()}
