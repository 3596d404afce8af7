"""n lines per source, with and without scores and alignments."""

import io
from pathlib import Path

import numpy as np
import pytest

from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import make_reader, read_lists
from rerank.readers.lists import Lists

BARE = b"it rains .\nit rain .\n\nyes\n"
PY = b"it rains .\t-0.3500\nit rain .\t-0.5\n\nyes\t-1\n"
TF = b"-0.350000 ||| it rains .\n-0.500000 ||| it rain .\n-0.75 |||\n-1.000000 ||| yes\n"
TF_WORDS = TF.replace(b" .", b" . ||| -0.1 -0.2").replace(b" |||\n", b" |||  ||| \n").replace(b"yes", b"yes ||| -1")


def read(root: Path, data: bytes, n: int = 2) -> list[Lists]:
    (root / "lists").write_bytes(data)
    return list(make_reader({"name": "opennmt", "n": n}).read(root / "lists"))


def good(root: Path, data: bytes) -> list[Lists]:
    found = read(root, data)
    assert all(one.problem is None for one in found), found
    return [one for one in found if one.problem is None]


def test_lines_with_and_without_scores(tmp_path: Path) -> None:
    for data, scores in ((BARE, [[0.0, 0.0], [0.0]]), (PY, [[-0.35, -0.5], [-1.0]])):
        lists = good(tmp_path, data)
        assert [one.texts for one in lists] == [[b"it rains .", b"it rain ."], [b"yes"]]
        assert [one.base.tolist() for one in lists] == scores
        assert ([one.id for one in lists], list(lists[1].lines)) == (["0", "1"], [4])
    lists = good(tmp_path, TF)
    assert lists[1].texts == [b"", b"yes"]
    assert [one.base.tolist() for one in lists] == [[-0.35, -0.5], [-0.75, -1.0]]


@pytest.mark.parametrize("text", [b"a b ||| 0-0 1-1", b"-1.5 ||| a b ||| 0-0 1-1", b"a b ||| 0-0 1-1\t-1.5"])
def test_word_alignments(text: bytes, tmp_path: Path) -> None:
    (only,) = good(tmp_path, text + b"\n\n")
    assert (only.texts, only.alignment) == ([b"a b"], [b"0-0 1-1"])
    assert only.base.tolist() == ([-1.5] if b"1.5" in text else [0.0])


@pytest.mark.parametrize("score", [b"", b"1.123214 ||| "])
@pytest.mark.parametrize("alignment", [b"", b" ||| 0-0 1-1", b" ||| 0.5 0.25 0.125 ; 0.75 1e-3 0"])
def test_scores_of_words(score: bytes, alignment: bytes, tmp_path: Path) -> None:
    """As OpenNMT-tf writes them with ``with_token_level_scores``; its soft alignments are not used."""
    (only,) = good(tmp_path, score + b"Hello world ||| -0.5 -0.25" + alignment + b"\n\n")
    assert only.texts == [b"Hello world"]
    assert only.alignment == ([b"0-0 1-1"] if b"0-0" in alignment else None)
    assert dict(zip(only.names, only.scores[0].tolist(), strict=True)) == {
        "score": 1.123214 if score else 0.0, "sum": -0.75, "mean": -0.375, "min": -0.5, "length": 2.0,
    }  # fmt: skip


@pytest.mark.parametrize("data", [BARE, PY, TF, TF_WORDS])
def test_what_is_written_is_what_was_read(data: bytes, tmp_path: Path) -> None:
    reader, lists = make_reader({"name": "opennmt", "n": 2}), good(tmp_path, data)
    out, scored = io.BytesIO(), io.BytesIO()
    for one in lists:
        reader.write(out, one)
        reader.write(scored, one, list(range(len(one)))[::-1], np.arange(len(one)) + 0.25)
    assert sorted(out.getvalue().split(b"\n")) == sorted(data.split(b"\n"))  # what fills a list up comes last
    assert scored.getvalue().count(b"\n") == 4
    assert [one.texts for one in good(tmp_path, scored.getvalue())] == [one.texts[::-1] for one in lists]
    assert good(tmp_path, scored.getvalue())[0].base.tolist() == [1.25, 0.25]


def test_a_file_that_n_does_not_fit_is_refused_at_its_end(tmp_path: Path) -> None:
    """Under both policies: a lost line makes every list after it one of a neighbour's line."""
    with pytest.raises(DataError, match="found 4 lines; expected 3 for every source") as caught:
        read(tmp_path, BARE, 3)
    assert caught.value.line == 4
    (tmp_path / "lists").write_bytes(BARE.split(b"\n", 1)[1])
    with pytest.raises(DataError, match="found 3 lines; expected 2 "):
        list(read_lists(make_reader({"name": "opennmt", "n": 2}), tmp_path / "lists", "skip"))
    with pytest.raises(RecipeError, match="needs to know how many lines a source has; set its n"):
        make_reader({"name": "opennmt"})
    with pytest.raises(RecipeError, match="n: found 0"):
        make_reader({"name": "opennmt", "n": 0})


@pytest.mark.parametrize(
    ("line", "reason", "message"),
    [
        (b"high ||| a b", "score", "found 'high'; expected the candidate's score"),
        (b"a b\thigh", "score", "found 'high'; expected the candidate's score"),
        (b"1 2 ||| a b", "score", "found '1 2'; expected the candidate's score"),
        (b"nan ||| a b", "infinite score", "expected finite scores"),
        (b"a b", "score", "no number 'score'"),
        (b"-1 ||| a ||| b", "alignment", "found 'b' after the text; expected the scores of its words, or a word"),
    ],
)
def test_faults_of_lines(line: bytes, reason: str, message: str, tmp_path: Path) -> None:
    (found,) = good(tmp_path, b"-1 ||| c d\n" + line + b"\n")
    (bad,) = found.bad
    assert (bad.reason, bad.line) == (reason, 2)
    assert message in bad.message
