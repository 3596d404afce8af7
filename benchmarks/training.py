"""Epoch speed beside a pure gather-dot over the same nonzeros, and exact voting beside training, in one process.

    python benchmarks/training.py --root ../shared/data/parse/gum [--epochs 5] [--set cj2005] [--judged 400]

The gather-dot is the least that any linear learner must do in a pass: for every candidate, the sum of weight × value
over its nonzeros. Both passes go over the same arrays in the same order, in turn.
"""

import argparse
import json
import os
import resource
import time
from pathlib import Path

import numpy as np

from rerank.data.corpus import Corpus, concatenate
from rerank.extraction.extraction import CorpusCache
from rerank.learn.epoch import UpdateLog
from rerank.learn.rules.dual_averaging import VotedRDA
from rerank.learn.scoring import best, score_rows
from rerank.learn.train import epoch_order
from rerank.learn.voting import vote
from rerank.metrics.metric import oracles
from rerank.recipes.recipe import Recipe


def main() -> None:
    """Measure on the lists at --root; the first epoch and the first vote, which compile, are not counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="../shared/data/parse/gum")
    parser.add_argument("--set", default="cj2005")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--judged", type=int, help="vote on so many of the test lists only")
    parser.add_argument("--cache", type=Path, default=Path("runs/.cache"))
    arguments = parser.parse_args()
    if not Path(arguments.root).exists():
        raise SystemExit(f"{arguments.root} is not here: nothing measured")
    recipe = Recipe.model_validate(
        {"name": "benchmark", "data": {"root": arguments.root}, "features": {"set": arguments.set}}
    )
    cache = CorpusCache(arguments.cache)
    extracted, table, key = cache.training(recipe)
    splits = extracted.corpus, cache.split(recipe, "test", table, key).corpus
    train, test = (concatenate([lists]) for lists in splits)
    test = test.slice(0, min(arguments.judged or test.list_count, test.list_count))
    learner = VotedRDA(loss=arguments.loss, eta=1.0, base=0.2)
    print(json.dumps(measure(learner, train, test, arguments.epochs), indent=1))


def measure(learner: VotedRDA, train: Corpus, test: Corpus, epochs: int) -> dict[str, float | int | list[float]]:
    """Train, gather and vote on the clock."""
    targets = oracles(train)
    warm = learner.init(train.width)
    few = train.slice(0, min(50, train.list_count))
    learner.epoch(few, targets[: few.list_count], np.arange(few.list_count), warm, log=UpdateLog())
    state, log = learner.init(train.width), UpdateLog()
    w, scores = np.random.default_rng(0).standard_normal(train.width), np.empty(train.candidate_count)
    score_rows(train.rows, train.columns, train.values, w, scores)
    seconds, gathers, cpu = [], [], 0.0
    for epoch in range(epochs):
        order = epoch_order(train.list_count, 1, epoch, shuffle=True)
        start, begun = time.perf_counter(), time.process_time()
        learner.epoch(train, targets, order, state, log=log)
        middle, cpu = time.perf_counter(), cpu + time.process_time() - begun
        score_rows(train.rows, train.columns, train.values, w, scores)
        seconds.append(middle - start)
        gathers.append(time.perf_counter() - middle)
    votes = learner.votes(log, train)
    tiny = test.slice(0, min(4, test.list_count))
    vote(votes, tiny)
    start, begun = time.perf_counter(), time.process_time()
    best(test, vote(votes, test))
    voting, voting_cpu = time.perf_counter() - start, time.process_time() - begun
    ratios = [gather / second for gather, second in zip(gathers, seconds, strict=True)]
    return {
        "nonzeros": train.nonzeros,
        "columns": train.width,
        "epoch_seconds": [round(x, 3) for x in seconds],
        "gather_dot_seconds": [round(x, 3) for x in gathers],
        "million_nonzeros_per_second": [round(train.nonzeros / x / 1e6) for x in seconds],
        "share_of_gather_dot_speed": [round(x, 2) for x in ratios],
        "updates": log.updates,
        "training_seconds": round(sum(seconds), 2),
        "training_cpu_seconds": round(cpu, 2),
        "voting_seconds": round(voting, 2),
        "voting_cpu_seconds": round(voting_cpu, 2),
        "cores": os.cpu_count() or 1,
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }


if __name__ == "__main__":
    main()
