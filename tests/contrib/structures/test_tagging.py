"""Recipes of tagging, from files to a report, the commands that use their models, and labels that are none."""

import gzip
import json
import select
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from commands import Command, failed
from outcomes import read_lists
from service import serving

import rerank
from rerank.base.errors import DataError, RecipeError
from rerank.contrib.structures.fitting import jackknife, tagger
from rerank.contrib.structures.kind import usual_labels
from rerank.contrib.structures.readers import TaggedSentence
from rerank.contrib.structures.recipe import doubt_of_labels
from rerank.contrib.structures.tagger import Tagger
from rerank.readers.texts.jsonl import JsonlReader
from rerank.recipes.loading import read_settings
from rerank.runs import experiment

Ran = tuple[Path, dict[str, Any], dict[str, Any]]  # a directory, the settings of a run in it, its metrics
NAMES = ("Ann", "Bob", "Cid", "Dora", "Eve", "Flo")


def sentences(first: int, count: int) -> list[str]:
    """Names that are spans of one or two words, which "and" joins or not."""
    made = []
    for k in range(first, first + count):
        a, b, c = (NAMES[(k * step) % len(NAMES)] for step in (1, 5, 7))
        joined = (
            f"{a} N B-P\nand C {'I' if k % 2 else 'O'}-P\n".replace("O-P", "O") + f"{b} N {'I' if k % 2 else 'B'}-P\n"
        )
        made.append(f"{joined}{'meet' if k % 2 else 'meets'} V O\n{c} N B-P\n\n")
    return made


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A directory with files and a run of both stages, its settings and its metrics."""
    root = tmp_path_factory.mktemp("tagging")
    for split, first, count in (("train", 0, 40), ("dev", 40, 10), ("test", 50, 12)):
        (root / f"{split}.conll").write_text("".join(sentences(first, count)))
    settings = {
        "name": "names", "task": "tagging", "data": {"root": str(root)}, "training": {"epochs": 3},
        "significance": {"samples": 100}, "rerank": {"n": 4, "folds": 2, "recipe": {"features.min_lists": 1}},
        "runs": [{"name": "words", "set": {"features.templates": ["U:%x[0,0]"]}}, {"name": "all"}],
    }  # fmt: skip
    return root, settings, experiment.run(read_settings(settings), root / "run")


def test_both_stages_are_measured(ran: Ran) -> None:
    root, _, metrics = ran
    systems = metrics["splits"]["test"]
    assert systems["base"]["f1"] < systems["average"]["f1"] <= systems["oracle"]["f1"]
    assert set(systems["reranked"]) == {"f1", "precision", "recall"}
    assert metrics["measure"] == "f1"
    assert [run["name"] for run in metrics["runs"]] == ["words", "all"]
    assert metrics["chosen"]["name"] == max(metrics["runs"], key=lambda run: run["dev"])["name"]
    assert set(metrics["significance"]["test"]) == {"average_vs_base", "reranked_vs_base", "reranked_vs_tagger"}
    assert "On test, reranking makes " in metrics["second"]
    assert metrics["corpora"]["train"] == {"sentences": 40, "tokens": 200, "labels": 3, "skipped": {}}
    page = (root / "run" / "report.html").read_text()
    assert "test, by type of span" in page
    assert "rerank/report.html" in page
    rows = (root / "run" / "predictions" / "test.txt").read_text().splitlines()
    assert len(rows[0].split()) == 4
    (nested,) = (json.loads((root / "run" / "rerank" / "metrics.json").read_text()),)
    assert nested["splits"]["test"]["average"] == systems["reranked"]


def test_new_sentences_go_through_both_stages(ran: Ran, rerank: Command) -> None:
    run = ran[0] / "run"
    lists = rerank("tag", run / "model", ran[0] / "test.conll", "--n-best", 4).out
    ranked = rerank("rank", run / "rerank" / "model", "--n-best", 4, stdin=lists.encode()).out
    with gzip.open(run / "rerank" / "predictions" / "test.nbest.gz", "rt") as file:
        expected, found, given = map(texts, (file, ranked.splitlines(), lists.splitlines()))
    assert found == expected != given


def texts(lines: Iterable[str]) -> list[list[str]]:
    """The candidates of lists in JSON lines."""
    return [[candidate["text"] for candidate in json.loads(line)["candidates"]] for line in lines]


def test_one_file_is_cross_validated(tmp_path: Path, rerank: Command) -> None:
    (tmp_path / "train.conll").write_text("".join(sentences(0, 40)))
    made = rerank("new", tmp_path / "train.conll", "-o", tmp_path / "r.yaml")
    assert "by cross-validation" in made.out
    result = rerank("run", tmp_path / "r.yaml", "--set", "training.epochs=3", "-o", tmp_path / "run")
    assert "Cross-validated: the sentences of train are cut into 5 sections, and what" in result.out, result
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    base, best = (metrics["splits"]["train"][name]["f1"] for name in ("base", "average"))
    assert base < 0.9 < best
    assert metrics["significance"]["train"]["average_vs_base"]["p"] < 0.05
    assert "train, by type of span" in (tmp_path / "run" / "report.html").read_text()


def test_it_goes_on_where_it_stopped(ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, settings, metrics = ran
    plain = {key: value for key, value in settings.items() if key != "rerank"}
    with monkeypatch.context() as patch:
        patch.setattr(
            "rerank.contrib.structures.kind.label_table", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            experiment.run(read_settings(plain), tmp_path / "run")
    monkeypatch.setattr("rerank.contrib.structures.fitting.train_tagger", None)  # nothing is trained again
    again = experiment.run(read_settings(plain), tmp_path / "run", resume=True)
    assert again["splits"]["test"]["average"] == metrics["splits"]["test"]["average"]


def test_lists_are_read_by_rankings(ran: Ran) -> None:
    root, _, _ = ran
    lists = list(read_lists(JsonlReader(), root / "run" / "lists" / "train.jsonl.gz"))
    assert len(lists) == 40
    first: Any = lists[0]
    assert first.references == (b"Ann/B-P and/O Ann/B-P meets/O Ann/B-P",)
    assert len(first) == 4
    assert list(first.base) == sorted(first.base, reverse=True)


def test_a_fold_is_tagged_by_a_tagger_of_the_others() -> None:
    """Words that occur in one fold alone are unknown to its tagger."""
    made = [TaggedSentence(((f"w{k}",), ("x",)), (f"A{k % 2}", "B"), str(k)) for k in range(6)]
    rows = [list(zip(each.words, each.labels, strict=True)) for each in made]
    like = tagger(rows, templates="U:%x[0,0]", epochs=2)
    found = list(jackknife(like, made, 3, 2))
    assert [sentence.id for sentence, _ in found] == [str(k) for k in range(6)]
    with pytest.raises(DataError, match="found 6 sentences; expected 7 or more"):
        list(jackknife(like, made, 7, 2))


def test_the_most_frequent_labels() -> None:
    made = [TaggedSentence((("a",), ("b",), ("a",)), ("X", "Y", "Z")), TaggedSentence((("a",), ("c",)), ("Z", "Y"))]
    assert usual_labels(made, [*made, TaggedSentence((("d",),))]) == [["Z", "Y", "Z"], ["Z", "Y"], ["Y"]]


def test_commands(rerank: Command, ran: Ran, tmp_path: Path) -> None:
    root, _, _ = ran
    model, test = root / "run" / "model", root / "test.conll"
    tagger = Tagger.load(model)
    result = rerank("tag", model, test)
    assert result.code == 0
    assert result.out.splitlines()[0].split()[:3] == test.read_text().split()[:3]
    bare = tmp_path / "bare.conll"
    bare.write_text("\n".join(" ".join(line.split()[:2]) for line in test.read_text().splitlines()) + "\n")
    tagged = [line.split()[-1] for line in rerank("tag", model, bare).out.splitlines() if line]
    assert tagged == [line.split()[-1] for line in result.out.splitlines() if line]
    (line, *_) = rerank("tag", model, bare, "--json").out.splitlines()
    assert json.loads(line)["labels"] == tagged[:5]
    out = tmp_path / "lists.jsonl.gz"
    assert rerank("tag", model, root / "train.conll", "--n-best", "3", "-o", out).code == 0
    (entry, *rest) = map(json.loads, gzip.decompress(out.read_bytes()).decode().splitlines())
    assert len(rest) == 39
    assert entry["candidates"][0]["answer"].split()[0] in tagger.labels
    unknown = json.loads(rerank("tag", model, bare, "--n-best", "2").out.splitlines()[0])
    assert "references" not in unknown
    assert "same result in every list: B as A" in rerank("compare", root / "run", root / "run").out
    failed(rerank("tag", root / "run" / "rerank" / "model", test), 2, "a model that reranks lists; expected one that")
    failed(rerank("rank", model, test), 2, "a model that tags words")
    failed(rerank("tag", model, test, "--reader", "conl"), 2, "did you mean conll")
    failed(rerank("tag", model, test, "--reader", "{"), 2, "--reader: found '{', which is not valid YAML")
    (tmp_path / "bad").write_text("a\n")
    failed(rerank("tag", model, tmp_path / "bad"), 2, "bad:1: list 0: found 1 columns; expected 2 or 3")
    (tmp_path / "wide").write_text("a b c d e\n")
    failed(rerank("tag", model, tmp_path / "wide"), 2, "wide:1: list 0: found 5 columns; expected 2 or 3")


def test_a_service_tags(ran: Ran, tmp_path: Path) -> None:
    tagger = Tagger.load(ran[0] / "run" / "model")
    sentence = [["Ann", "N"], ["meets", "V"]]
    with serving(ran[0] / "run" / "model", tmp_path) as service:

        def post(**asked: Any) -> Any:
            return service.client.post("/tag", json=asked).json()

        assert post(sentences=[sentence, []]) == {"labels": [tagger.tag(sentence), []]}
        best = [{"labels": labels, "score": score} for labels, score in tagger.nbest(sentence, 2)]
        assert post(sentences=[sentence], n=2) == {"nbest": [best]}
        assert "expected 2 columns" in post(sentences=[["Ann"]])["error"]
        for n in (0, -1, 10**9):
            assert post(sentences=[sentence], n=n)["field"] == "n"
        assert "sequences of labels" in post(sentences=[sentence * 4500], n=1000)["error"]
        assert post(sentences="Ann")["field"] == "sentences"
        assert service.client.get("/health").json()["model"] == {"task": "tagging", "labels": list(tagger.labels)}
        assert service.client.post("/rank", json={}).status_code == 404


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "wer"}, "metric.name: wer does not measure labels"),
        ({"learner": "lambdamart"}, "outputs are too many to list"),
        ({"features": {"templates": ["B1:%x[0,0]"]}}, "features.templates: line 1"),
        ({"data": {"reader": "conl"}}, "data.reader.name: unknown sequence_reader 'conl'; did you mean conll"),
    ],
)
def test_bad_recipes_are_refused_before_anything_is_read(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=message):
        experiment.run(read_settings({"name": "x", "task": "tagging", **change}), tmp_path / "run")


def test_slashes_and_blanks_in_lists(rerank: Command, tmp_path: Path) -> None:
    """Slashes in labels stay, words with blanks are one word, labels with blanks are refused."""
    (tmp_path / "train").write_text("a\tN/V\nNew York\tP\n10\u00a0000\tQ\n\n" * 3)
    settings = {"name": "x", "task": "tagging", "data": {"file": str(tmp_path / "train"), "dev": None, "tests": []}}
    settings["data"] |= {"reader": {"name": "conll", "separator": "\t", "label": "last"}}
    experiment.run(read_settings(settings), tmp_path / "run")
    tag = "tag", tmp_path / "run" / "model", tmp_path / "train", "--n-best", "2"
    entry = json.loads(rerank(*tag).out.splitlines()[0])
    assert entry["candidates"][0]["text"] == entry["references"][0] == r"a/N\/V New_York/P 10_000/Q"
    assert entry["source"] == "a New_York 10_000"
    (tmp_path / "train").write_text("a\tN V\nb\tX\n\n")
    failed(rerank(*tag), 2, "found the label 'N V'; behind a slash it may have no blanks")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("B_PER I_PER O", "write B-PER for B_PER, or"), ("b-x i-x o", "write B-x for b-x"),
        ("X-B X-I O", "write B-X for X-B"), ("B-X I-X O", ""), ("V_B N_I X", ""), ("s o i", ""),
    ],
)  # fmt: skip
def test_labels_in_other_forms_are_no_spans(labels: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    sentences = [[*zip("abc", labels.split(), strict=True)]] * 2
    tagger(sentences, epochs=1)
    assert len(caplog.messages) == (said != "")
    assert said in "".join(caplog.messages)
    caplog.clear()
    tagger(sentences, epochs=1, constraints="none")
    assert not caplog.messages


@pytest.mark.parametrize("options", [(), ("--n-best", "2")])
def test_an_answer_comes_before_the_next_question(ran: Ran, options: tuple[str, ...]) -> None:
    """Whoever writes a sentence to the program and waits for what it says gets it."""
    asked = [sys.executable, "-m", "rerank", "tag", str(ran[0] / "run" / "model"), "-", *options]
    with subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        for _ in range(2):
            program.stdin.write(b"Ann N\nmeets V\n\n")
            program.stdin.flush()
            assert select.select([program.stdout], [], [], 120)[0], "no answer"
            answer = b"".join(iter(program.stdout.readline, b"\n")) if not options else program.stdout.readline()
            assert b"Ann" in answer
        program.stdin.close()
        assert program.stdout.read() == b""


def labelled(*rows: tuple[str, str]) -> list[TaggedSentence]:
    return [TaggedSentence(tuple((word,) for word in words.split()), tuple(labels.split())) for words, labels in rows]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("it rains", "A A")], "have one label for all, 'A'"),
        ([("a a", "1.5 2.5"), ("b", "x")], "have labels that are numbers, and not whole"),
        ([("a b", "n v/n")], "have labels with slashes between them"),
        ([("a b/n", "n v")], "have words with slashes between them"),
        ([("a a", "x y")], "repeat one token, with another label each"),
        ([("^we/prn ^saw/see<v>", "pl$ saw<n>$")], "are analyses, as Apertium writes them"),
        ([("# a", "x y")], "begin with the token '#'"),
        ([("it rains", "P V"), ("a dog", "D N")], ""),
    ],
)
def test_labels(rows: list[tuple[str, str]], said: str) -> None:
    assert (said in doubt_of_labels(labelled(*rows))) if said else not doubt_of_labels(labelled(*rows))


@pytest.mark.parametrize(
    ("reader", "rows", "said"),
    [
        ("conllu", [f"# sent_id = 1\n1\tit\t_\t{tag}\t_\t_\t0\t_\t_\t_" for tag in "AB"], "have ids"),
        ("conll", ["it A B\nruns B C\nnow C A", "no C B\nit A A"], "have columns besides with the same labels"),
    ],
)  # fmt: skip
def test_labels_are_those_that_the_reader_names(reader: str, rows: list[str], said: str, tmp_path: Path) -> None:
    path, label = tmp_path / "words", {"conllu": "upos", "conll": "last"}[reader]
    path.write_text("".join(f"{row}\n\n" for row in rows))
    with pytest.raises(DataError, match=said):
        rerank.tagger(path, reader=reader, epochs=1)
    rerank.tagger(path, reader={"name": reader, "label": label}, epochs=1)
    settings = {"name": "t", "task": "tagging", "data": {"file": str(path), "dev": None, "reader": reader}}
    with pytest.raises(DataError, match=f"label: {label}}}"):
        experiment.run(read_settings(settings), tmp_path / "run")
