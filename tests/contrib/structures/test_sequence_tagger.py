"""``SequenceTagger`` on dictionaries of attributes."""

import doctest
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from rerank.contrib.sklearn import SequenceTagger
from rerank.contrib.structures.attributes import named_values

SENTENCES = [
    "the/D dog/N barks/V",
    "a/D cat/N sleeps/V",
    "dogs/N bark/V",
    "the/D cat/N sees/V a/D dog/N",
    "she/P sees/V dogs/N",
]


def word2features(words: list[str], i: int) -> dict[str, Any]:
    found: dict[str, Any] = {"bias": 1.0, "word": words[i], "suffix": words[i][-1:], "title": words[i].istitle()}
    if i:
        found |= {"-1": {"word": words[i - 1]}}
    else:
        found["BOS"] = True
    return found


PAIRS = [[pair.split("/") for pair in sentence.split()] for sentence in SENTENCES]
X = [[word2features([word for word, _ in pairs], i) for i in range(len(pairs))] for pairs in PAIRS]
y = [[label for _, label in pairs] for pairs in PAIRS]


@pytest.mark.parametrize("learner", ["perceptron", {"name": "arow", "r": 1.0}, "maxent"])
def test_a_tagger_learns_labels(learner: Any) -> None:
    tagger = SequenceTagger(learner=learner, random_state=1).fit(X, y)
    assert tagger.classes_ == ["D", "N", "P", "V"]
    assert tagger.predict(X) == y
    assert tagger.score(X, y) == 1.0
    assert tagger.predict([[], [{"word": "dog", "unseen": 3}]]) == [[], ["N"]]
    best = tagger.predict_n_best(X[:1], 300)[0]
    assert best[0][1] == y[0]
    assert len(best) == 4**3
    assert pickle.loads(pickle.dumps(tagger)).predict(X) == y
    again = clone(tagger).fit(X, y)
    assert again.state_.tobytes() == tagger.state_.tobytes()
    assert tagger.transitions_.shape == (4, 4)
    assert tagger.state_.shape == (len(tagger.attributes_), 4)


def test_marginals_are_probabilities_of_the_scores() -> None:
    tagger = SequenceTagger(learner={"name": "maxent", "l2": 0.1}).fit(X, y)
    found, best = tagger.predict_marginals(X[:1])[0], tagger.predict_n_best(X[:1], 300)[0]
    p = np.exp([score for score, _ in best])
    for t, token in enumerate(found):
        for label, probability in token.items():
            share = sum(q for q, (_, labels) in zip(p, best, strict=True) if labels[t] == label) / p.sum()
            assert probability == pytest.approx(share, abs=1e-12)
    with pytest.raises(ValueError, match="only the learner maxent"):
        SequenceTagger().fit(X, y).predict_marginals(X)


def test_scikit_learn_selects_over_it() -> None:
    assert cross_val_score(SequenceTagger(epochs=3, random_state=0), X, y, cv=2).shape == (2,)
    assert SequenceTagger().set_params(epochs=4).get_params()["epochs"] == 4


def test_tokens_of_python_crfsuite_are_read() -> None:
    token = {"a": "b", "c": 2, "d": True, "e": False, "f": {"g": "h", "i": {"j": 0.5}}, "k": ["l", "m"], "n": {"o"}}
    assert dict(named_values(token, "")) == {
        "a=b": 1.0, "c": 2.0, "d": 1.0, "e": 0.0, "f:g=h": 1.0, "f:i:j": 0.5, "k:l": 1.0, "k:m": 1.0, "n:o": 1.0
    }  # fmt: skip
    assert dict(named_values(["u", "v", "u"], "")) == {"u": 1.0, "v": 1.0}


@pytest.mark.parametrize(
    ("tokens", "labels", "message"),
    [
        ([[{"a": None}]], [["N"]], "sequence 0, token 0: 'a' has the value None; expected a text, a finite number"),
        ([[{1: "a"}]], [["N"]], "found the key 1; expected a text"),
        ([["word"]], [["N"]], "token 0: found 'word'; expected a dict of attributes"),
        (["word"], [["N"]], "sequence 0 .* tokens"),
        ([[{}], [{}]], [["N"], ["N", "N"]], "sequence 1 has 1 tokens and 2 labels"),
        ([[{}]], [], "X has 1 sequences and y has 0"),
        ([[]], [[]], "found no tokens"),
        ([[{"a": 1e300}]], [["N"]], "the value 1e\\+300; expected a text, a finite number"),
        ([[{}]], ["N"], "found 'N' for sequence 0 of y; expected a list of labels"),
        ([[{}]], [[float("nan")]], "found labels that cannot be sorted"),
        (None, [["N"]], "found None for X; expected a list of seq"),
        ([3], [["N"]], "found 3 for sequence 0 of X; expected a list of tokens"),
    ],
)
def test_what_is_no_sequence_is_named(tokens: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SequenceTagger().fit(tokens, labels)


def test_the_examples_of_the_page_are_true() -> None:
    page = Path(__file__).parents[3] / "docs" / "structures.md"
    failed, run = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert run > 8
    assert failed == 0


def test_wrong_parameters_are_named() -> None:
    with pytest.raises(ValueError, match="epochs=0"):
        SequenceTagger(epochs=0).fit(X, y)
    with pytest.raises(ValueError, match="n='2'; expected a whole number from 1"):
        SequenceTagger(epochs=1).fit(X, y).predict_n_best(X, "2")  # type: ignore[arg-type]
    cyclic: dict[str, Any] = {}
    cyclic["a"] = cyclic
    with pytest.raises(ValueError, match="sequence 0, token 0: found a dict or list that holds itself"):
        SequenceTagger().fit([[cyclic]], [["N"]])
    with pytest.raises(ValueError, match="SequenceTagger: learner: the learner 'lambdamart' cannot train"):
        SequenceTagger(learner="lambdamart").fit(X, y)
