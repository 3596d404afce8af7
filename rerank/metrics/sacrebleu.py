"""What the metrics that sacrebleu defines share: final figures and signatures are sacrebleu's own."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.metrics.text import TextMetric, check_aligned, transposed


class SacrebleuMetric(TextMetric):
    """A metric whose rows of statistics are this program's, and whose scores of whole corpora are sacrebleu's."""

    @abstractmethod
    def make_scorer(self) -> Any:
        """sacrebleu's metric with these settings; a call loads sacrebleu, which takes a while."""

    def corpus(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
        check_aligned(hypotheses, references)
        if not hypotheses:
            return self.report(np.zeros(len(self.columns)), np.zeros(len(self.reference_columns)))
        return self.figures(scorer(self).corpus_score(list(hypotheses), transposed(references)))

    def figures(self, score: Any) -> dict[str, float]:
        """A score from sacrebleu with the keys of ``report``."""
        return {self.primary: float(score.score)}

    def corpus_signature(self, references: Sequence[Sequence[str]]) -> str:
        """sacrebleu's signature of ``corpus``, e.g. ``nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0``."""
        counts = {len(texts) for texts in references}
        return f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}|{self.scorer_signature()}"

    @property
    def signature(self) -> str:
        """sacrebleu's signature without the number of references, which depends on the data."""
        return f"{self.name}|{self.scorer_signature()}"

    def scorer_signature(self) -> str:
        """sacrebleu's signature for these settings."""
        own = scorer(self)
        return str(type(own)._SIGNATURE_TYPE({**own.__dict__, "num_refs": None}).format())

    def prepared(self, texts: Sequence[bytes]) -> list[bytes]:
        """The texts as sacrebleu prepares them, with words separated by white space."""
        prepare = scorer(self)._preprocess_segment
        return [encoded(prepare(decoded(text))) for text in texts]


@cache
def scorer(metric: SacrebleuMetric) -> Any:
    """sacrebleu's metric, made only once for equal settings."""
    return metric.make_scorer()
