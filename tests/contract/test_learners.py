"""What every registered learner must do; a new one needs an entry in a module of ``twins``, and no test of its own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from reference_pairs import ORACLES, Pairs
from strategies import WIDTH, bits, corpora, corpus_of, random_corpus, run, stored, targets
from variants import LEARNERS, exact, make, rounding_of, twin_of, variants

import rerank.learn
from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.learn.base import Learner, learners
from rerank.learn.log import UpdateLog
from rerank.learn.pairs import PairSource, require_source
from rerank.learn.scoring import best, scores
from rerank.learn.trainer import ORACLE_PAIRS
from rerank.learn.voting.voting import vote

assert rerank.learn  # importing it registers the learners

ARRAYS = ("lists", "rows", "columns", "values", "base", "gain", "stats", "reference", "weight")
EPOCHS = 3
SOURCES = [
    PairSource("hope-fear", tilt=2.0),
    PairSource("sampled", tilt=0.5, draws=4, threshold=0.25),
    PairSource("oracle", tilt=0.5),
]


def fields(kind: type) -> Any:
    """Every parameter of every registered learner of a type; limits that are left out by default are numbers."""
    return pytest.mark.parametrize(
        ("name", "parameter"),
        [
            pytest.param(name, item.name, id=f"{name}.{item.name}")
            for name, cls in learners
            for item in dataclasses.fields(cls)  # type: ignore[arg-type]
            if type(0.0 if item.default is None else item.default) is kind
        ],
    )


def variants_with_sources(*sources: PairSource) -> Iterator[Any]:
    """Every variant with every source that the learner takes; the tilt of oracles' pairs is of the loss cost alone."""
    for variant in variants():
        name, parameters = variant.values
        for pairs in sources:
            taken = pairs is ORACLE_PAIRS or pairs.name != "oracle" or parameters.get("loss") == "cost"
            if taken and pairs.name in learners.get(name).sources:
                yield pytest.param(name, parameters, pairs, id=f"{variant.id}-{pairs.name}-{pairs.tilt}")


every_source = pytest.mark.parametrize(("name", "parameters", "pairs"), list(variants_with_sources(*SOURCES)))


every_variant = pytest.mark.parametrize(("name", "parameters"), list(variants()))


@pytest.mark.parametrize("name", [name for name, _ in learners])
def test_has_an_entry(name: str) -> None:
    assert name in LEARNERS, f"learner {name!r} has no entry: add variants and a dense twin to a module of tests/twins"
    assert LEARNERS[name].variants
    assert learners.get(name).name == name


@every_variant
def test_parameters_are_frozen(name: str, parameters: dict[str, Any]) -> None:
    learner = make(name, parameters)
    with pytest.raises(dataclasses.FrozenInstanceError):
        learner.base = 3.0  # type: ignore[attr-defined]


@every_variant
def test_same_seed_same_bits(name: str, parameters: dict[str, Any]) -> None:
    corpus, learner = random_corpus(1), make(name, parameters)
    one, two = run(learner, corpus, EPOCHS), run(make(name, parameters), corpus, EPOCHS)
    assert bits(one.state) == bits(two.state)
    assert one.stats == two.stats
    for key, array in one.log.arrays().items():
        assert array.tobytes() == two.log.arrays()[key].tobytes()


@every_variant
def test_the_corpus_stays_untouched(name: str, parameters: dict[str, Any]) -> None:
    corpus, learner = random_corpus(2), make(name, parameters)
    oracles = targets(corpus)
    before = {key: getattr(corpus, key).tobytes() for key in ARRAYS}
    kept = oracles.copy()
    run(learner, corpus, EPOCHS, oracles=oracles)
    assert {key: getattr(corpus, key).tobytes() for key in ARRAYS} == before
    assert not any(getattr(corpus, key).flags.writeable for key in ARRAYS)
    np.testing.assert_array_equal(oracles, kept)
    assert oracles.flags.writeable


@every_variant
def test_a_stored_state_goes_on_as_one_that_stayed(name: str, parameters: dict[str, Any]) -> None:
    corpus, learner = random_corpus(3), make(name, parameters)
    whole = run(learner, corpus, 4)
    half = run(learner, corpus, 2)
    rest = run(learner, corpus, 2, state=stored(half.state), first=2)
    assert bits(rest.state) == bits(whole.state)
    assert rest.stats == whole.stats[2:]


@every_variant
def test_predictors_are_copies(name: str, parameters: dict[str, Any]) -> None:
    """Neither does reading a predictor change the state, nor does training change a predictor that was read."""
    corpus, learner = random_corpus(3), make(name, parameters)
    ran = run(learner, corpus, 1)
    before, weights = bits(ran.state), (learner.last(ran.state), learner.average(ran.state))
    kept = [w.copy() for w, _ in weights]
    for w, _ in weights:
        assert w.dtype == np.float64
        assert w.shape == (corpus.width,)
    assert bits(ran.state) == before
    run(learner, corpus, 1, state=ran.state, first=1)
    for (w, _), old in zip(weights, kept, strict=True):
        np.testing.assert_array_equal(w, old)
        w[:] = np.nan
    assert np.isfinite(learner.last(ran.state).w).all()
    assert np.isfinite(learner.average(ran.state).w).all()


@every_variant
def test_learns_a_separable_corpus(name: str, parameters: dict[str, Any]) -> None:
    """Every oracle is ahead by 2 of the others under weights ±1: no mistakes in the end, by any predictor."""
    random = np.random.default_rng(5)
    truth = random.choice([-1.0, 1.0], size=WIDTH)
    lists: list[list[Any]] = []
    while len(lists) < 25:
        rows = random.integers(-2, 3, size=(4, WIDTH)) / 2
        rows = rows[np.argsort(-rows @ truth)]
        if rows[0] @ truth >= rows[1] @ truth + 2:
            made = [(dict(enumerate(row)), random.integers(-2, 3) / 4, float(y == 0)) for y, row in enumerate(rows)]
            lists.append([made[y] for y in random.permutation(4)])
    corpus, learner = corpus_of(lists), make(name, parameters)
    ran = run(learner, corpus, 40)
    assert ran.per_epoch("mistakes")[0] > 0
    assert ran.per_epoch("mistakes")[-1] == 0
    for weights in (learner.last(ran.state), learner.average(ran.state)):
        np.testing.assert_array_equal(best(corpus, scores(corpus, weights)), targets(corpus))


@fields(float)
def test_bad_numbers_are_refused(name: str, parameter: str) -> None:
    positive = parameter in LEARNERS[name].positive
    allowed = "expected a finite number above 0" if positive else "expected a finite number from 0"
    bad: list[Any] = [math.nan, -1.0, -1e-300, math.inf, -math.inf, "1", True, [1.0], 10**400]
    item = next(f for f in dataclasses.fields(learners.get(name)) if f.name == parameter)  # type: ignore[arg-type]
    none = [] if "None" in str(item.type) else [None]  # some limits can be left out
    for value in bad + none + [0, 0.0] * positive:
        with pytest.raises(RecipeError) as caught:
            learners.get(name)(**{parameter: value})
        assert caught.value.key == parameter
        assert allowed in caught.value.message
        assert repr(value) in caught.value.message
        with pytest.raises(RecipeError, match=rf"^learner\.{parameter}: "):
            make(name, {parameter: value})
    for value in [1, 0.5, *([] if positive else [0, 0.0])]:
        assert getattr(make(name, {parameter: value}), parameter) == value


@fields(bool)
def test_bad_switches_are_refused(name: str, parameter: str) -> None:
    for value in ("yes", 1, None, 0.0):
        with pytest.raises(RecipeError, match="expected true or false") as caught:
            learners.get(name)(**{parameter: value})
        assert caught.value.key == parameter


@fields(int)
def test_bad_counts_are_refused(name: str, parameter: str) -> None:
    for value in (0, -1, 1.0, True, 2**31, "2", None):
        with pytest.raises(RecipeError, match="expected a whole number from 1") as caught:
            learners.get(name)(**{parameter: value})
        assert caught.value.key == parameter


@fields(str)
def test_bad_names_are_refused(name: str, parameter: str) -> None:
    for value in ("", "nonsense", None, 3, ["hinge"]):
        with pytest.raises(RecipeError, match="expected one of") as caught:
            learners.get(name)(**{parameter: value})
        assert caught.value.key == parameter
        assert repr(value) in caught.value.message
        default = next(f.default for f in dataclasses.fields(learners.get(name)) if f.name == parameter)  # type: ignore[arg-type]
        assert str(default) in caught.value.message


def test_an_unknown_parameter_is_refused() -> None:
    for name, _ in learners:
        with pytest.raises(RecipeError, match="has no 'nonsense'"):
            make(name, {"nonsense": 1})


@pytest.mark.parametrize(("name", "parameters", "pairs"), [*variants_with_sources(ORACLE_PAIRS, *SOURCES)])
def test_equals_its_twin(name: str, parameters: dict[str, Any], pairs: PairSource) -> None:
    corpus, learner = random_corpus(4), make(name, parameters)
    ran = run(learner, corpus, EPOCHS, pairs=pairs)
    trace = twin_of(learner, corpus, EPOCHS, pairs=ORACLES if pairs is ORACLE_PAIRS else Pairs(pairs))
    assert ran.per_epoch("mistakes") == trace.mistakes
    assert ran.per_epoch("updates") == trace.updates
    assert ran.per_epoch("loss") == pytest.approx(trace.loss, rel=1e-10)
    assert learner.updates(ran.state) == len(trace.deltas) > 0
    assert ran.log.arrays()["survived"].tolist() == trace.survived
    np.testing.assert_allclose(learner.last(ran.state).w, trace.predictors[-1].w, rtol=1e-10, atol=1e-12)
    assert learner.last(ran.state).base == pytest.approx(trace.predictors[-1].beta, rel=1e-10)
    w, beta = trace.average()
    np.testing.assert_allclose(learner.average(ran.state).w, w, rtol=1e-10, atol=1e-12)
    assert learner.average(ran.state).base == pytest.approx(beta, rel=1e-10)


@st.composite
def drawn(draw: st.DrawFn, name: str) -> tuple[Learner, PairSource]:
    """A learner with one of its variants, or with any of its choices; and pairs that it takes."""
    entry = LEARNERS[name]
    anything = st.fixed_dictionaries({key: st.sampled_from(values) for key, values in entry.choices.items()})
    try:
        learner = make(name, draw(st.one_of(anything, anything, st.sampled_from(entry.variants))))
    except RecipeError:  # two choices that exclude each other
        reject()
    taken = [pairs for pairs in SOURCES if pairs.name in learner.sources and not entry.duals]
    return learner, draw(st.sampled_from([ORACLE_PAIRS, ORACLE_PAIRS, *taken]))


@pytest.mark.parametrize("name", [name for name, _ in learners])
@settings(max_examples=100)
@given(
    data=st.data(), dyadic=st.booleans(), whole=st.booleans(), any_ties=st.booleans(), epochs=st.integers(0, 4),
    free=st.sampled_from([0, 0, 2, WIDTH]),
)  # fmt: skip
def test_all_that_is_done_with_any_parameters_is_what_the_twin_does(
    name: str, data: st.DataObject, dyadic: bool, whole: bool, any_ties: bool, epochs: int, free: int
) -> None:
    """What is counted, logged and radius, all predictors, and votes; ties and zeros where sums are exact."""
    learner, pairs = data.draw(drawn(name))
    sure = exact(learner)
    made = (data.draw(corpora(dyadic=dyadic and sure, whole=whole and sure)) for _ in "ab")
    corpus, other = (dataclasses.replace(each, free=free) for each in made)
    with np.errstate(over="ignore", invalid="ignore"):
        trace = twin_of(learner, corpus, epochs, any_ties, ORACLES if pairs is ORACLE_PAIRS else Pairs(pairs))
    rounding, sure = 10 * rounding_of(learner, trace), sure and dyadic
    assume(sure or (trace.gap > 10 * rounding and trace.largest.max() < 1e6))
    ran = run(learner, corpus, epochs, any_ties=any_ties, pairs=pairs)
    votes = learner.votes(ran.log, corpus)
    assume(sure or not reference.residues(votes))
    close = {"rtol": rounding, "atol": rounding / 100}
    assert ran.per_epoch("lists") == [corpus.list_count] * epochs
    assert (ran.per_epoch("mistakes"), ran.per_epoch("updates")) == (trace.mistakes, trace.updates)
    assert ran.per_epoch("loss") == pytest.approx(
        trace.loss, rel=rounding, abs=1e-7 if name in ("cw", "scw") else 1e-11
    )
    assert max((part.radius for parts in ran.stats for part in parts), default=0.0) == pytest.approx(trace.radius)
    assert ran.log.arrays()["lists"].tolist() == trace.lists_of_updates
    assert ran.log.arrays()["survived"].tolist() == votes.survived.tolist() == trace.survived
    found, (w, beta) = reference.trace_of(votes, corpus.width).predictors, trace.average()
    assert len(found) == len(trace.predictors) == learner.updates(ran.state) + 1
    for one, two in zip([*found, learner.last(ran.state)], [*trace.predictors, trace.predictors[-1]], strict=True):
        np.testing.assert_allclose(one.w, two.w, **close)
        assert one[-1] == pytest.approx(two.beta, rel=rounding, abs=1e-11)
    assert not sure or not np.any((learner.last(ran.state).w == 0) != (trace.predictors[-1].w == 0))
    assert learner.nonzero_weights(ran.state) == np.count_nonzero(learner.last(ran.state).w)
    np.testing.assert_allclose(learner.average(ran.state).w, w, **close)
    assert learner.average(ran.state).base == pytest.approx(beta, rel=rounding, abs=1e-11)
    if sure or reference.voting_gap(trace, other) > 10 * rounding:
        np.testing.assert_array_equal(vote(votes, other), reference.votes(trace, other))


@every_variant
def test_votes_end_with_the_bits_of_the_state(name: str, parameters: dict[str, Any]) -> None:
    """But for learners whose steps are products that are rounded once more."""
    corpus, learner = random_corpus(3), make(name, parameters)
    ran = run(learner, corpus, EPOCHS)
    votes, last = learner.votes(ran.log, corpus), learner.last(ran.state)
    end = reference.trace_of(votes, corpus.width).predictors[-1]
    assert votes.first.size > 5
    np.testing.assert_allclose(end.w, last.w, rtol=1e-12, atol=1e-15)
    if name != "arda":
        np.testing.assert_array_equal(end.w, last.w)
        assert end.beta == last.base


@every_variant
@pytest.mark.parametrize("points", [7, 50])
def test_parts_of_an_epoch_change_no_bit(name: str, parameters: dict[str, Any], points: int) -> None:
    corpus, learner = random_corpus(5), make(name, parameters)
    whole, parts = run(learner, corpus, EPOCHS), run(learner, corpus, EPOCHS, points=points)
    assert bits(whole.state) == bits(parts.state)
    assert [len(epoch) for epoch in parts.stats] == [min(points, corpus.list_count)] * EPOCHS
    for counter in ("lists", "mistakes", "updates"):
        assert whole.per_epoch(counter) == parts.per_epoch(counter)
    assert parts.per_epoch("loss") == pytest.approx(whole.per_epoch("loss"))
    for key, array in whole.log.arrays().items():
        np.testing.assert_array_equal(array, parts.log.arrays()[key])


@every_variant
def test_before_the_first_update_the_base_score_decides(name: str, parameters: dict[str, Any]) -> None:
    corpus, learner = random_corpus(5), make(name, parameters | {"base": 0.75})
    for columns in (0, corpus.width):
        state = learner.init(columns)
        for weights in (learner.last(state), learner.average(state)):
            assert (weights.w.tolist(), weights.base) == ([0.0] * columns, 0.75)
        assert learner.updates(state) == 0
    votes = learner.votes(UpdateLog(), corpus)._replace(survived=np.array([7]))
    chosen = np.zeros(corpus.candidate_count)
    chosen[best(corpus, corpus.base)] = 7
    np.testing.assert_array_equal(vote(votes, corpus), chosen)


@every_variant
@pytest.mark.parametrize("sizes", [(2,), (2, 3, 5)])
def test_votes_hold_the_weights_of_the_state_however_sure_a_learner_is(
    name: str, parameters: dict[str, Any], sizes: tuple[int, ...]
) -> None:
    """Large values drive P(y) to 0 and 1: coefficients vanish, and updates of one candidate are logged."""
    random = np.random.default_rng(11)
    lists: list[list[Any]] = [
        [(dict(enumerate(200.0 * random.normal(size=WIDTH))), 0.0, float(y == 0)) for y in range(random.choice(sizes))]
        for _ in range(60)
    ]
    corpus, learner = corpus_of(lists), make(name, parameters)
    ran, w = run(learner, corpus, 2), np.zeros(WIDTH)
    votes = learner.votes(ran.log, corpus)
    assert vote(votes, corpus).sum() == 2 * 60 * 60
    for e in range(int(votes.first[-1])):
        w[votes.columns[e]] = votes.value[e]
    if not votes.threshold.size:
        np.testing.assert_allclose(votes.scale[-1] * w, learner.last(ran.state).w, rtol=1e-9, atol=1e-300)


@every_variant
def test_lists_without_a_choice_change_no_weight(name: str, parameters: dict[str, Any]) -> None:
    """Lists of 0 or 1 candidates are survived."""
    corpus, learner = corpus_of([[], [({0: 1.0}, -3.0, 0.0)], []]), make(name, parameters)
    ran = run(learner, corpus, 2)
    assert ran.per_epoch("lists") == [3, 3]
    assert ran.per_epoch("mistakes") == ran.per_epoch("updates") == ran.per_epoch("loss") == [0, 0]
    assert ran.log.arrays()["survived"].tolist() == [6]
    assert not learner.last(ran.state).w.any()
    assert not learner.last(run(learner, corpus_of([]), 2).state).w.any()


@every_variant
def test_a_corpus_without_columns_gives_weights_without_columns(name: str, parameters: dict[str, Any]) -> None:
    """No feature varies in enough lists: what is left is the base score."""
    corpus, learner = random_corpus(9), make(name, parameters)
    bare = dataclasses.replace(corpus.keep_columns(np.zeros(corpus.width, np.bool_)), width=0, free=0)
    state = run(learner, bare, 2).state
    for weights in (learner.last(state), learner.average(state)):
        assert weights.w.shape == (0,)
        assert np.isfinite(weights.base)


@every_variant
def test_an_order_may_leave_out_and_repeat_lists(name: str, parameters: dict[str, Any]) -> None:
    if LEARNERS[name].duals:
        pytest.skip("a repeated list has one dual variable, its copies have one each")
    corpus, learner = random_corpus(5), make(name, parameters)
    order = np.array([4, 4, 0, 17, 4], np.int64)
    states = []
    for part, of_part in ((corpus, order), (corpus.take(order), np.arange(order.size))):
        state = learner.init(corpus.width, part.candidate_count)
        stats = learner.epoch(part, targets(part), of_part, state, log=UpdateLog(), points=2)
        assert sum(one.lists for one in stats) == order.size
        states.append(state)
    assert bits(states[0]) == bits(states[1])


@every_variant
def test_a_vector_added_to_all_candidates_of_a_list_changes_nothing(name: str, parameters: dict[str, Any]) -> None:
    corpus, learner = random_corpus(6, dyadic=True), make(name, parameters)
    random, phi = np.random.default_rng(6), reference.dense(corpus)
    for first, last in zip(corpus.lists[:-1], corpus.lists[1:], strict=True):
        phi[first:last] += random.integers(-4, 5, size=corpus.width) / 4
    shifted = dense_corpus(corpus, phi)
    one, two = run(learner, corpus, EPOCHS), run(learner, shifted, EPOCHS)
    assert one.per_epoch("mistakes") == two.per_epoch("mistakes")
    if exact(learner):  # the last predictor; averages are summed up whenever a column is touched, and more of them are
        np.testing.assert_array_equal(learner.last(one.state).w, learner.last(two.state).w)
    for predictor in (learner.last, learner.average):
        a, b = predictor(one.state), predictor(two.state)
        np.testing.assert_allclose(a.w, b.w, rtol=1e-9, atol=1e-11)
        assert a.base == pytest.approx(b.base, rel=1e-9)
        np.testing.assert_array_equal(best(corpus, scores(corpus, a)), best(shifted, scores(shifted, b)))


@every_variant
def test_renumbering_columns_commutes_with_training(name: str, parameters: dict[str, Any]) -> None:
    corpus, learner = random_corpus(7, dyadic=True), make(name, parameters)
    new = np.random.default_rng(7).permutation(corpus.width)
    columns = new[corpus.columns]
    order = np.lexsort((columns, np.repeat(np.arange(corpus.candidate_count), np.diff(corpus.rows))))
    renumbered = dataclasses.replace(corpus, columns=columns[order], values=corpus.values[order])
    one, two = run(learner, corpus, EPOCHS), run(learner, renumbered, EPOCHS)
    assert one.per_epoch("mistakes") == two.per_epoch("mistakes")
    for predictor in (learner.last, learner.average):
        a, b = predictor(one.state), predictor(two.state)
        if exact(learner):
            np.testing.assert_array_equal(a.w, b.w[new])
        np.testing.assert_allclose(a.w, b.w[new], rtol=1e-9, atol=1e-11)
        assert a.base == pytest.approx(b.base, rel=1e-9)


@every_variant
def test_the_order_of_candidates_means_nothing(name: str, parameters: dict[str, Any]) -> None:
    """From weights under which nothing ties."""
    corpus, learner = random_corpus(8), make(name, parameters)
    start, random = run(learner, random_corpus(9), 1).state, np.random.default_rng(8)
    ranges = zip(corpus.lists[:-1], corpus.lists[1:], strict=True)
    moved = np.concatenate([random.permutation(np.arange(*pair)) for pair in ranges])
    permuted = dataclasses.replace(corpus, base=corpus.base[moved], gain=corpus.gain[moved])
    permuted = dense_corpus(permuted, reference.dense(corpus)[moved])
    start = learner.adopt(start, corpus.candidate_count)
    one = run(learner, corpus, EPOCHS, state=stored(start))
    two = run(learner, permuted, EPOCHS, state=stored(start))
    assert one.per_epoch("mistakes") == two.per_epoch("mistakes")
    assert one.per_epoch("updates")[0] > 0
    for predictor in (learner.last, learner.average):
        np.testing.assert_allclose(predictor(one.state).w, predictor(two.state).w, rtol=1e-9, atol=1e-11)
        assert predictor(one.state).base == pytest.approx(predictor(two.state).base, rel=1e-9)


@every_variant
@pytest.mark.parametrize("seed", [1, 2])
def test_a_list_of_two_is_a_binary_example(name: str, parameters: dict[str, Any], seed: int) -> None:
    """Candidates φ = x and φ = 0; the label says which is the oracle: z = y·x. Base scores are equal."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, WIDTH)).astype(np.float32).astype(float)
    y = np.sign(X @ random.normal(size=WIDTH) + 0.5 * random.normal(size=40))
    lists = [
        [(dict(enumerate(x)), 0.0, float(label > 0)), ({}, 0.0, float(label < 0))]
        for x, label in zip(X, y, strict=True)
    ]
    corpus, learner = corpus_of(lists), make(name, parameters)
    state, mistakes = learner.init(WIDTH, corpus.candidate_count), 0
    for _ in range(EPOCHS):
        mistakes += learner.epoch(corpus, targets(corpus), np.arange(40), state)[0].mistakes
    w, expected = LEARNERS[name].binary(learner, X, y, EPOCHS)
    assert mistakes == expected > 0
    np.testing.assert_allclose(learner.last(state).w, w, rtol=1e-10, atol=1e-12)
    predicted = np.where(best(corpus, scores(corpus, learner.last(state))) % 2 == 0, 1.0, -1.0)
    np.testing.assert_array_equal(predicted, np.sign(X @ w))


def dense_corpus(corpus: Corpus, phi: np.ndarray) -> Corpus:
    """``corpus`` with other rows (float64 [N, D]), zeros stored too."""
    N, D = phi.shape
    return dataclasses.replace(
        corpus, rows=np.arange(N + 1) * D, columns=np.tile(np.arange(D), N), values=phi.reshape(-1)
    )


@pytest.mark.parametrize("name", [name for name, _ in learners])
def test_sources_that_make_no_sense_are_refused(name: str) -> None:
    learner = make(name, LEARNERS[name].variants[0])
    for pairs in SOURCES:
        if pairs.name in learner.sources:
            require_source(learner, pairs)
        else:
            assert LEARNERS[name].duals
            with pytest.raises(RecipeError, match=f"found '{pairs.name}'; expected oracle for the learner '{name}'"):
                require_source(learner, pairs)


@every_source
def test_same_seed_same_bits_and_votes_with_every_pair_source(
    name: str, parameters: dict[str, Any], pairs: PairSource
) -> None:
    corpus, learner = random_corpus(1), make(name, parameters)
    one, two = run(learner, corpus, 2, pairs=pairs), run(learner, corpus, 1, pairs=pairs)
    two = run(learner, corpus, 1, state=stored(two.state), first=1, pairs=pairs)
    assert bits(one.state) == bits(two.state)
    trace = twin_of(learner, corpus, 2, pairs=Pairs(pairs))
    votes = vote(learner.votes(one.log, corpus), corpus)
    if exact(learner) or min(trace.gap, reference.voting_gap(trace, corpus)) > 1e-9:
        np.testing.assert_array_equal(votes, reference.votes(trace, corpus))
    assert votes.sum() == 2 * corpus.list_count**2


def penalised_variants() -> Iterator[Any]:
    """Every variant with a penalty."""
    for variant in variants():
        if any(variant.values[1].get(penalty) for penalty in ("l1", "l2")):
            yield variant


every_penalised = pytest.mark.parametrize(("name", "parameters"), list(penalised_variants()))


@every_penalised
def test_equals_its_twin_with_free_columns(name: str, parameters: dict[str, Any]) -> None:
    corpus, learner = dataclasses.replace(random_corpus(4), free=5), make(name, parameters)
    ran, trace = run(learner, corpus, EPOCHS), twin_of(learner, corpus, EPOCHS)
    assert (ran.per_epoch("mistakes"), ran.per_epoch("updates")) == (trace.mistakes, trace.updates)
    last, (w, beta) = learner.last(ran.state), trace.average()
    np.testing.assert_allclose(last.w, trace.predictors[-1].w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(learner.average(ran.state).w, w, rtol=1e-10, atol=1e-12)
    assert learner.average(ran.state).base == pytest.approx(beta, rel=1e-10)
    assert learner.nonzero_weights(ran.state) == np.count_nonzero(last.w)
    assert np.count_nonzero(last.w[:5]) == 5
    penalised = learner.last(run(learner, random_corpus(4), EPOCHS).state).w
    assert np.abs(last.w - penalised).max() > 1e-6


@every_penalised
def test_free_columns_alone_are_columns_without_a_penalty(name: str, parameters: dict[str, Any]) -> None:
    corpus = random_corpus(3)
    free = dataclasses.replace(corpus, free=corpus.width)
    without = make(name, parameters | {penalty: 0.0 for penalty in ("l1", "l2") if penalty in parameters})
    penalised = make(name, parameters)
    one, two = run(penalised, free, EPOCHS), run(without, corpus, EPOCHS)
    assert one.stats == two.stats
    np.testing.assert_allclose(penalised.last(one.state).w, without.last(two.state).w, rtol=1e-12)
    np.testing.assert_allclose(penalised.average(one.state).w, without.average(two.state).w, rtol=1e-9, atol=1e-12)
    votes = [
        vote(own.votes(ran.log, lists), lists) for own, ran, lists in ((penalised, one, free), (without, two, corpus))
    ]
    trace = twin_of(penalised, free, EPOCHS)
    if exact(penalised) or min(trace.gap, reference.voting_gap(trace, free)) > 1e-9:  # none hangs on the last bits
        np.testing.assert_array_equal(*votes)
    assert votes[0].sum() == votes[1].sum()


@every_penalised
def test_a_state_is_not_trained_on_with_other_free_columns(name: str, parameters: dict[str, Any]) -> None:
    if name == "ftrl":
        pytest.skip("its state says the same of free columns and others")
    corpus, learner = random_corpus(3), make(name, parameters)
    state = run(learner, corpus, 1).state
    with pytest.raises(ValueError, match="trained with 0 free columns, the corpus has 2"):
        run(learner, dataclasses.replace(corpus, free=2), 1, state=state, first=1)
