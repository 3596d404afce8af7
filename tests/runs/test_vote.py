"""Votes over answers, weighing, and what errors of votes say."""

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_rankings

import rerank
from rerank import evaluate, fit, read
from rerank.base.errors import DataError, RecipeError
from rerank.metrics.metric import scored_rows
from rerank.models.reranker import load
from rerank.runs import experiment
from rerank.runs.vote import MAJORITY, VERDICT_ORACLE, ListSource, load_source, softmax, table_of_votes, vote_winners
from rerank.runs.weigh import BASE, MAXENT, ORACLE, SUM, WEIGHED, fit_weights, gain_pairs, standardise
from rerank.runs.weigh import table_of_weights as weigh
from rerank.storage.streams import Inputs


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
            lists, samples.corpus.lists, samples.corpus.lists[1:], vote_winners(samples, values), strict=False
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
    mean = np.mean([np.mean([one["gain"] for one in line["candidates"]]) for line in ragged])
    for name, values in table.curve["scores"].items():
        assert all(np.array(values) <= np.array(table.curve["scores"][VERDICT_ORACLE]) + 1e-12), name
        assert values[0] == pytest.approx(table.source.metric.percent * mean)
        assert values[-1] == pytest.approx(table.source.metric.percent * table.rows[name][0], abs=1e-12), name


def test_a_list_is_chosen_from_by_what_others_teach() -> None:
    lists = lists_of(90)
    table = table_of_votes(rerank.read(lists), samples=200)
    scores = {name: score for name, (score, *_) in table.rows.items()}
    assert scores[VERDICT_ORACLE] >= max(scores.values())
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
    how = ("--samples", "50", "--folds", "2")
    found = rerank("vote", *files, *how, "--curve", tmp_path / "curve", "--save", tmp_path / "model")
    assert found.code == 0, found
    assert "40 lists" in found.out
    assert MAJORITY in found.out
    curve = json.loads((tmp_path / "curve.json").read_text())
    assert curve["candidates"] == [1, 2, 4, 6]
    assert curve["scores"][MAJORITY][0] == curve["scores"][VERDICT_ORACLE][0]
    assert "<svg" in (tmp_path / "curve.svg").read_text()
    assert load(tmp_path / "model").recipe.name == "model"
    rows = json.loads(rerank("vote", *files, *how, "--json").out)["rows"]
    assert {row["name"] for row in rows} >= {
        "first",
        MAJORITY,
        "best reward",
        "vote by reward",
        "learned from answers",
        VERDICT_ORACLE,
    }
    few = json.loads(rerank("vote", *files, *how, "--columns", "reward", "--json").out)["rows"]
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
    how = ("--samples", "50", "--folds", "2", "--json")
    named, unnamed = (json.loads(rerank(*file, *how).out), json.loads(rerank(*piped, *how, stdin=text.encode()).out))
    assert named.pop("account").pop("format") != unnamed.pop("account").pop("format")
    assert named == unnamed
    saved = rerank(*piped, *how[:-1], "--save", tmp_path / "model", "--curve", tmp_path / "acc.k8", stdin=text.encode())
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


@pytest.mark.parametrize("table", [table_of_votes, weigh])
def test_lists_without_candidates_are_left_out_and_said(table: Any, caplog: pytest.LogCaptureFixture) -> None:
    full = [
        {"candidates": [{"text": f"{i} {k}", "answer": "ab"[k % 2], "lm": (i * k) % 3, "gain": int((i + k) % 3 == 0)}
                        for k in range(4)]} for i in range(20)
    ]  # fmt: skip
    lists = [{**one, "candidates": []} if i in (0, 3, 4, 19) else one for i, one in enumerate(full)]
    found = table(lists).as_data()
    assert "4 without candidates" in caplog.text
    assert found == table([one for one in lists if one["candidates"]]).as_data()


@pytest.mark.parametrize("table", [table_of_votes, weigh])
def test_a_number_that_few_candidates_lack_is_named(
    table: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = lists_of(30)
    lists[20]["candidates"][0].pop("reward")
    lists[21]["candidates"][0]["reward"] = lists[22]["candidates"][0]["reward"] = None
    for line in lists[:8]:
        line["candidates"][0].pop("reward", None)
    caplog.set_level("INFO", "rerank")
    found = table(rerank.read(lists), samples=10)
    assert "columns: sparse features that some candidates have: reward" in caplog.text
    assert "reward" not in found.source.names
    size = sum(len(line["candidates"]) for line in lists)
    assert f"'reward' is no column here: 11 of the first {size} candidates lack it; the reader's" in caplog.text
    monkeypatch.setattr("rerank.runs.vote.REMARK_LISTS", 10)
    late = lists_of(30)
    for line in late[20:]:
        line["candidates"][0].pop("reward")
    table(rerank.read(late), samples=10)
    size = sum(len(line["candidates"]) for line in late[:10])
    assert f"'reward' is no column here: some after the first {size} candidates lack it" in caplog.text
    assert "the first 10 lists lack it" not in caplog.text
    monkeypatch.setattr("rerank.runs.vote.FIRST_LISTS", 10)
    for line in late[25:]:
        for candidate in line["candidates"]:
            candidate["late"] = 0.5
    for line in late[20:]:
        line["candidates"][0]["reward"] = 0.0
    table(rerank.read(late), samples=10)
    assert "'late' is no column here: the first 10 lists lack it" in caplog.text


def test_what_is_registered_and_refuses_lists_has_no_row(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("lightgbm")
    monkeypatch.setattr("rerank.contrib.search.lambdamart.MAX_CANDIDATES", 5)
    assert "LambdaMART" not in table_of_votes(rerank.read(lists_of(30)), samples=10).rows
    assert "no row of LambdaMART: lambdamart: found a list of 6 candidates" in caplog.text


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
        model = fit(lists, metric="match", features="dense", learner={"name": "perceptron", "base": 1}, epochs=1)
        assert evaluate(model, lists, samples=10, decode=False).metric.signature == "match|case:mixed|version:1"
        done = rerank("vote", path, "--metric", "match", *(["--answer", rule] if rule else []), "--json")
        rows = {row["name"]: row["score"] for row in json.loads(done.out)["rows"]}
        assert (rows["first"], rows["majority vote"]) == (0.5, 1.0)
    assert "what is right in them is measured by --metric match" in rerank("vote", ruled).err
    done = rerank("vote", ruled, "--metric", "match", "--answer", "regex:none")
    assert "no candidate has an answer by the rule regex:none, so there is no vote" in done.err
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
    (text,), names = table.tables(), [row["name"] for row in table.as_data()["rows"]]
    shown = [row[0] for row in text.rows]
    assert {"best score", "best twice"} <= set(names)
    assert ("best score" in shown, "best twice" in shown) == (True, False)
    assert "The same result in every list: " in text.note
    assert "best twice as best score" in text.note
    assert text.headings == ["chosen by", "right", "95 % interval", "Δ majority", "p"]


FAST: dict[str, Any] = {"folds": 3, "resamples": 2, "restarts": 1, "samples": 20}


def weighable(count: int = 30, seed: int = 0) -> list[dict[str, Any]]:
    """Lists whose gain is known by two columns together, in other units than the base score's."""
    rng, lists = np.random.default_rng(seed), list[dict[str, Any]]()
    for i in range(count):
        given = list[dict[str, Any]]()
        for _ in range(int(rng.integers(1, 6))):
            gain = float(rng.integers(0, 4))
            score, cost = float(rng.normal()), float(rng.normal())
            given.append({"text": "a", "gain": gain, "score": score, "cost": 50 * (score - 0.4 * gain + 0.2 * cost)})
        lists.append({"id": f"q{i}", "candidates": given})
    return lists


def best_of(found: ListSource, scores: np.ndarray) -> list[int]:
    """The first best candidate of every list."""
    first = found.corpus.lists
    return [a + int(np.argmax(scores[a:b])) for a, b in pairwise(first)]


def score_by(source: ListSource, w: np.ndarray) -> float:
    """What the choices of weights are worth."""
    return source.metric.score(scored_rows(source.corpus, source.metric, w @ source.columns), source.corpus.reference)


def test_no_grid_of_weights_is_better() -> None:
    for seed in range(3):
        for metric in ("gain", "ndcg@3"):
            found, _ = standardise(load_source(list(rerank.read(weighable(12, seed))), metric, None, 3, 1))
            turns = np.linspace(0, 2 * np.pi, 721)
            every = [score_by(found, w) for w in np.c_[np.cos(turns), np.sin(turns)]]
            weighed = fit_weights(found, 5, 1)[WEIGHED]
            assert score_by(found, weighed) >= max(every) - 1e-12
            assert np.abs(weighed).sum() == pytest.approx(1)


def test_a_list_is_weighed_by_what_others_teach() -> None:
    lists = weighable()
    table = weigh(lists, **FAST)
    found, spread = standardise(load_source(list(rerank.read(lists)), None, None, 3, 1))
    gains, fold = found.corpus.gain, found.fold
    chosen = np.empty(len(lists), np.int64)
    for held in range(3):
        w = fit_weights(found.lists(np.flatnonzero(fold != held)), 1, 1)[WEIGHED]
        chosen[fold == held] = np.array(best_of(found, w @ found.columns))[fold == held]
    assert table.rows[WEIGHED][0] == pytest.approx(gains[chosen].mean())
    assert table.rows[BASE][0] == pytest.approx(gains[best_of(found, found.corpus.base)].mean())
    assert table.rows[ORACLE][0] == pytest.approx(gains[best_of(found, gains)].mean())
    assert table.rows[WEIGHED][0] > table.rows[BASE][0] + 0.3
    costs, both = ([[c["cost"] + k * c["score"] for c in x["candidates"]] for x in lists] for k in (0, 1))
    for name, scores in (("cost alone", costs), (SUM, both)):
        own = [x["candidates"][int(np.argmax(each))]["gain"] for x, each in zip(lists, scores, strict=True)]
        assert table.rows[name][0] == pytest.approx(np.mean(own))
    assert [w.weight for w in table.weights] == pytest.approx(fit_weights(found, 1, 1)[WEIGHED] / spread)
    assert all(w.interval[0] <= w.interval[1] for w in table.weights)
    assert f"The best is {table.learned}, +" in str(table)
    assert weigh(lists, **FAST).as_data() == table.as_data()


def with_answers(line: dict[str, Any]) -> dict[str, Any]:
    """A list whose candidates have answers, every two the same."""
    return line | {"candidates": [{**one, "answer": str(k // 2)} for k, one in enumerate(line["candidates"])]}


def test_the_command_that_weighs(tmp_path: Path, rerank: Any) -> None:
    lists, place = weighable(), tmp_path / "a.jsonl"
    place.write_text("".join(f"{json.dumps(line)}\n" for line in lists))
    how = ("--folds", 3, "--resamples", 2, "--restarts", 1, "--samples", 20)
    shown = rerank("weigh", place, *how)
    assert (shown.code, "30 lists" in shown.out) == (0, True), shown
    found = json.loads(rerank("weigh", place, *how, "--save", tmp_path / "model", "--json").out)
    weights = {line["column"]: line["weight"] for line in found["weights"]}
    assert weights["score"] > 0 > weights["cost"]
    ranked = rerank("rank", tmp_path / "model", place, "--n-best", 1).out  # as the weights in the file's unit say
    chosen = [json.loads(line)["candidates"][0] for line in ranked.splitlines()]
    best = [max(line["candidates"], key=lambda one: sum(w * one[c] for c, w in weights.items())) for line in lists]
    assert [one["cost"] for one in chosen] == [one["cost"] for one in best]
    named = tmp_path / "named.jsonl"  # neither answers nor decoding change what the weights choose
    named.write_text("".join(f"{json.dumps(with_answers(line))}\n" for line in lists))
    assert rerank("weigh", named, *how, "--save", tmp_path / "of answers").code == 0
    ranked = rerank("rank", tmp_path / "of answers", named, "--n-best", 1).out
    assert [json.loads(line)["candidates"][0]["cost"] for line in ranked.splitlines()] == [one["cost"] for one in best]
    order = json.loads(rerank("weigh", place, *how, "--metric", "ndcg@3", "--columns", "cost", "--json").out)
    assert [line["column"] for line in order["weights"]] == ["cost"]
    texts = [{"candidates": [{"text": t, "score": s} for t, s in (("a", 1.0), ("a b", 0.5))]}] * 6
    place.write_text("".join(f"{json.dumps(line)}\n" for line in texts))
    (tmp_path / "ref").write_text("a b\n" * 6)
    asked = ("weigh", place, tmp_path / "ref", "--metric", "wer", *how, "--json", "--save", tmp_path / "counting")
    words = json.loads(rerank(*asked).out)
    assert [row["score"] for row in words["rows"]] == [0.5, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert [row["name"] for row in words["rows"]][1] == "words alone"  # how many there are is a column of transcripts
    ranked = rerank("rank", tmp_path / "counting", place, "--n-best", 1).out
    assert [json.loads(line)["candidates"][0]["text"] for line in ranked.splitlines()] == ["a b"] * 6
    for wrong in (("--columns", "costs"), ("--folds", "1"), ("--metric", "nonsense"), ("--metric", "wer")):
        assert rerank("weigh", place, *wrong).code == 2


def test_columns_that_others_determine_have_no_weight_and_the_better_row_is_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rerank: Any
) -> None:
    lists = weighable()
    for one in (one for line in lists for one in line["candidates"]):
        one |= {"both": one["score"] + one["cost"], "same": 3.0}
    monkeypatch.setattr("rerank.runs.weigh.search_weights", lambda _, starts, *__: -starts[0])
    table = weigh(lists, **FAST)
    assert ([line.column for line in table.weights], table.without) == (["score", "cost"], ("both", "same"))
    assert "Others determine these, which have none: both, same." in str(table)
    assert table.learned == MAXENT
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lists))
    shown = rerank("weigh", tmp_path / "a.jsonl", "--folds", 3, "--resamples", 2, "--save", tmp_path / "model").out
    assert "a model with the weights of the row maxent" in " ".join(shown.split())
    none = {"text": "a"} | dict.fromkeys(("score", "cost", "both", "same"), 0.0)
    for line in table.weights:
        ranking = load(tmp_path / "model").rank([none, none | {line.column: 1.0}])
        apart = float(ranking.scores[0] - ranking.scores[1]) * (1 if ranking.order[0] == 1 else -1)
        assert apart == pytest.approx(line.maxent)


def test_what_cannot_be_weighed() -> None:
    alike = [{"candidates": [{"text": "a", "score": 1.0, "gain": g} for g in (0.0, 1.0)]}] * 4
    with pytest.raises(DataError, match=r"no score differs within a list \(columns: score\)"):
        weigh(alike, **FAST)
    many = [{"candidates": [{"text": "a", "gain": 1.0} | {f"c{k}": float(k) for k in range(60)}]}] * 4
    with pytest.raises(RecipeError, match="columns: found 60; expected 50 or fewer"):
        weigh(many, **FAST)
    with pytest.raises(RecipeError, match="folds: found 1; expected 2 or more"):
        weigh(alike, folds=1)


def test_pairs_are_those_with_the_largest_differences_in_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    found = load_source(list(rerank.read(weighable(30))), None, None, 3, 1)
    monkeypatch.setattr("rerank.runs.weigh.MAX_PAIRS", 4)
    two, first, gain = gain_pairs(found), found.corpus.lists, found.corpus.gain
    at = 0
    for a, b in pairwise(first.tolist()):
        every = sorted((abs(gain[y] - gain[z]) for y, z in combinations(range(a, b), 2)), reverse=True)
        expected = [apart for apart in every[:4] if apart > 0]
        own = two.corpus.gain[2 * at : 2 * (at + len(expected))]
        assert (own[::2] - own[1::2]).tolist() == pytest.approx(expected)
        at += len(expected)
    assert two.corpus.lists.tolist() == list(range(0, 2 * at + 1, 2))
    alike = found._replace(corpus=replace(found.corpus, gain=np.ones(gain.size)))
    assert gain_pairs(alike).answers.size == 0


@pytest.mark.parametrize("named", [False, True])
def test_a_gain_is_no_column_unless_it_is_named(named: bool, tmp_path: Path) -> None:
    lists = [
        {"reference": "a b", "candidates": [{"text": text, "lm": k * i % 3, "gain": text == "a b"}
                                            for k, text in enumerate(("a c", "a b", "b"))]}
        for i in range(12)
    ]  # fmt: skip
    path = tmp_path / "lists.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lists))
    format = {"name": "jsonl", "dense": ["lm", "gain"]} if named else "jsonl"
    more = ["gain"] if named else []
    assert [weight.column for weight in weigh(rerank.read(path, format), "wer", **FAST).weights] == [
        "lm",
        *more,
        "words",
    ]
    assert rerank.fit(rerank.read(path, format), metric="wer", features="dense").columns == ("score", "lm", *more)


PERCEPTRON: dict[str, Any] = {"learner": {"name": "perceptron", "base": 0.0}, "decode": {"use": "best", "kinds": []}}


@pytest.mark.parametrize("vote", [True, False])
def test_the_error_of_the_vote_stands_beside_its_bound(tmp_path: Path, texts_data: Path, vote: bool) -> None:
    """Where a candidate is right or wrong, an error is a list that has a right one, and not chosen."""
    training = {"epochs": 1, "vote": vote, "bound": True}
    experiment.run(small_rankings.recipe(texts_data, training=training, **PERCEPTRON), tmp_path / "run")
    metrics = small.results(tmp_path / "run")
    bound, splits = metrics["training"]["bound"], metrics["splits"]["test"]
    assert 0.0 < bound["vote_error"] <= 1.0
    if vote:
        lost = splits["oracle"]["gain"] - splits["voted"]["gain"]
        assert bound["vote_error_test"] == pytest.approx(lost, abs=1e-12)
        assert lost > 0.0
    else:
        assert "vote_error_test" not in bound


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_updates_are_repeated_on_the_share_of_lists_that_they_came_from(
    share: float, tmp_path: Path, texts_data: Path
) -> None:
    training = {"epochs": 1, "vote": True, "share": share}
    recipe = small_rankings.recipe(texts_data, training=training, **PERCEPTRON)
    kind: Any = experiment.experiment(recipe, Inputs(), tmp_path / "run")
    votes, w = kind.winner.votes(kind.data.training.corpus), np.zeros(kind.data.training.corpus.width)
    for e in range(int(votes.first[-1])):
        w[votes.columns[e]] = votes.value[e]
    np.testing.assert_allclose(votes.scale[-1] * w, kind.winner.weights["last"].w)
