"""Commands given a model, a run, a file or a setting of another kind: one message, and exit code 2."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import small
import small_texts
import yaml
from commands import Command, refused

from rerank.runs import experiment

REWARD = {"name": "gain", "column": "reward"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task of texts, each list of which also has rewards, about -6, in {split}.reward.gz."""
    root = tmp_path_factory.mktemp("texts")
    small_texts.write_task(root)
    for split in small_texts.SIZES:
        lines = [line.split(" ||| ") for line in small_texts.lines_of(root / f"{split}.nbest.gz")]
        for fields in lines:
            fields[2] += f" reward= {float(fields[2].split()[1]) - 8:.4f}"
        small_texts.write_lines(root / f"{split}.reward.gz", [" ||| ".join(fields) for fields in lines])
    return root


def settings(root: Path, **changes: Any) -> dict[str, Any]:
    """A recipe over few templates."""
    few = {
        "training": {"epochs": 2},
        "learner": {"name": "perceptron"},
        "features": {"set": None, "templates": ["Dense", "TargetNGram"], "min_lists": 1},
        "significance": {"samples": 100},
    }
    return small_texts.settings(root, **{**few, **changes})


@pytest.fixture(scope="module")
def texts_run(data: Path, workspace: Path) -> Path:
    """The output of a run over texts, without MERT."""
    output = workspace / "mismatches" / "texts"
    experiment.run(small_texts.TextRecipe.model_validate(settings(data)), output)
    return output


@pytest.fixture(scope="module")
def gains_run(data: Path, workspace: Path) -> Path:
    """The output of a run for translations' rewards, with MERT and without references."""
    output, lists = workspace / "mismatches" / "gains", {"references": None, "nbest": "{root}/{split}.reward.gz"}
    mert = {"split": "tune", "settings": {"restarts": 1}}
    recipe = settings(data, metric=REWARD, data=lists, mert=mert)
    experiment.run(small_texts.TextRecipe.model_validate(recipe), output)
    return output


# Gains


def test_a_gain_of_translations_needs_no_references_and_has_its_own_scale(
    gains_run: Path, workspace: Path, rerank: Command
) -> None:
    output = workspace / "mismatches" / "again"
    result = rerank("run", gains_run / "recipe.yaml", "-o", output)
    assert result.code == 0, result
    log, page = (output / "log.txt").read_text(), (output / "report.html").read_text()
    compared = rerank("compare", gains_run, gains_run)
    for shown in (result.out, log, page, compared.out):
        values = [float(value.replace("−", "-")) for value in re.findall(r"[-−]\d+\.\d{4}\b", shown)]
        assert any(-9 < value < -4 for value in values), shown
        assert not re.search(r"[-−][4-9]\d\d\.\d\d\b", shown)
    assert "mert on tune: -" in log
    assert "no bleu, chrf, as there are lists without references" in log


def test_a_gain_beyond_the_allowed_range_has_its_place(
    data: Path, tmp_path: Path, workspace: Path, rerank: Command
) -> None:
    lines = small_texts.lines_of(data / "train.reward.gz")
    lines[8] = re.sub(r"reward= \S+", "reward= 1e308", lines[8])
    for split in ("dev", "test"):
        shutil.copy(data / f"{split}.reward.gz", tmp_path)
    small_texts.write_lines(tmp_path / "train.reward.gz", lines)
    changes = {"root": str(tmp_path), "references": None, "nbest": "{root}/{split}.reward.gz"}
    changes["sources"] = f"{data}/{{split}}.src.gz"
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(settings(data, metric=REWARD, data=changes)))
    result = rerank("--quiet", "run", path, "-o", workspace / "mismatches" / "huge")
    refused(result, "train.reward.gz:9: list 1", "1e+308 as 'reward'", "from -1e+30 to 1e+30")


# Runs


@pytest.mark.parametrize("other", ["trees", "gains", "recipe", "recipe of trees"])
def test_compare_with_a_run_of_another_kind(
    other: str, texts_run: Path, gains_run: Path, small_run: Path, tmp_path: Path, rerank: Command
) -> None:
    if other in ("trees", "gains"):
        run = small_run if other == "trees" else gains_run
        for pair in ((texts_run, run), (run, texts_run)):
            refused(rerank("compare", *pair), "the runs were scored differently")
        return
    mixed, given = (texts_run, small_run) if other == "recipe" else (small_run, texts_run)
    shutil.copytree(mixed, tmp_path / "mixed")
    shutil.copy(given / "recipe.yaml", tmp_path / "mixed")
    refused(rerank("compare", tmp_path / "mixed", mixed), "test.selections.npz", "the files are of different runs")


# Settings


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "wer", "cer"])
@pytest.mark.parametrize("references", ["a b c\n\nf g\n", "\n\n\n"], ids=["one is missing", "all are missing"])
def test_texts_without_references(metric: str, references: str, tmp_path: Path, rerank: Command) -> None:
    """An empty reference where a text has no other is one that is missing: nothing matches it."""
    (tmp_path / "texts").write_text("a b c\nd e\nf g\n")
    (tmp_path / "references").write_text(references)
    (tmp_path / "more").write_text("a\n\n\n")
    for further in ([], ["--reference", tmp_path / "more"]):
        paths = tmp_path / "texts", tmp_path / "references"
        result = rerank("evaluate", *paths, "--metric", metric, "--sentences", *further)
        assert result.code == 0, result
        assert "nan" not in result.out


# Arguments


def test_arguments_given_the_wrong_way_round(
    small_run: Path, small_data: Path, data: Path, tmp_path: Path, rerank: Command
) -> None:
    model, lists, gold = small_run / "model", small_data / "test.nbest.gz", small_data / "test.gold.gz"
    said = f"{model} is a model, and {lists} is none: they are given the wrong way round"
    for words in (["rank", lists, model], ["explain", lists, model, "--list", 1]):
        refused(rerank(*words), said)
    refused(rerank("inspect", lists), f"{lists}: is a file; expected the directory of a model")
    said = f"{lists} holds lists, and {gold} does not: they are given the wrong way round; expected NBEST REF"
    refused(rerank("oracle", gold, lists), said)
    texts, references = data / "test.nbest.gz", data / "test.ref.gz"
    refused(rerank("oracle", references, texts, "--metric", "bleu"), f"{texts} holds lists, and {references} does not")
    small.write_golds(tmp_path / "few.gz", small.golds_of(gold)[:-1])
    assert "wrong way round" not in rerank("oracle", lists, tmp_path / "few.gz").err


def test_texts_where_trees_are_measured_name_the_option(data: Path, small_data: Path, rerank: Command) -> None:
    texts, lists, gold = data / "test.ref.gz", data / "test.nbest.gz", small_data / "test.gold.gz"
    said = f"{texts}:1: text outside of a tree; a tree starts with '(' (near 'good'); for texts, name their measure, "
    refused(rerank("oracle", lists, texts), "for texts, name their measure, as --metric bleu")
    for words in (["evaluate", texts, texts], ["evaluate", gold, texts]):
        refused(rerank(*words), said[: said.index("'good'")], "for texts, name their measure, as --metric bleu")


def test_a_reader_of_other_lists_is_not_advised(
    small_run: Path, texts_run: Path, small_data: Path, data: Path, rerank: Command
) -> None:
    result = rerank("rank", small_run / "model", data / "test.nbest.gz")
    refused(
        result, "this looks like moses, whose lists hold texts; expected trees, as the model or the recipe's task says"
    )
    result = rerank("rank", texts_run / "model", small_data / "test.nbest.gz")
    refused(
        result,
        "this looks like charniak, whose lists hold trees; expected texts, as the model or the recipe's task says",
    )


def test_a_model_that_never_had_sources_misses_none(
    texts_run: Path, data: Path, workspace: Path, rerank: Command
) -> None:
    for split in ("train", "dev", "test"):
        lines = [line.rpartition(" ||| ")[0] for line in small_texts.lines_of(data / f"{split}.nbest.gz")]
        small_texts.write_lines(data / f"{split}.plain.gz", lines)
    features, output = {"set": "text", "min_lists": 1}, workspace / "mismatches" / "no-sources"
    lists = {"nbest": "{root}/{split}.plain.gz", "sources": None, "tests": []}
    recipe = settings(data, data=lists, features=features)
    experiment.run(small_texts.TextRecipe.model_validate(recipe), output)
    for run in (texts_run, output):
        result = rerank("rank", run / "model", data / "test.plain.gz")
        assert result.code == 0
        assert "source" not in result.err
