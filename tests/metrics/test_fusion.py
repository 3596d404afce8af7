"""Reciprocal-rank and learned fusion: the definitions, independent twins, ties."""

import math
from collections import Counter, defaultdict
from functools import cache

import nltk
import numpy as np
import pytest
import reference_decoding as reference
from hypothesis import given
from hypothesis import strategies as st
from reference_decoding import Span, crossing, posteriors, softmax, spans
from reference_trees import tree_over

from rerank.base import interrupts
from rerank.data.symbols import SymbolTable
from rerank.data.trees import Trees, brackets, parse_brackets
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

# Trees over five words, with unary chains, some of them with one label twice, and traces.
TREES = st.sampled_from(["S1", "S1", ""]).flatmap(
    lambda root: tree_over("01234", root, ["A", "B", "C-F"], ["X", "Y"], traces=True)
)
TEXTS = TREES.map(lambda tree: tree.pformat(margin=10**9))


def parsed(texts: list[str]) -> tuple[SymbolTable, Trees, list[nltk.Tree]]:
    symbols = SymbolTable()
    trees = parse_brackets([text.encode() for text in texts], symbols)
    plain = [reference.without_traces(nltk.Tree.fromstring(text)) for text in texts]
    assert None not in plain
    return symbols, trees, plain  # type: ignore[return-value]


def same_words(a: Span, b: Span) -> bool:
    return a != b and a[1:3] == b[1:3]


def log_odds(p: float, least: float = 1e-6) -> float:
    p = min(max(p, least), 1 - least)
    return math.log(p / (1 - p))


def children(found: list[Span], place: int, first: int, last: int, tags: list[str]) -> list[tuple[str, int]]:
    """Of the words from ``first`` to before ``last``, which the bracket before ``place`` holds: the label of each child
    and its place, the tag and -1 of each word that no other bracket holds."""
    own, word = list[tuple[str, int]](), first
    while word < last:
        holder = next((p for p in range(place, len(found)) if found[p][1] <= word < found[p][2]), -1)
        own.append((found[holder][0] if holder >= 0 else tags[word], holder))
        word = found[holder][2] if holder >= 0 else word + 1
    return own


def kin(tree: nltk.Tree, span: Span) -> tuple[list[str], int]:
    """What is around a bracket of a tree: parent, grandparent, siblings, first and last child; how many children."""
    found, tags = spans(tree), [tag for _, tag in tree.pos()]
    place = found.index(span)
    holders = [p for p in range(place) if found[p][1] <= span[1] and span[2] <= found[p][2]]
    above = ["", "", *(found[p][0] for p in holders)]
    whole = (holders[-1] + 1, *found[holders[-1]][1:3]) if holders else (0, 0, len(tags))
    siblings = children(found, *whole, tags)
    at = [p for _, p in siblings].index(place)
    beside = ["", *(label for label, _ in siblings), ""]
    own = [label for label, _ in children(found, place + 1, span[1], span[2], tags)]
    return [above[-1], above[-2], beside[at], beside[at + 2], own[0], own[-1]], len(own)


def columns(
    trees: list[nltk.Tree], scores: np.ndarray, base: np.ndarray, sharpness: float
) -> dict[Span, tuple[list[str], list[float]]]:
    """The symbols and numbers of every bracket that any of the trees has."""
    weights = [softmax(scores, sharpness * scale) for scale in (0.5, 1.0, 2.5)] + [softmax(base, 1.0)]
    flat, middle, sharp, by_base = (posteriors(trees, p) for p in weights)
    has = [set(spans(tree)) for tree in trees]
    best_first = sorted(range(len(trees)), key=lambda t: (-scores[t], t))
    tagged = trees[best_first[0]].pos()
    tags, words = ["", *(tag for _, tag in tagged), ""], ["", *(word.lower() for word, _ in tagged), ""]
    entropy = -sum(p * math.log(p) for p in weights[1] if p > 0)
    found = {}
    for span in middle:
        label, start, end, _ = span
        own = [t for t in best_first if span in has[t]]
        others = [t for t in best_first if span not in has[t]]
        margin = min(max(scores[own[0]] - scores[others[0]], -20.0), 20.0) if others else 20.0
        mass: dict[str, float] = defaultdict(float)
        for t in others:
            crosses = any(crossing(span, other) for other in has[t])
            relabels = not crosses and any(same_words(span, other) for other in has[t])
            for k in (1, 3):
                mass[f"crossed {k}"] += weights[k][t] * crosses
                mass[f"relabelled {k}"] += weights[k][t] * relabels
        numbers = [log_odds(p[span]) for p in (flat, middle, sharp, by_base)]
        numbers += [log_odds(len(own) / len(trees), 0.5 / len(trees)), margin]
        numbers += [mass[f"{what} {k}"] for what in ("crossed", "relabelled") for k in (1, 3)]
        numbers.append(max((middle[other] for other in middle if crossing(span, other)), default=0.0))
        numbers.append(max((middle[other] for other in middle if same_words(span, other)), default=0.0))
        around, size = kin(trees[own[0]], span)
        numbers += [end - start, len(tags) - 2, start, len(trees), entropy, size]
        edges = (start + 1, end, start, end + 1)
        found[span] = [label, *around, *(tags[k] for k in edges), *(words[k] for k in edges)], numbers
    return found


def kept(judged: dict[Span, float], threshold: float) -> list[Span]:
    """The brackets above a threshold, without those that cross a more probable one."""
    found: list[Span] = []
    for span in sorted(judged, key=lambda span: -judged[span]):
        if judged[span] > threshold and not any(crossing(span, other) for other in found):
            found.append(span)
    return found


@st.composite
def weighted_trees(draw: st.DrawFn) -> tuple[list[str], np.ndarray]:
    """Some trees and their probabilities, equal ones among them."""
    texts = draw(st.lists(TEXTS, min_size=1, max_size=6))
    weight = draw(st.lists(st.integers(1, 4), min_size=len(texts), max_size=len(texts)))
    return texts, np.array(weight) / sum(weight)


def fused(texts: list[str], p: np.ndarray, *thresholds: float) -> list[nltk.Tree]:
    symbols, trees, _ = parsed(texts)
    found = Fusion(trees, symbols).trees(p[None], np.array(thresholds))
    return [nltk.Tree.fromstring(brackets(found, k, symbols)) for k in range(len(thresholds))]


@given(weighted_trees())
def test_brackets_and_tags_are_those_with_the_weight(given_: tuple[list[str], np.ndarray]) -> None:
    texts, p = given_
    _, _, trees = parsed(texts)
    thresholds = (0.5, 0.6, 0.75, 0.99)
    for threshold, tree in zip(thresholds, fused(texts, p, *thresholds), strict=True):
        assert Counter(span[:3] for span in reference.spans(tree)) == reference.fused_spans(trees, p, threshold)
        assert tree.leaves() == trees[0].leaves()
        assert [tag for _, tag in tree.pos()] == reference.fused_tags(trees, p)


@given(weighted_trees())
def test_nodes_know_their_places(given_: tuple[list[str], np.ndarray]) -> None:
    """The arrays of a fused tree are those that reading its text gives."""
    texts, p = given_
    symbols, trees, _ = parsed(texts)
    found = Fusion(trees, symbols).trees(p[None], np.array([0.5, 0.7]))
    again = parse_brackets([brackets(found, k, symbols).encode() for k in range(2)], symbols)
    for k in range(2):
        own, other = (slice(each.first[k], each.first[k + 1]) for each in (found, again))
        for name in ("label", "word", "size", "start", "end"):
            assert getattr(found, name)[own].tolist() == getattr(again, name)[other].tolist()
        parents = [each.parent[part] - each.first[k] for each, part in ((found, own), (again, other))]
        assert parents[0][1:].tolist() == parents[1][1:].tolist()


def test_the_order_of_a_unary_chain_is_that_of_more_weight() -> None:
    texts = ["(S1 (S (A (B (X 0) (X 1)))))", "(S1 (S (B (A (X 0) (X 1)))))"]
    for p in ([0.6, 0.4], [0.4, 0.6]):
        (tree,) = fused(texts, np.array(p), 0.5)
        assert str(tree) == str(nltk.Tree.fromstring(texts[int(np.argmax(p))]))


def test_who_votes_for_a_bracket() -> None:
    symbols, trees, _ = parsed(["(S1 (S (A (X 0)) (X 1)))", "(S1 (S (X 0) (X 1)))", "(S1 (S (A (X 0)) (X 1)))"])
    votes = Fusion(trees, symbols).votes(np.array([1.0, 2.0, 1.0]))
    assert [tuple(vote) for vote in votes] == [("S", 0, 2, 1.0, [0, 1, 2]), ("A", 0, 1, 0.5, [0, 2])]


def test_candidates_with_other_words_do_not_vote() -> None:
    texts = ["(())", "(S1 (A (X 0) (X 1)))", "(S1 (B (X 0)))", "(S1 (B (X 0) (X 2)))", "(S1 (C (X 0) (X 1)))"]
    symbols = SymbolTable()
    fusion = Fusion(parse_brackets([text.encode() for text in texts], symbols), symbols)
    assert fusion.left_out == 3
    assert fusion.used.tolist() == [False, True, False, False, True]
    found = fusion.trees(np.array([[0.1, 0.01, 0.5, 0.3, 0.02]]), np.array([0.5]))
    assert brackets(found, 0, symbols) == "(S1 (C (X 0) (X 1)))"


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
    texts = draw(st.lists(TEXTS, min_size=1, max_size=6))
    numbers = st.lists(st.integers(-8, 8), min_size=len(texts), max_size=len(texts))
    return texts, np.array(draw(numbers)) / 4, np.array(draw(numbers)) / 4


def keys(fusion: Fusion) -> list[Span]:
    found = fusion.brackets
    rows = zip(*(array.tolist() for array in (found.label, found.start, found.end, found.copy)), strict=True)
    return [(fusion.symbols.text(label), start, end, copy) for label, start, end, copy in rows]


@given(scored_trees(), st.sampled_from([0.5, 2.0]))
def test_columns_are_those_defined(given_: tuple[list[str], np.ndarray, np.ndarray], sharpness: float) -> None:
    texts, scores, base = given_
    symbols, trees, plain = parsed(texts)
    fusion = Fusion(trees, symbols)
    found = bracket_columns(fusion, scores, base, sharpness)
    wanted = columns(plain, scores, base, sharpness)
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


@given(scored_trees(), TEXTS)
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
    wanted = Counter(span[:3] for span in kept(dict(zip(found, judged.tolist(), strict=True)), threshold))
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
def test_the_nearest_is_worth_most(
    given_: tuple[list[str], np.ndarray, np.ndarray], seed: int, threshold: float
) -> None:
    """Bracket by bracket."""
    texts, scores, _ = given_
    symbols, trees, _ = parsed(texts)
    fusion = Fusion(trees, symbols)
    judged = np.random.default_rng(seed).random(fusion.brackets.label.size)
    place, lost = fusion.nearest(judged, threshold, scores)
    worth = {
        t: sum(judged[b] - threshold for b in np.flatnonzero(fusion.brackets.incidence[t]))
        for t in np.flatnonzero(fusion.used)
    }
    assert worth[place] == pytest.approx(max(worth.values()))
    fused = sum(p - threshold for p in fusion.without_crossing(judged) if p > threshold)
    assert lost == pytest.approx(max(0.0, fused - worth[place]))
