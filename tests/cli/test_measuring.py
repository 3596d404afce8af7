"""Measuring with a model of any lists, and whether lists are like those that it learned from."""

import json
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
from commands import Command, failed, refused

import rerank as library
from rerank.base.encoding import amount
from rerank.cli.evaluating import shown_names

REWARDS = [[0.5, 2.0, -1.0], [1.0, 0.0], []]


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Lists with rewards."""
    path = tmp_path / "samples.jsonl"
    lines = []
    for i, rewards in enumerate(REWARDS):
        texts = [{"text": f"t{k}", "score": -k, "reward": reward} for k, reward in enumerate(rewards)]
        lines.append(json.dumps({"id": f"list {i}", "references": ["t1"], "candidates": texts}))
    path.write_text("\n".join(lines) + "\n")
    return path


OWN = """
from dataclasses import dataclass
from rerank.metrics.wer import Wer

@dataclass(frozen=True)
class First(Wer):
    def units(self, texts):
        return super().units([text.partition(b" ")[0] for text in texts])
"""


COUNTS = "{name: counts, correct: x, found: x+x, right: x, beta: 0.5}"


@pytest.mark.parametrize(
    "metric", ["own_first:First", "{name: own_first:First, normalize: {case: true}}", "match", "gain@x", "gain", COUNTS]
)
def test_every_command_takes_metrics_as_recipes_do(
    metric: str, tmp_path: Path, rerank: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "own_first.py").write_text(OWN)
    (tmp_path / "texts").write_text("a b\nA c\n")
    both = [{"text": text, "score": k, "x": k} for k, text in enumerate(("a b", "B c", "b"))]
    line = json.dumps({"references": ["A b"], "candidates": both})
    (tmp_path / "lists").write_text(f"{line}\n" * 6)
    if metric == COUNTS or metric.startswith("gain"):
        metric = "{name: gain, column: x}" if metric == "gain@x" else metric
        commands = [["vote", "lists"], ["weigh", "lists"], ["oracle", "lists", "--reader", "jsonl"]]
    else:
        commands = [["evaluate", "texts", "texts"], ["oracle", "lists", "--reader", "jsonl"]]
        commands += [["vote", "lists"], ["weigh", "lists"], ["rank", "base", "lists", "--reader", "jsonl"]]
    for command in commands:
        result = rerank(*command, "--metric", metric)
        assert result.code == (2 if metric == "gain" else 0), result
        assert "Traceback" not in result.err


@pytest.mark.parametrize("metric", ["{name: gai", "{column: x}", "[a]", "own_none:First", "{name: bleu, lower: 1}"])
def test_metrics_that_are_none_are_refused(metric: str, samples: Path, rerank: Command) -> None:
    for command in (["vote", samples], ["weigh", samples], ["evaluate", samples, samples], ["oracle", samples]):
        result = rerank(*command, "--metric", metric)
        assert result.code == 2, result
        assert "Traceback" not in result.err


def test_lists_of_another_format_are_not_counted(tmp_path: Path, rerank: Command) -> None:
    (tmp_path / "lists").write_text("".join(f"{i} ||| {text} ||| a= 1 ||| -1\n" for i in range(4) for text in "xy"))
    for references in ("x\n" * 4, "x\n" * 9):
        (tmp_path / "right").write_text(references)
        failed(
            rerank("weigh", tmp_path / "lists", tmp_path / "right", "--metric", "bleu", "--reader", "jsonl"), 2,
            f"{tmp_path / 'lists'}:1: ", "this looks like moses: use --reader moses",
        )  # fmt: skip


def test_fewer_folds_are_named_where_there_may_be_fewer(tmp_path: Path, rerank: Command) -> None:
    both = [{"text": f"{k}", "score": k, "gain": k} for k in range(2)]
    for command, count, more in (("vote", 2, True), ("vote", 1, False), ("weigh", 2, True), ("weigh", 1, False)):
        (tmp_path / "lists").write_text(f"{json.dumps({'candidates': both})}\n" * count)
        result = rerank(command, tmp_path / "lists")
        failed(result, 2, f"found {amount(count, 'list')} with candidates; expected 5 or more, one for each fold")
        assert (f"fewer folds: --folds {count}" in result.err) == more
        if more:
            assert rerank(command, tmp_path / "lists", "--folds", count).code == 0


def row(out: str, name: str) -> list[str]:
    line = next(line for line in out.splitlines() if line.startswith(f" {name}  "))
    return line.removeprefix(f" {name}").split()


def test_the_oracle_of_a_gain_needs_no_references(samples: Path, rerank: Command) -> None:
    command = "oracle", samples, "--reader", "jsonl", "--metric"
    result = rerank(*command, "{name: gain, column: reward}")
    assert result.code == 0, result
    assert row(result.out, "base") == ["0.5000"]
    assert row(result.out, "oracle") == ["1.0000"]
    assert row(result.out, "anti oracle") == ["-0.3333"]
    assert "lists 3: 1 without" in result.out
    assert "gain|column:reward" in result.out
    failed(rerank(*command, "gain"), 2, f"{samples}:1: list list 0: ", "score, reward", "expected 'gain'")


def test_a_measure_of_a_key_without_a_role_says_how_to_give_it_one(tmp_path: Path, rerank: Command) -> None:
    path = tmp_path / "lists.jsonl"
    path.write_text(
        "".join(f'{{"candidates": [{{"text": "a", "wer": {k}}}, {{"text": "b", "wer": 9}}]}}\n' for k in range(3))
    )
    measured = "oracle", path, "--metric", "{name: gain, column: wer, lower: true}"
    refused(rerank(*measured), "'wer' has no role", "--roles wer=column")
    refused(rerank(*measured, "--roles", "wer=gain"), "'wer' has the role gain", "--roles wer=column")
    found = rerank(*measured, "--roles", "wer=column").out
    assert (row(found, "base"), "wer (lower is better)" in found.splitlines()[1]) == (["1.0000"], True), found


def test_a_list_without_candidates_has_no_error(tmp_path: Path, rerank: Command) -> None:
    """It is not the best of all lists."""
    path, line = tmp_path / "lists.jsonl", '{"candidates": [{"text": "a", "error": 1}, {"text": "b", "error": 2}]}\n'
    path.write_text(line + '{"candidates": []}\n' + line)
    out = rerank("oracle", path, "--metric", "{name: gain, column: error, lower: true}").out
    assert (row(out, "base"), row(out, "anti oracle")) == (["1.0000"], ["2.0000"])


def test_the_column_of_a_measure_is_what_is_right_and_no_column(tmp_path: Path, rerank: Command) -> None:
    path = tmp_path / "lists.jsonl"
    entry = '{"text": "a", "error": 1, "lm": 2}'
    path.write_text(f'{{"candidates": [{entry}, {entry}]}}\n' * 3)
    result = rerank("oracle", path, "--metric", "{name: gain, column: error, lower: true}")
    assert "what is right: the measure's columns, error\n" in result.err
    assert "columns: lm\n" in result.err


def test_all_references_under_numbered_keys_count(tmp_path: Path, rerank: Command) -> None:
    path = tmp_path / "lists.jsonl"
    rows = [{"id": k, "ref1": f"a b c d {k}", "ref2": f"b c d e {k}", "hyps": [f"b c d e {k}", "f"]} for k in range(3)]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    result = rerank("oracle", path, "--metric", "bleu")
    assert 'what is right: references (ref1, ref2), "a b c d 0"' in result.err
    assert row(result.out, "base")[0] == "100.00"
    (lists, *_) = library.read(path)
    assert lists.references == ("a b c d 0", "b c d e 0")
    roles = library.read(path).first_items()[0].roles
    assert {key for key, role in roles.key_roles.items() if role == "reference"} == {"ref1", "ref2"}
    path.write_text(path.read_text().replace("ref2", "reference"))
    assert next(iter(library.read(path))).references == ("b c d e 0",)


def test_the_oracle_of_texts_is_that_of_their_gains(tmp_path: Path, rerank: Command) -> None:
    """Whatever their format; texts with references of their own need the name of a measure."""
    (tmp_path / "orders.txt").write_text("".join(f"{k % 3} qid:{k // 3} 1:{k}\n" for k in range(12)))
    for path in ("llm/dev", tmp_path / "orders.txt"):
        assert "gain" in (found := rerank("oracle", path)).out, found
    refused = rerank("oracle", tmp_path / "orders.txt", tmp_path / "orders.txt")
    assert (refused.code, "name their measure" in refused.err) == (2, True), refused


@pytest.mark.parametrize(
    ("name", "message"), [("missing.jsonl", "no such file"), ("utf16", "UTF-16"), ("", "directory")]
)
def test_the_oracle_of_what_cannot_be_read_names_that(
    name: str, message: str, tmp_path: Path, samples: Path, rerank: Command
) -> None:
    """And asks for no references, as long as nobody knows what it holds; standard input is JSON here as elsewhere."""
    (tmp_path / "utf16").write_text(samples.read_text(), "utf-16")
    refused(rerank("oracle", tmp_path / name), message)
    lists = "".join(json.dumps({"candidates": [{"text": "a", "gain": 1}]}) + "\n" for _ in range(3))
    assert rerank("oracle", "-", stdin=lists.encode()).code == 0


def test_references_that_lists_hold(samples: Path, rerank: Command) -> None:
    lists = samples.read_text().splitlines()[:2]
    samples.write_text("\n".join(lists) + "\n")
    result = rerank("oracle", samples, "--metric", "wer", "--reader", "jsonl")
    assert (row(result.out, "base"), row(result.out, "oracle")) == (["100.00"], ["0.00"])
    further = rerank("oracle", samples, "--metric", "wer", "--reader", "jsonl", "--reference", samples)
    failed(further, 2, "expected NBEST REF")
    samples.write_text(lists[0].replace('"references"', '"others"') + "\n")
    failed(rerank("oracle", samples, "--metric", "wer", "--reader", "jsonl"), 2, "list 0", "no references")
    failed(rerank("oracle", samples), 2, "expected 'gain'")
    samples.write_text("a text\n")
    failed(rerank("evaluate", samples, samples, "--metric", "gain"), 2, "cannot be computed from texts")


def test_options_of_texts_are_refused_for_trees(tmp_path: Path, rerank: Command) -> None:
    for name, text in (("nbest", "1\ta\n-1\n(S (NN x))\n\n"), ("gold", "(S (NN x))\n")):
        (tmp_path / name).write_text(text)
    for command in ("oracle", "evaluate"):
        for option in (["--reference", tmp_path / "gold"], ["--form", "tab"]):
            result = rerank(command, tmp_path / "nbest", tmp_path / "gold", *option)
            failed(result, 2, f"{option[0]} is for text metrics, not for parseval")


def test_a_file_of_bad_lists_says_which(samples: Path, rerank: Command) -> None:
    samples.write_text('{"id": "first", "candidates": 3}\n')
    command = "oracle", samples, "--metric", "gain", "--reader", "jsonl", "--on-bad-list", "skip"
    failed(rerank(*command), 2, f"{samples}: no usable list in the file; skipped for ", f"{samples}:1: list first: ")
    samples.write_text("")
    failed(rerank(*command), 2, f"{samples}: no usable list in the file: none has candidates")
    samples.write_text('{"id": "first", "candidates": []}\n')
    failed(rerank(*command), 2, f"{samples}: no usable list in the file: none has candidates")


def test_trees_in_json_are_refused_with_the_form_in_which_they_are_measured(tmp_path: Path, rerank: Command) -> None:
    tree, gold, lists = "(S (NP (D the) (N dog)) (V runs))", tmp_path / "gold", tmp_path / "lists"
    gold.write_text(f"{tree}\n")
    lists.write_text(json.dumps({"id": "a", "candidates": [{"tree": tree, "score": -1}]}) + "\n")
    failed(rerank("oracle", lists, gold), 2, "behind its score and a tab, with a blank line behind each list")
    lists.write_text(f"-1\t{tree}\n\n")
    assert "100.00" in row(rerank("oracle", lists, gold, "--reader", "trees").out, "base")


def test_the_ratio_of_lengths_has_three_decimals(tmp_path: Path, rerank: Command) -> None:
    (tmp_path / "nbest").write_text("0 ||| a b ||| lm= 1 ||| -1\n")
    for name, text in (("hyp", "a b"), ("ref", "a b c d e f")):
        (tmp_path / name).write_text(f"{text}\n")
    against = tmp_path / "ref", "--metric", "bleu"
    assert row(rerank("oracle", tmp_path / "nbest", *against).out, "base")[1] == "0.333"
    assert row(rerank("evaluate", tmp_path / "hyp", *against).out, "length_ratio") == ["0.333"]
    (tmp_path / "hyp").write_text("a b c d e f\n")
    assert row(rerank("evaluate", tmp_path / "hyp", *against).out, "length_ratio") == ["1.000"]


def test_files_of_the_same_name_are_told_apart(tmp_path: Path, rerank: Command) -> None:
    assert shown_names(["a/x", "b/y"]) == ["x", "y"]
    assert shown_names(["a/x", "b/x", "b/y"]) == ["a/x", "b/x", "y"]
    assert shown_names(["a/x", "a/x", "-"]) == ["a/x (1)", "a/x (2)", "-"]
    files = [tmp_path / name / "best.txt" for name in ("one", "two")]
    for path, text in zip(files, ("a b", "a c"), strict=True):
        path.parent.mkdir()
        path.write_text(f"{text}\n")
    (tmp_path / "ref").write_text("a b\n")
    result = rerank("evaluate", files[0], tmp_path / "ref", files[1], "--metric", "wer")
    shown = [line for line in result.out.splitlines() if "best.txt" in line]
    assert all(str(path) in shown[0] for path in files)
    assert shown[-2].split()[0] == str(files[1])  # of the comparison; the last line is its note


def test_explain_names_the_ids_that_there_are(small_run: Path, small_data: Path, rerank: Command) -> None:
    command = "explain", small_run / "model", small_data / "test.nbest.gz", "--list"
    for gold in ([], ["--gold", small_data / "test.gold.gz"]):
        failed(rerank(*command, "test-33x", *gold), 2, "no usable list 'test-33x' in the file; it has 40", "'test-33'")
        failed(rerank(*command, "?", *gold), 2, "such as 'test-1', 'test-2', 'test-3', 'test-40'")


def test_explain_reads_another_format(small_run: Path, tmp_path: Path, rerank: Command) -> None:
    (tmp_path / "lists").write_text("-1\t((S (NN x)))\n-2\t((S (VB x)))\n\n-1\t((S (NN y)))\n-3\t((S (NN y)\n\n")
    (tmp_path / "gold").write_text("(S (VB x))\n(S (NN y))\n")
    command = "explain", small_run / "model", tmp_path / "lists", "--reader", "berkeley", "--list"
    assert "((S (NN x)))" in rerank(*command, "0").out
    result = rerank(*command, "0", "--gold", tmp_path / "gold")
    assert "oracle" in result.out
    failed(rerank("explain", *command[1:3], "--list", "0"), 2, "lists")


def test_explain_says_why_a_list_cannot_be_used(small_run: Path, tmp_path: Path, rerank: Command) -> None:
    (tmp_path / "lists").write_text("1\ta\nno number\n(S (NN x))\n\n")
    (tmp_path / "gold").write_text("(S (NN x))\n")
    command = "explain", small_run / "model", tmp_path / "lists", "--list", "a"
    for gold in ([], ["--gold", tmp_path / "gold"]):
        failed(rerank(*command, *gold), 2, "the list cannot be used: ", "lists:2: list a: found 'no number'")


@pytest.mark.parametrize("place", ["first", "last"])
def test_standard_input_and_a_file_are_no_option(place: str, small_run: Path, tmp_path: Path, rerank: Command) -> None:
    """Names of several files may begin with standard input; a misspelt option is still one."""
    (tmp_path / "rewards").write_text("0.5\n2\n")
    stdin = b"0 ||| a ||| lm= 1 ||| -1\n0 ||| b ||| lm= 1 ||| -2\n"
    reader = "{name: joined, of: moses, names: [reward]}"
    options = ["--metric", "{name: gain, column: reward}", "--reader", reader]
    name = f"-,{tmp_path / 'rewards'}"
    given = [name, *options] if place == "first" else [*options, name]
    result = rerank("oracle", *given, stdin=stdin)
    assert result.code == 0, result
    assert row(result.out, "oracle") == ["2.0000"]
    wrong = rerank("rank", small_run / "model", "-,scores", "--n_best", 3)
    assert wrong.code == 2
    assert "No such option" in wrong.err
    failed(rerank("rank", small_run / "model", "-,-"), 2, "only one input can be '-'")
    failed(rerank("rank", small_run / "model", "-,none"), 2)


SHIPPED = Path(__file__).parents[2] / "data" / "asr"


def lines_of(split: str) -> list[dict[str, Any]]:
    return [*map(json.loads, small.lines_of(SHIPPED / f"{split}.jsonl.gz"))]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of transcripts, and lists for it: with another sign in a column, without the base score."""
    root = tmp_path_factory.mktemp("drift")
    train = library.read(SHIPPED / "train.jsonl.gz", "jsonl")
    library.fit(train, metric="wer", features="dense", epochs=1).save(root / "model")
    lines = lines_of("test")
    written: dict[str, list[str]] = {"test": [], "turned": [], "unscored": []}
    for line in lines:
        written["test"].append(json.dumps(line))
        for one in line["candidates"]:
            one["features"]["lm"] *= -1
        written["turned"].append(json.dumps(line))
        for one in line["candidates"]:
            del one["score"]
        written["unscored"].append(json.dumps(line))
    for name, texts in written.items():
        (root / f"{name}.jsonl").write_text("\n".join(texts))
    lines = lines_of("train")
    shifted = [
        {**line, "reference": other["reference"]} for line, other in zip(lines, lines[1:] + lines[:1], strict=True)
    ]
    (root / "shifted.jsonl").write_text("\n".join(map(json.dumps, shifted)))
    return root


@pytest.mark.parametrize("predictor", ["average", "mbr"])
def test_lists_unlike_those_of_training_are_ranked_with_a_warning(place: Path, predictor: str, rerank: Command) -> None:
    options = "rank", place / "model", "--predictor", predictor
    done = rerank(*options, place / "test.jsonl")
    assert done.code == 0
    assert "unlike" not in done.err
    done = rerank(*options, place / "turned.jsonl")
    assert done.code == 0
    assert done.err.count("unlike that of the training lists") == 1
    assert "the score column 'lm'" in done.err.replace("\n", " ")


def test_lists_without_the_base_score_are_refused(place: Path, rerank: Command) -> None:
    done = rerank("rank", place / "model", place / "unscored.jsonl")
    refused(done, "found no base score; expected 'score', as in the training lists")


def test_columns_that_only_the_header_knows_are_left_out(place: Path) -> None:
    known = library.load(place / "model").model
    columns = {"nothing": known.about["columns"]["lm"], **known.about["columns"]}
    model = library.Reranker(replace(known, about={**known.about, "columns": columns}))
    assert len(list(model.rank_many(place / "test.jsonl"))) == 150


def test_oracle_doubts_references_of_other_lists(place: Path, rerank: Command) -> None:
    done = rerank("oracle", SHIPPED / "train.jsonl.gz", "--reader", "jsonl", "--metric", "wer")
    assert done.code == 0
    assert "off by a line" not in done.err
    done = rerank("oracle", place / "shifted.jsonl", "--reader", "jsonl", "--metric", "wer")
    assert done.code == 0
    assert "long candidates do not go with long references" in done.err.replace("\n", " ")


def test_the_service_names_columns_that_are_unknown(
    place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("uvicorn")
    from rerank.contrib.serve.app import answer

    monkeypatch.setattr(logging.getLogger("rerank"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("rerank"), "handlers", [])
    model = library.load(place / "model")
    columns = {"lm": 0.0, "acoustic": 0.0}
    for _ in range(2):
        candidates = [{"text": "a", "score": 0.0, "columns": {**columns, "other": 1.0}}]
        answer(model, json.dumps({"candidates": candidates}).encode())
    assert [message.partition(";")[0] for message in caplog.messages] == [
        "score columns that the model does not know: 'other'"
    ]
    with pytest.raises(library.RerankError, match="candidate 1: found no number as") as caught:
        answer(model, json.dumps({"candidates": [{"text": "a", "columns": columns}]}).encode())
    assert caught.value.field == "candidates[0].score"  # type: ignore[attr-defined]
