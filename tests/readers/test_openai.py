"""Responses of OpenAI's API and of servers that speak it, as its reference shows them."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outcomes import good, written

from rerank.extraction.content.base import make_reader
from rerank.readers.base import read_lists
from rerank.readers.lists import Lists

COMPLETION = {
    "id": "cmpl-uqkvlQyYK7bGYrRHQ0eXlWi7", "object": "text_completion", "created": 1589478378, "model": "m",
    "system_fingerprint": "fp_44709d6fcb",
    "choices": [
        {"text": "\n\nThis is a test", "index": 0, "finish_reason": "length", "logprobs": {
            "tokens": ["This", " is", " a", " test"], "token_logprobs": [None, -0.5, -0.25, -1.25],
            "top_logprobs": [None, {" is": -0.5}, {" a": -0.25}, {" test": -1.25}], "text_offset": [0, 4, 7, 9]}},
        {"text": " No.", "index": 1, "finish_reason": "stop", "logprobs": {"token_logprobs": [-1, -2]}},
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
}  # fmt: skip
CHAT = {
    "id": "chatcmpl-123", "object": "chat.completion", "created": 1702685778, "model": "m",
    "choices": [
        {"index": k, "finish_reason": "stop",
         "message": {"role": "assistant", "content": text, "refusal": None, "annotations": []},
         "logprobs": {"refusal": None, "content": [
             {"token": "Hello", "logprob": -0.5 - k, "bytes": [72], "top_logprobs": [{"token": "Hi", "logprob": -2}]},
             {"token": "!", "logprob": -0.25, "bytes": None, "top_logprobs": []}]}}
        for k, text in enumerate(("Hello!", "Hello?"))
    ],
}  # fmt: skip
PLAIN = {"choices": [{"text": "a"}, {"message": {"content": "b"}, "logprobs": None}]}
BATCH = {
    "id": "batch_req_123", "custom_id": "request-2", "error": None,
    "response": {"status_code": 200, "request_id": "req_123", "body": CHAT},
}  # fmt: skip
FAILED = BATCH | {"custom_id": "request-3", "response": None, "error": {"code": "x", "message": "out of time"}}

SEVERAL = {  # a response of vLLM to several prompts (``return_token_ids``): no other field tells whose a choice is
    "choices": [
        {"index": k, "text": text, "prompt_token_ids": prompt}
        for k, (text, prompt) in enumerate([("a", [1, 2]), ("b", [1, 2]), ("c", [3]), ("d", [3])])
    ],
}


def read(root: Path, *items: dict[str, Any], **options: Any) -> list[Lists]:
    (root / "lists").write_text("".join(json.dumps(item) + "\n" for item in items))
    found = list(make_reader({"name": "openai", **options}).read(root / "lists"))
    return [one for one in found if isinstance(one, Lists)]


def test_completions(tmp_path: Path) -> None:
    one = good(*read(tmp_path, COMPLETION))
    assert (one.id, one.texts) == (COMPLETION["id"], [b"This is a test", b"No."])
    assert (one.names, one.column) == (("score", "mean", "min", "length", "finish_length"), 0)
    np.testing.assert_allclose(one.scores, [[-2.0, -2.0 / 3, -1.25, 3.0, 1.0], [-3.0, -1.5, -2.0, 2.0, 0.0]])


def test_chats_and_what_batches_of_them_give(tmp_path: Path) -> None:
    for found, name in (
        (read(tmp_path, CHAT), "chatcmpl-123"),
        (read(tmp_path, BATCH), "batch_req_123"),
        (read(tmp_path, BATCH, id="custom_id"), "request-2"),
    ):
        one = good(*found)
        assert (one.id, one.texts) == (name, [b"Hello!", b"Hello?"])
        assert one.scores.tolist() == [[-0.75, -0.375, -0.5, 2.0, 0.0], [-1.75, -0.875, -1.5, 2.0, 0.0]]


def test_without_log_probabilities_all_base_scores_are_0(tmp_path: Path) -> None:
    one = good(*read(tmp_path, PLAIN))
    assert (one.id, one.texts, one.names, one.base.tolist()) == ("0", [b"a", b"b"], ("score",), [0.0, 0.0])


@pytest.mark.parametrize("item", [COMPLETION, CHAT, PLAIN, BATCH], ids=["completion", "chat", "plain", "batch"])
def test_what_is_written_is_what_was_read_and_new_scores_are_in_their_choices(
    item: dict[str, Any], tmp_path: Path
) -> None:
    reader, one, out = make_reader({"name": "openai"}), good(*read(tmp_path, item)), io.BytesIO()
    reader.write(out, one)
    assert json.loads(out.getvalue()) == item
    again = good(*read(tmp_path, json.loads(written(reader, one, [1, 0], np.array([0.5, 1.5])))))
    assert (again.id, again.texts, again.base.tolist()) == (one.id, one.texts[::-1], [1.5, 0.5])
    assert again.scores[:, again.names.index("base_score")].tolist() == one.base[::-1].tolist()
    assert [name for name in again.names if name != "base_score"] == list(one.names)


@pytest.mark.parametrize(
    ("item", "reason", "message"),
    [
        (FAILED, "text", 'the request has no response: "out of time"; send it again'),
        ({"object": "list"}, "text", "found null under 'choices'; expected the choices of a response, a list"),
        ({"choices": [{"message": {"content": None}}]}, "text", "found null; expected the content of the message of"),
        (
            {"choices": [{"index": 0, "delta": {"content": "a"}}]},
            "text",
            "choice 1 is a piece of a stream; ask for whole",
        ),
        ({"choices": [{"text": "a", "logprobs": {"token_logprobs": ["x"]}}]}, "score", "a log probability of choice 1"),
        ({"choices": [{"text": "a", "logprobs": {"content": [1]}}]}, "columns", "found a list as 'logprobs' of choice"),
        ({"choices": [{"text": "a", "logprobs": 1}]}, "columns", "found 1 as 'logprobs' of choice 1"),
        (SEVERAL, "text", "the choices are answers to 2 prompts; send every prompt in a request of its own"),
    ],
)
def test_faults(item: dict[str, Any], reason: str, message: str, tmp_path: Path) -> None:
    (bad, other) = read(tmp_path, item, PLAIN, ids="ordinal")
    assert (bad.problem.reason, bad.line) == (reason, 1)
    assert message in bad.problem.message
    assert good(other).texts == [b"a", b"b"]


def test_a_choice_without_log_probabilities_is_bad_beside_others(tmp_path: Path) -> None:
    first = {"choices": [*CHAT["choices"], {"text": "x"}]}  # type: ignore[misc]
    found = read(tmp_path, CHAT, {"id": "2", **first})
    (bad,) = good(found[1]).bad
    assert (bad.reason, bad.place) == ("score", 2)
    assert len(list(read_lists(make_reader({"name": "openai"}), tmp_path / "lists", "skip"))) == 2
