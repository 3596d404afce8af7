"""The formats of Berkeley's and Stanford's parsers."""

import io
from functools import partial
from pathlib import Path

import numpy as np
import outcomes
import pytest
from outcomes import good, outline, problem_of, read_lists

from rerank.base.errors import DataError
from rerank.contrib.formats.parsers import BerkeleyReader, StanfordReader
from rerank.readers.reader import Lists
from rerank.readers.trees import charniak

GROUPS = b"""-81.52\t( (S (NP (PRP It)) (VP (VBD rained))) )
-85.01\t( (S (NP (PRP It)) (VP (VBN rained))) )

-Infinity\t(())

-3.5\t( (NP (NN Art)) )

"""
HEADED = b"""2\twsj-1
-81.52 -79 .25
(S1 (S (NP (PRP It)) (VP (VBD rained))))
-85.01 -80 .125
(S1 (S (NP (PRP It)) (VP (VBN rained))))

"""


def berkeley(tmp_path: Path, data: bytes, reader: BerkeleyReader | None = None) -> list[Lists]:
    path = tmp_path / "lists"
    path.write_bytes(data)
    return list((reader or BerkeleyReader()).read(path))


def test_groups(tmp_path: Path) -> None:
    first, failed, last = map(good, berkeley(tmp_path, GROUPS))
    assert (first.id, first.line, list(first.lines)) == ("0", 1, [1, 2])
    assert first.base.tolist() == [-81.52, -85.01]
    assert first.texts[1] == b"( (S (NP (PRP It)) (VP (VBN rained))) )"
    assert first.candidates[0].tokens == ["It", "rained"]
    assert (failed.id, failed.line, len(failed), failed.base.shape) == ("1", 4, 0, (0,))
    assert (last.id, last.line, list(last.lines), last.base.tolist()) == ("2", 6, [6], [-3.5])


@pytest.mark.parametrize("failed", [b"(())", b"( () )", b"-Infinity\t(())", b"-Infinity\t-Infinity\t()"])
def test_failed_parses_are_no_candidates(tmp_path: Path, failed: bytes) -> None:
    found = berkeley(tmp_path, failed + b"\n\n-1\t(NN x)\n\n" + failed + b"\n")
    assert outline(found) == [("0", 0), ("1", 1), ("2", 0)]
    assert outline(berkeley(tmp_path, b"-1\t(NN x)\n" + failed + b"\n-2\t(NN y)\n")) == [("0", 2)]


def test_headed_lists_with_several_scores(tmp_path: Path) -> None:
    first = good(berkeley(tmp_path, HEADED)[0])
    assert (first.id, first.line, list(first.lines)) == ("wsj-1", 1, [3, 5])
    assert first.scores.tolist() == [[-81.52, -79, 0.25], [-85.01, -80, 0.125]]
    assert first.base.tolist() == [-81.52, -85.01]
    assert good(berkeley(tmp_path, HEADED, BerkeleyReader(score=2))[0]).base.tolist() == [0.25, 0.125]
    assert outline(berkeley(tmp_path, b"0\tx\n\n" + HEADED)) == [("x", 0), ("wsj-1", 2)]


BAD = {
    "not a number": ("score", b"-1\t(NN x)\nhigh\t(NN y)\n\n", 2, "found 'high"),
    "no score": ("score", b"-1\t(NN x)\n(NN y)\n\n", 2, "-tree_likelihood"),
    "no tree": ("tree", b"-1\t(NN x)\n-2\n\n", 2, "found '-2'"),
    "no failed parse": ("score", b"-1\t(NN x)\n-2 )y(\n\n", 2, "found '-2 )y'"),
    "infinite": ("infinite score", b"-1\t(NN x)\n-Infinity\t(NN y)\n\n", 2, "finite"),
    "columns": ("columns", b"-1 -2\t(NN x)\n-2\t(NN y)\n\n", 2, "found 1 scores"),
    "nul": ("nul", b"-1\t(NN \0)\n\n", 1, "NUL"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_groups(tmp_path: Path, name: str) -> None:
    reason, data, line, message = BAD[name]
    found = berkeley(tmp_path, GROUPS + data + GROUPS)
    assert outline(found) == [("0", 2), ("1", 0), ("2", 1), ("3", reason), ("4", 2), ("5", 0), ("6", 1)]
    bad = problem_of(found[3])
    assert bad.line == GROUPS.count(b"\n") + line
    assert message in bad.message
    with pytest.raises(DataError, match=f"lists:{bad.line}: list 3: .*--on-bad-list skip"):
        list(read_lists(BerkeleyReader(), tmp_path / "lists"))


def test_the_first_line_tells_the_variant(tmp_path: Path) -> None:
    assert good(berkeley(tmp_path, GROUPS)[0]).form == "groups"
    assert good(berkeley(tmp_path, b"(())\n\n-1\t(NN x)\n")[1]).form == "groups"
    assert good(berkeley(tmp_path, HEADED)[0]).form == "header"
    assert outline(berkeley(tmp_path, b"1\twsj(1)\n-1\n(NN x)\n")) == [("wsj(1)", 1)]
    assert outline(berkeley(tmp_path, b"word\n\n" + HEADED)) == [("0", "header"), ("wsj-1", 2)]


def test_large_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charniak, "_FIRST_LINES", 4)
    for size in (1, 3, 4, 5, 8, 9, 100):
        group = b"".join(b"-%d\t(NN x%d)\n" % (i, i) for i in range(size))
        assert outline(berkeley(tmp_path, group + b"\n" + group)) == [("0", size), ("1", size)]


@pytest.mark.parametrize("data", [GROUPS, HEADED])
def test_lists_are_written_in_their_own_variant(tmp_path: Path, data: bytes) -> None:
    out = io.BytesIO()
    for nbest in berkeley(tmp_path, data):
        BerkeleyReader().write(out, good(nbest))
    again = berkeley(tmp_path, out.getvalue())
    assert outline(again) == outline(berkeley(tmp_path, data))
    if data is GROUPS:
        assert out.getvalue() == data.replace(b"-Infinity\t", b"")


def test_write_in_a_new_order_with_new_scores(tmp_path: Path) -> None:
    out = io.BytesIO()
    nbest = good(berkeley(tmp_path, b"-1 -5\t(NN x)\n-2 -4\t(NN y)\n")[0])
    BerkeleyReader().write(out, nbest, [1, 0], np.array([0.25, 3.0]))
    assert out.getvalue() == b"3.0\t-2.0\t-4.0\t(NN y)\n0.25\t-1.0\t-5.0\t(NN x)\n\n"


PENN = b"""\
# Parse 1 with score -38.3126
(ROOT
  (S
    (NP (PRP It))
    (VP (VBD rained))
    (. .)))

# Parse 2 with score -41.5E-1
(ROOT
  (S
    (NP (PRP It))
    (VP (VBN rained))
    (. .)))

# Parse 1 with score -7.25
(ROOT
  (NP (NN Art)))

"""
ONE = b"(ROOT (S (NP (PRP It)) (VP (VBD rained)) (. .)))"
TWO = b"(ROOT (S (NP (PRP It)) (VP (VBN rained)) (. .)))"
THREE = b"(ROOT (NP (NN Art)))"
written = partial(outcomes.written, StanfordReader())


def read(root: Path, data: bytes) -> list[Lists]:
    (root / "lists").write_bytes(data)
    return list(StanfordReader().read(root / "lists"))


def test_trees_over_several_lines(tmp_path: Path) -> None:
    first, second = read(tmp_path, PENN)
    assert (first.texts, second.texts) == ([ONE, TWO], [THREE])
    assert (first.base.tolist(), second.base.tolist()) == ([-38.3126, -4.15], [-7.25])
    assert (list(first.lines), first.id, second.id) == ([2, 9], "0", "1")


def test_trees_on_one_line_are_written_as_they_were_read(tmp_path: Path) -> None:
    text = b"# Parse 1 with score -38.5\n%s\n# Parse 2 with score -40.0\n%s\n# Parse 1 with score -7.0\n%s\n"
    text %= ONE, TWO, THREE
    assert b"".join(map(written, read(tmp_path, text))) == text
    (reranked,) = read(tmp_path, written(read(tmp_path, text)[0], None, np.array([0.25, 4.5])))
    assert reranked.scores.tolist() == [[0.25, -38.5], [4.5, -40.0]]


def test_other_output_of_the_parser_is_passed_over(tmp_path: Path) -> None:
    """As with -outputFormat wordsAndTags,penn,typedDependencies."""
    tagged = PENN.replace(b"\n(ROOT", b"\nIt/PRP rained/VBD ./.\n\n(ROOT")
    tagged = tagged.replace(b"(. .)))\n\n", b"(. .)))\n\nnsubj(rained-2, It-1)\nroot(ROOT-0, rained-2)\n\n")
    first, second = read(tmp_path, tagged)
    assert (first.texts, second.texts) == ([ONE, TWO], [THREE])


def test_a_sentence_without_a_parse_is_an_empty_list(tmp_path: Path) -> None:
    failed = b"SENTENCE_SKIPPED_OR_UNPARSABLE\n"
    lists = read(tmp_path, failed + failed + PENN + failed)
    assert [one.size for one in lists] == [0, 0, 2, 1, 0]
    assert written(lists[0]) == failed
    half = PENN.replace(b"# Parse 2 with score -41.5E-1", b"%s Parse #2 with score -Infinity" % failed.strip())
    assert [one.size for one in read(tmp_path, half)] == [1, 1]


def test_a_list_without_its_start_is_bad_and_says_where(tmp_path: Path) -> None:
    first, lost, last = read(tmp_path, PENN + PENN.replace(b"# Parse 1 with", b"# Parse 1 wiht", 1))[1:]
    assert (lost.problem.reason, lost.line) == ("header", 19)
    assert "found '# Parse 1 wiht score -38.3126' where a list starts" in lost.problem.message
    assert (first.texts, last.texts) == ([THREE], [THREE])
    (other,) = read(tmp_path, b"1\tx\n-3\n(NN x)\n")
    assert "expected '# Parse 1 with score ...'" in other.problem.message


def test_the_best_parse_by_itself_before_every_list_is_not_a_candidate(tmp_path: Path) -> None:
    """As ``ParseFiles.processResults`` prints them: the best parse, or ``(())``, then the k best if there are any."""
    text = (
        b"%s\n# Parse 1 with score -38.5\n%s\n# Parse 2 with score -40.0\n%s\n(())\n%s\n# Parse 1 with score -7.0\n%s\n"
    )
    for data in (
        text % (ONE, ONE, TWO, THREE, THREE),
        text.replace(b"%s\n", b"%s\n\n") % (ONE, ONE, TWO, THREE, THREE),
    ):
        lists = read(tmp_path, data)
        assert [one.texts for one in lists if one.problem is None] == [[ONE, TWO], [], [THREE]]
