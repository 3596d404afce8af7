"""Taggers: what they say of words, how they are stored, what they refuse."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rerank
from rerank.base.errors import DataError, ModelError, RecipeError
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


def look(words: list[str], i: int) -> dict[str, Any]:
    """A function of a user's."""
    return {"length": len(words[i]), "last": i == len(words) - 1}


def test_it_learns_what_it_was_shown(tagger: rerank.Tagger) -> None:
    for sentence in SENTENCES:
        assert tagger.tag([word for word, _ in sentence]) == [tag for _, tag in sentence]
    assert list(tagger.tag_many([["The", "dog"], [], ["bark"]])) == [["DT", "NN"], [], tagger.tag(["bark"])]


def score(tagger: rerank.Tagger, words: list[str], labels: tuple[int, ...]) -> float:
    """The score of labels, written out."""
    chains, K = tagger.chains([[(word,) for word in words]]), len(tagger.labels)
    total = sum(float(tagger.weights[a * K + b]) for a, b in itertools.pairwise(labels))
    for t, label in enumerate(labels):
        for j in chains.attributes[chains.rows[t] : chains.rows[t + 1]]:
            total += float(tagger.weights[K * K + int(j) * K + label])
    return total


def test_the_best_and_the_probabilities_are_those_of_all_sequences(tagger: rerank.Tagger) -> None:
    words, K = ["the", "cat", "barks"], len(tagger.labels)
    every = {labels: score(tagger, words, labels) for labels in itertools.product(range(K), repeat=3)}
    ranked = sorted(every, key=lambda labels: -every[labels])
    found = tagger.nbest(words, 7)
    assert [labels for labels, _ in found] == [[tagger.labels[k] for k in labels] for labels in ranked[:7]]
    assert [total for _, total in found] == pytest.approx([every[labels] for labels in ranked[:7]], rel=1e-5)
    assert len(tagger.nbest(["the"], 99)) == K
    weights = np.exp(np.array(list(every.values())) - max(every.values()))
    first = [sum(w for labels, w in zip(every, weights, strict=True) if labels[0] == k) for k in range(K)]
    assert tagger.marginals(words)[0] == pytest.approx(np.array(first) / weights.sum(), abs=1e-5)


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


def test_functions_of_ones_own_need_trust(tmp_path: Path) -> None:
    features = {"functions": {"look": f"{__name__}:look"}}
    rerank.tagger(SENTENCES, templates=["U:%x[0,0]"], features=features).save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"features\.functions\.look"):
        rerank.Tagger.load(tmp_path / "model")
    trusted = rerank.Tagger.load(tmp_path / "model", trust=[__name__])
    assert "look:last" in trusted.features.ids
    assert len(trusted.tag(["The", "dog"])) == 2


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
    with pytest.raises(DataError, match=r"expected tokens such as"):
        rerank.tagger([["ab", "cd"]])
    with pytest.raises(RecipeError, match="outputs are too many to list"):
        rerank.tagger(SENTENCES, learner="lambdamart")
    wrong = [[("a", "I-X"), ("b", "O")], *([[("c", "B-X"), ("d", "I-X")]] * 2)]
    with pytest.raises(DataError, match=r"list 1: token 1: found I-X at the start, which is not allowed"):
        rerank.tagger(wrong, constraints="spans")
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
