"""What one long list takes grows as its candidates do, for every template: memory, entries, comparisons."""

import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.data.trees import parse_brackets
from rerank.extraction.content import Content
from rerank.extraction.trees import TreeContent
from rerank.features import extract, sink
from rerank.features.extract import Extractor, TextExtractor
from rerank.features.sink import SHORT_LIST
from rerank.features.template import EITHER, make_template, templates
from rerank.features.text import consensus
from rerank.features.text.view import make_view
from rerank.readers.lists import Lists, SparseScores
from rerank.recipes.recipe import Recipe

SMALL, TIMES = 150, 4


def random_texts(N: int) -> Lists:
    """Candidates of ten words, most of them in one candidate alone, with derivations, dense and sparse scores."""
    rng = np.random.default_rng(N)
    words = [[f"w{word}" for word in row] for row in rng.integers(0, 50 * N, (N, 10))]
    texts = [" ".join(row).encode() for row in words]
    spans = " ".join(f"{i}={i}" for i in range(10)).encode()
    points = " ".join(f"{i}-{i}" for i in range(10)).encode()
    sparse = SparseScores(np.arange(N + 1), [f"s{y}".encode() for y in range(N)], np.ones(N))
    return Lists.one(
        "long", "memory", 1, texts, list(range(N)), rng.normal(size=(N, 3)), names=("total", "lm", "tm"),
        sparse=sparse, segmentation=[spans] * N, alignment=[points] * N,
        source=b" ".join(b"q%d" % i for i in range(10)),
    )  # fmt: skip


def random_trees(N: int) -> list[bytes]:
    """Candidates over eight words with tags, labels and brackets of their own."""
    rng = np.random.default_rng(N)

    def grown(first: int, last: int) -> str:
        if last - first == 1:
            return f"(T{rng.integers(20)} w{first})"
        cut = int(rng.integers(first + 1, last))
        return f"(L{rng.integers(5 * N)} {grown(first, cut)} {grown(cut, last)})"

    return [f"(S1 {grown(0, 8)})".encode() for _ in range(N)]


def of_texts(name: str) -> Callable[[int], object]:
    """Extraction of a list of so many texts by one template."""
    extractor = TextExtractor([make_template(name)], SymbolTable(), centred=False)

    def run(N: int) -> object:
        nbest = random_texts(N)
        view = make_view(nbest, nbest.source or b"", None)
        return lambda: extractor.features(view, nbest, names=False)

    return run


def of_trees(name: str) -> Callable[[int], object]:
    """Extraction of a list of so many trees by one template."""
    symbols = SymbolTable()
    extractor = Extractor([make_template(name)], symbols, centred=False)

    def run(N: int) -> object:
        own = symbols.copy()
        trees = parse_brackets(random_trees(N), own)
        return lambda: extractor.features(trees, -np.arange(1.0, N + 1), symbols=own)

    return run


MAKERS = {"texts": of_texts, "trees": of_trees, EITHER: of_texts}
ALL = [pytest.param(cls.content, name, id=name) for name, cls in templates if cls.__module__.startswith("rerank.")]


def peak(run: Callable[[], object]) -> int:
    """The most bytes at a time."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("content", "name"), ALL)
def test_memory_grows_as_the_candidates(content: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the least room at first, so that what is counted is what the lists need; room grows by fours."""
    monkeypatch.setattr(extract, "new_sink", lambda *sizes: sink.new_sink(1, 1, 1, 1, sizes[-1]))
    run = MAKERS[content](name)
    one, many = (peak(run(N)) for N in (SMALL, SMALL * TIMES))  # type: ignore[arg-type]
    assert many < 2 * TIMES * one  # candidates × features would be TIMES² times as much


def test_candidates_are_compared_with_the_best_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    others = []
    kernel = consensus.expected_edits
    monkeypatch.setattr(consensus, "expected_edits", lambda *given: others.append(given[2]) or kernel(*given))
    nbest = random_texts(SMALL)
    view = make_view(nbest, nbest.source or b"", None)
    TextExtractor([make_template("ConsensusEdits(top=7)")], SymbolTable()).features(view, nbest)
    (found,) = others
    assert found.tolist() == sorted(np.argsort(-nbest.base)[:7].tolist())


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (None, "its features fire more than 1,000 times"),
        (MemoryError(), "90 candidates need more memory than there is"),
        (5e3, "its features take more than 0.0 GB, more than this process may have"),
    ],
)
def test_what_nothing_holds_is_named(
    failure: Exception | float | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = {"set": None, "templates": ["Rule"]}
    recipe = Recipe.model_validate({"name": "long", "data": {"root": "."}, "features": features})
    content: Content = TreeContent(recipe, keeps_texts=False)
    nbest = Lists.one("long", "lists.gz", 7, random_trees(90), list(range(90)), np.zeros((90, 1)))
    opened = content.open(nbest)
    monkeypatch.setattr(sink, "MAX_INDEX", 1_000)
    monkeypatch.setattr(extract, "new_sink", lambda *_: sink.new_sink(1, 1, 1, 1))

    def larger(_: object) -> object:
        raise failure  # type: ignore[misc]

    if isinstance(failure, float):
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=failure))
    elif failure is not None:
        monkeypatch.setattr(extract, "larger", larger)
    with pytest.raises(DataError) as caught:
        content.features(*opened)
    assert str(caught.value).startswith(f"lists.gz:7: list long: {said}")
    assert "keep fewer candidates per list, or name fewer templates" in str(caught.value)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("N", [SHORT_LIST - 1, SHORT_LIST, SHORT_LIST + 1, 3 * SHORT_LIST])
def test_values_are_the_same_whatever_the_length(N: int, centred: bool) -> None:
    """Of features that fire in all candidates, in many and in few, against what the template gave."""
    rng, symbols = np.random.default_rng(N), SymbolTable()
    given = np.stack([rng.integers(-1, 2, N) * (rng.random(N) < share) for share in (1, 0.6, 0.1, 0.02)] * 3, axis=1)
    user = {"own": lambda y: {f"f{k}": float(given[y, k]) for k in rng.permutation(given.shape[1]) if given[y, k]}}
    trees = parse_brackets([b"(S1 (T w))"] * N, symbols)
    found = Extractor([], symbols, user=user, centred=centred).features(trees, np.zeros(N), range(N))
    names = [symbols.text_of_hash(int(found.symbols[first])) for first in found.symbol_first]
    assert sorted(names) == sorted(f"f{k}" for k in range(given.shape[1]) if np.ptp(given[:, k]))
    for i, name in enumerate(names):
        entries, column = slice(found.first[i], found.first[i + 1]), given[:, int(name[1:])]
        assert (np.diff(found.candidate[entries]) > 0).all()
        values = np.full(N, found.origin[i])
        values[found.candidate[entries]] += found.value[entries]
        assert values.tolist() == column.tolist()
        assert np.count_nonzero(found.value[entries]) == np.count_nonzero(column != found.origin[i])
        assert centred or found.origin[i] == 0
