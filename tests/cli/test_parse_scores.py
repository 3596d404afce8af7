"""Scores of parses in commands, failed parses, and base scores with or without a model."""

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import yaml
from commands import Command, failed, refused
from pairs import read_pairs

from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval import Parseval
from rerank.models.model import Model
from rerank.readers.reader import Lists
from rerank.readers.trees.charniak import CharniakReader
from rerank.runs import experiment

NOISE = 0.05  # standard deviation of the second score around the gain
JOINED: dict[str, Any] = {
    "nbest": "{root}/{split}.nbest.gz,{root}/{split}.scores",
    "reader": {"name": "joined", "of": {"name": "charniak"}},
}
MERGED: dict[str, Any] = {
    "nbest": "{root}/{split}.first,{root}/{split}.second",
    "reader": {"name": "merged", "of": [{"name": "charniak", "ids": "ordinal"}, {"name": "berkeley"}]},
}


def write_task(root: Path) -> None:
    """For every split the lists; ``scores``, the gain with noise; ``first`` and ``second``, which have a candidate in
    common: one parser has those in even places and their base scores, another the first and the rest with the gain."""
    small.write_slices(root)
    rng, measure = np.random.default_rng(7), Parseval()
    for split in small.SIZES:
        rows, first, second = ["# quality"], [], []
        paths = root / f"{split}.nbest.gz", root / f"{split}.gold.gz"
        symbols = SymbolTable()
        for nbest, trees, gold in read_pairs(CharniakReader(), *paths, symbols):
            own, stats = measure.stats(gold, trees, symbols)
            gain = measure.gain(stats, np.broadcast_to(own, (len(nbest), own.size)))
            quality = (gain + rng.normal(0.0, NOISE, len(nbest))).tolist()
            rows += map(repr, quality)
            found = list(zip(nbest.base.tolist(), nbest.texts, strict=True))
            even, rest = found[::2], [0, *range(1, len(found), 2)]
            first.append(
                "\n".join([f"{len(even)}\t{nbest.id}", *(f"{score}\n{text.decode()}" for score, text in even)])
            )
            other = (found[i][1].decode().replace("(S1 ", "(TOP  ", 1) for i in rest)
            second.append("\n".join(f"{quality[i]}\t{text}" for i, text in zip(rest, other, strict=True)))
        (root / f"{split}.scores").write_text("\n".join(rows) + "\n")
        small.write_lists(root / f"{split}.first", first)
        small.write_lists(root / f"{split}.second", second)


COLUMNS = {"joined": {"Dense|quality"}, "merged": {"Dense|score_2", "Dense|system_1", "Dense|system_2"}}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("parsers")
    write_task(root)
    return root


def recipe(root: Path, lists: dict[str, Any], **changes: Any) -> Any:
    templates = {"set": None, "templates": [*small.TEMPLATES, "Dense"]}
    return small.recipe(root, **{"data": lists, "features": templates, **changes})


@pytest.fixture(scope="module")
def runs(data: Path, workspace: Path) -> dict[str, Path]:
    """The outputs of runs over both."""
    found = {name: workspace / "parsers" / name for name in COLUMNS}
    for name, lists in (("joined", JOINED), ("merged", MERGED)):
        experiment.run(recipe(data, lists), found[name])
    return found


def files_of(lists: dict[str, Any], root: Path, split: str = "test") -> str:
    return str(lists["nbest"].format(root=root, split=split))


def read(path: Path) -> list[Lists]:
    return [nbest for nbest in CharniakReader().read(path) if nbest.problem is None]


@pytest.mark.parametrize("name", COLUMNS)
def test_a_good_second_score_is_used_and_is_a_free_column(name: str, runs: dict[str, Path]) -> None:
    metrics, model = small.results(runs[name]), Model.load(runs[name] / "model")
    table = model.table
    assert {table.name(j) for j in range(table.free)} == COLUMNS[name] == set(metrics["logistic"]["weights"]) - {"base"}
    assert np.all(np.abs(table.scale - 1.0) > 0.01)  # standardised
    best = "Dense|quality" if name == "joined" else "Dense|score_2"
    (column,) = (j for j in range(table.width) if table.name(j) == best)
    assert model.weights["average"].w[column] > 0
    test = metrics["splits"]["test"]
    oracle, base = metrics["corpora"]["test"]["statistics"]["oracle"]["f1"], test["base"]["f1"]
    if name == "joined":  # merged, the second score is the base score of the second parser: the base chooses by it
        assert test["average"]["f1"] - base > 0.5 * (oracle - base)


@pytest.mark.parametrize(("name", "lists"), [("joined", JOINED), ("merged", MERGED)])
def test_the_model_ranks_other_lists_as_the_run_did(
    name: str, lists: dict[str, Any], data: Path, runs: dict[str, Path], tmp_path: Path, rerank: Command
) -> None:
    done = rerank("rank", runs[name] / "model", files_of(lists, data), "--n-best", 100, "-o", tmp_path / "ranked")
    assert done.code == 0, done
    predicted = read(runs[name] / "predictions" / "test.nbest.gz")
    for own, other in zip(read(tmp_path / "ranked"), predicted, strict=True):  # in another order where scores are equal
        assert (own.texts[0], sorted(own.texts)) == (other.texts[0], sorted(other.texts))
        np.testing.assert_allclose(own.base, other.base, rtol=1e-6)
    assert predicted[0].scores.shape[1] == 2  # the new score and the base score: what is joined is not written
    shown = rerank("inspect", runs[name] / "model").out
    assert all(column.partition("|")[2] in shown for column in COLUMNS[name])
    first = next(iter(predicted)).id
    explained = rerank("explain", runs[name] / "model", files_of(lists, data), "--list", first)
    assert explained.code == 0, explained
    measured = rerank("oracle", files_of(lists, data), data / "test.gold.gz", "--reader", json.dumps(lists["reader"]))
    assert measured.code == 0, measured
    with_gold = rerank(
        "explain", runs[name] / "model", files_of(lists, data), "--list", first, "--gold", data / "test.gold.gz"
    )
    assert with_gold.code == 0, with_gold


def test_what_does_not_fit_is_refused(data: Path, runs: dict[str, Path], tmp_path: Path, rerank: Command) -> None:
    lists, scores, model = data / "test.nbest.gz", tmp_path / "test.scores", runs["joined"] / "model"
    rows = (data / "test.scores").read_text().splitlines(keepends=True)
    refused(rerank("rank", model, lists, "--reader", "charniak"), "list", "no score column 'quality'", "training")
    for changed, said in (
        (["# lm\n", *rows[1:]], "expected score, quality"),
        ([*rows[:-1], "1e39\n"], "exceeds 3.4e+38"),
    ):
        scores.write_text("".join(changed))
        refused(rerank("rank", model, f"{lists},{scores}", "-o", tmp_path / "out"), said)
    assert not (tmp_path / "out").exists()


GOLD = ["(S (NP (N dogs)) (VP (V bark)))", "(S (NP (N cats)) (VP (V sleep)))", "(S (NP (N pigs)) (VP (V fly)))"]
FAILED = {
    "an empty line": ("", 2),
    "empty brackets": ("(())", 2),
    "a root": ("(S1)", 2),
    "another word": ("(S (NP (N cats)) (VP (V sleeps)))", 1),
    "fewer words": ("(S (NP (N cats)))", 1),
    "more words": ("(S (NP (N cats)) (VP (V sleep) (ADV well)))", 1),
}


def listing(name: str, texts: list[str]) -> str:
    """A list in the format of Charniak's parser."""
    return f"{len(texts)}\t{name}\n" + "".join(f"-{i}\n{text}\n" for i, text in enumerate(texts)) + "\n"


def cells(out: str, row: str) -> list[str]:
    """The cells of a row of a table."""
    line = next(line for line in out.splitlines() if re.match(rf" +{row}  ", line))
    return line.strip().removeprefix(row).split()


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold"
    path.write_text("".join(f"{tree}\n" for tree in GOLD))
    return path


@pytest.mark.parametrize("name", FAILED)
def test_the_rest_of_a_file_is_scored(name: str, gold: Path, tmp_path: Path, rerank: Command) -> None:
    text, status = FAILED[name]
    (tmp_path / "test").write_text(f"{GOLD[0]}\n{text}\n{GOLD[2]}\n")
    result = rerank("evaluate", tmp_path / "test", gold, "--sentences")
    assert result.code == 0, result
    assert [line.split()[2] for line in result.out.splitlines()[3:6]] == ["0", str(status), "0"]
    counts = [cells(result.out, key)[0] for key in ("sentences", "refused", "skipped", "valid")]
    assert counts == ["3", str(int(status == 1)), str(int(status == 2)), "2"]
    assert cells(result.out, "recall") == ["100.00"]  # the brackets of the sentence's gold tree are not missed
    said = f"1 sentence in error, left out of the scores; the first: {tmp_path / 'test'}:2: "
    assert (said in result.err) == (status == 1)


@pytest.mark.parametrize("name", [name for name in FAILED if name != "an empty line"])
def test_lists_are_measured_as_their_choices_would_be(name: str, gold: Path, tmp_path: Path, rerank: Command) -> None:
    text, status = FAILED[name]
    lists = [listing("a", [GOLD[0]]), listing("b", [text, GOLD[1]]), listing("c", [text, text])]
    (tmp_path / "nbest").write_text("".join(lists))
    result = rerank("oracle", tmp_path / "nbest", gold)
    assert result.code == 0, result
    assert cells(result.out, "base") == ["100.00", "100.00", "100.00", "100.00", "1"]
    assert cells(result.out, "oracle")[4] == "2"
    assert ("1 list without a candidate that has the words of its gold tree" in result.err) == (status == 1)
    assert (f"first: {tmp_path / 'nbest'}:11: list c: " in result.err) == (status == 1)


def test_lists_of_other_sentences_are_refused_unless_max_error_says_otherwise(tmp_path: Path, rerank: Command) -> None:
    (tmp_path / "nbest").write_text("".join(listing(str(i), [GOLD[i % 2]]) for i in range(12)))
    (tmp_path / "gold").write_text("".join(f"{GOLD[(i + 1) % 2]}\n" for i in range(12)))
    command = "oracle", tmp_path / "nbest", tmp_path / "gold"
    said = "12 of 12 sentences have other words", "nbest:1: list 0: ", "'dogs'", "in the same order?"
    failed(rerank(*command), 2, *said)
    assert rerank(*command, "--metric", "{name: parseval, max_error: 11}").code == 0
    (tmp_path / "own.prm").write_text("MAX_ERROR 10\n")
    failed(rerank(*command, "--metric", f"{{name: parseval, prm: {tmp_path / 'own.prm'}}}"), 2, "MAX_ERROR is 10")
    (tmp_path / "own.prm").write_text("MAX_ERROR 11\n")
    assert rerank(*command, "--metric", f"{{name: parseval, prm: {tmp_path / 'own.prm'}}}").code == 0


def test_a_parameter_file_implies_the_rule_for_punctuation(tmp_path: Path, rerank: Command) -> None:
    (tmp_path / "own.prm").write_text("DELETE_LABEL :\n")
    (tmp_path / "gold").write_text("(S (N a) (: -))\n")
    (tmp_path / "test").write_text("(S (N a) (: ;) (: -))\n")
    command = "evaluate", tmp_path / "test", tmp_path / "gold"
    found = rerank(*command, "--metric", f"{{name: parseval, prm: {tmp_path / 'own.prm'}}}")
    assert "parseval|punctuation:evalb|" in found.out
    assert cells(found.out, "valid")[0] == "1"
    for metric in ("parseval", f"{{name: parseval, prm: {tmp_path / 'own.prm'}, punctuation: reference}}"):
        found = rerank(*command, "--metric", metric)
        assert "parseval|punctuation:reference|" in found.out
        assert cells(found.out, "valid")[0] == "0"


def test_a_run_over_failed_parses_says_what_evaluate_says(small_data: Path, tmp_path: Path, rerank: Command) -> None:
    """Lists without candidates, failed parses and lists of other words, in training and in evaluation."""
    for split in ("train", "dev", "test"):
        lists, golds = (
            read(small_data / f"{split}.{kind}.gz")
            for kind, read in (("nbest", small.lists_of), ("gold", small.golds_of))
        )
        lists[0] = "0\tnone"
        lists[1] = lists[1].rpartition("\n")[0] + "\n(())"
        lists[2] = "2\tfailed\n-1\n(S1)\n-2\n(())"
        golds[3] = "(S1 (NN other) (NN words))"
        lists[4] += "\n-999\n(S1 (NN other))"
        lists[4] = re.sub(r"^\d+", lambda found: str(int(found[0]) + 1), lists[4])
        small.write_lists(tmp_path / f"{split}.nbest.gz", lists)
        small.write_golds(tmp_path / f"{split}.gold.gz", golds)
    recipe = small.recipe(tmp_path, examples=40)
    metrics = experiment.run(recipe, tmp_path / "run")
    assert metrics["corpora"]["train"]["refused"] == metrics["corpora"]["test"]["refused"] == 1
    assert (metrics["corpora"]["test"]["lists"], metrics["corpora"]["test"]["skipped"]) == (40, {})
    report = metrics["splits"]["test"]["average"]
    assert [report[key] for key in ("sentences", "refused", "skipped", "valid")] == [40, 1, 2, 37]

    model, lists_file = tmp_path / "run" / "model", tmp_path / "test.nbest.gz"
    small.write_lists(lists_file, [one for one in small.lists_of(lists_file) if "(NN other)" not in one])
    golds = small.golds_of(tmp_path / "test.gold.gz")
    small.write_golds(tmp_path / "test.gold.gz", [*golds[:4], *golds[5:]])
    best = tmp_path / "best"
    assert rerank("rank", model, lists_file, "-o", best).code == 0
    assert best.read_text().split("\n")[0] == ""
    result = rerank("evaluate", best, tmp_path / "test.gold.gz")
    counts = [cells(result.out, key)[0] for key in ("sentences", "refused", "skipped", "valid")]
    assert counts == ["39", "1", "2", "36"]
    assert rerank("rank", model, lists_file, "--n-best", 1, "-o", tmp_path / "one").code == 0
    result = rerank("oracle", tmp_path / "one", tmp_path / "test.gold.gz")
    assert (result.code, cells(result.out, "base")[4]) == (0, "36")


LOST = "No epoch beat the base on"


def write_noise(root: Path, split: str, lists: int, seed: int, texts: int = 5) -> None:
    """Lists of random words in which the gain is what the base score says: nothing can be learned from the words."""
    draw = random.Random(seed)
    with (root / f"{split}.jsonl").open("w") as out:
        for i in range(lists):
            candidates = []
            for _ in range(texts):
                text, score = " ".join(draw.choices("abcdefgh", k=6)), draw.random()
                candidates.append({"text": text, "score": score, "gain": score})
            out.write(json.dumps({"id": f"{split} {i}", "candidates": candidates}) + "\n")


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe over few such lists."""
    root = tmp_path_factory.mktemp("noise")
    for seed, (split, lists) in enumerate({"train": 30, "dev": 20, "test": 10}.items()):
        write_noise(root, split, lists, seed)
    settings = {
        "task": "ranking",
        "data": {"root": str(root), "nbest": "{root}/{split}.jsonl"},
        "features": {"set": "text", "min_lists": 1},
        "learner": {"name": "vrda", "loss": "hinge", "update": "always"},
        "training": {"epochs": 2},
        "significance": {"samples": 100},
    }  # fmt: skip
    path = root / "noise.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def test_noise_leaves_the_base_and_says_so(noise: Path, tmp_path: Path, rerank: Command) -> None:
    done = rerank("run", noise, "-o", tmp_path / "run")
    assert done.code == 0, done
    assert sum("INFO epoch" in line and "(base " in line for line in done.err.splitlines()) == 2
    last = done.out.strip().splitlines()[-1]
    assert last.startswith(f"{LOST} dev (")
    assert last.endswith("the model is the base itself.")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    base = metrics["training"]["base"]
    assert (base["setting"], base["beaten"], base["kept"]) == ("auto", False, True)
    assert metrics["runs"][0]["dev"] == base["dev"]
    assert metrics["splits"]["test"]["average"] == metrics["splits"]["test"]["base"]
    assert LOST in (tmp_path / "run" / "report.html").read_text()
    for weights in Model.load(tmp_path / "run" / "model").weights.values():
        assert (weights.base, np.count_nonzero(weights.w)) == (1.0, 0)
    for line in small.epoch_lines(tmp_path / "run" / "history.jsonl"):
        assert line["dev_base"] == base["dev"] >= line["dev"]


def test_with_a_number_the_model_stays_and_the_run_warns(noise: Path, tmp_path: Path, rerank: Command) -> None:
    done = rerank("run", "--until", "train", noise, "--set", "learner.base=0.1", "-o", tmp_path / "run")
    assert done.code == 0, done
    assert LOST in done.out.strip().splitlines()[-1]
    assert "base: auto" in done.out
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["training"]["base"]["kept"] is False
    assert metrics["training"]["base_weight"] == 0.1
    assert metrics["training"]["nonzero_weights"] > 0


def test_without_a_dev_split_training_lists_are_held_out(noise: Path, tmp_path: Path, rerank: Command) -> None:
    done = rerank("run", noise, "--set", "data.dev=null", "-o", tmp_path / "run")
    assert done.code == 0, done
    assert "the last 3 of 30 training lists held out" in done.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["training"]["lists"] == 27
    assert metrics["dev_split"] == "held-out training lists"
    assert metrics["training"]["base"]["kept"] is True
    assert LOST in done.out.strip().splitlines()[-1]
    plain = rerank(
        "run", "--until", "train", noise, "--set", "data.dev=null", "--set", "learner.base=1", "-o", tmp_path / "all"
    )
    assert "held out" not in plain.err
    assert json.loads((tmp_path / "all" / "metrics.json").read_text())["training"]["lists"] == 30


def test_one_list_cannot_be_held_out(noise: Path, tmp_path: Path, rerank: Command) -> None:
    write_noise(tmp_path, "train", 1, 1)
    few = ("--set", f"data.root={tmp_path}", "--set", "data.dev=null", "--set", "data.tests=[]")
    refused(rerank("run", "--until", "train", noise, *few, "-o", tmp_path / "run"), "1 training list ", "data.dev")
    refused(rerank("run", "--until", "train", noise, "--set", "learner.base=automatic", "-o", tmp_path / "run"), "auto")


def test_a_missing_dev_file_is_not_made_up_for_by_a_test_file(noise: Path, tmp_path: Path, rerank: Command) -> None:
    for name in ("train", "test", "tost", "ood"):
        (tmp_path / f"{name}.jsonl").write_bytes((noise.parent / "train.jsonl").read_bytes())
    for tests in ("[test]", "[]", "[test, ood, tost]"):
        refuse = ("--set", f"data.root={tmp_path}", "--set", f"data.tests={tests}", "--set", "data.dev=tast")
        done = rerank("run", "--until", "train", noise, *refuse, "-o", tmp_path / "run")
        refused(done, "tast.jsonl", "no such file", "`data.dev: null` trains without a dev split")
        assert "/test.jsonl" not in done.err
        assert ("/tost.jsonl" in done.err) == (tests != "[test, ood, tost]")
    missing = ("--set", f"data.root={tmp_path}", "--set", "data.tests=[tests]", "--set", "data.dev=null")
    refused(
        rerank("run", "--until", "train", noise, *missing, "-o", tmp_path / "run"),
        "tests.jsonl",
        f"did you mean {tmp_path}/test.jsonl?",
    )
