"""Small models of learners whose states are unlike, and all that kernels do with one."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import small
from strategies import random_corpus, run

from rerank.features.table import FeatureTable
from rerank.learn.base_weight import make_learner
from rerank.learn.epoch import Votes
from rerank.learn.learner import learners
from rerank.learn.scoring import scores
from rerank.learn.voting import vote
from rerank.models.model import HEADER, Model, header_digest
from rerank.storage.documents import read_object

CORPUS = random_corpus(3, lists=12, candidates=4, width=16)
LEARNERS: list[dict[str, Any]] = [
    {"name": "vrda"}, {"name": "tg", "theta": 0.5}, {"name": "arow"}, {"name": "lm-perc"},
    {"name": "lambdamart", "trees": 2, "leaves": 3, "min_leaf": 2},
]  # fmt: skip


def table_of(template: str = "Rule") -> FeatureTable:
    """A table of 16 features without symbols."""
    hashes, nothing = np.arange(1, 33, 2, dtype=np.uint64), np.zeros(0, np.uint64)
    return FeatureTable(hashes, np.zeros(16, np.int32), np.zeros(17, np.int64), nothing, (template,), {}, {})


def trained(spec: dict[str, Any]) -> Model:
    """A model of 16 columns with state and votes, or trees."""
    learner = make_learner(spec)
    recipe = small.recipe(Path("data"), learner=spec).model_dump(mode="json")
    about = {"learner": spec["name"], "epochs": 2, "training_data": ""}
    if not learner.linear:
        done = learner.grow(CORPUS, None, 1)
        return Model(recipe, about, table_of(), done.weights, done.state._asdict())
    ran = run(learner, CORPUS, 2)
    weights = {"last": learner.last(ran.state), "average": learner.average(ran.state)}
    votes = learner.votes(ran.log, CORPUS).arrays()
    return Model(recipe, about, table_of(), weights, ran.state._asdict(), votes)


def use(model: Model) -> None:
    """Everything that kernels do with a model."""
    assert not model.votes or np.isfinite(vote(Votes(**model.votes), CORPUS)).all()
    for weights in model.weights.values():
        assert np.isfinite(weights.w).all()
        scores(CORPUS, weights)
    spec = model.settings.get("learner", {})
    if spec.get("name", "") in learners and model.state and model.votes:
        learner = make_learner(spec)
        fresh = learner.init(16, CORPUS.candidate_count)
        state = type(fresh)(**{name: array.copy() for name, array in model.state.items()})
        run(learner, CORPUS, 1, state=state, first=2)


def sealed(directory: Path) -> None:
    """Let checksums fit the files as they are, as somebody would who means harm."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # of no header there is nothing to sign
        header = read_object(directory / HEADER)
        for name in header["files"]:
            if (directory / name).is_file():
                header["files"][name] = hashlib.sha256((directory / name).read_bytes()).hexdigest()
        (directory / HEADER).write_text(json.dumps(header | {"digest": header_digest(header)}))
