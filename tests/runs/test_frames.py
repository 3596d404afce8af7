"""Data frames of any library, pairs, and lines of JSON: one shape of a candidate, and the same models, to the bit."""

import json
import sys
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_rankings

import rerank
from rerank.contrib.serve.app import answer
from rerank.extraction.kinds import resolve_features
from rerank.recipes.loading import read_settings

pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
narwhals = pytest.importorskip("narwhals")

KINDS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": lambda data: pd.DataFrame(data, index=[7] * len(next(iter(data.values())))),
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pyarrow": pa.table,
}
NAMES: dict[str, Any] = {"group": "prompt", "text": "response", "gain": "correct", "score": "logprob"}
LEARNED = ["reward", "length"]
TRAINING: dict[str, Any] = {"epochs": 3, "learner": {"name": "vrda", "base": 1.0}}


@pytest.fixture(scope="module")
def lists(texts_data: Path) -> list[rerank.NBest]:
    """Samples as lists in memory."""
    found = []
    for nbest in rerank.read(texts_data / "train.jsonl.gz", {"name": "jsonl", "base": "logprob"}):
        given = [
            {"text": each.text, "score": each.score, "columns": {name: each.columns[name] for name in LEARNED}}
            for each in nbest.candidates
        ]
        found.append(rerank.NBest(nbest.id, given, gains=nbest.gains))
    return found


@pytest.fixture(scope="module")
def data(lists: list[rerank.NBest]) -> dict[str, list[Any]]:
    """The same as columns; the rows of a list are not adjacent."""
    rows = [
        {
            "length": each["columns"]["length"],
            "prompt": nbest.id,
            "correct": bool(nbest.gains and nbest.gains[k]),
            "response": each["text"],
            "reward": each["columns"]["reward"],
            "logprob": each["score"],
        }
        for k in range(8)
        for nbest in lists
        for each in [nbest.candidates[k]]
    ]
    return {key: [row[key] for row in rows] for key in rows[0]}


@pytest.fixture(scope="module")
def fitted(lists: list[rerank.NBest]) -> rerank.Reranker:
    """The model of the lists in memory."""
    return rerank.fit(lists, features="dense", **TRAINING)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_gives_the_weights_of_its_lists(
    kind: str, data: dict[str, list[Any]], lists: list[rerank.NBest], fitted: rerank.Reranker, tmp_path: Path
) -> None:
    frame = KINDS[kind](data)
    model = rerank.fit(frame, features=LEARNED, **NAMES, **TRAINING)
    assert json.loads(model.to_json()) == json.loads(fitted.to_json())
    assert model.model.weights["average"].w.tobytes() == fitted.model.weights["average"].w.tobytes()
    assert np.count_nonzero(model.model.weights["average"].w)
    model.save(tmp_path / "model")
    assert rerank.load(tmp_path / "model").model.about["frame"] == {**NAMES, "columns": LEARNED}

    scored = rerank.load(tmp_path / "model").score_frame(frame)
    expected = [model.rank(nbest) for nbest in lists]
    eager = narwhals.from_native(scored).to_dict(as_series=False)
    assert type(scored) is (pl.DataFrame if kind == "lazy" else type(frame))
    assert list(eager) == [*data, "score", "rank"]
    assert {key: eager[key] for key in data} == data
    for k, nbest in enumerate(expected):
        own = [eager["score"][k + place * len(expected)] for place in nbest.order]
        assert own == nbest.scores.tolist()
        assert [eager["rank"][k + place * len(expected)] for place in nbest.order] == list(range(1, 9))
    if kind == "pandas":
        assert scored.index.equals(frame.index)
        assert list(frame.columns) == list(data)

    result = rerank.evaluate(model, frame, samples=50)
    assert result.scores == rerank.evaluate(fitted, lists, samples=50).scores
    choices = rerank.evaluate([0] * len(lists), frame, **NAMES, samples=50)
    assert choices.scores == rerank.evaluate([0] * len(lists), lists, samples=50).scores


def test_models_of_files_score_frames(data: dict[str, list[Any]], tmp_path: Path) -> None:
    """Their columns are found by the names that the lists of training had."""
    root = small_rankings.write_task(tmp_path)
    lists = rerank.read(root / "train.jsonl.gz", {"name": "jsonl", "base": "logprob"})
    model = rerank.fit(lists, features="dense", **TRAINING)
    names: dict[str, Any] = {"group": "prompt", "text": "response"}
    scored = pl.DataFrame(model.score_frame(pa.table(data), **names))
    first = next(iter(lists))
    own = scored.filter(pl.col("prompt") == first.id)
    assert sorted(own["score"], reverse=True) == model.rank(first).scores.tolist()
    found = rerank.evaluate(model, pl.DataFrame(data), **names, gain="correct", samples=50)
    assert found.scores == rerank.evaluate(model, lists, samples=50).scores
    with pytest.raises(rerank.RerankError, match="the data frame has no column 'logprob'"):
        model.score_frame(pl.DataFrame(data).drop("logprob"), **names)
    with pytest.raises(rerank.RerankError, match="no column 'reward'"):
        model.score_frame(pl.DataFrame(data).drop("reward"), **names)
    with pytest.raises(rerank.RerankError, match="the model ranks texts; name their column, as text="):
        model.score_frame(pl.DataFrame(data), group="prompt", tree="response")


def test_other_types_of_columns_say_the_same(data: dict[str, list[Any]], fitted: rerank.Reranker) -> None:
    rounded = data | {name: [round(value, 3) for value in data[name]] for name in ("reward", "length", "logprob")}
    plain = rerank.fit(pd.DataFrame(rounded), features=LEARNED, **NAMES, **TRAINING)
    exact = {"reward": [Decimal(str(value)) for value in rounded["reward"]]}
    words, prompts = rounded["response"], rounded["prompt"]
    others = [
        pd.DataFrame(
            {**rounded, **exact, "prompt": pd.Categorical(prompts), "response": pd.Series(words, dtype=object)}
        ),
        pl.DataFrame({**rounded, **exact}).with_columns(pl.col("prompt").cast(pl.Categorical)).lazy(),
        pa.table({**rounded, **exact, "response": pa.array(words).dictionary_encode()}),
        pl.DataFrame({**rounded, "correct": [int(value) for value in rounded["correct"]]}).select(sorted(rounded)),
        pd.DataFrame(rounded).convert_dtypes(),
    ]
    for frame in others:
        found = rerank.fit(frame, features=LEARNED, **NAMES, **TRAINING)
        assert found.model.weights["average"].w.tobytes() == plain.model.weights["average"].w.tobytes()
    narrow = pl.DataFrame(data).with_columns(pl.col(*LEARNED, "logprob").cast(pl.Float32))
    assert rerank.fit(narrow, features=LEARNED, **NAMES, **TRAINING).to_json() == fitted.to_json()  # as are features


@pytest.mark.parametrize("ending", ["parquet", "arrow", None])
def test_texts_that_are_not_utf8_are_refused(ending: str | None, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    buffers = [None, pyarrow.py_buffer(np.array([0, 2, 4], np.int32).tobytes()), pyarrow.py_buffer(b"ab\xff\xfe")]
    table = pyarrow.table({"id": ["a", "a"], "text": pyarrow.Array.from_buffers(pyarrow.string(), 2, buffers)})
    given, message = table, r"the column 'text' holds b'\\xff\\xfe', which is not UTF-8"
    if ending is not None:
        given, message = tmp_path / f"table.{ending}", rf"table.{ending}: .*Column 1: .*Invalid UTF8 .* index 1"
        if ending == "parquet":
            pytest.importorskip("pyarrow.parquet").write_table(table, given)
        else:
            with pyarrow.ipc.new_file(given, table.schema) as out:
                out.write_table(table)
    with pytest.raises(rerank.RerankError, match=message):
        list(rerank.read(given, group="id", text="text"))


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather"])
def test_tables_in_files(ending: str, data: dict[str, list[Any]], fitted: rerank.Reranker, tmp_path: Path) -> None:
    path, table = tmp_path / f"lists.{ending}", pa.table(data)
    if ending == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    elif ending == "feather":
        pytest.importorskip("pyarrow.feather").write_feather(table, path)
    else:
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
    read = rerank.read(path, **NAMES, columns=LEARNED)
    assert [len(nbest) for nbest in read] == [8] * len(list(read))
    for lists in (read, str(path)):
        names = NAMES if lists is not read else {}
        assert rerank.fit(lists, features=LEARNED, **names, **TRAINING).to_json() == fitted.to_json()
    dev = rerank.fit(table, path, features=LEARNED, **NAMES, **TRAINING)
    assert dev.recipe.data.dev == "dev"
    assert "columns: " in rerank.read(path).account.lines[-1]  # the roles of columns are found
    path.write_bytes(b"ARROW1 no table")
    with pytest.raises(rerank.RerankError, match=rf"lists\.{ending}: no table that can be read"):
        rerank.read(path, **NAMES)
    with pytest.raises(rerank.RerankError, match=f"no such file; did you mean .*{ending}"):
        rerank.read(tmp_path / f"list.{ending}", **NAMES)


def test_features_are_columns_and_templates(data: dict[str, list[Any]], tmp_path: Path) -> None:
    frame = pl.DataFrame(data)
    model = rerank.fit(frame, features=["reward", "Length"], **NAMES, **TRAINING)
    assert model.recipe.features.templates == ("Length", "Dense")
    assert json.loads(model.to_json())["columns"] == ["score", "reward"]
    found = rerank.fit(frame, features=["reward", "text"], **NAMES, **TRAINING)
    assert (found.recipe.features.set, found.recipe.features.templates) == ("text", ())
    found = rerank.fit(frame, columns=np.array(["reward"]), features="dense", **NAMES, **TRAINING)
    found.save(tmp_path / "columns")
    assert json.loads(found.to_json())["columns"] == ["score", "reward"]
    dev = rerank.fit(frame, frame, features=["reward"], **NAMES, **TRAINING)
    assert dev.recipe.data.dev == "dev"
    unscored = {key: name for key, name in NAMES.items() if key != "score"}
    found = rerank.fit(frame, features=["reward", "logprob"], **unscored, **TRAINING)
    assert json.loads(found.to_json())["columns"] == ["score", "reward", "logprob"]
    found.save(tmp_path / "model")
    assert len(rerank.load(tmp_path / "model").score_frame(frame, into=("a", "b"))) == len(frame)


def test_sources_references_and_trees() -> None:
    right, wrong = "(S1 (NP (DT the) (NN cat)))", "(S1 (DT the) (NN cat))"
    rows = {"id": [1, 1, 2, 2], "tree": [right, wrong] * 2, "gold": [right] * 4, "lm": [1.0, 2, 3, 4]}
    frame = pd.DataFrame({key: values * 6 for key, values in rows.items()} | {"id": np.arange(24) // 2})
    names: dict[str, Any] = {"group": "id", "tree": "tree", "references": "gold"}
    model = rerank.fit(frame, features="minimal", epochs=2, **names)
    assert model.recipe.task == "parse"
    assert model.score_frame(frame)["rank"].tolist() == [1, 2] * 12
    given = [rerank.NBest(str(i), [right, wrong], references=right) for i in range(12)]
    expected = rerank.fit(given, features="minimal", epochs=2)
    assert np.array_equal(model.model.weights["average"].w, expected.model.weights["average"].w)
    texts = pl.DataFrame(
        {"i": [0, 0, 1], "s": ["x", "x", "y"], "t": ["a b", "b", "c"], "r": [["a"], ["a"], ["c", "d"]]}
    )
    first, second = rerank.read(texts, group="i", text="t", source="s", references="r")
    assert (first.id, first.source, list(first.references), len(first)) == ("0", "x", ["a"], 2)
    assert (second.id, second.source, list(second.references), second.candidates[0].text) == ("1", "y", ["c", "d"], "c")


FRAME: dict[str, list[Any]] = {
    "prompt": ["a", "b", "a"], "response": ["x", "y", "z"], "correct": [1, 0, 0], "reward": [0.5, 1.0, 2.0],
    "s": ["u"] * 3,
}  # fmt: skip
PLAIN: dict[str, Any] = {"group": "prompt", "text": "response", "gain": "correct", "columns": ["reward"]}
BAD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"reward": [0.5, None, 2.0]}, {}, "list b: candidate 1: found null; expected column 'reward' of candidate 1"),
    ({"reward": [float("inf"), 1, 2.0]}, {}, "list a: candidate 1: found Infinity; expected column 'reward' of"),
    ({"reward": ["1", "b", "3"]}, {}, "list b: candidate 1: found \"b\"; expected column 'reward' of candidate 1"),
    ({"response": [1, 2, 3]}, {}, "list a: candidate 1: found 1; expected candidate 1 as a string"),
    ({"correct": [None, 0, None]}, {}, "list a: found None as the gain of candidate 1; expected a finite number"),
    ({"prompt": ["a", None, "b"]}, {}, "row 1 (from 0) of the column 'prompt': found None"),
    ({"prompt": [["a"], ["b"], ["a"]]}, {}, "expected a name or a number"),
    ({"s": ["u", "u", "v"]}, {"source": "s"}, "list a: found 'u' and 'v' in the column 's'; expected one source"),
    ({"s": ["u", "u", None]}, {"source": "s"}, "list a: found 'u' and None in the column 's'; expected one source"),
    ({}, {"text": "respons"}, "the data frame has no column 'respons'; did you mean 'response'?"),
    ({}, {"gain": "right"}, "no column 'right'; it has 'prompt', 'response', 'correct', 'reward', 's'"),
    ({}, {"columns": ["correct"]}, "the column 'correct' is, or is called like, the gain: leave it out of columns"),
    ({"gain": [3.0, 2, 1]}, {"columns": ["gain"]}, "the column 'gain' is, or is called like, the gain"),
    ({"score": [3.0, 2, 1]}, {"columns": ["score"]}, "the column 'score' is, or is called like, the score"),
    ({"prompt": [1.0, float("nan"), 1.0]}, {}, "row 1 (from 0) of the column 'prompt': found "),
    ({"s": [1, 1, 1]}, {"references": "s"}, "list a: found int; expected references, in a list"),
    ({}, {"columns": "reward"}, "columns: found 'reward'; expected a list of names"),
    ({}, {"tree": "response"}, "found text= and tree=; expected one of them"),
    ({}, {"chosen": "response"}, "needs rejected="),
    ({}, {"chosen": "response", "rejected": "s"}, "found columns= beside chosen= and rejected="),
]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(("data", "names", "message"), BAD, ids=[message for *_, message in BAD])
def test_what_is_wrong_is_named(data: dict[str, Any], names: dict[str, Any], message: str, kind: str) -> None:
    frame = KINDS[kind](FRAME | data)
    with pytest.raises(rerank.RerankError) as caught:
        list(rerank.read(frame, **PLAIN | names))
    assert message in str(caught.value)


def test_frames_without_names_and_other_mistakes(fitted: rerank.Reranker, caplog: pytest.LogCaptureFixture) -> None:
    frame = pl.DataFrame(FRAME)
    for use in (
        fitted.best,
        lambda given: list(fitted.rank_many(given)),
        lambda given: list(fitted.rank_many([given])),
    ):
        with pytest.raises(rerank.RerankError, match="score_frame ranks "):
            use(frame)
    with pytest.raises(rerank.RerankError, match=r"candidate 1: found no number as 'length'; .* 'score', 'reward'"):
        fitted.best([{"text": "a", "score": 1.0, "reward": 1.0}])
    for use in (rerank.read, rerank.fit, lambda given: rerank.evaluate([0], given), fitted.score_frame):
        with pytest.raises(rerank.RerankError, match=r"needs group= and text=, the names of columns; it has 'prompt'"):
            use(frame)
    names: dict[str, Any] = {key: name for key, name in PLAIN.items() if key != "columns"}
    with pytest.raises(rerank.RerankError, match="the column 'correct' is the gain; leave it out of what to learn"):
        rerank.fit(frame, features=["reward", "correct"], **names)
    with pytest.raises(rerank.RerankError, match="start from knows no column 'other', only score, reward, length"):
        rerank.fit(frame.with_columns(other=pl.lit(1.0), length=pl.lit(1.0)), features=["other"], start=fitted, **names)
    assert "no column is learned from" not in caplog.text
    with pytest.raises(rerank.RerankError, match="no feature is left"):
        rerank.fit(frame, **names, epochs=1)
    assert "no column is learned from: features=[...] may name 'reward'" in caplog.text
    with pytest.raises(rerank.RerankError, match="found list; expected a data frame"):
        rerank.read([1, 2], group="a", text="b")
    with pytest.raises(rerank.RerankError, match="has a column 's' already"):
        rerank.fit(frame, features=["reward"], **names, epochs=1).score_frame(frame, into=("s", "t"))
    for into in (("a",), ("a", "a"), "ab", (1, 2)):
        with pytest.raises(rerank.RerankError, match=r"into: found .*; expected "):
            fitted.score_frame(frame, into=into)  # type: ignore[arg-type]
    with pytest.raises(rerank.RerankError, match="unique column names"):
        rerank.read(pd.DataFrame([[1, 2]], columns=["a", "a"]), group="a", text="a")
    with pytest.raises(rerank.RerankError, match="no list with candidates"):
        rerank.fit(frame.clear(), features=["reward"], **names)
    for call in (rerank.fit, rerank.read, fitted.score_frame):
        with pytest.raises(TypeError, match="unexpected keyword argument 'grup'"):
            call(frame, grup="prompt")  # type: ignore[operator]
    empty, named = frame.clear().with_columns(length=1.0, base=0.0), {"group": "prompt", "text": "response"}
    assert len(fitted.score_frame(empty, **named, score="base")) == 0  # type: ignore[arg-type]


def test_values_of_any_type_in_a_column_of_objects() -> None:
    for groups in ([1, 1.0, 2], [1, True, 2], ["a", "1", 1]):
        frame = pd.DataFrame(FRAME | {"prompt": pd.Series(groups, dtype=object)})
        with pytest.raises(rerank.RerankError, match=r"of the column 'prompt': found .*expected a name or a number"):
            list(rerank.read(frame, **PLAIN))
    with pytest.raises(
        rerank.RerankError,
        match=r"list a: candidate 1: found 1000.*; expected column 'reward' of candidate 1 as a finite number",
    ):
        list(rerank.read(pd.DataFrame(FRAME | {"reward": [10**400, 1, 2]}), **PLAIN))


@pytest.mark.parametrize(
    ("package", "message"), [("narwhals", "data frames need narwhals"), ("pyarrow", "need pyarrow")]
)
def test_packages_needed_are_named(package: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "table.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, package, None)
    given = pl.DataFrame(FRAME) if package == "narwhals" else tmp_path / "table.parquet"
    with pytest.raises(rerank.RerankError, match=rf"{message}.*: pip install 'rerank-nbest\[frames\]'"):
        rerank.read(given, **PLAIN)


# Pairs

PAIRS = [
    {"prompt": f"{i}+1?", "chosen": "yes" if i % 2 else "it is", "rejected": "no" if i % 3 else "not it"}
    for i in range(30)
]
USER, ASSISTANT = "user", "assistant"


def message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


@pytest.mark.parametrize("form", ["dicts", "messages", "frame", "message frame", "iterator"])
def test_pairs_give_the_model_of_their_file(form: str, tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    expected = rerank.fit(rerank.read(tmp_path / "pairs.jsonl"), features="text", **TRAINING)
    talks = [
        {key: [message(USER, pair["prompt"]), message(ASSISTANT, pair[key])] for key in ("chosen", "rejected")}
        for pair in PAIRS
    ]
    names: dict[str, Any] = {}
    given: Any = talks if form == "messages" else iter(PAIRS) if form == "iterator" else PAIRS
    if "frame" in form:
        given = pl.DataFrame(talks if form == "message frame" else PAIRS)
        names = {"chosen": "chosen", "rejected": "rejected", **({} if "message" in form else {"source": "prompt"})}
    found = rerank.fit(given, features="text", **names, **TRAINING)
    assert found.recipe.task == "ranking"
    assert found.model.weights["average"].w.tobytes() == expected.model.weights["average"].w.tobytes()
    assert found.best(["yes", "no"]) == "yes"


@pytest.mark.parametrize("groups", [[1.5, 2.5], [1, 2], ["a", "b"], [date(2026, 1, 1), date(2026, 1, 2)]])
def test_pairs_are_called_by_their_groups(groups: list[Any]) -> None:
    frame = pl.DataFrame({"group": groups, "yes": ["a", "b"], "no": [["c", "d"], ["e"]]})
    found = list(rerank.read(frame, group="group", chosen="yes", rejected="no"))
    assert [(each.id, len(each)) for each in found] == list(zip(map(str, groups), (3, 2), strict=True))


def test_pairs_are_read_and_evaluated() -> None:
    first, *rest = rerank.read(PAIRS)
    assert (first.source, [each.text for each in first.candidates], first.gains) == (
        "0+1?",
        ["it is", "not it"],
        (1.0, 0.0),
    )
    assert len(rest) == 29
    assert rerank.evaluate([0] * 30, PAIRS, samples=50).lists == 30
    lists = [{"candidates": [{"text": "a", "score": np.float32(0.5), "gain": np.int64(1)}]}]
    (one,) = rerank.read(lists, "jsonl")
    assert (one.candidates[0].score, one.gains) == (0.5, (1.0,))
    for given, told in (
        ([*PAIRS, {"prompt": "a", "chosen": "b"}], "list 30: found null under 'rejected', unlike in most"),
        ([*PAIRS, 5], "list 30: found int; expected a dict like the first"),
        ([{"chosen": {1}, "rejected": "b"}], "list 0: a dict that is no JSON object: found set"),
        ([{"a": 1}], "list 0: found null under 'candidates'"),
    ):
        for use in (rerank.fit, lambda each: list(rerank.read(each))):
            with pytest.raises(rerank.RerankError) as caught:
                use(given)
            assert str(caught.value).startswith(told)
    with pytest.raises(rerank.RerankError, match="'moses' is no format of JSON lines"):
        rerank.read(PAIRS, "moses")
    with pytest.raises(rerank.RerankError, match=r"pairs: expected lists; rerank\.read\(path, format\)"):
        rerank.fit("pairs")


LEARNING: dict[str, Any] = {"features": ["Dense", "SameAnswer", "Given"], "metric": "gain", "epochs": 3, "seed": 1}


def line(i: int) -> dict[str, Any]:
    """A list as a JSON line has it; some candidates have a number that the others lack."""
    generator = np.random.default_rng(i)
    candidates: list[dict[str, Any]] = [
        {
            "text": f"{i} is {k}",
            "score": generator.normal(),
            "lm": generator.normal(),
            "answer": str(k % 3) * (k < 3 or i % 2),
            "gain": float(k == i % 3),
        }
        for k in range(4)
    ]
    candidates[i % 3]["right"] = 0.1 * i
    return {"id": i, "source": f"what is {i}", "candidates": candidates}


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [json.dumps(line(i)) for i in range(20)]


@pytest.fixture(scope="module")
def model(lines: list[str]) -> rerank.Reranker:
    return rerank.fit(map(json.loads, lines), **LEARNING)


def test_a_training_line_goes_everywhere_as_it_is(lines: list[str], model: rerank.Reranker, tmp_path: Path) -> None:
    (tmp_path / "lists.jsonl").write_text("\n".join(lines))
    read = rerank.fit(rerank.read(tmp_path / "lists.jsonl", "jsonl"), **LEARNING)
    assert read.to_json() == model.to_json()
    given = [json.loads(each) for each in lines]
    expected = [(ranking.order.tolist(), ranking.scores.tolist()) for ranking in read.rank_many(given)]
    assert [len(order) for order, _ in expected] == [4] * len(lines)

    def same(rankings: Iterable[rerank.Ranking]) -> bool:
        return [(ranking.order.tolist(), ranking.scores.tolist()) for ranking in rankings] == expected

    assert same(map(model.rank, given))
    assert same(model.rank(each["candidates"], each["source"]) for each in given)
    assert same(model.rank_many(tmp_path / "lists.jsonl", format="jsonl"))
    served = [json.loads(answer(model, each.encode())[0]) for each in lines]
    assert [(each["order"], each["scores"]) for each in served] == expected
    assert [each["id"] for each in served] == [each["id"] for each in given]
    shown = read.rank(given[0])
    assert shown.answers == [tuple(pair) for pair in served[0]["answers"]]
    assert sum(share for _, share in shown.answers) <= sum(shown.probabilities) + 1e-12
    without = [[{key: one[key] for key in one if key != "answer"} for one in each["candidates"]] for each in given]
    assert not same(map(model.rank, without))


def test_a_rule_finds_the_same_answers_in_every_shape(lines: list[str], tmp_path: Path) -> None:
    given = [json.loads(each) for each in lines]
    for each in given:
        for one in each["candidates"]:
            one["text"] = f"so \\boxed{{{one.pop('answer')}}}"
    (tmp_path / "lists.jsonl").write_text("".join(json.dumps(each) + "\n" for each in given))
    rows = [{"id": each["id"], **one} for each in given for one in each["candidates"]]
    table = pd.DataFrame(rows).drop(columns="right")
    by_file = rerank.fit(rerank.read(tmp_path / "lists.jsonl", "jsonl", answer="boxed"), **LEARNING)
    in_frame = rerank.read(table, group="id", text="text", score="score", gain="gain", columns=["lm"], answer="boxed")
    assert by_file.to_json() == rerank.fit(given, answer="boxed", **LEARNING).to_json()
    assert by_file.recipe.data.answer == rerank.fit(in_frame, **LEARNING).recipe.data.answer == "boxed"
    assert by_file.rank(given[1]).answers == by_file.rank(tuple(given[1]["candidates"])).answers != []
    assert [[one.answer for one in each.candidates] for each in in_frame][1] == ["0", "1", "2", "0"]
    with pytest.raises(rerank.RerankError, match="last-number"):
        rerank.fit(given, answer="number", **LEARNING)


def test_a_model_finds_answers_as_those_of_its_lists_were_found(lines: list[str], tmp_path: Path) -> None:
    given = [[f"so {one['answer']}" for one in json.loads(each)["candidates"]] for each in lines]
    forms = [{"problem": "?", "completions": texts, "answer": texts[i % 3][3:]} for i, texts in enumerate(given)]
    (tmp_path / "forms.jsonl").write_text("".join(json.dumps(each) + "\n" for each in forms))
    model = rerank.fit(rerank.read(tmp_path / "forms.jsonl"), **LEARNING)
    assert (model.recipe.data.answer, model.recipe.data.reader) == ("last-number", {"name": "jsonl", "answer": None})
    (known, *_), bare = model.rank_many(tmp_path / "forms.jsonl"), model.rank(given[0])
    assert (bare.order.tolist(), bare.scores.tolist()) == (known.order.tolist(), known.scores.tolist())
    assert bare.answers == known.answers != []
    assert rerank.fit(forms, **LEARNING).to_json() == model.to_json()
    files = {"root": str(tmp_path), "nbest": "{root}/{split}.jsonl", "train": "forms"}
    recipe = read_settings({"task": "ranking", "name": "r", "data": files})
    expected = recipe.change({"data.answer": "last-number", "data.reader.answer": None})
    assert resolve_features(recipe).data == expected.data
