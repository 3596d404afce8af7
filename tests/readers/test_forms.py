"""Files of other programs, as documented or as they were written, read without naming a format, or refused."""

import gzip
import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from outcomes import read_lists
from small import SHARED, needs

import rerank
from rerank.base.errors import DataError
from rerank.readers.lists import Lists
from rerank.readers.reader import SkipCount, make_reader
from rerank.readers.texts.forms import FORMS

# Samples of what programs write, a line each (``of``: where that is shown), and what is read of them: the ids of lists,
# texts, columns and their scores, answers, source and references of the first.
FILES: dict[str, dict[str, Any]] = {
    one["form"]: {"answers": [], "source": None, "references": []} | one
    for one in map(json.loads, Path(__file__).with_name("forms.jsonl").read_text(encoding="utf-8").splitlines())
}


def first_of(form: str) -> dict[str, Any]:
    """The first object of a sample."""
    found: dict[str, Any] = FILES[form]["items"][0]
    return found


LM_EVAL, VERIFIERS, BATCH_OF_CHATS = (
    FILES[form]["items"] for form in ("lm-evaluation-harness", "verifiers", "batch of chats")
)
SEARCH, VLLM, SGLANG, RESPONSE, CHAT = map(first_of, ("search-and-learn", "vllm", "sglang", "responses", "chat"))
REWARD_BENCH, ULTRA, PARALLEL, PAIR = map(first_of, ("reward-bench", "ultrafeedback", "parallel", "preferences"))
FAILED = BATCH_OF_CHATS[0] | {"response": None, "error": {"code": "x", "message": "out of time"}}
SEVERAL = {"choices": [{"text": f"{prompt}", "prompt_token_ids": [prompt]} for prompt in (1, 1, 2)]}
USER, OTHER, ANSWER = PAIR["chosen"][0], PAIR["chosen"][1], PAIR["rejected"][1]


def logged(**changes: Any) -> dict[str, Any]:
    """A line of a log with one response, whose answer a filter has found."""
    line = LM_EVAL[0] | {"resps": [["x"]], "filtered_resps": ["4"], "filter": "none"} | changes
    return {key: value for key, value in line.items() if value is not None}


def rows(path: Path, items: list[Any] | Any, array: bool = False, **options: Any) -> list[Lists]:
    text = json.dumps(items, indent=1) if array else "".join(json.dumps(item) + "\n" for item in items)
    path.write_text(text)
    return list(make_reader({"name": "jsonl", **options}, "").read(path))


@pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
@pytest.mark.parametrize("name", FILES)
def test_forms(name: str, array: bool, tmp_path: Path) -> None:
    form = FILES[name]
    items, columns = form["items"], form["columns"]
    found = rows(tmp_path / "lists", items, array)
    assert [one.id for one in found if one.problem is None] == form["ids"]
    one, *_ = rerank.read(tmp_path / "lists")
    assert [text.decode() for text in one.rows.texts] == form["texts"]
    assert set(one.rows.names) >= set(columns)
    assert one.rows.scores[:, [one.rows.names.index(name) for name in columns]].tolist() == form["scores"]
    assert [answer and answer.decode() for answer in one.rows.answers or []] == form["answers"]
    assert (one.source, [*one.references]) == (form["source"], form["references"])
    dicts, *_ = rerank.read(items)
    assert (dicts.id, dicts.rows.texts) == (one.id, one.rows.texts)
    with (tmp_path / "written").open("wb") as out:
        for nbest in found:
            make_reader("jsonl", "").write(out, nbest)
    again, *_ = rerank.read(tmp_path / "written")
    assert (again.id, again.rows.texts, again.rows.scores.tolist(), again.rows.answers, again.source) == (
        one.id, one.rows.texts, one.rows.scores.tolist(), one.rows.answers, one.source,
    )  # fmt: skip


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["verifiers", "hyporadise"])
def test_forms_come_through_pipes(name: str, compress: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    form = FILES[name]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(compress(json.dumps(form["items"]).encode()))))
    found = list(rerank.read("-"))
    assert [one.id for one in found] == form["ids"]
    assert [candidate.text for candidate in found[0].candidates] == form["texts"]


def test_every_form_has_a_sample() -> None:
    seen = [*map(first_of, FILES)]
    assert all(any(form.keys.keys() <= one.keys() for one in seen) for form in FORMS)


def gains(nbest: Any) -> list[float]:
    return [float(value) for value in nbest.scores[:, nbest.names.index("gain")]]


def test_answers_that_a_filter_gives_for_each_response_and_metrics_of_each(tmp_path: Path) -> None:
    _, two, three = rows(tmp_path / "lists", LM_EVAL)
    assert (two.answers, gains(two)) == ([b"4", b"5", None], [1, 0, 0])
    assert (three.answers, gains(three)) == ([b"4", b"4"], [0, 1])
    one, two = rows(tmp_path / "lists", [
        logged(exact_match=False), logged(doc_id=1, bypass=999, metrics=["bypass"], exact_match=None),
    ])  # fmt: skip
    assert (gains(one), gains(two)) == ([0], [1])


@pytest.mark.parametrize(
    ("target", "rule", "texts", "right"),
    [
        ("1,000", None, ["It is 1000.0, or 2?", "1e3"], [0, 1]),
        ("$18", None, ["18 dollars", "\\boxed{18} of 20"], [1, 1]),
        ("(C)", None, ["Of A and C: C.", "A"], [1, 0]),
        ("Paris", None, ["paris.", "In Paris"], [1, 0]),
        ("$\\boxed{(1, x)}$", None, ["\\boxed{(1,  x)} or 2", "(1, x)", "(1, X)", "\\boxed{(1, X)}"], [1, 1, 0, 0]),
        ("4", "boxed", ["\\boxed{4} or 5", "4"], [1, 0]),
        ("4", "json:a", ['{"a": 4.0} 5', "4"], [1, 0]),
        ("(c)", "regex:is (.*)", ["it is (c)", "it is c"], [1, 0]),
    ],
)
def test_the_right_answer_says_how_others_are_found(
    target: str, rule: str | None, texts: list[str], right: list[int], tmp_path: Path
) -> None:
    item = {"problem": "?", "completions": texts, "answer": target}
    (one,) = rows(tmp_path / "lists", [item], answer=rule)
    assert gains(one) == right
    (nbest,) = rerank.read(tmp_path / "lists", answer=rule) if rule else rerank.read(tmp_path / "lists")
    assert list(nbest.gains or ()) == right


def test_scores_of_rubrics_are_columns_where_they_are_named(tmp_path: Path) -> None:
    one, _ = rows(tmp_path / "lists", VERIFIERS, dense=["format"], labels=["task"])
    assert (one.names, one.sparse.names) == (("score", "format", "gain"), [b"task=default"] * 2)


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize("first", [0, 1])
def test_places_are_counted_from_where_they_fit(first: int, kind: type, tmp_path: Path) -> None:
    items = [{"prompt": f"p{k}", "responses": ["x", "y", "z"], "best": kind(k % 3 + first)} for k in range(6)]
    found = rows(tmp_path / "lists", items)
    assert [gains(one).index(1.0) for one in found] == [0, 1, 2, 0, 1, 2]
    roles = found[0].roles
    assert roles.key_roles["best"] == ("ordinal" if first else "truth")


def test_roles_reach_into_objects_and_say_which_keys_are_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = [{"text": "x", "about": {"p": 2, "ok": True}}, {"text": "y", "about": {"p": 1, "ok": False}}]
    items = [{"q": "?", "out": out}]
    (one,) = rows(tmp_path / "lists", items, roles={"about.ok": "gain", "about.p": "column", "lm": "column"})
    assert (one.names, one.scores.tolist()) == (("score", "gain", "about.p"), [[0, 1, 2], [0, 0, 1]])
    assert [record.getMessage().partition(";")[0] for record in caplog.records if record.levelname == "WARNING"] == [
        f"{tmp_path / 'lists'}: 'lm' is missing, the column in roles"
    ]
    rows(tmp_path / "plain", [{"candidates": ["x", "y"]}], roles={"typo": "gain"})
    assert "'typo' is missing" in caplog.text
    plain = {"candidates": "candidates", "source": "source", "reference": "reference"}  # as models keep them
    rows(tmp_path / "named", [{"candidates": ["x", "y"], "references": ["x"]}], roles=plain)
    assert "named" not in caplog.text
    items = [{"on": {"q": "?"}, "said": {"a": text}} for text in "xy"]
    (one,) = rows(tmp_path / "lists", items, roles={"on.q": "group", "said.a": "text"})
    assert one.texts == [b"x", b"y"]
    with pytest.raises(rerank.RerankError, match=r"roles: found \['q'\]; expected a dict"):
        rerank.read(tmp_path / "lists", roles=["q"])  # type: ignore[arg-type]
    (one,) = rows(
        tmp_path / "lists", [{"mc": {"of": ["x", "y"], "ok": [1, 0]}}], roles={"mc.of": "candidates", "mc.ok": "gain"}
    )
    assert gains(one) == [1, 0]
    tokens = {"hyps": [{"tokens": ["a", "b"]}, {"tokens": ["a", "c"]}], "said": ["a", "c"]}
    (one,) = rows(tmp_path / "lists", [tokens], roles={"hyps": "candidates", "tokens": "text", "said": "reference"})
    assert ([*one.texts], [*one.references]) == ([b"a b", b"a c"], [b"a c"])


def test_texts_in_a_column_that_roles_name_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    items = [
        {"qid": f"{i}", "response": f"{k}", "kpi": "n/a" if k + i == 1 else ".5"} for i in range(4) for k in (0, 1)
    ]
    rows(tmp_path / "lists", items, roles={"kpi": "column"})
    assert "'kpi': 2 of 8 values are no numbers, as \"n/a\": 0 for these" in caplog.text


@pytest.mark.parametrize("odd", [[1, 2], {"a": 1, "b": 2}])
def test_a_number_that_is_often_something_else_is_unused_or_said(
    odd: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    items = [
        {"candidates": [{"text": f"{k}", "gain": k, "kpi": k / (i + 2) if i < 5 else odd} for k in (0, 1)]}
        for i in range(8)
    ]
    few = rows(tmp_path / "lists", items)
    assert "kpi" in few[0].roles.unused_keys
    assert few[0].sparse is None
    assert "are no numbers" not in caplog.text
    few = rows(tmp_path / "named", items, roles={"kpi": "column"})
    assert few[0].sparse.values.tolist() == [0, 0.5]
    assert (
        f"'kpi': 6 of 16 values are no numbers, as {'a list' if isinstance(odd, list) else 'an object'}: 0 for these"
        in caplog.text
    )


@pytest.mark.parametrize("kind", [int, str])
def test_a_right_answer_that_is_a_small_number_is_no_place(kind: type, tmp_path: Path) -> None:
    samples = [f"The answer is {k}." for k in (3, 1, 2, 2)]
    items = [{"q": f"{k}", "samples": samples, "answer": kind(k % 3 + 1)} for k in range(9)]
    one, two, *_ = rows(tmp_path / "lists", items)
    assert (gains(one), gains(two)) == ([0, 1, 0, 0], [0, 0, 1, 1])


@pytest.mark.parametrize("names", ["sentence1 sentence2", "text_a text_b"])
def test_pairs_that_are_compared_are_no_lists(names: str, tmp_path: Path) -> None:
    for one in rows(tmp_path / "lists", [dict.fromkeys(names.split(), "x") | {"label": k % 2} for k in range(9)]):
        assert one.problem is not None


@pytest.mark.parametrize("key", ["segments", "tokens", "words", "steps", "turns", "tags"])
@pytest.mark.parametrize("same", [False, True])
def test_parts_of_one_text_are_no_candidates(key: str, same: bool, tmp_path: Path) -> None:
    key = "judge" if same else key  # whatever all have is of none
    items = [{"id": str(k), "text": "it rains", key: ["it", "rains" if same else f"{k}"]} for k in range(3)]
    assert all(one.problem is not None for one in rows(tmp_path / "lists", items))


def test_a_message_names_few_keys(tmp_path: Path) -> None:
    (one,) = rows(tmp_path / "lists", [{f"key{k}": k for k in range(10_000)}])
    assert len(one.problem.message) < 500


def test_how_many_are_right_is_no_place(tmp_path: Path) -> None:
    items = [{"prompt": f"p{k}", "samples": ["x", "y", "z"], "correct": k % 4} for k in range(12)]
    one, *_ = rows(tmp_path / "lists", items)
    assert "gain" not in one.names
    assert "correct" in one.roles.unused_keys


def test_where_places_are_counted_from_is_said_or_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    items = [{"prompt": "p", "responses": ["x", "y", "z"], "best": 1}]
    (one,) = rows(tmp_path / "lists", items)
    assert gains(one) == [0, 1, 0]
    assert "if 1: --roles best=ordinal" in caplog.text
    (one,) = rows(tmp_path / "lists", [{**items[0], "best": 2}], roles={"best": "ordinal"})
    assert gains(one) == [0, 1, 0]


def test_models_are_labels(tmp_path: Path) -> None:
    for item, label in ((REWARD_BENCH, "model"), (ULTRA, "model"), (PARALLEL, "models")):
        (one,) = rows(tmp_path / "lists", [item], labels=[label])
        assert one.sparse.names == [f"{label}=a".encode(), f"{label}=b".encode()]


@pytest.mark.parametrize("item", [PAIR, PAIR | {"rejected": ["4", "22"], "score_rejected": [2, 1.5], "prompt": "2+2?"}])
def test_numbers_of_preferences_are_what_roles_say(item: dict[str, Any], tmp_path: Path) -> None:
    (one,) = rows(tmp_path / "lists", [item], roles={"score": "gain"})
    texts, found = (["4", "5"], [2, 8.5]) if item is PAIR else (["22", "4", "5"], [1.5, 2, 8.5])
    assert [text.decode() for text in one.texts] == texts
    assert (gains(one), one.source) == (found, b"2+2?")
    (one,) = rows(tmp_path / "lists", [item], dense=["score"])
    assert (one.base.tolist(), gains(one)) == (found, [0.0] * (len(texts) - 1) + [1.0])


def test_a_choice_without_log_probabilities_is_bad_beside_others(tmp_path: Path) -> None:
    broken: list[Any] = [{"text": "x"}, {"text": "x", "logprobs": 1}, {"text": "x", "logprobs": {"content": ["y"]}}]
    broken += [{"text": "x", "logprobs": [float("-inf")]}, {"message": {"content": None}, "logprobs": [-1]}]
    _, one = rows(tmp_path / "lists", [CHAT, {"id": "2", "choices": [*CHAT["choices"], *broken]}])  # type: ignore[misc]
    assert [(bad.reason, bad.index) for bad in one.bad] == [("score", k) for k in range(2, 6)] + [("text", 6)]


@pytest.mark.parametrize(
    ("item", "reason", "message"),
    [
        (SEARCH | {"scores": [[0.5]]}, "columns", "found 1 entries under 'scores'; expected one for each of 2 texts"),
        (FAILED, "text", 'the request has no response: "out of time"; send it again'),
        (SEVERAL, "text", "the choices are answers to 2 prompts; send every prompt in a request of its own"),
        ({"choices": [{"index": 0, "delta": {"content": "a"}}]}, "text", "choice 1 is a piece of a stream; ask for"),
        ({"chosen": [USER, OTHER], "rejected": [USER, ANSWER, USER, OTHER]}, "text", "come after different messages"),
        ({"chosen": 4, "rejected": [{"a": 1}]}, "text", "found 4; expected candidate 1 as a string"),
        (SEARCH | {"agg_scores": 7}, "columns", "found 7 under 'agg_scores'; expected one for each of 2 texts"),
        (SEARCH | {"completions": [1, 2]}, "text", "found 1; expected candidate 1 as a string"),
        (LM_EVAL[0] | {"resps": [[["-1.5", "False"]], [["-2", "True"]]]}, "text", "are log probabilities of given"),
        (LM_EVAL[0] | {"arguments": [["a", " b"]], "resps": [["-1.5", "False"]]}, "text", "are log probabilities of"),
        (RESPONSE | {"error": {"message": "busy"}}, "text", 'the request has no response: "busy"; send it again'),
        ({"candidates": [["a"]], "reference": ["a"], "references": ["a b"]}, "text", "expected one of them"),
        (VLLM | {"outputs": [{"index": 0}]}, "text", "candidate 1 has no 'text'; if it stands under"),
        (SGLANG | {"meta_info": {"output_token_logprobs": ["x"]}}, "score", "found a list; expected 'score' of"),
    ],
)
def test_faults(item: dict[str, Any], reason: str, message: str, tmp_path: Path) -> None:
    (bad,) = rows(tmp_path / "lists", [item])
    assert (bad.problem.reason, bad.line) == (reason, 1)
    assert message in bad.problem.message


def test_a_pattern_that_never_ends_and_nan_are_errors_with_their_line(tmp_path: Path) -> None:
    slow = SEARCH | {"completions": ["a" * 60 + "b", "b"]}
    (bad,) = rows(tmp_path / "lists", [slow], answer="regex:(a|aa)+$")
    assert "takes more than 1 s with a candidate; expected a pattern that ends sooner" in bad.problem.message
    (tmp_path / "lists").write_text("\n" + json.dumps(SEARCH | {"agg_scores": [0.5, float("nan")]}))
    with pytest.raises(DataError, match=r"lists:2: .*found NaN; expected 'agg_scores' of candidate 2 as a finite"):
        list(rerank.read(tmp_path / "lists"))


def mutated(value: Any, draw: random.Random) -> Any:
    """A JSON value in which some parts are others, or missing."""
    if draw.random() < 0.05:
        return draw.choice([None, 0, 1.5, True, "", [], {}, [0.5], {"a": 1}, [[]], float("nan"), ["a", 1], 10**400])
    if isinstance(value, dict):
        return {key: mutated(part, draw) for key, part in value.items() if draw.random() > 0.02}
    return [mutated(part, draw) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", FILES)
def test_whatever_is_in_an_object_is_read_or_a_bad_list(name: str, tmp_path: Path) -> None:
    draw, read = random.Random(name), 0
    for _ in range(40):
        items = [{key: mutated(value, draw) for key, value in item.items()} for item in FILES[name]["items"]]
        found = rows(tmp_path / "lists", items)
        read += sum(one.problem is None for one in found)
    assert read


INTEROP = SHARED / "interop"

WORDS = "sum", "mean", "min", "length"
JOSHUA = "lm_0", "OOVPenalty", "WordPenalty"
OLD = *(f"d_{k}" for k in range(7)), "lm", "w", *(f"tm_{k}" for k in range(5))
OLD_2 = *(f"d_{k}" for k in range(7)), "lm_0", "lm_1", *(f"tm_{k}" for k in range(5)), "w"
PHRASES = *(f"tm_pt_{k}" for k in range(4)), *JOSHUA, "Distortion", "PhrasePenalty"

# Lists, candidates, and the columns besides the base score; or what the message says.
OUTPUTS: dict[str, tuple[int, int, tuple[str, ...]] | str] = {
    "cdec.cfg_rescore": (1, 4, ()),
    "cdec.controlled_synparse": (2, 36, ("Glue", "F7")),
    "cdec.ftrans": (1, 4, ()),
    "cdec.lattice": (2, 9, ("SourceWordPenalty", "WordPenalty")),
    "fairseq.constrained.txt": (1, 1, WORDS),
    "fairseq.generate.txt": "no record 'P-721', the scores of its words, unlike others of the file; fairseq writes one",
    "fairseq.interactive_new.txt": (3, 3, WORDS),
    "fairseq.oldlog.txt": (1, 1, WORDS),
    "joshua.kbest_extraction.output.gold": (1, 3126, ("lm_0", "tm_pt_0", "tm_glue_0")),
    "joshua.kbest_extraction.output.scores.gold": (1, 3126, ()),
    "joshua.lattice-short.output.expected": (5, 18, ("tm_pt_0", "tm_glue_0", *JOSHUA, "SourcePath")),
    "joshua.lattice.output.expected": (
        4, 33, ("tm_pt_0", "tm_pt_1", "tm_pt_2", "tm_glue_0", *JOSHUA, "SourcePath"),
    ),
    "joshua.moses-compat.txt": (1, 2, ("tm_glue_0",)),
    "joshua.parser.output.gold": "this looks like one answer of Joshua for each input, without scores",
    "joshua.phrase_decoder.constrained.output.gold": (1, 5, PHRASES),
    "joshua.phrase_decoder.output.gold": (1, 1, PHRASES),
    "joshua.server.tcp-text.expected": "this looks like one answer of Joshua for each input, without scores",
    "joshua.source-annotations.txt": (1, 2, ("tm_pt_0", "tm_glue_0", *JOSHUA)),
    "marian.decoder.align.align_nbest.expected": (30, 90, ("F0",)),
    "marian.decoder.align.soft.nbest.expected": (30, 90, ("F0",)),
    "marian.decoder.wmt16.nbest.expected": (100, 500, ("F0",)),
    "marian.decoder.wmt17.nbest.expected": (100, 495, ("F0",)),
    "marian.decoder.wmt17.nbest.nematus": (100, 500, ()),
    "marian.decoder.word-scores.nbest.expected": (30, 90, ("F0", *WORDS)),
    "marian.decoder.word-scores.nbest_align_nrm.expected": (30, 90, ("F0", *WORDS)),
    "marian.models.ape.text.b4.nbest.expected": (100, 400, ("F0",)),
    "marian.models.transformer.text.b6.nbest.expected": (50, 300, ("F0",)),
    "marian.scorer.align.nbest.expected": (30, 150, ("F0", "Score")),
    "marian.scorer.align.nbest.trg.in": (30, 150, ("F0",)),
    "marian.scorer.nbest.nbest.expected": (20, 100, ("F0", "Score")),
    "marian.scorer.nbest.text.nbest.in": (20, 100, ("F0",)),
    "marian.scorer.scores.text.b3.nbest.out": (100, 300, ("F0",)),
    "marian.scorer.scores.word_scores_nbest.expected": (100, 300, ("F0", "Score", *WORDS)),
    "moses.mert-example.NBEST": (3, 300, OLD_2),
    "moses.promix.test.nbest.nbest": (1, 100, OLD),
    "moses.promix.test.nbest.nbest.segments": (1, 100, OLD),
    "moses.regr.run1.gz": (5, 1000, OLD),
    "moses.scorer.nbest.out.gz": (100, 10000, OLD_2),
    "sockeye.doc.jsonl": "the object has no 'score', which sockeye writes with --output-type json",
}  # fmt: skip


def reader_of(name: str) -> str | dict[str, str]:
    """The reader for a file; Nematus writes costs."""
    if name.endswith("nematus"):
        return {"name": "moses", "scores": "cost"}
    program = name.split(".")[0]
    return program if program in ("fairseq", "sockeye") else "moses"


def read(name: str) -> tuple[int, int, tuple[str, ...]] | str:
    """What is in a file, as in ``OUTPUTS``."""
    count, columns = SkipCount(), set[tuple[str, ...]]()
    try:
        for nbest in read_lists(make_reader(reader_of(name), "reader"), INTEROP / name, count=count):
            columns.add(tuple(column for k, column in enumerate(nbest.names) if k != nbest.column))
    except DataError as error:
        return str(error)
    assert len(columns) == 1
    return count.lists, count.candidates, columns.pop()


@needs("interop")
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_file_of_another_program_is_read_or_refused_with_its_name(name: str) -> None:
    expected, found = OUTPUTS[name], read(name)
    if isinstance(expected, str):
        assert isinstance(found, str)
        assert expected in found
        assert name.split(".")[0] in found.lower().replace(str(INTEROP / name), "")
    else:
        assert found == expected
