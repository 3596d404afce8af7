"""The ranker over arrays: beside the paper's box, the trainer and a recipe; its input, errors, and company."""

import tracemalloc
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rerank.contrib.sklearn import ListRanker
from rerank.data.corpus import Corpus
from rerank.learn.learner import learners
from rerank.learn.losses import Loss
from rerank.learn.rules.additive import Perceptron
from rerank.learn.rules.gaussian import AROW
from rerank.learn.train import ListProblem, train
from rerank.metrics.metric import oracles
from rerank.recipes.recipe import TextRecipe
from rerank.recipes.settings import validate
from rerank.runs.training import RunTask, train_run

WIDTH = 5


def problem(seed: int = 0, lists: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, gain and sizes of lists of one to five candidates; half of the values are 0; gains are 0, 1 or 2."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, lists)
    n = int(sizes.sum())
    X = rng.integers(-4, 5, (n, WIDTH)) / 4.0 * (rng.random((n, WIDTH)) < 0.5)
    return X, np.clip(np.round(X @ [2.0, 1.0, 0.0, -1.0, 0.0] + rng.standard_normal(n)), 0.0, 2.0), sizes


def ids(sizes: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(sizes.size), sizes)


def corpus_of(X: np.ndarray, gain: np.ndarray, sizes: np.ndarray, base: np.ndarray | None = None) -> Corpus:
    """The lists, made of all cells of the matrix that are not 0."""
    return Corpus(
        lists=np.cumsum([0, *sizes]),
        rows=np.cumsum([0, *(X != 0).sum(axis=1)]),
        columns=np.nonzero(X)[1],
        values=X[X != 0],
        base=np.zeros(gain.size) if base is None else base,
        gain=gain,
        stats=gain[:, np.newaxis],
        reference=np.ones((sizes.size, 1)),
        weight=np.ones(sizes.size),
        width=X.shape[1],
    )


def collins(X: np.ndarray, gain: np.ndarray, sizes: np.ndarray, epochs: int) -> tuple[np.ndarray, np.ndarray]:
    """The perceptron of Collins 2002, Figure 2, and its average, on lists with several right candidates."""
    w, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for _ in range(epochs):
        for phi, s in zip(np.split(X, np.cumsum(sizes)[:-1]), np.split(gain, np.cumsum(sizes)[:-1]), strict=True):
            right = s == s.max()
            if not right.all():
                y = np.argmax(np.where(right, phi @ w, -np.inf))
                z = np.argmax(np.where(right, -np.inf, phi @ w))
                if not phi[y] @ w > phi[z] @ w:
                    w = w + phi[y] - phi[z]
            total += w
    return w, total / (epochs * sizes.size)


# What it computes


def test_is_the_perceptron_of_the_paper() -> None:
    X, gain, sizes = problem()
    last, average = collins(X, gain, sizes, epochs=3)
    ranker = ListRanker(learner="perceptron", epochs=3, shuffle=False, average="last").fit(X, gain, group=sizes)
    np.testing.assert_array_equal(ranker.coef_, last)
    ranker.set_params(average="average").fit(X, gain, group=sizes)
    np.testing.assert_allclose(ranker.coef_, average, rtol=1e-12)
    chosen = [first + np.argmax(part @ ranker.coef_) for first, part in _parts(X, sizes)]
    np.testing.assert_array_equal(ranker.best(X, group=sizes), chosen)
    assert ranker.score(X, gain, group=sizes) == pytest.approx(gain[chosen].mean())
    np.testing.assert_array_equal(ranker.predict(X), X @ ranker.coef_)
    weighted = ranker.score(X, gain, group=sizes, sample_weight=ids(sizes))
    assert weighted == pytest.approx(np.average(gain[chosen], weights=np.arange(sizes.size)))


def _parts(X: np.ndarray, sizes: np.ndarray) -> list[tuple[int, np.ndarray]]:
    starts = np.cumsum([0, *sizes])
    return [(int(a), X[a:b]) for a, b in pairwise(starts)]


@pytest.mark.parametrize("name", learners.names())
def test_every_learner_with_every_loss_is_the_trainer(name: str) -> None:
    X, gain, sizes = problem()
    corpus = corpus_of(X, gain, sizes)
    fixed = {"l2": 10.0} if name == "maxent" else {}
    corpus = replace(corpus, free=corpus.width) if fixed else corpus
    for loss in get_args(Loss) if hasattr(learners.get(name), "loss") else [None]:
        learner = fixed | ({"name": name} if loss is None else {"name": name, "loss": loss})
        try:
            made = learners.get(name)(**fixed, **({} if loss is None else {"loss": loss}))
        except Exception:  # a loss that this learner does not take
            with pytest.raises(ValueError, match="loss"):
                ListRanker(learner=name, loss=loss).fit(X, gain, group=sizes)
            continue
        trained = train(made, ListProblem(corpus, oracles(corpus), 3, any_ties=True), epochs=2).weights
        for average in ("last", "average"):
            ranker = ListRanker(learner=learner, epochs=2, average=average, random_state=3).fit(X, gain, group=sizes)
            np.testing.assert_array_equal(ranker.coef_, trained[average].w)
            assert ranker.coef_.any()


def test_is_what_a_recipe_trains() -> None:
    X, gain, sizes = problem()
    base = np.random.default_rng(1).standard_normal(gain.size) + gain
    half = int(sizes[:20].sum())
    parts = [(X[:half], gain[:half], sizes[:20], base[:half]), (X[half:], gain[half:], sizes[20:], base[half:])]
    lists, dev = (corpus_of(*part) for part in parts)
    settings = {
        "name": "arrays", "task": "ranking", "seed": 5, "learner": {"name": "arow", "r": 1.0},
        "oracle": {"ties": "base"}, "training": {"epochs": 6, "patience": 2},
    }  # fmt: skip
    made = {"learner": {"name": "arow", "r": 1.0}, "epochs": 6, "ties": "base", "random_state": 5}
    run = train_run(RunTask("arrays", validate(TextRecipe, settings), lists, dev))
    ranker = ListRanker(**made, early_stopping=True, n_iter_no_change=2)
    ranker.fit(*parts[0][:2], group=sizes[:20], base=base[:half], eval_set=parts[1])
    np.testing.assert_array_equal(ranker.coef_, run.weights["average"].w)
    assert ranker.base_weight_ == run.weights["average"].base > 0
    assert ranker.validation_scores_ == [line["dev"] for line in run.history]
    scored = ranker.predict(X, base=base)
    np.testing.assert_array_equal(scored, X @ ranker.coef_ + ranker.base_weight_ * base)
    chosen = [first + np.argmax(scored[first : first + len(part)]) for first, part in _parts(X, sizes)]
    np.testing.assert_array_equal(ranker.best(X, group=sizes, base=base), chosen)
    held = ListRanker(**made, validation_fraction=0.5).fit(X, gain, qid=ids(sizes), base=base)
    recipe = validate(TextRecipe, settings | {"training": {**settings["training"], "patience": None}})
    run = train_run(RunTask("arrays", recipe, lists, dev))
    np.testing.assert_array_equal(held.coef_, run.weights["average"].w)


def test_where_no_pass_beats_the_base_scores_they_are_the_ranker() -> None:
    X, gain, sizes = problem()
    for learner in ("arda", "maxent"):
        with pytest.warns(UserWarning, match="nothing was better than the base scores") as warned:
            ranker = ListRanker(learner=learner, random_state=0).fit(X, gain, group=sizes, base=gain)
        assert warned[0].filename == __file__
        assert (ranker.coef_.any(), ranker.base_weight_) == (False, 1.0)


def test_a_weight_of_the_base_score_is_kept() -> None:
    X, gain, sizes = problem()
    for learner in ({"name": "perceptron", "base": 0.25}, Perceptron(base=0.25)):
        ranker = ListRanker(learner=learner, random_state=0).fit(X, gain, group=sizes, base=gain)
        assert ranker.base_weight_ == 0.25
        assert ranker.validation_scores_ == []


def test_ties() -> None:
    """With any of the best being right, w = 0 errs only where another is among the highest scores."""
    X, gain, sizes = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.array([3.0, 3.0, 1.0]), [3]
    how: dict[str, Any] = {"learner": "perceptron", "epochs": 1, "average": "last"}
    assert ListRanker(**how, ties="any").fit(X, gain, sizes).coef_.tolist() == [1.0, 0.0]
    assert ListRanker(**how, ties="base").fit(X, gain, sizes).coef_.tolist() == [1.0, -1.0]
    assert ListRanker(**how).fit(X, gain, sizes).coef_.tolist() == [1.0, 0.0]


# Early stopping


@pytest.mark.parametrize("average", ["last", "average"])
def test_the_best_pass_is_kept(average: str) -> None:
    X, gain, sizes = problem(lists=30)
    others = problem(seed=1)
    how: dict[str, Any] = {"learner": "perceptron", "average": average, "random_state": 0}
    ranker = ListRanker(**how, epochs=12).fit(X, gain, group=sizes, eval_set=others)
    assert (ranker.n_iter_, len(ranker.validation_scores_)) == (12, 12)
    assert ranker.best_iteration_ == 1 + int(np.argmax(ranker.validation_scores_)) < 12
    again = ListRanker(**how, epochs=ranker.best_iteration_).fit(X, gain, group=sizes)
    np.testing.assert_array_equal(again.coef_, ranker.coef_)
    assert ranker.score(*others[:2], group=others[2]) == max(ranker.validation_scores_)
    stopped = ListRanker(**how, epochs=12, early_stopping=True, n_iter_no_change=2)
    stopped.fit(X, gain, group=sizes, eval_set=others)
    assert stopped.n_iter_ == stopped.best_iteration_ + 2 < 12
    assert stopped.validation_scores_ == ranker.validation_scores_[: stopped.n_iter_]


def test_without_other_lists_the_last_are_held_out() -> None:
    X, gain, sizes = problem(lists=30)
    rows = int(sizes[:24].sum())
    how: dict[str, Any] = {"learner": "perceptron", "random_state": 0, "early_stopping": True}
    held = ListRanker(**how, validation_fraction=0.2).fit(X, gain, group=sizes)
    given = ListRanker(**how).fit(X[:rows], gain[:rows], group=sizes[:24], eval_set=(X[rows:], gain[rows:], sizes[24:]))
    np.testing.assert_array_equal(held.coef_, given.coef_)
    assert held.validation_scores_ == given.validation_scores_
    with pytest.raises(ValueError, match=r"found 1 list, none of which can be held out.*eval_set"):
        ListRanker(learner="perceptron", early_stopping=True).fit(X, gain, group=[gain.size])


# Input


def test_all_kinds_of_input_are_one() -> None:
    X, gain, sizes = problem()
    how: dict[str, Any] = {"learner": "arda", "random_state": 0}
    expected = ListRanker(**how).fit(X, gain, group=sizes).coef_
    for form in (
        sparse.csr_array,
        sparse.csc_matrix,
        sparse.coo_array,
        np.asfortranarray,
        np.float32,
        np.ndarray.tolist,
    ):
        np.testing.assert_array_equal(ListRanker(**how).fit(form(X), gain, group=sizes).coef_, expected)
    for names in (ids(sizes), -ids(sizes), [f"list {i}" for i in ids(sizes)], ids(sizes).astype(object)):
        np.testing.assert_array_equal(ListRanker(**how).fit(X, list(gain), qid=names).coef_, expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library: str) -> None:
    frames = pytest.importorskip(library)
    X, gain, sizes = problem()
    frame = frames.DataFrame({f"f{j}": X[:, j] for j in range(WIDTH)})
    given = frames.DataFrame({"gain": gain, "prompt": [f"p{i}" for i in ids(sizes)]})
    ranker = ListRanker(random_state=0).fit(frame, given["gain"], qid=given["prompt"])
    assert list(ranker.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(ranker.coef_, ListRanker(random_state=0).fit(X, gain, group=sizes).coef_)
    np.testing.assert_array_equal(ranker.best(frame, qid=given["prompt"]), ranker.best(X, group=sizes))
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(frame[[*frame.columns[1:], frame.columns[0]]])


def test_a_metric_of_the_order_is_the_score() -> None:
    rng = np.random.default_rng(3)
    X, sizes = rng.normal(size=(120, 4)), np.full(20, 6)
    gain = np.clip(np.round(X[:, 0] + rng.normal(size=120)), 0, 3)
    ranker = ListRanker(metric={"name": "ndcg", "k": 3, "form": "linear"}).fit(X, gain, sizes)
    lists = list(zip(np.split(gain, 20), np.split(ranker.predict(X), 20), strict=True))
    each = [ndcg_score([grades], [found], k=3) if grades.any() else 0.0 for grades, found in lists]
    assert ranker.score(X, gain, sizes) == pytest.approx(np.mean(each), abs=1e-12)
    held = ListRanker(metric="ndcg@3", learner="perceptron", epochs=2, random_state=1)
    held.fit(X, gain, sizes, eval_set=(X, gain, sizes))
    assert held.validation_scores_[held.best_iteration_ - 1] == pytest.approx(held.score(X, gain, sizes), abs=1e-6)
    base = rng.normal(size=120)
    weighed = ListRanker(metric="ndcg@3", learner="perceptron", epochs=2, random_state=1)
    weighed.fit(X[:60], gain[:60], sizes[:10], base=base[:60], eval_set=(X[60:], gain[60:], sizes[10:], base[60:]))
    assert max(weighed.validation_scores_) == pytest.approx(
        weighed.score(X[60:], gain[60:], sizes[10:], base=base[60:])
    )
    with pytest.raises(ValueError, match="expected None or a metric of the order"):
        ListRanker(metric="bleu").fit(X, gain, sizes)
    with pytest.raises(ValueError, match="leave sample_weight out"):
        ranker.score(X, gain, sizes, sample_weight=np.ones(120))


def test_a_large_matrix_is_taken_once() -> None:
    """Its values and their columns, 8 bytes for each, are all that is made of it; a row has some numbers more."""
    rng = np.random.default_rng(0)
    n, D = 50_000, 40
    X, gain = rng.standard_normal((n, D)), rng.random(n)
    ranker, sizes = ListRanker(learner="perceptron", epochs=1, random_state=0), np.full(n // 10, 10)
    ranker.fit(X[:10], gain[:10], group=[10])  # compiled
    tracemalloc.start()
    ranker.fit(X, gain, group=sizes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * D + 100 * n


# Errors


def wrong(**changes: Any) -> dict[str, Any]:
    X, gain, sizes = problem(lists=3)
    return {"X": X, "gain": gain, "group": sizes} | changes


NAN = np.where(np.arange(problem(lists=3)[1].size) == 2, np.nan, 1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group": None}, "found neither group nor qid; expected one of them: group, the sizes"),
        ({"qid": np.zeros(7)}, "found both group and qid; expected one of them"),
        ({"group": [2, 3]}, r"group holds 2 sizes that add up to 5; expected \d+, the number of rows of X"),
        ({"group": [2, 0, 3]}, "group holds the size 0 of list 1; expected the sizes of the lists, whole"),
        ({"group": [2.5, 3.0]}, r"group holds float64 of shape \(2,\); expected the sizes of the lists"),
        ({"group": None, "qid": [1, 2]}, r"qid has shape \(2,\); expected \(\d+,\), for every row of X the id"),
        ({"group": None, "qid": NAN}, "qid holds NaN in row 2"),
        ({"gain": [1.0]}, r"gain has shape \(1,\); expected \(\d+,\), a number for every row of X"),
        ({"gain": ["good"] * NAN.size}, "gain does not hold numbers"),
        ({"gain": None}, "requires y to be passed, but the target y is None"),
        ({"gain": np.full(NAN.size, 0.5)}, r"gain: found \d+ samples in 3 lists, and in no list candidates of"),
        ({"base": NAN}, "base holds nan in row 2"),
        ({"eval_set": (1, 2)}, r"eval_set is 2 items; expected \(X, gain, group\), as in this call of fit"),
        ({"eval_set": problem(lists=2) and (*problem(lists=2)[:2], [1])}, "eval_set: group holds 1 sizes that add up"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_input_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ListRanker().fit(**wrong(**given))


def test_the_rows_of_a_list_are_together() -> None:
    X, gain = np.eye(5), np.arange(5.0)
    with pytest.raises(ValueError, match=r"qid 'a' is found from row 0 on and again in row 3.*sort the rows by qid"):
        ListRanker().fit(X, gain, qid=["a", "a", "b", "a", "c"])
    with pytest.raises(ValueError, match="gain holds 1e\\+31 in row 4; expected numbers from -1e\\+30 to 1e\\+30"):
        ListRanker().fit(X, [0.0, 1.0, 2.0, 3.0, 1e31], group=[5])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learner": "perceptro"}, "ListRanker: learner.name: unknown learner 'perceptro'; did you mean perceptron"),
        ({"learner": {"name": "arow", "r": -1.0}}, r"ListRanker: learner.r: found -1.0; expected a finite number"),
        ({"learner": 3}, "ListRanker: learner: found 3; expected a name, a dict of name and parameters, or a learner"),
        ({"learner": AROW(), "loss": "log"}, "ListRanker: loss: found 'log'; the learner arow has no loss to choose"),
        ({"learner": "sgd", "loss": "squared"}, "ListRanker: learner.loss: unknown loss 'squared'; known: bayes"),
        ({"ties": "all"}, "ties='all'; expected one of auto, any, base"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ListRanker(**parameters).fit(**wrong())


def test_base_scores_are_given_to_both_or_to_none() -> None:
    X, gain, sizes = problem()
    with pytest.raises(ValueError, match="fitted without base scores, leave base out"):
        ListRanker().fit(X, gain, group=sizes).predict(X, base=gain)
    ranker = ListRanker(learner={"name": "perceptron", "base": 1.0}).fit(X, gain, group=sizes, base=gain)
    with pytest.raises(ValueError, match="fitted with base scores, give those of the rows of X"):
        ranker.best(X, group=sizes)


# In company


def test_pipelines_and_folds_by_group() -> None:
    X, gain, sizes = problem(lists=60)
    model = make_pipeline(StandardScaler(), ListRanker(learner="perceptron", random_state=0))
    model.fit(X, gain, listranker__group=sizes)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(model.predict(X), standard @ model[-1].coef_, atol=1e-9)
    qid, found = ids(sizes), []
    for part, rest in GroupKFold(3).split(X, gain, groups=qid):
        fitted = clone(model).fit(X[part], gain[part], listranker__qid=qid[part])
        found.append(fitted[-1].score(fitted[:-1].transform(X[rest]), gain[rest], qid=qid[rest]))
    with config_context(enable_metadata_routing=True):
        given = {"qid": qid, "groups": qid}
        folds = cross_validate(model, X, gain, cv=GroupKFold(3), params=given)
        assert folds["test_score"].tolist() == found
        choices = {"listranker__learner": ["perceptron", {"name": "arow", "r": 1.0}]}
        scaled = make_pipeline(MaxAbsScaler(), ListRanker(learner="perceptron", random_state=0))
        scores = cross_val_score(scaled, sparse.csr_array(X), gain, cv=GroupKFold(3), params=given)
        assert scores.tolist() == cross_val_score(scaled, X, gain, cv=GroupKFold(3), params=given).tolist()
        by_size, by_id = clone(scaled).fit(sparse.csr_array(X), gain, group=sizes), clone(scaled).fit(X, gain, qid=qid)
        np.testing.assert_array_equal(by_size.predict(X), by_id.predict(X))
        search = GridSearchCV(model, choices, cv=GroupKFold(3)).fit(X, gain, **given)
        assert search.score(X, gain, qid=qid) == search.best_estimator_.score(X, gain, qid=qid)
        assert search.best_score_ > np.mean([part.mean() for _, part in _parts(gain, sizes)])


class OneList(ListRanker):
    """All rows are one list: scikit-learn's checks know no groups."""

    def fit(self, X: Any, y: Any) -> Any:
        """See ``ListRanker.fit``."""
        return super().fit(X, y, group=[X.shape[0] if hasattr(X, "shape") else len(X)])

    def score(self, X: Any, y: Any) -> float:
        """See ``ListRanker.score``."""
        return super().score(X, y, group=[X.shape[0] if hasattr(X, "shape") else len(X)])


@parametrize_with_checks([OneList(learner="perceptron"), OneList()])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
