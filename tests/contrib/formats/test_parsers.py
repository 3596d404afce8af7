"""Lists of the Berkeley and the Stanford parser, of Kaldi and of ESPnet: all their variants, and bad ones in place."""

import gzip
import io
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import outcomes
import pytest
from outcomes import good, outline, problem_of, read_lists

from rerank.base.errors import DataError
from rerank.contrib.formats.parsers import BerkeleyReader, StanfordReader
from rerank.readers.detection import format_of
from rerank.readers.reader import Lists, make_reader, readers
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


def read_stanford(root: Path, data: bytes) -> list[Lists]:
    (root / "lists").write_bytes(data)
    return list(StanfordReader().read(root / "lists"))


def test_trees_over_several_lines(tmp_path: Path) -> None:
    first, second = read_stanford(tmp_path, PENN)
    assert (first.texts, second.texts) == ([ONE, TWO], [THREE])
    assert (first.base.tolist(), second.base.tolist()) == ([-38.3126, -4.15], [-7.25])
    assert (list(first.lines), first.id, second.id) == ([2, 9], "0", "1")


def test_trees_on_one_line_are_written_as_they_were_read(tmp_path: Path) -> None:
    text = b"# Parse 1 with score -38.5\n%s\n# Parse 2 with score -40.0\n%s\n# Parse 1 with score -7.0\n%s\n"
    text %= ONE, TWO, THREE
    assert b"".join(map(written, read_stanford(tmp_path, text))) == text
    (reranked,) = read_stanford(tmp_path, written(read_stanford(tmp_path, text)[0], None, np.array([0.25, 4.5])))
    assert reranked.scores.tolist() == [[0.25, -38.5], [4.5, -40.0]]


def test_other_output_of_the_parser_is_passed_over(tmp_path: Path) -> None:
    """As with -outputFormat wordsAndTags,penn,typedDependencies."""
    tagged = PENN.replace(b"\n(ROOT", b"\nIt/PRP rained/VBD ./.\n\n(ROOT")
    tagged = tagged.replace(b"(. .)))\n\n", b"(. .)))\n\nnsubj(rained-2, It-1)\nroot(ROOT-0, rained-2)\n\n")
    first, second = read_stanford(tmp_path, tagged)
    assert (first.texts, second.texts) == ([ONE, TWO], [THREE])


def test_a_sentence_without_a_parse_is_an_empty_list(tmp_path: Path) -> None:
    failed = b"SENTENCE_SKIPPED_OR_UNPARSABLE\n"
    lists = read_stanford(tmp_path, failed + failed + PENN + failed)
    assert [one.size for one in lists] == [0, 0, 2, 1, 0]
    assert written(lists[0]) == failed
    half = PENN.replace(b"# Parse 2 with score -41.5E-1", b"%s Parse #2 with score -Infinity" % failed.strip())
    assert [one.size for one in read_stanford(tmp_path, half)] == [1, 1]


def test_a_list_without_its_start_is_bad_and_says_where(tmp_path: Path) -> None:
    first, lost, last = read_stanford(tmp_path, PENN + PENN.replace(b"# Parse 1 with", b"# Parse 1 wiht", 1))[1:]
    assert (lost.problem.reason, lost.line) == ("header", 19)
    assert "found '# Parse 1 wiht score -38.3126' where a list starts" in lost.problem.message
    assert (first.texts, last.texts) == ([THREE], [THREE])
    (other,) = read_stanford(tmp_path, b"1\tx\n-3\n(NN x)\n")
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
        lists = read_stanford(tmp_path, data)
        assert [one.texts for one in lists if one.problem is None] == [[ONE, TWO], [], [THREE]]


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
