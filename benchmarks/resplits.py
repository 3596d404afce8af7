"""Sums of members beside each of them, on fresh re-splits of lists with dense columns, or on generated lists.

    python benchmarks/resplits.py FOLDER [--base vote] [--metric gain] [--learn 100] [--seeds 9000 9040]
    python benchmarks/resplits.py generated [--learn 200] [--seeds 9000 9040]

Of all lists in FOLDER's train.jsonl.gz and dev.jsonl.gz, three quarters (or ``--learn``) are learned from and up to
1,500 of the others are chosen from; errors are lower bounds, as re-splits share lists. Those of ``generated.py`` are
drawn anew for every seed. Columns: the base score (majority vote, where that is the base); the best single column;
logistic regression of candidates (scikit-learn, C by five folds of lists; a candidate is right if it has the best gain
of its list, and not the worst of all); LightGBM (``lambdamart``, as many trees as are best on a tenth of the lists);
maxent with the best columns and penalty alone; the sum of members. The first three see dense columns alone. The last
column is the sum less the best of the first four, chosen by its mean.
"""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from generated import SETS
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GroupKFold

from rerank.contrib.search.lambdamart import vote_by_trees
from rerank.data.corpus import Corpus, dense_alone, free_values
from rerank.extraction.extraction import extract_training
from rerank.extraction.kinds import metric_of
from rerank.learn.folds import best_column, mixture, pad_weights, with_base_column
from rerank.learn.learner import Weights
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import rows_of_weights
from rerank.metrics.gain import Gain
from rerank.metrics.metric import Metric, oracles, owners, two_valued
from rerank.recipes.loading import read_settings
from rerank.runs.training import any_ties

warnings.filterwarnings("ignore", category=FutureWarning)  # of scikit-learn, on names of attributes
NAMES = "base", "best column", "LR", "LightGBM", "maxent", "sum"
PEERS = 4
CHOSEN = 1500  # lists that are chosen from, at most


def logistic(corpus: Corpus) -> Weights:
    """Logistic regression of candidates, with the base score as a column, in the units of the corpus."""
    owner = owners(corpus.lists)
    best = np.maximum.reduceat(corpus.gain, corpus.lists[:-1])[owner]
    right = (corpus.gain == best) & (corpus.gain > corpus.gain.min())
    x = np.column_stack([free_values(corpus), corpus.base])
    unit = x.std(axis=0) + (x.std(axis=0) == 0)
    folds = list(GroupKFold(5).split(x, right, owner))
    fitted = LogisticRegressionCV(Cs=np.logspace(-4, 2, 7), cv=folds, scoring="neg_log_loss", max_iter=500)
    w = fitted.fit(x / unit, right).coef_[0] / unit
    return Weights(w[:-1], float(w[-1]))


def predictors(corpus: Corpus, metric: Metric, *, ties: bool) -> list[Weights]:
    """What each of ``NAMES`` learns."""
    learner, dense, width = with_base_column(Maxent(), corpus), dense_alone(corpus), corpus.width
    members, fitted = mixture(learner, corpus, metric, oracles, any_ties=ties), dict[str, Weights]()
    alone = next(iter(members.penalties))
    for columns in {alone, *members.final_penalties()}:
        lists = dense if columns == "dense" else corpus
        made, state = replace(learner, l2=members.penalties[columns]), learner.init(lists.width)
        made.solve(lists, oracles(lists), state, any_ties=ties)
        fitted[columns] = made.last(state)
    (column,), trees = best_column(dense, metric), vote_by_trees(corpus, 1)
    assert column.weights is not None
    assert trees is not None
    base = Weights(np.zeros(width), 1.0)
    simple = [base, pad_weights(column.weights, width), pad_weights(logistic(dense), width), trees]
    return [*simple, pad_weights(fitted[alone], width), members.combine(fitted, width)]


Split = tuple[Corpus, Corpus]  # the lists that are learned from, and those that are chosen from


def compared(splits: Iterator[Split], metric: Metric, *, ties: bool) -> tuple[np.ndarray, float, float]:
    """The mean scores of all ``NAMES`` (float64), by how much the sum is better than the best peer, and the error."""
    reached = []
    for learned, apart in splits:
        predicted = predictors(learned, metric, ties=ties)
        reached.append([metric.score(rows_of_weights(apart, of, metric), apart.reference) for of in predicted])
    means = np.mean(reached, axis=0)
    ahead = metric.sign * (np.array(reached)[:, -1] - np.array(reached)[:, int(np.argmax(metric.sign * means[:PEERS]))])
    return means, float(ahead.mean()), float(ahead.std(ddof=1) / np.sqrt(ahead.size))


def resplit(lists: Corpus, learn: int | None, seeds: Sequence[int]) -> Iterator[Split]:
    """The lists of a folder in two parts, others for every seed."""
    for seed in range(*seeds):
        order = np.random.default_rng(seed).permutation(lists.list_count)
        size = learn or int(0.75 * order.size)
        learned, apart = (lists.take(np.sort(order[part])) for part in (slice(size), slice(size, size + CHOSEN)))
        yield replace(learned, free=learned.width), apart


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--base")
    parser.add_argument("--metric", default="gain")
    parser.add_argument("--learn", type=int)
    parser.add_argument("--seeds", type=int, nargs=2, default=(9000, 9040))
    arguments = parser.parse_args()
    print(f"| lists | {' | '.join(NAMES)} | sum less the best peer |\n|---{'|---' * (len(NAMES) + 1)}|")
    if arguments.folder == "generated":
        metric: Metric = Gain()
        for name, draw in SETS.items():
            draws = (np.random.default_rng(seed) for seed in range(*arguments.seeds))
            splits = ((draw(rng, arguments.learn or 200), draw(rng, CHOSEN)) for rng in draws)
            ties = two_valued(draw(np.random.default_rng(0), 10))
            print(row(name, metric, *compared(splits, metric, ties=ties)), flush=True)
        return
    reader = {"name": "jsonl"} | ({"base": arguments.base} if arguments.base else {})
    data = {"root": arguments.folder, "nbest": "{root}/{split}.jsonl.gz", "train": ["train", "dev"], "tests": []}
    data |= {"dev": None, "sources": None, "references": None, "reader": reader}
    task = "speech" if arguments.metric == "wer" else "ranking"
    recipe = read_settings(
        {"name": "resplits", "task": task, "metric": {"name": arguments.metric}, "features": {"set": "dense"},
         "data": data}
    )  # fmt: skip
    lists, metric = extract_training(recipe)[0].corpus, metric_of(recipe)  # type: ignore[arg-type]
    splits = resplit(lists, arguments.learn, arguments.seeds)
    found = compared(splits, metric, ties=any_ties(recipe, lists))  # type: ignore[arg-type]
    print(row(arguments.folder, metric, *found))


def row(name: str, metric: Metric, means: np.ndarray, ahead: float, error: float) -> str:
    """A line of the table."""
    return f"| {name} | {' | '.join(map(metric.text, means))} | {metric.signed(ahead)} ±{metric.text(error)} |"


if __name__ == "__main__":
    main()
