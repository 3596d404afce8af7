from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rerank.metrics.text import TextMetric


@dataclass(frozen=True)
class Exact(TextMetric):
    """The share of texts that are equal to a reference; with ``lower``, whatever their case."""

    name: ClassVar[str] = "exact"
    primary = "exact"  # the key of its number in metrics.json
    columns = ("right",)
    reference_columns = ("texts",)
    lower: bool = False

    def stats(self, texts, references):
        golds = {self._form(text) for text in references}
        rows = [[float(self._form(text) in golds)] for text in texts]
        return np.array([1.0]), np.array(rows).reshape(len(texts), 1)

    def scores(self, stats, reference):
        return stats[..., 0] / np.maximum(reference[..., 0], 1)

    def _form(self, text):
        return text.lower() if self.lower else text
