"""The format in docs/adding-a-format.md has all that formats share, by what its page shows alone."""

import gzip
import io
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from outcomes import written
from pages import files

from rerank.base.errors import DataError, RecipeError
from rerank.extraction.content.base import make_reader
from rerank.models.scorer import Ranked, write_ranked
from rerank.readers.base import SkipCount, SkippedList, read_lists
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.texts.text_list import TextList
from rerank.readers.texts.text_pairs import read_text_pairs

TABLE = {"name": "formats_of_mine:TableReader"}
LISTS = b"a\t-1.5\t-3\tit rains\na\t-2\t-4\tit rain\na\t-2.5\t-5\tit rains\nb\nc\t-1\t-1\tyes\n"


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of the page."""
    ((name, code),) = files("docs/adding-a-format.md")
    module = ModuleType("formats_of_mine")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, name, "exec"), vars(module))


def test_lists_are_read_compressed_or_not_and_written_back(tmp_path: Path) -> None:
    (tmp_path / "lists").write_bytes(gzip.compress(LISTS))
    reader = make_reader(TABLE)
    found = [one for one in reader.read(str(tmp_path / "lists")) if isinstance(one, TextList)]
    assert [(one.id, one.texts, one.line) for one in found] == [
        ("a", [b"it rains", b"it rain", b"it rains"], 1), ("b", [], 4), ("c", [b"yes"], 5),
    ]  # fmt: skip
    assert (found[0].names, found[0].scores.tolist()) == (("score", "lm"), [[-1.5, -3], [-2, -4], [-2.5, -5]])
    assert (found[0].duplicates, list(found[0].lines)) == (1, [1, 2, 3])
    out = io.BytesIO()
    for one in found:
        reader.write(out, one)
    assert out.getvalue() == LISTS
    assert (
        written(reader, found[0], [1, 0], np.array([0.5, 2.0, 0.0])) == b"a\t2.0\t-4\tit rain\na\t0.5\t-3\tit rains\n"
    )


def test_what_is_shared_works(tmp_path: Path) -> None:
    (tmp_path / "lists").write_bytes(LISTS)
    (tmp_path / "scores").write_bytes(b"1\n2\n3\n4\n")
    (tmp_path / "references").write_bytes(b"it rains\nno\nyes\n")
    lists = str(tmp_path / "lists")
    (first, *_) = read_lists(make_reader({**TABLE, "duplicates": "drop"}), lists)
    assert (len(first), first.duplicates) == (2, 1)
    (first, *_) = read_lists(make_reader({**TABLE, "scores": "cost"}), lists)
    assert first.base.tolist() == [1.5, 2.0, 2.5]
    *_, last = read_lists(make_reader({"name": "joined", "of": TABLE}), f"{lists},{tmp_path / 'scores'}")
    assert last.scores.tolist() == [[-1.0, -1.0, 4.0]]
    merged = list(read_lists(make_reader({"name": "merged", "of": TABLE}), f"{lists},{lists}"))
    assert [one.texts for one in merged] == [[b"it rains", b"it rain"], [], [b"yes"]]
    pairs = read_text_pairs(make_reader(TABLE), lists, references=[tmp_path / "references"])
    assert [pair.references for pair in pairs] == [(b"it rains",), (b"no",), (b"yes",)]
    both = make_reader({"name": "joined", "of": {"name": "merged", "of": TABLE, "duplicates": "keep"}})
    with pytest.raises(DataError, match=r"scores:4: 4 lines of scores for at least 6 candidates of .*list a at line 1"):
        list(both.read(f"{lists},{lists},{tmp_path / 'scores'}"))
    with pytest.raises(RecipeError, match="duplicates: found 'x'; expected one of keep, drop"):
        make_reader({**TABLE, "duplicates": "x"})
    lm = ScoreColumns(("score", "lm", "tm"), "score")
    with pytest.raises(
        DataError, match="candidate 1 does not have the number 'tm', as all of the training lists do; 2 of 3"
    ):
        list(read_lists(make_reader(TABLE).knowing(lm), lists))


def test_bad_candidates_and_lists_have_their_outcomes(tmp_path: Path) -> None:
    path, reader = tmp_path / "lists", make_reader(TABLE)
    path.write_bytes(LISTS.replace(b"-4\tit rain", b"-4").replace(b"-1\t-1", b"nan\t-1") + LISTS[:19] + b"d\t0\t0\tx\n")
    with pytest.raises(DataError, match=r"lists:2: list a: found 3 fields in .*leave out such candidates with"):
        list(read_lists(reader, str(path)))
    count = SkipCount("skip")
    assert [one.id for one in read_lists(reader, str(path), count=count)] == ["a", "b", "d"]
    assert (dict(count.candidate_reasons), dict(count.reasons)) == (
        {"fields": 1}, {"infinite score": 1, "duplicate id": 1}
    )  # fmt: skip
    out = io.BytesIO()
    found = list(reader.read(str(path)))
    write_ranked(
        out,
        reader,
        [one if isinstance(one, SkippedList) else Ranked(one, np.arange(len(one)), one.base) for one in found],
    )
    path.write_bytes(out.getvalue())
    again = list(read_lists(reader, str(path)))
    assert [(one.id, len(one)) for one in again] == [("a", 2), ("b", 0), ("c", 0), ("line-6", 0), ("d", 1)]
