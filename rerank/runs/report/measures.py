"""The measures of a run: their keys in metrics.json, their headings, and how they are shown."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rerank.metrics.base import Metric
from rerank.metrics.bleu import Bleu
from rerank.metrics.chrf import Chrf
from rerank.metrics.gain import Counts, Gain
from rerank.metrics.parseval import Parseval
from rerank.metrics.text import Ter
from rerank.metrics.wer import Cer, Wer
from rerank.runs.report.numbers import Spread, fixed, signed


@dataclass(frozen=True)
class Measure:
    """One number of a metric's report: its key in metrics.json, its heading, and how the metric shows it.

    scale: 100 for fractions shown in percent. gain_scale: the same for the gains of candidates.
    """

    key: str
    heading: str
    name: str
    scale: float = 100.0
    gain_scale: float = 100.0
    digits: int = 2
    lower_is_better: bool = False

    def text(self, value: float | None) -> str:
        """``value`` in its scale."""
        return fixed(None if value is None else self.scale * value, self.digits)

    def signed(self, value: float | None) -> str:
        """A difference, with its sign."""
        return signed(None if value is None else self.scale * value, self.digits)

    def gain(self, value: float) -> str:
        """The gain of a candidate."""
        return fixed(self.gain_scale * value, self.digits)

    def spread(self, spread: Spread | None) -> str:
        """A score as ``83.75`` or, for several seeds, ``83.75 ±0.05``; nothing where there is none."""
        if spread is None:
            return ""
        mean = self.text(spread.mean)
        return mean if spread.deviation is None else f"{mean} ±{self.text(spread.deviation)}"

    def better(self, value: float) -> float:
        """``value``, negated where lower is better."""
        return -value if self.lower_is_better else value


def measure_of(metric: Metric | type[Metric], heading: str = "", name: str = "") -> Measure:
    """The measure that a metric is chosen by, as the metric shows it; by default under the metric's own name."""
    name = name or (f"{metric.name} (%)" if metric.percent == 100 else metric.name)
    scales = metric.percent, metric.gain_percent, metric.digits, metric.lower_is_better
    return Measure(metric.primary, heading or metric.name, name, *scales)


# In the order of the columns.
MEASURES = (
    Measure("precision", "P", "precision (%)"),
    Measure("recall", "R", "recall (%)"),
    measure_of(Parseval, "F", "F (%)"),
    Measure("exact_match", "exact match", "exact match (%)"),
    measure_of(Bleu, "BLEU", "BLEU"),
    measure_of(Chrf, "chrF", "chrF"),
    measure_of(Ter, "TER", "TER"),
    Measure("length_ratio", "length", "length ratio", scale=1.0),
    Measure("accuracy", "accuracy", "accuracy (%)"),
    Measure("error", "error", "error (%)", lower_is_better=True),
    measure_of(Wer, "WER", "word error rate (%)"),
    measure_of(Cer, "CER", "character error rate (%)"),
    measure_of(Gain(), "gain", "gain"),
    Measure("ndcg", "NDCG", "NDCG (%)"),
    Measure("mrr", "MRR", "MRR (%)"),
)


def own_measure(metric: Metric) -> dict[str, Any]:
    """The entry of metrics.json on how a user's metric, or one with a cut-off, beta or direction, is shown; nothing for
    others."""
    own = metric.ordered or isinstance(metric, Counts) or (isinstance(metric, Gain) and metric.lower_is_better)
    listed = type(metric).__module__.startswith("rerank.") and not own
    return {} if listed else {"own_measure": asdict(measure_of(metric, metric.primary, metric.primary))}


def all_measures(metrics: Mapping[str, Any]) -> tuple[Measure, ...]:
    """The measures that there are, that of a user's own metric first, in the order of the columns."""
    if "own_measure" not in metrics:
        return MEASURES
    own = Measure(**metrics["own_measure"])
    return own, *(measure for measure in MEASURES if measure.key != own.key)


def measures_of(metrics: Mapping[str, Any]) -> tuple[Measure, ...]:
    """The measures that the systems of ``metrics`` (metrics.json) are reported with, in the order of the columns."""
    reported = {key for systems in metrics.get("splits", {}).values() for report in systems.values() for key in report}
    return tuple(measure for measure in all_measures(metrics) if measure.key in reported)


def primary_of(metrics: Mapping[str, Any]) -> Measure:
    """The measure that runs are compared by: what ``metrics`` says under ``measure``; F where there is none."""
    measures = {measure.key: measure for measure in all_measures(metrics)}
    return measures.get(str(metrics.get("measure")), measures["f1"])
