"""Templates of texts against their slow twins, and features written out by hand."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from reference_texts import EIN_MANN, TWINS, Lines, One, expected, extracted, lists_of_texts
from rendered_features import once

from rerank.base.errors import RecipeError
from rerank.features.sets import SETS
from rerank.features.template import make_template, templates

SPECS = [
    "Dense",
    "BaseScore",
    "Given",
    "PhrasePair",
    "SourcePhrase",
    "TargetPhrase",
    "PhraseLengths",
    "PhraseLengths(most=2)",
    "PhraseBoundary",
    "Jump",
    "Jump(most=1)",
    "WordPair",
    "Unaligned",
    "Unaligned(side=target)",
    "CoOccurrence",
    "CoOccurrence(words=3)",
    "CoOccurrence(band=1)",
    "TargetNGram",
    "TargetNGram(n=2)",
    "TargetNGram(n=3)",
    "LengthRatio",
    "Length",
    "Length(binned=False)",
    "Lexical",
    "Copy",
    "Punctuation",
    "Punctuation(most=1)",
    "Rank",
    "BaseGap",
    "BaseGap(bin=20)",
    "ConsensusNGram",
    "ConsensusNGram(n=2, scale=0)",
    "ConsensusEdits",
    "ConsensusEdits(top=1)",
    "ConsensusEdits(top=3, scale=2)",
    "EditOps",
]
REAL = ("Dense", "BaseScore", "Given", "ConsensusNGram", "ConsensusEdits", "Copy", "Lexical")  # values beyond counts


def test_every_template_of_texts_has_a_twin() -> None:
    of_texts = {name for name, cls in templates if cls.content != "trees"}
    assert of_texts == set(TWINS) == {make_template(spec).kind for spec in SPECS}


def same(found: list[dict[str, float]], twin: list[dict[str, float]], *, real: bool) -> None:
    """Equal names and values; real values may differ by rounding, and so may whether they vary at all."""
    if not real:
        assert found == twin
        return
    names = [{name for row in rows for name in row} for rows in (found, twin)]
    for name in names[0] & names[1]:
        assert [row.get(name, 0.0) for row in found] == pytest.approx([row.get(name, 0.0) for row in twin], rel=1e-5)
    for name in names[0] ^ names[1]:
        values = [row.get(name, 0.0) for row in (found if name in names[0] else twin)]
        assert values == pytest.approx([values[0]] * len(values), rel=1e-5), name


@settings(max_examples=100, deadline=None)
@given(lines=lists_of_texts())
def test_templates_equal_their_twins_alone_and_together(lines: Lines) -> None:
    alone = {spec: extracted([spec], lines) for spec in SPECS}
    for spec, found in alone.items():
        same(found, expected(spec, lines), real=spec.startswith(REAL))
    for y, together in enumerate(extracted(SPECS, lines)):
        assert together == {key: value for found in alone.values() for key, value in found[y].items()}


FOURS = ["<s> the man photos", "the man photos is", "man photos is taking", "photos is taking </s>"]


@pytest.mark.parametrize(
    ("spec", "candidate", "names"),
    [
        ("Dense", 0, {"LM0": -20.5, "WordPenalty0": -6.0}),
        ("Given", 1, {"dlr_back": 1.0}),
        ("PhrasePair", 0, {"ein mann → a man": 1, "nimmt → takes": 1, "2 fotos → 2 photos": 1, ". → .": 1}),
        ("SourcePhrase", 1, {"ein": 1, "mann": 1, "fotos": 1, "nimmt": 1}),
        ("TargetPhrase", 1, {"the": 1, "man": 1, "photos": 1, "is taking": 1}),
        ("PhraseLengths", 0, {"2 → 2": 2, "1 → 1": 2}),
        ("PhraseBoundary", 1, {"the | man": 1, "man | photos": 1, "photos | is": 1}),
        ("Jump", 0, {"0": 4}),
        ("Jump", 1, {"0": 2, "+2": 1, "-3": 1}),
        ("WordPair", 1, {"ein → the": 1, "mann → man": 1, "fotos → photos": 1, "nimmt → taking": 1}),
        ("Unaligned", 1, {"2": 1, ".": 1}),
        ("Unaligned(side=target)", 1, {"is": 1}),
        ("TargetNGram(n=4)", 1, once(*FOURS)),
        ("TargetNGram(n=2)", 2, {"<s> </s>": 1}),
        ("LengthRatio", 1, {"0.8": 1}),
        ("Length", 1, {"5": 1}),
        ("Copy", 0, {"copied": 2, "rate": pytest.approx(1 / 3), "digits": 1}),
        ("Punctuation", 1, {"final different": 1, "count -1": 1}),
        ("Rank", 1, {"2": 1}),
        ("BaseGap", 1, {"3": 1}),
        ("EditOps", 1, {"a → the": 1, "takes → (nothing)": 1, "2 → photos": 1, "photos → is": 1, ". → taking": 1}),
        ("ConsensusNGram(n=1, scale=0)", 0, {"1": pytest.approx(1 / 6)}),
        ("ConsensusEdits(scale=0)", 2, {"deletions": 5.5}),
    ],
)  # fmt: skip
def test_features_by_hand(spec: str, candidate: int, names: dict[str, Any]) -> None:
    assert extracted([spec], EIN_MANN)[candidate] == {f"{spec}|{name}": value for name, value in names.items()}


@pytest.mark.parametrize("name", ["dptm", "translation", "text", "speech"])
def test_sets_of_texts_hold_templates_of_texts(name: str) -> None:
    assert all(make_template(spec).content != "trees" for spec in SETS[name])
    assert len(extracted(SETS[name], EIN_MANN)[0]) > 5


@pytest.mark.parametrize(
    "spec",
    [
        "TargetNGram(n=0)",
        "Unaligned(side=both)",
        "PhraseLengths(most=0)",
        "Jump(most=65)",
        "CoOccurrence(words=0)",
        "CoOccurrence(band=-1)",
        "ConsensusNGram(n=0)",
        "Lexical(iterations=0)",
        "Lexical(folds=1)",
        "ConsensusEdits(top=0)",
        "ConsensusEdits(scale=-1)",
        "BaseGap(bin=0)",
        "Punctuation(most=0)",
        "Length(binned=1)",
    ],
)
def test_options_out_of_range_are_refused(spec: str) -> None:
    with pytest.raises(RecipeError, match=f"option .* of template {spec.partition('(')[0]}: found"):
        make_template(spec)


def test_options_do_what_they_say_at_their_limits() -> None:
    long = Lines(["a"] * 70, [One(["b"] * 70, [(0, 70, 0, 70)], base=0.0), One([], base=-1e6)])
    names = extracted(["PhraseLengths(most=64)", "Jump(most=64)", "LengthRatio", "Length", "BaseGap(bin=1)"], long)[0]
    assert set(names) == {
        "PhraseLengths(most=64)|64 → 64",
        "Jump(most=64)|0",
        "LengthRatio|1.0",
        "Length|64-95",
        "BaseGap(bin=1)|0",
    }
    assert all(f.default is not dataclasses.MISSING for _, cls in templates for f in dataclasses.fields(cls))


def test_a_dominant_candidate_does_not_hide_the_others() -> None:
    """The others' share of e^-500 is no reason to lose them."""
    lines = Lines([], [One(["a", "b"], base=0.0), One(["a", "c"], base=-500.0), One(["e", "d"], base=-500.0)])
    found = extracted(["ConsensusNGram(n=1)"], lines)
    assert [row.get("ConsensusNGram(n=1)|1", 0.0) for row in found] == pytest.approx([0.25, 0.5, 0.0])
