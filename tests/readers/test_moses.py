"""Moses-style lists: all their variants, bad ones in their places, and what is written back."""

from itertools import chain, islice
from pathlib import Path

import numpy as np
import outcomes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import good, outline, problem_of, read_lists

from rerank.base.errors import DataError
from rerank.readers import lines
from rerank.readers import moses as moses_reader
from rerank.readers.lists import Lists, SparseScores
from rerank.readers.moses import Moses
from rerank.readers.moses_lines import unmark
from rerank.readers.reader import SkipCount


def read(tmp_path: Path, data: bytes, reader: Moses | None = None) -> list[Lists]:
    path = tmp_path / "lists"
    path.write_bytes(data)
    return list((reader or Moses()).read(path))


def sparse_of(nbest: Lists) -> list[dict[str, float]]:
    if nbest.sparse is None:
        return [{} for _ in range(len(nbest))]
    first, names, values = nbest.sparse
    return [{names[k].decode(): values[k] for k in range(first[y], first[y + 1])} for y in range(len(nbest))]


def written(nbest: Lists, order: list[int] | None = None, scores: np.ndarray | None = None) -> bytes:
    return outcomes.written(Moses(), nbest, order, scores)


MOSES = b"""\
0 ||| the house  ||| LM0= -3.1 TM0= -0.5 -1.25 WT_the~das= 1 ||| -7.5 ||| 0=0 1-2=1 ||| 0-0 1-1
0 ||| a house  ||| LM0= -3.9 TM0= -1.5 -1 ||| -8.25 ||| 0=0 1-2=1 ||| 0-0 1-1
1 ||| it rains  ||| LM0= -2 TM0= -0.75 -2.5 ||| -5 ||| 0-1=0-1 ||| 0-0 1-1
"""
VARIANTS = {
    # lines, names of the columns, scores of the first list, sparse values of the first list
    "moses": (
        MOSES,
        ("LM0", "TM0_0", "TM0_1", "score"),
        [[-3.1, -0.5, -1.25, -7.5], [-3.9, -1.5, -1, -8.25]],
        [{"WT_the~das": 1}, {}],
    ),
    "moses with sparse name=value": (
        b"0 ||| a ||| LM0= -1 a_b=2 c_d= 3 ||| -1\n0 ||| b ||| LM0= -2 a_b=1 ||| -2\n1 ||| c ||| LM0= 0 a_b=1 ||| 0\n",
        ("LM0", "score"),
        [[-1, -1], [-2, -2]],
        [{"a_b": 2, "c_d": 3}, {"a_b": 1}],
    ),
    "old moses": (
        b"0 ||| a ||| d: 0 lm: -1.5 tm: -1 -2 w: -1 ||| -1\n0 ||| b ||| d: 1 lm: -2 tm: -3 -4 w: -1 x:1 ||| -2\n"
        b"1 ||| c ||| d: 0 lm: -1 tm: -1 -2 w: -1 ||| -3\n",
        ("d", "lm", "tm_0", "tm_1", "w", "score"),
        [[0, -1.5, -1, -2, -1, -1], [1, -2, -3, -4, -1, -2]],
        [{}, {"x": 1}],
    ),
    "without labels": (
        b"0 ||| a ||| -1 -2.5 3 ||| -1\n0 ||| b ||| -3 -4 5 ||| -2\n1 ||| c ||| 1 2 3 ||| -3\n",
        ("0", "1", "2", "score"),
        [[-1, -2.5, 3, -1], [-3, -4, 5, -2]],
        [{}, {}],
    ),
    "joshua": (
        b"0 ||| a b ||| lm_0=-3.25 tm_pt_0=-1 WordPenalty=-0.5 ||| -4.25\n"
        b"0 ||| a ||| lm_0=-4 tm_pt_0=-2 WordPenalty=-0.5 ||| -6\n"
        b"1 ||| c ||| tm_pt_0=0 lm_0=-1 WordPenalty=-0.5 ||| -1 ||| 0-0\n".replace(b" ||| 0-0", b""),
        ("lm_0", "tm_pt_0", "WordPenalty", "score"),
        [[-3.25, -1, -0.5, -4.25], [-4, -2, -0.5, -6]],
        [{}, {}],
    ),
    "cdec": (
        b"0 ||| a b ||| Glue=1;LM=-3.25;N_;_;=1 ||| -4\n0 ||| a ||| LM=-4 ||| -6\n1 ||| c ||| Glue=1;LM=-4 ||| -6\n",
        ("LM", "score"),
        [[-3.25, -4], [-4, -6]],
        [{"Glue": 1, "N_;_;": 1}, {}],
    ),
    "cdec with spaces and without a total": (
        b"0 ||| a b ||| Glue=1 LM=-3.25\n0 ||| a ||| LM=-4\n1 ||| c ||| LM=-4\n",
        ("LM", "score"),
        [[-3.25, 0], [-4, 0]],
        [{"Glue": 1}, {}],
    ),
    "travatar": (
        b"0 ||| a b ||| -4 ||| lm=-3.25 word=2\n0 ||| a ||| -6 ||| lm=-4 word=1\n1 ||| c ||| -1 ||| lm=-4 word=1\n",
        ("lm", "word", "score"),
        [[-3.25, 2, -4], [-4, 1, -6]],
        [{}, {}],
    ),
    "a score alone": (b"0 ||| a b ||| -4\n0 ||| a ||| -6\n1 ||| c ||| -1\n", ("score",), [[-4], [-6]], [{}, {}]),
    "an empty field of features": (
        b"0 ||| a b ||| ||| -4\n0 ||| a |||  ||| -6\n1 ||| c ||| ||| -1\n", ("score",), [[-4], [-6]], [{}, {}],
    ),
    "a score with a segmentation": (
        b"0 ||| a b ||| -4 ||| 0-1=0-1\n0 ||| a ||| -6 ||| 0=0\n1 ||| c ||| -1 ||| 0=0\n",
        ("score",), [[-4], [-6]], [{}, {}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_have_their_columns_scores_and_sparse_values(tmp_path: Path, name: str) -> None:
    data, names, scores, sparse = VARIANTS[name]
    first, second = map(good, read(tmp_path, data))
    assert (first.id, second.id) == ("0", "1")
    assert first.names == second.names == names
    assert first.scores.tolist() == scores
    assert first.base.tolist() == [row[-1] for row in scores]
    assert sparse_of(first) == sparse
    assert (len(second), first.line, list(first.lines), second.line) == (1, 1, [1, 2], 3)
    assert written(first) + written(second) == data


def test_derivations_are_told_by_what_they_hold(tmp_path: Path) -> None:
    first = good(read(tmp_path, MOSES)[0])
    assert first.texts == [b"the house", b"a house"]
    assert first.segmentation == [b"0=0 1-2=1", b"0=0 1-2=1"]
    assert first.alignment == [b"0-0 1-1", b"0-0 1-1"]
    alone = b"0 ||| a ||| F0= -3 ||| -4 ||| \n0 ||| b ||| F0= -3 ||| -4 ||| 0-0 1-1\n1 ||| c ||| F0= 1 ||| 2 |||\n"
    first, second = map(good, read(tmp_path, alone))
    assert first.alignment == [b"", b"0-0 1-1"]
    assert second.alignment == [b""]
    assert first.segmentation is None
    other = b"0 ||| a ||| F0= -3 ||| -4 ||| WordScores= -1 -2\n"
    first = good(read(tmp_path, other)[0])
    assert (first.segmentation, first.alignment) == (None, None)
    assert first.scores.tolist() == [[-3, -4]]


def test_marks_of_phrases_become_a_segmentation(tmp_path: Path) -> None:
    data = b"0 ||| the house |0-1| rains |2-2|  ||| F0= 1 ||| -1\n0 |||  ||| F0= 1 ||| -2\n"
    first = good(read(tmp_path, data)[0])
    assert first.texts == [b"the house rains", b""]
    assert first.segmentation == [b"0-1=0-1 2=2", b""]
    assert written(first) == data
    long = b"0 ||| a b |1-2,wa=0-0 1-1,total=-3.2, LM0= -1 | c |0-0,wa=0-0,total=-1| ||| F0= 1 ||| -1\n"
    first = good(read(tmp_path, long)[0])
    assert (first.texts, first.segmentation) == ([b"a b c"], [b"1-2=0-1 0=2"])
    both = b"0 ||| a b |0-1| ||| F0= 1 ||| -1 ||| 0-1=0-1\n"
    first = good(read(tmp_path, both)[0])
    assert (first.texts, first.segmentation) == ([b"a b"], [b"0-1=0-1"])


def test_bars_in_texts_that_mark_no_phrase_stay() -> None:
    for texts in ([b"scores |1-2| and more"], [b"a |0-0|", b"b"], [b"a|0-0|b"], [b"a|0-0|"], [b"|5-3"], [b"a ||1-1 b"]):
        assert unmark(texts) == (texts, None)
    assert unmark([b"a |3| b |0-1|"]) == ([b"a b"], [b"3=0 0-1=1"])
    assert unmark([b"|0-0| a |1-1|"]) == ([b"a"], [b"1=0"])  # a phrase without words


def test_which_values_are_columns_can_be_said(tmp_path: Path) -> None:
    data = b"0 ||| a ||| LM0= -1 x=2 y= 3 4 ||| -1\n0 ||| b ||| LM0= -2 x=1 y= 5 6 ||| -2\n"
    assert good(read(tmp_path, data)[0]).names == ("LM0", "y_0", "y_1", "score")
    first = good(read(tmp_path, data, Moses(columns=("y_1", "x"), base="x"))[0])
    assert first.names == ("y_1", "x", "score")
    assert first.scores.tolist() == [[4, 2, -1], [6, 1, -2]]
    assert first.base.tolist() == [2, 1]
    assert sparse_of(first) == [{"LM0": -1, "y_0": 3}, {"LM0": -2, "y_0": 5}]
    (bad,) = read(tmp_path, data, Moses(columns=("x", "z")))
    assert (bad.problem.reason, "'z'" in bad.problem.message) == ("columns", True)


def test_the_first_lists_decide_what_is_a_column(tmp_path: Path) -> None:
    lists = [b"%d ||| a ||| LM0= -1 %s||| -1\n" % (i, b"P_x= 1 " if i < k else b"") for k in (1, 30) for i in range(k)]
    first = good(read(tmp_path, lists[0])[0])  # there is no other
    assert first.names == ("LM0", "P_x", "score")
    many = b"".join(b"%d ||| a ||| LM0= -1 %s||| -1\n" % (i, b"P_x= 1 " if i != 7 else b"") for i in range(40))
    found = list(map(good, read(tmp_path, many)))
    assert {nbest.names for nbest in found} == {("LM0", "score")}
    assert sparse_of(found[0]) == [{"P_x": 1}]
    assert sparse_of(found[7]) == [{}]
    late = b"".join(b"%d ||| a ||| LM0= -1 %s||| -1\n" % (i, b"P_x= 1 " if i != 27 else b"") for i in range(40))
    assert [one.id for one in read(tmp_path, late) if one.problem is not None] == ["27"]


def test_a_label_with_another_number_of_values_gives_no_columns_of_the_same_names(tmp_path: Path) -> None:
    data = b"0 ||| a ||| T= 1 2 ||| 0\n1 ||| a ||| T= 1 2 3 ||| 0\n2 ||| a ||| T= 4 5 ||| 0\n"
    first, bad, last = read(tmp_path, data, Moses(columns=("T_0", "T_1")))
    assert (good(first).names, good(last).scores.tolist()) == (("T_0", "T_1", "score"), [[4, 5, 0]])
    assert bad.problem is not None


def test_a_label_score_is_not_the_total(tmp_path: Path) -> None:
    first = good(read(tmp_path, b"0 ||| a ||| score= -1 ||| -3\n")[0])
    assert (first.names, first.base.tolist()) == (("score_0", "score"), [-3])


def test_ids_that_are_left_out_are_empty_lists(tmp_path: Path) -> None:
    data = b"2 ||| a ||| F0= 1 ||| -1\n\n5 ||| b ||| F0= 1 ||| -2\n"
    found = list(map(good, read(tmp_path, data)))
    assert outline(found) == [("0", 0), ("1", 0), ("2", 1), ("3", 0), ("4", 0), ("5", 1)]
    assert {nbest.names for nbest in found} == {("F0", "score")}
    assert (found[0].scores.shape, found[0].base.shape, found[3].line, written(found[0])) == ((0, 2), (0,), 3, b"")
    assert outline(read(tmp_path, data, Moses(first_id=2)))[0] == ("2", 1)


def test_ordinal_ids(tmp_path: Path) -> None:
    data = b"d 1 ||| a ||| F= 1 ||| -1\nd 1 ||| b ||| F= 1 ||| -1\nx ||| c ||| F= 1 ||| 0\nd 1 ||| d ||| F= 1 ||| 0\n"
    assert outline(read(tmp_path, data, Moses(ids="ordinal"))) == [("0", 2), ("1", 1), ("2", 1)]
    assert outline(read(tmp_path, data, Moses(ids="ordinal", first_id=5))) == [("5", 2), ("6", 1), ("7", 1)]


def test_bytes_that_are_not_utf8_and_other_white_space_are_kept(tmp_path: Path) -> None:
    data = b"0 ||| caf\xe9 \xc2\xa0 |||| a|||b ||| F\xe9= 1\tG= 2 ||| -1\n"
    first = good(read(tmp_path, data)[0])
    assert first.texts == [b"caf\xe9 \xc2\xa0 |||| a|||b"]
    assert first.names == ("F\udce9", "G", "score")
    assert written(first) == data


def test_what_goes_with_duplicates(tmp_path: Path) -> None:
    data = (
        b"0 ||| a ||| F= 1 ||| -1 ||| 0=0\n0 ||| b ||| F= 2 s=5 ||| -2 ||| 0=0\n0 ||| a ||| F= 3 s=6 ||| -3 ||| 1=0\n"
    )
    data += b"0 ||| c ||| F= 4 t=7 u=8 ||| -4 ||| 1=0\n"
    dropped = good(read(tmp_path, data, Moses(duplicates="drop"))[0])
    assert (dropped.segmentation, list(dropped.lines)) == ([b"0=0", b"0=0", b"1=0"], [1, 2, 4])
    assert sparse_of(dropped) == [{}, {"s": 5}, {"t": 7, "u": 8}]
    assert written(dropped) == b"".join(data.splitlines(True)[i] for i in (0, 1, 3))


GOOD = b"0 ||| a ||| F= 1 G= 1 2 ||| -1\n"
NEXT = b"2 ||| z ||| F= 1 G= 1 2 ||| -9\n" * 20
BAD = {
    # the lines of list 1, the reason, the line in error, part of the message
    "two fields": (b"1 ||| a\n", "fields", 2, "found 2 fields in '1 ||| a'; expected 4"),
    "one more field": (b"1 ||| a ||| F= 1 G= 1 2 ||| -1 ||| 0-0\n", "fields", 2, "found 5 fields"),
    "the second line": (b"1 ||| a ||| F= 1 G= 1 2 ||| -1\n1 ||| b ||| F= 1\n", "fields", 3, "found 3 fields"),
    "a line of something else": (b"1 ||| a ||| F= 1 G= 1 2 ||| -1\ngarbage\n", "fields", 3, "'garbage'"),
    "an id that is none": (b"1 ||| a ||| F= 1 G= 1 2 ||| 0\nx1 ||| b ||| F= 1 G= 1 2 ||| 0\n", "id", 3, "the id 'x1'"),
    "a word as total": (b"1 ||| a ||| F= 1 G= 1 2 ||| high\n", "score", 2, "found 'high'; expected the candidate's"),
    "no total": (b"1 ||| a ||| F= 1 G= 1 2 |||\n", "score", 2, "found an empty field"),
    "a word as value": (b"1 ||| a ||| F= one G= 1 2 ||| -1\n", "score", 2, "found 'one'"),
    "no label": (b"1 ||| a ||| F= 1 G= 1 2 =3 ||| -1\n", "score", 2, "found '=3'"),
    "no value": (b"1 ||| a ||| F= G= 1 2 ||| -1\n", "score", 2, "found 'F='; expected a number after it"),
    "NaN": (b"1 ||| a ||| F= nan G= 1 2 ||| -1\n", "infinite score", 2, "NaN or an infinite value"),
    "an infinite value": (b"1 ||| a ||| F= 1 G= 1 -inf ||| -1\n", "infinite score", 2, "infinite"),
    "an infinite sparse value": (b"1 ||| a ||| F= 1 G= 1 2 s=inf ||| -1\n", "infinite score", 2, "infinite"),
    "a column less": (b"1 ||| a ||| F= 1 ||| -1\n", "columns", 2, "no value of 'G_0'"),
    "a value less": (b"1 ||| a ||| F= 1 G= 1 ||| -1\n", "columns", 2, "no value of 'G_0'"),
    "a column twice": (b"1 ||| a ||| F= 1 F= 1 G= 1 2 ||| -1\n", "columns", 2, "more than one value of 'F'"),
    "an empty field of features": (b"1 ||| a |||  ||| -1\n", "columns", 2, "no value of 'F'"),
    "NUL": (b"1 ||| a\0b ||| F= 1 G= 1 2 ||| -1\n", "nul", 2, "NUL"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_lists_stand_in_their_places(tmp_path: Path, name: str) -> None:
    lines, reason, line, message = BAD[name]
    first, damaged, last = read(tmp_path, GOOD + lines + NEXT)
    assert (first.id, damaged.id, last.id, last.line) == ("0", "1", "2", 2 + lines.count(b"\n"))
    bad = problem_of(damaged)
    assert (bad.reason, bad.line, bad.path) == (reason, line, str(tmp_path / "lists"))
    assert message in bad.message
    assert good(first).scores.tolist() == [[1, 1, 2, -1]]
    assert good(last).scores.tolist() == [[1, 1, 2, -9]] * 20
    with pytest.raises(DataError, match="--on-bad-list skip"):
        list(read_lists(Moses(), tmp_path / "lists"))
    count = SkipCount("skip")
    kept = ["0", "2"] if damaged.problem is not None else ["0", "1", "2"]
    assert [nbest.id for nbest in read_lists(Moses(), tmp_path / "lists", count=count)] == kept
    assert dict(count.reasons + count.candidate_reasons) == {reason: 1}


def test_damage_in_the_first_list_does_not_decide(tmp_path: Path) -> None:
    tail = b"".join(b"%d ||| a ||| F= 1 G= 1 2 ||| -1\n" % i for i in range(1, 5))
    for start in (
        b"0 ||| a\n",
        b"0 ||| a ||| F= x G= 1 2 ||| -1\n",
        b"0 ||| a ||| F= 1 G= 1 2 |||\n",
        b"junk\n0 ||| a |||\n",
    ):
        found = read(tmp_path, start + tail)
        assert found[0].problem is not None
        assert [good(one).names for one in found[1:]] == [("F", "G_0", "G_1", "score")] * 4
    for features in (b"F= 1 G= 1", b"F= 1", b"G= 1 2"):  # none of these looks like a sparse feature
        lacking = b"0 ||| a ||| " + features + b" ||| -1\n" + tail + b"4 ||| a ||| F= 1 G= 1 2 ||| -1\n" * 10
        assert outline(read(tmp_path, lacking))[0] == ("0", "columns")


@pytest.mark.parametrize(
    ("data", "reader", "message"),
    [
        (
            GOOD + b"2 ||| a ||| F= 1 G= 1 2 ||| -1\n" + b"1 ||| a ||| F= 1 G= 1 2 ||| 0\n",
            Moses(),
            r":3: list 1: .*id 1",
        ),
        (GOOD + b"1 ||| b ||| F= 1 G= 1 2 ||| -1\n" + GOOD, Moses(), r":3: list 0: .*expected 2 or more.*ordinal"),
        (GOOD, Moses(first_id=1), r":1: list 0: found the id 0; expected 1 or more.*first_id"),
        (GOOD + b"1000003 ||| b ||| F= 1 G= 1 2 ||| -1\n", Moses(), r":2: list 1000003: .*expected 1 or more"),
        (GOOD, Moses(base="H"), r"no column 'H' for the base score; the columns are F, G_0, G_1, score"),
    ],
)
def test_errors_that_stop(tmp_path: Path, data: bytes, reader: Moses, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, data, reader)


@pytest.mark.parametrize(("name", "most"), [("MAX_LINES", 5), ("MAX_BYTES", 200)])
def test_a_list_without_end_is_refused(tmp_path: Path, name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moses_reader, name, most)
    monkeypatch.setattr(moses_reader, "FIRST_BYTES", 0)
    monkeypatch.setattr(lines, "CHUNK", 64)
    few = b"".join(b"%d ||| a ||| F= 1 ||| 0\n" % (i // 3) for i in range(30))
    assert outline(read(tmp_path, few)) == [(str(i), 3) for i in range(10)]
    with pytest.raises(DataError, match=r"lists:31: a list of more than .* do they have the ids they should"):
        read(tmp_path, few + b"10 ||| b ||| F= 1 ||| 0\n" * 20)


RESCORED = {
    "moses": (
        b"0 ||| a  ||| LM0= -1 s_x= 1  ||| -7.50 ||| 0=0 ||| 0-0",
        b"0 ||| a  ||| LM0= -1 s_x= 1 BaseScore= -7.50  ||| 0.25 ||| 0=0 ||| 0-0",
    ),
    "again": (b"0 ||| a ||| LM0= -1 BaseScore= -7 ||| 3", b"0 ||| a ||| LM0= -1 BaseScore= -7 ||| 0.25"),
    "old moses": (b"0 ||| a ||| d: 0 lm: -1 -2 ||| -7", b"0 ||| a ||| d: 0 lm: -1 -2 BaseScore: -7 ||| 0.25"),
    "without labels": (b"0 ||| a ||| 0 -1 ||| -7", b"0 ||| a ||| 0 -1 BaseScore= -7 ||| 0.25"),
    "joshua": (b"0 ||| a ||| lm=-1 tm=-2 ||| -7", b"0 ||| a ||| lm=-1 tm=-2 BaseScore=-7 ||| 0.25"),
    "cdec": (b"0 ||| a ||| lm=-1;tm=-2 ||| -7", b"0 ||| a ||| lm=-1;tm=-2;BaseScore=-7 ||| 0.25"),
    "no total": (b"0 ||| a ||| lm=-1 tm=-2", b"0 ||| a ||| lm=-1 tm=-2 ||| 0.25"),
    "no total, aligned": (b"0 ||| a ||| lm=-1 tm=-2 ||| 0-0", b"0 ||| a ||| lm=-1 tm=-2 ||| 0.25 ||| 0-0"),
    "travatar": (b"0 ||| a ||| -7 ||| lm=-1", b"0 ||| a ||| 0.25 ||| lm=-1 BaseScore=-7"),
    "travatar, no features": (b"0 ||| a ||| -7 |||", b"0 ||| a ||| 0.25 ||| BaseScore= -7"),
    "a score alone": (b"0 ||| a ||| -7", b"0 ||| a ||| BaseScore= -7 ||| 0.25"),
    "no features": (b"0 ||| a |||  ||| -7", b"0 ||| a ||| BaseScore= -7 ||| 0.25"),
    "CRLF": (b"0 ||| a ||| F= 1 ||| -7\r", b"0 ||| a ||| F= 1 BaseScore= -7 ||| 0.25"),
}


@pytest.mark.parametrize("name", RESCORED)
def test_new_scores_replace_the_total_and_keep_the_first_one(tmp_path: Path, name: str) -> None:
    line, expected = RESCORED[name]
    nbest = good(read(tmp_path, line + b"\n")[0])
    again = written(nbest, scores=np.array([0.25]))
    assert again == expected + b"\n"
    back = good(read(tmp_path, again)[0])
    assert (back.texts, back.base.tolist()) == (nbest.texts, [0.25])
    if "BaseScore" in back.names:
        assert back.scores[0, back.names.index("BaseScore")] == -7.5 if name == "moses" else -7
        assert good(read(tmp_path, again, Moses(base="BaseScore"))[0]).base[0] <= -7
    if name.startswith("no total"):
        return
    assert written(back, scores=np.array([0.5])) == again.replace(b" 0.25", b" 0.5")


def test_a_sparse_feature_that_comes_twice_on_a_line_adds_up() -> None:
    (nbest,) = Moses().parse(b"0 ||| a ||| F= 1 w_a= 1 w_a= 2 ||| 0\n0 ||| b ||| F= 2 ||| 1\n")
    assert [candidate.features for candidate in nbest.candidates] == [{"w_a": 3.0}, {}]


def test_lists_of_other_formats_are_written_as_lines(tmp_path: Path) -> None:
    sparse = SparseScores(np.array([0, 1, 1]), [b"a b"], np.array([2.5]))
    scores = np.array([[-1.5, -7.0], [-2.0, -8.0]])
    nbest = Lists.one(
        "3", "x", 1, [b"a b", b""], [1, 2], scores, 1, names=("LM", "p"), sparse=sparse, alignment=[b"0-0", b""]
    )
    data = written(nbest)
    assert data == b"3 ||| a b ||| LM= -1.5 a_b= 2.5 ||| -7.0 ||| 0-0\n3 |||  ||| LM= -2.0 ||| -8.0 ||| \n"
    (back,) = map(good, read(tmp_path, data, Moses(first_id=3)))
    assert (back.texts, back.names, back.alignment) == ([b"a b", b""], ("LM", "score"), [b"0-0", b""])
    assert back.scores.tolist() == scores.tolist()
    assert b"LM= -1.5 a_b= 2.5 BaseScore= -7.0 ||| 1.0" in written(nbest, scores=np.array([1.0, 2.0]))
    plain = Lists.one("0", "x", 1, [b"a"], [1], np.array([[-1.0]]))
    assert written(plain) == b"0 ||| a |||  ||| -1.0\n"
    for text in (b"a\nb", b"a ||| b"):
        with pytest.raises(DataError, match="x:1: list 0: candidate 1 cannot be written"):
            written(Lists.one("0", "x", 1, [text], [1], np.array([[-1.0]])))


# What was written, at random

words = st.sampled_from(
    ["a", "das", "haus", "|", "||", "||||", "x|||y", "=", "a=", "1", "x|0-1|", "|0-1|x", "é", ":-)", ";"]
)
numbers = st.one_of(
    st.integers(-1000, 1000).map(str),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.6g}"),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e3, 1e3).map(lambda x: f"{x:.25f}"),
    st.sampled_from(["-0", "+1.", ".5", "0e999", "1E-5", "123456789012345678901234567890", "9007199254740993", "1e22"]),
)
labels = st.sampled_from(["s_a", "s_b", "s;c", "s=d", "s:e", "s_f"])
Written = tuple[int, str, list[str], dict[str, str]]  # a candidate: id, text, numbers of the columns, sparse values


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, list[str], list[Written]]:
    """A file, the names of its columns, and its candidates."""
    dense = draw(st.sampled_from([[("LM", 1)], [("LM", 1), ("TM", 3)], [("d=e", 2)], []]))
    lines, candidates, number = [], list[Written](), -1
    for _ in range(draw(st.integers(1, 6))):
        number += draw(st.integers(1, 3))
        for _ in range(draw(st.integers(1, 4))):
            text = " ".join(draw(st.lists(words, max_size=5)))
            values = [[draw(numbers) for _ in range(k)] for _, k in dense]
            parts = [f"{label}= {' '.join(own)}" for (label, _), own in zip(dense, values, strict=True)]
            extra = {} if not lines else draw(st.dictionaries(labels, numbers, max_size=3))
            parts += [f"{label}{draw(st.sampled_from(['=', '= ']))}{value}" for label, value in extra.items()]
            features, total = draw(st.sampled_from([" ", "  "])).join(parts), draw(numbers)
            lines.append(f"{number} ||| {text} ||| {features} ||| {total}\n")
            candidates.append((number, text, [*chain(*values), total], extra))
    names = [label if k == 1 else f"{label}_{i}" for label, k in dense for i in range(k)]
    return "".join(lines).encode(), [*names, "score"], candidates


@settings(max_examples=60, deadline=None)
@given(made=files(), chunk=st.sampled_from([1, 7, 64, 1 << 20]))
def test_lists_are_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[bytes, list[str], list[Written]], chunk: int
) -> None:
    data, names, expected = made
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK", chunk)
        found = list(map(good, read(tmp_path_factory.mktemp("x"), data)))
    assert [nbest.id for nbest in found] == [str(i) for i in range(len(found))]
    assert {nbest.names for nbest in found} == {tuple(names)}
    candidates = [
        (int(nbest.id), *each)
        for nbest in found
        for each in zip(nbest.texts, nbest.scores.tolist(), sparse_of(nbest), strict=True)
    ]
    assert candidates == [
        (i, text.encode(), [*map(float, scores)], {label: float(value) for label, value in extra.items()})
        for i, text, scores, extra in expected
    ]
    assert b"".join(map(written, found)) == data


def test_lists_come_in_blocks_or_one_by_one_if_any_is_bad(tmp_path: Path) -> None:
    lines = [
        f"{i} ||| {text} ||| F= {score} G={score} ||| -1\n"
        for i, text, score in ((0, "a", 1), (0, "b", 2), (2, "c", 3))
    ]
    path = tmp_path / "lists"
    path.write_text("".join(lines))
    (block,) = Moses(columns=("F",)).blocks(path)
    assert (block.ids, block.first.tolist(), block.scores[:, 0].tolist()) == (["0", "1", "2"], [0, 2, 2, 3], [1, 2, 3])
    assert (block.sparse.names, block.sparse.values.tolist()) == ([b"G"] * 3, [1, 2, 3])
    path.write_text("".join([*lines, "3 ||| d ||| F= x ||| -1\n", "1 ||| late ||| F= 1 ||| -1\n"]))
    blocks = Moses().blocks(path)
    assert [(one.ids, one.problem is None) for one in islice(blocks, 4)] == [
        (["0"], True), (["1"], True), (["2"], True), (["3"], False),
    ]  # fmt: skip
    with pytest.raises(DataError, match="found the id 1; expected 4 or more"):
        next(blocks)
    path.write_text("0 ||| a ||| F= 1 ||| -1\n20000 ||| b ||| F= 1 ||| -2\n")
    block = next(Moses().blocks(path))
    assert (block.texts, block.scores.tolist(), block.first.tolist()) == ([b"a"], [[1, -1]], [0, 1])
