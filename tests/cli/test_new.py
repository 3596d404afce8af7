"""``rerank new``: from files to a recipe that runs."""

import gzip
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from rerank.recipes.loading import load_recipe

GOOD = "(S1 (NP (NN rain)))"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def samples(*, gain: bool, count: int = 20) -> str:
    lines = []
    for i in range(count):
        both = [{"text": f"{i} {k}", "score": float(k), **({"gain": 1.0 - k} if gain else {})} for k in range(2)]
        lines.append(json.dumps({"id": str(i), "candidates": both}) + "\n")
    return "".join(lines)


def test_a_recipe_runs_as_it_is_written(tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [write(tmp_path, f"mine/{name}.v1.jsonl.gz", samples(gain=True)) for name in ("train", "dev", "test_a")]
    made = rerank("new", *files)
    assert (made.code, "mine.yaml: texts in the format jsonl, measured by the gain" in made.out) == (0, True), made
    data = load_recipe("mine.yaml").data
    assert (data.train, data.dev, data.tests) == (("train",), "dev", ("test_a",))
    assert rerank("run", "mine.yaml", "--set", "features=base").code == 0
    assert "the same that would be written" in " ".join(rerank("new", *files).err.split())
    (tmp_path / "mine.yaml").write_text("task: ranking\nseed: 7\n")
    again = rerank("new", *files)
    assert (again.code, "and would lose: seed: 7;" in " ".join(again.err.split())) == (2, True), again
    named = rerank("new", files[0], "--output", "other.yaml", "--json")
    assert json.loads(named.out)["next"][0] == "rerank run other.yaml"
    assert load_recipe("other.yaml").data.dev is None


@pytest.mark.parametrize(
    ("shipped", "file", "more"),
    [
        ("translation", "translation.nbest", ("--references", "translation.ref")),
        ("parse", "parse.nbest", ("--references", "parse.gold")),
        ("asr", "asr.jsonl", ()),
        ("llm", "llm.jsonl", ()),
    ],
)
def test_the_settings_are_those_of_the_task_and_of_the_shipped_recipe(
    shipped: str, file: str, more: tuple[str, ...], tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    both = [{"text": text, "score": -1.0} for text in ("the house is on the hill", "a house is on the hill")]
    write(tmp_path, "translation.nbest", "0 ||| a b ||| lm= -1 ||| -1\n")
    write(tmp_path, "translation.ref", "a b\n")
    write(tmp_path, "parse.nbest", f"1\ts\n-1.5\n{GOOD}\n\n")
    write(tmp_path, "parse.gold", f"{GOOD}\n")
    write(tmp_path, "asr.jsonl", json.dumps({"reference": "the house is on the hill", "candidates": both}) + "\n")
    write(tmp_path, "llm.jsonl", samples(gain=True))
    assert rerank("new", file, *more, "-o", "made.yaml").code == 0
    made, given = load_recipe("made.yaml"), load_recipe(shipped)
    (tmp_path / "task.yaml").write_text(f"task: {made.task}\n")
    alone = load_recipe("task.yaml")
    written = yaml.safe_load((tmp_path / "made.yaml").read_text())
    assert {"features", "learner"} <= written.keys()
    for section in ("metric", "features", "oracle", "learner", "training", "decode"):
        assert getattr(made, section) == getattr(alone, section)
        if section != "learner" or shipped != "asr":  # whose learner is another
            assert getattr(given, section) == getattr(alone, section)


@pytest.mark.parametrize(
    ("texts", "task", "metric", "said"),
    [
        (("A dog, a cat.", "The dog."), "translation", {"name": "bleu", "tokenize": "13a"}, ""),
        (("a dog , a cat .", "the dog ."), "translation", {"name": "bleu"}, ""),
        (("猫は魚を食べる", "猫は"), "translation", {"name": "bleu", "tokenize": "char"}, ""),
        (("猫は魚を食べる", "猫は"), "speech", {"name": "cer"}, ""),
        (("The dog, it barks.", "the dog, it barked."), "speech", {"name": "wer"}, "tokens, without punctuation marks"),
    ],
)
def test_how_words_are_written_decides_the_measure(
    texts: tuple[str, str], task: str, metric: dict[str, str], said: str, tmp_path: Path, rerank: Any
) -> None:
    reference = texts[0].lower().replace(",", "").replace(".", "") if said else texts[0]
    source = {"source": "ein Hund"} if task == "translation" else {}
    line = {"reference": reference, "candidates": [{"text": text, "score": -float(k)} for k, text in enumerate(texts)]}
    made = rerank("new", write(tmp_path, "x.jsonl", json.dumps(source | line) + "\n"), "-o", tmp_path / "r.yaml")
    recipe = load_recipe(tmp_path / "r.yaml")
    assert (made.code, recipe.task, recipe.metric) == (0, task, metric), made
    assert ("No candidate has" in made.out, said in made.out) == (bool(said), True), made


def test_it_says_why_no_list_is_good(tmp_path: Path, rerank: Any) -> None:
    made = rerank(
        "new", write(tmp_path, "x.jsonl", json.dumps({"id": 1, "phrase": "a"}) + "\n"), "-o", tmp_path / "r.yaml"
    )
    assert (made.code, "--roles query=group,answer=text; found id, phrase" in " ".join(made.err.split())) == (
        2,
        True,
    ), made
    made = rerank("new", write(tmp_path, "x.jsonl", '{"candidates": []}\n'), "-o", tmp_path / "r.yaml")
    assert (made.code, "no list with candidates" in made.err) == (2, True), made


def test_trees_and_texts_with_references(tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trees = write(tmp_path, "trees/train.nbest", "".join(f"1\ts{i}\n-1.5\n{GOOD}\n\n" for i in range(3)))
    gold = write(tmp_path, "trees/train.gold", f"{GOOD}\n" * 3)
    assert "name their files with --references" in rerank("new", trees).err
    assert rerank("new", trees, "--references", gold).code == 0
    assert load_recipe("trees.yaml").task == "parse"
    lists = [write(tmp_path, f"mt/{split}.nbest", "".join(f"{i} ||| a b ||| lm= -1 ||| -1\n" for i in range(3)))
             for split in ("train", "valid")]  # fmt: skip
    right = [write(tmp_path, f"mt/{split}.ref", "a b\n" * 3) for split in ("train", "valid")]
    how = [item for path in right for item in ("--references", path)]
    assert "mt/tain.ref: no such file" in rerank("new", lists[0], "--references", "mt/tain.ref").err
    swapped = rerank("new", *lists, *how[2:], *how[:2]).err
    assert "in this order: train, valid" in " ".join(swapped.split()), swapped
    assert rerank("new", *lists, *how).code == 0
    recipe = load_recipe("mt.yaml")
    assert (recipe.task, recipe.data.dev, recipe.data.references) == (
        "translation",
        "valid",
        (f"{tmp_path}/mt/{{split}}.ref",),
    )


@pytest.mark.parametrize(
    ("more", "sources", "task"),
    [({}, False, "speech"), ({"source": "das Haus"}, False, "translation"), ({}, True, "translation")],
)
def test_texts_without_a_source_are_transcripts(
    more: dict[str, str], sources: bool, task: str, tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    both = [{"text": text, "score": -1.0} for text in ("the house is on the hill", "a house is on the hill")]
    lists = write(tmp_path, "x.jsonl", (json.dumps({**more, "reference": "the house", "candidates": both}) + "\n") * 3)
    given = ("--sources", write(tmp_path, "x.src", "das Haus\n" * 3)) if sources else ()
    made = rerank("new", lists, *given, "-o", "x.yaml")
    assert (made.code, load_recipe("x.yaml").task) == (0, task), made
    assert " ".join(["rerank rank runs/x/model", *map(str, (lists, *given))]) in made.out


def test_short_texts_are_right_or_wrong_as_a_whole(tmp_path: Path, rerank: Any) -> None:
    both = [{"text": text, "score": 0.0} for text in ("York", "New York City")]
    line = json.dumps({"reference": "New York City", "candidates": both})
    made = rerank("new", write(tmp_path, "train.jsonl", f"{line}\n" * 3), "-o", tmp_path / "r.yaml")
    assert "measured by exact match" in made.out
    assert load_recipe(tmp_path / "r.yaml").metric == {"name": "match"}
    code = write(tmp_path, "sql.jsonl", line.replace("New York City", "SELECT a FROM b WHERE c") + "\n")
    assert rerank("new", code, "-o", tmp_path / "c.yaml").code == 2
    assert "by exact match" in rerank("new", code, "--metric", "match", "-o", tmp_path / "c.yaml").out


def test_ranks_are_gains_of_which_lower_is_better(tmp_path: Path, rerank: Any) -> None:
    rows = [{"id": f"q{k}", "answers": [{"answer": f"{k} {r}", "rank": r} for r in (1, 2, 3)]} for k in range(9)]
    path = write(tmp_path, "x.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    refused = rerank("new", path, "-o", tmp_path / "r.yaml")
    said = "'rank' could be a gain of which lower is better: --roles rank=gain"
    assert (refused.code, said in refused.err) == (2, True), refused
    assert rerank("new", path, "--roles", "rank=gain", "-o", tmp_path / "r.yaml").code == 0
    assert load_recipe(tmp_path / "r.yaml").metric == {"name": "gain", "lower": True}
    assert "as the base chooses the lowest of every list" in (tmp_path / "r.yaml").read_text()
    write(tmp_path, "y.jsonl", path.read_text().replace("rank", "reward"))
    assert "'reward' could be the gain; say so" in rerank("new", tmp_path / "y.jsonl").err


@pytest.mark.parametrize("texts", [("C C ( = O ) O", "C C N"), ("CC(=O)O", "CCN"), ("monday", "tuesday")])
def test_no_measure_is_written_for_what_words_do_not_tell(texts: tuple[str, str], tmp_path: Path, rerank: Any) -> None:
    pred, right = (write(tmp_path, f"x.{end}", f"{texts[0]}\n{texts[k]}\n" * 6) for k, end in ((1, "pred"), (0, "tgt")))
    arguments = ("new", pred, "--reader", "{name: opennmt, n: 1}", "--references", right, "-o", tmp_path / "r.yaml")
    refused = rerank(*arguments)
    assert (refused.code, "Choose: --metric match, gain" in refused.err) == (2, True), refused
    assert rerank(*arguments, "--metric", "match").code == 0


def test_sentences_and_examples(tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sentences = "".join("the DT\ndog NN\nbarks VB\n\n" for _ in range(9))
    files = [write(tmp_path, f"tags/{split}.txt.gz", sentences) for split in ("train", "test")]
    made = rerank("new", *files)
    assert (made.code, "sentences with labels in the format conll" in made.out) == (0, True), made
    assert rerank("run", "tags.yaml", "--set", "training.epochs=1").code == 0
    files += [write(tmp_path, "tags/dev.txt.gz", sentences)]
    made = rerank("new", *files, "-o", "chosen.yaml")
    assert rerank("run", "chosen.yaml", "--set", "training.epochs=1").code == 0, made
    names = [run["name"] for run in json.loads(Path("runs/chosen/metrics.json").read_text())["runs"]]
    assert names == ["perceptron", "pa", "pa with longer affixes"]
    nested = write(tmp_path, "nested.conll", "it B I\nruns O B\n\nso I B\nit B O\n\n" * 9)
    refused = rerank("new", nested)
    assert (refused.code, "say so: reader: {name: conll, label: last}" in refused.err) == (2, True), refused
    made = rerank("new", nested, "--reader", "{name: conll, label: 2, columns: [1]}", "-o", "nested.yaml")
    assert (made.code, rerank("run", "nested.yaml", "--set", "training.epochs=1").code) == (0, 0), made
    examples = write(tmp_path, "mail/spam.svm", "1 1:1 3:0.5\n-1 2:1\n" * 20)
    made = rerank("new", examples)
    assert (made.code, load_recipe("mail.yaml").task) == (0, "classification"), made


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.jsonl": samples(gain=False)}, "add a gain to each candidate, or name --references"),
        ({"a.txt": "nothing that anybody writes\n"}, "no known form"),
        ({"a.jsonl": samples(gain=True), "b.nbest": "0 ||| a ||| lm= -1 ||| -1\n"}, "found the formats jsonl, moses"),
        ({"a/1.jsonl": samples(gain=True), "b/2.jsonl": samples(gain=True)}, "whose names differ in one place"),
        ({"a.tsv": "q1\tan answer\t1\nq1\tanother\t0\n" * 20}, "no known form"),
        ({"a.tsv": "q1\tanswer\tright\nq1\tanother\twrong\n" * 20}, "no known form"),
        ({"a.svm": "1 1:1\n", "b.svm": "1 1:1\n", "c.svm": "1 1:1\n"}, "found 3 files of examples; expected one"),
    ],
)
def test_what_no_recipe_can_be_made_of(files: dict[str, str], message: str, tmp_path: Path, rerank: Any) -> None:
    made = rerank(
        "new", *(write(tmp_path, f"x/{name}", text) for name, text in files.items()), "-o", tmp_path / "x.yaml"
    )
    assert (made.code, message in made.err, (tmp_path / "x.yaml").exists()) == (2, True, False), made


@pytest.mark.parametrize(
    ("files", "train", "others"),
    [
        (["it's: a #1 {x}.jsonl"], "train", []),
        (["yes.jsonl", "no.jsonl"], "yes", ["no"]),
        (["null.jsonl"], "null", []),
        (["train.jsonl", "test.jsonl"], "train", ["test"]),
        (["train.a.jsonl", "train.b.jsonl"], "a", ["b"]),
        (["x.jsonl", "x.2.jsonl"], "x", ["x.2"]),
        (["a\\b\nc/train/lists.jsonl", "a\\b\nc/test/lists.jsonl"], "train", ["test"]),
        (["null/dev/lists.jsonl", "null/train/lists.jsonl"], "train", ["dev"]),
        ([f"f{i}.jsonl" for i in range(12)], "f0", [f"f{i}" for i in range(1, 12)]),
    ],
)  # fmt: skip
def test_names_of_files_that_mean_something_elsewhere(
    files: list[str], train: str, others: list[str], tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in files:
        write(tmp_path, name, samples(gain=True, count=3))
    made = rerank("new", *files, "-o", "a: b.yaml", "--json")
    assert made.code == 0, made
    recipe = load_recipe("a: b.yaml")
    data = recipe.data
    assert (recipe.name, data.train, [*filter(None, [data.dev]), *data.tests]) == ("a: b", (train,), others)
    found = map(data.lists, data.splits)
    assert sorted(Path(path).resolve() for path in found) == sorted((tmp_path / name).resolve() for name in files)
    assert json.loads(made.out)["next"][0] == "rerank run 'a: b.yaml'"


def test_files_named_from_elsewhere_and_pipes(tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [write(tmp_path, f"x/{name}.jsonl", samples(gain=True, count=3)) for name in ("train", "dev")]
    monkeypatch.chdir(tmp_path / "x")
    assert rerank("new", files[0], "dev.jsonl", "-o", "y.yaml").code == 0
    assert "the same file twice" in rerank("new", "dev.jsonl", "dev.jsonl", "-o", "z.yaml").err
    assert "what comes through a pipe" in rerank("new", "-", "-o", "z.yaml").err


def test_runs_of_trec_with_their_judgements(tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{q} Q0 d{y} {y} {9 - y}.5 bm25\n" for q in range(20) for y in range(3))
    files = [write(tmp_path, f"{split}.run", rows) for split in ("train", "dev", "test")]
    write(tmp_path, "all: qrels", "".join(f"{q} 0 d{q % 3} 1\n" for q in range(20)))
    assert "name one file of qrels" in rerank("new", *files, "-o", "found.yaml").err
    assert rerank("new", *files, "--references", "all: qrels", "-o", "found.yaml").code == 0
    assert "# what is right: gain, " in (tmp_path / "found.yaml").read_text()
    made = rerank("run", "found.yaml")
    assert (made.code, "trained on its lists" in made.err) == (0, False), made


def proposed(out: str) -> list[str]:
    """The arguments of the first command that `new` proposes for later."""
    return shlex.split(out.partition("later:\n")[2].splitlines()[0])[1:]


def test_files_of_one_input_are_systems_to_fuse(tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def lists(system: str, split: str, key: str) -> Path:
        rows = [{key: f"{split}-{k}", "candidates": [{"text": f"{system} {k}", "score": 1.0, "gain": k % 2}]}
                for k in range(20)]  # fmt: skip
        return write(tmp_path, f"{key}/{system}.{split}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    for key, what in (("id", "ids"), ("source", "sources")):
        files = [lists(system, split, key) for split in ("train", "test") for system in "ab"]
        made = rerank("new", *files, "-o", f"{key}.yaml")
        assert f"2 systems, whose files have the same {what}, are fused" in " ".join(made.out.split()), made
        data = load_recipe(f"{key}.yaml").data
        assert data.nbest == f"{{root}}/a.{{split}}.jsonl,{tmp_path}/{key}/b.{{split}}.jsonl"
        assert (data.reader, data.train, data.tests) == ({"name": "merged", "of": "jsonl"}, ("train",), ("test",))
        assert (
            f"# {tmp_path}/{key}/a.train.jsonl,{tmp_path}/{key}/b.train.jsonl: merged, "
            in Path(f"{key}.yaml").read_text()
        )
        assert rerank("run", f"{key}.yaml", "--set", "features=base").code == 0
        assert rerank(*proposed(made.out)).code == 0
    odd = rerank("new", *files[:3], "-o", "odd.yaml")
    assert (odd.code, "not as many in each split" in " ".join(odd.err.split())) == (2, True), odd


def rows_of(place: Path, name: str, prompts: range, systems: str) -> Path:
    """A line for each candidate; the last two of three answer rightly."""
    rows = [{"id": k, "prompt": f"p{k}?", "output": f"{each} {k % 3 if at else 7}", "lm": at % 2, "answer": f"{k % 3}"}
            for at, each in enumerate("abc") if each in systems for k in prompts]  # fmt: skip
    return write(place, name, "".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("tests", [0, 1], ids=["cross-validated", "tested"])
def test_rows_are_read_again_as_they_were_in_training(
    tests: int, tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [
        rows_of(tmp_path, name, part, "abc") for name, part in (("train.jsonl", range(30)), ("test.jsonl", range(8)))
    ]
    assert rerank("new", *files[: 1 + tests], "-o", "rows.yaml").code == 0
    made = rerank("run", "rows.yaml", "--json")
    assert made.code == 0, made
    of_split = json.loads(Path("runs/rows/metrics.json").read_text())["splits"]["test" if tests else "train"]
    assert {of_split[name]["gain"] for name in ("average", "mbr") if name in of_split} == {1.0}
    ranked = rerank("rank", "runs/rows/model", files[1])
    assert [line.split()[1] for line in ranked.out.splitlines()] == [f"{k % 3}" for k in range(8)], ranked


def test_rows_of_several_systems_are_fused(tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [rows_of(tmp_path, f"{each}.jsonl", range(30), each) for each in "abc"]
    made = rerank("new", *files, "--roles", "id=group,output=text", "-o", "rows.yaml")
    assert "3 systems, whose files have the same sources, are fused" in " ".join(made.out.split()), made
    assert rerank("run", "rows.yaml").code == 0
    ranked = rerank(*proposed(made.out))
    assert [line.split()[1] for line in ranked.out.splitlines()] == [f"{k % 3}" for k in range(30)], ranked
    apart = rerank("vote", *files, "--roles", "id=group,output=text")
    said = "".join(apart.err.split())
    assert (apart.code, f"b.jsonl:haslistsofthesamesourcesas{files[0]};" in said) == (2, True), apart
    begun_again = rows_of(tmp_path, "again.jsonl", range(30), "b")
    begun_again.write_text(begun_again.read_text().replace(': "p', ': "other ').replace('"id": ', '"id": 1'))
    files_of_ids = [write(tmp_path, "x", files[0].read_text().replace('"id": ', '"id": 1')), begun_again]
    how = ("--roles", "id=group,output=text", "--reader", "jsonl", "--samples", "50")
    assert rerank("vote", *files_of_ids, *how).code == 0  # the same ids, of other sources
    paths, reader = ",".join(map(str, files)), "{name: merged, of: jsonl}"
    whole = rerank("vote", paths, "--reader", reader, "--roles", "id=group,output=text", "--samples", "50", "--json")
    rows = {row["name"]: row["score"] for row in json.loads(whole.out)["rows"]}
    assert rows["majority vote"] == 1.0


def test_runs_of_the_same_queries_are_systems_and_numbered_lists_are_splits(
    tmp_path: Path, rerank: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [write(tmp_path, f"{name}.run", "".join(f"{q} Q0 d{q}{name} 1 {q}.5 {name}\n" for q in range(9)))
            for name in ("bm25", "dense")]  # fmt: skip
    qrels = write(tmp_path, "qrels", "".join(f"{q} 0 d{q}dense 1\n" for q in range(9)))
    made = rerank("new", *runs, "--references", qrels, "-o", "runs.yaml")
    text, data = Path("runs.yaml").read_text(), load_recipe("runs.yaml").data
    assert text.startswith(f"# Made for {runs[0]}, {runs[1]}. ")
    assert "\n# columns: rrf_1, minmax_1, " in text
    assert rerank("run", "runs.yaml", "--set", "features=base").code == 0
    assert rerank(*proposed(made.out)).out.split() == [f"d{q}bm25" for q in range(9)]
    assert (data.nbest, data.reader["others"], data.tests) == ("{root}/{split}.run", [str(runs[1])], ())
    moses = [write(tmp_path, f"{split}.nbest", "".join(f"{k} ||| {split} {k} ||| -1\n" for k in range(9)))
             for split in ("train", "test")]  # fmt: skip
    right = [write(tmp_path, f"{split}.ref", "x y\n" * 9) for split in ("train", "test")]
    how = [item for path in right for item in ("--references", path)]
    assert rerank("new", *moses, *how, "-o", "moses.yaml").code == 0
    assert load_recipe("moses.yaml").data.tests == ("test",)
    right[0].write_text("S a dogs\nA 1 2|||R:NOUN:NUM|||dog|||REQUIRED|||-NONE-|||0\n")
    assert "found annotations in M2" in rerank("new", *moses, *how, "-o", "m2.yaml").err
