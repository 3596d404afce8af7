"""The records of fairseq-generate among its log."""

from pathlib import Path
from typing import Any

import numpy as np
import outcomes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import problem_of

from rerank.contrib.formats.translation import FairseqReader
from rerank.readers.base import SkipCount, read_lists
from rerank.readers.lists import Lists

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


def test_bytes_line_ends_and_files_without_records(place: Path) -> None:
    (found,) = read(place, b"S-1\tcaf\xe9\r\nH-1\t-1\t\xff\r\n")
    assert (found.source, found.texts) == (b"caf\xe9", [b"\xff"])
    assert read(place, BEFORE + AFTER) == []


WORDS = st.lists(st.sampled_from(["a", "b", "ü", "-", "H-7"]), max_size=4).map(" ".join)
SCORE = st.floats(-1e6, 1e6)
HYPOTHESIS = st.tuples(SCORE, WORDS, st.lists(SCORE, max_size=4))
LISTS = st.dictionaries(st.integers(0, 12), st.tuples(WORDS, st.lists(HYPOTHESIS, max_size=3)), min_size=1, max_size=5)


@settings(max_examples=100, deadline=None)
@given(lists=LISTS, data=st.data())
def test_reading_equals_its_twin_and_reads_what_is_written(place: Path, lists: dict[int, Any], data: Any) -> None:
    lines = []
    for number, (source, hypotheses) in lists.items():
        lines.append(f"S-{number}\t{source}")
        for score, text, words in hypotheses:
            lines += [f"H-{number}\t{score!r}\t{text}", f"P-{number}\t" + " ".join(map(repr, words))]
    found = read(place, "\n".join(lines))
    assert [one.id for one in found] == [str(number) for number in lists]
    for one, (source, hypotheses) in zip(found, lists.values(), strict=True):
        assert one.source == source.encode()
        assert one.texts == [text.encode() for _, text, _ in hypotheses]
        rows = [
            [score, sum(words), sum(words) / max(len(words), 1), min(words, default=0.0), len(words)]
            for score, _, words in hypotheses
        ]
        assert one.scores.tolist() == rows
    order = data.draw(st.permutations(range(len(found[0]))))
    scores = np.arange(len(found[0])) / 3
    (again,) = read(place, written(found[0], order, scores))
    assert again.texts == [found[0].texts[i] for i in order]
    assert again.base.tolist() == [scores[i] for i in order]
