"""Texts come out as they were given, and as text where they could be taken for markup."""

import html
import json
import logging
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from commands import Command, Result, failed
from hypothesis import given
from hypothesis import strategies as st
from small import lines_of

import rerank as library
from rerank.base.encoding import plain
from rerank.contrib.formats.translation import FairseqReader, OpenNmtReader, SockeyeReader
from rerank.contrib.serve.app import answer
from rerank.models.weights import escape_name, unescape_name
from rerank.readers.combined import MergedReader
from rerank.readers.reader import Reader
from rerank.readers.texts.jsonl import JsonlReader
from rerank.recipes.loading import read_settings
from rerank.runs import experiment

PROGRAM = "def f(x):\n    if x:\n        return 1\n\treturn 2\n"
TEXTS = [
    PROGRAM, "    return x", "\treturn x\t", "a\r\nb\r\n", "a\rb", "a\u2028", "\u2028b", "\x0bc\x0c", "   ", "\n",
    "\xa0d ", "plain words",
]  # fmt: skip
OTHER, HALF = "another answer", "half \ud83d "


def of(name: str, text: str, other: str = OTHER) -> dict[str, Any]:
    """A list whose second candidate is the best."""
    pairs = (other, 0.0, 0.0), (text, 9.0, 1.0)
    return {"id": name, "candidates": [{"text": text, "score": s, "gain": gain} for text, s, gain in pairs]}


def write(path: Path, lists: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in lists))
    return path


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("given") / "lists.jsonl", [of(f"l{i}", text) for i, text in enumerate(TEXTS)])


@pytest.fixture(scope="module")
def model() -> library.Reranker:
    """A model that goes by the score."""
    return library.fit([of(str(i), f"right {i}") for i in range(20)], features="dense")


@pytest.fixture(scope="module")
def saved(model: library.Reranker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model in a directory."""
    model.save(tmp_path_factory.mktemp("model") / "model")
    return tmp_path_factory.getbasetemp() / "model0" / "model"


def test_rank_writes_the_text_that_it_chooses(saved: Path, lists: Path, tmp_path: Path, rerank: Command) -> None:
    ranked = ("rank", saved, lists, "--predictor", "base", "--n-best", 2)
    done = rerank(*ranked, "--json")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [found["text"] for found in answers] == TEXTS
    assert [[one["text"] for one in found["candidates"]] for found in answers] == [[text, OTHER] for text in TEXTS]
    assert rerank(*ranked, "-o", tmp_path / "out").code == 0
    written = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert [found["candidates"][0]["text"] for found in written] == TEXTS
    halved = write(tmp_path / "half.jsonl", [of("h", HALF)])
    done = rerank("rank", saved, halved, "--predictor", "base", "--json")
    assert json.loads(done.out)["text"] == HALF


def test_plain_output_has_a_line_for_each_list_or_nothing(
    saved: Path, lists: Path, tmp_path: Path, rerank: Command
) -> None:
    whole, broken = (
        [text for text in TEXTS if bool({"\n", "\r"} & set(text)) == ends] for ends in (False, True)
    )  # fmt: skip
    plain, out = [of(f"p{i}", text) for i, text in enumerate(whole)], tmp_path / "out.txt"
    last = ("--predictor", "base", "-o", out)
    assert rerank("rank", saved, write(tmp_path / "whole.jsonl", plain), *last).code == 0
    assert out.read_bytes() == "".join(f"{text}\n" for text in whole).encode()
    out.unlink()
    for text in broken:
        mixed = write(tmp_path / "mixed.jsonl", [*plain, of("odd", text)])
        failed(rerank("rank", saved, mixed, *last[:2]), 2, "list odd", "line ends", "--json")
    failed(rerank("rank", saved, lists, *last), 2, "list l0", "--json")
    assert not out.exists()


def test_python_gives_back_what_it_was_given(lists: Path, model: library.Reranker) -> None:
    for text, ranking in zip(TEXTS, model.rank_many(lists, format="jsonl"), strict=True):
        assert (ranking.text, ranking.best.text, ranking.candidates[0].text) == (text, text, text)
    for text, nbest in zip(TEXTS, library.read(lists), strict=True):
        ranking = model.rank(nbest)
        assert [nbest.candidates[1].text, ranking.text, ranking.best.text, model.decode(nbest).text] == [text] * 4
        given = [(OTHER, 0.0), (text, 9.0)]
        ranking = model.rank(given)
        assert (ranking.best, ranking.text, model.decode(given).text) == ((text, 9.0), text, text)
        asked = {"candidates": of("", text)["candidates"], "decode": True}
        found = json.loads(answer(model, json.dumps(asked).encode())[0])
        assert (found["best"]["text"], found["decoded"]["text"]) == (text, text)


def test_tables_give_back_texts() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [(f"q{i}", text, float(k)) for i, text in enumerate(TEXTS) for k, text in enumerate((OTHER, text))]
    frame = pandas.DataFrame(rows, columns=["q", "t", "s"])
    read = list(library.read(frame, group="q", text="t", score="s"))
    assert [nbest.candidates[1].text for nbest in read] == TEXTS


@pytest.mark.parametrize("text", TEXTS)
def test_every_format_whose_texts_have_bounds_keeps_them(text: str, tmp_path: Path) -> None:
    said = [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
    found: list[tuple[Reader, Any]] = [
        (JsonlReader(), {"candidates": [text]}),
        (JsonlReader(), {"candidates": [{"text": text}]}),
        (JsonlReader(), {"choices": [{"text": text}]}),
        (JsonlReader(), {"choices": [{"message": {"content": text}}]}),
        (JsonlReader(), {"prompt": "?", "responses": [text]}),
        (JsonlReader(), {"prompt": "?", "chosen": text, "rejected": []}),
        (JsonlReader(), {"chosen": said, "rejected": []}),
        (SockeyeReader(), {"sentence_id": 0, "translation": text, "score": 1.0}),
    ]
    for reader, item in found:
        path = write(tmp_path / "one.jsonl", [item])
        (nbest,) = reader.read(path)
        assert nbest.candidates[0].text == text
        assert nbest.texts == [text.encode().strip()]
    merged = MergedReader(of=["jsonl", "jsonl"])
    other = write(tmp_path / "other.jsonl", [{"id": "a", "candidates": [OTHER]}])
    path = write(tmp_path / "one.jsonl", [{"id": "a", "candidates": [text]}])
    (nbest,) = merged.read(f"{path},{other}")
    assert [one.text for one in nbest.candidates] == [text, OTHER]
    if not {"\n", "\r"} & set(text):
        lines: list[tuple[Reader, str]] = [(FairseqReader(), f"S-0\ta\nH-0\t-1\t{text}\nP-0\t-1\n")]
        for line in (f"{text}\t-1\n", f"-1.5 ||| {text}\n") if "\t" not in text else ():
            lines.append((OpenNmtReader(n=1), line))
        for reader, line in lines:
            path.write_bytes(line.encode())
            (nbest,) = reader.read(path)
            assert nbest.candidates[0].text == text


def test_texts_that_differ_by_white_space_alone_repeat_each_other_and_cost_no_copy(lists: Path) -> None:
    (nbest,) = JsonlReader().parse(b'{"candidates": ["a", " a\\n", "b"]}')
    assert (nbest.duplicates, nbest.texts, nbest.originals) == (1, [b"a", b"a", b"b"], [b"a", b" a\n", b"b"])
    assert nbest.originals[2] is nbest.texts[2]
    (nbest,) = JsonlReader(duplicates="drop").parse(b'{"candidates": [" a", "b", "a"]}')
    assert [one.text for one in nbest.candidates] == [" a", "b"]
    (nbest,) = JsonlReader().parse(b'{"candidates": ["a", "b"]}')
    assert nbest.problem is None
    assert nbest.originals is None
    blocks = [block for block in JsonlReader().blocks(lists) if block.list_count > 1]
    parts = [block.part(1, block.list_count) for block in blocks]
    assert [nbest.original(1).decode() for part in parts for nbest in part.each()] == TEXTS[1:]


@pytest.mark.parametrize("text", ["one line  ", PROGRAM])
def test_predictions_of_a_run(tmp_path: Path, text: str) -> None:
    for split in ("train", "dev", "test"):
        write(tmp_path / f"{split}.jsonl", [of(f"{split}{i}", f"{i}{text}") for i in range(12)])
    data = {
        "root": str(tmp_path),
        "nbest": "{root}/{split}.jsonl",
        "sources": None,
        "references": None,
        "reader": "jsonl",
    }
    recipe = read_settings(
        {"name": "given", "task": "ranking", "data": data, "features": {"set": "base"},
         "decode": {"kinds": "mbr", "use": "mbr"}}
    )  # fmt: skip
    experiment.run(recipe, tmp_path / "run")
    texts = [f"{i}{text}" for i in range(12)]
    (nbest, *_) = library.read(tmp_path / "run" / "predictions" / "test.nbest.gz")
    assert nbest.candidates[0].text == texts[0]
    written = tmp_path / "run" / "predictions"
    if "\n" in text:
        assert not (written / "test.decoded.gz").exists()
        assert [json.loads(line) for line in lines_of(written / "test.decoded.jsonl.gz")] == texts
    else:
        assert lines_of(written / "test.decoded.gz") == texts


RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
EVIL = "\x1b[2Jx\x01\u202eevil\u2066"  # as a word; an id has a line end too
WORD = "\\x1b[2Jx\\x01\\u202eevil\\u2066"
ID, SHOWN_ID = f"{EVIL}\nerror: none", f"{WORD}\\nerror: none"


@given(st.text(st.characters(codec="utf-8")))
def test_plain_text_is_printable_and_stays(text: str) -> None:
    shown = plain(text)
    assert plain(shown) == shown
    assert all(letter.isprintable() or unicodedata.category(letter) == "Zs" for letter in shown)
    assert [a for a in text if a.isprintable() or unicodedata.category(a) == "Zs"] == [a for a in text if plain(a) == a]
    assert plain(text, safe="\n").count("\n") == text.count("\n")


def test_what_is_kept_and_what_is_not() -> None:
    assert plain("aé中\u00a0\u3000 😀") == "aé中\u00a0\u3000 😀"
    assert (
        plain("\x1b]0;t\x07\r\n\t\x7f\x9b\u202e\u2028\udc80")
        == "\\x1b]0;t\\x07\\r\\n\\t\\x7f\\x9b\\u202e\\u2028\\udc80"
    )
    assert unescape_name(escape_name(f"T|{ID}")) == f"T|{ID}"
    assert not RAW.search(escape_name(f"T|{ID}"))


def test_messages_of_the_log_stay_on_their_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "rerank"):
        logging.getLogger("rerank").info("%s: %d of %s", ID, 3, Path("a\x1b"))
    assert [record.getMessage() for record in caplog.records] == [f"{SHOWN_ID}: 3 of a\\x1b"]


def write_texts(root: Path) -> None:
    """Transcripts as JSON lines, with evil ids, words, names of scores; references with an evil word."""
    for split, size in (("train", 30), ("dev", 8), ("test", 8)):
        lines = []
        for i in range(size):
            right, wrong = f"{EVIL} right{i % 4} word", f"{EVIL}{EVIL} wrong{i % 3} word"
            features = {"score": [-2.0, -1.0], f"lm{EVIL}": [1.0, 0.5 * (i % 2)]}
            candidates = [
                {"text": text, "score": features["score"][k], "features": {f"lm{EVIL}": features[f"lm{EVIL}"][k]}}
                for k, text in enumerate((right, wrong))
            ]
            lines.append(json.dumps({"id": f"{ID}{i}", "reference": right, "candidates": candidates}))
        (root / f"{split}.jsonl").write_text("\n".join(lines) + "\n")


def recipe(root: Path) -> Path:
    data = {"root": str(root), "nbest": "{root}/{split}.jsonl"}
    made = {
        "task": "speech",
        "name": "evil",
        "data": data,
        "features": {"set": None, "templates": ["TargetNGram", "EditOps", "Dense"], "min_lists": 1},
        "learner": {"name": "perceptron"},
        "training": {"epochs": 3},
        "examples": 4,
        "significance": {"samples": 100},
    }
    (root / "recipe.json").write_text(json.dumps(made))
    return root / "recipe.json"


def clean(result: Result, code: int = 0) -> str:
    """Stdout and stderr of a command that came to its end, and showed nothing raw."""
    assert result.code == code, result.err
    for text in (result.out, result.err):
        assert not RAW.search(text), ascii(text)
        assert not re.search("^error: none", text, re.MULTILINE)
    return result.out + result.err


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("evil-texts")
    write_texts(root)
    return root


def test_commands_over_texts(texts: Path, rerank: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    clean(rerank("run", str(recipe(texts)), "--output", str(out)))
    model, lists = str(out / "model"), str(texts / "test.jsonl")
    assert WORD in clean(rerank("inspect", model, "--top", "20"))
    assert WORD in clean(rerank("inspect", model, "--feature", "evil"))
    clean(rerank("inspect", model, "--provenance"))
    shown = clean(rerank("explain", model, lists, "--list", f"{ID}3"))
    assert shown.count(WORD) > 3
    assert f"no usable list '{ID}'".replace(ID, SHOWN_ID) in clean(rerank("explain", model, lists, "--list", ID), 2)
    clean(rerank("export", model))
    clean(rerank("compare", str(out), str(out)))
    (tmp_path / "refs").write_text("".join(f"{EVIL} right{i % 4} word\n" for i in range(8)))
    clean(rerank("oracle", lists, str(tmp_path / "refs"), "--reader", "jsonl", "--metric", "wer"))
    said = clean(rerank("oracle", lists, str(recipe(texts)), "--reader", "jsonl", "--metric", "wer"), 2)
    assert "expected a 'text' or a 'reference' in it: lists are no sentences" in said
    page = (out / "report.html").read_text()
    assert not RAW.search(page)
    assert html.escape(WORD) in page
    for path in (out / "log.txt", out / "metrics.json", out / "history.jsonl"):
        assert not RAW.search(path.read_text()), path


def test_errors_and_warnings_over_texts(texts: Path, rerank: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    clean(rerank("run", "--until", "train", str(recipe(texts)), "--output", str(out)))
    lines = (texts / "test.jsonl").read_text().splitlines()
    bad = json.loads(lines[0]) | {"candidates": [{"text": EVIL, "score": EVIL}]}
    more = json.loads(lines[1])
    for candidate in more["candidates"]:
        candidate["features"][f"new{EVIL}"] = 1.0
    (tmp_path / "bad.jsonl").write_text("\n".join([json.dumps(bad), json.dumps(more), lines[2]]) + "\n")
    model, lists, ranked = str(out / "model"), str(tmp_path / "bad.jsonl"), str(tmp_path / "ranked")
    assert SHOWN_ID in clean(rerank("rank", model, lists, "-o", ranked), 2)
    said = clean(rerank("rank", model, lists, "-o", ranked, "--on-bad-list", "skip"))
    assert SHOWN_ID in said
    assert f"new{WORD}" in said
    assert "\x1b" in Path(ranked).read_text()  # data go through as they are
