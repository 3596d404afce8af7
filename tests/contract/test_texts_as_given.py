"""A candidate's text is compared without the white space around it, and given back as it stood in the file."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Command, failed
from small import lines_of

import rerank as library
from rerank.contrib.formats.fairseq import FairseqReader
from rerank.contrib.formats.opennmt import OpenNmtReader
from rerank.contrib.formats.sockeye import SockeyeReader
from rerank.contrib.serve.requests import answer
from rerank.readers.base import Reader
from rerank.readers.combined import MergedReader
from rerank.readers.texts.jsonl import JsonlReader
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import TextRecipe
from rerank.runs import experiment

PROGRAM = "def f(x):\n    if x:\n        return 1\n\treturn 2\n"
TEXTS = [
    PROGRAM, "    return x", "\treturn x\t", "a\r\nb\r\n", "a\rb", "a\u2028", "\u2028b", "\x0bc\x0c", "   ", "\n",
    "\xa0d ", "plain words",
]  # fmt: skip
OTHER, HALF = "another answer", "half \ud83d "
BASE = ("--reader", "jsonl", "--metric", "wer")


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


@pytest.mark.parametrize("predictor", ["base", "mbr"])
def test_rank_writes_the_text_that_it_chooses(lists: Path, tmp_path: Path, rerank: Command, predictor: str) -> None:
    ranked = ("rank", "base", lists, *BASE, "--predictor", predictor, "--n-best", 2)
    done = rerank(*ranked, "--json")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [found["text"] for found in answers] == TEXTS
    assert [[one["text"] for one in found["candidates"]] for found in answers] == [[text, OTHER] for text in TEXTS]
    assert rerank(*ranked, "-o", tmp_path / "out").code == 0
    written = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert [found["candidates"][0]["text"] for found in written] == TEXTS
    halved = write(tmp_path / "half.jsonl", [of("h", HALF)])
    done = rerank("rank", "base", halved, *BASE, "--predictor", predictor, "--json")
    assert json.loads(done.out)["text"] == HALF


def test_plain_output_has_a_line_for_each_list_or_nothing(lists: Path, tmp_path: Path, rerank: Command) -> None:
    whole, broken = (
        [text for text in TEXTS if bool({"\n", "\r"} & set(text)) == ends] for ends in (False, True)
    )  # fmt: skip
    plain, out = [of(f"p{i}", text) for i, text in enumerate(whole)], tmp_path / "out.txt"
    last = ("--predictor", "base", "-o", out)
    assert rerank("rank", "base", write(tmp_path / "whole.jsonl", plain), *BASE, *last).code == 0
    assert out.read_bytes() == "".join(f"{text}\n" for text in whole).encode()
    out.unlink()
    for text in broken:
        mixed = write(tmp_path / "mixed.jsonl", [*plain, of("odd", text)])
        failed(rerank("rank", "base", mixed, *BASE, *last[:2]), 2, "list odd", "line ends", "--json")
    failed(rerank("rank", "base", lists, *BASE, *last), 2, "list l0", "--json")
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
        assert nbest.problem is None
        assert nbest.candidates[0].text == text
        assert nbest.texts == [text.encode().strip()]
    merged = MergedReader(of=["jsonl", "jsonl"])
    other = write(tmp_path / "other.jsonl", [{"id": "a", "candidates": [OTHER]}])
    path = write(tmp_path / "one.jsonl", [{"id": "a", "candidates": [text]}])
    (nbest,) = merged.read(f"{path},{other}")
    assert nbest.problem is None
    assert [one.text for one in nbest.candidates] == [text, OTHER]
    if not {"\n", "\r"} & set(text):
        lines: list[tuple[Reader, str]] = [(FairseqReader(), f"S-0\ta\nH-0\t-1\t{text}\nP-0\t-1\n")]
        lines.append((OpenNmtReader(n=1), f"{text}\t-1\n"))
        lines += [(OpenNmtReader(n=1), f"-1.5 ||| {text}\n")] if "\t" not in text else []  # before which is a text
        for reader, line in lines:
            path.write_bytes(line.encode())
            (nbest,) = reader.read(path)
            assert nbest.problem is None
            assert nbest.candidates[0].text == text


def test_texts_that_differ_by_white_space_alone_repeat_each_other_and_cost_no_copy(lists: Path) -> None:
    (nbest,) = JsonlReader().parse(b'{"candidates": ["a", " a\\n", "b"]}')
    assert nbest.problem is None
    assert (nbest.duplicates, nbest.texts, nbest.given) == (1, [b"a", b"a", b"b"], [b"a", b" a\n", b"b"])
    assert nbest.given[2] is nbest.texts[2]
    (nbest,) = JsonlReader(duplicates="drop").parse(b'{"candidates": [" a", "b", "a"]}')
    assert nbest.problem is None
    assert [one.text for one in nbest.candidates] == [" a", "b"]
    (nbest,) = JsonlReader().parse(b'{"candidates": ["a", "b"]}')
    assert nbest.problem is None
    assert nbest.given is None
    blocks = [block for block in JsonlReader().blocks(lists) if block.list_count > 1]
    parts = [block.part(1, block.list_count) for block in blocks]
    assert [nbest.written(1).decode() for part in parts for nbest in part.each()] == TEXTS[1:]


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
    assert isinstance(recipe, TextRecipe)
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
