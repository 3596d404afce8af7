"""What a model holds: weights, as text too, and its columns compared with those of other lists."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from hypothesis import given
from hypothesis import strategies as st
from outcomes import read_lists
from pydantic import ValidationError

import rerank
from rerank.base.errors import DataError
from rerank.data.symbols import text_hash
from rerank.extraction.sample import AGREEMENT, MEAN, SPREAD, ListSample, ListSampler, measure_columns, values_of
from rerank.features.table import FeatureTable, HashedTable
from rerank.features.template import TEXTS
from rerank.learn.learner import Weights
from rerank.models.model import Model
from rerank.models.provenance import ALPHA, COMPARED, ColumnSeen, columns_seen, columns_unlike
from rerank.models.weights import (
    column_names,
    escape_name,
    find_features,
    moses_lines,
    named_weights,
    read_weights,
    shares,
    unescape_name,
    weight_lines,
)
from rerank.readers.lists import Lists
from rerank.readers.texts.jsonl import JsonlReader
from rerank.runs import experiment


@pytest.fixture(scope="module")
def model(small_run: Path) -> Model:
    return Model.load(small_run / "model")


def weights_by_template(model: Model) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in model.table.templates}
    for j in range(model.table.width):
        found[model.table.name(j).partition("|")[0]].append(float(model.weights["average"].w[j]))
    return found


def test_shares(model):
    expected, entries = weights_by_template(model), shares(model, "average", 2)
    assert {entry["template"] for entry in entries} == set(small.TEMPLATES)
    total = sum(abs(w) for own in expected.values() for w in own)
    for entry in entries:
        own = expected[entry["template"]]
        assert (entry["columns"], entry["nonzero"]) == (len(own), sum(w != 0 for w in own))
        assert entry["share"] == pytest.approx(sum(map(abs, own)) / total)
        strongest = sorted((abs(w) for w in own if w), reverse=True)[:2]
        assert [abs(each["weight"]) for each in entry["strongest"]] == strongest
        assert all(each["feature"].startswith(f"{entry['template']}|") for each in entry["strongest"])
    assert sum(entry["share"] for entry in entries) == pytest.approx(1.0)
    assert [entry["share"] for entry in entries] == sorted((entry["share"] for entry in entries), reverse=True)
    assert all(entry["strongest"] == [] for entry in shares(model, "average", 0))


def test_shares_of_a_model_without_weights(model):
    nothing = {name: Weights(np.zeros(model.table.width), 1.0) for name in ("last", "average")}
    for entry in shares(replace(model, weights=nothing), "last", 5):
        assert (entry["nonzero"], entry["share"], entry["strongest"]) == (0, 0.0, [])


def test_find_features(model):
    found = find_features(model, "average", "NP | → DT NN")
    names = [model.table.name(j) for j in range(model.table.width)]
    assert sorted(name for name, _ in found) == sorted(name for name in names if "NP | → DT NN" in name) != []
    assert all(weight == model.weights["average"].w[names.index(name)] for name, weight in found)
    assert [abs(weight) for _, weight in found] == sorted((abs(weight) for _, weight in found), reverse=True)
    assert find_features(model, "average", "no such text") == []
    assert len(find_features(model, "last", "")) == model.table.width


def test_a_hashed_model_is_one_group(small_data, workspace):
    recipe = small.recipe(small_data, features={"hash_bits": 8})
    experiment.run(recipe, workspace / "hashed")
    model = Model.load(workspace / "hashed" / "model")
    (entry,) = shares(model, "average", 1)
    assert (entry["template"], entry["columns"], entry["share"]) == ("hashed", 256, 1.0)
    assert entry["strongest"][0]["feature"].startswith("hashed|#")


FEATURES = {"set": None, "templates": ["BaseScore", "Dense", "PhrasePair"], "min_lists": 2}


def lists_of(task: Path, split: str) -> list[rerank.NBest]:
    """Lists of translations, without the one that is empty."""
    files = {"references": task / f"{split}.ref.gz", "sources": task / f"{split}.src.gz"}
    found = rerank.read(task / f"{split}.nbest.gz", "moses", on_bad_list="skip", **files)
    return [nbest for nbest in found if len(nbest)]


def chosen(lines: list[str], nbest: rerank.NBest) -> str:
    """The best candidate by the weights of a file as Moses reads it, in ten lines."""
    base = float(lines[0].split("the base score's, ")[1].split(",")[0])
    dense = {line.split()[1].rstrip("="): list(map(float, line.split()[2:])) for line in lines[2:] if line[0] == "#"}
    sparse = {line.split()[0]: float(line.split()[1]) for line in lines if line[0] != "#"}
    source = str(nbest.source).split()

    def score(candidate: rerank.Candidate) -> tuple[float, float]:
        total = base * (candidate.score or 0.0)
        for name, weights in dense.items():
            keys = [name] if len(weights) == 1 else [f"{name}_{k}" for k in range(len(weights))]
            total += sum(weight * candidate.columns[key] for key, weight in zip(keys, weights, strict=True))
        words = zip(source, candidate.tokens, strict=True)
        return total + sum(sparse.get(f"pp_{f}~{e}", 0.0) for f, e in words), candidate.score or 0.0

    return max(nbest.candidates, key=score).text


@pytest.mark.parametrize("name", ["maxent", "rda", "arow"])
def test_exported_weights_choose_what_the_model_chooses(texts_data: Path, name: str) -> None:
    train, dev, test = (lists_of(texts_data, split) for split in ("train", "dev", "test"))
    for base in (1, "auto"):
        learner: dict[str, Any] = {"name": name, "base": base}
        recipe = {"task": "translation", "decode": {"kinds": []}}
        fitted = rerank.fit(train, dev, recipe=recipe, features=FEATURES, learner=learner, epochs=2)
        for predictor in ("last", "average"):
            model = rerank.Reranker(fitted.model, predictor)
            lines = list(moses_lines(model.model.table, model.model.weights[predictor], Counter[str]()))
            assert [chosen(lines, nbest) for nbest in test] == [model.best(nbest).text for nbest in test], base


def test_the_base_score_has_one_weight(texts_data: Path) -> None:
    lists = lists_of(texts_data, "train")
    model = rerank.fit(lists, recipe={"task": "translation"}, features=FEATURES, epochs=2).model
    j = model.table.base_column
    for weights in model.weights.values():
        assert weights.w[j] == 0.0
        assert "BaseScore|" not in named_weights(model.table, weights)


# Texts as they come from files: bytes that are no UTF-8 are single surrogates.
TEXT = st.binary(max_size=12).map(lambda b: b.decode("utf-8", "surrogateescape")) | st.text(
    st.sampled_from("a%#|é→ \t\n\r\x00\x1c\x85\xa0\u2028\u3000\x7f"), max_size=8
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 5e-324, 1e-5, -1e300])


def table_of(names: list[str], free: int = 0) -> FeatureTable:
    """The table of features called ``Template|symbol symbol``, in this order."""
    templates = tuple(dict.fromkeys(name.partition("|")[0] for name in names))
    words = [name.partition("|")[2].split(" ") for name in names]
    symbols = [text_hash(word) for of_name in words for word in of_name]
    return FeatureTable(
        hashes=np.arange(1, len(names) + 1, dtype=np.uint64),
        template=np.array([templates.index(name.partition("|")[0]) for name in names], np.int32),
        first=np.cumsum([0, *map(len, words)]).astype(np.int64),
        symbols=np.array(symbols, np.uint64),
        templates=templates,
        texts={text_hash(word): word for of_name in words for word in of_name},
        about={},
        scale=np.ones(free),
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights") / "weights.txt"


@given(TEXT)
def test_every_name_is_one_word_and_comes_back(name: str) -> None:
    word = escape_name(name)
    assert unescape_name(word) == name
    assert not word.startswith("#")
    assert word.split() == ([word] if name else [])
    assert word.encode().decode() == word  # whatever the name was, the word is UTF-8


@given(
    names=st.lists(st.tuples(st.sampled_from(["T", "U(k=2)"]), st.lists(TEXT, min_size=1, max_size=3)), max_size=6),
    data=st.data(),
    base=NUMBERS,
)
def test_the_round_trip_is_exact(file: Path, names: Any, data: st.DataObject, base: float) -> None:
    table = table_of([f"{template}|{' '.join(symbols)}" for template, symbols in names])  # the same name twice: fine
    w = np.array(data.draw(st.lists(NUMBERS, min_size=len(names), max_size=len(names))), float)
    lines = list(weight_lines(table, Weights(w, base)))
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = read_weights(file, table)
    assert found.weights.w.tobytes() == w.tobytes()
    assert np.float64(found.weights.base).tobytes() == np.float64(base).tobytes()
    assert found.features == len(lines) - 1
    assert len(set(column_names(table))) == table.width


def test_lines_in_their_orders() -> None:
    table, weights = table_of(["T|b", "T|a c", "T|d", "U|a"]), Weights(np.array([0.5, -2.0, 0.0, 0.1]), 1.5)
    assert list(weight_lines(table, weights)) == ["base 1.5", "T|a%20c -2.0", "T|b 0.5", "U|a 0.1"]
    assert list(weight_lines(table, weights, top=2)) == ["base 1.5", "T|a%20c -2.0", "T|b 0.5"]
    assert list(weight_lines(HashedTable.of(4, (), {}), Weights(np.eye(1, 16, 3)[0], 0.0))) == [
        "base 0.0",
        "hashed|#3 1.0",
    ]


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ("T|a 1\nbase 1\nT|a 2", 3, "T|a' is already in line 1"),
        ("base 1\n\nbase 1", 3, "base' is already in line 1"),
        ("base 1\nT|n0w 2", 2, "the model has no feature 'T|n0w'; did you mean T|now?"),
        ("base 1\nwhat? 2", 2, "the model has no feature 'what?'; was it exported from a model of other features?"),
        ("base 1\nT|a", 2, "expected a name, white space and a finite weight"),
        ("base 1\nT|a 1 2", 2, "expected a name, white space and a finite weight"),
        ("base nan", 1, "expected a name, white space and a finite weight"),
        ("base 1_0", 1, "expected a name, white space and a finite weight"),
        ("base 1e999", 1, "expected a name, white space and a finite weight"),
        ("T|a 1", None, "no line 'base', the weight of the base score"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, lines: str, line: int | None, message: str) -> None:
    (tmp_path / "w").write_text(lines)
    with pytest.raises(DataError) as caught:
        read_weights(tmp_path / "w", table_of(["T|a", "T|now"]))
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "w"))
    assert caught.value.line == line


def test_comments_and_other_ways_to_write_a_name(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"# mine\n\r\nT|%61\t+1.\r\n  base .5e1 \n")
    found = read_weights(tmp_path / "w", table_of(["T|a", "T|b"]))
    assert found.weights.w.tolist() == [1.0, 0.0]
    assert found.weights.base == 5.0


# Moses

NAMES = [
    "Dense|TM0_0", "Dense|LM_1", "Dense|LM0", "Dense|TM0_2", "Given|WT_the~das", "PhrasePair|das haus → the house",
    "PhrasePair|→ → x", "WordPair|das → the", "TargetNGram(n=2)|<s> the", "TargetNGram|the", "Given|#x",
]  # fmt: skip


def test_weights_for_moses() -> None:
    assert "→" in TEXTS.values()
    table, left_out = table_of(NAMES, free=4), Counter[str]()
    lines = list(moses_lines(table, Weights(np.arange(1.0, 12.0), 0.5), left_out))
    assert lines[0].startswith("#")
    assert "0.5" in lines[0]
    assert lines[1:5] == ["# [weight]", "# LM0= 3.0", "# LM_1= 2.0", "# TM0= 1.0 0.0 4.0"]
    assert lines[5:] == ["TB_<s>:the 9.0", "WT_das~the 8.0", "pp_das,haus~the,house 6.0", "WT_the~das 5.0"]
    assert left_out == {"TargetNGram": 1, "Given": 1, "PhrasePair": 1}


def test_moses_has_no_hashed_features() -> None:
    left_out = Counter[str]()
    lines = list(moses_lines(HashedTable.of(4, (), {}), Weights(np.ones(16), 0.5), left_out))
    assert all(line.startswith("#") for line in lines)
    assert left_out == {"hashed": 16}


SHIPPED = Path(__file__).parents[2] / "data"
COLUMNS = "score", "acoustic", "lm"


def transcripts(split: str) -> list[Lists]:
    return list(read_lists(JsonlReader(), str(SHIPPED / "asr" / f"{split}.jsonl.gz")))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def train() -> ListSample:
    """The transcripts of the training split."""
    found = ListSampler(COLUMNS)
    for nbest in transcripts("train"):
        found.add(nbest)
    return found.finish()


@pytest.fixture(scope="module")
def known(train: ListSample) -> dict[str, Any]:
    return columns_seen(COLUMNS, COLUMNS, train)


def changed(nbest: Lists, how: str) -> Lists:
    """A list with another sign of the language model, or with two columns exchanged."""
    scores, at = nbest.scores.copy(), {name: nbest.names.index(name) for name in COLUMNS}
    if how == "sign":
        scores[:, at["lm"]] *= -1
    else:
        scores[:, [at["lm"], at["acoustic"]]] = scores[:, [at["acoustic"], at["lm"]]]
    return nbest.replace(scores=scores)


def unlike(known: dict[str, Any], lists: list[Lists]) -> set[str]:
    """The columns of lists that are unlike those of training."""
    measures = np.array([measure_columns(values_of(nbest, COLUMNS)) for nbest in lists])
    return {line.split("'")[1] for line in columns_unlike(known, measures)}


def test_what_is_kept_is_what_the_lists_are_like(train: ListSample, known: dict[str, Any]) -> None:
    assert list(known) == list(COLUMNS)
    own, values = known["lm"], train.measures[:, 2]
    for name, measure in zip(COMPARED, (MEAN, SPREAD, AGREEMENT), strict=True):
        assert own[name] == pytest.approx(values[:, measure].mean())
        for cut, below in zip(own["cuts"][measure], own["below"][measure], strict=True):
            assert below == np.count_nonzero(values[:, measure] <= cut)
    assert own["lists"] == train.digests.size
    assert own["least"] <= own["mean"] <= own["greatest"]
    assert columns_unlike(known, train.measures) == []


def test_parts_of_the_training_lists_are_never_called_unlike_them(train: ListSample) -> None:
    """200 halves, each beside parts of the other: ``ALPHA`` allows less than a tenth of an alarm."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        order = rng.permutation(train.digests.size)
        half = len(order) // 2
        known = columns_seen(COLUMNS, COLUMNS, ListSample(*(array[order[:half]] for array in train)))
        for last in (half + 1, half + 3, half + 40, None):
            assert columns_unlike(known, train.measures[order[half:last]]) == []
    assert ALPHA * 200 * 4 < 0.1


@pytest.mark.parametrize(("how", "columns"), [("sign", {"lm"}), ("exchanged", {"lm", "acoustic"})])
def test_another_sign_and_exchanged_columns_are_seen(known: dict[str, Any], how: str, columns: set[str]) -> None:
    lists = [changed(nbest, how) for nbest in transcripts("test")]
    assert unlike(known, lists[:3]) == set()
    assert unlike(known, lists[:40]) == columns
    assert unlike(known, transcripts("test")) == set()


def test_less_than_all_values_and_more_than_none_are_seen(known: dict[str, Any]) -> None:
    zeros = [nbest.replace(scores=np.zeros_like(nbest.scores)) for nbest in transcripts("test")]
    assert unlike(known, zeros) == set(COLUMNS)
    nothing = ListSample(np.zeros(200, np.uint64), np.zeros((200, 1, 5)), np.zeros((200, 2), np.int64))
    constant = columns_seen(["score"], ["score"], nothing)
    for sign in (-1.0, 1.0):
        (line,) = columns_unlike(constant, np.full((60, 1, 5), 0.001 * sign))
        assert ": mean " in line


def test_damaged_columns_are_refused(known: dict[str, Any]) -> None:
    for change in ({"cuts": known["lm"]["cuts"][:2]}, {"below": [[1], [1], [1]]}, {"lists": 0}, {"mean": float("nan")}):
        with pytest.raises(ValidationError):
            ColumnSeen.model_validate({**known["lm"], **change})
