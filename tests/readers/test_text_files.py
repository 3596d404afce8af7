"""Files of texts in all their forms, by id and by place, and what is wrong with them."""

import gzip
import json
import logging
from pathlib import Path

import pytest
from pairs import read_text_pairs

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.formats.translation import FairseqReader
from rerank.readers.moses import Moses
from rerank.readers.reader import SkipCount
from rerank.readers.texts.jsonl import JsonlReader
from rerank.readers.texts.text_files import TextFile, pair_texts

NAMES = ("utt-c1", "utt-a1", "utt-b1")
BESIDE = {name: f"right {name[4:]}" for name in sorted(NAMES)}  # in another order than the lists


def write(tmp_path: Path, *contents: bytes) -> list[Path]:
    paths = [tmp_path / f"ref{k}" for k in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


def texts(path: Path, form: str = "auto") -> list[tuple[bytes, ...]]:
    return [entry for _, entry in TextFile(path, form).in_order()]


def of_lists(tmp_path: Path, names: tuple[str | int, ...], *files: bytes, form: str = "auto", bad: bytes = b"") -> dict:
    """The references by list; ``bad``: a line before the others. Skipped lists are under their reasons."""
    lists = tmp_path / "lists"
    lists.write_bytes(bad + b"".join(json.dumps({"id": n, "candidates": ["x"]}).encode() + b"\n" for n in names))
    count = SkipCount("skip")
    pairs = read_text_pairs(JsonlReader(), lists, references=write(tmp_path, *files), form=form, count=count)
    found = {nbest.id: nbest.references for nbest in pairs}
    return found | dict(count.reasons.items())


def test_lines_of_one_file_and_of_several(tmp_path: Path) -> None:
    paths = write(tmp_path, b"the house\n\nit rains \n", b"\xef\xbb\xbfa house\r\nhello\r\n it is raining")
    assert texts(paths[0]) == [(b"the house",), (b"",), (b"it rains",)]
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(paths[1].read_bytes()))
    for path in (paths[1], packed):
        assert pair_texts(TextFile(paths[0]), [TextFile(path)])[1] == [(b"a house",), (b"hello",), (b"it is raining",)]
    lists = of_lists(tmp_path, (0, 1, 2), paths[0].read_bytes(), paths[1].read_bytes())
    assert lists["1"] == (b"hello",)
    assert lists["2"] == (b"it rains", b"it is raining")


def test_tabs(tmp_path: Path) -> None:
    (path,) = write(tmp_path, b"the house\ta house\nit rains\t\t\n\n\tgood morning\thello\t hi \n")
    expected = [(b"the house", b"a house"), (b"it rains",), (b"",), (b"good morning", b"hello", b"hi")]
    assert texts(path, "tab") == expected
    (path,) = write(tmp_path, b"the house\ta house\nit rains\tit is raining\n")
    with pytest.raises(DataError, match=r"ref0:1: a tab on every line: form: tab .* form: lines"):
        texts(path)
    assert texts(path, "lines")[1] == (b"it rains\tit is raining",)


WITH_IDS = {
    "kaldi": "{} {}",
    "trn": "{1} ({0})",
    "bars": "{} ||| {}",
    "tab": "{}\t{}",
    "behind": "{1}\t{0}",
    "json": '{{"id": "{}", "text": "{}"}}',
    "transcripts": '{{"utt_id": "{}", "transcript": "{}"}}',
    "manifest": '{{"audio_filepath": "a/{}.wav", "duration": 1.5, "text": "{}"}}',
}


@pytest.mark.parametrize("form", WITH_IDS)
def test_texts_with_ids_go_to_their_lists(tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture) -> None:
    def lines(texts: dict[str, str]) -> bytes:
        return "".join(WITH_IDS[form].format(*pair) + "\n" for pair in texts.items()).encode()

    expected = {name: (BESIDE[name].encode(),) for name in NAMES}
    with caplog.at_level(logging.INFO, "rerank"):
        assert of_lists(tmp_path, NAMES, lines(BESIDE)) == expected
    assert "is taken for the id of a list (form: lines takes it for text)" in caplog.text
    whole = of_lists(tmp_path, NAMES, lines(BESIDE), form="lines")
    assert whole[NAMES[0]] == (WITH_IDS[form].format(*min(BESIDE.items())).encode(),)
    fewer = of_lists(tmp_path, NAMES, lines({name: BESIDE[name] for name in NAMES[:2]}))
    assert fewer == {**{name: expected[name] for name in NAMES[:2]}, "no reference": 1}
    more = of_lists(tmp_path, NAMES[:2], lines(BESIDE))
    assert more == {**expected, "missing": 1}
    assert of_lists(tmp_path, NAMES[:2], lines(BESIDE), bad=b"{\n") == {
        **{n: expected[n] for n in NAMES[:2]},
        "json": 1,
    }
    with pytest.raises(DataError, match=r"is an id, as 'utt-a1', but none is that of a list, as 'x1'"):
        of_lists(tmp_path, ("x1", "x2", "x3"), lines(BESIDE))
    by_place = of_lists(tmp_path, (0, 1, 2), lines(BESIDE))  # lists that are numbered have no ids
    assert by_place == {str(k): (text.encode(),) for k, text in enumerate(BESIDE.values())}


def test_first_words_are_ids_where_lists_have_them_and_else_words(tmp_path: Path) -> None:
    plain = b"we go\nyou stay\nthey run\n"  # all different
    assert of_lists(tmp_path, ("a", "b", "c"), plain)["a"] == (b"we go",)
    assert of_lists(tmp_path, ("you", "we", "they"), plain)["you"] == (b"stay",)
    assert of_lists(tmp_path, (3, 1, 2), b"1 we go\n3 you stay\n2\n") == {
        "3": (b"you stay",),
        "1": (b"we go",),
        "2": (b"",),
    }


def test_numbers_in_front_are_said_to_be_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    numbered = b"1 we go\n0 you stay\n2 they run\n"
    with caplog.at_level(logging.INFO, "rerank"):
        assert of_lists(tmp_path, (0, 1, 2), numbered)["0"] == (b"1 we go",)
    assert "taken for text, though lists have these numbers (form: id takes it for their ids)" in caplog.text
    assert of_lists(tmp_path, (0, 1, 2), numbered, form="id")["0"] == (b"you stay",)


def test_numbers_in_a_column_of_their_own_are_not_said_to_be_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    columns = b"1\twe go\n0\tyou stay\n2\tthey run\n"
    with caplog.at_level(logging.INFO, "rerank"):
        assert of_lists(tmp_path, (0, 1, 2), columns)["0"] == (b"you stay",)
    assert "taken for text" not in caplog.text


def test_first_words_like_ids_are_words_where_texts_have_them_too(tmp_path: Path) -> None:
    ids, words = b"utt1 a b3\nutt2 c\n", b"quell7 quell3\nquell3 quell7\n"
    for data, expected in (
        (ids, [b"a b3", b"c"]),
        (words, words.splitlines()),
        (b"a1 b\nb1 c a1\n", [b"a1 b", b"b1 c a1"]),
    ):
        (tmp_path / "texts").write_bytes(data)
        assert [text for _, (text,) in TextFile(tmp_path / "texts").in_order()] == expected


def test_what_is_no_text_is_left_out(tmp_path: Path) -> None:
    sql = b"SELECT a FROM x\tshop\nSELECT b FROM y\tshop\n"
    assert of_lists(tmp_path, ("p", "q"), sql) == {"p": (b"SELECT a FROM x",), "q": (b"SELECT b FROM y",)}
    m2 = b"S a dogs\nA 1 2|||R:NOUN:NUM|||dog|||REQUIRED|||-NONE-|||0\n"
    with pytest.raises(DataError, match=r"ref0:1: found annotations in M2 .* name the corrected sentences"):
        of_lists(tmp_path, ("p", "q"), m2)
    with pytest.raises(DataError, match=r"ref0:1: found segments of STM .*; expected texts, as 'ID it rains'"):
        of_lists(tmp_path, ("p", "q"), b"p 1 spk 0.0 2.50 <o,f0,male> it rains\nq 1 spk 0.0 1 <o,f0,male> hello\n")
    for start in (b'<seg id="1">it rains</seg>\n', b'<?xml version="1.0"?>\n', b"<refset>\n<doc>\n"):
        with pytest.raises(DataError, match=r"ref0:1: found XML; expected its texts, one on each line"):
            of_lists(tmp_path, ("p", "q"), start)
    for array in (b'["it rains", "hello"]', b'[\n "it rains"\n]\n', b'{\n "id": "it rains"\n}\n'):
        (path,) = write(tmp_path, array)
        with pytest.raises(DataError, match=r"ref0:1: found .*, of one JSON value; expected a text, or an object"):
            texts(path)
        assert len(texts(path, "lines")) == array.strip().count(b"\n") + 1
    with pytest.raises(DataError, match=r"ref0:1: .* expected a 'text' or a 'reference' in it: lists are no sentences"):
        of_lists(tmp_path, ("p",), b'{"id": "p", "candidates": ["x"]}\n')


@pytest.mark.parametrize("data", [
    'id,text\nq,"no, it rains"\np,it is\n', "Text\tID\nno, it rains\tq\nit is\tp\n",
    "path\tsentence\tup_votes\na/q.mp3\tno, it rains\t2\nb/p.mp3\tit is\t\n",
    '{"q": "no, it rains", "p": ["it is"]}', '{\n "q": "no, it rains",\n "p": "it is"\n}\n',
])  # fmt: skip
def test_a_table_or_one_object_has_texts_by_id(data: str, tmp_path: Path) -> None:
    assert of_lists(tmp_path, ("p", "q"), data.encode()) == {"p": (b"it is",), "q": (b"no, it rains",)}


def test_a_table_that_is_damaged_is_refused(tmp_path: Path) -> None:
    for rows, message in (("p,it,is\n", "ref0:2: found 3 fields; expected 2"), ('p,"it is\n', "ref0:2: .*quotes")):
        with pytest.raises(DataError, match=message):
            of_lists(tmp_path, ("p", "q"), f"id,text\n{rows}".encode())


def test_several_references_of_one_id(tmp_path: Path) -> None:
    bars = b"0 ||| the house\n0 ||| a house\n\n1 |||\n 2|||it rains\n"
    for form in ("id", "auto"):
        (path,) = write(tmp_path, bars)
        assert texts(path, form) == [(b"the house", b"a house"), (b"",), (b"it rains",)]
        assert of_lists(tmp_path, (2, 0, 1), bars, form=form)["0"] == (b"the house", b"a house")
    assert of_lists(tmp_path, ("a", "b"), b"a x y\nb z\na w\n", form="id") == {"a": (b"x y", b"w"), "b": (b"z",)}
    with pytest.raises(DataError, match=r"ref0:2: found '1 b'; expected an id and a text, written as on the lines"):
        of_lists(tmp_path, (0, 1), b"0 ||| a\n1 b\n", form="id")


def test_files_beside_one_another(tmp_path: Path) -> None:
    def evaluated(*contents: bytes) -> list[list[tuple[bytes, ...]]]:
        first, *others = map(TextFile, write(tmp_path, *contents))
        return pair_texts(first, others)

    found = evaluated(b"u1 a b\nu2 c\n", b"c d (u2)\na (u1)\n", b"a x\nc x\n")
    assert found == [[(b"a b",), (b"c",)], [(b"a",), (b"c d",)], [(b"a x",), (b"c x",)]]
    assert evaluated(b"u1 a b\nu2 c\n", b"a\nc\n")[0] == [(b"a b",), (b"c",)]
    assert evaluated(b"we a\nyou b\n", b"you a\nwe b\n")[1] == [(b"you a",), (b"we b",)]
    with pytest.raises(DataError, match=r"ref1: the id 'u2' is in \S*ref0 alone"):
        evaluated(b"u1 a b\nu2 c\n", b"u1 x\nu3 y\n")
    with pytest.raises(DataError, match=r"ref1: 2 lines for 3 references of \S*ref0"):
        evaluated(b"a\nb\nc\n", b"a\nb\n")


def test_lists_in_an_order_of_their_own_have_the_places_of_their_inputs(tmp_path: Path) -> None:
    lists, (path,) = tmp_path / "lists", write(tmp_path, b"r0\nr1\nr2\n")
    lists.write_bytes(b"".join(b"S-%d\ts\nH-%d\t-1\th\n" % (k, k) for k in (2, 0, 1)))
    pairs = read_text_pairs(FairseqReader(), lists, references=[path], sources=path)
    assert [(nbest.id, nbest.source, nbest.references) for nbest in pairs] == [
        (str(k), b"r%d" % k, (b"r%d" % k,)) for k in (2, 0, 1)
    ]


@pytest.mark.parametrize("form", ["auto", "lines", "tab", "id"])
def test_damaged_texts_are_refused(form: str, tmp_path: Path) -> None:
    (path,) = write(tmp_path, b"0 ||| a\n1 ||| caf\xe9\n")
    with pytest.raises(DataError, match="found '1 \\|\\|\\| caf\ufffd' with the byte 0xe9, which") as caught:
        texts(path, form)
    assert (caught.value.path, caught.value.line) == (str(path), 2)
    with pytest.raises(DataError, match="ref0:2: a NUL byte"):
        texts(*write(tmp_path, b"0 ||| a\n1 ||| \0\n"), form)


def test_wrong_forms_and_missing_files(tmp_path: Path) -> None:
    (path,) = write(tmp_path, b"a\n")
    with pytest.raises(RecipeError):
        TextFile(path, "xml")
    with pytest.raises(DataError, match="only one input can be '-'"):
        list(read_text_pairs(Moses(), path, references=["-", "-"]))
    with pytest.raises(DataError, match="no such file"):
        texts(tmp_path / "none")
