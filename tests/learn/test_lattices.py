"""Word lattices beside all of their paths: the best, the k best, the oracle and learners; and the files they are in."""

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rerank.learn  # noqa: F401 - registers the learners
from rerank.base.errors import DataError
from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel_of
from rerank.learn.base import learners
from rerank.learn.spaces.decoding import state_of
from rerank.learn.spaces.lattice import Lattices, lattice_room, lattices_of, oracle
from rerank.learn.spaces.space import nbest, pair_for, structured_pass
from rerank.readers.lattices import WordLattice, read_lattices, read_symbols
from rerank.readers.problems import SkippedList

NODES, COUNT, ROUNDING = 5, 10, 1e-12
ARCS = [(tail, head) for tail in range(NODES) for head in range(tail + 1, NODES) for _ in range(2)]
VOCABULARY = ["a", "b", "c", ""]
SLF = """VERSION=1.0
UTTERANCE=u1
base=10 lmscale=12.0 wdpenalty=-3.0
N=4 L=4
I=0 t=0.0
I=1 t=0.5 W=!NULL
I=2 t=0.5 W=it
I=3 t=1.0 W=</s>
J=0 S=0 E=2 a=-1.0 l=-0.5
J=1 S=1 E=3 a=-1.5 l=-0.25
J=2 S=0 E=1 W=rains a=-2 l=0
J=3 S=2 E=1 W="pours" a=-0.5 l=-1
"""
KALDI = """u1
0 1 it it 0.5,1.25,3_4
1 2 rains rains 1.0,2.0,
1 2 pours pours 0.25,2.5,7
2 0.125,0,

u2
0 1 <eps> <eps> 0,0,
1
"""


def paths(lattices: Any, i: int, node: int = 0) -> list[list[int]]:
    if node == lattices.nodes[i] - 1:
        return [[]]
    arcs = [e for e in range(lattices.starts[i], lattices.starts[i + 1]) if lattices.tail[e] == node]
    return [[e, *rest] for e in arcs for rest in paths(lattices, i, int(lattices.head[e]))]


def random_lattices(*, whole: bool) -> list[WordLattice]:
    """Lattices of the same form; whole: with scores whose sums are exact, so that there are ties."""
    random = np.random.default_rng(2)
    tail, head = np.array(ARCS, np.int64).T
    size = len(ARCS), 3
    scores = [random.integers(-2, 3, size).astype(float) if whole else random.normal(size=size) for _ in range(COUNT)]
    return [
        WordLattice(str(i), "", 0, ("am", "lm", "words"), NODES, tail, head,
                    random.choice(VOCABULARY, len(ARCS)).tolist(), scores[i])
        for i in range(COUNT)
    ]  # fmt: skip


def test_best_paths_are_those_of_all_paths_with_ties() -> None:
    lattices, w = lattices_of(random_lattices(whole=True)), np.array([1.0, -0.5, 2.0])
    arc_scores = lattices.values.reshape(-1, 3) @ w
    for k in (1, 4, 100):
        room = lattice_room(lattices, k)
        for i in range(COUNT):
            every = sorted(paths(lattices, i), key=lambda path: (-arc_scores[path].sum(), path[::-1]))[:k]
            assert nbest(state_of(w), i, k, room, lattices) == len(every)
            first = lattices.starts[i]
            assert [(first + np.flatnonzero(room.output[r])).tolist() for r in range(len(every))] == every
            assert room.total[: len(every)].tolist() == [arc_scores[path].sum() for path in every]


def distance(words: list[str], reference: list[str]) -> int:
    """Levenshtein's, as it is defined."""
    if not words or not reference:
        return len(words) + len(reference)
    same = distance(words[1:], reference[1:]) + (words[0] != reference[0])
    return min(same, distance(words[1:], reference) + 1, distance(words, reference[1:]) + 1)


def test_the_oracle_is_the_path_with_the_fewest_errors() -> None:
    given = random_lattices(whole=False)
    for reference in (["a", "b", "c"], ["d"], [], ["c", "c", "a", "b"]):
        lattices = lattices_of(given, [reference] * COUNT)
        for i in range(COUNT):
            said = {tuple(path): [given[i].words[e - lattices.starts[i]] for e in path] for path in paths(lattices, i)}
            errors = {path: distance([word for word in words if word], reference) for path, words in said.items()}
            found = (
                lattices.starts[i] + np.flatnonzero(lattices.gold[lattices.starts[i] : lattices.starts[i + 1]])
            ).tolist()
            assert errors[tuple(found)] == min(errors.values())
    numbers = {word: k for k, word in enumerate(dict.fromkeys(word for each in given for word in each.words if word))}
    assert oracle(lattices, COUNT - 1, [numbers[word] for word in ["c", "c", "a", "b"]]) == min(errors.values())


@pytest.mark.parametrize(("name", "how"), [("perceptron", {}), ("arow", {}), ("pa", {"loss": "cost"})])
def test_learners_train_over_lattices_as_over_lists_of_all_paths(name: str, how: dict[str, Any]) -> None:
    lattices, width = lattices_of(random_lattices(whole=False), [["a", "b"]] * COUNT), 3
    learner = learners.get(name)(**how)
    state, other = learner.init(width), learner.init(width)
    room, pair, order = lattice_room(lattices), pair_for(100), np.tile(np.arange(COUNT), 3)
    kernel_of(structured_pass, Lattices)(
        order, state, None, pair.data, pair.scratch, pair.log, np.zeros(6), room, lattices, learner.settings()
    )
    for i in order:
        w, every = learner.last(other).w, paths(lattices, int(i))
        phi = np.array([lattices.values.reshape(-1, 3)[path].sum(axis=0) for path in every])
        gold = next(r for r, path in enumerate(every) if lattices.gold[path].all())
        wrong = np.array([(lattices.gold[path] == 0).sum() for path in every])
        scores = phi @ w + (wrong if how else 0)
        ties = np.flatnonzero(scores > scores.max() - ROUNDING)
        best: Any = min(ties, key=lambda r: every[r][::-1])  # of equals, that with the first arcs, from the end
        chosen = phi[[gold]] * 0 if best == gold else np.array([phi[gold] - phi[best], np.zeros(width)])
        n, z = len(chosen), chosen != 0
        gain = np.zeros(n) if n == 1 else np.array([0.0, -float(wrong[best])])
        corpus = Corpus(
            lists=np.array([0, n]), rows=np.cumsum([0, *z.sum(axis=1)]), columns=np.nonzero(z)[1], values=chosen[z],
            base=np.zeros(n), gain=gain, stats=np.zeros((n, 0)), reference=np.zeros((1, 0)),
            weight=np.ones(1), width=width,
        )  # fmt: skip
        learner.epoch(corpus, np.array([0]), np.array([0]), other)
    assert learner.updates(state) == learner.updates(other) > 3
    assert np.allclose(learner.average(state).w, learner.average(other).w, 1e-9, 1e-11)


def read(tmp_path: Path, text: str, name: str = "x.lat", **how: Any) -> list[Any]:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return list(read_lattices(path, **how))


def said(lattice: WordLattice) -> dict[str, list[float]]:
    """The sums of scores of every path by its words."""
    one = lattices_of([lattice])
    return {
        " ".join(lattice.words[e] for e in path if lattice.words[e]): lattice.scores[path].sum(axis=0).tolist()
        for path in paths(one, 0)
    }


def test_lattices_of_htk(tmp_path: Path) -> None:
    both = read(tmp_path, SLF + "\n" + SLF.replace("u1", "u2").replace("base=10 ", ""), "x.slf.gz")
    assert [each.id for each in both] == ["u1", "u2"]
    assert both[0].names == ("am", "lm", "words")
    assert said(both[1]) == {"rains": [-3.5, -0.25, 1.0], "it pours": [-3.0, -1.75, 2.0]}
    ten = math.log(10)
    assert said(both[0])["it pours"] == pytest.approx([-3.0 * ten, -1.75 * ten, 2.0])


def test_links_without_scores_and_words_where_links_begin(tmp_path: Path) -> None:
    text = "VERSION=1.0\ndir=b\nN=3 L=2\nI=0 W=a\nI=1 W=b\nI=2\nJ=0 S=0 E=1\nJ=1 S=1 E=2 a=-2 l=-1\n"
    first, second = read(tmp_path, text + text)
    assert said(first) == {"a b": [-2.0, -1.0, 2.0]}  # columns are those of any link
    assert (first.id, second.id) == ("x", "x-2")


def test_lattices_of_openfst_and_kaldi(tmp_path: Path) -> None:
    first, second = read(tmp_path, KALDI)
    assert (first.id, second.id, first.names) == ("u1", "u2", ("lm", "am", "words"))
    assert said(first) == {"it rains": [-1.625, -3.25, 2.0], "it pours": [-0.875, -3.75, 2.0]}
    assert said(second) == {"": [0.0, 0.0, 0.0]}
    table = tmp_path / "words.txt"
    table.write_text("<eps> 0\nit 1\nrains 2\n")
    acceptor, transducer = "0 1 2 0.5\n0 3 1\n1 2\n", "0 1 9 1 1.5\n1 0\n"
    (one,) = read(tmp_path, acceptor, symbols=read_symbols(table))
    assert said(one) == {"rains": [-2.5, 1.0]}  # 3 leads nowhere
    (two,) = read(tmp_path, transducer, symbols=read_symbols(table))
    assert said(two) == {"it": [-1.5, 1.0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1 a 1\n1 0 b 1\n1\n", "a cycle through the nodes"),
        ("0 1 a 1\n2 3 b 1\n3\n", "no path from '0' to an end"),
        ("0 1 a a x\n1\n", "found x; expected a number"),
        ("0 1 a 1,2\n1 2 b 3\n2\n", "found the weight '3'; expected 2 numbers"),
        ("VERSION=1.0\nN=2 L=1\nJ=0 S=0 W=a\n", "a link without its nodes"),
        ("VERSION=1.0\nN=3 L=2\nJ=0 S=0 E=1 W=a a=1\nJ=1 S=2 E=1 W=b a=1\n", "found 2 nodes that no arc leads to"),
        ("VERSION=1.0\nN=3 L=2\nJ=0 S=0 E=1 W=a a=\nJ=1 S=1 E=2 W=b\n", "found a=nothing; expected a number"),
        ("0 1 a 1\n", "found no line of an end"),
        ("VERSION=1.0\nN=3 L=2\nJ=0 S=0 E=1 W=a a=1\n", "found 1 links; expected 2, as the header says"),
        ("0 1 a Infinity\n1\n", "no path from '0' to an end"),
    ],
)
def test_what_is_no_lattice(text: str, message: str, tmp_path: Path) -> None:
    (found,) = read(tmp_path, text)
    assert isinstance(found, SkippedList)
    assert message in found.message


def test_a_table_of_symbols_has_words_with_numbers(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("a b\n")
    with pytest.raises(DataError, match="expected a word and its number"):
        read_symbols(tmp_path / "words")
