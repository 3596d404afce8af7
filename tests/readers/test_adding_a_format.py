"""The format in docs/adding-a-format.md: its columns and options; tests/contract has what it shares with all others."""

from pathlib import Path

import numpy as np
import pytest
from formats import OWN
from outcomes import good, written

from rerank.base.errors import DataError
from rerank.readers.base import ScoreColumns, make_reader, read_lists

LISTS = b"a\t-1.5\t-3\tit rains\na\t-2\t-4\tit rain\na\t-2.5\t-5\tit rains\nb\nc\t-1\t-1\tyes\n"


def test_its_columns_costs_and_empty_lists(tmp_path: Path) -> None:
    (tmp_path / "lists").write_bytes(LISTS)
    reader = make_reader(OWN)
    first, *others = map(good, reader.read(str(tmp_path / "lists")))
    assert [(one.id, one.texts, one.line) for one in others] == [("b", [], 4), ("c", [b"yes"], 5)]
    assert (first.names, first.scores.tolist()) == (("score", "lm"), [[-1.5, -3], [-2, -4], [-2.5, -5]])
    assert b"".join(written(reader, one) for one in (first, *others)) == LISTS
    assert written(reader, first, [1], np.array([0.5, 2.0, 0.0])) == b"a\t2.0\t-4\tit rain\n"
    first, *_ = read_lists(make_reader({"name": OWN, "scores": "cost"}), tmp_path / "lists")
    assert first.base.tolist() == [1.5, 2.0, 2.5]
    known = make_reader(OWN).knowing(ScoreColumns(("score", "lm", "tm"), "score"))
    with pytest.raises(DataError, match="candidate 1 does not have the number 'tm', as all of the training lists do"):
        list(read_lists(known, tmp_path / "lists"))
