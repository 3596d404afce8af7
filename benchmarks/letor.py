"""Lists of documents: reading, and NDCG@10 beside LightGBM and a ridge regression in one run.

    python benchmarks/letor.py [--queries 400] [--root DIR]

The file is made here: 46 columns, 100 documents a query, grades from 0 to 4 that are linear in the columns up to noise;
half of the queries are for training. CPU seconds; compilation is not counted.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from sklearn.linear_model import Ridge

import rerank
from rerank.contrib.search.letor import LetorReader

FEATURES, DOCUMENTS = 46, 100


def main() -> None:
    """Make the file, read it, and train on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--root", help="not used: the lists are made here")
    queries = parser.parse_args().queries
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory, name) for name in ("train.letor", "test.letor")]
        parts = drawn(queries)
        for path, (x, grades) in zip(paths, parts, strict=True):
            path.write_text("".join(lines(x, grades)))
        list(LetorReader().blocks(paths[1]))
        _, seconds = timed(lambda: list(LetorReader().blocks(paths[0])))
        print(f"reading: {paths[0].stat().st_size / 1e6 / seconds:.0f} MB/s")
        train, test = (rerank.read(path) for path in paths)
        rerank.evaluate(rerank.fit(test, metric="ndcg@10", features="dense", learner="maxent"), test)
        for pair in ("maxent log", "maxent listnet", "maxent listmle", "arda listmle", "arda lambdarank"):
            name, loss = pair.split()
            learner = {"name": name, "loss": loss}
            model, seconds = timed(
                lambda learner=learner: rerank.fit(train, metric="ndcg@10", features="dense", learner=learner)
            )
            print(f"{name} {loss}: {rerank.evaluate(model, test).score:.4f} in {seconds:.1f} s")
        own = {"name": "lambdamart", "trees": 100, "leaves": 31, "rate": 0.1, "base": 0.0}  # LightGBM's defaults
        model, seconds = timed(lambda: rerank.fit(train, metric="ndcg@10", features="dense", learner=own))
        print(f"lambdamart: {rerank.evaluate(model, test).score:.4f} in {seconds:.1f} s")
        for name, fit in (("ridge", ridge), ("lightgbm", trees)):
            scores, seconds = timed(lambda fit=fit: fit(*parts[0], parts[1][0]))
            print(f"{name}: {rerank.evaluate(list(scores), test, 'ndcg@10').score:.4f} in {seconds:.1f} s")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the CPU seconds that it took."""
    start = time.process_time()
    return work(), time.process_time() - start


def drawn(queries: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Columns (float64 [Q, DOCUMENTS, FEATURES]) and grades (int64 [Q, DOCUMENTS]) of training and test."""
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=FEATURES), np.round(rng.random((queries, DOCUMENTS, FEATURES)), 6)
    hidden = x @ w + rng.normal(scale=1.5, size=x.shape[:2])
    shares = np.argsort(np.argsort(hidden, axis=1), axis=1) / DOCUMENTS
    grades = np.digitize(shares, [0.6, 0.8, 0.93, 0.98])
    return [(x[part], grades[part]) for part in (slice(0, queries // 2), slice(queries // 2, None))]


def lines(x: np.ndarray, grades: np.ndarray) -> list[str]:
    """The lines of a file."""
    return [
        f"{grade} qid:{i + 1} {' '.join(f'{j}:{value:.6f}' for j, value in enumerate(row, 1))} # docid = d{i}-{k}\n"
        for i, (rows, own) in enumerate(zip(x, grades, strict=True))
        for k, (row, grade) in enumerate(zip(rows, own, strict=True))
    ]


def ridge(x: np.ndarray, grades: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Scores of ``test`` by a regression of grades."""
    model = Ridge(alpha=1.0).fit(x.reshape(-1, FEATURES), grades.ravel())
    return np.asarray(test @ model.coef_)


def trees(x: np.ndarray, grades: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Scores of ``test`` by LightGBM's LambdaMART with its defaults."""
    model = lightgbm.LGBMRanker(n_jobs=1, verbose=-1)
    model.fit(x.reshape(-1, FEATURES), grades.ravel(), group=[DOCUMENTS] * len(x))
    return np.asarray(model.predict(test.reshape(-1, FEATURES))).reshape(test.shape[:2])


if __name__ == "__main__":
    main()
