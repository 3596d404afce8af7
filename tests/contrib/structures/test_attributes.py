"""Templates of tokens and of labels: what they give is what a slow twin gives."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from reference_labels import DOG
from reference_texts import Lines, One, expected, extracted

from rerank.base.errors import RecipeError
from rerank.contrib.structures.attributes import (
    FUNCTIONS,
    TokenFeatures,
    default_patterns,
    read_patterns,
    template_file,
)
from rerank.contrib.structures.metrics import is_labelled
from rerank.features.template import SETS

Tokens = list[tuple[str, ...]]
CRFPP = (
    "# Unigram\nU00:%x[-2,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[1,0]/%x[2,1]/%x[0,0]\nU:%x[-1,0]\nU:%x[1,0]\n\n# Bigram\nB\n"
)


def plain(line: str, tokens: Tokens, i: int) -> str | None:
    """A template filled in, as its documentation says."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        name, size, row, column = match[1], int(match[2] or 0), int(match[3]), int(match[4])
        j = i + row
        if j < 0:
            return f"_B-{-j}"
        if j >= len(tokens):
            return f"_B+{j - len(tokens) + 1}"
        word = tokens[j][column]
        if name in ("prefix", "suffix"):
            found = None if len(word) < size else word[:size] if name == "prefix" else word[len(word) - size :]
        else:
            found = FUNCTIONS[name](word, 0)
        missing |= found is None
        return found or ""

    filled = re.sub(r"%([a-z]+)([0-9]*)\[(-?[0-9]+),([0-9]+)\]", value, line)
    return None if missing else filled


def sentences(seed: int, count: int) -> list[Tokens]:
    random = np.random.default_rng(seed)
    words = ["a", "The", "the", "1990s", "well-known", "USA", "é", "_B-1", "ab"]
    drawn = [random.choice([words, ["D", "N"] * 4 + ["D"]][k], (count, 6)) for k in range(2)]
    sizes = random.integers(1, 7, count)
    return [[(str(drawn[0][i, j]), str(drawn[1][i, j])) for j in range(sizes[i])] for i in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_attributes_are_lines_filled_in(seed: int) -> None:
    lines = [*CRFPP.splitlines(), *default_patterns(2), "U91:%shape[-1,0]/%marks[0,0]"]
    extractor = TokenFeatures(read_patterns(lines))
    given = sentences(seed, 30)
    found = extractor.learn(given, cutoff=2)
    expected = [
        {filled for line in lines if line.startswith("U") and (filled := plain(line, tokens, i)) is not None}
        for tokens in given
        for i in range(len(tokens))
    ]
    counts = {text: sum(text in each for each in expected) for each in expected for text in each}
    names = list(extractor.ids)
    assert sorted(extractor.ids.values()) == list(range(len(names)))
    assert set(names) == {text for text, count in counts.items() if count >= 2}
    again = extractor.extract(given)
    for view in (found, again):
        assert view.values.size == 0
        assert view.starts.tolist() == np.cumsum([0, *map(len, given)]).tolist()
        for token, texts in enumerate(expected):
            ids = view.attributes[view.rows[token] : view.rows[token + 1]]
            assert sorted(names[j] for j in ids) == sorted(text for text in texts if counts[text] >= 2)
    unseen = extractor.extract([[("nie", "X")], []])
    assert set(unseen.attributes) <= set(extractor.ids.values())
    assert unseen.starts.tolist() == [0, 1, 1]


def test_functions_of_ones_own_give_names_or_values() -> None:
    def look(tokens: Sequence[str], i: int) -> dict[str, object]:
        return {"w": tokens[i], "first": i == 0, "length": len(tokens[i])}

    extractor = TokenFeatures([], functions={"f": look, "g": lambda tokens, i: ["x", "x"][: len(tokens) + i]})
    found = extractor.learn([[("ab",), ("c",)]])
    assert list(extractor.ids) == ["f:w=ab", "f:first", "f:length", "g:x", "f:w=c"]
    assert found.rows.tolist() == [0, 4, 7]
    assert dict(zip(found.attributes.tolist()[:4], found.values.tolist()[:4], strict=True)) == {0: 1, 1: 1, 2: 2, 3: 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("B01:%x[0,0]", "do not look at words"),
        ("X:%x[0,0]", "expected U"),
        ("U:%y[0,0]", "unknown function 'y'"),
        ("U:%prefix[0,0]", "found prefix; expected"),
        ("U:%x[0]", "expected a macro"),
        ("U:%x[-999999999,0]", "expected a macro"),
    ],
)
def test_bad_templates_are_named(line: str, message: str) -> None:
    with pytest.raises(RecipeError, match=f"line 2: .*{message}"):
        read_patterns(["# one", line])


def test_a_template_file_and_a_column_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(CRFPP)
    patterns = read_patterns(template_file(tmp_path / "t"))
    assert len(patterns) == 5
    with pytest.raises(RecipeError, match="looks at column 1; the tokens have 1"):
        TokenFeatures(patterns).learn([[("a",)]])


SPECS = ["LabelNGram", "LabelNGram(words=last)", "SpanNGram(n=1)", *SETS["labels"]]


@pytest.mark.parametrize("seed", range(4))
def test_templates_equal_their_twins(seed: int) -> None:
    random = np.random.default_rng(seed)
    for labels in (["O", "B-X", "I-X", "B-Y"], ["DT", "NN"]):
        for _ in range(10):
            words = random.choice(["a", "b/c", "/"], random.integers(1, 7))
            drawn = random.choice(labels, (3, words.size))
            ones = [
                One([f"{w}/{tag}" for w, tag in zip(words, row, strict=True)], base=-y) for y, row in enumerate(drawn)
            ]
            for spec in SPECS:
                assert extracted([spec], Lines([], ones)) == expected(spec, Lines([], ones)), spec


def test_texts_without_labels_give_nothing() -> None:
    plain = Lines([], [One(["and/or", "it"], base=-1.0), One(["so", "it"], base=-2.0)])
    assert extracted(SPECS, plain) == [{}, {}]
    assert not is_labelled([])
    assert not is_labelled([b"/ a/"])


def test_the_set_looks_at_labels_and_spans() -> None:
    first = extracted(SETS["labels"], DOG)[0]
    assert first["SpanNGram|NP barks </s>"] == first["LabelSpan(see=length)|NP 2"] == 1
    assert first["LabelNGram(n=3)|<s> B-NP I-NP"] == 1
