"""Growth of time and memory with the data: epochs, extraction, fits and voting at 1, 10 and 100 times the size.

    python benchmarks/growth.py [--times 1 10 100] [--only extract | epoch | fit | vote] [--learner vrda]

Every size is a process of its own, which first does the same work on little data, so that kernels are loaded. Printed
are CPU seconds (the least of three calls, or of one that takes long), the memory by which the process grows from before
its data, and the slopes of straight lines through the logarithms: 1 is proportional to the data. Extraction: the lists
of data/quickstart again and again. The rest: examples of 80 nonzeros, generated.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rerank.base.registry import build
from rerank.contrib.classification.sets import Zipf
from rerank.data.corpus import Corpus
from rerank.learn.epoch import UpdateLog
from rerank.learn.learner import learners
from rerank.learn.train import epoch_order
from rerank.learn.voting import vote
from rerank.metrics.metric import oracles

LISTS = Path(__file__).parents[1] / "data" / "quickstart"
EXAMPLES = 5000  # once the size
JUDGED = 100  # examples that are voted on
CALLS, LONG = 3, 20  # the least of so many counts, unless the first takes so many seconds


def extract(times: int, learner: str) -> Callable[[], Any]:  # noqa: ARG001
    """Extraction of so many times the lists, without a cache."""
    from rerank.recipes.recipe import Recipe
    from rerank.runs.corpora import Data

    root = Path(tempfile.mkdtemp())
    for kind in ("nbest", "gold"):
        content = (LISTS / f"train.{kind}.gz").read_bytes()
        (root / f"train.{kind}.gz").write_bytes(content * times)  # archives one behind the other are one archive
    reader = {"name": "charniak", "ids": "ordinal"}
    data = {"root": str(root), "dev": None, "tests": [], "reader": reader}
    recipe = Recipe.model_validate({"name": "growth", "data": data})
    return lambda: Data.load(recipe, Path(tempfile.mkdtemp(dir=root)) / "run", ())


def epoch(times: int, learner: str) -> Callable[[], Any]:
    """A pass of a learner."""
    corpus = Zipf(EXAMPLES * times, 1).draw(0)[0].corpus()
    rule, targets = build(learners, {"name": learner}, "learner"), oracles(corpus)
    state = rule.init(corpus.width, corpus.candidate_count)
    return lambda: rule.epoch(corpus, targets, epoch_order(corpus.list_count, 1, 0, True), state)


def fit(times: int, learner: str) -> Callable[[], Any]:  # noqa: ARG001
    """A classifier's fit, three passes."""
    from scipy import sparse

    from rerank.contrib.sklearn import PerceptronClassifier

    examples = Zipf(EXAMPLES * times, 1).draw(0)[0]
    parts = np.array(examples.values), examples.columns, examples.rows
    X = sparse.csr_array(parts, shape=(examples.size, examples.width))
    return lambda: PerceptronClassifier(epochs=3, random_state=0).fit(X, examples.label)


def voting(times: int, learner: str) -> Callable[[], Any]:
    """Exact voting of so many times the predictors on the same examples, on one thread."""
    corpus = Zipf(EXAMPLES * times, 1).draw(0)[0].corpus()
    votes = votes_of(corpus, learner)
    return lambda: vote(votes, corpus.slice(0, JUDGED), threads=1)


def votes_of(corpus: Corpus, learner: str) -> Any:
    """The predictors of a pass."""
    rule, targets = build(learners, {"name": learner}, "learner"), oracles(corpus)
    log, state = UpdateLog(), rule.init(corpus.width, corpus.candidate_count)
    rule.epoch(corpus, targets, epoch_order(corpus.list_count, 1, 0, True), state, log=log)
    return rule.votes(log, corpus)


WORK: dict[str, Callable[[int, str], Callable[[], Any]]] = {
    "extract": extract, "epoch": epoch, "fit": fit, "vote": voting,
}  # fmt: skip


def memory(field: str) -> int:
    """Bytes of this process: VmRSS or VmHWM."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def child(name: str, times: int, learner: str) -> None:
    """Measure one work at one size, and print."""
    WORK[name](1, learner)()
    before = memory("VmRSS")
    work, found = WORK[name](times, learner), []
    for _ in range(CALLS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
        if found[0] > LONG:
            break
    print(json.dumps({"seconds": min(found), "memory": max(1, memory("VmHWM") - before)}))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--only", choices=list(WORK))
    parser.add_argument("--learner", default="vrda")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        with tempfile.TemporaryDirectory() as tempfile.tempdir:
            child(given.child[0], int(given.child[1]), given.learner)
        return
    for name in [given.only] if given.only else WORK:
        points = []
        for times in given.times:
            command = [sys.executable, __file__, "--learner", given.learner, "--child", name, str(times)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            points.append(json.loads(done.stdout.splitlines()[-1]))
        for kind, digits in (("seconds", 4), ("memory", 0)):
            each = [point[kind] for point in points]
            slopes = np.diff(np.log(each)) / np.diff(np.log(given.times))
            shown = {"work": name, kind: [round(x, digits) for x in each], "slopes": slopes.round(2).tolist()}
            print(json.dumps(shown | {"slope": round(float(np.polyfit(np.log(given.times), np.log(each), 1)[0]), 3)}))


if __name__ == "__main__":
    main()
