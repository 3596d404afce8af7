"""One trained run of a recipe: kept on disk, evaluated."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import numpy as np

from rerank.base.progress import counting
from rerank.data.corpus import Corpus, offsets
from rerank.extraction.extraction import ExtractedSplit
from rerank.learn.base_weight import AUTO, make_learner
from rerank.learn.epoch import UpdateLog, Votes, replay_corpus
from rerank.learn.learner import Weights
from rerank.learn.scoring import best, scores
from rerank.metrics.bracket_model import BracketModel
from rerank.metrics.metric import Metric, chosen_rows, list_gains, scored_rows, usual_scores
from rerank.models.provenance import Decision, Decoding, Kind
from rerank.parts import trees as tree_readers
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.sections import HOLDOUT
from rerank.runs.compared import Compared
from rerank.storage.outputs import Work


@dataclass(eq=False)
class Run:
    """A trained run: its recipe (one learner, one seed), predictors, history, and what was evaluated."""

    name: str
    recipe: ListRecipe
    weights: dict[str, Weights]
    state: dict[str, np.ndarray]
    log: dict[str, np.ndarray]  # UpdateLog.arrays, empty where nothing was kept
    columns: np.ndarray | None  # bool [D]: the columns that feature selection left, None for all
    training: dict[str, Any]
    history: list[dict[str, Any]]
    data: tuple[str, ...]  # digests of the lists and the code that it depends on, the lists of training first
    held_out: np.ndarray  # [N']: scores of its last lists, without training on them
    selections: dict[str, Compared] = field(default_factory=dict)
    choices: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    decodings: dict[str, Decoding] = field(default_factory=dict)  # by kind, as they were tuned
    brackets: BracketModel | None = None  # where it was learned how to fuse, and
    fusion_point: tuple[float, float] = (0.0, 0.0)  # the threshold and slack that go with it
    path: Path | None = None  # where it was read from, and unfinished work on it is kept
    _votes: Votes | None = None

    @property
    def decision(self) -> Decision:
        """The decision of this run's model: as it was tuned on dev, else by the recipe's predictor."""
        usual = self.recipe.predictor
        used = self.training.get("decode", {}).get("use") or usual
        return Decision.model_validate({"predictor": used, "ranked_by": usual})

    @property
    def dev_score(self) -> float | None:
        """The metric on dev at the epoch that was kept, or of the tuned predictor, or of the base where the model is
        nothing else; None without a dev split."""
        if "dev" in self.training.get("mert", {}):
            return float(self.training["mert"]["dev"])
        if self.training["base"]["kept"]:
            dev = self.training["base"]["dev"]
            return None if dev is None else float(dev)
        if "ensemble" in self.training:
            return float(self.training["ensemble"]["dev"])
        line = next((line for line in self.history if line["epoch"] == self.training["epochs"]), {})
        return float(line["dev"]) if "dev" in line else None

    def scores(self, corpus: Corpus) -> np.ndarray:
        """float64 [N]: the scores of all candidates by the run's predictor."""
        return scores(corpus, self.weights[self.recipe.predictor])

    def votes(self, corpus: Corpus) -> Votes | None:
        """The predictors, from the updates repeated on the training corpus; None where they were not kept."""
        if self._votes is None and self.log and self.recipe.training.vote:
            lists = corpus.take_share(self.recipe.training.share, self.recipe.seed)
            lists = lists if self.columns is None else lists.keep_columns(self.columns)
            learner = make_learner(self.recipe.learner, base=self.training["base"]["votes"])
            self._votes = learner.votes(*replay_corpus(UpdateLog.from_arrays(self.log), lists))
        return self._votes

    def evaluate(
        self, splits: Mapping[str, ExtractedSplit], training: Corpus, metric: Metric, others: Mapping[str, Weights]
    ) -> None:
        """Choose from the lists of splits by base score, oracle, all predictors, and those that are no part of it."""
        votes = None if metric.ordered or not splits else self.votes(training)
        self._votes = None  # they take much memory, and can be repeated
        for split, lists in splits.items():
            corpus, weights = lists.corpus, {**self.weights, **others}
            by = usual_scores(corpus, metric) | {name: scores(corpus, own) for name, own in weights.items()}
            choices = {name: best(corpus, own) for name, own in by.items()}
            rows = {name: scored_rows(corpus, metric, own) for name, own in by.items()}
            if votes is not None:
                from rerank.learn.voting import vote  # with its kernels

                start = time.perf_counter()
                with counting(f"vote {split}", total=corpus.list_count, unit="lists") as progress:
                    choices["voted"] = best(corpus, vote(votes, corpus, on_list=progress.advance))
                rows["voted"] = chosen_rows(corpus.stats, choices["voted"])
                self.training.setdefault("voting_seconds", {})[split] = round(time.perf_counter() - start, 3)
                if (bound := self.training.get("bound")) and corpus.list_count:  # beside its error of the vote, ours
                    worse = list_gains(corpus, choices["voted"]) < list_gains(corpus)
                    bound[f"vote_error_{split}"] = float(np.mean(worse))
            self.choices[split] = choices
            self.selections[split] = Compared(metric, corpus.reference, rows, ids=lists.ids, **self.recipe.testing)

    def take_over(self, split: str, lists: ExtractedSplit, parts: Sequence["Run"]) -> None:
        """Score on a split what runs like this one, trained without a section of it each, selected from theirs.

        Where one has no such predictor, as where nothing was learned, its best candidates stand in.
        """
        tables = [part.selections[split] for part in parts]
        starts = lists.corpus.lists[offsets([len(table.reference) for table in tables])]
        picks = [
            {name: np.where(y < 0, -1, y + start) for name, y in part.choices[split].items()}
            for part, start in zip(parts, starts[:-1], strict=True)
        ]
        usual = {"first": "base"}
        rows, self.choices[split] = (
            {
                name: np.concatenate([one.get(name, one[usual.get(name, self.recipe.predictor)]) for one in each])
                for name in dict.fromkeys(chain(*each))
            }
            for each in ([table.rows for table in tables], picks)
        )
        self.selections[split] = replace(tables[0], reference=lists.corpus.reference, rows=rows, ids=lists.ids)
        self.training |= {key: value for key, value in parts[0].training.items() if key == "votes"}

    def entry(self, *, tests: bool = True) -> dict[str, Any]:
        """The run in metrics.json; tests: whether rows are tested against the base; alike: ways to decode that choose
        the same in every list as the predictor, or as another one."""
        ways = dict.fromkeys([self.recipe.predictor, *get_args(Kind)])
        alike = {
            split: same
            for split, table in self.selections.items()
            if (same := table.repeats(name for name in ways if name in table.rows))
        }
        return {
            "name": self.name,
            "seed": self.recipe.seed,
            "learner": self.recipe.learner,
            "ranked_by": self.recipe.predictor,
            "dev": self.dev_score,
            "training": self.training,
            "splits": {split: table.reports() for split, table in self.selections.items()},
            "significance": {split: each.significance() if tests else {} for split, each in self.selections.items()},
            **({"alike": alike} if alike else {}),
        }

    def save(self, work: Work) -> None:
        """Keep the run for ``--resume`` and for the stage ``test``; what was kept of its training is removed."""
        arrays = {name: weights.w for name, weights in self.weights.items()}
        arrays |= {f"state_{name}": array for name, array in self.state.items()}
        arrays |= {f"log_{name}": array for name, array in self.log.items()}
        arrays |= {"held": self.held_out} if self.held_out.size else {}
        arrays |= {} if self.columns is None else {"columns": self.columns}
        if (trees := self.weights["last"].trees) is not None:
            arrays["trees"] = trees.text
        header = {"training": self.training, "history": self.history}
        work.save(header | {"base": {name: weights.base for name, weights in self.weights.items()}}, arrays)
        for path in work.path.parent.glob(f"{work.path.stem}.*.npz"):
            path.unlink()

    @staticmethod
    def load(work: Work, name: str, recipe: ListRecipe, data: tuple[str, ...]) -> "Run | None":
        """The run that ``save`` kept, if it is there."""
        if (entry := work.load()) is None:
            return None
        header, arrays = entry
        trees = None
        if "trees" in arrays:
            trees = tree_readers.get(recipe.learner["name"])(arrays["trees"].tobytes(), arrays["last"].size)
        weights = {key: Weights(arrays[key], float(base), trees) for key, base in header["base"].items()}
        state, updates = (
            {key.removeprefix(part): array for key, array in arrays.items() if key.startswith(part)}
            for part in ("state_", "log_")
        )
        about, held_out = (header["training"], header["history"], data), arrays.get("held", np.zeros(0))
        return Run(name, recipe, weights, state, updates, arrays.get("columns"), *about, held_out, path=work.path)


def sibling_path(path: Path, stage: str) -> Path:
    """The file that keeps what is known of a stage of the run at ``path``."""
    return path.with_name(f"{path.stem}.{stage}.npz")


def weight_counts(weights: Mapping[str, Weights], predictor: str) -> dict[str, Any]:
    """The entry of metrics.json on the weights of a training."""
    return {
        "nonzero_weights": int(np.count_nonzero(weights[predictor].strength)),
        "nonzero_weights_last": int(np.count_nonzero(weights["last"].strength)),
        "base_weight": weights[predictor].base,
    }


log = logging.getLogger("rerank")
INTERVAL_ERRORS = 1.96  # standard errors: 95 % of a normal distribution


def choose(recipe: ListRecipe, runs: Sequence[Run], lists: Corpus | None, metric: Metric) -> tuple[Run, dict[str, Any]]:
    """The run that is served, and the entry ``choice`` of metrics.json; empty without ``lists`` set apart.

    Of the seeds of the chosen settings, it is the one with the best dev score.
    """
    if lists is None:
        return best_on_dev(runs, metric), {}
    seeds, sign = len(recipe.run_seeds), metric.sign
    groups = {str(first): runs[first : first + seeds] for first in range(0, len(runs), seeds)}
    rows = {
        key: np.stack([scored_rows(lists, metric, run.scores(lists)) for run in group]) for key, group in groups.items()
    }
    table = Compared(metric, lists.reference, rows, oracles=(), samples=1000, seed=recipe.seed)
    best, points = max(rows, key=lambda key: sign * table.score(key)), list[dict[str, Any]]()
    for key, group in groups.items():
        score, width = table.score(key), INTERVAL_ERRORS * table.error(key)
        devs = [run.dev_score for run in group if run.dev_score is not None]
        points.append(
            {
                "name": group[0].name,
                "seeds": len(group),
                "score": score,
                "interval": [score - width, score + width],
                "difference": table.difference(key, best),
                "error": 0.0 if key == best else table.error(key, best),
                "dev": float(np.mean(devs)) if devs else None,
                "nonzero_weights": float(np.mean([run.training["nonzero_weights"] for run in group])),
                "report": table.report(key),
            }
        )
    near = [k for k, point in enumerate(points) if sign * point["difference"] >= -point["error"]]
    number = min(near, key=lambda k: (points[k]["nonzero_weights"], -sign * points[k]["score"]))
    run, point = recipe.points()[number]
    line = {
        "split": HOLDOUT,
        "lists": lists.list_count,
        "best": groups[best][0].name,
        "chosen": points[number]["name"],
        "settings": {**run.set, **point},
        "points": [{**entry, "near": k in near} for k, entry in enumerate(points)],
    }
    log.info("best on %s: %s; simplest within one standard error: %s", HOLDOUT, line["best"], line["chosen"])
    return best_on_dev([*groups.values()][number], metric), line


def best_on_dev(runs: Sequence[Run], metric: Metric) -> Run:
    """The run with the best dev score, the first of equals."""
    return max(runs, key=lambda each: -np.inf if each.dev_score is None else metric.sign * each.dev_score)


def blind(recipe: ListRecipe, choice: Mapping[str, Any]) -> dict[str, Any]:
    """The entry ``blind`` of metrics.json: what was chosen on which split, and the test splits that are none of them
    and none of whose files those splits have."""
    data = recipe.data
    on: dict[str, list[str]] = {data.training: ["weights"]}
    if data.dev is not None:
        auto = any(single.recipe.learner.get("base") == AUTO for single in recipe.expand())
        kinds = {"epochs": True, "base weight": auto, "decoding": recipe.decoders, "seed": len(recipe.run_seeds) > 1}
        on.setdefault(data.dev, []).extend(kind for kind, there in kinds.items() if there)
    if len(recipe.points()) > 1:
        on.setdefault(HOLDOUT if choice else data.dev or data.training, []).append("settings")
    if (mert := getattr(recipe, "mert", None)) is not None:
        on.setdefault(mert.split, []).append("MERT")
    files = {path for split in on for path in data.files(split).get("nbest", ())}
    tests = [split for split in data.tests if split not in on and files.isdisjoint(data.files(split).get("nbest", ()))]
    return {"splits": tests, "chosen_on": on}
