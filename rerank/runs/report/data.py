"""The content of a report; the pipeline fills these, everything in this package reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from rerank.runs.report.plot import Figure
from rerank.runs.report.table import TextTable


class ShownContribution(NamedTuple):
    """One feature's part in the choice of a candidate over the base candidate: ``difference`` is the feature's value on
    the chosen one minus its value on the base candidate, ``contribution`` is weight · difference."""

    feature: str
    weight: float
    difference: float
    contribution: float


class ShownCandidate(NamedTuple):
    """One candidate of a list: the model's score, the base score, its gain, and its text.

    ``role``: which of base, chosen and oracle it is, separated by commas.
    """

    score: float
    base: float
    gain: float
    text: str
    role: str = ""


class ShownColumn(NamedTuple):
    """A score column of a list: its values for the base candidate and for the chosen one."""

    name: str
    base: float
    chosen: float


@dataclass(frozen=True)
class Example:
    """One list of a split, shown in full.

    ``gold``, ``base`` and ``chosen`` are the reference, the generator's best candidate and the model's: bracketed trees
    for the task ``parse``, plain text for others, where ``gold`` has one reference per line. The gains are
    sentence-level qualities as the corpus holds them (fractions). ``contributions``: the strongest ones first.
    ``source``: the input, where it is known. ``candidates``: all of them, in the model's order. ``columns``: the scores
    that the list brings.
    """

    split: str
    list_id: str
    gold: str
    base: str
    chosen: str
    base_gain: float
    chosen_gain: float
    oracle_gain: float
    contributions: Sequence[ShownContribution] = ()
    source: str | None = None
    candidates: Sequence[ShownCandidate] = ()
    columns: Sequence[ShownColumn] = ()


@dataclass(frozen=True)
class Curve:
    """The course of one run: what had happened when ``samples[i]`` lists had been processed (counted over all epochs).

    ``mistakes`` (cumulative) and ``nonzero_weights`` belong to ``samples``; ``dev_scores``, the metric's primary
    measure on the dev split, to ``dev_samples`` (one per epoch).

    Raises
    ------
    ValueError: sequences that belong together differ in length.
    """

    run: str
    seed: int
    samples: Sequence[int]
    mistakes: Sequence[int]
    nonzero_weights: Sequence[int]
    dev_samples: Sequence[int] = ()
    dev_scores: Sequence[float] = ()

    def __post_init__(self) -> None:
        lengths = {len(self.samples), len(self.mistakes), len(self.nonzero_weights)}
        if len(lengths) > 1 or len(self.dev_samples) != len(self.dev_scores):
            raise ValueError(f"run {self.run}, seed {self.seed}: a curve needs one value for every sample")


@dataclass(frozen=True)
class LearningCurve:
    """Scores of models that were trained on so many lists (or examples): by split, one per entry of ``sizes``.

    ``verdict``: a sentence on whether more of them would help; ``unit``: what they are.
    """

    sizes: Sequence[int]
    scores: Mapping[str, Sequence[float]]
    verdict: str
    unit: str = "lists"


@dataclass(frozen=True)
class Report:
    """Everything that the report of a run over lists shows.

    Parameters
    ----------
    metrics: the content of metrics.json; ``runs`` holds all runs of the recipe, the top level the chosen one. A run's
        name and seed identify it; runs with one name and one learner are taken to be the same run with several seeds.
        ``dev_split`` names the split that runs are chosen on, if that is not "dev"; a run's ``dev`` is its score there.
    recipe: the resolved recipe, as YAML.
    date: when the run ended; ``seconds``: how long it took.
    curves: one for every run that kept a history.
    figures: those that the recipe asks for.
    examples: in the order they are shown.
    changes: how many lists got better or worse; losses: by split, where it gains and loses; weights: of the model.
    learning: how results depend on the number of training lists.
    environment: lines about machine, Python and libraries.
    """

    metrics: dict[str, Any]
    recipe: str
    date: datetime
    seconds: float
    curves: Sequence[Curve] = ()
    figures: Sequence[Figure] = ()
    examples: Sequence[Example] = ()
    environment: Sequence[str] = ()
    changes: TextTable | None = None
    losses: Mapping[str, Sequence[TextTable]] = field(default_factory=dict)
    weights: Sequence[TextTable] = ()
    learning: LearningCurve | None = None
