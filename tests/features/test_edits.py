"""Templates of edits on long texts: the alignment of the whole table of costs, in memory that grows as the words."""

import tracemalloc
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import PATIENCE
from reference_texts import Lines, One, expected, extracted

from rerank.base import interrupts
from rerank.base.interrupts import Deadline, GivenUpError, check
from rerank.features.text import consensus

WORDS = st.lists(st.sampled_from("abc"), max_size=40)


@given(texts=st.lists(WORDS, min_size=2, max_size=4), table=st.integers(0, 200), piece=st.integers(1, 5000))
def test_tables_in_parts_give_the_alignment_of_the_whole(texts: list[list[str]], table: int, piece: int) -> None:
    lines = Lines([], [One(words, base=-float(y)) for y, words in enumerate(texts)])
    specs = ["EditOps", "ConsensusEdits(top=3)"]
    whole = extracted(specs, lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consensus, "TABLE", table)
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
        assert tracemalloc.get_traced_memory()[1] < 32 << 20  # the whole table is 128 MB
    finally:
        tracemalloc.stop()
