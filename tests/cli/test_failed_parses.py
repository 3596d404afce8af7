"""Failed parses, from lists to scores: every command counts them as EVALB does, and goes on."""

import re
from pathlib import Path

import pytest
import small
from commands import Command, failed

from rerank.runs import experiment

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
