"""Part-of-speech tagging beside CRFsuite: CPU seconds of training, accuracy on dev, tokens tagged in a CPU second.

    python benchmarks/tagging.py [--root DIR] [--only NAME ...] [--rounds 1]
    python benchmarks/tagging.py [--root DIR] --only perceptron --epochs 1 --times 100   # so many copies of training

The words and tags of train.gold.gz and dev.gold.gz, trees in brackets, a line each; 12 attributes a word. Both sides
train on data in memory and tag lists of texts, in turn in this process. CRFsuite is that of python-crfsuite; where that
is not installed, the rest is measured alone.
"""

import argparse
import gc
import gzip
import importlib
import importlib.util
import re
import resource
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rerank.base.registry import build
from rerank.contrib.structures.chain import Chains, chains_of
from rerank.contrib.structures.sequence_tagger import SequenceTagger
from rerank.contrib.structures.training import ChainProblem
from rerank.learn.learner import learners
from rerank.learn.train import train as fit

LEAF = re.compile(r"\(([^\s()]+) ([^\s()]+)\)")
OURS: dict[str, dict[str, Any]] = {
    "perceptron": {"name": "perceptron"},
    "arow": {"name": "arow", "r": 100.0},
    "pa-cost": {"name": "pa", "loss": "cost"},
    "vrda": {"name": "vrda"},
    "crf-l2-1": {"name": "maxent", "l2": 1.0},
    "crf-folds": {"name": "maxent"},  # the penalty is found on sections held out
    "crf": {"name": "maxent", "l2": 2.0},  # c2·‖w‖² is CRFsuite's penalty
    "crf-l1": {"name": "maxent", "l1": 0.1, "l2": 0.2, "iterations": 100},
}
EPOCHS = 10
THEIRS: dict[str, tuple[str, dict[str, Any]]] = {
    "perceptron": ("averaged-perceptron", {"max_iterations": EPOCHS}),
    "arow": ("arow", {"max_iterations": EPOCHS}),
    "pa-cost": ("passive-aggressive", {"max_iterations": EPOCHS}),
    "crf": ("lbfgs", {"c2": 1.0}),
    "crf-l1": ("lbfgs", {"c1": 0.1, "c2": 0.1, "max_iterations": 100}),
}
Sentence = list[tuple[str, str]]


def sentences(path: Path) -> list[Sentence]:
    """(word, tag) of every leaf of every tree."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [[(word, tag) for tag, word in LEAF.findall(line)] for line in lines]


def shape(word: str) -> str:
    """The word with its letters and digits by kind, no kind more than twice in a row."""
    kinds = re.sub(r"[A-Z]", "X", re.sub(r"[a-z]", "x", re.sub(r"\d", "d", word)))
    return re.sub(r"(.)\1\1+", r"\1\1", kinds)


def attributes(words: list[str], t: int) -> list[str]:
    """The 12 attributes of word t."""
    padded = ["<s>", "<s>", *words, "</s>", "</s>"]
    before2, before, word, after, after2 = padded[t : t + 5]
    return [
        f"w={word.lower()}", f"w-1={before.lower()}", f"w-2={before2.lower()}", f"w+1={after.lower()}",
        f"w+2={after2.lower()}", f"s1={word[-1:]}", f"s2={word[-2:]}", f"s3={word[-3:]}", f"p2={word[:2]}",
        f"shape={shape(word)}", f"s-1={before[-3:]}", f"s+1={after[-3:]}",
    ]  # fmt: skip


def chains(read: list[list[list[str]]], tags: list[list[str]], names: list[str], known: dict[str, int]) -> Chains:
    """Sentences as arrays; attributes that are not ``known`` are left out."""
    ids = [[known[a] for a in token if a in known] for sentence in read for token in sentence]
    place = {name: number for number, name in enumerate(names)}
    return chains_of(
        np.cumsum([0, *map(len, read)]), np.cumsum([0, *map(len, ids)]),
        np.array([j for token in ids for j in token], np.uint32),
        np.array([place.get(tag, -1) for sentence in tags for tag in sentence]),
        np.ones((len(names) + 2, len(names))), attribute_count=len(known),
    )  # fmt: skip


def repeated(given: Chains, times: int) -> Chains:
    """So many copies, one after the other."""
    starts, rows = (np.cumsum([0, *np.tile(np.diff(each), times)]) for each in (given.starts, given.rows))
    return chains_of(
        starts, rows, np.tile(given.attributes, times), np.tile(given.gold, times), given.mask,
        attribute_count=given.attribute_count,
    )  # fmt: skip


def crfsuite(algorithm: str, parameters: dict[str, Any], train: Any, dev: Any) -> tuple[float, np.ndarray, float, int]:
    """CPU seconds of training, the tags of dev, CPU seconds of tagging, nonzero weights."""
    pycrfsuite: Any = importlib.import_module("pycrfsuite")
    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    trainer.set_params(parameters)
    for sentence, tags in zip(*train, strict=True):
        trainer.append(sentence, tags)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        trainer.train(f"{folder}/model")
        seconds, tagger = time.process_time() - start, pycrfsuite.Tagger()
        tagger.open(f"{folder}/model")
        tagged, tagging = timed(lambda: [tagger.tag(sentence) for sentence in dev[0]])
        return seconds, flat(tagged), tagging, len(tagger.info().state_features)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and its CPU seconds."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def flat(tags: Iterable[Iterable[str]]) -> np.ndarray:
    """All tags one after the other."""
    return np.array([tag for sentence in tags for tag in sentence])


def main() -> None:
    """Print a line for every learner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("../shared/data/parse/gum"))
    parser.add_argument("--only", nargs="*", default=list(OURS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--times", type=int, default=1, help="copies of the training set, for this program alone")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    arguments = parser.parse_args()
    read, tags = {}, {}
    for split in ("train", "dev"):
        given = sentences(arguments.root / f"{split}.gold.gz")
        tags[split] = [[tag for _, tag in sentence] for sentence in given]
        words = [[word for word, _ in sentence] for sentence in given]
        read[split] = [[attributes(sentence, t) for t in range(len(sentence))] for sentence in words]
    names = sorted(set(flat(tags["train"]).tolist()))
    known: dict[str, int] = {}
    for sentence in read["train"]:
        for token in sentence:
            for attribute in token:
                known.setdefault(attribute, len(known))
    train = repeated(chains(read["train"], tags["train"], names, known), arguments.times)
    gold = flat(tags["dev"])
    print(f"{train.rows.size - 1:,} tokens, {len(known):,} attributes, {len(names)} tags; dev {gold.size:,} tokens")
    gc.freeze()  # else a pass over all texts in memory falls to whoever makes the next list
    few, tagger = chains(read["train"][:20], tags["train"][:20], names, known), SequenceTagger()
    vars(tagger).update(classes_=names, attributes_=known, _weights=np.zeros(train.width))
    print(f"{'learner':12} {'':8} {'train s':>8} {'dev %':>7} {'weights':>10} {'tokens/s':>10}")
    for name in arguments.only:
        learner = build(learners, OURS[name], "learner")
        fit(learner, ChainProblem(few), epochs=1)  # compiles
        tagger.predict(read["dev"][:20])
        for _ in range(arguments.rounds):
            training, seconds = timed(lambda: fit(learner, ChainProblem(train, 1), epochs=arguments.epochs))  # noqa: B023
            for predictor in ("average",) if learner.batch else ("average", "last"):
                w = training.weights[predictor].w
                vars(tagger)["_weights"] = w
                tagged, tagging = timed(lambda: tagger.predict(read["dev"]))
                right = float((flat(tagged) == gold).mean())
                line = f"{seconds:8.2f} {100 * right:7.2f} {np.count_nonzero(w):10,} {gold.size / tagging:10,.0f}"
                print(f"{name:12} {predictor:8} {line}", flush=True)
            if name in THEIRS and arguments.times == 1 and importlib.util.find_spec("pycrfsuite"):
                algorithm, parameters = THEIRS[name]
                parameters = parameters if name.startswith("crf") else parameters | {"max_iterations": arguments.epochs}
                sides = [(read[split], tags[split]) for split in ("train", "dev")]
                seconds, tagged, tagging, weights = crfsuite(algorithm, parameters, *sides)
                right = float((tagged == gold).mean())
                line = f"{seconds:8.2f} {100 * right:7.2f} {weights:10,} {gold.size / tagging:10,.0f}"
                print(f"{name:12} {'CRFsuite':8} {line}", flush=True)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
