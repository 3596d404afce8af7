"""Rules: what single ones are, by their papers; those of a user's own, refused where they break the contract."""

import ast
import dataclasses
import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from own_rules import Average
from scipy.optimize import minimize
from strategies import corpus_of, random_corpus, run, targets
from variants import LEARNERS, every_family, in_python, make, twin_of

from rerank.base.errors import RecipeError
from rerank.contrib.sklearn.classifiers import OnlineClassifier
from rerank.data.corpus import Corpus
from rerank.kernels.sources import PACKAGE
from rerank.learn.base_weight import make_learner
from rerank.learn.contract import accept, check_contract
from rerank.learn.epoch import UpdateLog
from rerank.learn.learner import Learner
from rerank.learn.predictor import NUMBERS, Predictor, weights_of
from rerank.learn.rules.additive import TruncatedGradient
from rerank.learn.rules.dual_averaging import FTRL, RDA, AdaptiveRDA
from rerank.learn.rules.gaussian import SecondOrderPerceptron
from rerank.learn.rules.winnow import NWin
from rerank.learn.train import ListProblem, train
from rerank.learn.voting import vote


def test_sums_stay_exact_however_far_the_weights_move() -> None:
    """Z rises by many powers of ten and falls again: where it is summed up anew, nothing is lost."""
    up = [({0: 1.0, 1: 0.5}, 0.0, 1.0), ({}, 0.0, 0.0)]
    corpus = corpus_of([up, [({2: 0.03125}, 0.0, 1.0), ({0: 1.0, 1: 0.5}, 0.0, 0.0)]], [9.1, 1.0], width=4)
    learner = NWin(eta=4.0, mu=0.5, base=0.0, total=2.0, base_rate=0.5)
    state, order = learner.init(4), np.array([0] * 3 + [1] * 20 + [0, 1] * 30)
    starts = set()
    log = UpdateLog()
    for i in order:
        learner.epoch(corpus, targets(corpus), np.array([i]), state, log=log)
        Z_now = np.sum(learner.mu * 2 * np.cosh(state.memory))
        now = learner.view(state).now
        assert now.mass + now.carry == pytest.approx(Z_now, rel=1e-12)
        starts.add(float(now.start))
    assert len(starts) > 3
    assert max(starts) / min(starts) > 1e12
    trace = LEARNERS["nwin"].twin(corpus, targets(corpus), [order], **dataclasses.asdict(learner))
    assert log.updates == len(trace.deltas) > 20
    np.testing.assert_allclose(learner.average(state).w, trace.average()[0], rtol=1e-9)
    votes = learner.votes(log, corpus)
    scales = [predictor.d for predictor in trace.predictors]
    np.testing.assert_allclose(votes.scale[1:], scales[1:], rtol=1e-9)  # the first predictor weighs nothing


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize("a", [0.1, 1.0, 10.0])
def test_weights_solve_the_normal_equations(covariance: Any, a: float) -> None:
    """(aI + Σ weight·zzᵀ)·w = Σ weight·z over the logged updates, or with the diagonal alone; variances are those of
    the inverse."""
    corpus, learner = random_corpus(4), SecondOrderPerceptron(a=a, covariance=covariance, base=0.0, base_rate=0.5)
    ran = run(learner, corpus, 3)
    rows = np.column_stack([reference.dense(corpus), 0.5 * corpus.base])
    star, rival = ran.log.arrays()["candidate"].reshape(-1, 2).T
    Z, omega = rows[star] - rows[rival], corpus.weight[ran.log.arrays()["lists"]]
    A = a * np.eye(corpus.width + 1) + Z.T @ (omega[:, None] * Z)
    A = np.diag(np.diag(A)) if covariance == "diagonal" else A
    inverse, last = np.linalg.inv(A), learner.last(ran.state)
    np.testing.assert_allclose(np.append(last.w, last.base / 0.5), inverse @ (omega @ Z), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(learner.variances(ran.state), np.diag(inverse)[:-1], rtol=1e-9)


SMALL = st.integers(0, 999).map(lambda seed: random_corpus(seed, lists=8, candidates=4, width=6))


def argmin(slope: np.ndarray, l1: float, curve: np.ndarray | float) -> np.ndarray:
    """argmin ⟨slope, w⟩ + l1·‖w‖₁ + Σ curve_j w_j²/2, as w = p − n with p, n ≥ 0."""
    D = slope.size

    def objective(pn: np.ndarray) -> tuple[float, np.ndarray]:
        w = pn[:D] - pn[D:]
        g = slope + curve * w
        return float(slope @ w + l1 * pn.sum() + (curve * w) @ w / 2), np.concatenate([g, -g]) + l1

    found = minimize(
        objective, np.zeros(2 * D), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * D),
        options={"ftol": 1e-16, "gtol": 1e-11},
    )  # fmt: skip
    return np.asarray(found.x[:D] - found.x[D:])


def asked_of_arda(learner: AdaptiveRDA, g: np.ndarray, _: np.ndarray) -> Any:
    """⟨s, w⟩ + k·λ₁‖w‖₁ + wᵀHw/2η with H = δ + √(Σ g²) (Duchi et al. 2011, eq. 3)."""
    return g.sum(axis=0), len(g) * learner.l1, (learner.delta + np.sqrt((g**2).sum(axis=0))) / learner.eta


def asked_of_ftrl(learner: FTRL, g: np.ndarray, before: np.ndarray) -> Any:
    """⟨Σ g, w⟩ + λ₁‖w‖₁ + λ₂‖w‖²/2 + Σ_s σ_s (w − w_s)²/2 + (β/2α)·w² (McMahan et al. 2013, section 3)."""
    sigma = np.diff(np.sqrt(np.cumsum(g**2, axis=0)), axis=0, prepend=0.0) / learner.alpha
    curve = sigma.sum(axis=0) + learner.beta / learner.alpha + learner.l2
    return g.sum(axis=0) - (sigma * before).sum(axis=0), learner.l1, curve


def asked_of_rda(learner: RDA, g: np.ndarray, _: np.ndarray) -> Any:
    """⟨s, w⟩ + k·λ₁‖w‖₁ + (k·λ₂ + η·√k)·‖w‖²/2 (Xiao 2010, eq. 8)."""
    k = len(g)
    return g.sum(axis=0), k * learner.l1, k * learner.l2 + learner.eta * np.sqrt(k)


def asked_of_tg(learner: TruncatedGradient, g: np.ndarray, before: np.ndarray) -> Any:
    """½‖w − (w_k − α·g)‖² + α·λ₁‖w‖₁ (Duchi & Singer 2009, eq. 3)."""
    alpha = learner.eta / np.sqrt(len(g))
    return alpha * g[-1] - before[-1], alpha * learner.l1, 1.0


@pytest.mark.parametrize(
    ("name", "kept", "asked"),
    [
        ("arda", {"normalized": False, "delta": 0.5}, asked_of_arda),
        ("ftrl", {"normalized": False, "beta": 0.5}, asked_of_ftrl),
        ("rda", {"update": "always"}, asked_of_rda),
        ("tg", {"update": "always", "theta": None, "every": 1}, asked_of_tg),
    ],
)
@settings(max_examples=40)
@given(corpus=SMALL, data=st.data())
def test_weights_minimise_what_their_learner_minimises(
    name: str, kept: dict[str, Any], asked: Any, corpus: Corpus, data: st.DataObject
) -> None:
    choices = {key: st.sampled_from(values) for key, values in LEARNERS[name].choices.items()}
    learner = make(name, data.draw(st.fixed_dictionaries(choices)) | kept)
    ran, trace = run(learner, corpus, 2), twin_of(learner, corpus, 2)
    assume(trace.gap > 1e-9)
    assume(trace.deltas)
    before = np.array([predictor.w for predictor in trace.predictors[:-1]])
    expected = argmin(*asked(learner, np.array(trace.deltas)[:, :-1], before))
    np.testing.assert_allclose(learner.last(ran.state).w, expected, atol=1e-5)


def test_rounding_is_not_learned_from() -> None:
    """A column that all candidates share, equal base scores, equal gains: sums over a softmax are rounding there."""
    rows = [{0: 0.3, j + 1: 1.0} for j in range(5)]
    lists = [[(row, 0.7, 0.1 * y) for y, row in enumerate(rows)], [(row, 0.7, 0.3) for row in rows]]
    corpus = corpus_of(lists)
    for normalized in (False, True):
        for loss in ("log", "bayes"):
            for learner in (
                AdaptiveRDA(loss=loss, delta=0.0, normalized=normalized, base_rate=0.5),
                FTRL(loss=loss, beta=0.0, normalized=normalized, base_rate=0.5),
            ):
                ran = run(learner, corpus, 3)
                w, beta, _ = learner.last(ran.state)
                assert w[0] == 0.0
                assert beta == 1.0
                assert np.abs(w).max() < 10.0
    ran = run(AdaptiveRDA(loss="bayes", delta=0.0), corpus.slice(1, 2), 3)
    assert not AdaptiveRDA().last(ran.state).w.any()


@every_family
def test_every_learner_keeps_the_contract(name: str, parameters: dict[str, Any]) -> None:
    check_contract(make(name, parameters))


@every_family
def test_without_an_average_the_last_predictor_is_the_same(name: str, parameters: dict[str, Any]) -> None:
    learner, corpus = make(name, parameters), replace(random_corpus(5), free=2)
    fresh = learner.init(corpus.width, corpus.candidate_count)
    with nullcontext() if name == "arow" else in_python():  # its cells have names that numpy's records have
        light = run(learner, corpus, 2, state=learner.without_average(fresh))
        whole = run(learner, corpus, 2)
    assert learner.last(light.state).w.tobytes() == learner.last(whole.state).w.tobytes()
    assert learner.last(light.state).base == learner.last(whole.state).base
    with pytest.raises(ValueError, match="this state keeps no average"):
        learner.average(light.state)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Boundless", "its weights are not finite"),
        ("Endless", "its counts of updates and of survived lists are not those of its log"),
        ("Average", "its average is not that of its predictors"),
        ("Idle", "it learns nothing from lists whose oracles lose"),
        ("Raising", "Raising fails on small lists: ZeroDivisionError: .*nothing to divide by"),
        ("Untyped", "fails on small lists: TypingError: .*nothing"),
    ],
)
def test_a_rule_with_a_slip_is_refused_when_it_is_named(name: str, reason: str) -> None:
    plain = (
        in_python() if name in ("Boundless", "Endless", "Idle") else nullcontext()
    )  # the others show what is compiled
    with plain, pytest.raises(RecipeError, match=reason):
        accept(make_learner({"name": f"own_rules:{name}"}))


def test_a_rule_of_ones_own_trains_and_votes() -> None:
    corpus, learner = random_corpus(3), accept(make_learner({"name": "mylearner:Harmonic", "decay": 0.5}))
    training = train(learner, ListProblem(corpus, targets(corpus), 1), epochs=2, keep_log=True)
    log = training.log.arrays()
    np.testing.assert_array_equal(log["rate"], corpus.weight[log["lists"]])
    assert vote(learner.votes(training.log, corpus), corpus).sum() > 0


def test_what_is_kept_on_disk_for_all_names_no_class_of_a_user() -> None:
    """Of the package's kernels, only those that ``kernel_of`` keeps apart take settings."""
    found = set()
    for path in (PACKAGE / "learn").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and "kernel" in map(ast.unparse, node.decorator_list):
                found |= {node.name for argument in node.args.args if argument.arg == "params"}
    assert found == {"epoch", "pair_epoch", "repeat_updates", "repeat_pairs"}


class SlippingClassifier(OnlineClassifier, learner=Average): ...


def test_a_rule_with_a_slip_is_refused_as_a_classifier_too() -> None:
    model = SlippingClassifier()
    with pytest.raises(ValueError, match="Average breaks the contract of learners: its average is not that of"):
        model.fit([[1.0], [-1.0]], [0, 1])
    assert not hasattr(model, "classes_")


def test_romma_keeps_the_contract() -> None:
    """The worked example of docs/adding-a-learner.md: a scale of all weights and a number that is remembered."""
    learner = accept(make_learner({"name": "romma:ROMMA", "base_rate": 0.5}))
    ran = run(learner, random_corpus(3), 2)
    squares = float(np.square(weights_of(ran.state)).sum())
    assert learner.view(ran.state).now.norm2 == pytest.approx(squares)


def test_the_guide_says_of_every_number_whether_a_rule_may_set_it() -> None:
    guide = (PACKAGE.parent / "docs" / "adding-a-learner.md").read_text(encoding="utf-8")
    table = "".join(line for line in guide.splitlines() if line.startswith("| `state."))
    assert set(re.findall(r"`state\.now\.(\w+)`", table)) == set(NUMBERS)
    assert set(re.findall(r"`state\.(\w+)", table)) == set(Predictor._fields)


def test_a_body_that_no_kernel_calls_is_refused() -> None:
    """A learner whose rule is misspelt would learn by that of its base, or nothing."""

    def lern(*_: Any) -> None:
        """Never called."""

    with pytest.raises(TypeError, match="Wrong has a static method 'lern', which no kernel calls: did you mean learn"):
        type("Wrong", (Learner,), {"lern": staticmethod(lern)})
    type("Right", (Learner,), {"_lern": staticmethod(lern)})
