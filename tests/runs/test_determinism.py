"""The same run again: its bits, its stages, what it extracts once, and shares of its lists."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_texts
from entries import ONLINE, find_entries
from small_models import table_of
from strategies import in_parts, random_corpus, targets

from rerank.base.errors import DataError, RunError
from rerank.base.registry import build
from rerank.data.corpus import Corpus
from rerank.extraction.content import Content
from rerank.extraction.texts import TextContent
from rerank.extraction.trees import TreeContent
from rerank.features.sink import ListFeatures
from rerank.learn.learner import learners
from rerank.learn.train import ListProblem, train
from rerank.models.model import Model
from rerank.models.scorer import Ranked, Scorer
from rerank.readers.reader import Lists, SkipCount
from rerank.recipes.recipe import AUTO, ListRecipe
from rerank.runs import experiment
from rerank.runs.experiment import Stages, stage_lines
from rerank.runs.report.table import MEASURES
from rerank.runs.results import learning_figure
from rerank.storage.streams import Inputs, open_stream

WIDTH, EPOCHS, SEED = 16, 2, 7
ENTRIES = find_entries()


def corpus_in(directory: Path, parts: int) -> Corpus:
    """The same random lists in so many parts on disk."""
    corpus = random_corpus(1, lists=24, candidates=4, width=WIDTH)
    ends = np.linspace(0, corpus.list_count, parts + 1).astype(int)
    return in_parts(directory / f"{parts}-parts", corpus, ends.tolist())


def digest_of(directory: Path) -> str:
    """One digest of all files below a directory, with their names."""
    content = {name: hashlib.sha256(data).hexdigest() for name, data in small.files_of(directory).items()}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def saved(name: str, lists: Corpus, directory: Path) -> str:
    """Train a learner, with its first variant of the tests, and save the model; the digest of its files."""
    spec = {"name": name, **ENTRIES[name].variants[0]}
    learner, oracle = build(learners, spec, "learner"), targets(lists)
    training = train(learner, ListProblem(lists, oracle, SEED), epochs=EPOCHS, keep_log=True)
    votes = training.learner.votes(training.log, lists).arrays()
    state = {key: np.asarray(array) for key, array in training.state._asdict().items()}
    settings = small.recipe(Path("data"), learner=spec).model_dump(mode="json")
    norms = [each.norm for each in training.weights.values()]
    about = {"learner": name, "epochs": training.epoch, "training_data": "random", "norms": norms}
    model = Model(settings, about, table_of(), training.weights, state, votes)
    model.save(directory / name)
    Model.load(directory / name)  # whatever a learner makes can be read
    return digest_of(directory / name)


def digests(directory: str) -> dict[str, str]:
    """Digests of the models of all learners, over lists in one part and in three; ``directory`` gets the files."""
    root = Path(directory)
    root.mkdir()
    found = {}
    for parts in (1, 3):
        lists = corpus_in(root, parts)
        found |= {f"{name} {parts}": saved(name, lists, root / f"models-{parts}") for name in ONLINE}
    return found


def test_every_learner_in_this_process_and_another(tmp_path: Path) -> None:
    """With hashes of texts, threads, kernels of BLAS and a directory of its own."""
    first = digests(str(tmp_path / "first"))
    assert len(set(first.values())) == len(first) > len(ONLINE)
    code = "import json, sys, test_determinism as t; print(json.dumps(t.digests(sys.argv[1])))"
    here = Path(__file__).parent
    paths = [here, here.parent, here.parents[1]]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONHASHSEED": "3", "NUMBA_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Nehalem",
    }  # fmt: skip
    command = [sys.executable, "-c", code, str(tmp_path / "second")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == first


F = next(measure for measure in MEASURES if measure.key == "f1")
TER = next(measure for measure in MEASURES if measure.key == "ter")


def entry(scores: list[float], p: float, difference: float, growth: int = 2) -> dict:
    points = [
        {"share": 0.1 * 2**k, "lists": 100 * growth**k, "dev": None, "splits": {"test": score}}
        for k, score in enumerate(scores)
    ]
    last = {"test": "approximate_randomization", "difference": difference, "p": p, "interval": [0, 0]}
    slope = float(np.polyfit(np.arange(len(scores)), scores, 1)[0])
    return {"split": "test", "points": points, "slope": slope, "last": last}


def test_a_curve_with_a_share_of_one_list_does_not_end_the_run(
    small_data: Path, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    training = {"epochs": 1, "curve": [0.001, 0.5, 1]}
    recipe = small.recipe(small_data, data={"dev": None}, training=training, learner={"base": "auto"})
    experiment.run(recipe, workspace / "short")
    found = json.loads((workspace / "short" / "metrics.json").read_text())
    assert [point["share"] for point in found["curve"]["points"]] == [0.5, 1.0]
    assert "training.curve: a share of 0.001 cannot be trained on" in caplog.text


def test_a_run_with_a_curve(small_data: Path, workspace: Path) -> None:
    recipe = small.recipe(small_data, training={"epochs": 2, "curve": [0.5, 1, 0.25]})
    experiment.run(recipe, workspace / "curve")
    found = json.loads((workspace / "curve" / "metrics.json").read_text())
    curve, lists = found["curve"], found["corpora"]["train"]["lists"]
    assert [point["share"] for point in curve["points"]] == [0.25, 0.5, 1.0]
    assert [point["lists"] for point in curve["points"]] == [round(0.25 * lists), round(0.5 * lists), lists]
    assert curve["points"][-1]["splits"]["test"] == found["splits"]["test"]["average"]["f1"]
    alone = small.recipe(small_data, training={"epochs": 2, "share": 0.25})
    part = experiment.run(alone, workspace / "part")
    assert curve["points"][0]["splits"]["test"] == part["splits"]["test"]["average"]["f1"]
    assert "Doubling the training lists changes F on test by" in (workspace / "curve" / "report.html").read_text()


@pytest.mark.parametrize(
    ("found", "measure", "said"),
    [
        (entry([0.80, 0.81, 0.83], 0.01, 0.02), F, "+1.50 (least squares over 3 sizes)"),
        (entry([0.80, 0.81, 0.83], 0.01, 0.02), F, "brought +2.00: better, p .010. More lists are"),
        (entry([0.80, 0.84], 0.01, 0.04, growth=4), F, "from 100 to 400 lists, brought +4.00, +2.00 per doubling"),
        (entry([0.80, 0.81, 0.83], 0.30, 0.02), F, "not significant, p .300. More lists may not help"),
        (entry([0.80, 0.83, 0.81], 0.01, -0.02), F, "worse, p .010. More lists may not help"),
        (entry([60.0, 58.0], 0.01, -2.0), TER, "better, p .010. More lists are likely to help"),
    ],
)
def test_what_is_said(found: dict, measure: object, said: str) -> None:
    figure = learning_figure(found, measure, "dev")
    assert said in figure.caption
    assert ">test<" in figure.svg


def test_no_curve() -> None:
    assert learning_figure({}, F, "dev") is None


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_are_there_when_things_happen(tmp_path):
    path = tmp_path / "history.jsonl"
    work = Stages(path)
    with work.stage("extract", splits=2) as found:
        (start,) = lines_of(path)
        assert (start["stage"], start["event"], start["splits"]) == ("extract", "start", 2)
        found["lists"] = 7
    work.append([{"run": "one", "epoch": 1}])
    assert [line.get("event") for line in lines_of(path)] == ["start", "end", None]
    end = lines_of(path)[1]
    assert (end["splits"], end["lists"]) == (2, 7)
    assert set(work.summary()["extract"]) == {"seconds", "cpu_seconds", "peak_memory_bytes", "splits", "lists"}
    assert small.epoch_lines(path) == [{"run": "one", "epoch": 1}]
    assert stage_lines(path) == [start, end]


@pytest.mark.parametrize("error", [DataError("bad"), KeyboardInterrupt()])
def test_an_error_stops_a_stage(tmp_path, error):
    work = Stages(tmp_path / "history.jsonl")
    with pytest.raises(type(error)), work.stage("train"):
        raise error
    assert [line["event"] for line in stage_lines(tmp_path / "history.jsonl")] == ["start", "stopped"]


def test_attempts_add_up(tmp_path):
    path = tmp_path / "history.jsonl"
    taken = {"cpu_seconds": 1.0, "peak_memory_bytes": 1 << 50}
    earlier = [
        {"stage": "train", "event": "start", "time": "t"},
        {"stage": "train", "event": "stopped", "time": "t", "seconds": 10.0, **taken, "runs": 3},
        {"run": "one", "epoch": 1},
        {"stage": "train", "event": "start", "time": "t"},
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in earlier) + '{"stage": "train", "event": "en')
    work = Stages(path)
    assert lines_of(path) == [line for line in earlier if "stage" in line]
    with work.stage("train", runs=4):
        pass
    summary = work.summary()["train"]
    assert 10 <= summary["seconds"] < 100
    assert summary["cpu_seconds"] >= 1
    assert (summary["peak_memory_bytes"], summary["runs"]) == (1 << 50, 4)


@pytest.mark.parametrize("line", ["[]", "7", '{"stage": 3}', '{"stage": "x", "event": "end"}', '{"a": "\\ud800"}'])
def test_what_is_no_line_of_a_stage_is_dropped(tmp_path, line):
    path = tmp_path / "history.jsonl"
    path.write_bytes(line.encode() + b"\n\xff\x00\n")
    assert Stages(path).summary() == {}
    assert path.read_text() == ""


def test_a_history_that_cannot_be_written(tmp_path):
    work = Stages(tmp_path / "history.jsonl")
    (tmp_path / "history.jsonl").unlink()
    (tmp_path / "history.jsonl").mkdir()
    with pytest.raises(RunError, match=r"cannot write .*history\.jsonl"):
        work.append([{}])
    with pytest.raises(RunError, match="cannot write"), work.stage("train"):
        pass


def recipe_of(kind: str, small_data: Path, folder: Path) -> ListRecipe:
    if kind == "trees":
        return small.recipe(small_data, training={"epochs": 1}, examples=2)
    folder.mkdir()
    small_texts.write_task(folder)
    features = {"features": {"set": AUTO, "min_lists": 1}} if kind == "texts, their set unknown" else {}
    return small_texts.recipe(folder, training={"epochs": 1}, examples=2, **features)


@pytest.mark.parametrize("kind", ["trees", "texts"])
def test_a_list_is_extracted_once_and_predicted_from_its_corpus(
    kind: str, small_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, seen = recipe_of(kind, small_data, tmp_path / "data"), Counter[tuple[str, str]]()
    recipe = recipe.model_copy(update={"examples": 0})
    for content in (TreeContent, TextContent):

        def extract(self: Content[Any], nbest: Lists, found: Any, own: Any = content.extract) -> ListFeatures:
            seen[nbest.path, nbest.id] += 1
            return own(self, nbest, found)  # type: ignore[no-any-return]

        monkeypatch.setattr(content, "extract", extract)
    experiment.run(recipe, tmp_path / "runs" / "one")
    lists = sum(
        part["lists"] for part in json.loads((tmp_path / "runs/one/metrics.json").read_text())["corpora"].values()
    )
    assert len(seen) == lists
    assert set(seen.values()) == {1}
    seen.clear()
    experiment.run(recipe, tmp_path / "runs" / "two")
    assert not seen
    model, data = Scorer(Model.load(tmp_path / "runs/one/model")), recipe.data
    sources = data.files("test").get("sources", [None])[0]
    expected = list(model.rank(model.read(model.reader, data.files("test")["nbest"][0], SkipCount(), sources)))
    written = [*model.reader.read(str(tmp_path / "runs/one/predictions/test.nbest.gz"))]
    expected = [ranked for ranked in expected if isinstance(ranked, Ranked) and len(ranked.nbest)]
    written = [nbest for nbest in written if nbest.problem is None and len(nbest)]
    assert len(expected) == len(written) > 5
    for ranked, nbest in zip(expected, written, strict=True):  # scores of lists can be compared: nothing is subtracted
        assert nbest.base == pytest.approx(ranked.scores[ranked.order], rel=1e-6, abs=1e-6)
        assert nbest.texts == [ranked.nbest.texts[y] for y in ranked.order]


def test_a_digest_is_taken_as_the_file_streams_and_compared(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfline\n")
    with Inputs() as inputs:
        with open_stream(path) as stream:
            assert stream.read(10) == b"line\n"
            assert stream.read(10) == b""
        path.write_text("other\n")
        assert inputs.digest(str(path)) == hashlib.sha256(b"\xef\xbb\xbfline\n").hexdigest()
        with open_stream(path) as stream:
            assert stream.read(10) == b"other\n"
            with pytest.raises(DataError, match="has changed since"):
                stream.read(10)
