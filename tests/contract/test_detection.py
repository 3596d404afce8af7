"""What the error for a file says that cannot be used: whose format it is, and whether its lists can be left out."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Command, refused
from formats import CANDIDATES, FORMATS, LISTS, lists_in

from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import SkipCount, read_lists, readers
from rerank.readers.detection import format_of
from rerank.readers.several import make_reader

SKIP = "--on-bad-list skip"
# Formats of single files whose readers need no options; trees with scores are a file of the Berkeley parser too.
SINGLE = [
    name
    for name, form in FORMATS.items()
    if not form.options and form.put is Path.write_bytes and name != "trees with scores"
]
OBJECTS = ("sockeye",)  # in JSON: with other keys, jsonl finds their candidates


def advice(name: str, form: str, options: str = "") -> str:
    """What a reader says of a file of another format: to use its reader, if that reads lists of the same kind."""
    kinds = dict(readers)
    if kinds[name].holds != kinds[form].holds:
        return (
            f"this looks like {form}, whose lists hold {kinds[form].holds}; expected {kinds[name].holds}, as the model"
        )
    spec = f"'{{name: {form}, {options}: ...}}'" if options else form
    return f"this looks like {form}: use --reader {spec} (in a recipe: data."


def error_of(name: str, path: Path, data: bytes | None = None) -> str:
    """The error of reading a file."""
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        list(read_lists(make_reader(name), str(path)))
    return str(caught.value)


def tried(name: str) -> bool:
    """Whether a reader is tried: it reads single files, and needs no options."""
    try:
        return make_reader(name).files == 1
    except RecipeError:
        return False


def others() -> Iterator[tuple[str, str]]:
    """Every format with every reader of single files that is not its own."""
    names = [name for name, _ in readers if tried(name)]
    return ((form, name) for form in SINGLE for name in names if form.split()[0] in {*names} - {name})


@pytest.mark.parametrize(("form", "name"), list(others()))
def test_the_error_for_a_file_of_another_format_names_its_reader(
    tmp_path: Path, form: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lists_in(form)
    (tmp_path / "lists").write_bytes(data)
    count = SkipCount("skip")
    try:
        found = list(read_lists(make_reader(name), str(tmp_path / "lists"), count=count))
    except DataError:
        found = []
    if found and not count.skipped:
        assert [len(one) for one in found] == [CANDIDATES] * LISTS
        pytest.skip("it reads the format too")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    for path in (tmp_path / "lists", *([] if name == "espnet" else [Path("-")])):
        error = error_of(name, path)
        assert f"; {advice(name, form.split()[0])}" in error
        assert SKIP not in error


def test_a_reader_that_reads_through_another_is_told_of_its_option(tmp_path: Path) -> None:
    (tmp_path / "scores").write_bytes(b"1\n" * LISTS * CANDIDATES)
    (tmp_path / "lists").write_bytes(lists_in("jsonl"))
    with pytest.raises(DataError, match="this looks like jsonl: use the option of: jsonl"):
        list(read_lists(make_reader({"name": "joined", "of": "fairseq"}), f"{tmp_path}/lists,{tmp_path}/scores"))


@pytest.mark.parametrize("name", [name for name, _ in readers if tried(name)])
def test_readers_that_need_options_and_those_of_folders_and_of_several_files_are_named(
    tmp_path: Path, name: str
) -> None:
    texts = lists_in("opennmt")
    for data in (texts, b"it rains .\t-0.35\nit rain .\t-0.5\n"):
        assert advice(name, "opennmt", "n") in error_of(name, tmp_path / "o", data)
    FORMATS["espnet"].put(tmp_path / "e", lists_in("espnet"))
    FORMATS["kaldi"].put(tmp_path / "k", lists_in("kaldi"))
    several = f"{tmp_path}/k,{tmp_path}/o"
    if name != "espnet":
        assert f"; {advice(name, 'espnet')}" in error_of(name, tmp_path / "e")
        assert f"; {advice(name, 'kaldi', 'costs')}" in error_of(name, Path(several))
        assert "; these are several files; --reader '{name: joined, " in error_of(
            name, Path(f"{tmp_path}/o,{tmp_path}/k")
        )


def test_texts_without_scores_are_of_no_format(tmp_path: Path) -> None:
    assert "looks like" not in error_of("moses", tmp_path / "lists", b"it rains .\nit rain .\n")


def test_a_file_whose_reader_asks_for_what_is_not_there_is_of_its_format(tmp_path: Path) -> None:
    error = error_of("{name: charniak, score: 5}", tmp_path / "lists", lists_in("charniak"))
    assert "option score: 5 needs at least one more" in error
    assert "looks like" not in error


def test_what_no_reader_reads_is_left_as_it_is(tmp_path: Path) -> None:
    error = error_of("charniak", tmp_path / "lists", b"once upon a time\n")
    assert "expected its header: number of candidates, list id; fix or remove the list, or leave out such" in error


@pytest.mark.parametrize("form", ["jsonl", "jsonl without ids", *OBJECTS])
def test_candidates_under_another_key_are_found_where_most_lists_have_it(tmp_path: Path, form: str) -> None:
    """This is what jsonl is advised for, if no list of another format is good."""
    for ruined in [(0, 1, 2, 3), *([(1, 2, 3)] if form not in OBJECTS else [])]:
        renamed = lists_in(form).replace(b'"candidates"', b'"candidate"') if form.startswith("jsonl") else None
        (tmp_path / "lists").write_bytes(renamed or lists_in(form, ruined=ruined))
        found = list(read_lists(make_reader("jsonl"), str(tmp_path / "lists")))
        texts = [[f"a{i} b{k}".encode() for k in range(CANDIDATES)] for i in range(LISTS)]
        assert [nbest.texts for nbest in found if nbest.problem is None] == texts
        assert [nbest.base.tolist() for nbest in found] == [[-k - 0.5 for k in range(CANDIDATES)]] * LISTS
    message = error_of("jsonl", tmp_path / "lists", lists_in("jsonl", ruined=(3,)))
    assert "list l3: found null under 'candidates'" in message


@pytest.mark.parametrize("reader", ["jsonl", "moses", "charniak"])
@pytest.mark.parametrize("start", [b"PAR1\x15\x04\x15\xc4", b"ARROW1\0\0\xff\xff", b"\xff\xff\xff\xff\x78\x01\0\0"])
def test_tables_are_for_their_reader(reader: str, start: bytes, tmp_path: Path) -> None:
    message = error_of(reader, tmp_path / "table", start + b"What is 2 plus 2?\n\x15\0\0 4\n" * 5)
    assert "this looks like table" in message


@pytest.mark.parametrize(
    "lattices", [b"VERSION=1.0\nN=2 L=1\nJ=0 S=0 E=1 W=a\n", b"utt1 \n0 1 a a 0.5,1.25,\n1 0,0,\n"]
)
def test_lattices_are_no_lists(lattices: bytes, tmp_path: Path) -> None:
    assert "this looks like word lattices: let the recogniser" in error_of("jsonl", tmp_path / "lattices", lattices)


# Files of other programs, and the lists that the statements in their errors make: texts with scores.
FOREIGN = {
    "SRILM": ("NBestList1.0\n(-1000) <s> it rains </s>\n(-1010) <s> it reigns </s>\n",
              [{"it rains": -1000, "it reigns": -1010}]),
    "SRILM scores": ("-900.5 -30.25 2 <s> it rains </s>\n-901.5 -31.25 2 <s> it reigns </s>\n",
                     [{"it rains": -900.5, "it reigns": -901.5}]),
    "HTK": ('#!MLF!#\n"*/u0.rec"\n0 1 it -1\n1 2 rains -2\n///\n0 1 it -3\n.\n', [{"it rains": 0, "it": 0}]),
    "hOCR": ("<html><body><div class='ocr_page'>\n<span class='ocrx_word' title='x_wconf 42'>rnoon<span "
             "class='alternatives'><ins class='alt' title='x_cost 10'>rnoon</ins><del class='alt' title='x_cost 12'>"
             "moon</del></span></span>\n</div></body></html>\n", [{"rnoon": -10, "moon": -12}]),
    "PAGE": ('<?xml version="1.0"?>\n<PcGts><TextLine id="l1"><TextEquiv index="0" conf="0.6"><Unicode>Ende</Unicode>'
             '</TextEquiv><TextEquiv index="1" conf="0.3"><Unicode>arn</Unicode></TextEquiv></TextLine></PcGts>\n',
             [{"Ende": 0.6, "arn": 0.3}]),
    "MeCab": ("a\tN,b,c,d,e,f\nEOS\na\tV,b,c,d,e,f\nEOS\n", [{"a/N": 0, "a/V": 0}]),
    "hfst-lookup": ("kivin\tkivi+N\t1.5\nkivin\tkivi+V\t3.25\n\nlumi\tlumi+N\t2.5\n",
                    [{"kivi+N": -1.5, "kivi+V": -3.25}, {"lumi+N": -2.5}]),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_statements_that_errors_show_make_lists_of_other_programs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, expected = FOREIGN[name]
    said = error_of("jsonl", tmp_path / "foreign", data.encode())
    program, _, statements = said.partition(", which Python makes JSON lines of: ")
    assert f"a file of {name.partition(' ')[0]}" in program or name in program
    exec(statements, {})
    (tmp_path / "lists").write_text(capsys.readouterr().out)
    lists = list(read_lists(make_reader("jsonl"), str(tmp_path / "lists")))
    found = [dict(zip(map(bytes.decode, one.texts), one.base.tolist(), strict=True)) for one in lists]
    assert found == expected


@pytest.mark.parametrize("name", ["look", "new", "vote"])
def test_commands_that_find_the_format_say_which_program_wrote_a_file(
    name: str, tmp_path: Path, rerank: Command
) -> None:
    expected = {name.partition(" ")[0]: data for name, (data, _) in FOREIGN.items()}
    expected["SQLite"] = "SQLite format 3\0"
    expected["M2"] = "S It rain\nA 1 2|||R:VERB|||rains|||REQUIRED|||-NONE-|||0\n\n"
    for program, data in expected.items():
        (tmp_path / "foreign").write_text(data)
        refused(rerank(name, tmp_path / "foreign"), program)


@pytest.mark.parametrize("name", ["look", "new", "oracle", "vote"])
def test_a_file_of_no_known_form_is_said_to_be_so(name: str, tmp_path: Path, rerank: Command) -> None:
    path, right = tmp_path / "texts.tsv", [tmp_path / "right"] * (name == "oracle")
    path.write_text("a\tit rains\na\tit rain\nb\tyes\nb\tyes ,\n")
    (tmp_path / "right").write_text("it rains\nyes\n")
    refused(
        rerank(name, path, *right), f"{path}: no known form: the first line is 'a", "charniak, ", "--reader NAME says"
    )


def test_one_long_word_is_of_no_known_form(tmp_path: Path) -> None:
    """An expression that is searched for from every place would take hours."""
    (tmp_path / "word").write_text("x" * (1 << 20))
    with pytest.raises(DataError, match="no known form"):
        format_of(str(tmp_path / "word"), readers)


def test_statements_for_a_file_of_no_known_form_make_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.tsv").write_text("a\tit rains\na\tit rain\nb\tyes\nb\tyes ,\n")
    with pytest.raises(DataError, match="no known form") as caught:
        format_of("texts.tsv", readers)
    exec(str(caught.value).partition("and a candidate: ")[2], {})
    lists = list(read_lists(make_reader("jsonl"), "lists.jsonl"))
    assert [one.texts for one in lists] == [[b"it rains", b"it rain"], [b"yes", b"yes ,"]]


# Files that hold no text, by how they begin.
BINARY = {
    b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml": "Excel", b"\xd0\xcf\x11\xe0\xa1": "read_excel",
    b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/vnd.oasis.opendocument": "LibreOffice",
    b"PK\x03\x04" + bytes(26) + b"scores.npy": "arrays of numpy", b"\x93NUMPY\x01\0": "an array of numpy",
    b"\x80\x04\x95": "read_pickle", b"SQLite format 3\0": "SELECT", b"\x89HDF\r\n": "read_hdf",
    b"PK\x03\x04" + bytes(26) + b"lists.jsonl": "unpack it first", b"\x1f\x9d\x90": "unpack it first",
    b"7z\xbc\xaf\x27\x1c": "unpack it first", b"%PDF-1.7": "name the lists",
}  # fmt: skip


@pytest.mark.parametrize("start", BINARY)
@pytest.mark.parametrize("reader", ["jsonl", "charniak"])
def test_files_that_hold_no_text_are_named(start: bytes, reader: str, tmp_path: Path) -> None:
    assert BINARY[start] in error_of(reader, tmp_path / "file", start + b"\0 \xff\n" * 40)


@pytest.mark.parametrize("ending", ["pickle", "npz"])
def test_statements_that_errors_show_make_rows_of_arrays(ending: str, tmp_path: Path, monkeypatch: Any) -> None:
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    columns = {"query": np.array(["q0", "q0", "q1", "q1"]), "text": np.array(["a", "b", "c", "d"]), "lm": np.arange(4)}
    if ending == "npz":
        np.savez("rows.npz", **columns)
    else:
        pandas.DataFrame(columns).to_pickle("rows.pickle")
    exec(error_of("jsonl", tmp_path / f"rows.{ending}").partition("which Python makes JSON lines of: ")[2], {})
    assert [one.texts for one in read_lists(make_reader("jsonl"), "lists.jsonl")] == [[b"a", b"b"], [b"c", b"d"]]


def test_statements_that_errors_show_make_rows_of_a_workbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    rows = [{"query": f"q{k // 2}", "text": f"t{k}", "lm": k} for k in range(4)]
    pandas.DataFrame(rows).to_excel(tmp_path / "x.xlsx", index=False)
    _, _, statements = error_of("jsonl", tmp_path / "x.xlsx").partition("which Python makes JSON lines of: ")
    exec(statements, {})
    first, second = read_lists(make_reader("jsonl"), "lists.jsonl")
    assert (first.texts, second.texts) == ([b"t0", b"t1"], [b"t2", b"t3"])
