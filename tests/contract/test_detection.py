"""Formats are told from one another, and bad lists of all of them from good ones."""

import gzip
import io
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Command, refused
from formats import CANDIDATES, CASES, FORMATS, LISTS, Case, Damage, lists_in, whole
from outcomes import read_lists

from rerank.base.errors import DataError, RecipeError
from rerank.data.symbols import SymbolTable
from rerank.models.scorer import Ranked, write_ranked
from rerank.readers.detection import format_of
from rerank.readers.reader import Lists, Problem, SkipCount, make_reader, readers
from rerank.readers.trees.treebank import parse_list
from rerank.storage.streams import read_in

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
    for path in (tmp_path / "lists", *([Path("-")] if name in ("moses", "charniak") else [])):
        error = error_of(name, path)
        assert f"; {advice(name, form.split()[0])}" in error
        assert SKIP not in error


def test_a_reader_that_reads_through_another_is_told_of_its_option(tmp_path: Path) -> None:
    (tmp_path / "scores").write_bytes(b"1\n" * LISTS * CANDIDATES)
    (tmp_path / "lists").write_bytes(lists_in("jsonl"))
    with pytest.raises(DataError, match="this looks like jsonl: use the option of: jsonl"):
        list(read_lists(make_reader({"name": "joined", "of": "fairseq"}), f"{tmp_path}/lists,{tmp_path}/scores"))


@pytest.mark.parametrize("name", [name for name, _ in readers if tried(name)])
def test_readers_of_folders_and_of_several_files_and_with_options_are_named(tmp_path: Path, name: str) -> None:
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


def test_moses_lists_without_scores_get_some(tmp_path: Path) -> None:
    lines = ["0 ||| it rains", "0 ||| it rain", "1 ||| yes", "1 ||| yes ,"]
    message = error_of("jsonl", tmp_path / "lists", "\n".join(lines).encode() + b"\n")
    assert "lists without scores: sed 's/$/ ||| ||| 0/' makes moses of them" in message
    (tmp_path / "lists").write_text("".join(f"{line} ||| ||| 0\n" for line in lines))
    assert [one.texts for one in read_lists(make_reader("moses"), str(tmp_path / "lists"))] == [
        [b"it rains", b"it rain"], [b"yes", b"yes ,"],
    ]  # fmt: skip


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
def test_commands_that_find_the_format_say_who_wrote_a_file(name: str, tmp_path: Path, rerank: Command) -> None:
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
    refused(rerank(name, path, *right), f"{path}: no known form: the first line is 'a", "charniak, ", "--reader NAME")


def test_a_file_that_ends_within_its_first_list_is_said_to_be_cut_short(tmp_path: Path, rerank: Command) -> None:
    rows = (f"q1 Q0 d{k} {k + 1} {60_000 - k} run" for k in range(60_000))
    data = gzip.compress("\n".join(rows).encode())
    (tmp_path / "run.gz").write_bytes(data[:-9])
    refused(rerank("look", tmp_path / "run.gz"), "the gzip data ends too early", "cut short")


@pytest.mark.parametrize(("data", "said"), [
    ("scan\tcharge\tpeptide\n7\t2\tPEP\n7\t2\tTIDE\n", "found scan, charge, peptide"),
    ("m_id\tmention\tentity\tprior\tsim\tgood\nm1\tParis\tQ90\t.9\t0.5\t1\nm1\tParis\tQ16\t.1\t0.2\t0\n",
     "found m_id, mention, entity, prior, sim, good; fix"),
    ("id\ttext\na\tit rains\nb\tyes\n", "no known form: the first line is 'id"),
    ("301 0 FT934-5418 2\n301 0 LA043090-0036 -1\n", "judgements (qrels): name them behind the run"),
    ("query-id\tcorpus-id\tscore\nq1\td1\t2\n", "judgements (qrels): name them behind the run"),
    ("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq2\td1\t1\n", "judgements (qrels): name them behind"),
    ('{"q1": {"d1": 2, "d2": 0},\n "q2": {"d1": 1}}', "judgements (qrels): name them behind the run"),
])  # fmt: skip
def test_a_table_of_other_names_and_judgements_alone_are_said_to_be_so(
    data: str, said: str, tmp_path: Path, rerank: Command
) -> None:
    (tmp_path / "x.tsv").write_text(data)
    refused(rerank("look", tmp_path / "x.tsv"), said)


def test_a_header_with_a_blank_is_not_the_name_of_a_column(tmp_path: Path) -> None:
    (tmp_path / "lists").write_text("1 s-0\n-2.5\n(S1 (NP (NN cat)))\n\n1 s-1\n-2.5\n(S1 (NP (NN cat)))\n")
    assert format_of(str(tmp_path / "lists"), readers) == "charniak"


def test_one_long_word_is_of_no_known_form(tmp_path: Path) -> None:
    """An expression that is searched for from every place would take hours."""
    (tmp_path / "word").write_text("x" * (1 << 20))
    with pytest.raises(DataError, match="no known form"):
        format_of(str(tmp_path / "word"), readers)


def test_keys_of_sockeye_in_each_of_many_candidates_are_sought_once(tmp_path: Path) -> None:
    """Each place of a key was tried with each of the next: hours for a line of a megabyte."""
    keys = '{"score": 1, "scores": [1], "sentence_id": 1, "translation": "a"}'
    (tmp_path / "lists").write_text(f'{{"candidates": [{", ".join([keys] * 20_000)}]}}')
    assert format_of(str(tmp_path / "lists"), readers) == "jsonl"


def test_statements_for_a_file_of_no_known_form_make_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for scores in ((), (-1.5, -2, -3)):
        rows = zip_longest(("0\tit rains", "0\tit rain", "1\tyes"), (f"\t{score}" for score in scores), fillvalue="")
        Path("texts.tsv").write_text("".join(f"{row}{score}\n" for row, score in rows))
        with pytest.raises(DataError, match="the first line is '0") as caught:
            format_of("texts.tsv", readers)
        exec(str(caught.value).partition("with tabs between: ")[2], {})
        one, two = read_lists(make_reader("jsonl"), "lists.jsonl")
        assert [one.texts, two.texts] == [[b"it rains", b"it rain"], [b"yes"]]
        assert one.base.tolist() == [*(scores or (0, 0))][:2]


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


@pytest.mark.parametrize("ending", ["pickle", "npz", "xlsx"])
def test_statements_that_errors_show_make_rows_of_tables(ending: str, tmp_path: Path, monkeypatch: Any) -> None:
    pandas = pytest.importorskip("pandas")
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    columns = {"query": np.array(["q0", "q0", "q1", "q1"]), "text": np.array(["a", "b", "c", "d"]), "lm": np.arange(4)}
    writers = {
        "pickle": pandas.DataFrame(columns).to_pickle,
        "npz": lambda path: np.savez(path, **columns),
        "xlsx": lambda path: pandas.DataFrame(columns).to_excel(path, index=False),
    }
    writers[ending](f"rows.{ending}")
    exec(error_of("jsonl", tmp_path / f"rows.{ending}").partition("which Python makes JSON lines of: ")[2], {})
    assert [one.texts for one in read_lists(make_reader("jsonl"), "lists.jsonl")] == [[b"a", b"b"], [b"c", b"d"]]


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
    # What a row of a table may lack, and what is said then, is in tests/readers/test_columns.py.
    assert {name for name, _ in readers} - tried == {"table"}


@pytest.mark.parametrize("dense", [None, ["lm"]])
def test_a_number_that_a_list_in_four_lacks_is_no_column_unless_named(tmp_path: Path, dense: list[str] | None) -> None:
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
def test_bad_lists_are_written_as_empty_ones(tmp_path: Path, case: Case, ruined: tuple[int, ...]) -> None:
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
        kept = [y for y in range(len(other)) if (i, y) != (1, 1)]
        assert one.texts == [other.texts[y] for y in kept]
        assert one.scores.tolist() == other.scores[kept].tolist()
    damaged = found[1]
    (bad,) = damaged.bad
    assert (bad.reason, bad.index) == (reason, 1)
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
    assert (bad.problem.reason, bad.size) == (reason, CANDIDATES)
    if case.name == "joined":
        last = found[-1]
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


# A count of candidates is not fulfilled by what is looked at, nor has an object of JSON its end there.
ENDLESS = [name for name in SINGLE if name not in ("charniak", "trees with counts", "sockeye") and ":" not in name]


@pytest.mark.parametrize("name", ENDLESS)
def test_a_first_list_that_is_longer_than_what_is_looked_at_has_its_format(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("readers.detection", "storage.streams"):
        monkeypatch.setattr(f"rerank.{module}.START_SIZE", 4000)
    form, path = FORMATS[name], tmp_path / "lists"
    path.write_bytes(form.whole(0, [form.candidate(0, k) for k in range(500)]))
    assert format_of(str(path), readers) == name.split()[0]
