"""What files hold is shown without anything that a terminal would obey: by all commands, in logs, errors, reports."""

import html
import json
import logging
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import small
from commands import Command, Result
from hypothesis import given
from hypothesis import strategies as st

from rerank.base.encoding import plain
from rerank.models.weights import escaped, unescaped

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
    assert plain(text, kept="\n").count("\n") == text.count("\n")


def test_what_is_kept_and_what_is_not() -> None:
    assert plain("aé中\u00a0\u3000 😀") == "aé中\u00a0\u3000 😀"
    assert (
        plain("\x1b]0;t\x07\r\n\t\x7f\x9b\u202e\u2028\udc80")
        == "\\x1b]0;t\\x07\\r\\n\\t\\x7f\\x9b\\u202e\\u2028\\udc80"
    )
    assert unescaped(escaped(f"T|{ID}")) == f"T|{ID}"
    assert not RAW.search(escaped(f"T|{ID}"))


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


def evil_parses(root: Path) -> None:
    """The small slices with evil ids, labels and words; a line end can be in none of them."""
    small.write_slices(root)
    for split in small.SIZES:
        lists, golds = small.lists_of(root / f"{split}.nbest.gz"), small.golds_of(root / f"{split}.gold.gz")
        lists = [text.replace("\t", f"\t{EVIL}", 1) for text in lists]
        changed = [[re.sub(r"\((DT|NP) ", rf"(\1{EVIL} ", text) for text in texts] for texts in (lists, golds)]
        changed = [[re.sub(r" (\w+)\)", rf" {EVIL}\1)", text) for text in texts] for texts in changed]
        small.write_lists(root / f"{split}.nbest.gz", changed[0])
        small.write_golds(root / f"{split}.gold.gz", changed[1])


def test_commands_over_parses(rerank: Command, tmp_path: Path) -> None:
    if not small.QUICKSTART.exists():
        pytest.skip("data/quickstart is missing; make it with data/make_quickstart.py")
    evil_parses(tmp_path)
    made: dict[str, Any] = small.settings(tmp_path, features={"templates": ["Rule", "Word(k=2)"]}, examples=3)
    (tmp_path / "recipe.json").write_text(json.dumps(made))
    out = tmp_path / "run"
    clean(rerank("run", str(tmp_path / "recipe.json"), "--output", str(out)))
    model, lists, golds = str(out / "model"), str(tmp_path / "test.nbest.gz"), str(tmp_path / "test.gold.gz")
    assert WORD in clean(rerank("inspect", model))
    name = small.lists_of(tmp_path / "test.nbest.gz")[0].split("\n")[0].split("\t")[1]
    assert WORD in clean(rerank("explain", model, lists, "--list", name, "--gold", golds))
    clean(rerank("oracle", lists, golds, "--reader", "charniak"))
    assert SHOWN_ID.partition("\\n")[0] in clean(rerank("oracle", lists, str(tmp_path / "dev.gold.gz")), 2)
    page = (out / "report.html").read_text()
    assert not RAW.search(page)
    assert html.escape(WORD) in page
    assert not RAW.search((out / "log.txt").read_text())
