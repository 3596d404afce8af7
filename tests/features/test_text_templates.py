"""Templates of texts against their slow twins, features written out by hand, and edits on long texts."""

import dataclasses
import tracemalloc
from itertools import count

import numpy as np
import pytest
import reference_labels  # noqa: F401 - registers twins
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import PATIENCE
from reference_texts import EIN_MANN, TWINS, Lines, One, expected, extracted, lists_of_texts

from rerank.base import interrupts
from rerank.base.interrupts import Deadline, GivenUpError, check
from rerank.features.template import SETS, make_template, templates

SPECS_TEXT = """
    Dense; BaseScore; Given; PhrasePair; SourcePhrase; TargetPhrase; PhraseLengths; PhraseLengths(most=2);
    PhraseBoundary; Jump; Jump(most=1); WordPair; Unaligned; Unaligned(side=target); CoOccurrence;
    CoOccurrence(words=3); CoOccurrence(band=1); TargetNGram; TargetNGram(n=2); TargetNGram(n=3); LengthRatio;
    Length; Length(binned=False); Copy; Punctuation; Punctuation(most=1); ConsensusNGram; ConsensusNGram(n=2,
    scale=0); ConsensusEdits; ConsensusEdits(top=1); ConsensusEdits(top=3, scale=2); EditOps; SameAnswer;
    Dense(answers=own); BaseScore(answers=own); Within; Within(bins=3); LabelNGram; LabelSpan; SpanNGram
"""
SPECS = [" ".join(spec.split()) for spec in SPECS_TEXT.split(";")]
REAL = (  # values beyond counts
    "Dense", "BaseScore", "Given", "ConsensusNGram", "ConsensusEdits", "Copy", "SameAnswer", "Within",
)  # fmt: skip


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


@pytest.mark.parametrize("name", ["dptm", "translation", "text", "speech"])
def test_sets_of_texts_hold_templates_of_texts(name: str) -> None:
    assert all(make_template(spec).content != "trees" for spec in SETS[name])
    assert len(extracted(SETS[name], EIN_MANN)[0]) > 5


def test_options_do_what_they_say_at_their_limits() -> None:
    long = Lines(["a"] * 70, [One(["b"] * 70, [(0, 70, 0, 70)], base=0.0), One([], base=-1e6)])
    names = extracted(["PhraseLengths(most=64)", "Jump(most=64)", "LengthRatio", "Length"], long)[0]
    assert set(names) == {
        "PhraseLengths(most=64)|64 → 64",
        "Jump(most=64)|0",
        "LengthRatio|1.0",
        "Length|64-95",
    }
    assert all(f.default is not dataclasses.MISSING for _, cls in templates for f in dataclasses.fields(cls))


def test_a_dominant_candidate_does_not_hide_the_others() -> None:
    """The others' share of e^-500 is no reason to lose them."""
    lines = Lines([], [One(["a", "b"], base=0.0), One(["a", "c"], base=-500.0), One(["e", "d"], base=-500.0)])
    found = extracted(["ConsensusNGram(n=1)"], lines)
    assert [row.get("ConsensusNGram(n=1)|1", 0.0) for row in found] == pytest.approx([0.25, 0.5, 0.0])


WORDS = st.lists(st.sampled_from("abc"), max_size=40)


@given(texts=st.lists(WORDS, min_size=2, max_size=4), piece=st.integers(1, 5000))
def test_work_in_pieces_gives_the_alignment_of_the_whole(texts: list[list[str]], piece: int) -> None:
    lines = Lines([], [One(words, base=-float(y)) for y, words in enumerate(texts)])
    specs = ["EditOps", "ConsensusEdits(top=3)"]
    whole = extracted(specs, lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interrupts, "PIECE", piece)
        assert extracted(specs, lines) == whole  # to the bit
    operations = [{name: value for name, value in one.items() if name.startswith("EditOps")} for one in whole]
    assert operations == expected("EditOps", lines)


@pytest.mark.parametrize("spec", ["EditOps", "ConsensusEdits"])
def test_alignments_can_be_given_up(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    deadline, looks = Deadline(PATIENCE), count(1)

    def end_at_the_third() -> None:
        if next(looks) == 3:
            deadline.end()
        check()

    monkeypatch.setattr(interrupts, "PIECE", 1)
    monkeypatch.setattr(interrupts, "check", end_at_the_third)
    with deadline.held(), pytest.raises(GivenUpError):
        extracted([spec], Lines([], [One(["a"] * y, base=float(y)) for y in range(4)]))
    assert next(looks) == 4


def test_memory_grows_as_the_words() -> None:
    rng = np.random.default_rng(1)
    lines = Lines([], [One([f"w{word}" for word in rng.integers(0, 300, 4000)], base=float(y)) for y in range(2)])
    extracted(["EditOps"], lines)
    tracemalloc.start()
    try:
        extracted(["EditOps"], lines)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20  # a table of costs would be 128 MB
    finally:
        tracemalloc.stop()
