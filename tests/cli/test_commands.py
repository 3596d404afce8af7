"""The commands as a user meets them: output, files, exit codes, and one message for everything that goes wrong."""

import gzip
import json
import os
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import small
import yaml
from commands import Result, failed
from programs import PATIENCE

import rerank as library
from rerank import __version__
from rerank.cli.looking import LINE_WIDTH
from rerank.learn.learner import learners
from rerank.metrics.metric import metrics
from rerank.parts import LOSSES
from rerank.readers.reader import readers
from rerank.readers.trees.charniak import CharniakReader

REPOSITORY = Path(__file__).parents[2]


def process(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    """The program in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-m", "rerank", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, **(pipes | options))


@pytest.fixture
def recipe(small_data: Path, tmp_path: Path) -> Path:
    """A recipe file over the small data."""
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(small.settings(small_data)))
    return path


@pytest.fixture
def model(small_run: Path) -> Path:
    return small_run / "model"


def usage(result: Result, *parts: str) -> None:
    """The command line itself was wrong."""
    plain = " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.err).split())
    assert result.code == 2
    assert result.out == ""
    assert "Traceback" not in result.err
    for part in ("Usage:", *parts):
        assert part in plain


# run, extract, train, test


def test_run(rerank, recipe, workspace):
    result = rerank("run", recipe, "--output", workspace / "run", "--set", "learner.name=vrda", "--set", "seed=3")
    assert result.code == 0
    assert str(workspace / "run" / "report.html") in result.out
    metrics = json.loads((workspace / "run" / "metrics.json").read_text())
    assert (metrics["training"]["learner"], metrics["seed"]) == ("vrda", 3)
    for name in ("base", "oracle", "average"):
        assert f"{100 * metrics['splits']['test'][name]['f1']:.2f}" in result.out
    headline = result.out.splitlines()[-2]
    assert headline.startswith("On test, vrda (seed 3) reaches F ")
    gain = metrics["splits"]["test"]["average"]["f1"] - metrics["splits"]["test"]["base"]["f1"]
    significant = metrics["significance"]["test"]["average_vs_base"]["p"] < 0.05
    assert headline.split(": ")[1].startswith(
        f"{100 * gain:.2f} F better, " if significant else "the difference is not signif"
    )
    assert "epoch 2" in result.err
    assert "epoch" not in result.out
    assert "epoch 2" in (workspace / "run" / "log.txt").read_text()


def test_train_then_test_is_run(rerank, recipe, workspace):
    output = workspace / "staged"
    trained = rerank("run", "--until", "train", recipe, "--output", output)
    assert trained.code == 0
    assert f"model: {output / 'model'}" in trained.out
    again = rerank("run", "--until", "train", "--resume", recipe, "--output", output)
    assert ("already finished" in again.err, "epoch" in again.err) == (True, False)
    tested = rerank("run", "--resume", recipe, "--output", output)
    whole = rerank("run", recipe, "--output", workspace / "at once")
    assert tested.code == whole.code == 0
    assert tested.out.replace("staged", "at once") == whole.out
    assert not list((output / ".runs").glob("*.training.npz"))
    assert small.results(output) == small.results(workspace / "at once")
    other = rerank("run", "--resume", recipe, "-o", output, "--set", "seed=9")
    failed(other, 2, str(output / "recipe.yaml"), "run with other settings", "--output")


def test_the_users_recipe_is_not_replaced(rerank, recipe, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    mine = project / "recipe.yaml"
    mine.write_text("# precious\n" + recipe.read_text())
    failed(rerank("run", mine, "-o", project), 2, str(mine), "use another --output")
    assert mine.read_text().startswith("# precious")
    assert rerank("run", mine, "-o", tmp_path / "out").code == 0
    resolved = tmp_path / "out" / "recipe.yaml"
    assert rerank("run", resolved, "-o", tmp_path / "out").code == 0  # it is replaced by itself


def test_a_users_template_beside_the_recipe(rerank, recipe, tmp_path, monkeypatch):
    (tmp_path / "own_for_tests.py").write_text("def f(candidate):\n    return {'n': len(candidate.tokens)}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    own = rerank("run", "--until", "extract", recipe, "--set", "features.user={own: 'own_for_tests:f'}")
    assert own.code == 0, own


# rerank


def best_texts(model: Path) -> list[str]:
    """What the model has chosen in its run: the first candidates, or what lists were decoded to."""
    if (decoded := model.parent / "predictions" / "test.decoded.gz").exists():
        return small.lines_of(decoded)
    written = list(CharniakReader().read(model.parent / "predictions" / "test.nbest.gz"))
    return [found.texts[0].decode() for found in written if found.problem is None]


def test_rerank_reads_stdin_and_writes_files(rerank, model, small_data, tmp_path):
    packed = (small_data / "test.nbest.gz").read_bytes()
    for data in (packed, gzip.decompress(packed)):
        result = rerank("rank", model, "-", stdin=data)
        assert (result.code, result.out.splitlines()) == (0, best_texts(model))
    for name in ("out", "out.gz"):
        result = rerank("rank", model, small_data / "test.nbest.gz", "-o", tmp_path / name)
        content = (tmp_path / name).read_bytes()
        assert (result.code, result.out) == (0, "")
        assert (content[:2] == b"\x1f\x8b") == name.endswith("gz")
        text = gzip.decompress(content) if name.endswith("gz") else content
        assert text.decode().splitlines() == best_texts(model)


def test_a_pipe_is_answered_list_by_list(tmp_path):
    trained = [
        {"candidates": [{"text": f"{word} {k}", "score": g, "gain": g} for g, word in enumerate("ab")]}
        for k in range(20)
    ]
    library.fit(trained, features="dense").save(tmp_path / "model")
    with process("rank", tmp_path / "model", "-", stderr=subprocess.DEVNULL) as running:
        for text in ("first", "second", "third"):  # each is written once the one before is answered
            running.stdin.write(f'{{"candidates": [{{"text": "{text}", "score": 1}}]}}\n'.encode())
            running.stdin.flush()
            assert select.select([running.stdout], [], [], 120)[0]
            assert running.stdout.readline() == f"{text}\n".encode()
        running.stdin.close()
        assert running.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("reader", "written"),
    [
        ("charniak", "1\t{0}\n-1\n(S1 (NN {0}))\n\n"),
        ("trees", "1\t{0}\n-1\t(S1 (NN {0}))\n\n"),
        ("trees", "-1\t(S1 (NN {0}))\n\n"),
        ("trees", "-1\t(S1\n  (NN {0}))\n\n"),
    ],
    ids=["charniak", "counted", "groups", "indented"],
)
def test_a_pipe_of_trees_is_answered_list_by_list(model, reader, written, monkeypatch):
    given, answered = os.pipe()
    monkeypatch.setattr(sys, "stdin", os.fdopen(given))
    rankings = library.load(model).rank_many("-", format=reader)
    with os.fdopen(answered, "w") as out:
        for word in ("first", "second", "third"):
            print(written.format(word), end="", file=out, flush=True)
            assert next(rankings).text.split()[-1] == f"{word}))"
    assert not list(rankings)


def test_bad_lists_keep_their_places(rerank, model):
    data = b"1\ta\nbad\n(S1 (NN x))\n\n1\tb\n-1\n(S1 (NN [/y]))\n\n1\tc\n-1\n(S1 (NN z)\n\n"
    failed(rerank("rank", model, stdin=data), 2, "<stdin>:2: list a", "if most are like it, check that the file")
    result = rerank("rank", model, "-", "--on-bad-list", "skip", stdin=data)
    assert (result.code, result.out) == (0, "\n(S1 (NN [/y]))\n\n")
    assert "skipped 1 list (score)" in result.err
    assert "skipped 1 list (brackets)" in result.err
    result = rerank("rank", model, "-", "--on-bad-list", "skip", "--n-best", 1, stdin=data)
    assert [line for line in result.out.splitlines() if "\t" in line and "-" not in line] == ["0\ta", "1\tb", "0\tc"]


def test_no_lists(rerank, model):
    result = rerank("rank", model, "-")
    assert (result.code, result.out) == (0, "")
    assert "no list in the input" in result.err


def test_rerank_with_another_reader_and_predictor(rerank, model, tmp_path):
    (tmp_path / "lists").write_text("-1\t((S (NN x)))\n-2\t((S (VB x)))\n\n(())\n\n")
    for predictor in ("last", "voted"):
        result = rerank("rank", model, tmp_path / "lists", "--reader", "berkeley", "--predictor", predictor)
        assert (result.code, len(result.out.splitlines())) == (0, 2)
    failed(rerank("rank", model, tmp_path / "lists", "--reader", "berkley"), 2, "did you mean berkeley")
    failed(rerank("rank", model, tmp_path / "lists"), 2, "this looks like berkeley: use --reader berkeley (in a")


def test_failed_output_leaves_nothing(rerank, model, small_data, tmp_path):
    data = gzip.decompress((small_data / "test.nbest.gz").read_bytes())
    (tmp_path / "out").write_text("old")
    (tmp_path / "cut.nbest").write_bytes(data[: len(data) // 2])
    failed(rerank("rank", model, tmp_path / "cut.nbest", "-o", tmp_path / "out"), 2, "cut.nbest:")
    assert (tmp_path / "out").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.nbest", "out"]
    for target in (tmp_path / "none" / "out", tmp_path / "out" / "below", tmp_path):
        failed(rerank("rank", model, small_data / "test.nbest.gz", "-o", target), 1, f"cannot write {target}")


@pytest.mark.parametrize("name", ["x" * 300, "a/" * 3000 + "b"])
def test_names_that_are_longer_than_the_system_allows(rerank, small_data, recipe, name):
    lists, gold = small_data / "test.nbest.gz", small_data / "test.gold.gz"
    for words in (
        ("rank", name, lists), ("run", name),
        ("rank", name, lists, "--predictor", "mbr"),
        ("run", recipe, "-o", name), ("run", recipe, "--set", f"data.root={name}"), ("evaluate", name, gold),
        ("oracle", lists, name), ("compare", name, name),
        ("evaluate", gold, gold, "--metric", f"{{name: parseval, prm: {name}}}"),
    ):  # fmt: skip
        result = rerank(*words)
        assert result.code == 2, words
        assert "longer than the system allows" in result.err or "File name too long" in result.err
        assert "Traceback" not in result.err


# evaluate, oracle, compare


def test_files_without_trees_are_refused(rerank, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("")
    failed(rerank("evaluate", empty, empty), 2, f"{empty}: no tree in the file")
    failed(rerank("evaluate", empty, empty, "--metric", "wer"), 2, f"{empty}: no reference in the file")


def test_evaluate_is_what_the_run_says(rerank, model, small_data, tmp_path):
    (tmp_path / "[best]").write_text("".join(f"{text}\n" for text in best_texts(model)))
    first = [found for found in CharniakReader().read(small_data / "test.nbest.gz") if found.problem is None]
    (tmp_path / "base").write_bytes(b"".join(found.texts[0] + b"\n" for found in first))
    files = (tmp_path / "base", small_data / "test.gold.gz", tmp_path / "[best]")
    result = rerank("evaluate", *files)
    assert result.code == 0
    reports = small.results(model.parent)["splits"]["test"]
    decision = small.results(model.parent)["predictor"]
    scores = [f"{100 * reports[name]['f1']:.2f}" for name in ("base", decision)]
    line = next(line for line in result.out.splitlines() if "f1" in line)
    assert line.split()[1:3] == scores
    test = small.results(model.parent)["significance"]["test"][f"{decision}_vs_base"]
    assert f"{100 * test['difference']:+.2f}" in result.out
    assert "[best]" in result.out  # shown as it is
    assert "(S1" not in rerank("evaluate", *files).out


def test_labels_and_names_that_are_no_utf8_are_shown(rerank, tmp_path):
    (tmp_path / "gold").write_text("(S (NN a) (NN b))\n")
    hypothesis = os.fsencode(tmp_path / "t") + b"\xe9"
    Path(os.fsdecode(hypothesis)).write_text("(S (NN a) (NN b))\n")
    (tmp_path / "own.prm").write_bytes(b"DELETE_LABEL caf\xe9\n")
    metric = f"{{name: parseval, prm: {tmp_path / 'own.prm'}}}"
    result = rerank("evaluate", os.fsdecode(hypothesis), tmp_path / "gold", "--metric", metric)
    assert result.code == 0, result.err
    assert "t\\udce9" in result.out
    assert "caf\\udce9" in result.out


def test_evaluate_refuses(rerank, small_data, tmp_path):
    gold = small_data / "test.gold.gz"
    short = tmp_path / "short.gz"
    small.write_golds(short, small.golds_of(gold)[:-1])
    failed(rerank("evaluate", short, gold), 2, str(short), "end after 39")
    failed(rerank("evaluate", gold, short), 2, str(short), "end after 39")
    failed(rerank("evaluate", gold), 2, "expected HYP REF")
    failed(rerank("evaluate", gold, "-", gold), 2, "name a file")
    failed(rerank("evaluate", gold, gold, "--metric", "bleuu"), 2, "unknown metric 'bleuu'; did you mean bleu?")


def test_compare(rerank, small_run, workspace):
    same = rerank("compare", small_run, small_run)
    assert same.code == 0
    assert re.search(r"A +[\d.]+ +[\d.]+ to [\d.]+ +\+0.00 +1", same.out)
    failed(rerank("compare", small_run, workspace), 2, "no results of a run here")
    usage(rerank("compare", small_run, small_run, "--samples", 3), "--samples")


# inspect, explain, list


def test_inspect(rerank, model):
    result = rerank("inspect", model, "--top", 1)
    assert result.code == 0
    for template in small.TEMPLATES:
        assert f"\n {template}  " in result.out
        assert f"\n{template}\n" in result.out
    brief = rerank("inspect", model, "--top", 0).out
    assert len(brief.splitlines()) < len(result.out.splitlines())
    found = rerank("inspect", model, "--feature", "NP | → DT NN")
    assert (found.code, "Rule|NP | → DT NN" in found.out) == (0, True)
    failed(rerank("inspect", model, "--predictor", "voted"), 2, "no weights of its own")
    usage(rerank("inspect", model, "--top", -1), "--top")


def test_explain(rerank, model, small_data):
    nbest, gold = small_data / "test.nbest.gz", small_data / "test.gold.gz"
    name = small.lists_of(nbest)[2].split("\n")[0].split("\t")[1]
    result = rerank("explain", model, nbest, "--list", name)
    assert result.code == 0
    assert best_texts(model)[2][:60] in result.out
    assert "oracle" not in result.out
    with_gold = rerank("explain", model, nbest, "--list", name, "--gold", gold)
    assert with_gold.code == 0
    assert "oracle" in with_gold.out
    failed(rerank("explain", model, nbest, "--list", "nobody"), 2, str(nbest), "no usable list 'nobody'")
    usage(rerank("explain", model, nbest), "--list")


def test_explain_shows_words_as_they_are(rerank, model, tmp_path):
    two = "2\t[/a]\n-1\n(S1 (NP (NN [/b])) (: :100:))\n-2\n(S1 (VP (VB [/b])) (: :100:))"
    small.write_lists(tmp_path / "lists", [two, "0\tnone"])
    result = rerank("explain", model, tmp_path / "lists", "--list", "[/a]")
    assert result.code == 0
    assert "(S1 (NP (NN [/b])) (: :100:))" in result.out
    failed(rerank("explain", model, tmp_path / "lists", "--list", "none"), 2, "list none", "no candidates")


def test_a_message_shows_line_numbers_as_they_are(rerank, model, tmp_path):
    lists = ["1\tx\n-1\n(S1 (NN x))"] * 40
    lists[24] = "1\tbad\nbad\n(S1 (NN x))"
    texts = [text.replace("\tx", f"\tx{i}") for i, text in enumerate(lists)]
    small.write_lists(tmp_path / "lists", ["", *texts])
    result = rerank("rank", model, tmp_path / "lists", "-o", tmp_path / "out")
    failed(result, 2, "lists:100: list bad: found 'bad'")


def test_list(rerank, tmp_path, monkeypatch):
    for kind, names in (
        ("readers", readers.names()),
        ("metrics", metrics.names()),
        ("learners", learners.names()),
        ("losses", sorted(LOSSES)),
        ("templates", ["Rule", "Heads", "set cj2005"]),
    ):
        result = rerank("list", kind, "--all")
        assert result.code == 0
        for name in names:
            assert re.search(rf"^{name}\b", result.out, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    recipes = rerank("list", "recipes").out
    assert "\n  quickstart  Two learners on the parses in data/quickstart" in recipes
    assert "..." not in recipes
    assert recipes.index("samples:\n  llm ") < recipes.index("\nparses:\n") < recipes.index("\npapers:\n")
    few = rerank("list", "learners").out
    assert "\nmaxent  " in few
    assert re.search(r"and \d+ more: rerank list learners --all", few)
    assert max(map(len, (recipes + few).splitlines())) <= LINE_WIDTH + 3  # of which two before and one behind a name
    everything = rerank("list").out
    assert all(kind in everything.splitlines() for kind in ("readers", "templates", "metrics", "learners", "losses"))
    usage(rerank("list", "learner"), "'learner' is not one of")


# what goes wrong


def test_usage(rerank, recipe, tmp_path):
    usage(rerank("rum", recipe), "No such command 'rum'")
    usage(rerank("run", recipe, "--sett", "a=b"), "No such option: --sett")
    usage(rerank("run"), "Missing argument 'RECIPE'")
    usage(rerank("rank", tmp_path, "-", "--n-best", 0), "--n-best")
    assert rerank("--version") == (0, f"rerank {__version__}\n", "")
    for arguments in (["--help"], ["run", "-h"]):
        assert rerank(*arguments).code == 0


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("training.epochs=0", ["training.epochs: found 0"]),
        ("learner.eta=1", ["learner: learner perceptron has no setting 'eta'"]),
        ("training.select={learner: {l1: 1}}", ["training.select.learner.name: no learner is named"]),
        ("data.reader.name=charnak", ["data.reader.name: unknown reader 'charnak'; did you mean"]),
        ("data.nbest='-'", ["data.nbest: ", "name a file"]),
        ("features.templates=[Rules]", ["unknown template 'Rules'; did you mean Rule"]),
        ("data.root=/nowhere", ["/nowhere/train.nbest.gz: no such file"]),
        ("data.tests=[tests]", ["tests.nbest.gz: no such file; did you mean", "test.nbest.gz"]),
        ("metric.prm=/nowhere.prm", ["/nowhere.prm: cannot read the parameter file"]),
        ("training.start=/nowhere", ["/nowhere: no such directory"]),
    ],
)
def test_wrong_settings_fail_before_anything_is_touched(rerank, recipe, tmp_path, workspace, small_run, setting, parts):
    failed(rerank("run", "--until", "extract", recipe, "-o", tmp_path / "out" / "x", "--set", setting), 2, *parts)
    assert not (tmp_path / "out").exists()
    if not (workspace / "kept").exists():
        shutil.copytree(small_run, workspace / "kept")
    failed(rerank("run", recipe, "-o", workspace / "kept", "--set", setting), 2, *parts)
    assert small.files_of(workspace / "kept") == small.files_of(small_run)


def test_wrong_recipes(rerank, tmp_path):
    failed(rerank("run", tmp_path / "none.yaml"), 2, "none.yaml: cannot read the recipe", "known: asr, classification,")
    failed(rerank("run", "quikstart"), 2, "did you mean quickstart?", "papers/vrda-table1", "translation")


WRONG: list[tuple[str, Any, list[str]]] = [  # files of the test split, what becomes of them, what is said
    ("nbest", lambda data: data[: len(data) // 2], ["test.nbest.gz: ", "cut short"]),
    ("nbest", lambda _: b"", ["test."]),
    ("gold", lambda trees: trees[:-1], ["39 gold trees for at least 40 lists of ", "(list test-40 at line "]),
    ("gold", lambda trees: trees[::-1], ["40 of 40 sentences have other words", ".gz:1: list ", "in the same order?"]),
    ("gold", lambda trees: ["(S1 (NN x)", *trees[1:]], ["test.gold.gz:1: the tree that starts here"]),
]


@pytest.mark.parametrize(("file", "change", "parts"), WRONG)
def test_wrong_data(rerank, recipe, small_data, workspace, tmp_path, file, change, parts):
    data = tmp_path / "data"
    shutil.copytree(small_data, data)
    path = data / f"test.{file}.gz"
    if file == "nbest":
        path.write_bytes(change(path.read_bytes()))
    else:
        small.write_golds(path, change(small.golds_of(path)))
    before = {path.name for path in (workspace / ".cache").iterdir()} if (workspace / ".cache").exists() else set()
    output = workspace / "wrong data"
    result = rerank("--quiet", "run", recipe, "-o", output, "--set", f"data.root={data}")
    failed(result, 2, *parts)
    assert not (output / "metrics.json").exists()
    assert not (output / "model").exists()
    after = {path.name for path in (workspace / ".cache").iterdir()}
    assert not any(name.startswith((".", "test-")) for name in after - before)


def test_unwritable_outputs(rerank, recipe, tmp_path):
    (tmp_path / "file").write_text("mine")
    for output in (tmp_path / "file", tmp_path / "file" / "below", "/proc/rerank/x"):
        failed(rerank("--quiet", "run", recipe, "-o", output), 1, "cannot write")
    assert (tmp_path / "file").read_text() == "mine"


def test_damaged_models(rerank, model, small_data, tmp_path):
    nbest, copy = small_data / "test.nbest.gz", tmp_path / "copy"
    shutil.copytree(model, copy)
    (copy / "average.npy").write_bytes((copy / "average.npy").read_bytes()[:-7])
    for command in (
        ["rank", copy, nbest, "-o", tmp_path / "out"],
        ["inspect", copy],
        ["explain", copy, nbest, "--list", "x"],
    ):
        failed(rerank(*command), 2, str(copy), "average.npy")
    assert not (tmp_path / "out").exists()
    failed(rerank("rank", tmp_path / "nowhere", nbest), 2, "nowhere: no such directory; check the name")


# processes of their own


@pytest.mark.parametrize("command", ["rank", "list"])
def test_a_reader_that_has_had_enough(model, small_data, command):
    arguments = ["list"] if command == "list" else ["rank", model, small_data / "train.nbest.gz", "--n-best", 50]
    with process(*arguments) as running:
        running.stdout.read(10)
        running.stdout.close()
        err = running.stderr.read()
    assert running.wait(PATIENCE) in (0, 1)
    assert b"Traceback" not in err
    assert b"Exception ignored" not in err
    assert b"error:" not in err
