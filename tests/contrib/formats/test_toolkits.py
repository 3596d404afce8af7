"""The formats of fairseq, Sockeye and OpenNMT."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import outcomes
import pytest
from outcomes import problem_of, read_lists

import rerank
from rerank.base.errors import DataError, RecipeError
from rerank.contrib.formats.translation import FairseqReader, SockeyeReader
from rerank.readers.lists import Lists
from rerank.readers.reader import SkipCount, make_reader

SEVEN = """\
S-7	es regnet .
T-7	it rains .
H-7	-0.35	it rains .
D-7	-0.35	It rains.
P-7	-0.25 -0.5 -0.75
H-7	-0.5	it rain .
D-7	-0.5	It rain.
P-7	-1.0 -0.5 -0.0
"""
TWO = "S-2	nein\nT-2	no\nH-2	-1.5	no\nD-2	-1.5	No\nP-2	-1.5\n"
ZERO = "S-0	ja\nT-0	yes\nH-0	-2	yes\nD-0	-2	Yes\nP-0	-1 -3\n"
BEFORE = "Namespace(beam=5)\n2024-01-02 10:00:00 | INFO | fairseq_cli.generate | loading\nanything\n"
BETWEEN = "\n2024-01-02 10:00:01 | INFO | fairseq.logging.progress_bar | :  1 / 2 wps=7\n| old log\n"
AFTER = "2024-01-02 10:00:02 | INFO | fairseq_cli.generate | done\nGenerate test with beam=5: BLEU4 = 1\nanything\n"
NAMES = ("score", "sum", "mean", "min", "length")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fairseq") / "generate-test.txt"


def read(place: Path, data: str | bytes, **options: Any) -> list[Any]:
    place.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(FairseqReader(**options).read(place))


def written(nbest: Lists, *args: Any) -> str:
    return outcomes.written(FairseqReader(), nbest, *args).decode("utf-8", "surrogateescape")


def test_lists_in_the_order_of_the_file_without_the_log(place: Path) -> None:
    seven, two = read(place, BEFORE + SEVEN + BETWEEN + TWO + AFTER)
    assert (seven.id, seven.line, list(seven.lines)) == ("7", 4, [6, 9])
    assert (seven.texts, seven.source, seven.references) == (
        [b"it rains .", b"it rain ."],
        b"es regnet .",
        (b"it rains .",),
    )
    assert (seven.names, seven.column) == (NAMES, 0)
    assert seven.scores.tolist() == [[-0.35, -1.5, -0.5, -0.75, 3.0], [-0.5, -1.5, -0.5, -1.0, 3.0]]
    assert (two.id, two.texts, two.base.tolist(), two.alignment) == ("2", [b"no"], [-1.5], None)


def test_detokenised_texts(place: Path) -> None:
    (seven,) = read(place, SEVEN, text="D")
    assert seven.texts == [b"It rains.", b"It rain."]
    bad = problem_of(*read(place, SEVEN.replace("D-7	-0.5	It rain.\n", ""), text="D"))
    assert (bad.reason, bad.line) == ("record", 6)
    assert "text: H" in bad.message


def test_old_output_without_targets_and_scores_of_words(place: Path) -> None:
    (found,) = read(place, "S-3	a\nH-3	-1	b\nA-3	0-0 1-0\nH-3	-2	c\n")
    assert (found.names, found.scores.tolist(), found.references) == (("score",), [[-1.0], [-2.0]], ())
    assert found.alignment == [b"0-0 1-0", b""]
    (alone,) = read(place, "H-3	-1	b")
    assert (alone.source, alone.texts) == (None, [b"b"])


def test_what_was_typed_in_a_session_is_the_log_before_its_source(place: Path) -> None:
    prompt = "2021-08-31 20:24:29 | INFO | fairseq_cli.interactive | Type the input sentence and press return:\n"
    lists = "how are you ?\n", "S-0\thow are you ?\nH-0\t-1\ta\n", "I am Ye\n", "S-1\tI am <unk>\nH-1\t-2\tb\n"
    found = read(place, prompt + "".join(lists))
    assert [(one.id, len(one)) for one in found] == [("0", 1), ("1", 1)]
    for damaged, which in (
        ("".join(lists), 0),  # not a session
        (prompt + "".join(lists).replace("S-1\tI am <unk>\n", ""), 1),  # nothing that was typed
        (prompt + "".join(lists).replace("I am Ye\n", "-1\ta b\n"), 0),  # a record that was cut
    ):
        assert problem_of(read(place, damaged)[which]).reason == "record"


def test_empty_hypotheses_and_lists(place: Path) -> None:
    none, empty, bare = read(place, "S-0	\nS-1	x\nH-1	-1	\nP-1	\nS-2	y\nH-2	-1	\nP-2	-3")
    assert (len(none), none.source, none.scores.shape[0]) == (0, b"", 0)
    assert (empty.texts, empty.scores.tolist()) == ([b""], [[-1.0, 0.0, 0.0, 0.0, 0.0]])
    assert (bare.texts, bare.scores.tolist()) == ([b""], [[-1.0, -3.0, -3.0, -3.0, 1.0]])
    assert written(bare, None, np.array([2.0])) == "S-2	y\nH-2	2.0	\nP-2	-3\n"


def test_new_scores_are_written_in_h_and_d(place: Path) -> None:
    (seven,) = read(place, BEFORE + SEVEN + AFTER)
    assert written(seven) == SEVEN
    assert written(seven, [1, 0], np.array([0.25, -3.0])) == (
        "S-7	es regnet .\nT-7	it rains .\n"
        "H-7	-3.0	it rain .\nD-7	-3.0	It rain.\nP-7	-1.0 -0.5 -0.0\n"
        "H-7	0.25	it rains .\nD-7	0.25	It rains.\nP-7	-0.25 -0.5 -0.75\n"
    )
    assert written(seven, [1]).count("H-") == 1


BAD = {
    # what it is: (reason, line within the list, part of the message)
    "an unknown line": ("record", SEVEN.replace("D-7	-0.35	It rains.\n", "It rains.\n"), 4, "'It rains.'"),
    "a line after it": ("record", SEVEN + "strange\n", 9, "'strange'"),
    "no score": ("score", SEVEN.replace("-0.35	it", "x	it"), 3, "found 'x'; expected the candidate's score"),
    "no score of a word": ("score", SEVEN.replace("-0.25", "a"), 3, "expected the scores of words"),
    "an infinite sum": ("infinite score", SEVEN.replace("-0.25 -0.5", "-1e308 -1e308"), 3, "no finite sum"),
    "scores of words missing": ("columns", SEVEN.replace("P-7	-1.0 -0.5 -0.0\n", ""), 6, "no record 'P-7'"),
    "no text": ("record", SEVEN.replace("-0.5\tit rain .", "-0.5"), 6, "no text after the score of 'H'"),
    "two detokenised texts": ("record", SEVEN.replace("P-7	-0.25 -0.5 -0.75", "D-7	-1	x"), 3, "duplicate 'D' record"),
    "no hypothesis above": ("record", SEVEN.replace("H-7	-0.35	it rains .\n", ""), 1, "before any 'H-7'"),
    "nul": ("nul", SEVEN.replace("rain .", "ra\0in ."), 6, "NUL"),
    "an id used before": ("duplicate id", ZERO, 1, "line 1"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_is_bad_has_its_reason_and_the_lists_around_it_stay(place: Path, what: str) -> None:
    reason, text, line, part = BAD[what]
    before, found, after = read(place, ZERO + text + TWO)
    problem = problem_of(found)
    assert (problem.reason, problem.line) == (reason, line + ZERO.count("\n"))
    assert part in problem.message
    assert (before.id, after.id) == ("0", "2")
    count = SkipCount("skip")
    assert len(list(read_lists(FairseqReader(), place, count=count))) == 3 - (found.problem is not None)
    assert dict(count.reasons + count.candidate_reasons) == {reason: 1}


DAMAGES = {
    "no hyphen": lambda line: line.replace("-", "", 1),
    "no letter": lambda line: line[1:],
    "another letter": lambda line: "?" + line[1:],
    "cut": lambda line: line[:3],
    "lost": lambda line: line[:0],
}


@pytest.mark.parametrize("what", DAMAGES)
@pytest.mark.parametrize("at", range(len(TWO.splitlines())))
def test_a_damaged_record_is_the_problem_of_its_own_list(place: Path, what: str, at: int) -> None:
    lines = TWO.splitlines(keepends=True)
    own = lines[at][:1]
    lines[at] = DAMAGES[what](lines[at].rstrip("\n")) + "\n"
    before, found, after = read(place, SEVEN + "".join(lines) + ZERO)
    assert [(one.id, one.texts, one.bad) for one in (before, after)] == [
        (one.id, one.texts, ()) for one in read(place, SEVEN + ZERO)
    ]
    if own == "T" and what in ("lost", "cut"):
        assert found.references in ((), (b"",))  # a bad list where they are needed
    elif (own, what) == ("S", "cut"):
        assert found.source == b""  # the same
    elif own != "D" or what not in ("lost", "cut"):
        assert problem_of(found).reason in ("record", "columns")


def test_a_list_without_a_sound_record_is_a_bad_list(place: Path) -> None:
    for text in (SEVEN + TWO.replace("-2\t", "2\t") + ZERO, SEVEN + ZERO + TWO.replace("-2\t", "2\t")):
        lists = {one.id: one for one in read(place, text)}
        assert lists.pop("2").problem
        assert [(one.id, len(one), one.bad) for one in lists.values()] == [("7", 2, ()), ("0", 1, ())]


def test_two_outputs_in_a_row_with_one_id_are_no_single_list(place: Path) -> None:
    first, second = read(place, ZERO + ZERO)
    assert (len(first), second.problem.reason) == (1, "duplicate id")


NESTED = {
    "score": 0.3, "scores": [[0.3], [0.9]], "sentence_id": 1, "translation": "a b", "translations": ["a b", "a c"],
}  # fmt: skip
PLAIN = {"score": 1.5, "scores": [1.5, 2.5], "sentence_id": 2, "translation": "d", "translations": ["d", "e"]}
SINGLE = {"score": 0.7, "sentence_id": 3, "translation": "f"}
FACTORS = {
    "factor1": "x", "score": 0.3, "scores": [[0.3, 1], [0.9, 2]], "sentence_id": "s", "translation": "a",
    "translations": ["a", "b"], "translations_factors": [{"factor1": "x"}, {"factor1": "y"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sockeye") / "lists.json"


def read_sockeye(folder: Path, *items: Any, **options: Any) -> list[Any]:
    folder.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in items))
    return list(SockeyeReader(**options).read(folder))


def as_sockeye(nbest: Lists, *args: Any, **options: Any) -> Any:
    return json.loads(outcomes.written(SockeyeReader(**options), nbest, *args))


def test_scores_are_costs_and_the_base_score_is_their_negative(folder: Path) -> None:
    nested, plain, single, factors = read_sockeye(folder, NESTED, PLAIN, SINGLE, FACTORS)
    assert (nested.id, nested.texts, nested.base.tolist()) == ("1", [b"a b", b"a c"], [-0.3, -0.9])
    assert (plain.id, plain.texts, plain.base.tolist()) == ("2", [b"d", b"e"], [-1.5, -2.5])
    assert (single.id, single.texts, single.base.tolist(), single.line) == ("3", [b"f"], [-0.7], 3)
    assert nested.names == plain.names == single.names == ("score",)
    assert (factors.names, factors.scores.tolist()) == (("score", "factor1"), [[-0.3, -1.0], [-0.9, -2.0]])
    (found,) = read_sockeye(folder, NESTED, scores="logprob")
    assert found.base.tolist() == [0.3, 0.9]


def test_lists_that_sockeye_writes_are_known_by_their_keys(folder: Path) -> None:
    """Read as any JSON, the worst translation of each would be the best by base score."""
    for items in ([NESTED, SINGLE], [FACTORS], [PLAIN, NESTED]):
        read_sockeye(folder, *items)
        first, *_ = rerank.read(folder)
        costs: list[Any] = items[0]["scores"]
        assert [one.score for one in first.candidates] == [
            -(cost[0] if items[0] is not PLAIN else cost) for cost in costs
        ]


def test_no_translation_is_a_list_without_candidates(folder: Path) -> None:
    line = '{"score": -Infinity, "sentence_id": 4, "translation": ""}'
    (found,) = read_sockeye(folder, line)
    assert (len(found), found.scores.shape, found.names) == (0, (0, 1), ("score",))
    assert as_sockeye(found) == json.loads(line)
    (empty,) = read_sockeye(folder, {"score": 1.0, "translation": ""})
    assert empty.texts == [b""]


@pytest.mark.parametrize("item", [NESTED, PLAIN, SINGLE, FACTORS], ids=str)
def test_lists_are_written_as_they_were_read(folder: Path, item: dict[str, Any]) -> None:
    (found,) = read_sockeye(folder, item)
    assert as_sockeye(found) == item
    assert list(as_sockeye(found)) == list(item)


def test_new_scores_and_order(folder: Path) -> None:
    nested, plain, single, factors = read_sockeye(folder, NESTED, PLAIN, SINGLE, FACTORS)
    assert as_sockeye(nested, [1, 0], np.array([-2.0, 3.0])) == {
        "score": -3.0, "scores": [[-3.0], [2.0]], "sentence_id": 1, "translation": "a c",
        "translations": ["a c", "a b"],
    }  # fmt: skip
    assert as_sockeye(plain, [1]) == {**PLAIN, "score": 2.5, "scores": [2.5], "translation": "e", "translations": ["e"]}
    assert as_sockeye(single, [0], np.array([4.0])) == {**SINGLE, "score": -4.0}
    assert as_sockeye(single, None, np.array([4.0]), scores="logprob") == {**SINGLE, "score": 4.0}
    again = as_sockeye(factors, [1, 0], np.array([0.0, 1.0]))
    assert (again["factor1"], again["scores"]) == ("y", [[-1.0, 2], [0.0, 1]])
    assert again["translations_factors"] == [{"factor1": "y"}, {"factor1": "x"}]


BAD_SOCKEYE = {
    "no json": ("json", "{", "JSON"),
    "no translation": ("text", {"score": 1}, "no 'translation'"),
    "no score": ("score", {"translation": "a"}, "no 'score'"),
    "no scores": ("columns", {"translations": ["a"]}, "found null under 'scores'; expected one for each of 1"),
    "another number of scores": ("columns", {"translations": ["a"], "scores": [1, 2]}, "found 2 entries"),
    "translation a number": ("text", {"translations": [1], "scores": [1]}, "found 1; expected translation 1"),
    "score a text": ("score", {"translation": "a", "score": "x"}, 'found "x"'),
    "a score without numbers": ("score", {"translations": ["a"], "scores": [[]]}, "translation 1 has no score"),
    "ragged": ("columns", {"translations": ["a", "b"], "scores": [[1], [1, 2]]}, "translation 2 has 2 scores"),
    "infinite": ("infinite score", '{"sentence_id": 2, "translation": "a", "score": Infinity}', "found Infinity"),
    "factors": ("columns", {"translations": ["a"], "scores": [1], "translations_factors": [7]}, "expected objects"),
    "id": ("id", {"sentence_id": [], "translation": "a", "score": 1}, "'sentence_id'"),
    "id twice": ("duplicate id", {**PLAIN, "sentence_id": 1}, "line 1"),
}


@pytest.mark.parametrize("what", BAD_SOCKEYE)
def test_what_is_bad_has_its_reason(folder: Path, what: str) -> None:
    reason, item, part = BAD_SOCKEYE[what]
    if isinstance(item, dict):
        item = {"sentence_id": 2, **item}
    _, found, after = read_sockeye(folder, NESTED, item, SINGLE)
    problem = problem_of(found)
    assert (problem.reason, problem.line) == (reason, 2)
    assert part in problem.message
    assert after.texts == [b"f"]


BARE = b"it rains .\nit rain .\n\nyes\n"
PY = b"it rains .\t-0.3500\nit rain .\t-0.5\n\nyes\t-1\n"
TF = b"-0.350000 ||| it rains .\n-0.500000 ||| it rain .\n-0.75 |||\n-1.000000 ||| yes\n"
TF_WORDS = TF.replace(b" .", b" . ||| -0.1 -0.2").replace(b" |||\n", b" |||  ||| \n").replace(b"yes", b"yes ||| -1")


def read_opennmt(root: Path, data: bytes, n: int = 2) -> list[Lists]:
    (root / "lists").write_bytes(data)
    return list(make_reader({"name": "opennmt", "n": n}).read(root / "lists"))


def good(root: Path, data: bytes) -> list[Lists]:
    found = read_opennmt(root, data)
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
        read_opennmt(tmp_path, BARE, 3)
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
