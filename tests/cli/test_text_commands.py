"""The commands over texts, as a user meets them: filter, figures, explanations, and one message for every error."""

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import small_texts
import yaml
from commands import Command, refused

from rerank.base.errors import DataError, RecipeError
from rerank.models.model import Model
from rerank.runs import experiment


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("texts")
    small_texts.write_task(root)
    for name in ("test.ref", "test.ref2", "test.src"):
        small_texts.write_lines(root / name, small_texts.lines_of(root / f"{name}.gz"))
    return root


@pytest.fixture(scope="module")
def tuned(data: Path, workspace: Path) -> Path:
    """The output of a run with MERT; tests do not change it."""
    experiment.run(small_texts.recipe(data, mert={"settings": {"restarts": 1}}), workspace / "commands" / "tuned")
    return workspace / "commands" / "tuned"


@pytest.fixture
def best_file(tuned: Path, data: Path, tmp_path: Path, rerank: Command) -> Path:
    """The reranked test split, a text a line."""
    path = tmp_path / "best.txt"
    done = rerank("rank", tuned / "model", data / "test.nbest.gz", "--sources", data / "test.src", "-o", path)
    assert done.code == 0, done
    return path


@pytest.fixture
def base_file(data: Path, tmp_path: Path, rerank: Command) -> Path:
    """The base choices of the test split, a text a line."""
    how = ("--reader", "moses", "--metric", "bleu", "--predictor", "base", "-o", tmp_path / "base.txt")
    assert rerank("rank", "base", data / "test.nbest.gz", *how).code == 0
    return tmp_path / "base.txt"


def test_lists_that_a_lost_line_shifts_are_not_written(tmp_path: Path, rerank: Command) -> None:
    """Whether lines were lost shows at the end: standard output has all or nothing, as files do."""
    rows = [f"-{place}.5 ||| text {number} {place}\n" for number in range(20) for place in range(3)]
    how = ("--reader", "{name: opennmt, n: 3}", "--metric", "bleu", "--predictor", "base")
    for name, kept, expected in (("whole", rows, 20), ("lost", rows[:4] + rows[5:], 0)):
        (tmp_path / name).write_text("".join(kept))
        done = rerank("rank", "base", tmp_path / name, *how)
        assert (done.code, done.out.count("\n")) == (0 if expected else 2, expected), done
    lists = [json.dumps({"candidates": [{"text": f"text {number}", "score": 1}]}) for number in range(20)]
    (tmp_path / "lists.jsonl").write_text("\n".join(lists))
    (tmp_path / "sources").write_text("a\n" * 19)
    how = ("--reader", "jsonl", "--metric", "bleu", "--predictor", "base", "--sources", tmp_path / "sources")
    done = rerank("rank", "base", tmp_path / "lists.jsonl", *how)
    assert (done.code, done.out) == (2, ""), done


# run


def test_run(data: Path, workspace: Path, tmp_path: Path, rerank: Command) -> None:
    path, output = tmp_path / "small-texts.yaml", workspace / "commands" / "run"
    path.write_text(yaml.safe_dump(small_texts.settings(data)))
    result = rerank("run", path, "-o", output, "--set", "mert={split: tune}")
    assert result.code == 0, result
    found = json.loads((output / "metrics.json").read_text())
    for name in ("base", "oracle", "average", "mert"):
        assert f"{found['splits']['test'][name]['bleu']:.2f}" in result.out
    for heading, key in (("BLEU", "bleu"), ("chrF", "chrf")):
        assert f"{heading}: {found['signatures']['test'][key]}" in result.out
    assert "mert on tune" in result.err


def test_a_column_that_learning_leaves_out_is_weighed_at_last(data: Path, workspace: Path, tmp_path: Path) -> None:
    """Its values in training lists change nothing; the model is the learned score and the columns, each by a weight."""

    def run(name: str, root: Path) -> tuple[Path, dict[str, Any]]:
        output = workspace / "commands" / name
        last = {"split": "tune", "columns": ["LM0", "TM0_0"], "settings": {"restarts": 1}}
        experiment.run(small_texts.recipe(root, features={"apart": ["LM0"]}, mert=last), output)
        return output, json.loads((output / "metrics.json").read_text())["training"]["mert"]

    output, found = run("apart", data)
    model = Model.load(output / "model")
    learned, tuned = model.weights["average"], model.weights["mert"]
    names = [model.table.name(j) for j in range(model.table.free)]
    expected = found["weights"]["learned"] * learned.w
    for name in ("Dense|LM0", "Dense|TM0_0"):
        expected[names.index(name)] += found["weights"][name]
    assert learned.w[names.index("Dense|LM0")] == 0.0 != found["weights"]["Dense|LM0"]
    np.testing.assert_allclose(tuned.w, expected, rtol=1e-6)
    assert tuned.base == pytest.approx(found["weights"]["learned"] * learned.base)
    root = tmp_path / "others"
    shutil.copytree(data, root)
    lines = enumerate(small_texts.lines_of(data / "train.nbest.gz"))
    small_texts.write_lines(root / "train.nbest.gz", [re.sub(r"LM0= \S+", f"LM0= {k % 7}", line) for k, line in lines])
    other = Model.load(run("apart-others", root)[0] / "model")
    np.testing.assert_array_equal(other.weights["average"].w, learned.w)
    with pytest.raises(RecipeError, match="found 'LM0', which nothing weighs"):
        small_texts.recipe(data, features={"apart": ["LM0"]}, mert={"columns": ["TM0_0"]})
    with pytest.raises(RecipeError, match="found 'LM9'; expected dense columns: "):
        experiment.run(small_texts.recipe(data, mert={"columns": ["LM9"]}), workspace / "commands" / "refused")


# rerank as a filter


def test_a_filter_gives_a_line_a_list(tuned: Path, data: Path, best_file: Path, rerank: Command) -> None:
    plain = gzip.decompress((data / "test.nbest.gz").read_bytes())
    result = rerank("rank", tuned / "model", "--sources", data / "test.src.gz", stdin=plain)
    assert result.code == 0
    assert result.out == best_file.read_text()
    lines = result.out.splitlines()
    empty = small_texts.EMPTY["test"]
    assert [i for i, line in enumerate(lines) if not line] == [empty]
    assert len(lines) == small_texts.SIZES["test"]
    assert "1 of the 20 lists had no usable candidate: an empty line each" in result.err
    assert "without their source" not in result.err
    references = small_texts.lines_of(data / "test.ref.gz")
    metrics = json.loads((tuned / "metrics.json").read_text())
    expected = metrics["splits"]["test"][metrics["predictor"]]["bleu"]
    scorer = sacrebleu.BLEU(tokenize="none", force=True)
    assert scorer.corpus_score(lines, [references]).score == pytest.approx(expected)


def test_a_filter_without_sources_says_what_is_missing(tuned: Path, data: Path, rerank: Command) -> None:
    result = rerank("rank", tuned / "model", data / "test.nbest.gz")
    assert result.code == 0
    assert len(result.out.splitlines()) == small_texts.SIZES["test"]
    assert "20 lists came without their source, which features of PhrasePair need; see --sources" in result.err
    assert "--sources" in result.err


def test_a_filter_counts_what_it_does_not_know(tuned: Path, tmp_path: Path, rerank: Command) -> None:
    known = "0 ||| good1 good2 ||| LM0= -1 TM0= 0 -2 ||| -1 ||| 0=0 1=1"
    lines = [known, known.replace("good2", "never").replace("||| -1 |||", "||| -2 |||")]
    small_texts.write_lines(tmp_path / "one.src", ["quell1 quell2"])
    text = "".join(f"{line}\n" for line in lines).encode()
    result = rerank("rank", tuned / "model", "--sources", tmp_path / "one.src", stdin=text)
    assert (result.code, result.out) == (0, "good1 good2\n")
    found = re.search(r"1 list, ([\d,]+) unknown features?", result.err)
    assert found
    assert int(found[1]) == 1


@pytest.mark.parametrize("predictor", ["last", "voted", "mert"])
def test_lists_keep_their_format(tuned: Path, data: Path, tmp_path: Path, predictor: str, rerank: Command) -> None:
    sources, out = data / "test.src.gz", tmp_path / "out.gz"
    arguments = ("--sources", sources, "--n-best", 2, "--predictor", predictor, "-o", out)
    assert rerank("rank", tuned / "model", data / "test.nbest.gz", *arguments).code == 0
    given = {line.split(" ||| ")[1] for line in small_texts.lines_of(data / "test.nbest.gz")}
    lines = small_texts.lines_of(out)
    fields = [line.split(" ||| ") for line in lines]
    assert {field[1] for field in fields} <= given
    assert len(lines) == 2 * (small_texts.SIZES["test"] - 1)
    assert all(len(field) == 5 for field in fields)


# evaluate and oracle


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "wer", "cer"])
def test_evaluate(metric: str, data: Path, best_file: Path, base_file: Path, rerank: Command) -> None:
    """With two references, and a second system tested against the first."""
    arguments = ("--reference", data / "test.ref2", "--metric", metric)
    result = rerank("evaluate", base_file, data / "test.ref", best_file, *arguments)
    assert result.code == 0, result
    numbers = re.search(rf"{metric} +([\d.]+) +([\d.]+)", result.out)
    assert numbers, result.out
    base, best = float(numbers[1]), float(numbers[2])
    assert (best > base) == (metric in ("bleu", "chrf"))
    if metric in ("bleu", "chrf", "ter"):
        scorer = {
            "bleu": sacrebleu.BLEU(tokenize="none", force=True),
            "chrf": sacrebleu.CHRF(),
            "ter": sacrebleu.TER(),
        }[metric]
        references = [small_texts.lines_of(data / name) for name in ("test.ref", "test.ref2")]
        score = scorer.corpus_score(best_file.read_text().splitlines(), references).score
        assert f"{score:.2f}" == numbers[2]
        assert str(scorer.get_signature()) in result.out.replace("\n", "")
    assert re.search(r"best.txt +[\d.]+ +[\d.]+ to [\d.]+ +[-+][\d.]+ +[\de.-]+", result.out), result.out


def test_an_account_of_what_is_evaluated(tmp_path: Path, rerank: Command) -> None:
    small_texts.write_lines(tmp_path / "hyp", ["it rains", "it is cold"])
    small_texts.write_lines(tmp_path / "ref", ["It Rains", "It Is Cold"])
    result = rerank("evaluate", tmp_path / "hyp", tmp_path / "ref", "--metric", "wer")
    signature = "wer|case:mixed|references:fewest edits|version:1"
    account = [f"{tmp_path}/hyp: texts, 2 texts each", 'candidates: "it rains"',
               f'what is right: references of {tmp_path}/ref, "It Rains"', f"measure: {signature}"]  # fmt: skip
    assert [line.partition(" INFO ")[2] for line in result.err.splitlines()] == account
    assert "No candidate has 100 % of the references' tokens, without capitals 0 %" in result.out
    assert ["substitutions", "100.00"] in [row.split() for row in result.out.splitlines()]
    found = json.loads(rerank("evaluate", tmp_path / "hyp", tmp_path / "ref", "--metric", "wer", "--json").out)
    assert found["account"]["measure"] == signature
    assert len(found["doubts"]) == 1
    beside = rerank("evaluate", tmp_path / "hyp", tmp_path / "ref", tmp_path / "hyp", "--metric", "wer", "--json")
    assert [row["p"] for row in json.loads(beside.out)["compared"]] == [None, None]
    small_texts.write_lines(tmp_path / "trees", ["(S1 (NN rain))"])
    result = rerank("evaluate", tmp_path / "trees", tmp_path / "trees")
    assert f"what is right: gold trees, {tmp_path}/trees" in result.err
    metric = "{name: wer, normalize: {case: true}}"
    lowered = rerank("evaluate", tmp_path / "hyp", tmp_path / "ref", "--metric", metric)
    assert "No candidate" not in lowered.out


def test_forms_of_references_agree(data: Path, base_file: Path, tmp_path: Path, rerank: Command) -> None:
    pairs = list(zip(*(small_texts.lines_of(data / name) for name in ("test.ref", "test.ref2")), strict=True))
    small_texts.write_lines(tmp_path / "tab", ["\t".join(pair) for pair in pairs])
    small_texts.write_lines(tmp_path / "id", [f"{i} ||| {text}" for i, pair in enumerate(pairs) for text in pair])
    two = rerank("evaluate", base_file, data / "test.ref", "--reference", data / "test.ref2", "--metric", "bleu")
    for form in ("tab", "id"):
        assert rerank("evaluate", base_file, tmp_path / form, "--form", form, "--metric", "bleu").out == two.out


@pytest.mark.parametrize("metric", ["bleu", "wer"])
def test_oracle(metric: str, data: Path, tuned: Path, rerank: Command) -> None:
    result = rerank("oracle", data / "test.nbest.gz", data / "test.ref", "--metric", metric)
    assert result.code == 0, result
    assert metric in result.out
    values = {name: float(value) for name, value in re.findall(r"^ ([a-z ]+?)  +([\d.]+)", result.out, re.MULTILINE)}
    low, high = ("anti oracle", "oracle") if metric == "bleu" else ("oracle", "anti oracle")
    assert values[low] < values["base"] < values[high]
    assert values[low] < values["random"] < values[high]
    assert "lists 20: 1 without" in result.out
    if metric == "bleu":
        found = json.loads((tuned / "metrics.json").read_text())["corpora"]["test"]["statistics"]
        assert values["oracle"] == pytest.approx(found["oracle"]["bleu"], abs=0.005)


# inspect, explain, compare


def test_explain(tuned: Path, data: Path, rerank: Command) -> None:
    lists, gold = data / "test.nbest.gz", ("--gold", data / "test.ref.gz")
    result = rerank("explain", tuned / "model", lists, "--list", "3", "--sources", data / "test.src.gz", *gold)
    assert result.code == 0, result
    for part in ("winner", "base choice", "oracle", "PhrasePair|quell"):
        assert part in result.out
    result = rerank("explain", tuned / "model", lists, "--list", "3", "--sources", data / "test.src.gz")
    assert "PhrasePair|quell" in result.out
    assert "oracle" not in result.out


# Encodings


def in_both(place: Path, lines: dict[str, str]) -> None:
    """Files in the folders ``utf8`` and ``latin``, which say the same."""
    for folder, encoding in (("utf8", "utf-8"), ("latin", "latin-1")):
        (place / folder).mkdir()
        for name, text in lines.items():
            data = text.encode(encoding)
            (place / folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def test_hypotheses_and_references_in_another_encoding(rerank: Command, tmp_path: Path) -> None:
    lists = "0 ||| un café ||| ||| -1\n0 ||| un thé ||| ||| -2\n1 ||| déjà ||| ||| -1\n"
    in_both(tmp_path, {"hyp": "un\nun café\n", "ref": "un\nun café\n", "lists": lists, "gold": "un thé\ndéjà\n"})
    latin, utf8 = tmp_path / "latin", tmp_path / "utf8"
    wer = ("--metric", "wer", "--json")
    for hyp, ref in ((latin, utf8), (utf8, latin)):
        refused(
            rerank("evaluate", hyp / "hyp", ref / "ref", *wer),
            f"{latin}",
            ":2: found 'un caf",
            "byte 0xe9",
            "--encoding",
        )
        refused(rerank("evaluate", hyp / "hyp", ref / "ref", *wer, "--encoding", "latin-1"), "in UTF-8, not in latin-1")
    found = json.loads(rerank("evaluate", latin / "hyp", latin / "ref", *wer, "--encoding", "latin-1").out)
    assert found["scores"]["hyp"]["wer"] == 0
    assert rerank("evaluate", utf8 / "hyp", utf8 / "ref", "--metric", "wer", "--encoding", "gpk").code == 2
    plain, other = (
        json.loads(rerank("oracle", place / "lists", place / "gold", *wer, *more).out)
        for place, more in ((utf8, ()), (latin, ("--encoding", "latin-1")))
    )
    assert other | {"account": None} == plain | {"account": None}  # which names the file
    refused(rerank("oracle", latin / "lists", utf8 / "gold", *wer), f"{latin / 'lists'}:1: list 0: found ", "0xe9")
    refused(rerank("oracle", utf8 / "lists", latin / "gold", *wer, "--on-bad-list", "skip"), f"{latin / 'gold'}:1:")
    decoded = ("rank", "base", latin / "lists", "--reader", "moses", "--metric", "wer", "--predictor", "base")
    assert rerank(*decoded, "--encoding", "latin-1").out == "un café\ndéjà\n"
    assert rerank(*decoded, "--on-bad-list", "skip").out == "\n\n"


def test_a_recipe_and_its_model_in_another_encoding(data: Path, rerank: Command, tmp_path: Path) -> None:
    """The model remembers the encoding of its lists, as it does their format."""
    files = {path.name: "\n".join([*small_texts.lines_of(path), ""]) for path in data.iterdir()}
    in_both(tmp_path, {name: text.replace("good", "gööd").replace("quell", "quéll") for name, text in files.items()})
    latin, utf8 = tmp_path / "latin", tmp_path / "utf8"
    with pytest.raises(DataError, match=r"train.src.gz:1: found .*byte 0xe9, which is not UTF-8"):
        experiment.run(small_texts.recipe(latin), tmp_path / "none")
    experiment.run(small_texts.recipe(utf8), tmp_path / "plain")
    experiment.run(small_texts.recipe(latin, data={"encoding": "latin-1"}), tmp_path / "recoded")
    one, two = (json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("plain", "recoded"))
    assert one["splits"] == two["splits"]
    split = ("test.nbest.gz", "--sources", "test.src")
    plain, recoded = (
        ("rank", tmp_path / name / "model", place / split[0], split[1], place / split[2])
        for name, place in (("plain", utf8), ("recoded", latin))
    )
    expected = rerank(*plain).out
    assert "gööd" in expected
    assert rerank(*recoded).out == expected
    assert rerank(*plain[:2], latin / split[0], split[1], latin / split[2], "--encoding", "latin-1").out == expected
    assert rerank(*recoded[:2], *plain[2:], "--encoding", "utf-8").out == expected
    refused(rerank(*recoded[:2], *plain[2:]), "in UTF-8, not in latin-1")


# What goes wrong


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("data.sources='{root}/none.gz'", ["none.gz"]),
        ("metric={name: bleu, tokenize: words}", ["tokenize", "13a"]),
        ("mert={split: tuned}", ["tuned.nbest.gz"]),
        ("training.pairs={name: sampled, drawn: 5}", ["drawn", "draws"]),
        ("data.reader={name: charniak}", ["nbest"]),
        ("metric={name: gain, column: nothing}", ["'nothing'", "LM0"]),
        ("metric={name: gain, column: score}", ["base score"]),
    ],
)
def test_recipes_that_cannot_be(
    change: str, parts: list[str], data: Path, workspace: Path, tmp_path: Path, rerank: Command
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(small_texts.settings(data)))
    refused(rerank("--quiet", "run", path, "-o", workspace / "commands" / "wrong", "--set", change), *parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["evaluate", "BASE", "SHORT", "--metric", "bleu"], ["base.txt", "20 lines for 19 references"]),
        (["evaluate", "BASE", "REF", "--metric", "{name: bleu, tokenise: 13a}"], ["tokenise", "tokenize"]),
        (["evaluate", "BASE", "none.txt", "--metric", "ter"], ["none.txt"]),
        (["oracle", "NBEST", "SHORT", "--metric", "bleu"], ["SHORT", "19 references"]),
        (["oracle", "NBEST", "REF", "--metric", "bleu", "--reader", "sockeye"], ["test.nbest.gz"]),
    ],
)
def test_what_cannot_be_measured(
    arguments: list[str], parts: list[str], data: Path, base_file: Path, tmp_path: Path, rerank: Command
) -> None:
    short = tmp_path / "SHORT"
    small_texts.write_lines(short, small_texts.lines_of(data / "test.ref")[:-1])
    files = {"BASE": base_file, "REF": data / "test.ref", "SHORT": short, "NBEST": data / "test.nbest.gz"}
    refused(rerank(*(files.get(part, part) for part in arguments)), *parts)
