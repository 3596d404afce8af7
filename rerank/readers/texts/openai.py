"""Responses of servers that speak the OpenAI API, one JSON object per line: completions and chats with ``n`` choices.

Three lines this reads (the last one is of the output of a batch)::

    {"id": "cmpl-1", "choices": [{"index": 0, "text": " Yes.", "logprobs": {"token_logprobs": [-0.25, -0.5]}}]}
    {"id": "chatcmpl-1", "choices": [{"message": {"role": "assistant", "content": "4"}, "logprobs": {"content":
        [{"token": "4", "logprob": -0.125}]}}, {"message": {"role": "assistant", "content": "5"}, "logprobs": null}]}
    {"id": "batch_req_1", "custom_id": "a", "response": {"status_code": 200, "body": {"choices": []}}, "error": null}

Where choices have the log probabilities of their tokens, the base score is their sum, and their mean, minimum and
number are columns; elsewhere all base scores are 0. The column ``finish_length`` is 1 where ``finish_reason`` says that
a choice was cut at the limit of its length, else 0. Numbers called ``score``, ``base_score`` and ``gain`` in a choice,
and its ``answer``, which no server writes, count as in ``jsonl``. The response to several prompts is refused where it
tells them apart, as vLLM's with ``prompt_token_ids`` does; most do not.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.base.errors import RecipeError
from rerank.readers.base import Order, Problem, Scores
from rerank.readers.lines import word_scores
from rerank.readers.lists import Lists
from rerank.readers.streams import Writable
from rerank.readers.texts.json_lines import SampleReader, json_line, number_of, shown, stepped, text_of, written
from rerank.readers.texts.jsonl import rescored
from rerank.readers.texts.text_list import NUMBERS, OF_WORDS, SCORE, Draft, Entry, each


@dataclass(frozen=True)
class OpenAiReader(SampleReader):
    """Lists of the choices in responses.

    >>> (nbest,) = OpenAiReader().parse(b'{"choices": [{"text": "4", "logprobs": {"token_logprobs": [-0.25]}}]}')
    >>> nbest.texts, nbest.base
    ([b'4'], array([-0.25]))

    Parameters
    ----------
    duplicates, ids, steps, labels: see ``SampleReader``.
    id: the key of the list's id, as ``custom_id`` in the output of a batch.
    """

    form: ClassVar[str] = "openai"

    id: str = "id"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.id:
            raise RecipeError("found an empty text; expected the key of the id", key="id")

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """A new score is "score" in its choice, the old one "base_score"."""
        assert not nbest.of_trees, "lists of responses"
        choices_read, item = nbest.raw.candidates, nbest.raw.head
        chosen = range(len(nbest)) if order is None else order
        choices = [
            choices_read[i] if scores is None else rescored(choices_read[i], float(nbest.base[i]), scores[i])
            for i in chosen
        ]
        if "choices" in item:
            item = {**item, "choices": choices}
        else:
            response = item["response"]
            item = {**item, "response": {**response, "body": {**response["body"], "choices": choices}}}
        out.write(json_line(item, nbest))

    @property
    def nothing(self) -> dict[str, Any]:
        return {"choices": []}

    def draft(self, content: dict[str, Any], names: tuple[str, ...] | None) -> Draft:  # noqa: ARG002
        choices = _choices(content)
        keys = stepped(choices, but="logprobs")
        return Draft(each(choices, lambda choice, k: self._candidate(choice, k, keys)), choices, content)

    def _candidate(self, choice: Any, k: int, stepped: tuple[str, ...]) -> Entry:
        """Choice ``k``. Raises Problem."""
        if not isinstance(choice, dict):
            raise Problem("text", f"found {shown(choice)}; expected choice {k}, an object")
        if "delta" in choice:
            raise Problem("text", f"choice {k} is a piece of a stream; ask for whole responses, without 'stream'")
        message = choice.get("message")
        if "text" not in choice and isinstance(message, dict):
            text = written(message.get("content"), f"the content of the message of choice {k}")
        else:
            text = written(choice.get("text"), f"the text of choice {k}")
        numbers = _log_probabilities(choice.get("logprobs"), k) | self.derived(choice, stepped, k)
        for name in NUMBERS:
            if choice.get(name) is not None:
                numbers[name] = number_of(choice[name], f"{name!r} of choice {k}")
        given = choice.get("answer")
        answer = None if given is None else text_of(given, f"the answer of choice {k}")
        return Entry(text, numbers, answer=answer, labels=self.labelled(choice))


def _choices(item: dict[str, Any]) -> list[Any]:
    """The choices of a response, or of the one in the output of a batch. Raises Problem."""
    body: Any = item
    response = item.get("response", ())
    if "choices" not in item and (response is None or isinstance(response, dict)):
        body = response.get("body") if isinstance(response, dict) else None
        if not isinstance(body, dict) or "choices" not in body:
            error = item.get("error") or (body.get("error") if isinstance(body, dict) else None)
            said = error.get("message") if isinstance(error, dict) else error
            raise Problem("text", f"the request has no response: {shown(said)}; send it again")
    choices = body.get("choices")
    if not isinstance(choices, list):
        raise Problem("text", f"found {shown(choices)} under 'choices'; expected the choices of a response, a list")
    prompts = {str(one["prompt_token_ids"]) for one in choices if isinstance(one, dict) and one.get("prompt_token_ids")}
    if len(prompts) > 1:
        message = f"the choices are answers to {len(prompts)} prompts; send every prompt in a request of its own"
        raise Problem("text", message)
    return choices


def _log_probabilities(given: Any, k: int) -> dict[str, float]:
    """The columns of choice ``k``: what is known of the log probabilities of its tokens. Raises Problem."""
    if given is None:
        return {}
    chat = isinstance(given, dict) and "content" in given
    values = given.get("content" if chat else "token_logprobs") if isinstance(given, dict) else given
    if values is None:
        return {}
    if not isinstance(values, list) or (chat and not all(isinstance(one, dict) for one in values)):
        raise Problem("columns", f"found {shown(values)} as 'logprobs' of choice {k}; expected those of its tokens")
    values = [one.get("logprob") if chat else one for one in values]
    # The first token of an echoed prompt has none.
    numbers = [number_of(one, f"a log probability of choice {k}") for one in values if one is not None]
    return dict(zip((SCORE, *OF_WORDS[1:]), word_scores(numbers), strict=True))
