"""Lists with very many sparse columns: `ListRanker` beside LightGBM and logistic regression in one run.

    python benchmarks/sparse_lists.py --root ../shared/data/translation/multi30k [--lists 4000]

Columns are the words and pairs of words of a translation and the decoder's scores, gains its sentence chrF; learned
from the first lists of train, measured by the mean gain of what is chosen of test_2016. CPU seconds, without compiling
and the making of columns. Settings are defaults, but for LightGBM's grades, of which it takes whole numbers.
"""

import argparse
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from sacrebleu.metrics import CHRF
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

import rerank
from rerank.contrib.sklearn import ListRanker

GRADES = 30  # LightGBM's highest


def main() -> None:
    """Read the lists, and fit and measure every ranker on them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="../shared/data/translation/multi30k")
    parser.add_argument("--lists", type=int, default=4000)
    arguments = parser.parse_args()
    if not Path(arguments.root).exists():
        raise SystemExit(f"{arguments.root} is not here: nothing measured")
    train, test = (lists_of(arguments.root, name, arguments.lists) for name in ("train", "test_2016"))
    words = CountVectorizer(ngram_range=(1, 2), token_pattern=r"\S+").fit(train[0])
    X, Z = (sparse.hstack([words.transform(texts), scores], "csr") for texts, scores, _, _ in (train, test))
    first, chosen = np.cumsum([0, *test[3][:-1]]), {"the decoder": test[1][:, 0]}
    print(f"{len(train[3]):,} lists, {X.shape[0]:,} candidates, {X.shape[1]:,} columns, {X.nnz:,} nonzeros")
    for name, fit in (
        ("ListRanker", lambda: ListRanker(random_state=0).fit(X, train[2], group=train[3])),
        ("ListRanker, arda, 3 epochs",
         lambda: ListRanker(learner="arda", loss="log", epochs=3, random_state=0).fit(X, train[2], group=train[3])),
        ("LightGBM", lambda: lightgbm.LGBMRanker(n_jobs=1, verbose=-1).fit(X, grades(*train[2:]), group=train[3])),
        ("LogisticRegression", lambda: LogisticRegression(max_iter=1000).fit(X, grades(*train[2:]) == GRADES)),
    ):  # fmt: skip
        if name.startswith("ListRanker"):
            fit()  # compiles
        model, seconds = timed(fit)
        score = model.decision_function if name == "LogisticRegression" else model.predict
        chosen[f"{name} ({seconds:.1f} s)"] = np.asarray(score(Z))
    chosen["best possible"] = test[2]
    for name, scores in chosen.items():
        picked = [a + int(np.argmax(scores[a : a + n])) for a, n in zip(first, test[3], strict=True)]
        print(f"{name}: {test[2][picked].mean():.2f}")


def lists_of(root: str, split: str, count: int) -> tuple[list[str], np.ndarray, np.ndarray, list[int]]:
    """Texts, scores (float64 [n, K]) and gains (float64 [n]) of candidates, and the sizes of lists."""
    found = rerank.read(f"{root}/{split}.nbest.gz", "moses", references=f"{root}/{split}.ref.gz")
    texts, scores, gains, sizes, chrf = list[str](), list[Any](), list[float](), list[int](), CHRF()
    for nbest in islice(found, count):
        sizes.append(len(nbest.candidates))
        for one in nbest.candidates:
            texts.append(one.text)
            scores.append([one.score, *one.named_scores.values()])
            gains.append(chrf.sentence_score(one.text, list(nbest.references)).score)
    return texts, np.array(scores), np.array(gains), sizes


def grades(gains: np.ndarray, sizes: list[int]) -> np.ndarray:
    """int64 [n]: the gains on GRADES levels from the worst of their list to its best."""
    first = np.cumsum([0, *sizes[:-1]])
    low, high = (np.repeat(bound.reduceat(gains, first), sizes) for bound in (np.minimum, np.maximum))
    return np.rint(GRADES * (gains - low) / np.where(high > low, high - low, 1.0)).astype(np.int64)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the CPU seconds that it took."""
    start = time.process_time()
    return work(), time.process_time() - start


if __name__ == "__main__":
    main()
