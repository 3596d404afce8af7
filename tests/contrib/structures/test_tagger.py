"""Taggers: what they say of words, how they are stored, what they refuse; SequenceTagger."""

import doctest
import itertools
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import rerank
from rerank.base.errors import DataError, ModelError
from rerank.contrib.sklearn import SequenceTagger
from rerank.contrib.structures.sequence_tagger import named_values
from rerank.models.model import Model, header_digest

SENTENCES = [
    [("The", "DT"), ("dog", "NN"), ("barks", "VBZ")],
    [("A", "DT"), ("dog", "NN"), ("sees", "VBZ"), ("the", "DT"), ("park", "NN")],
    [("Dogs", "NNS"), ("bark", "VBP")],
    [("The", "DT"), ("parks", "NNS"), ("bark", "VBP")],
] * 3
CHUNKS = [[("The", "DT", "B-X"), ("dog", "NN", "I-X"), ("barks", "VBZ", "O")], [("Dogs", "NNS", "B-X")]] * 3


@pytest.fixture(scope="module")
def tagger() -> rerank.Tagger:
    return rerank.tagger(SENTENCES, SENTENCES, epochs=5)


def test_it_learns_what_it_was_shown(tagger: rerank.Tagger) -> None:
    for sentence in SENTENCES:
        assert tagger.tag([word for word, _ in sentence]) == [tag for _, tag in sentence]
    assert list(tagger.tag_many([["The", "dog"], [], ["bark"]])) == [["DT", "NN"], [], tagger.tag(["bark"])]
    best, second, *_ = tagger.nbest(["the", "cat", "barks"], 7)
    assert (best.labels, best.score > second.score) == (tagger.tag(["the", "cat", "barks"]), True)
    assert len(tagger.nbest(["the"], 99)) == len(tagger.labels)
    assert tagger.marginals(["the", "cat"]).sum(axis=1) == pytest.approx([1, 1])


def test_a_stored_model_is_the_same(tagger: rerank.Tagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    again: Any = rerank.load(tmp_path / "model")
    assert isinstance(again, rerank.Tagger)
    assert np.array_equal(again.weights, tagger.weights)
    assert again.nbest(["a", "cat"], 3) == tagger.nbest(["a", "cat"], 3)
    assert (again.settings, again.labels, again.about) == (tagger.settings, tagger.labels, tagger.about)
    with pytest.raises(ModelError, match=r"a model that tags words; `rerank tag` takes it"):
        Model.load(tmp_path / "model")
    with pytest.raises(ModelError, match="no such directory"):
        rerank.Tagger.load(tmp_path / "none")


@pytest.mark.parametrize("damage", ["weight", "column", "missing", "extra"])
def test_a_damaged_model_is_refused(tagger: rerank.Tagger, tmp_path: Path, damage: str) -> None:
    place = tmp_path / "model"
    tagger.save(place)
    header = json.loads((place / "model.json").read_text())
    if damage in ("weight", "column"):
        name = "values" if damage == "weight" else "columns"
        array = np.load(place / f"{name}.npy")
        array[0] = np.nan if damage == "weight" else 1 << 40
        np.save(place / f"{name}.npy", array)
        with pytest.raises(ModelError, match="not the one that was saved"):
            rerank.Tagger.load(place)
        from rerank.storage.files import digest

        header["files"][f"{name}.npy"] = digest(place / f"{name}.npy")
    elif damage == "missing":
        del header["labels"]
    else:
        header["more"] = 1
    header["digest"] = header_digest(header)
    (place / "model.json").write_text(json.dumps(header))
    with pytest.raises(ModelError):
        rerank.Tagger.load(place)


def test_a_reader_of_ones_own_needs_trust(tagger: rerank.Tagger, tmp_path: Path) -> None:
    settings = tagger.settings | {"data": tagger.settings["data"] | {"reader": {"name": "mine:Reader"}}}
    replace(tagger, settings=settings).save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"data\.reader: mine:Reader"):
        rerank.Tagger.load(tmp_path / "model")
    assert rerank.Tagger.load(tmp_path / "model", trust=["mine"]).labels == tagger.labels


@pytest.mark.parametrize("learner", ["maxent", "arow"])
def test_labels_of_spans_are_held_together(learner: str) -> None:
    chunker = rerank.tagger(CHUNKS, learner=learner)
    assert chunker.width == 2
    assert chunker.tag([("A", "DT"), ("cat", "NN"), ("barks", "VBZ")]) == ["B-X", "I-X", "O"]
    free = rerank.tagger(CHUNKS, learner=learner, constraints="none")
    tokens = [("A", "DT"), ("cat", "NN")]
    assert len(free.nbest(tokens, 9)) == 9
    found = {tuple(labels) for labels, _ in chunker.nbest(tokens, 9)}
    assert found == set(itertools.product(chunker.labels, repeat=2)) - {
        ("I-X", "I-X"), ("I-X", "O"), ("I-X", "B-X"), ("O", "I-X"),
    }  # fmt: skip


def test_what_cannot_be_used_is_refused(tagger: rerank.Tagger) -> None:
    with pytest.raises(DataError, match=r"found \('a', 'b'\); expected a word"):
        tagger.tag([("a", "b")])
    with pytest.raises(DataError, match="found no sentences"):
        rerank.tagger([])
    with pytest.raises(DataError, match=r"expected a word and its label, as"):
        rerank.tagger([["ab", "cd"]])
    wrong = [[("a", "I-X"), ("b", "O")], *([[("c", "B-X"), ("d", "I-X")]] * 2)]
    assert rerank.tagger(wrong, epochs=20).tag(["a", "b"]) == ["I-X", "O"]


@pytest.mark.parametrize("given", ["the dog", [1, 2], [None], None, 5, [("a", 5)], {"a": 1}])
def test_what_is_no_sentence_is_refused(tagger: rerank.Tagger, given: Any) -> None:
    with pytest.raises(DataError, match=r"sentence 1: found .*; expected a (list of words|word for)"):
        tagger.tag(given)
    if given != "the dog":  # a file
        with pytest.raises(DataError, match="expected"):
            rerank.tagger(given)
    with pytest.raises(DataError, match="expected"):
        rerank.tagger(SENTENCES, [given])


def test_words_may_hold_anything(tmp_path: Path) -> None:
    """An attribute with the end of a line in it does not move those behind it when a model is read again."""
    made = rerank.tagger([[("New\nYork", "A"), ("\0", "B"), ("\ud800", "C"), ('"\u2028', "A")]] * 3, epochs=3)
    made.save(tmp_path / "model")
    again = rerank.Tagger.load(tmp_path / "model")
    assert again.features.ids == made.features.ids
    assert np.array_equal(again.weights, made.weights)


SLASHED = [
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


PAIRS = [[pair.split("/") for pair in sentence.split()] for sentence in SLASHED]
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
    again = clone(tagger).set_params(epochs=10).fit(X, y)
    assert again.state_.tobytes() == tagger.state_.tobytes()
    assert tagger.transitions_.shape == (4, 4)
    assert tagger.state_.shape == (len(tagger.attributes_), 4)


def test_marginals_are_probabilities_of_the_scores() -> None:
    tagger = SequenceTagger(learner={"name": "maxent", "l2": 0.1}).fit(X, y)
    for token, label in zip(tagger.predict_marginals(X[:1])[0], y[0], strict=True):
        assert sum(token.values()) == pytest.approx(1)
        assert max(token, key=token.__getitem__) == label
    with pytest.raises(ValueError, match="only the learner maxent"):
        SequenceTagger().fit(X, y).predict_marginals(X)


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
