"""What a run doubts: splits that share lists, references, columns, and a base that chooses worse than chance."""

import json
import logging
import os
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from types import SimpleNamespace
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest
import small
import yaml
from commands import Command

import rerank
from rerank.recipes.loading import load_recipe, read_settings
from rerank.runs import experiment
from rerank.runs.compared import doubts_of_base
from rerank.runs.vote import table_of_votes
from rerank.runs.weigh import table_of_weights
from rerank.storage.streams import Inputs

SHIPPED = Path(__file__).parents[2] / "data"
Lines = list[dict[str, Any]]


def lines_of(split: str, count: int = 150) -> Lines:
    """The first transcripts of a split."""
    return [*map(json.loads, small.lines_of(SHIPPED / "asr" / f"{split}.jsonl.gz")[:count])]


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
    recipe = load_recipe(name).change({"features.set": "dense", "features.min_lists": 1})
    with Inputs() as inputs:
        steps: Any = experiment.check(recipe, inputs, tmp_path / "run")
        steps.extract()
    assert steps.doubts == []


def test_references_that_are_off_by_a_line_are_suspected(tmp_path: Path) -> None:
    train, dev = lines_of("train", 400), lines_of("dev")
    found = doubts_of(write(tmp_path, train=off_by_one(train), dev=dev, test=lines_of("test")), tmp_path)
    assert len(found) == 1
    assert found[0].startswith("train: long candidates do not go with long references (rank correlation ")


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
    lines = written(lines_of("test")[:50], change, right=right)
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
    train, dev, test = (lines_of(split)[:50] for split in ("train", "dev", "test"))
    copied = [{**line, "id": f"other {k}"} for k, line in enumerate(train[:20])]
    place = write(tmp_path, train=train, dev=dev, dev2=dev, test=test + copied, train2=train)
    (line,) = doubts_of(place, tmp_path)
    assert line.startswith(f"test: 20 of {len(test) + 20} lists are training lists; ")
    for again in ("train", "train2"):
        (line,) = doubts_of(place, tmp_path, tests=[again])
        assert line.startswith(f"{again}: {len(train)} of {len(train)} lists are training lists; ")
    for tests in (["dev"], ["dev2"]):
        (line,) = doubts_of(place, tmp_path, tests=tests)
        assert line.startswith(f"{tests[0]}: {len(dev)} of {len(dev)} lists are those of dev, where choices are made; ")


def test_lists_of_the_same_inputs_by_another_system_are_suspected(tmp_path: Path) -> None:
    train = lines_of("train")
    other = [{**line, "candidates": line["candidates"][1:]} for line in train]
    named = [{**line, "id": f"utt {k}"} for k, line in enumerate(train)]
    renamed = [{**line, "id": f"utt {k}"} for k, line in enumerate(other[len(other) // 3 :])]
    place = write(tmp_path, train=named, dev=lines_of("dev"), test=renamed, numbered=other)
    assert doubts_of(place, tmp_path) == [
        "test: the lists have the ids of training lists: are these systems to merge, and not splits?"
    ]


def test_a_rule_that_finds_no_answer_is_named(tmp_path: Path, told: pytest.LogCaptureFixture) -> None:
    place = write(tmp_path, **{split: lines_of(split)[:30] for split in ("train", "dev", "test")})
    doubts_of(place, tmp_path, answer="text")
    assert not [line for line in told.messages if "no candidate has an answer" in line]
    doubts_of(place, tmp_path, answer="boxed")
    assert "test: no candidate has an answer by the rule boxed; see data.answer" in told.messages


def test_columns_of_a_test_file_are_compared_with_those_of_training(tmp_path: Path) -> None:
    place = write(tmp_path, train=lines_of("train"), dev=lines_of("dev"), test=negative(lines_of("test")))
    (line,) = doubts_of(place, tmp_path)
    assert line.startswith("test: the score column 'lm' is unlike that of the training lists: mean ")
    assert "correlation with the base score" in line


def test_evaluate_names_training_lists_and_columns(tmp_path: Path, told: pytest.LogCaptureFixture) -> None:
    place = write(tmp_path, train=lines_of("train")[:100], test=lines_of("test"), negative=negative(lines_of("test")))
    train, test, turned = (rerank.read(place / f"{name}.jsonl", "jsonl") for name in ("train", "test", "negative"))
    model = rerank.fit(train, metric="wer", features="dense", epochs=1)
    told.clear()
    rerank.evaluate(model, test, samples=10)
    assert told.messages == []
    rerank.evaluate(model, train, samples=10)
    assert told.messages[0].startswith("100 of 100 lists are training lists; ")
    told.clear()
    rerank.evaluate(model, turned, samples=10)
    assert [message.partition(" is ")[0] for message in told.messages] == ["the score column 'lm'"]
    model.save(tmp_path / "model")
    told.clear()
    rerank.evaluate(rerank.load(tmp_path / "model"), train, samples=10)
    assert len(told.messages) == 1


def test_evaluate_doubts_what_runs_doubt(told: pytest.LogCaptureFixture) -> None:
    test = lines_of("test")
    capitals = [{**line, "reference": line["reference"].upper()} for line in test]
    costs = [{**line, "candidates": [{**one, "score": -one["score"]} for one in line["candidates"]]} for line in test]
    for lines, expected, withheld in (
        (test, "", False),
        (off_by_one(lines_of("train", 400)), "off by a line?", False),
        (capitals, "without capitals 3 %", True),
        (costs, "nothing is claimed against it", True),
    ):
        told.clear()
        result = rerank.evaluate([0] * len(lines), lines, "wer", samples=10)
        assert [expected in message for message in told.messages if "lowest base score" not in message] == [True] * (
            expected != ""
        )
        assert (expected in str(result).partition("lists")[0]) == (withheld or not expected)
        assert (result.results.as_data()[-1]["p"] is None) == withheld


def test_gains_that_tell_no_candidates_apart_are_doubted(told: pytest.LogCaptureFixture) -> None:
    for gains, doubted in (([0, 0], True), ([0.1, 0.1], True), ([0, 1], False)):
        told.clear()
        rerank.evaluate([0] * 9, [rerank.NBest(f"{k}", ["a", "b"], gains=gains) for k in range(9)], samples=10)
        message = "the candidates of each list have the same gain; is it that of these lists?"
        assert told.messages == [message] * doubted


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


WORDS = ["the", "ship", "left", "harbour", "before", "dawn", "with", "twelve", "old", "men", "on", "board"]


def write_costs(path: Path, count: int, seed: int) -> Path:
    """Transcripts with costs, of which the lowest is the best, in four of five lists in the order of these."""
    rng, lines = np.random.default_rng(seed), []
    for i in range(count):
        said = [str(word) for word in rng.choice(WORDS, 8, replace=False)]
        wrong = [said[: 8 - k] + ["x"] * int(rng.random() < 0.9) for k in range(5)]
        wrong[0] = said if rng.random() < 0.8 else wrong[0]
        rows = [{"text": " ".join(each), "score": 20 + k + rng.random()} for k, each in enumerate(wrong)]
        if i % 5 == 4:
            rng.shuffle(rows)
        lines.append(json.dumps({"id": f"{seed}-{i}", "reference": " ".join(said), "candidates": rows}))
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("seed", range(30))
def test_the_doubt_is_that_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4, 12)
    lists, shift = np.concatenate([[0], np.cumsum(sizes)]), rng.normal(scale=0.5)
    gain = rng.random(lists[-1])
    base = shift * gain + rng.normal(scale=0.1, size=gain.size)
    gain[lists[:-1][sizes > 0]] += rng.random() / 4
    found = list[list[float]]([[], []])
    for first, last in pairwise(lists):
        if first < last:
            chosen = max(range(first, last), key=lambda y: (base[y], -y))
            found[0].append(gain[first] - gain[chosen])
            found[1].append(mean(gain[first:last]) - gain[chosen])
    found = [apart + apart for apart in found]  # the pieces are all lists, twice
    worse = [mean(apart) > 2 * stdev(apart) / len(apart) ** 0.5 for apart in found]
    corpus: Any = SimpleNamespace(lists=lists, gain=gain, base=base)
    said = "".join(doubts_of_base("am", {}, [corpus] * 2))
    assert ("the first candidate" in said, "a random one" in said) == (worse[0], worse[1])
    assert ("'am'" in said) == any(worse)


@pytest.mark.parametrize("count", [8, 60])
def test_weighing_and_votes(tmp_path: Path, count: int, rerank: Any) -> None:
    """Nothing is said to help until the user says what the column is; with ``-q`` as without."""
    path = write_costs(tmp_path / "lists.jsonl", count, 1)
    few = ("--metric", "wer", "--samples", "200")
    found = rerank("--quiet", "weigh", path, *few, "--resamples", "2", "--restarts", "0")
    assert "The best is " not in found.out
    assert found.out.index(" base ") < found.out.index(" first ")
    for told in (found.out, rerank("vote", path, *few).out):
        assert -1 < told.find("scores: cost") < told.find(f"{count} lists"), told
    for role, words in (("score", "The best is "), ("cost", "Nothing is better")):
        how = ("--reader", f"{{name: jsonl, scores: {role}}}")
        told = rerank("weigh", path, *few, "--resamples", "2", "--restarts", "0", *how).out
        assert ("scores: cost" in told, words in told) == (False, True), told
        assert ("first" in told) == (role == "score" or count == 60)


def test_lists_without_a_score_have_no_base_to_doubt(caplog: pytest.LogCaptureFixture) -> None:
    """The first candidate is the base there, and may well be worse than a random one; it has no row of its own."""
    rows = [{"text": text, "gain": gain} for text, gain in zip("abc", (0, 1, 1), strict=True)]
    given = [{"candidates": [row | {"x": row["gain"] + i % 3} for row in rows]} for i in range(10)]
    assert table_of_votes(list(rerank.read(given)), samples=20).source.doubt == ""
    table = table_of_weights(list(rerank.read(given)), samples=20, resamples=2, restarts=0)
    assert (table.source.doubt, "first" in table.rows) == ("", False)
    with caplog.at_level(logging.WARNING, "rerank"):
        rerank.fit(rerank.read(given), features="dense")
    assert "nothing is claimed" not in caplog.text


def test_runs(tmp_path: Path, rerank: Any) -> None:
    for number, split in enumerate(("train", "dev", "test")):
        write_costs(tmp_path / f"{split}.jsonl", 40, number)
    recipe = {
        "task": "speech", "metric": "wer", "features": {"set": "dense"}, "learner": {"name": "perceptron"},
        "data": {"root": str(tmp_path), "nbest": "{root}/{split}.jsonl"},
    }  # fmt: skip
    for role, doubted in ((None, True), ("score", False)):
        recipe["data"]["reader"] = {} if role is None else {"scores": role}  # type: ignore[index]
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
        done = rerank("--quiet", "run", tmp_path / "recipe.yaml", "-o", tmp_path / f"run-{role}")
        assert done.code == 0, done
        assert ("scores: cost" in done.out, "better" in done.out) == (doubted, not doubted), done.out
        assert "first candidate" in done.out
        metrics = json.loads((tmp_path / f"run-{role}" / "metrics.json").read_text())
        assert ("base_doubt" in metrics, any(metrics["significance"].values())) == (doubted, not doubted)
        assert metrics["splits"]["test"]["first"]["wer"] < metrics["splits"]["test"]["base"]["wer"]
        beside = rerank("compare", tmp_path / f"run-{role}", tmp_path / f"run-{role}", "--samples", "100")
        assert ("scores: cost" in beside.out) == doubted
        found = json.loads(rerank("compare", *[tmp_path / f"run-{role}"] * 2, "--samples", "100", "--json").out)
        assert (found["splits"]["test"]["p"] is None) == doubted


def test_training_lists_that_can_be_read_once(tmp_path: Path, rerank: Any) -> None:
    """Doubts look at the texts of lists again: not at those of a pipe."""
    lists = write_costs(tmp_path / "lists.jsonl", 40, 5).read_bytes()
    for split in ("dev", "test"):
        (tmp_path / f"{split}.jsonl").write_bytes(lists)
    os.mkfifo(tmp_path / "train.jsonl")
    writer = threading.Thread(target=(tmp_path / "train.jsonl").write_bytes, args=(lists,), daemon=True)
    writer.start()
    data = {"root": str(tmp_path), "nbest": "{root}/{split}.jsonl", "reader": {"scores": "cost"}}
    recipe = {"task": "speech", "features": {"set": "dense"}, "learner": {"name": "perceptron"}, "data": data}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    done = rerank("run", tmp_path / "recipe.yaml", "-o", tmp_path / "run")
    assert done.code == 0, done
    writer.join()


def test_evaluation_has_a_row_of_the_first_candidates(tmp_path: Path) -> None:
    path = write_costs(tmp_path / "lists.jsonl", 40, 4)
    lists = list(rerank.read(path, "jsonl"))
    found = rerank.evaluate([0] * len(lists), lists, "wer", samples=20)
    assert found.scores["first"] == found.scores["choice"] != found.scores["base"]
    assert "first" in str(found)
    in_order = [{"candidates": [{"text": "a", "gain": 1, "score": 1}, {"text": "b", "gain": 0, "score": 0}]}] * 3
    assert "first" not in rerank.evaluate([0] * 3, list(rerank.read(in_order)), samples=20).scores


def lists(gains: list[float], texts: tuple[str, ...] = ("a", "b", "b"), count: int = 12) -> list[Any]:
    numbers = [{"reward": 0.1}, {"reward": 0.5}, {"reward": 0.5}]
    candidates = [
        {"text": text, "score": 0.5 * k, "columns": own}
        for k, (text, own) in enumerate(zip(texts, numbers, strict=True))
    ]
    return [rerank.NBest(id=f"list {i}", candidates=candidates, gains=gains) for i in range(count)]


def test_gains_that_are_all_alike_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rerank"):
        rerank.fit(lists([0.0, 0.0, 0.0]), features="dense", learner={"name": "perceptron", "base": 1}, epochs=1)
    assert "nothing to learn from 12 training lists: in each, all candidates are equally good" in caplog.text


def test_weights_of_no_size_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rerank"):
        rerank.fit(
            lists([1.0, 0.0, 0.0]), learner={"name": "vrda", "eta": 1e300, "base": 1.0}, features="dense", epochs=1
        )
        assert "nothing was learned: all weights are 0" in caplog.text
        caplog.clear()
        rerank.fit(lists([1.0, 0.0, 0.0]), learner={"name": "vrda", "base": 1.0}, features="dense", epochs=1)
        assert "nothing was learned" not in caplog.text


def test_repeated_candidates_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """But rows of numbers without a text repeat nothing."""
    with caplog.at_level(logging.WARNING, logger="rerank"):
        rerank.fit(lists([1.0, 0.0, 0.0]), features="dense")
        assert "train: 12 of 36 candidates repeat another of their list" in caplog.text
        caplog.clear()
        rerank.fit(lists([1.0, 0.0, 0.0], texts=("", "", "")), features="dense")
        assert "repeat another" not in caplog.text


def test_ties_of_the_base_are_broken_by_what_was_learned(caplog: pytest.LogCaptureFixture) -> None:
    """Though no list held out was chosen from better than by the base: where that differs, it decides."""

    def candidate(base: float, reward: float) -> dict[str, Any]:
        return {"text": f"{base} {reward}", "score": base, "columns": {"reward": reward}}

    every = [
        rerank.NBest(
            id=str(i), candidates=[candidate(1, 0.6 + 0.01 * (i % 7)), candidate(1, 0.5), candidate(0, 0.1)],
            gains=[1.0, 1.0, 0.0],
        )
        for i in range(40)
    ]  # fmt: skip
    with caplog.at_level(logging.WARNING, logger="rerank"):
        model = rerank.fit(every, features="dense")
    assert "nothing that was learned beats the base score" in caplog.text
    assert model.rank([candidate(1, 0.1), candidate(1, 0.9)]).text == "1 0.9"
    assert model.rank([candidate(0, 0.9), candidate(1, 0.1)]).text == "1 0.1"
