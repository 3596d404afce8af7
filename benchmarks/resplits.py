"""Sums of members beside each of them, on fresh re-splits of lists with dense columns: means, and their differences.

    python benchmarks/resplits.py FOLDER [--base vote] [--metric gain] [--learn 100] [--seeds 9000 9040]

Of all lists in FOLDER's train.jsonl.gz and dev.jsonl.gz, three quarters (or ``--learn``) are learned from and up to
1,500 of the others are chosen from. Rows: the base score; the best single column; logistic regression of candidates
(scikit-learn, C by five folds of lists; a candidate is right if it has the best gain of its list, and not the worst of
all); maxent with the best penalty alone; the sum of members. Errors are lower bounds, as re-splits share lists.
"""

import argparse
import warnings
from dataclasses import replace

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GroupKFold

from rerank.data.corpus import Corpus
from rerank.extraction.extraction import extract_training
from rerank.extraction.kinds import metric_of
from rerank.features.dense import free_values
from rerank.learn.base import Weights
from rerank.learn.folds import with_base_column
from rerank.learn.members import best_column, mixture
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import weighed_rows
from rerank.metrics.metric import Metric, owners
from rerank.metrics.oracle import oracles
from rerank.recipes.loading import read_settings
from rerank.runs.training import any_ties

warnings.filterwarnings("ignore", category=FutureWarning)  # of scikit-learn, on names of attributes
NAMES = "base", "best column", "LR", "maxent", "sum"


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
    learner = with_base_column(Maxent(), corpus)
    members = mixture(learner, corpus, metric, oracles, any_ties=ties)
    ((columns, l2),) = members.learned().items()
    learner, state = replace(learner, l2=l2), learner.init(corpus.width)
    learner.solve(corpus, oracles(corpus), state, any_ties=ties)
    alone = learner.last(state)
    (column,) = best_column(corpus, metric)
    assert column.weights is not None
    base = Weights(np.zeros(corpus.width), 1.0)
    return [base, column.weights, logistic(corpus), alone, members.summed({columns: alone}, corpus.width)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--base")
    parser.add_argument("--metric", default="gain")
    parser.add_argument("--learn", type=int)
    parser.add_argument("--seeds", type=int, nargs=2, default=(9000, 9040))
    arguments = parser.parse_args()
    reader = {"name": "jsonl"} | ({"base": arguments.base} if arguments.base else {})
    data = {"root": arguments.folder, "nbest": "{root}/{split}.jsonl.gz", "train": ["train", "dev"], "tests": []}
    data |= {"dev": None, "sources": None, "references": None, "reader": reader}
    task = "speech" if arguments.metric == "wer" else "ranking"
    recipe = read_settings(
        {"name": "resplits", "task": task, "metric": {"name": arguments.metric}, "features": {"set": "dense"},
         "data": data}
    )  # fmt: skip
    lists, metric = extract_training(recipe)[0].corpus, metric_of(recipe)  # type: ignore[arg-type]
    ties, sign, reached = any_ties(recipe, lists), -1.0 if metric.lower_is_better else 1.0, []  # type: ignore[arg-type]
    for seed in range(*arguments.seeds):
        order = np.random.default_rng(seed).permutation(lists.list_count)
        size = arguments.learn or int(0.75 * order.size)
        learned, apart = (lists.take(np.sort(order[part])) for part in (slice(size), slice(size, size + 1500)))
        learned = replace(learned, free=learned.width)
        total = apart.reference.sum(axis=0)
        rows = [weighed_rows(apart, weights, metric) for weights in predictors(learned, metric, ties=ties)]
        reached.append([sign * float(metric.scores(of.sum(axis=0), total)) for of in rows])
    scores = np.array(reached)
    peer = int(np.argmax(scores.mean(axis=0)[:3]))
    print(f"{lists.list_count} lists, {len(scores)} re-splits; best simple choice: {NAMES[peer]}")
    for name, own in zip(NAMES, scores.T, strict=True):
        ahead = own - scores[:, peer]
        error = ahead.std(ddof=1) / np.sqrt(ahead.size)
        print(f"{name:12} {metric.text(sign * own.mean())}  {metric.signed(ahead.mean())} ±{metric.text(error)}")


if __name__ == "__main__":
    main()
