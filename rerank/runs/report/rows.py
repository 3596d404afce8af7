"""The results of a run as rows: what runs are compared with, then each run with each of its predictors.

Runs that differ only in the seed form one group, and their numbers are one mean with a standard deviation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rerank.runs.report.measures import primary_of
from rerank.runs.report.numbers import Spread, p_value
from rerank.storage.strict_json import as_json

PREDICTORS = ("average", "voted", "mert", "mbr", "fuse", "learned")
BASELINES = {  # what runs are compared with: its name, and the predictor
    "base": ("base", ""),
    "first": ("first candidate", ""),
    "oracle": ("oracle", ""),
    "reranked": ("reranked", ""),
    "logistic": ("dense columns alone", "logistic"),
}
SIGNIFICANT_BELOW = 0.05  # the p
TESTS_OF_MEASURE = ("approximate_randomization", "paired_bootstrap")  # whose difference is that of corpus scores


def verdict(test: Mapping[str, Any], *, lower_is_better: bool = False, amount: str = "") -> str:
    """The outcome of a test of A against B: a phrase that says how A is.

    test: ``difference`` (of A from B), ``p`` and ``test``, as in metrics.json or by ``compare_with_base``.
    lower_is_better: a property of the measure, which the resampling tests compare; the differences of the other tests
    are in gains and in right answers. amount: the size of the difference in the measure, with its name.

    >>> verdict({"test": "paired_bootstrap", "difference": 0.0153, "p": 0.0001}, amount="1.53 F")
    '1.53 F better, p < .001'
    >>> verdict({"test": "mcnemar", "difference": -0.02, "p": 0.005})
    'worse, p .005'
    >>> verdict({"test": "paired_bootstrap", "difference": 0.001, "p": 0.43}, amount="0.10 F")
    'the difference is not significant, p .430'
    """
    chance, difference = f"p {p_value(test['p'])}", test["difference"]
    if test["p"] < SIGNIFICANT_BELOW and difference == 0:
        return f"the seeds disagree, {chance}"
    if not test["p"] < SIGNIFICANT_BELOW:
        return f"{'the difference is ' if amount else ''}not significant, {chance}"
    of_measure = test["test"] in TESTS_OF_MEASURE
    better = (difference < 0) == (lower_is_better and of_measure)
    return f"{f'{amount} ' if amount and of_measure else ''}{'better' if better else 'worse'}, {chance}"


@dataclass(frozen=True)
class Group:
    """The runs of one name and one setting, seed by seed."""

    label: str
    runs: tuple[Mapping[str, Any], ...]
    chosen: bool

    @property
    def ranked_by(self) -> str:
        """The predictor whose scores rank lists in these runs."""
        return str(self.runs[0].get("ranked_by", PREDICTORS[0]))

    def score(self, split: str, predictor: str, key: str) -> Spread | None:
        """One measure of one predictor on a split."""
        return Spread.known(_get(run, "splits", split, predictor, key) for run in self.runs)

    def training(self, key: str) -> Spread | None:
        """One number of the training."""
        return Spread.known(_get(run, "training", key) for run in self.runs)


@dataclass(frozen=True)
class Row:
    """A line of a results table.

    ``predictor`` is empty for base and oracle; ``difference`` is the primary measure less the base's, ``test`` what
    ``compare_with_base`` gives. ``first`` marks the first line of a group, which alone shows what belongs to the group:
    its name and ``nonzero`` weights.
    """

    name: str
    predictor: str
    scores: Mapping[str, Spread | None]
    first: bool = True
    chosen: bool = False
    seeds: int = 1
    nonzero: Spread | None = None
    difference: float | None = None
    test: Mapping[str, Any] | None = None

    @property
    def title(self) -> str:
        """The name, and how many seeds there are if several."""
        return self.name if self.seeds == 1 else f"{self.name} ({self.seeds} seeds)"


def runs_of(metrics: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """All runs; a metrics.json without ``runs`` is one run."""
    runs: Sequence[Mapping[str, Any]] = metrics.get("runs") or [metrics]
    return runs


def chosen_of(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """The run that ``metrics`` names under ``chosen``, else the first."""
    runs, chosen = runs_of(metrics), metrics.get("chosen") or {}
    return next((run for run in runs if all(run.get(key) == value for key, value in chosen.items())), runs[0])


def groups_of(metrics: Mapping[str, Any]) -> list[Group]:
    """All runs, grouped where they differ only in the seed, in the order of the first of each group.

    Groups of one name are told apart by the settings of the learner in which they differ.
    """
    by_setting: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in runs_of(metrics):
        setting = as_json(run.get("learner"), sort_keys=True, default=str)
        by_setting.setdefault((str(run.get("name", "model")), setting), []).append(run)
    chosen, groups = chosen_of(metrics), []
    for (name, _), runs in by_setting.items():
        same_name = [
            other[0].get("learner") or {} for (other_name, _), other in by_setting.items() if other_name == name
        ]
        settings = (runs[0].get("learner") or {}).items()
        differing = {key: value for key, value in settings if any(other.get(key) != value for other in same_name)}
        texts = [
            f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}" for key, value in differing.items()
        ]
        label = f"{name} ({', '.join(texts)})" if len(same_name) > 1 else name
        groups.append(Group(label, tuple(runs), chosen=any(run is chosen for run in runs)))
    return groups


def dev_of(metrics: Mapping[str, Any]) -> str:
    """The name of the split that runs are chosen on: what ``metrics`` says under ``dev_split``, else "dev"."""
    return str(metrics.get("dev_split") or "dev")


def splits_of(metrics: Mapping[str, Any]) -> list[str]:
    """The splits with results, test splits before dev and train."""
    last = {"train": 2, dev_of(metrics): 1}
    return sorted(metrics.get("splits", {}), key=lambda split: last.get(split, 0))


def result_rows(metrics: Mapping[str, Any], split: str) -> list[Row]:
    """The lines of the results on ``split``: BASELINES, ways to choose that need no training where candidates have
    answers (``runs.ways``), and each group's PREDICTORS; before these "last", where it ranks the lists of the run."""
    systems, primary = metrics.get("splits", {}).get(split, {}), primary_of(metrics).key
    base, rows = _get(systems, "base", primary), []
    votes = {name: (name, "") for name in _get(metrics, "training", "votes", split) or ()}
    for name, (label, by) in (BASELINES | votes).items():
        if name in systems:
            scores = {key: Spread.known([value]) for key, value in systems[name].items()}
            test = compare_with_base([metrics], split, name)
            difference = systems[name][primary] - base if test is not None and base is not None else None
            rows.append(Row(label, by, scores, difference=difference, test=test))
    for group in groups_of(metrics):
        first = True
        for predictor in (*(["last"] if group.ranked_by == "last" else []), *PREDICTORS):
            reports = [report for run in group.runs if (report := _get(run, "splits", split, predictor)) is not None]
            keys = {key for report in reports for key in report}
            alike = all(_get(run, "alike", split, predictor) for run in group.runs)  # it chooses as another one does
            if not reports or (alike and predictor != decided_by(metrics)):
                continue
            score = group.score(split, predictor, primary)
            rows.append(
                Row(
                    name=group.label,
                    predictor=predictor,
                    scores={key: group.score(split, predictor, key) for key in keys},
                    first=first,
                    chosen=group.chosen,
                    seeds=len(reports),
                    nonzero=group.training("nonzero_weights"),
                    difference=score.mean - base if score and base is not None else None,
                    test=compare_with_base(group.runs, split, predictor),
                )
            )
            first = False
    return rows


def decided_by(metrics: Mapping[str, Any]) -> str:
    """The predictor of the chosen run that its model chooses by, which everything that is said of it is about."""
    return str(metrics.get("predictor", PREDICTORS[0]))


def written_score(group: Group, split: str, key: str) -> Spread | None:
    """The score of what MERT has tuned, where there is that, else of the predictor that ranks the lists of the runs."""
    return group.score(split, "mert", key) or group.score(split, group.ranked_by, key)


def compare_with_base(runs: Sequence[Mapping[str, Any]], split: str, predictor: str) -> dict[str, Any] | None:
    """The test of one predictor of some runs against the base, as in metrics.json; None if there is none.

    Over several seeds: the largest p, the widest interval and the mean of the differences, which is 0 where these
    disagree about its sign. An interval of something else than the measure, as with McNemar's test, is None.
    """
    tests = [test for run in runs if (test := _get(run, "significance", split, f"{predictor}_vs_base"))]
    if not tests:
        return None
    name, differences = str(tests[0].get("test", "")), [float(test["difference"]) for test in tests]
    lows, highs = zip(*(test["interval"] for test in tests), strict=True)
    agree = len(tests) == 1 or min(differences) * max(differences) > 0
    interval = (min(lows), max(highs)) if name in TESTS_OF_MEASURE else None
    mean = fmean(differences) if agree else 0.0
    return {"test": name, "difference": mean, "p": max(test["p"] for test in tests), "interval": interval}


def _get(tree: Mapping[str, Any], *path: str) -> Any:
    """The value that nested mappings hold at ``path``; None where it ends."""
    value: Any = tree
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
