"""What must hold where files are used: pairs, corpora, tables, models, recipes, results of runs, whole commands."""

import contextlib
import io
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import small
import small_texts
from commands import pass_on

from rerank.base.errors import RunError
from rerank.base.registry import build
from rerank.cli import main as cli
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.sets import Sets
from rerank.data.corpus import Corpus
from rerank.data.shards import Shards
from rerank.extraction.content import content_of
from rerank.features.table import load_table
from rerank.learn.base import learners
from rerank.learn.trainer import train
from rerank.metrics.oracle import oracle
from rerank.models.model import Model
from rerank.models.scorer import Scorer
from rerank.models.weights_text import read_weights
from rerank.readers.base import SkipCount
from rerank.readers.inputs import Inputs
from rerank.recipes.loading import load_recipe
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.settings import validate
from rerank.runs import pipeline
from rerank.runs.evaluation import compare_runs
from rerank.storage.digests import seal

from .reading import Rng, holds, options

POLICIES = ("error", "skip")
WIDEST = 1 << 24  # columns; a learner needs memory for all of them, and has a message where there is not enough
TEXT_METRICS = ("bleu", "chrf", "wer", "cer")


def choice(rng: Rng, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def recipe_for(kind: str, directory: Path, rng: Rng) -> ListRecipe:
    """A recipe over the lists in ``directory``, which are training and dev split at once."""
    data: dict[str, Any] = {"root": str(directory), "nbest": "{root}/lists", "dev": "train", "tests": []}
    data["on_bad_list"] = choice(rng, POLICIES)
    learner = {"name": choice(rng, ("perceptron", "vrda", "arow"))}
    changes: dict[str, Any] = {"training": {"epochs": 1}, "learner": learner}
    if kind == "parses":
        sets = ({"templates": small.TEMPLATES}, {"set": "extended", "templates": []}, {"hash_bits": 10})
        features = {"min_lists": 1, **choice(rng, sets)}
        data |= {"gold": "{root}/gold", "normalize": bool(rng.integers(2))}
        return small.recipe(directory, data=data, features=features, **changes)
    sets = ({"set": "dptm"}, {"set": "translation"}, {"set": "text"}, {"set": "speech", "hash_bits": 10})
    data["reader"] = options("jsonl" if kind == "jsonl" else "moses", rng)
    if kind == "jsonl":
        data |= {"sources": None, "references": None}
    else:
        data |= {"sources": "{root}/sources", "references": ["{root}/references"], "form": "lines"}
    changes["metric"] = {"name": choice(rng, TEXT_METRICS)}
    return small_texts.recipe(directory, data=data, features={"min_lists": 1, **choice(rng, sets)}, **changes)


def check_pairs(kind: str, directory: Path, rng: Rng) -> int:
    """Lists with what they belong to: features and statistics of every usable one."""
    recipe = recipe_for(kind, directory, rng)
    content, count, found = content_of(recipe), SkipCount(recipe.data.on_bad_list), 0
    for nbest, candidates, gold in content.pairs(recipe.data, "train", count):
        reference, stats = content.stats(nbest, candidates, gold)
        gain = content.metric.gain(stats, np.broadcast_to(reference, (len(nbest), reference.size)))
        features = content.features(nbest, candidates)
        holds(stats.shape[0] == gain.size == len(nbest), "a row each")
        holds(
            np.isfinite(stats).all() and np.isfinite(reference).all() and np.isfinite(gain).all(), "finite statistics"
        )
        holds(np.isfinite(features.value).all(), "finite values")
        holds(features.candidate.size == 0 or features.candidate.max() < len(nbest), "candidates of features")
        found += 1
    counted = count.lists + count.reasons["missing"]  # lists that only the references have are empty ones
    holds(found == counted, f"{found} lists, {counted} counted")
    return found


def check_pipeline(kind: str, directory: Path, rng: Rng) -> int:
    """Extraction and an epoch of training; what is left behind is complete."""
    recipe, where = recipe_for(kind, directory, rng), directory / "run"
    if rng.integers(2):
        counts = pipeline.extract(recipe, where)
        return int(counts["train"]["lists"])
    pipeline.run(recipe, where, tests=False)
    model = Model.load(where / "model")
    holds(all(np.isfinite(weights.w).all() for weights in model.weights.values()), "finite weights")
    holds(not list(where.rglob("*.new")), "no half-written file")
    return 1


def check_examples(directory: Path, rng: Rng) -> int:
    """A set of labelled examples with its folds and vocabulary, as a recipe of classification reads it."""
    data = {
        key: str(directory / name) for key, name in (("path", "examples"), ("folds", "folds"), ("vocabulary", "words"))
    }
    data |= {"scale": choice(rng, (None, "l2", "max")), "bias": choice(rng, (None, 1.0))}
    recipe = validate(ClassificationRecipe, {"name": "x", "task": "classification", "data": data})
    examples = Sets(recipe).draw("x", 1)
    for number in range(examples.splits):
        split = examples.split(number, 0.0, 1)
        holds(np.isfinite(split.train.values).all(), "finite values")
    return examples.examples.size


def check_recipe(directory: Path, rng: Rng) -> int:
    """A recipe with all its parts; the resolved one is the same recipe."""
    sets = [
        "data.root=nowhere",
        "learner.eta=1e-3",
        "training.epochs=0",
        "seed=x",
        "a.b.c={",
        "metric=1",
        "learner.name=pa",
    ]
    recipe = load_recipe(directory / "recipe.yaml", [choice(rng, sets)] if rng.integers(4) == 0 else None)
    resolved = directory / "resolved.yaml"
    resolved.write_text(recipe.as_yaml(), encoding="utf-8")
    holds(load_recipe(resolved).as_yaml() == recipe.as_yaml(), "the resolved recipe is the same")
    with Inputs() as inputs:
        return len(pipeline.check(recipe, inputs).singles)


def check_corpus(directory: Path, rng: Rng) -> int:
    """A corpus, and an epoch over it."""
    _seal_again(directory / "corpus", rng)
    corpus = Corpus.load(directory / "corpus", mmap=bool(rng.integers(2)))
    learner = build(learners, {"name": choice(rng, ("perceptron", "vrda", "arow", "pa"))}, "learner")
    best = oracle(corpus.lists, corpus.gain, corpus.base)
    holds(((best >= 0) & (best < corpus.candidate_count))[np.diff(corpus.lists) > 0].all(), "an oracle each")
    try:
        if corpus.width <= WIDEST:
            train(learner, corpus, best, epochs=1, seed=1)
    except RunError as error:  # numbers so large that what is learnt from them is none
        holds("left the range of floating-point numbers" in str(error), str(error))
    if corpus.list_count:
        corpus.take([0, corpus.list_count - 1]).slice(0, 1)
    return corpus.list_count


def _seal_again(directory: Path, rng: Rng) -> None:
    """Mostly let the checksums fit: what is damaged then has to be noticed by what looks into it."""
    if rng.integers(4):
        for place in (directory, *(path for path in directory.iterdir() if path.is_dir())):
            seal(place)


def check_shards(directory: Path, rng: Rng) -> int:
    """A corpus in parts: each can be opened, and they add up."""
    _seal_again(directory / "shards", rng)
    shards = Shards.load(directory / "shards")
    found = [shards.part(i) for i in range(shards.count)]
    holds(sum(part.list_count for part in found) == shards.list_count, "lists")
    holds(sum(part.candidate_count for part in found) == shards.candidate_count, "candidates")
    holds(sum(part.nonzeros for part in found) == shards.nonzeros, "nonzeros")
    return shards.list_count


def check_weights(directory: Path, _: Rng) -> int:
    """Weights as text, for the features of a model."""
    table = Model.load(directory / "model").table
    found = read_weights(str(directory / "weights"), table)
    holds(found.weights.w.shape == (table.width,) and np.isfinite(found.weights.w).all(), "a finite weight a column")
    holds(np.isfinite(found.weights.base), "a finite weight of the base score")
    return found.features


def check_table(directory: Path, _: Rng) -> int:
    """A feature table: every column has a name."""
    table = load_table(directory / "table")
    holds(all(isinstance(table.name(column), str) for column in range(min(table.width, 500))), "names")
    return table.width


def check_model(directory: Path, rng: Rng) -> int:
    """A model, and good lists reranked by it."""
    model = Model.load(directory / "model")
    scorer = Scorer(model, choice(rng, ("average", "last", "voted")))
    count, found = SkipCount("error"), 0
    opened = list(scorer.read(scorer.reader, str(directory / "lists"), count))
    for ranked in scorer.rank(opened):
        holds(np.isfinite(ranked.scores).all(), "finite scores")
        holds(sorted(ranked.order.tolist()) == list(range(len(ranked.nbest))), "all candidates, once")
        found += 1
    if len(opened[0].nbest) > 1:
        scorer.explain(opened[0], 0, 1)
    return found


def check_compare(directory: Path, rng: Rng) -> int:
    predictor = choice(rng, ("average", "base", "oracle", "voted"))
    test = choice(rng, ("approximate_randomization", "paired_bootstrap", "paired_t", "mcnemar"))
    return len(compare_runs(directory / "a", directory / "b", predictor, test, 100, 1))


def command(*arguments: object, stdin: bytes = b"") -> tuple[int, bytes, str]:
    """Exit code, stdout and stderr of a command, run in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    before, logger = (sys.argv, sys.stdin), logging.getLogger("rerank")
    handlers = logger.handlers[:]
    sys.argv, sys.stdin = ["rerank", *map(str, arguments)], io.TextIOWrapper(io.BytesIO(stdin))
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli.main()
            except SystemExit as ended:
                pass_on(ended)
                code = ended.code or 0
    finally:
        sys.argv, sys.stdin = before
        logger.handlers[:] = handlers
    assert isinstance(code, int), code
    out.flush()
    return code, out.buffer.getvalue(), err.getvalue()  # type: ignore[attr-defined]
