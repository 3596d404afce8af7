"""Files that are not what a command was told, models of other lists, and files by URL."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small
import small_classes
import small_texts
import yaml
from commands import Command, refused
from served import Served, serving

import rerank as library
from rerank.models.model import Model
from rerank.recipes.settings import Settings
from rerank.runs import experiment
from rerank.storage.outputs import HEAD, NOTE

# What a run writes or removes at the top of its output directory, as files of somebody else's.
NAMES = [
    "recipe.yaml", "metrics.json", "history.jsonl", "report.html", "log.txt", ".rerank.lock", NOTE,
    "model/model.json", "model/notes.txt", "predictions/test.nbest.gz", "predictions/notes.txt", ".runs/0000/run.json",
]  # fmt: skip


def recipe_at(place: Path, settings: dict[str, Any]) -> Path:
    path = place / "of-the-user.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


@pytest.fixture(params=["lists", "classes"])
def recipe(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "lists":
        return recipe_at(tmp_path, small.settings(request.getfixturevalue("small_data")))
    (tmp_path / "data").mkdir()
    return recipe_at(tmp_path, small_classes.settings(small_classes.write_set(tmp_path / "data")))


@pytest.mark.parametrize(("name", "until"), [*((name, "test") for name in [*NAMES, "all"]), ("all", "train")])
def test_what_is_of_somebody_else_stays(rerank: Command, recipe: Path, tmp_path: Path, name: str, until: str) -> None:
    out = tmp_path / "out"
    for each in NAMES if name == "all" else [name]:
        (out / each).parent.mkdir(parents=True, exist_ok=True)
        (out / each).write_text("mine")
    before = small.files_of(out)
    for options in ([], ["--resume"]):
        of_classes = "classification" in recipe.read_text() and until == "train"
        said = "leaves results and no model" if of_classes else str(out)
        refused(rerank("run", "--until", until, recipe, "-o", out, *options), said)
        assert small.files_of(out) == before


def finished(rerank: Command, recipe: Path, out: Path) -> None:
    assert rerank("run", recipe, "-o", out).code == 0
    assert (out / NOTE).read_text().startswith(HEAD)


def test_files_beside_those_of_a_run(rerank: Command, recipe: Path, small_run: Path, tmp_path: Path) -> None:
    """In a run's own directory: what is in the way is named before anything is removed, all else survives."""
    assert small_run.exists()
    out = tmp_path / "out"
    finished(rerank, recipe, out)
    kept = ["notes.txt", "predictions/notes.txt", "predictions/.x.0123456789abcdef.partial", "figures/mine.svg"]
    kept += [".x.01234567.partial", "mine/metrics.json", "metrics.mine.npz", ".runs/0007/run.json", ".runs/notes.txt"]
    for name in kept:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
    finished(rerank, recipe, out)
    for name in kept:
        assert (out / name).read_text() == "mine", name
    if "classification" in recipe.read_text():  # a run of examples leaves no folder that is all its own
        return
    (out / "model" / "notes.txt").write_text("mine")
    before = small.files_of(out)
    refused(rerank("run", recipe, "-o", out), "model/notes.txt", "this was not written by a run; move it")
    assert small.files_of(out) == before


def test_predictions_that_somebody_else_has_written(rerank: Command, small_data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recipe = recipe_at(tmp_path, small.settings(small_data))
    (out / "predictions").mkdir(parents=True)
    (out / NOTE).write_text(f"{HEAD}\nlog.txt\n")
    (out / "predictions" / "test.nbest.gz").write_text("mine")
    refused(rerank("run", recipe, "-o", out), "'predictions/test.nbest.gz', which was not written by a run")
    assert (out / "predictions" / "test.nbest.gz").read_text() == "mine"


@pytest.mark.parametrize(
    ("split", "until"), [("absolute", "test"), ("up", "train"), ("below", "extract"), ("empty", "test")]
)
def test_a_split_that_is_a_path(rerank: Command, small_data: Path, tmp_path: Path, split: str, until: str) -> None:
    data = tmp_path / "data"
    shutil.copytree(small_data, data)
    name = {"absolute": str(data / "test"), "up": "../data/test", "below": "data/test", "empty": ""}[split]
    recipe = recipe_at(tmp_path, small.settings(data))
    before = small.files_of(tmp_path)
    for key in ("tests", "dev", "train"):
        ended = rerank("run", "--until", until, recipe, "--set", f"data.{key}={name!r}", "-o", tmp_path / "out")
        refused(ended, f"data.{key}", "the name of a split")
        assert small.files_of(tmp_path) == before


def test_a_recipe_named_after_another_place(rerank: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name in ("../../up", str(tmp_path / "abs")):
        settings = small_classes.settings(small_classes.write_set(tmp_path / "data")) | {"name": name}
        assert rerank("run", recipe_at(tmp_path, settings)).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "of-the-user.yaml", "work"]
    assert len(list((tmp_path / "work" / "runs").iterdir())) == 2


def test_names_of_sets_and_runs(rerank: Command, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    root = small_classes.write_set(tmp_path / "data")
    source = {"path": "{root}/marked.svm.gz", "folds": "{root}/marked.folds.txt"}
    settings = small_classes.settings(
        root,
        data={"sets": {"../up": source, "a b": source, "a/b": source, "..": source}},
        runs=[{"name": "/tmp/x"}, {"name": "../y"}],
    )
    before = {path.name for path in tmp_path.iterdir()}
    ended = rerank("run", recipe_at(tmp_path, settings), "-o", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert {path.name for path in tmp_path.iterdir()} == before | {"out", "of-the-user.yaml"}
    assert len(list((tmp_path / "out" / "predictions").iterdir())) == 4


def test_a_run_keeps_what_it_reads(rerank: Command, small_run: Path, small_data: Path, tmp_path: Path) -> None:
    """Predictions and the model of a run before, as input of the next one into the same directory."""
    out = tmp_path / "out"
    shutil.copytree(small_run, out)
    before = small.files_of(out)
    for changes, named in (
        ({"data": {"nbest": f"{out}/predictions/test.nbest.gz"}}, "predictions/test.nbest.gz"),
        ({"training": {"start": str(out / "model"), "epochs": 1}}, "model/model.json"),
        ({"metric": {"prm": str(out / "report.html")}}, "report.html"),
    ):
        recipe = recipe_at(tmp_path, small.settings(small_data, **changes))
        refused(rerank("run", recipe, "-o", out), named)
        assert small.files_of(out) == before


def test_commands_keep_what_they_read(rerank: Command, small_run: Path, small_data: Path, tmp_path: Path) -> None:
    model, lists = tmp_path / "model", tmp_path / "test.nbest.gz"
    shutil.copytree(small_run / "model", model)
    shutil.copy(small_data / "test.nbest.gz", lists)
    (tmp_path / "link").symlink_to(lists)
    before = small.files_of(tmp_path)
    for arguments in (
        ("rank", model, lists, "-o", lists),
        ("rank", model, lists, "-o", tmp_path / "link"),
        ("rank", model, lists, "-o", tmp_path / "model" / ".." / "test.nbest.gz"),
        ("rank", model, lists, "-o", model / "average.npy"),
        ("export", model, "-o", model / "model.json"),
        ("import", lists, "--like", model, "-o", model),
    ):
        ended = rerank(*arguments)
        assert ended.code == 2, ended
        assert small.files_of(tmp_path) == before


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


def test_a_gain_of_translations_needs_no_references(gains_run: Path, workspace: Path, rerank: Command) -> None:
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


def test_a_gain_out_of_range_has_its_place(data: Path, tmp_path: Path, workspace: Path, rerank: Command) -> None:
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


def test_texts_where_trees_are_measured_name_the_option(data: Path, small_data: Path, rerank: Command) -> None:
    texts, lists, gold = data / "test.ref.gz", data / "test.nbest.gz", small_data / "test.gold.gz"
    said = f"{texts}:1: text outside of a tree; a tree starts with '(' (near 'good'); for texts, name their measure, "
    refused(rerank("oracle", lists, texts), "for texts, name their measure, as --metric bleu")
    for words in (["evaluate", texts, texts], ["evaluate", gold, texts]):
        refused(rerank(*words), said[: said.index("'good'")], "for texts, name their measure, as --metric bleu")


def test_a_model_without_sources_misses_none(texts_run: Path, data: Path, workspace: Path, rerank: Command) -> None:
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


@pytest.fixture(scope="module")
def served(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    pytest.importorskip("aiohttp")
    root = tmp_path_factory.mktemp("served")
    small_texts.write_task(root)
    (root / "parses").symlink_to(small_data)
    with serving(root) as found:
        yield found


def test_side_files_by_url(served: Served) -> None:
    def read(root: str) -> list[library.NBest]:
        sides = {"references": [f"{root}/test.ref.gz"], "sources": f"{root}/test.src.gz"}
        return list(library.read(f"{root}/test.nbest.gz", "moses", **sides))

    found, expected = read(served.url), read(str(served.root))
    assert [(each.source, each.references) for each in found] == [(each.source, each.references) for each in expected]
    assert found[0].source
    assert found[0].references


def test_tables_by_url(served: Served) -> None:
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    pytest.importorskip("narwhals")
    parquet.write_table(pa.table({"prompt": [1, 2, 1], "text": ["a", "b", "c"]}), served.root / "table.parquet")
    found = library.read(f"{served.url}/table.parquet?download=true", group="prompt", text="text")
    assert [[each.text for each in nbest.candidates] for nbest in found] == [["a", "c"], ["b"]]


def test_a_recipe_by_url_gives_the_same_model(served: Served, small_data: Path, tmp_path: Path) -> None:
    changes: Settings = {"training": {"epochs": 1, "vote": False}}
    models = []
    for name, root in (("disk", str(small_data)), ("url", f"{served.url}/parses")):
        recipe = small.recipe(small_data, **changes).change({"data.root": root})
        experiment.run(recipe, tmp_path / name, tests=False)
        models.append(Model.load(tmp_path / name / "model"))
    assert (models[0].weights["average"].w == models[1].weights["average"].w).all()
    assert models[0].about["training_data"] == models[1].about["training_data"]
    lists = library.read(
        f"{served.url}/parses/train.nbest.gz", "charniak", references=f"{served.url}/parses/train.gold.gz?raw=true"
    )
    dev = library.read(small_data / "dev.nbest.gz", "charniak", references=small_data / "dev.gold.gz")
    fitted = library.fit(lists, dev, recipe=small.settings(small_data, **changes))
    assert (models[0].weights["average"].w == fitted.model.weights["average"].w).all()


def test_recipes_hold_no_passwords(served: Served, small_data: Path) -> None:
    root = served.url.replace("//", "//me:secret@")
    with pytest.raises(library.RerankError, match=r"found a name or password in .* ~/\.netrc") as error:
        small.recipe(small_data).change({"data.root": root})
    assert "secret" not in str(error.value)
    small.recipe(small_data).change({"data.root": "github://me:lists@main/a"})


def test_commands_take_urls(served: Served, small_run: Path, small_data: Path, rerank: Command) -> None:
    found = rerank("rank", small_run / "model", f"{served.url}/parses/test.nbest.gz")
    assert (found.code, found.out) == (0, rerank("rank", small_run / "model", small_data / "test.nbest.gz").out)
    golds = f"{served.url}/parses/test.gold.gz"
    found = rerank("evaluate", golds, golds)
    assert (found.code, found.out) == (
        0,
        rerank("evaluate", small_data / "test.gold.gz", small_data / "test.gold.gz").out,
    )
    missing = f"{served.url}/parses/no.nbest.gz"
    refused(rerank("rank", small_run / "model", missing), missing, "no such file there; check the URL")
    other = f"{served.url}/test.nbest.gz"
    refused(rerank("rank", small_run / "model", other), other, "this looks like moses")
