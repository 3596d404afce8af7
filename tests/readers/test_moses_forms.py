"""Lines of programs that put more into Moses' format, or less blank space, than Moses does today."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from outcomes import read_lists, written

from rerank.features.text.view import make_view
from rerank.readers.lists import Lists
from rerank.readers.moses import Moses
from rerank.readers.problems import Problem
from rerank.readers.reader import ScoreColumns, SkipCount, make_reader


class Form(NamedTuple):
    """Lines of a program, and what is read of them."""

    lines: str
    texts: list[list[bytes]]
    names: tuple[str, ...]
    scores: list[float]  # of the second candidate
    alignment: list[bytes] | None = None  # of the first list


POINTS = "0-0 1-1 2-2", "0-0 2-1", "1-0 1-1"
SOFT = "0.9,0.05,0.05 0.1,0.8,0.1 0,0,1", "0.9,0.05,0.05 0.25,0.25,0.5", "1,0 0,1"
WORDS = "WordScores= -0.5 -1.5 -1", "WordScores= -2 -0.25", "WordScores= -1 -3"
TEXTS = [[b"it rains", b"rain"], [b"yes"]]
OF_WORDS = "sum", "mean", "min", "length"


def marian(*ahead: tuple[str, str, str], features: str = "F0= {0}") -> str:
    """The n-best output of marian-decoder; ``ahead``: what options put before the features."""
    rows = [(0, "it rains", -3.0, -1.0), (0, "rain", -2.25, -1.125), (1, "yes", -4.0, -2.0)]
    lines = []
    for k, (i, text, total, score) in enumerate(rows):
        lines.append(" ||| ".join([str(i), text, *(one[k] for one in ahead), features.format(total), str(score)]))
    return "\n".join(lines) + "\n"


FORMS = {
    "marian --alignment hard": Form(
        marian(POINTS), TEXTS, ("F0", "score"), [-2.25, -1.125], [POINTS[0].encode(), POINTS[1].encode()]
    ),
    "marian --alignment soft": Form(marian(SOFT), TEXTS, ("F0", "score"), [-2.25, -1.125]),
    "marian --word-scores": Form(
        marian(WORDS), TEXTS, ("F0", *OF_WORDS, "score"), [-2.25, -2.25, -1.125, -2, 2, -1.125]
    ),
    "marian --alignment --word-scores": Form(
        marian(POINTS, WORDS), TEXTS, ("F0", *OF_WORDS, "score"), [-2.25, -2.25, -1.125, -2, 2, -1.125],
        [POINTS[0].encode(), POINTS[1].encode()],
    ),
    "marian with the scores of words among the features": Form(
        "0 ||| it rains ||| F0= -3.0 WordScores= -0.5 -1.5 -1 ||| -1.0\n"
        "0 ||| rain ||| F0= -2.25 WordScores= -2 -0.25 ||| -1.125\n"
        "1 ||| yes ||| F0= -4.0 WordScores= -1 -3 ||| -2.0\n",
        TEXTS, ("F0", *OF_WORDS, "score"), [-2.25, -2.25, -1.125, -2, 2, -1.125],
    ),
    "the same before another feature": Form(
        "0 ||| it rains ||| WordScores= -0.5 -1.5 -1 F0= -3.0 ||| -1\n"
        "0 ||| rain ||| WordScores=-2 -0.25 F0= -2.25 ||| -1.125\n1 ||| yes ||| WordScores= -1 -3 F0= -4.0 ||| -2\n",
        TEXTS, ("F0", *OF_WORDS, "score"), [-2.25, -2.25, -1.125, -2, 2, -1.125],
    ),
    "marian-scorer --n-best --alignment": Form(
        marian(POINTS, features="F0= {0} Score= -7"), TEXTS, ("F0", "Score", "score"), [-2.25, -7, -1.125],
        [POINTS[0].encode(), POINTS[1].encode()],
    ),
    "joshua -lattice-decoding true -output-format '%i ||| %e ||| %s ||| %f ||| %c'": Form(
        "0 ||| es regnet ||| it rains ||| tm_pt_0=-1.000 lm_0=-2.5 SourcePath=-1.0 ||| -4.5\n"
        "0 ||| regen ||| rain ||| tm_pt_0=0.000 lm_0=-3 SourcePath=-0.5 ||| -3.5\n"
        "1 ||| ja ||| yes ||| tm_pt_0=0.000 lm_0=-1 SourcePath=0.0 ||| -1\n",
        TEXTS, ("tm_pt_0", "lm_0", "SourcePath", "score"), [0, -3, -0.5, -3.5],
    ),
    "moses of 2009": Form(
        "0||| it rains  ||| d: 0 -7.5 lm: -41 w: -9 ||| -14.5\n"
        "0||| rain  ||| d: 1 -6.5 lm: -43 w: -8 ||| -14.75\n"
        "1||| yes  ||| d: 0 0 lm: -2 w: -1 ||| -1\n",
        TEXTS, ("d_0", "d_1", "lm", "w", "score"), [1, -6.5, -43, -8, -14.75],
    ),
}  # fmt: skip


def read(path: Path, data: str, reader: Moses | None = None) -> list[Lists]:
    path.write_text(data)
    found = [one for one in (reader or Moses()).read(path) if one.problem is None]
    assert len(found) == len(list((reader or Moses()).read(path)))
    return found


def test_lines_without_the_scores_of_their_words_are_bad(tmp_path: Path) -> None:
    """Where other lines have them among the features, a line without them would have the best of sums, 0."""
    row = "0 ||| rain ||| F0= -2 WordScores= -2 -0.25 XWordScores= 1 ||| -1\n"
    for wrong, message in (
        ("F0= -2 XWordScores= 1", "found no WordScores= in "),
        ("F0= -2 WordScores= XWordScores= 1", "found 'WordScores='; expected a number after it"),
        ("F0= -2 WordScores= -1 NULL XWordScores= 1", "found 'NULL'; expected a number"),
    ):
        (found,) = read(tmp_path / "lists", row * 2 + f"0 ||| it rains ||| {wrong} ||| -1\n")
        assert [(problem.line, message in problem.message) for problem in found.bad] == [(3, True)]
        assert found.names == ("F0", "XWordScores", *OF_WORDS, "score")


@pytest.mark.parametrize("name", FORMS)
def test_lines_are_read_written_back_and_with_other_scores_read_again(tmp_path: Path, name: str) -> None:
    form = FORMS[name]
    found = read(tmp_path / "lists", form.lines)
    assert [nbest.texts for nbest in found] == form.texts
    assert {nbest.names for nbest in found} == {form.names}
    assert found[0].scores[1].tolist() == form.scores
    assert found[0].alignment == form.alignment
    assert all(nbest.sparse is None and nbest.segmentation is None for nbest in found)
    assert b"".join(written(Moses(), nbest) for nbest in found).decode() == form.lines
    other = [written(Moses(), nbest, range(len(nbest))[::-1], 1.0 + np.arange(len(nbest))) for nbest in found]
    again = read(tmp_path / "again", b"".join(other).decode())
    assert [nbest.texts for nbest in again] == [texts[::-1] for texts in form.texts]
    assert again[0].base.tolist() == [2, 1]
    labels = [name for name in form.names[:-1] if name not in OF_WORDS]
    assert {nbest.names for nbest in again} == {(*labels, "BaseScore", *form.names[len(labels) :])}
    kept = [again[0].names.index(column) for column in ("BaseScore" if n == "score" else n for n in form.names)]
    assert again[0].scores[0, kept].tolist() == form.scores
    assert again[0].alignment == (None if form.alignment is None else form.alignment[::-1])


def test_marians_alignments_may_name_the_ends_of_sentences(tmp_path: Path) -> None:
    """They are no words: source and text have two each, and what lies further out is wrong as ever."""
    found = read(tmp_path / "lists", FORMS["marian --alignment hard"].lines)[0]
    view = make_view(found.replace(source=b"es regnet"), b"es regnet", None)
    assert view.point_first.tolist() == [0, 2, 3]
    assert view.points.tolist() == [[0, 0], [1, 1], [0, 0]]
    with pytest.raises(Problem, match=r"'2-2' in the alignment points outside of the source, which has 1 word"):
        make_view(found.replace(source=b"es"), b"es", None)
    path = tmp_path / "moses"
    path.write_text("0 ||| it rains ||| F0= -3 ||| -1 |||  ||| 0-0 1-1 2-2\n")
    plain = next(iter(Moses().read(path)))
    with pytest.raises(Problem, match=r"'2-2' in the alignment points outside of the source, which has 2 words"):
        make_view(plain.replace(source=b"es regnet"), b"es regnet", None)


def test_alignments_with_ends_are_not_written_in_other_formats(tmp_path: Path) -> None:
    """There the end would be a word that is not there."""
    found = read(tmp_path / "lists", FORMS["marian --alignment hard"].lines)[0]
    out = written(make_reader("jsonl", "reader"), found)
    assert b"it rains" in out
    assert b"alignment" not in out


def test_scores_of_words_are_columns_as_the_options_and_the_model_say(tmp_path: Path) -> None:
    lines = FORMS["marian --word-scores"].lines
    for reader, names in (
        (Moses(columns=("min",), base="min"), ("min", "score")),
        (Moses(columns=("F0",)), ("F0", "score")),
        (Moses().for_columns(ScoreColumns(("F0", "score"), "score")), ("F0", *OF_WORDS, "score")),
        (Moses().for_columns(ScoreColumns(("min", "F0", "score"), "score")), ("F0", *OF_WORDS, "score")),
    ):
        assert read(tmp_path / "lists", lines, reader)[0].names == names
    assert read(tmp_path / "lists", lines, Moses(base="min"))[0].base.tolist() == [-1.5, -2]


def test_an_id_that_bars_follow_is_a_whole_number(tmp_path: Path) -> None:
    path = tmp_path / "lists"
    path.write_text("a||| it rains ||| lm: -1 ||| -1\n" + "0||| yes ||| lm: -1 ||| -1\n" * 2 + "7|||\n")
    first, *gap, last = Moses().read(path)
    assert (first.texts, [bad.reason for bad in first.bad]) == ([b"yes"] * 2, ["fields"])
    assert (len(gap), last.id, last.size, last.problem is not None) == (6, "7", 0, False)


def lists_of(path: Path, lines: list[str], reader: Moses | None = None) -> list[Lists]:
    path.write_text("".join(line + "\n" for line in lines))
    found = list((reader or Moses()).read(path))
    assert all(nbest.problem is None for nbest in found), found
    return [nbest for nbest in found if nbest.problem is None]


def joshua(i: int, y: int, more: str = "") -> str:
    return f"{i} ||| w{y} ||| lm_0={-1.5 * y - 1} tm_0={y - 3}{more} ||| {-y}"


LABELS = {
    # what candidate y of list i has besides, and the columns of files with it
    "of one candidate": (lambda i, y: " oov=1" * (i == y == 1), ("lm_0", "tm_0", "score")),
    "of nine candidates in ten": (lambda i, y: " gap=2" * (4 * i + y < 18), ("lm_0", "tm_0", "gap", "score")),
    "of fewer": (lambda i, y: " gap=2" * (4 * i + y < 17), ("lm_0", "tm_0", "score")),
    "twice in one": (lambda i, y: " rule=1" * (2 if i == y == 0 else 1), ("lm_0", "tm_0", "score")),
}


@pytest.mark.parametrize("label", LABELS)
def test_which_labels_are_columns(tmp_path: Path, label: str) -> None:
    more, names = LABELS[label]
    found = lists_of(tmp_path / "lists", [joshua(i, y, more(i, y)) for i in range(5) for y in range(4)])
    assert {nbest.names for nbest in found} == {names}
    if label == "of one candidate":
        assert found[1].scores.tolist() == [[-1, -3, 0], [-2.5, -2, -1], [-4, -1, -2], [-5.5, 0, -3]]
        assert (found[1].sparse.names, found[1].sparse.values.tolist()) == ([b"oov"], [1])


def test_a_label_that_comes_twice_where_another_candidate_lacks_it_is_not_shared_by_all(tmp_path: Path) -> None:
    lines = [f"0 ||| w{y} ||| lm= -1{' T_a= 1' * (2 if y == 0 else y > 1)} ||| {-y}" for y in range(4)]
    assert lists_of(tmp_path / "lists", lines)[0].names == ("lm", "score")


def test_a_value_that_is_missing_is_0_and_counted(tmp_path: Path) -> None:
    lines = [joshua(i, y) for i in range(5) for y in range(4)]
    lines[6] = "1 ||| w2 ||| lm_0=-7 ||| -2"
    found = lists_of(tmp_path / "lists", lines)
    assert {nbest.names for nbest in found} == {("lm_0", "tm_0", "score")}
    assert found[1].scores[2].tolist() == [-7, 0, -2]
    assert [dict(nbest.absent) for nbest in found] == [{}, {"tm_0": 1}, {}, {}, {}]
    count = SkipCount()
    assert len(list(read_lists(Moses(), tmp_path / "lists", count=count))) == 5
    assert count.as_dict()["absent"] == {"tm_0": 1}
    assert "1 candidate without a value of the score column 'tm_0': it is 0 there" in str(count)


def test_what_was_decided_in_training_holds_for_other_files(tmp_path: Path) -> None:
    known = ScoreColumns(("lm_0", "gap", "score"), "score")
    lines = [joshua(i, y, " gap=2" * (i == 1 and y > 0)) for i in range(3) for y in range(3)]
    found = lists_of(tmp_path / "lists", lines, Moses().for_columns(known))
    assert {nbest.names for nbest in found} == {("lm_0", "gap", "score")}
    assert [nbest.absent.get("gap", 0) for nbest in found] == [3, 1, 3]
    assert found[0].others == ("tm_0",)  # all have it: a column that nobody asked for, whose values are kept
    assert set(found[0].sparse.names) == {b"tm_0"}


def test_a_file_that_shows_a_column_late_lacks_it_before(tmp_path: Path) -> None:
    known = ScoreColumns(("lm_0", "gap", "score"), "score")
    late = [joshua(i, y, " gap=1" * (i > 22)) for i in range(25) for y in range(3)]
    (tmp_path / "late").write_text("".join(f"{line}\n" for line in late))
    found = list(Moses().for_columns(known).read(tmp_path / "late"))  # the first lists do not show that 0 is left out
    assert [nbest.problem is not None for nbest in found] == [True] * 23 + [False] * 2
