"""A Scorer in a service: threads and forked processes share it, and nothing of a list remains when it is ranked."""

import asyncio
import gc
import hashlib
import json
import multiprocessing
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest
import small
import small_texts

import rerank
from rerank.contrib.serve.app import make_app
from rerank.data.symbols import quick_hash
from rerank.models.model import Model
from rerank.models.scorer import Ranked, Scorer
from rerank.readers.lists import Lists, SparseScores
from rerank.readers.reader import Problem
from rerank.runs import experiment

THREADS, RANKINGS = 8, 1_250  # of all contents together
TEXTS = ["Dense", "Given", "ConsensusNGram", "ConsensusEdits", "EditOps", "TargetNGram(n=2)", "CoOccurrence"]
TREES = ["Rule(ancestors=1)", "NGramTree", "Edges", "Heads(dependent=word)", "RightBranch", "LogCondP(bin=5)", "CoPar"]
Result = tuple[str, str, int]  # of a list: its id, the digest of its order and scores, unknown features


class Case(NamedTuple):
    """A Scorer and lists to rank; ``times``: so many rankings."""

    scorer: Scorer
    lists: list[Lists]
    times: int


@pytest.fixture(scope="module")
def trees(small_data: Path, workspace: Path) -> Path:
    """A model of parse trees that keeps its votes."""
    features = {"templates": TREES, "user": {"words": "user_template:count_words"}}
    learner = {"name": "vrda", "loss": "hinge"}
    recipe = small.recipe(small_data, features=features, learner=learner, training={"vote": True})
    experiment.run(recipe, workspace / "serving-trees", tests=False)
    return workspace / "serving-trees" / "model"


@pytest.fixture(scope="module")
def texts(workspace: Path, texts_data: Path) -> dict[str, Path]:
    """Models of texts: of words and phrases, and of dense columns alone."""
    found = {}
    for name, features in (
        ("texts", {"set": None, "templates": TEXTS}),
        ("dense", {"set": None, "templates": ["Dense"]}),
    ):
        experiment.run(small_texts.recipe(texts_data, features=features), workspace / f"serving-{name}", tests=False)
        found[name] = workspace / f"serving-{name}" / "model"
    return found


@pytest.fixture(scope="module")
def cases(trees: Path, texts: dict[str, Path], small_data: Path) -> dict[str, Case]:
    """Of every content a Scorer, with lists that have unknown words, labels and sparse features."""
    model = Model.load(trees, trust=True)
    read = [each for each in Scorer(model).reader.read(small_data / "test.nbest.gz") if each.problem is None]
    found = {
        "trees": Case(Scorer(model), [_odd_trees(each, i) for i, each in enumerate(read[:20])], 375),
        "voted": Case(Scorer(model, "voted"), read[:20], 125),
    }
    for name, directory in texts.items():
        found[name] = Case(Scorer(Model.load(directory)), [_text_list(i) for i in range(24)], 375)
    assert sum(case.times for case in found.values()) == RANKINGS
    return found


def _odd_trees(nbest: Lists, i: int) -> Lists:
    """A list with a word and a label that no other list has."""
    odd = f" (ODD{i} Odd{i}))".encode()
    return nbest.replace(texts=[text.rstrip()[:-1] + odd for text in nbest.texts])


def _text_list(i: int) -> Lists:
    """Eight candidates for a source of eight words, some of them new, with scores of three names."""
    rng, N = np.random.default_rng(i), 8
    words = [f"{'good' if rng.random() < 0.5 else 'bad'}{rng.integers(12)}" for _ in range(40)] + [f"New{i}"]
    texts = [" ".join(rng.choice(words, rng.integers(4, 9))).encode() for _ in range(N)]
    sparse = SparseScores(np.arange(N + 1), [f"sp{i % 3}_{k}".encode() for k in range(N)], rng.normal(size=N))
    return Lists.one(
        str(i), "memory", i + 1, texts, list(range(N)), rng.normal(size=(N, 4)), column=3,
        names=("LM0", "TM0_0", "TM0_1", "score"), sparse=sparse,
        source=" ".join(f"quell{word}" for word in rng.integers(0, 12, 8)).encode(),
    )  # fmt: skip


def rank_all(scorer: Scorer, lists: list[Lists]) -> list[Result]:
    """Open and rank the lists one after the other."""
    opened = (scorer.open(each) for each in lists)
    return [result(each) for each in scorer.rank(opened)]


def result(ranked: Ranked | Problem) -> Result:
    assert isinstance(ranked, Ranked), ranked
    digest = hashlib.sha256(ranked.order.tobytes() + ranked.scores.tobytes()).hexdigest()
    return ranked.nbest.id, digest, ranked.unknown


def rounds(case: Case, threads: int = THREADS) -> int:
    """How often each thread must rank all lists."""
    return -(-case.times // (threads * len(case.lists)))


def test_threads_rank_as_one(cases: dict[str, Case]) -> None:
    """All contents at the same time, from as many threads each."""
    expected = {name: rank_all(case.scorer, case.lists) for name, case in cases.items()}
    assert all(any(unknown for *_, unknown in expected[name]) for name in ("trees", "texts"))

    def work(case: Case) -> list[list[Result]]:
        return [rank_all(case.scorer, case.lists) for _ in range(rounds(case))]

    with ThreadPoolExecutor(THREADS * len(cases)) as pool:
        jobs = [(name, pool.submit(work, case)) for _ in range(THREADS) for name, case in cases.items()]
        done = 0
        for name, job in jobs:
            for found in job.result():
                assert found == expected[name], name
                done += len(found)
    assert done >= RANKINGS


BEGIN = """
import json, sys, threading
from concurrent.futures import ThreadPoolExecutor
models, lists = json.loads(sys.stdin.read())
barrier = threading.Barrier(8)

def work(k):
    barrier.wait()
    import rerank
    name = sorted(models)[k % len(models)]
    ranking = rerank.load(models[name], trust="user_template").rank(lists[name])
    return name, ranking.order.tolist(), ranking.scores.tolist(), [part.feature for part in ranking.explain()]

with ThreadPoolExecutor(8) as pool:
    print(json.dumps(list(pool.map(work, range(8)))))
"""


def test_threads_begin_at_once(trees: Path, texts: dict[str, Path]) -> None:
    """In a process that has loaded nothing, neither modules nor kernels, and two kinds of models."""
    numbers = {"score": 0.5, "columns": {"LM0": 1.0, "TM0_0": 0.5, "TM0_1": -1.0}}
    models = {"texts": texts["texts"], "trees": trees}
    lists: dict[str, list[Any]] = {
        "texts": [{"text": text, **numbers} for text in ("good1 good2", "bad1 New")],
        "trees": [{"tree": tree, "score": 0.5} for tree in ("(S1 (S (NP (NN a)) (VB b)))", "(S1 (NP (NN a) (VB b)))")],
    }
    given = json.dumps([{name: str(path) for name, path in models.items()}, lists])
    root = Path(__file__).parents[2]  # where users' templates are
    done = subprocess.run(
        [sys.executable, "-c", BEGIN], cwd=root, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == THREADS
    for name, order, scores, features in found:
        ranking = rerank.load(models[name], trust="user_template").rank(lists[name])
        assert (order, scores) == (ranking.order.tolist(), ranking.scores.tolist()), name
        assert features == [part.feature for part in ranking.explain()]


@contextmanager
def in_the_background(work: Callable[[], Any]) -> Iterator[None]:
    """Two threads that do the same again and again."""
    stop = Event()

    def again() -> None:
        while not stop.is_set():
            work()

    threads = [Thread(target=again) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.parametrize("name", ["trees", "voted", "texts", "dense"])
def test_forked_processes_rank_as_their_parent(cases: dict[str, Case], name: str) -> None:
    """Forked while threads are at work: nothing that a child needs is held by a thread that it does not have."""
    scorer, lists, _ = cases[name]
    expected = rank_all(scorer, lists)
    with in_the_background(lambda: rank_all(scorer, lists)):
        pool = multiprocessing.get_context("fork").Pool(2, _inherited.extend, [(scorer, lists)])
    try:
        for found in pool.map(_rank_inherited, range(4), 1):
            assert found == expected
    finally:  # in order: a SIGTERM interrupts a child of the tests, which can get lost where errors are ignored
        pool.close()
        pool.join()
    assert rank_all(scorer, lists) == expected


_inherited: list[Any] = []  # of a forked process: a Scorer and lists that its parent has made


def _rank_inherited(_: int) -> list[Result]:
    return rank_all(*_inherited)


def test_what_a_template_lacks_is_logged_once(cases: dict[str, Case], caplog: pytest.LogCaptureFixture) -> None:
    scorer = Scorer(cases["texts"].scorer.model)
    lists = [each.replace(source=None) for each in cases["texts"].lists if not each.of_trees]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda _: rank_all(scorer, list(lists)), range(THREADS)))
    said = [record.getMessage() for record in caplog.records]
    assert len([text for text in said if "a list has no source" in text]) == 1


# Memory, over many lists


def tiny_trees(i: int) -> Lists:
    """Two parses of three words that nobody has seen, two of them with capitals."""
    texts = [f"(S1 (NP (NNP Ab{i}) (NN cd{i})) (VB{i} Ef{i}))", f"(S1 (NP (NNP Ab{i}) (NN cd{i}) (NN Ef{i})))"]
    return Lists.one(f"t{i}", "memory", 1, [text.encode() for text in texts], [1, 2], np.array([[-1.0], [-2.0]]))


def tiny_texts(i: int) -> Lists:
    """Two texts of new words, with a sparse feature of a new name each."""
    sparse = SparseScores(np.arange(3), [f"a{i}".encode(), f"b{i}".encode()], np.ones(2))
    scores, names = np.array([[-1.0, 2, 3, 4], [-2.0, 3, 4, 1]]), ("LM0", "TM0_0", "TM0_1", "score")
    texts = [f"Neu{i} wort{i}".encode(), f"wort{i}".encode()]
    return Lists.one(
        f"x{i}", "memory", 1, texts, [1, 2], scores, column=3, names=names, sparse=sparse, source=f"quell{i}".encode()
    )


@pytest.mark.parametrize(("name", "make"), [("trees", tiny_trees), ("texts", tiny_texts)])
def test_new_words_leave_nothing(cases: dict[str, Case], name: str, make: Callable[[int], Lists]) -> None:
    scorer = cases[name].scorer
    symbols = scorer.content.symbols
    sizes = len(symbols), symbols.index.keys.size, symbols.hashes.base.size
    ranked = scorer.rank(scorer.open(make(i)) for i in range(700))
    tracemalloc.start()
    try:
        left = [_left_by(ranked, 200) for _ in range(3)]
    finally:
        tracemalloc.stop()
    # Three new words a list, of 140 bytes each, would be four times as much, each time; what else goes on in the
    # process, in other threads too, leaves something now and then.
    assert np.diff(left).min() < 20_000
    assert sum(1 for _ in ranked) == 100
    assert (len(symbols), symbols.index.keys.size, symbols.hashes.base.size) == sizes


def _left_by(ranked: Iterator[Any], lists: int) -> int:
    """Bytes that are held after further lists."""
    for _ in range(lists):
        next(ranked)
    quick_hash.cache_clear()  # what it holds, of so much at most, comes and goes
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize(("hosts", "count"), [((), 5), (("127.0.0.1",), 5), (("0.0.0.0",), 0), (("::1", "ours"), 0)])
def test_training_lists_are_shown_on_their_own_machine_alone(trees: Path, hosts: tuple[str, ...], count: int) -> None:
    app = make_app(rerank.load(trees, trust=True), threads=1, pool=ThreadPoolExecutor(1), hosts=hosts)

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.get("/examples")

    assert len(asyncio.run(ask()).json()) == count
