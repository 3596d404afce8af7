"""Judged brackets: their columns, their trees, and boosted trees without scikit-learn."""

from collections import Counter
from functools import cache

import nltk
import numpy as np
import pytest
import reference_columns as reference
from fusable import parsed, tree_texts
from hypothesis import given
from hypothesis import strategies as st
from reference_decoding import Span, spans

from rerank.base import interrupts
from rerank.data.symbols import SymbolTable
from rerank.metrics.bracket_model import (
    ASCENDING,
    NUMBERS,
    OTHER,
    SYMBOLS,
    Arrays,
    BracketColumns,
    BracketModel,
    bracket_columns,
    fit,
    right_brackets,
)
from rerank.metrics.fusion import Fusion
from rerank.readers.trees.trees import brackets, parse_brackets

BROKEN = {
    "first": lambda a: a + 1,
    "child": lambda a: a * 0,  # a path that never ends
    "feature": lambda a: a + 99,
    "value": lambda a: a + np.nan,
    "threshold": lambda a: a[1:],
    "codes": lambda a: a - 99,
    "deviation": lambda a: a * 0,
    "members": lambda a: a.astype(np.float64),
}


@st.composite
def scored_trees(draw: st.DrawFn) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Some trees with two scores each."""
    texts = draw(st.lists(tree_texts(), min_size=1, max_size=6))
    numbers = st.lists(st.integers(-8, 8), min_size=len(texts), max_size=len(texts))
    return texts, np.array(draw(numbers)) / 4, np.array(draw(numbers)) / 4


def keys(fusion: Fusion) -> list[Span]:
    found = fusion.brackets
    rows = zip(*(array.tolist() for array in (found.label, found.start, found.end, found.copy)), strict=True)
    return [(fusion.symbols.text(label), start, end, copy) for label, start, end, copy in rows]


@given(scored_trees(), st.sampled_from([0.5, 2.0]))
def test_columns_are_what_they_are_defined_as(
    given_: tuple[list[str], np.ndarray, np.ndarray], sharpness: float
) -> None:
    texts, scores, base = given_
    symbols, trees, plain = parsed(texts)
    fusion = Fusion(trees, symbols)
    found = bracket_columns(fusion, scores, base, sharpness)
    wanted = reference.columns(plain, scores, base, sharpness)
    assert found.numbers.shape == (len(wanted), len(NUMBERS))
    for row, ids, key in zip(found.numbers, found.symbols.tolist(), keys(fusion), strict=True):
        around, numbers = wanted[key]
        assert ["" if one < 0 else symbols.text(one) for one in ids] == around
        np.testing.assert_allclose(row, numbers, rtol=1e-9, atol=1e-9)


@given(scored_trees(), st.integers(1, 300))
def test_brackets_judged_in_pieces_are_the_same(given_: tuple[list[str], np.ndarray, np.ndarray], piece: int) -> None:
    texts, scores, base = given_
    symbols, trees, _ = parsed(texts)
    fusion = Fusion(trees, symbols)
    if not fusion.used.any():
        return

    def work() -> tuple[np.ndarray, np.ndarray]:
        columns = bracket_columns(fusion, scores, base, 1.0)
        return columns.numbers, fusion.without_crossing(columns.numbers[:, 0] + 100)

    whole = work()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interrupts, "PIECE", piece)
        for found, expected in zip(work(), whole, strict=True):
            np.testing.assert_array_equal(found, expected)


@given(scored_trees(), tree_texts())
def test_right_brackets_are_those_of_the_gold_tree(given_: tuple[list[str], np.ndarray, np.ndarray], gold: str) -> None:
    symbols, trees, _ = parsed(given_[0])
    fusion, own = Fusion(trees, symbols), Fusion(parse_brackets([gold.encode()], symbols), symbols)
    golds = set(keys(own))
    assert right_brackets(fusion, own).tolist() == [key in golds for key in keys(fusion)]


@given(scored_trees(), st.sampled_from([0.0, 0.2, 0.5]), st.randoms(use_true_random=False))
def test_judged_brackets_make_the_tree_of_the_more_probable(
    given_: tuple[list[str], np.ndarray, np.ndarray], threshold: float, random: object
) -> None:
    """Whatever their probabilities are, what comes out is a tree over the same words."""
    texts, scores, _ = given_
    symbols, trees, plain = parsed(texts)
    fusion = Fusion(trees, symbols)
    found = keys(fusion)
    judged = np.array([random.randrange(1, 1000) for _ in found]) / 1000 + np.arange(len(found)) * 1e-6  # type: ignore[attr-defined]
    own = fusion.trees(np.exp(scores)[None], np.array([threshold]), judged[None])
    answer = nltk.Tree.fromstring(brackets(own, 0, symbols))
    assert answer.leaves() == plain[0].leaves()
    wanted = Counter(span[:3] for span in reference.kept(dict(zip(found, judged.tolist(), strict=True)), threshold))
    assert Counter(span[:3] for span in spans(answer)) == wanted


def examples(n: int = 400, seed: int = 0) -> tuple[BracketColumns, np.ndarray, SymbolTable]:
    """Brackets with random columns, whose first symbol and log-odds say which are right."""
    random, symbols = np.random.default_rng(seed), SymbolTable()
    ids = np.array([symbols.intern(f"L{k}") for k in range(60)], np.int32)
    own = ids[np.minimum(random.geometric(0.08, (n, len(SYMBOLS))) - 1, 59)]
    own[random.random(own.shape) < 0.05] = -1
    numbers = random.normal(size=(n, len(NUMBERS)))
    right = random.random(n) < 1 / (1 + np.exp(-numbers[:, 1] - (own[:, 0] % 3 - 1)))
    return BracketColumns(numbers, own), right, symbols


@cache
def learned() -> tuple[BracketModel, BracketColumns, np.ndarray, SymbolTable]:
    pytest.importorskip("sklearn", reason="scikit-learn fits the trees")
    columns, right, symbols = examples()
    return fit(columns, right, symbols, 2.0), columns, right, symbols


def test_probabilities_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of brackets that it was fitted on, and of others, with symbols that were never seen."""
    ensemble = pytest.importorskip("sklearn.ensemble", reason="scikit-learn fits the trees")
    fitted: list[object] = []
    plain = ensemble.HistGradientBoostingClassifier.fit
    monkeypatch.setattr(
        ensemble.HistGradientBoostingClassifier, "fit", lambda own, *data: fitted.append(own) or plain(own, *data)
    )
    columns, right, symbols = examples()
    model = fit(columns, right, symbols, 2.0)
    unseen = symbols.intern("never seen")
    other, _, _ = examples(seed=1)
    other.symbols[::3, 2], other.symbols[::4, 0] = unseen, unseen
    for each in (columns, other):
        rows = model.rows(each, symbols)
        wanted = fitted[0].predict_proba(np.where(rows == 63, np.nan, rows))[:, 1]  # type: ignore[attr-defined]
        np.testing.assert_allclose(model.probabilities(each, symbols), wanted, rtol=1e-12)
    assert model.rows(other, symbols)[::3, 2].tolist() == [63] * len(other.numbers[::3])
    assert OTHER in model.rows(columns, symbols)


def test_the_same_brackets_give_the_same_bits() -> None:
    model, columns, right, symbols = learned()
    for a, b in zip(model.arrays, fit(columns, right, symbols, 2.0).arrays, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_speaks_for_a_bracket_never_lowers_its_probability() -> None:
    model, columns, _, symbols = learned()
    before = model.probabilities(columns, symbols)
    for place in range(len(ASCENDING)):
        more = columns.numbers.copy()
        more[:, place] += 1.0
        assert (model.probabilities(columns._replace(numbers=more), symbols) >= before - 1e-12).all()


def test_symbols_are_known_by_their_texts() -> None:
    """Another table of symbols gives them other numbers."""
    model, columns, _, symbols = learned()
    other = SymbolTable()
    ids = {
        symbol: other.intern(symbols.text(symbol))
        for symbol in sorted(set(columns.symbols.ravel().tolist()) - {-1})[::-1]
    }
    moved = np.vectorize(lambda one: ids.get(one, -1), otypes=[np.int32])(columns.symbols)
    same = model.probabilities(columns._replace(symbols=moved), other)
    np.testing.assert_array_equal(same, model.probabilities(columns, symbols))


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_arrays_that_are_no_trees_are_refused(name: str) -> None:
    arrays = learned()[0].arrays._asdict()
    assert BracketModel.of(arrays).arrays.feature.size == arrays["feature"].size
    with pytest.raises(ValueError, match="brackets"):
        BracketModel.of(arrays | {name: BROKEN[name](arrays[name])})


def test_a_missing_array_is_refused() -> None:
    arrays = learned()[0].arrays._asdict()
    del arrays["child"]
    with pytest.raises(ValueError, match="expected baseline, first"):
        BracketModel.of(arrays)
    assert set(arrays) | {"child"} == set(Arrays._fields)


@given(scored_trees(), st.integers(0, 2**32 - 1), st.sampled_from([0.3, 0.5]))
def test_the_nearest_candidate_is_worth_most(
    given_: tuple[list[str], np.ndarray, np.ndarray], seed: int, threshold: float
) -> None:
    """Bracket by bracket."""
    texts, scores, _ = given_
    symbols, trees, _ = parsed(texts)
    fusion = Fusion(trees, symbols)
    judged = np.random.default_rng(seed).random(fusion.brackets.label.size)
    place, lost = fusion.nearest(judged, threshold, scores)
    worth = {
        t: sum(judged[b] - threshold for b in np.flatnonzero(fusion.brackets.owned[t]))
        for t in np.flatnonzero(fusion.used)
    }
    assert worth[place] == pytest.approx(max(worth.values()))
    fused = sum(p - threshold for p in fusion.without_crossing(judged) if p > threshold)
    assert lost == pytest.approx(max(0.0, fused - worth[place]))
