"""Lists of several systems as one: what goes together, the columns, what is written."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import problem_of, read_lists, written
from pairs import read_pairs, read_text_pairs

from rerank.base.errors import DataError, RecipeError
from rerank.data.symbols import SymbolTable
from rerank.extraction.kinds import content_of
from rerank.readers.combined import MergedReader
from rerank.readers.lists import Lists
from rerank.readers.moses import Moses
from rerank.readers.problems import Problem
from rerank.readers.reader import SkipCount, filter_usable, make_reader
from rerank.readers.texts.jsonl import JsonlReader

ONE = b"""\
0 ||| a b ||| LM= -1 X= 2 ||| -3 ||| 0=0
0 ||| a c ||| LM= -2 X= 3 ||| -4 ||| 0-1=0
2 ||| z ||| LM= 0 X= 1 ||| -1 |||
"""
TWO = b"0 ||| a c ||| TM= 5 X= 7 ||| -8\n0 ||| d ||| TM= 6 X= 8 ||| -9\n1 ||| y ||| TM= 4 X= 4 ||| -4\n"
COLUMNS = ("LM", "X", "score", "TM", "system_1", "system_2")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merged")


def paths(place: Path, *contents: bytes) -> str:
    names = []
    for k, content in enumerate(contents):
        path = place / f"{k}.nbest"
        path.write_bytes(content)
        names.append(str(path))
    return ",".join(names)


def read(place: Path, *contents: bytes, **options: Any) -> list[Any]:
    return list(MergedReader(**options).read(paths(place, *contents)))


def jsonl(*lists: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in lists)


@pytest.mark.parametrize("name", ["9" * 5000, "\u00b2", "\u0663"], ids=["long", "square", "arabic"])
def test_ids_that_no_number_holds_are_names(place: Path, name: str) -> None:
    """They are digits to Python, which refuses to read them as numbers, or reads some."""
    both = jsonl({"id": name, "candidates": [{"text": "a", "score": 1}]})
    (found,) = read(place, both, both, of="jsonl")
    assert (found.id, found.texts) == (name, [b"a"])
    (place / "references").write_text("a\nb\n")
    count = SkipCount("skip")
    (place / "list").write_bytes(both)
    pairs = list(read_text_pairs(JsonlReader(), place / "list", references=[place / "references"], count=count))
    assert [len(nbest) for nbest in pairs] == [1, 0]
    assert dict(count.reasons) == {"missing": 1}


def test_candidates_and_columns_of_both(place: Path) -> None:
    zero, one, two = read(place, ONE, TWO)
    assert zero.names == one.names == two.names == COLUMNS
    assert (zero.id, zero.texts, zero.duplicates, zero.column) == ("0", [b"a b", b"a c", b"d"], 1, 2)
    assert zero.scores.tolist() == [
        [-1, 2, -3, 0, 1, 0],  # of the first system
        [-2, 3, -4, 5, 1, 1],  # of both: as the first has it, TM of the second
        [0, 8, -9, 6, 0, 1],  # of the second
    ]
    assert zero.segmentation == [b"0=0", b"0-1=0", b""]
    assert (one.id, one.texts, one.scores.tolist()) == ("1", [b"y"], [[0, 4, -4, 4, 0, 1]])
    assert (two.id, two.texts, two.scores.tolist()) == ("2", [b"z"], [[0, 1, -1, 0, 1, 0]])


def test_the_base_score_of_another_system(place: Path) -> None:
    zero, *_ = read(place, ONE, TWO, base="TM")
    assert zero.names[zero.column] == "TM"
    assert zero.base.tolist() == [-3, 5, 6]  # its own base score where a candidate has no TM
    with pytest.raises(RecipeError, match="no system has the column 'PM'"):
        read(place, ONE, TWO, base="PM")


def test_ids_that_are_names_match_in_any_order(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    a, b, c, d = ({"id": name, "candidates": [name]} for name in "abcd")
    every = [("a", [1, 1]), ("b", [1, 1]), ("c", [1, 1])]
    for lists, expected in (
        ((a, b, c), every), ((c, a, b), every), ((c, b, a), every), ((c, a), [every[0], ("b", [1, 0]), every[2]]),
    ):  # fmt: skip
        found = read(place, jsonl(a, b, c), jsonl(*lists), of="jsonl")
        assert [(one.id, one.scores[0, 1:].tolist()) for one in found] == expected
        assert [one.texts for one in found] == [[b"a"], [b"b"], [b"c"]]
    assert [record.message for record in caplog.records] == [f"{place / '1.nbest'} has no list b"]
    with pytest.raises(DataError, match=r"1.nbest:2: .* do not match: list d is not in \S*0.nbest"):
        read(place, jsonl(a, b, c), jsonl(a, d, c, b), of="jsonl")


def test_numbers_in_any_order(place: Path) -> None:
    def records(*numbers: int) -> bytes:
        return b"".join(b"S-%d\ta\nH-%d\t-1\tx\n" % (number, number) for number in numbers)

    for other in (records(7, 2, 5), records(2, 7, 5)):
        found = read(place, records(7, 2, 5), other, of={"name": "fairseq"})
        assert [(one.id, one.scores[0, -2:].tolist()) for one in found] == [(k, [1, 1]) for k in "725"]
    seven, two = (jsonl({"id": number, "candidates": ["x"]}) for number in (7, 2))
    for lists in (seven + two, two + seven), (two + seven, seven + two):
        first, second = read(place, *lists, of="jsonl")
        assert {first.id, second.id} == {"2", "7"}
        assert first.scores[:, -2:].tolist() == [[1, 1]] == second.scores[:, -2:].tolist()
    with pytest.raises(DataError, match=r"do not match.*needs every id, unless these are numbers that rise"):
        read(place, seven + two, two + seven + seven.replace(b"7", b"8"), of="jsonl")


def test_what_is_bad_in_one_system_is_bad(place: Path) -> None:
    broken = TWO.replace(b"-9", b"x")
    zero, one, two = read(place, ONE, broken)
    bad = problem_of(zero)
    assert zero.problem is None
    assert (bad.list_id, bad.reason, bad.line, bad.path) == ("0", "score", 2, str(place / "1.nbest"))
    assert (one.texts, two.texts) == ([b"y"], [b"z"])
    nameless = jsonl({"id": 0, "candidates": ["a"]}) + b"{\n" + jsonl({"id": 2, "candidates": ["c"]})
    whole = jsonl(*({"id": k, "candidates": [str(k)]} for k in range(3)))
    lettered = whole.replace(b'"id": ', b'"source": "", "reference": "", "x": ')
    for one, two in ((whole, nameless), (lettered, lettered.replace(b'["1"]', b"7"))):
        assert [nbest.problem is not None for nbest in read(place, one, two, of="jsonl")] == [False, True, False]


def test_lists_are_written_in_the_format_of_the_systems(place: Path) -> None:
    reader = MergedReader()
    zero, one, _ = read(place, ONE, TWO)
    first, second = ONE.splitlines()[:2]
    third = TWO.splitlines()[1]
    assert written(reader, zero).splitlines() == [first, second, third]
    assert written(reader, zero, [2, 0]).splitlines() == [third, first]
    lines = written(reader, zero, [2, 1, 0], np.array([1.0, 2.5, 3.0])).splitlines()
    assert [line.split(b" ||| ")[1] for line in lines] == [b"d", b"a c", b"a b"]
    assert [float(line.split(b" ||| ")[3]) for line in lines] == [3.0, 2.5, 1.0]
    assert written(reader, one) == TWO.splitlines()[2] + b"\n"


def test_json_and_fairseq_lists_stay_one_list(place: Path) -> None:
    one = {"id": "a", "source": "s", "x": 1, "candidates": [{"text": "p", "score": 1, "note": 1}, "q"][:1]}
    two = {"id": "a", "reference": "r", "candidates": [{"text": "q", "score": 2}]}
    reader = MergedReader(of="jsonl")
    (found,) = read(place, jsonl(one), jsonl(two), of="jsonl")
    assert (found.source, found.references) == (b"s", (b"r",))
    assert json.loads(written(reader, found, [1, 0])) == {
        **one,
        "candidates": [two["candidates"][0], one["candidates"][0]],
    }  # type: ignore[index]
    records = b"S-3\ts\nH-3\t-1\tx\n", b"S-3\ts\nH-3\t-2\ty\nH-3\t-1\tx\n"
    reader = MergedReader(of="fairseq")
    (found,) = read(place, *records, of="fairseq")
    assert written(reader, found, [1, 0]) == b"S-3\ts\nH-3\t-2\ty\nH-3\t-1\tx\n"
    assert written(reader, found, [0], np.array([5.0, 6.0])) == b"S-3\ts\nH-3\t5.0\tx\n"


def test_systems_with_different_readers_are_written_as_json(place: Path) -> None:
    reader = MergedReader(of=["moses", {"name": "jsonl"}])
    (found, *_) = reader.read(paths(place, ONE, jsonl({"id": "0", "candidates": [{"text": "d", "score": 4, "lm": 5}]})))
    again = json.loads(written(reader, found, [2, 0], np.array([1.0, 2.0, 3.0])))
    assert [entry["text"] for entry in again["candidates"]] == ["d", "a b"]
    assert again["candidates"][0]["score"] == 3.0
    assert again["candidates"][0]["features"]["lm"] == 5.0


def test_readers_with_several_files_each(place: Path) -> None:
    scores = b"1\n2\n3\n"
    reader = MergedReader(of=[{"name": "joined", "names": ["nmt"]}, "moses"])
    assert (reader.files, MergedReader().files, Moses().files) == (3, None, 1)
    zero, *_ = reader.read(paths(place, ONE, scores, TWO))
    assert zero.names == ("LM", "X", "score", "nmt", "TM", "system_1", "system_2")
    assert zero.scores[:, 3].tolist() == [1, 2, 0]
    assert len(written(reader, zero).splitlines()) == 3
    both = MergedReader(of={"name": "joined", "names": ["nmt"]})
    zero, *_ = both.read(paths(place, ONE, scores, TWO, scores))
    assert zero.scores[:, zero.names.index("nmt")].tolist() == [1, 2, 2]
    for reader, names in ((both, (ONE, scores, TWO)), (MergedReader(of=["moses", "moses"]), (ONE,))):
        with pytest.raises(DataError, match="files, separated by commas"):
            list(reader.read(paths(place, *names)))


def test_what_cannot_be_merged(place: Path) -> None:
    for options in ({"of": 7}, {"of": []}, {"of": "mosse"}, {"of": {"name": "moses", "x": 1}}, {"duplicates": "all"}):
        with pytest.raises(RecipeError):
            MergedReader(**options)
    with pytest.raises(RecipeError, match="moses"):
        MergedReader(of="mosse")
    with pytest.raises(DataError, match="a file name is empty"):
        list(MergedReader().read("a,,b"))
    with pytest.raises(DataError, match="no such file"):
        list(MergedReader().read(f"{place}/none,{place}/0.nbest"))
    tree = place / "trees"
    tree.write_bytes(b"1\t0\n-1\n(NN x)\n")
    with pytest.raises(RecipeError, match=r"some of .*trees.*0\.nbest.* hold texts, and others trees"):
        list(MergedReader(of=["charniak", "moses"]).read(f"{tree},{paths(place, ONE)}"))
    clash = jsonl({"candidates": [{"text": "a", "system_1": 1}]})
    with pytest.raises(DataError, match="'system_1', a name that merged lists need"):
        read(place, clash, clash, of="jsonl")


CHARNIAK = b"""\
2\tx
-1
(S1 (S (NN a) (VB b)))
-2
(S1 (NP (NN a) (NN b)))

1\ty
-3
(S1 (NN c))

"""
BERKELEY = b"""\
-20\t( (NP  (NN a)(NN b) ) )
-30\t(ROOT (FRAG (NN a) (NN b)))

(())

"""


def test_equal_trees_of_several_parsers_are_one_candidate_with_the_scores_of_all(place: Path) -> None:
    reader = MergedReader(of=[{"name": "charniak", "ids": "ordinal"}, "berkeley"])
    path = paths(place, CHARNIAK, BERKELEY)
    first, second = reader.read(path)
    assert first.names == ("score_1", "score_2", "system_1", "system_2")
    assert (first.column, first.duplicates, len(second)) == (0, 1, 1)
    assert first.texts == [b"(S1 (S (NN a) (VB b)))", b"(S1 (NP (NN a) (NN b)))", b"(ROOT (FRAG (NN a) (NN b)))"]
    assert first.scores.tolist() == [
        [-1, 0, 1, 0],  # of the first parser
        [-2, -20, 1, 1],  # of both
        [-30, -30, 0, 1],  # of the second: the base score is its own
    ]
    assert second.scores.tolist() == [[-3, 0, 1, 0]]
    out = io.BytesIO()
    reader.write(out, first, [2, 1], np.array([0.0, 0.5, 1.0]))
    reader.write_bad(out, Problem("words", "", 1, path="x", list_id="1"), first)
    assert out.getvalue() == (
        b"2\t0\n1.0\t-30.0\n(ROOT (FRAG (NN a) (NN b)))\n0.5\t-2.0\n(S1 (NP (NN a) (NN b)))\n\n0\t1\n\n"
    )
    both = MergedReader(of=[{"name": "charniak", "ids": "ordinal"}, "berkeley"], base="score_2", duplicates="keep")
    first, _ = both.read(path)
    assert first.scores.tolist() == [[-1, -1, 1, 0], [-2, -2, 1, 0], [0, -20, 0, 1], [0, -30, 0, 1]]
    with pytest.raises(DataError, match=r"do not match.*ids: ordinal"):
        list(MergedReader(of=["charniak", "berkeley"]).read(path))


ONE_WAY = b"1\t0\n-1\n(S1 (S (NN 1\\/2) (`` ``)))\n\n"
OTHER_WAY = b'1\t0\n-5\n(S1 (S (NN 1/2) (`` ")))\n\n'


@pytest.mark.parametrize("spec", [{}, {"scores": "cost"}, {"of": {"name": "joined", "of": "charniak"}}], ids=str)
def test_trees_of_the_same_words_in_normal_form_are_equal(spec: dict[str, Any], place: Path, tmp_path: Path) -> None:
    """Where recipes or commands ask for it, and through the readers around it."""
    spec = {"name": "merged", "of": "charniak"} | spec
    (tmp_path / "scores").write_text("1\n")
    (tmp_path / "gold").write_bytes(OTHER_WAY.splitlines()[2])
    names = paths(place, ONE_WAY, OTHER_WAY)
    path = names if isinstance(spec["of"], str) else f"{names},".replace(",", f",{tmp_path}/scores,").removesuffix(",")
    for normalize, expected in ((False, [[1, 0], [0, 1]]), (True, [[1, 1]])):
        data = {"reader": spec, "nbest": path, "gold": str(tmp_path / "gold"), "normalize": normalize}
        about = small.recipe(tmp_path, data=data)
        content = content_of(about)
        (pair,) = filter_usable(content.read(about.data, "dev"), content.pair, SkipCount())
        ((found, *_),) = read_pairs(make_reader(spec), path, tmp_path / "gold", SymbolTable(), normalize=normalize)
        for nbest in (pair.nbest, found):
            of_systems = [name.startswith("system_") for name in nbest.names]
            assert nbest.scores[:, of_systems].tolist() == expected
            assert nbest.texts[0] == ONE_WAY.splitlines()[2]  # as it is written


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        (b"(S1 (S (NN a)))", b"( (S(NN a) ) )", True),
        (b"(ROOT (S (NN a)))", b"(TOP (S (NN a)))", True),
        (b"(S1 (S (NN a)))", b"(S1 (NP (NN a)))", False),
        (b"(S (NN a))", b"(NP (NN a))", False),
        (b"(NN ab)", b"(NNa b)", False),
    ],
)
def test_equal_trees_may_differ_in_white_space_and_the_label_of_their_root(one: bytes, two: bytes, equal: bool) -> None:
    lists = Lists.one("0", "f", 1, [one, two], [1, 2], np.zeros((2, 1)), of_trees=True)
    assert (len(set(lists.alike())) == 1) == equal


def test_columns_that_change_within_a_system_are_bad() -> None:
    class Changing(JsonlReader):
        def blocks(self, path: Any) -> Any:  # noqa: ARG002
            for item in (1, 2):
                names = ("score", f"x{item}")
                yield Lists.one(str(item), "f", item, [b"t"], [item], np.ones((1, 2)), names=names)

    found = list(read_lists(MergedReader(of=[Changing()]), "f", "skip"))
    assert [one.id for one in found] == ["1"]


VALUES = st.integers(-9, 9)
SYSTEM = st.dictionaries(
    st.integers(0, 4),
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d e"]), VALUES, VALUES), max_size=4),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(systems=st.lists(SYSTEM, min_size=1, max_size=3), duplicates=st.sampled_from(["drop", "keep"]), data=st.data())
def test_merging_equals_its_twin(place: Path, systems: list[dict[int, Any]], duplicates: Any, data: Any) -> None:
    """System k has the columns score, shared and own{k}."""
    contents = []
    for k, system in enumerate(systems):
        items = [
            {
                "id": name,
                "candidates": [{"text": t, "score": s, "shared": o, f"own{k}": o + 100} for t, s, o in system[name]],
            }
            for name in sorted(system)
        ]
        contents.append(jsonl(*items))
    found = list(MergedReader(of="jsonl", duplicates=duplicates).read(paths(place, *contents)))
    assert [one.id for one in found] == [str(name) for name in sorted({name for system in systems for name in system})]
    for one in found:
        rows: list[tuple[str, dict[str, float]]] = []
        for k, system in enumerate(systems):
            for text, score, other in system.get(int(one.id), []):
                own = {"score": score, "shared": other, f"own{k}": other + 100, f"system_{k + 1}": 1}
                known = next((row for name, row in rows if name == text), None) if duplicates == "drop" else None
                if known is None:
                    rows.append((text, own))
                else:
                    for name, value in own.items():
                        known.setdefault(name, value)
        assert one.texts == [text.encode() for text, _ in rows]
        assert one.scores.tolist() == [[row.get(name, 0) for name in one.names] for _, row in rows]
        assert one.base.tolist() == [row["score"] for _, row in rows]
        order = data.draw(st.permutations(range(len(one))))
        again = json.loads(written(MergedReader(of="jsonl"), one, order, np.arange(len(one)) * 1.0))
        assert [(entry["text"], entry["score"]) for entry in again["candidates"]] == [(rows[i][0], i) for i in order]


def test_sparse_features_stay_with_their_candidates(place: Path) -> None:
    def item(*texts: str) -> bytes:
        return jsonl({"candidates": [{"text": t, "features": {t: k, "s": 1}} for k, t in enumerate(texts)]})

    (found,) = read(place, item("a", "b"), item("b", "c"), of={"name": "jsonl", "dense": []})
    assert found.sparse.first.tolist() == [0, 2, 4, 6]
    assert found.sparse.names == [b"a", b"s", b"b", b"s", b"c", b"s"]
    assert found.sparse.values.tolist() == [0, 1, 1, 1, 1, 1]
    (found,) = read(place, item("a"), jsonl({"candidates": ["b", "a"]}), of={"name": "jsonl", "dense": []})
    assert found.sparse.first.tolist() == [0, 2, 2]


def test_an_empty_line_is_no_candidate_which_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a").write_text("it rains\n\n")
    (tmp_path / "b").write_text("it rain\nno\n")
    caplog.set_level("INFO", "rerank")
    merged = MergedReader(of={"name": "opennmt", "n": 1})
    assert [len(nbest) for nbest in read_lists(merged, f"{tmp_path}/a,{tmp_path}/b")] == [2, 1]
    assert "a: no candidate in 1 of 2 lists (an empty line is none), only those of others" in caplog.text
