"""Kaldi's archives of candidates, and ESPnet's folders of them."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from outcomes import read_lists

from rerank.base.errors import DataError
from rerank.readers.detection import format_of
from rerank.readers.lists import Lists
from rerank.readers.reader import make_reader, readers

WORDS = b"utt-0001-1 it rained .\nutt-0001-2 it rains .\nutt-0002-1 \nutt-0002-2\tyes\n"
LM = b"utt-0001-1 35.25\nutt-0001-2 36.5\nutt-0002-1 4.75\nutt-0002-2 5\n"
AC = b"utt-0001-1 -1250.5\nutt-0001-2 -1249\nutt-0002-1 -100\nutt-0002-2 -99.5\n"
KALDI = {"name": "kaldi", "costs": ["lm", "ac"]}
TOO_SHORT = b"utt-0003  \n"  # what ESPnet writes for an utterance that is too short
ESPNET = {
    "1best_recog/text": b"utt-0001 IT RAINED\nutt-0002 YES\n" + TOO_SHORT,
    "1best_recog/score": b"utt-0001 -3.5\nutt-0002 tensor(-0.25)\nutt-0003 0.0\n",
    "1best_recog/token": b"utt-0001 \xe2\x96\x81IT \xe2\x96\x81RAINED\nutt-0002 \xe2\x96\x81YES\nutt-0003 <space>\n",
    "2best_recog/text": b"utt-0001 IT RAINS\n" + TOO_SHORT,
    "2best_recog/score": b"utt-0001 tensor(-4.0, device='cuda:0')\nutt-0003 0.0\n",
    "3best_recog/text": b"utt-0001 IT REIGNED\n",
    "3best_recog/score": b"utt-0001 -5.25\n",
}


def write(root: Path, **files: bytes) -> str:
    return ",".join(str(folder(root, files) / name) for name in files)


def folder(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def read(spec: dict[str, Any], path: object) -> list[Lists]:
    found = list(read_lists(make_reader(spec), str(path)))
    assert all(one.problem is None for one in found)
    return [one for one in found if one.problem is None]


def test_candidates_of_an_utterance_are_a_list(tmp_path: Path) -> None:
    one, two = read({"name": "kaldi"}, write(tmp_path, words=WORDS))
    assert (one.id, one.texts, list(one.lines)) == ("utt-0001", [b"it rained .", b"it rains ."], [1, 2])
    assert (two.id, two.texts, two.base.tolist()) == ("utt-0002", [b"", b"yes"], [0.0, 0.0])


def test_costs_are_columns(tmp_path: Path) -> None:
    path = write(tmp_path, words=WORDS, lm=gzip.compress(LM), ac=AC.replace(b"\n", b"\r\n"))
    one, two = read(KALDI, path)
    assert (one.names, one.names[one.column]) == (("score", "lm", "ac"), "score")
    assert one.scores.tolist() == [[0.0, 35.25, -1250.5], [0.0, 36.5, -1249.0]]
    assert two.scores[:, 1:].tolist() == [[4.75, -100.0], [5.0, -99.5]]
    assert (
        read(KALDI, write(tmp_path, words=WORDS, lm=b"\n".join(LM.splitlines()[::-1]), ac=AC))[0].scores.tolist()
        == one.scores.tolist()
    )
    base = read({"name": "kaldi", "costs": ["score"], "scores": "cost"}, write(tmp_path, words=WORDS, lm=LM))
    assert base[0].base.tolist() == [-35.25, -36.5]


@pytest.mark.parametrize(
    ("lm", "line", "message"),
    [
        (LM.replace(b"utt-0002-1", b"utt-0002-3"), None, "no line is left for the key 'utt-0002-1' of"),
        (LM + b"utt-0003-1 7\n", 5, "found the key 'utt-0003-1', which"),
        (LM + LM, 5, "found the key 'utt-0001-1', which"),
    ],
)
def test_costs_of_other_candidates_are_an_error(lm: bytes, line: int | None, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, words=WORDS, lm=lm, ac=AC)
    for policy in ("error", "skip"):
        with pytest.raises(DataError, match="both files need the same keys") as caught:
            list(read_lists(make_reader(KALDI), path, policy))
        assert (caught.value.path, caught.value.line) == (str(tmp_path / "lm"), line)
        assert message in caught.value.message


def test_a_cost_that_is_none_is_named_where_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, words=WORDS, lm=LM.replace(b"36.5", b"high"), ac=AC)
    (bad,) = next(iter(make_reader(KALDI).read(path))).bad  # type: ignore[union-attr]
    assert (bad.path, bad.line, bad.reason, bad.index) == (str(tmp_path / "lm"), 2, "score", 1)
    with pytest.raises(DataError, match=r"names 1 files; expected 3: the words and lm, ac"):
        list(make_reader(KALDI).read(write(tmp_path, words=WORDS)))


def test_keys_of_single_transcripts_are_refused(tmp_path: Path) -> None:
    (bad,) = make_reader({"name": "kaldi"}).read(write(tmp_path, words=b"utt_1 it rains\n"))
    assert (bad.problem.reason, bad.line) == ("id", 1)
    assert "found the key 'utt_1'; expected an utterance and the number of a candidate, 'utt-1'" in bad.problem.message


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ("1 1", "candidate 1 comes after candidate 1; expected 2: is this several lists?"),
        ("1 2 1 2", "candidate 1 comes after candidate 2; expected 3: is this several lists?"),
        ("1 3 4", "candidate 3 comes after candidate 1; expected 2: are lines lost, or in another order?"),
    ],
)
def test_numbers_of_candidates_follow_one_another(numbers: str, message: str, tmp_path: Path) -> None:
    """As they do not where archives are put one behind the other, or have lost a line."""
    words = "".join(f"utt-{number} a{k}\n" for k, number in enumerate(numbers.split()))
    (bad,) = make_reader({"name": "kaldi"}).read(write(tmp_path, words=words.encode()))
    assert (bad.problem.reason, bad.line) == ("id", 1)
    assert message in bad.problem.message


def test_folders_of_first_second_and_third_candidates(tmp_path: Path) -> None:
    one, two, three = read({"name": "espnet"}, folder(tmp_path, ESPNET))
    assert (one.id, one.texts) == ("utt-0001", [b"IT RAINED", b"IT RAINS", b"IT REIGNED"])
    assert one.base.tolist() == [-3.5, -4.0, -5.25]
    assert (two.texts, two.base.tolist()) == ([b"YES"], [-0.25])
    assert (three.texts, three.base.tolist()) == ([b"", b""], [0.0, 0.0])
    again = folder(tmp_path / "other", {name: gzip.compress(data) for name, data in ESPNET.items()})
    assert [nbest.texts for nbest in read({"name": "espnet"}, again)] == [one.texts, two.texts, three.texts]


def test_without_scores_all_are_0(tmp_path: Path) -> None:
    path = folder(tmp_path, {name: data for name, data in ESPNET.items() if "score" not in name})
    assert [nbest.base.tolist() for nbest in read({"name": "espnet"}, path)] == [[0.0] * 3, [0.0], [0.0] * 2]


def test_several_jobs_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for job in (10, 2, 1):
        files = {name: data.replace(b"utt-", b"utt-%d-" % job) for name, data in ESPNET.items()}
        folder(tmp_path / "logdir" / f"output.{job}", files)
    expected = [f"utt-{job}-000{k}" for job in (1, 2, 10) for k in (1, 2, 3)]
    for path in (tmp_path, tmp_path / "logdir"):
        assert [nbest.id for nbest in read({"name": "espnet"}, path)] == expected
    names = make_reader({"name": "espnet"}).paths(tmp_path)
    assert len(names) == 18
    assert names[:2] == [str(tmp_path / "logdir/output.1/1best_recog" / name) for name in ("text", "score")]


def test_an_utterance_of_several_jobs_is_bad(tmp_path: Path) -> None:
    """Its line is the same in both, and then another."""
    folder(tmp_path / "output.1", ESPNET)
    folder(tmp_path / "output.2", {name: data for name, data in ESPNET.items() if name.startswith("1")})
    folder(
        tmp_path / "output.3", {"1best_recog/text": b"new A\nutt-0001 B\n", "1best_recog/score": b"new 1\nutt-0001 2\n"}
    )
    found = list(make_reader({"name": "espnet"}).read(tmp_path))
    bad = [one for one in found if one.problem is not None]
    assert [(one.id, one.line, one.problem.reason) for one in bad] == [
        ("utt-0001", 1, "duplicate id"), ("utt-0002", 2, "duplicate id"), ("utt-0003", 3, "duplicate id"),
        ("utt-0001", 2, "duplicate id"),
    ]  # fmt: skip
    assert bad[0].path == str(tmp_path / "output.2/1best_recog/text")
    message = f"the id is also that of the list at line 1 of {tmp_path}/output.1/1best_recog/text; remove one of them"
    assert [one.problem.message for one in bad if one.id == "utt-0001"] == [message] * 2


def test_folders_that_are_missing_are_an_error(tmp_path: Path) -> None:
    """A job that has failed, or a rank that was not copied, would shift the references."""
    folder(tmp_path / "a", {name: data for name, data in ESPNET.items() if name[0] != "2"})
    folder(tmp_path / "b" / "output.1", ESPNET)
    (tmp_path / "b" / "output.2").mkdir()
    for name, path, message in (
        ("a", "a", "there is no 2best_recog, but there is 3best_recog"),
        ("b", "b/output.2", "there is no 1best_recog: has this job ended? Run it again, or remove it"),
    ):
        with pytest.raises(DataError) as caught:
            list(make_reader({"name": "espnet"}).read(tmp_path / name))
        assert (caught.value.message, caught.value.path) == (message, str(tmp_path / path))


@pytest.mark.parametrize(
    ("file", "data", "line", "message"),
    [
        ("1best_recog/score", b"utt-0002 -1\n", None, "no line is left for the key 'utt-0001' of"),
        ("2best_recog/text", b"utt-0003 X\nutt-0004 IT RAINS\n", 2, "found the key 'utt-0004', which"),
        ("3best_recog/score", b"utt-0001 -1\nutt-0004 -1\n", 2, "found the key 'utt-0004', which"),
    ],
)
def test_other_utterances_are_an_error(file: str, data: bytes, line: int | None, message: str, tmp_path: Path) -> None:
    scored = ESPNET | {file: data}
    if file == "2best_recog/text":
        del scored["2best_recog/score"]
    with pytest.raises(DataError, match="same keys") as caught:
        list(make_reader({"name": "espnet"}).read(folder(tmp_path, scored)))
    assert (caught.value.path, caught.value.line) == (str(tmp_path / file), line)
    assert message in caught.value.message


@pytest.mark.parametrize("name", ["nowhere", "", "x" * 300, "a\0b"])
def test_a_path_that_is_no_such_folder_is_an_error(name: str, tmp_path: Path) -> None:
    reader = make_reader({"name": "espnet"})
    for path in (f"{tmp_path}/{name}", "-"):
        with pytest.raises(DataError, match="expected a folder with 1best_recog, 2best_recog and so on"):
            list(reader.read(path))


def test_scores_before_the_words_are_said_to_be_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "said").write_text("a-1 -12.5 it rains\na-2 -13.5 it rained\n")
    (tmp_path / "words").write_text("a-1 2.5 percent\na-2 two percent\n")
    assert format_of(str(tmp_path / "said"), readers) == "kaldi"
    assert not caplog.records  # a reader that is tried says nothing
    for name in ("words", "said"):
        list(make_reader("kaldi").read(tmp_path / name))
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        f"{tmp_path / 'said'}: each text begins with a number of its own"
    ]
