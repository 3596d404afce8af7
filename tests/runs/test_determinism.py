"""Same seed, same bits: every learner of the registry, in this process and in others."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import small
from entries import ONLINE, find_entries
from small_models import table_of
from strategies import in_parts, random_corpus, targets

from rerank.base.registry import build
from rerank.data.corpus import Corpus
from rerank.learn.base import learners
from rerank.learn.train import ListProblem, train
from rerank.models.model import Model

WIDTH, EPOCHS, SEED = 16, 2, 7
ENTRIES = find_entries()


def corpus_in(directory: Path, parts: int) -> Corpus:
    """The same random lists in so many parts on disk."""
    corpus = random_corpus(1, lists=24, candidates=4, width=WIDTH)
    ends = np.linspace(0, corpus.list_count, parts + 1).astype(int)
    return in_parts(directory / f"{parts}-parts", corpus, ends.tolist())


def digest_of(directory: Path) -> str:
    """One digest of all files below a directory, with their names."""
    content = {name: hashlib.sha256(data).hexdigest() for name, data in small.files_of(directory).items()}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def saved(name: str, lists: Corpus, directory: Path) -> str:
    """Train a learner, with its first variant of the tests, and save the model; the digest of its files."""
    spec = {"name": name, **ENTRIES[name].variants[0]}
    learner, oracle = build(learners, spec, "learner"), targets(lists)
    training = train(learner, ListProblem(lists, oracle, SEED), epochs=EPOCHS, keep_log=True)
    assert training.log is not None
    votes = training.learner.votes(training.log, lists).arrays()
    state = {key: np.asarray(array) for key, array in training.state._asdict().items()}
    settings = small.recipe(Path("data"), learner=spec).model_dump(mode="json")
    norms = [each.norm for each in training.weights.values()]
    about = {"learner": name, "epochs": training.epoch, "training_data": "random", "norms": norms}
    model = Model(settings, about, table_of(), training.weights, state, votes)
    model.save(directory / name)
    Model.load(directory / name)  # whatever a learner makes can be read
    return digest_of(directory / name)


def digests(directory: str) -> dict[str, str]:
    """Digests of the models of all learners, over lists in one part and in three; ``directory`` gets the files."""
    root = Path(directory)
    root.mkdir()
    found = {}
    for parts in (1, 3):
        lists = corpus_in(root, parts)
        found |= {f"{name} {parts}": saved(name, lists, root / f"models-{parts}") for name in ONLINE}
    return found


def test_every_learner_in_this_process_and_another(tmp_path: Path) -> None:
    """With hashes of texts, threads, kernels of BLAS and a directory of its own."""
    first = digests(str(tmp_path / "first"))
    assert len(set(first.values())) == len(first) > len(ONLINE)
    code = "import json, sys, test_determinism as t; print(json.dumps(t.digests(sys.argv[1])))"
    here = Path(__file__).parent
    paths = [here, here.parent, here.parents[1]]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONHASHSEED": "3", "NUMBA_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Nehalem",
    }  # fmt: skip
    command = [sys.executable, "-c", code, str(tmp_path / "second")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == first
