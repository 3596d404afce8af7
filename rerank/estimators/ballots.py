"""The updates of all passes so far and the examples that caused them: what voted predictions are made from."""

from dataclasses import replace

import numpy as np

from rerank.data.labelled import Labelled
from rerank.learn.base import Learner
from rerank.learn.log import UpdateLog
from rerank.learn.voting.votes import Votes


class Ballots:
    """A log over the examples of several batches: their updates in order, as if made on one corpus.

    Examples without an update are not kept.
    """

    def __init__(self) -> None:
        self._examples: list[Labelled] = []
        self._logs: list[dict[str, np.ndarray]] = []

    def __len__(self) -> int:
        """How often updates were added."""
        return len(self._logs)

    def add(self, log: UpdateLog, examples: Labelled) -> None:
        """The updates of further passes, made on ``examples``."""
        arrays, k = log.arrays(), len(examples.classes)  # k candidates per example
        used, place = np.unique(arrays["lists"], return_inverse=True)
        kept = sum(part.size for part in self._examples)
        cause, choice = np.divmod(arrays["candidate"], k)
        self._examples.append(examples.take(used))
        self._logs.append(
            arrays | {"lists": kept + place, "candidate": (kept + np.searchsorted(used, cause)) * k + choice}
        )

    def votes(self, learner: Learner) -> Votes:
        """All predictors of ``learner`` from the first."""
        joined = {
            name: np.concatenate([log[name] for log in self._logs]) for name in ("lists", "candidate", "a", "rate")
        }
        entries = np.concatenate([np.diff(log["first"]) for log in self._logs])
        survived = [log["survived"][:-1] for log in self._logs] + [self._logs[-1]["survived"][-1:]]
        log = UpdateLog.from_arrays(
            joined
            | {
                "first": np.concatenate([[0], np.cumsum(entries)]).astype(np.int64),
                "survived": np.concatenate(survived),
            }
        )
        return learner.votes(log, join(self._examples).corpus())


def join(parts: list[Labelled]) -> Labelled:
    """The examples of all ``parts`` in order; they have the same classes and columns."""
    rows = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.rows) for part in parts]))])
    return replace(
        parts[0],
        rows=rows,
        columns=np.concatenate([part.columns for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        label=np.concatenate([part.label for part in parts]),
        weight=np.concatenate([part.weight for part in parts]),
    )
