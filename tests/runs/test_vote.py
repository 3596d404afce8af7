"""``rerank vote``: ways to choose the best of n, beside twins of a few lines, from the command line and in Python."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rerank
from rerank import evaluate, fit, read
from rerank.base.errors import DataError, RecipeError
from rerank.runs.vote import ANY, MAJORITY, load_source, softmax, table_of_votes, vote_winners


def lists_of(count: int = 60, seed: int = 0) -> list[dict[str, Any]]:
    """Samples whose right answers agree, with a column that knows a part, and one that knows nothing; some lack one."""
    rng, lists = np.random.default_rng(seed), list[dict[str, Any]]()
    for i in range(count):
        given = list[dict[str, Any]]()
        for _ in range(int(rng.integers(1, 7))):
            right = rng.random() < 0.5
            wrong = None if rng.random() < 0.2 else str(rng.integers(1, 4))
            numbers = {"score": float(rng.normal()), "reward": float(right + rng.normal())}
            given.append({"text": "a", "answer": "0" if right else wrong, "gain": float(right), **numbers})
        lists.append({"id": f"q{i}", "candidates": given})
    return lists


def test_votes_are_those_of_a_counter() -> None:
    lists = lists_of()
    samples = load_source(list(rerank.read(lists)), None, None, 5, 1)
    weight = softmax(samples, samples.columns[1])
    for values in (np.ones(weight.size), weight):
        for line, first, last, y in zip(
            lists, samples.first, samples.first[1:], vote_winners(samples, values), strict=False
        ):
            totals = Counter[str]()
            answers = [one["answer"] for one in line["candidates"]]
            for answer, value in zip(answers, values[first:last], strict=True):
                totals[answer] += value if answer is not None else 0
            del totals[None]  # type: ignore[arg-type]
            if totals:
                assert totals[answers[y - first]] == pytest.approx(max(totals.values()))
            same = [k for k, answer in enumerate(answers) if not totals or answer == answers[y - first]]
            assert y - first == max(same, key=lambda k: (values[first + k], -k))


@pytest.mark.parametrize("option", ["--curve", "--save"])
def test_outputs_without_a_name_are_refused_before_anything_is_read(option: str, rerank: Any) -> None:
    found = rerank("vote", "nowhere.jsonl", option, ".")
    assert (found.code, "cannot write .: expected the name of a file or folder" in found.err) == (2, True)


def test_the_curve_is_possible() -> None:
    """No way is above the oracle, all begin at the mean of all candidates, and end at the rows of the table."""
    ragged = [line | {"candidates": line["candidates"][: 1 + i % 6]} for i, line in enumerate(lists_of(60))]
    table = table_of_votes(rerank.read(ragged), samples=50, curve=True)
    assert table.curve is not None
    mean = np.mean([np.mean([one["gain"] for one in line["candidates"]]) for line in ragged])
    for name, values in table.curve["scores"].items():
        assert all(np.array(values) <= np.array(table.curve["scores"][ANY]) + 1e-12), name
        assert values[0] == pytest.approx(table.source.metric.percent * mean)
        assert values[-1] == pytest.approx(table.source.metric.percent * table.rows[name][0], abs=1e-12), name


def test_a_list_is_chosen_from_by_what_others_teach() -> None:
    lists = lists_of(90)
    table = table_of_votes(rerank.read(lists), samples=200)
    scores = {name: score for name, (score, _, _) in table.rows.items()}
    assert scores[ANY] >= max(scores.values())
    assert scores["learned from answers"] > scores[MAJORITY] > scores["first"]
    assert table.rows[MAJORITY][2] is None
    blind = [line | {"candidates": [one | {"gain": 0.0} for one in line["candidates"]]} for line in lists[:1]]
    again = table_of_votes(rerank.read(blind + lists[1:]), samples=200)  # its own gains change nothing of its choice
    assert abs(again.rows["learned from answers"][0] - scores["learned from answers"]) <= 1 / 90 + 0.05
    with pytest.raises(DataError, match="found 4 lists with candidates; expected 5"):
        table_of_votes(rerank.read(lists[:4]))
    plain = [
        {"candidates": [{k: v for k, v in one.items() if k != "answer"} for one in line["candidates"]]}
        for line in lists
    ]
    assert MAJORITY not in table_of_votes(rerank.read(plain), samples=50).rows


def test_the_command(tmp_path: Path, rerank: Any) -> None:
    lines = lists_of(40)
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines[:30]))
    (tmp_path / "b.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines[30:]))
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    found = rerank("vote", *files, "--samples", "50", "--curve", tmp_path / "curve", "--save", tmp_path / "model")
    assert found.code == 0, found
    assert "40 lists" in found.out
    assert MAJORITY in found.out
    curve = json.loads((tmp_path / "curve.json").read_text())
    assert curve["candidates"] == [1, 2, 4, 6]
    assert curve["scores"][MAJORITY][0] == curve["scores"][ANY][0]
    assert "<svg" in (tmp_path / "curve.svg").read_text()
    assert (tmp_path / "model" / "model.json").exists()
    rows = json.loads(rerank("vote", *files, "--samples", "50", "--json").out)["rows"]
    assert {row["name"] for row in rows} >= {
        "first",
        MAJORITY,
        "best reward",
        "vote by reward",
        "learned from answers",
        ANY,
    }
    few = json.loads(rerank("vote", *files, "--samples", "50", "--columns", "reward", "--json").out)["rows"]
    assert "best reward" in {row["name"] for row in few}
    assert "best score" not in {row["name"] for row in few}
    for wrong in (("--answer", "nonsense"), ("--columns", "rewards")):
        assert rerank("vote", tmp_path / "a.jsonl", *wrong).code in (1, 2)
    (tmp_path / "b.jsonl").write_text('{"candidates": [{"text": "a"}]}\n')
    assert rerank("vote", tmp_path / "b.jsonl").code == 2  # no gain


def test_what_the_command_reads_only_once(tmp_path: Path, rerank: Any) -> None:
    text = "".join(f"{json.dumps(line)}\n" for line in lists_of(40))
    (tmp_path / "a.jsonl").write_text(text)
    file, piped = ("vote", tmp_path / "a.jsonl"), ("vote", "-")
    how = ("--samples", "50", "--json")
    named, unnamed = (json.loads(rerank(*file, *how).out), json.loads(rerank(*piped, *how, stdin=text.encode()).out))
    assert named.pop("account").pop("format") != unnamed.pop("account").pop("format")
    assert named == unnamed
    saved = rerank(
        *piped, "--samples", "50", "--save", tmp_path / "model", "--curve", tmp_path / "acc.k8", stdin=text.encode()
    )
    assert (saved.code, (tmp_path / "model" / "model.json").exists()) == (0, True), saved
    assert (tmp_path / "acc.k8.svg").exists()
    scored = rerank(
        "rank", tmp_path / "model", "-", stdin=text.replace(', "gain": 1.0', "").replace(', "gain": 0.0', "").encode()
    )
    assert (scored.code, len(scored.out.splitlines())) == (0, 40)  # gains are no column that it needs
    both = rerank(*file, "--save", tmp_path / "other", "--columns", "reward")
    assert (both.code, "--columns chooses" in both.err) == (2, True)
    twice = rerank(*file, tmp_path / "a.jsonl")
    assert (twice.code, "named twice" in " ".join(twice.err.split())) == (2, True)


def test_lists_that_cannot_vote(tmp_path: Path, rerank: Any) -> None:
    (tmp_path / "bad.jsonl").write_text("{\n")
    for policy, expected in (("skip", "no usable list in the file; skipped"), ("error", "bad.jsonl:1: list")):
        found = rerank("vote", tmp_path / "bad.jsonl", "--on-bad-list", policy)
        assert (found.code, expected in found.err) == (2, True), found
    (tmp_path / "trees").write_text("1\ta\n-1\n(S1 (NP (NN a)))\n\n")
    found = rerank("vote", tmp_path / "trees", "--reader", "charniak")
    assert (found.code, "expected texts" in found.err) == (2, True), found


def test_few_lists_and_wrong_numbers() -> None:
    lists = rerank.read(lists_of(2, seed=3))
    assert "LambdaMART" not in table_of_votes(lists, folds=2, samples=10).rows
    with pytest.raises(RecipeError, match="samples: found 0; expected 1 or more"):
        table_of_votes(lists, folds=2, samples=0)
    assert "best score" not in table_of_votes(lists, folds=2, samples=10, use="reward").rows


def test_answers_are_matched_with_references(tmp_path: Path, rerank: Any) -> None:
    """By a rule, which also finds the right answer in the reference, or where lists hold them."""
    ruled, held = tmp_path / "ruled.jsonl", tmp_path / "held.jsonl"
    for path in (ruled, held):
        lines = []
        for k in range(40):
            texts = [f"{'well ' * (2 - k % 3)} so {answer}" for answer in (k % 2, 1, 1)]
            answers = [{} if path == ruled else {"answer": text.split()[-1]} for text in texts]
            both = [{"text": text, "score": -y, **answers[y]} for y, text in enumerate(texts)]
            lines.append(
                json.dumps({"reference": f"{'hm ' * (path == ruled)}1.{'0' * (k % 3 + 1)}", "candidates": both})
            )
        path.write_text("\n".join(lines) + "\n")
    for path, rule in ((ruled, "last-number"), (held, None)):
        lists = read(path, answer=rule)
        found = evaluate([0] * 40, lists, "match", samples=10)
        assert (found.score, found.scores["oracle"]["exact_match"]) == (0.5, 1.0)
        model = fit(lists, metric="match", features="dense")
        assert evaluate(model, lists, samples=10, decode=False).metric.signature == "match|case:mixed|version:1"
        done = rerank("vote", path, "--metric", "match", *(["--answer", rule] if rule else []), "--json")
        rows = {row["name"]: row["score"] for row in json.loads(done.out)["rows"]}
        assert (rows["first"], rows["majority vote"]) == (0.5, 1.0)
    done = rerank("oracle", held, "--reader", "jsonl", "--metric", "match")
    assert re.search(r"^ base +50\.00$", done.out, re.MULTILINE)
    assert "WARNING" not in done.err


def test_counts_are_measured_and_no_features(tmp_path: Path) -> None:
    path, rng = tmp_path / "lists.jsonl", np.random.default_rng(1)
    drawn = rng.integers(0, 4, (30, 3, 3)).tolist()
    names = "text", "score", "correct", "missing", "more"
    lines = [[dict(zip(names, (f"{y}", -y, *row), strict=True)) for y, row in enumerate(one)] for one in drawn]
    path.write_text("".join(json.dumps({"candidates": one}) + "\n" for one in lines))
    metric = {"name": "counts", "found": "correct+more", "right": "correct+missing", "beta": 0.5}
    lists = read(path)
    model = fit(lists, metric=metric, features="dense")
    assert model.columns == ("score",)
    correct, missing, more = np.array(drawn)[:, 0].sum(axis=0).tolist()
    found = evaluate([0] * 30, lists, metric, samples=10)
    assert found.score == pytest.approx(1.25 * correct / (1.25 * correct + more + 0.25 * missing))
    assert evaluate(model, lists, samples=10).scores["base"] == found.scores["base"]


def test_ways_that_choose_the_same_are_one_row_and_named_below() -> None:
    lists = lists_of(20)
    for one in (one for line in lists for one in line["candidates"]):
        one["twice"] = 2 * one["score"]
    table = table_of_votes(rerank.read(lists), samples=20)
    text, names = table.table(), [row["name"] for row in table.as_data()["rows"]]
    shown = [row[0] for row in text.rows]
    assert {"best score", "best twice"} <= set(names)
    assert ("best score" in shown, "best twice" in shown) == (True, False)
    assert "The same choice in every list: " in text.note
    assert "best twice as best score" in text.note
    assert text.headings == ["chosen by", "right", "95 % interval", "Δ majority", "p"]
