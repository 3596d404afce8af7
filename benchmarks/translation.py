"""Lists of translations from files to epochs: reading, features, BLEU statistics, training; one process.

    python benchmarks/translation.py --root ../shared/data/translation/multi30k [--set dptm] [--epochs 6]
    python benchmarks/translation.py --only figures

CPU seconds of extracting the train split (gunzip, parsing, templates, BLEU statistics, columns), peak memory of the
process after that, then epochs of several learners with Bayes risk, and a pure gather-dot over the same nonzeros.
Figures: CPU seconds of BLEU and chrF of six selections of the dev split, from sums, and of all their texts.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from statistics import median

import numpy as np

from rerank.base.encoding import decoded
from rerank.data.corpus import Corpus
from rerank.extraction.extraction import extract_split, extract_training
from rerank.extraction.texts import TextContent
from rerank.learn.learner import Learner
from rerank.learn.rules.additive import SGD
from rerank.learn.rules.dual_averaging import FTRL, RDA, AdaptiveRDA, VotedRDA
from rerank.learn.scoring import score_rows
from rerank.learn.train import epoch_order
from rerank.metrics.metric import oracles
from rerank.readers.reader import SkipCount, filter_usable
from rerank.recipes.recipe import TextRecipe


def main() -> None:
    """Measure on the lists at --root; what compiles is not counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="../shared/data/translation/multi30k")
    parser.add_argument("--set", default="dptm")
    parser.add_argument("--min-lists", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--only", choices=("figures",))
    arguments = parser.parse_args()
    if not Path(arguments.root).exists():
        raise SystemExit(f"{arguments.root} is not here: nothing measured")

    def recipe(train: str) -> TextRecipe:
        """The recipe that trains on the split ``train``."""
        features = {"set": arguments.set, "min_lists": arguments.min_lists}
        data = {"root": arguments.root, "train": train}
        return TextRecipe.model_validate(
            {"name": "benchmark", "task": "translation", "data": data, "features": features}
        )

    if arguments.only:
        print(json.dumps(figures(recipe("dev")), indent=1))
        return
    _, table = extract_training(recipe("dev"))
    extract_split(recipe("dev"), "tune", table)
    cpu, wall = time.process_time(), time.perf_counter()
    extracted, table = extract_training(recipe("train"))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    corpus = extracted.corpus
    found = {
        "candidates": corpus.candidate_count,
        "nonzeros": corpus.nonzeros,
        "columns": table.width,
        "extraction_cpu_seconds": round(cpu, 2),
        "extraction_seconds": round(wall, 2),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "epochs": measure(corpus, arguments.epochs),
        "peak_memory_mb_after_training": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(found, indent=1))


def measure(corpus: Corpus, epochs: int) -> dict[str, dict[str, float]]:
    """Million nonzeros a second of every learner and of the gather-dot: the median and the best of the epochs."""
    targets = oracles(corpus)
    learners: list[Learner] = [
        SGD(loss="bayes", eta=1.0),
        RDA(loss="bayes", eta=0.03),
        VotedRDA(loss="bayes", eta=0.03),
        FTRL(loss="bayes", alpha=3.0, base=10.0),
        AdaptiveRDA(loss="bayes", eta=3.0, base=10.0, base_rate=0.1),
    ]
    found = {"gather-dot": rates(corpus, [gather(corpus) for _ in range(epochs + 1)][1:])}
    for learner in learners:
        state = learner.init(corpus.width, corpus.candidate_count)
        seconds = []
        for epoch in range(epochs + 1):
            order = epoch_order(corpus.list_count, 1, epoch, shuffle=True)
            start = time.perf_counter()
            learner.epoch(corpus, targets, order, state)
            seconds.append(time.perf_counter() - start)
        found[learner.name] = rates(corpus, seconds[1:])  # the first compiles
    return found


def figures(recipe: TextRecipe) -> dict[str, float]:
    """CPU seconds of the final figures of the first, second, ... candidates of all lists, from sums and from texts."""
    content = TextContent(recipe)
    pairs = list(filter_usable(content.read(recipe.data, "dev"), content.pair, SkipCount("skip")))
    lists = [pair.nbest for pair in pairs]
    names = [str(k) for k in range(6)]
    chosen = [
        ({name: nbest.texts[min(k, len(nbest) - 1)] for k, name in enumerate(names)}, nbest.references)
        for nbest in lists
    ]
    content.describe("dev", names, chosen[:60])  # compiled
    start = time.process_time()
    found = content.describe("dev", names, chosen)
    summed = time.process_time() - start
    references = [[decoded(text) for text in nbest.references] for nbest in lists]
    start = time.process_time()
    for name in names:
        texts = [decoded(own[name]) for own, _ in chosen]
        whole = {key: value for metric in content.final for key, value in metric.corpus(texts, references).items()}
        assert whole == found.reports[name]
    return {"lists": len(lists), "of_sums": summed, "of_texts": time.process_time() - start}


def gather(corpus: Corpus) -> float:
    """Seconds of Σ weight × value for every candidate."""
    w, scores = np.ones(corpus.width), np.empty(corpus.candidate_count)
    start = time.perf_counter()
    score_rows(corpus.rows, corpus.columns, corpus.values, w, scores)
    return time.perf_counter() - start


def rates(corpus: Corpus, seconds: list[float]) -> dict[str, float]:
    """Million nonzeros a second."""
    million = corpus.nonzeros / 1e6
    return {"median": round(million / median(seconds), 1), "best": round(million / min(seconds), 1)}


if __name__ == "__main__":
    main()
