"""What every reader must do with bad lists and bad candidates; a new format needs an entry in ``formats``."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formats import CANDIDATES, CASES, FORMATS, LISTS, Case, Damage, whole

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.models.scorer import Ranked, write_ranked
from rerank.readers.base import Lists, Problem, SkipCount, read_lists, readers
from rerank.readers.several import make_reader
from rerank.readers.streams import read_in
from rerank.readers.trees.treebank import parse_list


def opened(case: Case, path: str) -> list[Lists]:
    """All lists of a file; those of trees with their trees looked into."""
    found = list(make_reader(case.spec).read(path))
    if not FORMATS[case.form].trees:
        return found
    return [one if one.problem is not None else _without_malformed(one) for one in found]


def _without_malformed(nbest: Lists) -> Lists:
    try:
        return parse_list(nbest, SymbolTable())[0]
    except Problem as problem:
        return Lists.of(problem)


def test_every_reader_is_tried() -> None:
    tried = {case.name for case in CASES}
    # What a row of a table may lack, and what is said then, is in tests/readers/test_tables.py.
    assert {name for name, _ in readers} - tried == {"table"}


def test_lists_under_another_key_are_lists(tmp_path: Path) -> None:
    (case,) = (case for case in CASES if str(case) == "jsonl")
    path = Path(case.write(tmp_path, whole))
    expected = [(one.id, one.texts) for one in read_lists(make_reader("jsonl"), path)]
    path.write_bytes(path.read_bytes().replace(b'"candidates"', b'"candidate"'))
    assert [(one.id, one.texts) for one in read_lists(make_reader("jsonl"), path)] == expected


@pytest.mark.parametrize("dense", [None, ["lm"]])
def test_a_number_that_one_list_in_four_lacks_is_no_column_unless_it_is_named(
    tmp_path: Path, dense: list[str] | None
) -> None:
    (case,) = (case for case in CASES if str(case) == "jsonl")
    lacks = FORMATS["jsonl"].damages["no number"][1]
    path = case.write(tmp_path, lambda i, k, text: lacks(text) if (i, k) == (1, 1) else text)
    found = list(make_reader({"name": "jsonl", **({"dense": dense} if dense else {})}).read(path))
    assert all(one.problem is None for one in found)
    shapes = [one.scores.shape for one in found if one.problem is None]
    reasons = [bad.reason for one in found if one.problem is None for bad in one.bad]
    wide = [(3, 2), (2, 2), (3, 2), (3, 2)]
    assert (shapes, reasons) == ((wide, ["columns"]) if dense else ([(3, 1)] * LISTS, []))


@pytest.mark.parametrize("ruined", [(0, 1), (LISTS - 1,), tuple(range(LISTS))], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_lists_are_written_and_read_again_as_empty_ones(
    tmp_path: Path, case: Case, ruined: tuple[int, ...]
) -> None:
    found = opened(case, case.write(tmp_path / "given", whole, ruined))
    assert [i for i, one in enumerate(found) if one.problem is not None] == list(ruined)
    if case.name in ("trec", "letor"):
        return  # such files have no queries without documents
    out = io.BytesIO()
    items = [one.problem or Ranked(one, np.arange(len(one))[::-1], one.base) for one in found]
    write_ranked(out, make_reader(case.spec), items)
    (tmp_path / "lists").write_bytes(out.getvalue())
    read = list(read_lists(make_reader(case.again), str(tmp_path / "lists")))  # a bad one would be an error
    assert [one.texts for one in read] == [[] if one.problem is not None else one.texts[::-1] for one in found]
    ids = [one.id for one in found]
    assert [one.id for i, one in enumerate(read) if i not in ruined] == [
        name for i, name in enumerate(ids) if i not in ruined
    ]


def damages() -> list[Any]:
    """Every case with every damage of a candidate; without ids of their own, lines of another id are another list."""
    return [
        pytest.param(case, reason, damage, id=f"{case}: {what}")
        for case in CASES
        for what, (reason, damage) in FORMATS[case.form].damages.items()
        if not (reason == "id" and case.options)
    ]


@pytest.mark.parametrize(("case", "reason", "damage"), damages())
def test_a_bad_candidate_leaves_the_others_of_its_list(tmp_path: Path, case: Case, reason: str, damage: Damage) -> None:
    right = opened(case, case.write(tmp_path / "right", whole))
    path = case.write(tmp_path / "wrong", lambda i, k, text: damage(text) if (i, k) == (1, 1) else text)
    found = opened(case, path)
    assert len(found) == len(right) == LISTS
    for i, (one, other) in enumerate(zip(found, right, strict=True)):
        assert one.problem is None
        assert other.problem is None
        kept = [y for y in range(len(other)) if (i, y) != (1, 1)]
        assert one.texts == [other.texts[y] for y in kept]
        assert one.scores.tolist() == other.scores[kept].tolist()
    damaged = found[1]
    assert damaged.problem is None
    (bad,) = damaged.bad
    assert (bad.reason, bad.place) == (reason, 1)
    count = SkipCount("skip")
    for one in found:
        count.good(one)
    assert (dict(count.reasons), dict(count.candidate_reasons)) == ({}, {reason: 1})
    assert bad.path.startswith(str(tmp_path / "wrong" / "lists"))
    assert count.first_candidates[reason].startswith(f"{bad.path}:{bad.line}: list {damaged.id}: ")
    with pytest.raises(DataError, match="leave out such candidates with --on-bad-list skip"):
        SkipCount("error").good(damaged)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_texts_are_in_utf8_or_in_the_encoding_that_is_named(tmp_path: Path, case: Case) -> None:
    reader = make_reader(case.spec)

    def written(name: str, word: bytes) -> str:
        return case.write(tmp_path / name, lambda i, k, text: text.replace(b"a1", word) if (i, k) == (1, 1) else text)

    latin, utf8, other = written("latin", b"a\xe9"), written("utf8", b"a\xc3\xa9"), written("other", b"zzz")
    with pytest.raises(DataError, match=r"lists.*:\d+: list .* byte 0xe9, which is not UTF-8: .* --encoding") as caught:
        list(read_lists(reader, latin))
    assert caught.value.path is not None
    assert caught.value.path.startswith(str(tmp_path / "latin"))
    count = SkipCount("skip")
    found = [one.texts for one in read_lists(reader, latin, count=count)]
    kept = [[text for text in one.texts if b"zzz" not in text] for one in read_lists(reader, other)]
    assert found == kept
    assert dict(count.reasons + count.candidate_reasons) == {"encoding": 1}
    plain = [(one.texts, one.scores.tolist()) for one in read_lists(reader, utf8)]
    assert [(one.texts, one.scores.tolist()) for one in read_in("latin-1", read_lists(reader, latin))] == plain
    with pytest.raises(DataError, match="in UTF-8, not in latin-1: leave out the encoding"):
        list(read_in("latin-1", read_lists(reader, utf8)))


KEY = b"utt1-%d "  # of a candidate of list 1, where the format numbers them from 1


@pytest.mark.parametrize(("case", "reason", "damage"), damages())
def test_a_list_of_bad_candidates_is_a_bad_list(tmp_path: Path, case: Case, reason: str, damage: Damage) -> None:
    if case.name == "merged" or reason in ("id", "columns"):
        pytest.skip("the other system has its candidates, or what is bad is so only beside others")
    form = FORMATS[case.form]
    path = case.write(
        tmp_path, lambda i, k, text: damage(form.candidate(1, 1).replace(KEY % 2, KEY % (k + 1))) if i == 1 else text
    )
    found = opened(case, path)
    assert [one.problem is not None for one in found] == [False, True, False, False]
    bad = found[1]
    assert bad.problem is not None
    assert (bad.problem.reason, bad.size) == (reason, CANDIDATES)
    if case.name == "joined":
        last = found[-1]
        assert last.problem is None
        assert last.scores[:, -1].tolist() == [-9.0, -10.0, -11.0]


@pytest.mark.parametrize("case", [case for case in CASES if case.name in ("charniak", "jsonl", "fairseq")], ids=str)
def test_an_id_used_before_makes_a_bad_list_of_a_bad_one_too(tmp_path: Path, case: Case) -> None:
    """So that what is written in its place has an id of its own."""
    if case.form == "jsonl without ids":
        pytest.skip("there are no ids")
    path = Path(case.write(tmp_path, whole))
    lists = FORMATS[case.form]
    texts = [lists.whole(i, [lists.candidate(i, k) for k in range(CANDIDATES)]) for i in (0, 1)]
    path.write_bytes(texts[0] + lists.ruin(texts[0]) + texts[1])
    first, again, last = make_reader(case.spec).read(str(path))
    assert again.problem is not None
    assert (first.id, again.problem.reason, last.problem is None) == (again.id, "duplicate id", True)
    out = io.BytesIO()
    items = [one.problem or Ranked(one, np.arange(len(one)), one.base) for one in (first, last)]
    write_ranked(out, make_reader(case.spec), [items[0], again.problem, items[1]])
    path.write_bytes(out.getvalue())
    if case.name != "fairseq":  # its lists keep their numbers
        assert [len(one) for one in read_lists(make_reader(case.spec), str(path))] == [CANDIDATES, 0, CANDIDATES]


def test_numbers_far_apart_are_an_error_and_not_a_million_empty_lists(tmp_path: Path) -> None:
    path = tmp_path / "lists"
    for gap in (10_000, 10_001):
        path.write_bytes(b"".join(b"%d ||| a ||| F= 1 ||| -1\n" % number for number in (0, gap + 1)))
        if gap == 10_000:
            assert sum(1 for _ in read_lists(make_reader("moses"), path)) == gap + 2
            continue
        for policy in ("error", "skip"):
            with pytest.raises(DataError, match="at most 10,000"):
                list(read_lists(make_reader("moses"), path, policy))
