"""What a run says of splits that share lists, references that belong to other lists, and columns unlike training."""

import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
import small
from commands import Command

import rerank
from rerank.readers.inputs import Inputs
from rerank.recipes.loading import load_recipe, read_settings
from rerank.runs import experiment

SHIPPED = Path(__file__).parents[2] / "data"
Lines = list[dict[str, Any]]


def lines_of(split: str) -> Lines:
    return [*map(json.loads, small.lines_of(SHIPPED / "asr" / f"{split}.jsonl.gz"))]


def off_by_one(lines: Lines) -> Lines:
    """Every list with the references of the next."""
    references = [line["reference"] for line in lines]
    return [{**line, "reference": other} for line, other in zip(lines, references[1:] + references[:1], strict=True)]


def negative(lines: Lines) -> Lines:
    """Lists with another sign of the score of the language model."""
    for line in lines:
        for one in line["candidates"]:
            one["features"]["lm"] *= -1
    return lines


def write(root: Path, **splits: Lines) -> Path:
    """Files of lists."""
    for split, lines in splits.items():
        (root / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return root


def doubts_of(root: Path, place: Path, **changes: Any) -> list[str]:
    """What a run over transcripts says of its data."""
    data: dict[str, Any] = {"root": str(root), "nbest": "{root}/{split}.jsonl", **changes}
    recipe = read_settings({"name": "run", "task": "speech", "data": data, "features": {"set": "dense"}})
    with Inputs() as inputs:
        steps: Any = experiment.check(recipe, inputs, place / "run")
        steps.extract()
    found: list[str] = steps.doubts
    return found


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What was logged, warnings alone."""
    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("rerank"), "handlers", [])
    caplog.set_level(logging.WARNING, "rerank")
    return caplog


@pytest.mark.parametrize("name", ["asr", "llm"])
def test_nothing_is_said_of_the_shipped_lists(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name).changed({"features.set": "dense", "features.min_lists": 1})
    with Inputs() as inputs:
        steps: Any = experiment.check(recipe, inputs, tmp_path / "run")
        steps.extract()
    assert steps.doubts == []


def test_references_that_are_off_by_a_line_are_suspected(tmp_path: Path) -> None:
    train, dev = lines_of("train"), lines_of("dev")
    found = doubts_of(write(tmp_path, train=off_by_one(train), dev=dev, test=lines_of("test")), tmp_path)
    assert len(found) == 2
    assert found[0].startswith("train: long candidates do not go with long references (rank correlation ")
    assert found[1].startswith("train: the base is far worse than on dev: wer ")


def test_an_oracle_that_is_hardly_better_than_chance_is_suspected(tmp_path: Path) -> None:
    def unlike(lines: Lines) -> Lines:
        return [{**line, "reference": "nothing of it " * (1 + k % 4)} for k, line in enumerate(lines)]

    found = doubts_of(write(tmp_path, train=unlike(lines_of("train")), dev=lines_of("dev")), tmp_path, tests=[])
    assert any("the oracle is hardly better than a random candidate (wer " in line for line in found)


def written(lines: Lines, change: Callable[[str], str], *, right: Callable[[str], str] = str) -> Lines:
    """Lists whose candidates, and references, are written in another way."""
    return [
        {**line, "reference": right(line["reference"]),
         "candidates": [{**one, "text": change(one["text"])} for one in line["candidates"]]}
        for line in lines
    ]  # fmt: skip


def marked(text: str) -> str:
    return f"{text.replace(' ', ', ').capitalize()}."


def accented(text: str) -> str:
    return text.replace("e", "é")


def kana(text: str) -> str:
    return "".join(chr(0x3042 + ord(letter) % 80) for letter in text if letter != " ")


@pytest.mark.parametrize(
    ("change", "right", "found", "advice"),
    [
        (str.upper, str, "without capitals ", "--metric '{name: wer, normalize: {case: true}}'"),
        (str.upper, marked, "without capitals and punctuation marks ", "{case: true, marks: true}"),
        (accented, lambda text: normalize("NFD", accented(text)), "in Unicode's form NFKC ", "{nfkc: true}"),
        (lambda text: "▁" + " ▁".join(text.split()), str, "with word pieces joined ", "join them"),
    ],
)
def test_ways_to_write_that_references_do_not_share_are_named(
    change: Callable[[str], str], right: Callable[[str], str], found: str, advice: str, tmp_path: Path, rerank: Command
) -> None:
    lines = written(lines_of("test"), change, right=right)
    place = write(tmp_path, test=lines, train=lines)
    for warned in (
        "".join(rerank("oracle", "--reader", "jsonl", "--metric", "wer", place / "test.jsonl")[1:]),
        "".join(rerank("weigh", place / "test.jsonl", "--metric", "wer", "--resamples", "2", "--restarts", "0")[1:]),
        "\n".join(doubts_of(place, tmp_path, dev=None, tests=["test"])),
    ):
        assert f"tokens, {found}" in warned
        assert advice in warned
        assert "off by a line" not in warned


def test_pipes_are_checked_too(tmp_path: Path) -> None:
    text = "".join(f"{json.dumps(line)}\n" for line in written(lines_of("test"), str.upper))
    place = write(tmp_path, train=lines_of("train"))
    os.mkfifo(place / "test.jsonl")
    thread = threading.Thread(target=(place / "test.jsonl").write_text, args=(text,))
    thread.start()
    (line,) = doubts_of(place, tmp_path, dev=None)
    thread.join()
    assert "test: " in line
    assert "No candidate has 100 % of the references' tokens, without capitals 3 %" in line


def test_advice_is_what_the_metric_takes_and_adds_to_what_it_does(tmp_path: Path, rerank: Command) -> None:
    place = write(tmp_path, test=written(lines_of("test"), str.upper, right=marked))
    for metric, advice in (
        ("{name: match, normalize: {case: true}}", "(--metric '{name: match, normalize: {case: true, marks: true}}')"),
        ("bleu", "--metric '{name: bleu, lowercase: true}'); bring lists and references to this form"),
    ):
        assert advice in rerank("oracle", place / "test.jsonl", "--reader", "jsonl", "--metric", metric).out


def test_texts_without_blanks_are_measured_by_characters(tmp_path: Path, rerank: Command) -> None:
    place = write(tmp_path, test=written(lines_of("test"), kana, right=kana))
    wer, cer = (
        rerank("oracle", place / "test.jsonl", "--reader", "jsonl", "--metric", name) for name in ("wer", "cer")
    )
    assert "by characters 0 %: no blanks tell words apart: set metric: cer" in wer.out
    assert "characters" not in cer.out


def test_lists_that_two_splits_share_are_counted(tmp_path: Path) -> None:
    train, test = lines_of("train"), lines_of("test")
    copied = [{**line, "id": f"other {k}"} for k, line in enumerate(train[:20])]
    place = write(tmp_path, train=train, dev=lines_of("dev"), test=test + copied, train2=train)
    (line,) = doubts_of(place, tmp_path)
    assert line.startswith(f"test: 20 of {len(test) + 20} lists are training lists; ")
    assert doubts_of(place, tmp_path, tests=["train"]) == []  # which says so itself
    (line,) = doubts_of(place, tmp_path, tests=["train2"])
    assert line.startswith(f"train2: {len(train)} of {len(train)} lists ")


def test_lists_of_the_same_inputs_by_another_system_are_suspected(tmp_path: Path) -> None:
    train = lines_of("train")
    other = [{**line, "candidates": line["candidates"][1:]} for line in train]
    named = [{**line, "id": f"utt {k}"} for k, line in enumerate(train)]
    renamed = [{**line, "id": f"utt {k}"} for k, line in enumerate(other[len(other) // 3 :])]
    place = write(tmp_path, train=named, dev=lines_of("dev"), test=renamed, numbered=other)
    assert doubts_of(place, tmp_path) == [
        "test: the lists have the ids of training lists: are these systems to merge, and not splits?"
    ]


def test_columns_of_a_test_file_are_compared_with_those_of_training(tmp_path: Path) -> None:
    place = write(tmp_path, train=lines_of("train"), dev=lines_of("dev"), test=negative(lines_of("test")))
    (line,) = doubts_of(place, tmp_path)
    assert line.startswith("test: the score column 'lm' is unlike that of the training lists: mean ")
    assert "correlation with the base score" in line


def test_evaluate_names_training_lists_and_columns(tmp_path: Path, told: pytest.LogCaptureFixture) -> None:
    place = write(tmp_path, train=lines_of("train"), test=lines_of("test"), negative=negative(lines_of("test")))
    train, test, turned = (rerank.read(place / f"{name}.jsonl", "jsonl") for name in ("train", "test", "negative"))
    model = rerank.fit(train, metric="wer", features="dense", epochs=1)
    told.clear()
    rerank.evaluate(model, test, samples=10)
    assert told.messages == []
    rerank.evaluate(model, train, samples=10)
    assert told.messages[0].startswith(
        f"{len(lines_of('train'))} of {len(lines_of('train'))} lists are training lists; "
    )
    told.clear()
    rerank.evaluate(model, turned, samples=10)
    assert [message.partition(" is ")[0] for message in told.messages] == ["the score column 'lm'"]
    model.save(tmp_path / "model")
    told.clear()
    rerank.evaluate(rerank.load(tmp_path / "model"), train, samples=10)
    assert len(told.messages) == 1


def test_columns_that_the_model_does_not_know_are_named_once(told: pytest.LogCaptureFixture) -> None:
    given = [{"text": text, "score": score, "columns": {"lm": score}} for text, score in (("a b", 0.5), ("b", 0.0))]
    model = rerank.fit([rerank.NBest(str(i), given, gains=[0, 1]) for i in range(12)], features="dense", epochs=1)
    told.clear()
    more = [{**one, "columns": {"lm": 0.0, "rm": 1.0}} for one in given]
    for _ in range(3):
        assert model.best(more)["text"] in ("a b", "b")
    assert told.messages == ["score columns that the model does not know: 'rm'; it has 'score', 'lm'"]
    model.rank(given)
    assert len(told.messages) == 1


def test_frames_have_the_base_score_of_training(told: pytest.LogCaptureFixture) -> None:
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("narwhals")
    rows = [
        {"q": f"{i}", "a": "xyz"[y], "right": float(y == i % 3), "rm": (i + y) % 3 - y}
        for i in range(30)
        for y in range(3)
    ]
    frame = pd.DataFrame(rows)
    names: Any = {"group": "q", "text": "a"}
    model = rerank.fit(frame, gain="right", score="rm", features="base", epochs=1, **names)
    with pytest.raises(rerank.RerankError, match=r"the data frame has no column 'rm'"):
        model.score_frame(frame.drop(columns="rm"))
    lists = [rerank.NBest("a", [("x", 1.0), ("y", 0.0)], gains=[1, 0])] * 12
    other = rerank.fit(lists, features="base", epochs=1)
    with pytest.raises(rerank.RerankError, match=r"no column of base scores, 'score' of the training lists; name it"):
        other.score_frame(frame, **names)
    told.clear()
    other.score_frame(frame, score="rm", columns=["right"], **names)
    assert told.messages == ["score columns that the model does not know: 'right'; it has 'score'"]
