"""Files of other programs whose JSON objects hold samples or hypotheses under keys of their own: one table of forms.

* [lm-evaluation-harness](https://github.com/EleutherAI/lm-evaluation-harness), `--log_samples` (`doc_id`, `resps`): the
  responses to a document, with the answers of the first `filter` if it gives one for each; the right answer is the
  `target`, the gain a logged metric that has a value for each response.
* [search-and-learn](https://github.com/huggingface/search-and-learn) (`problem`, `completions`): with the `scores` of
  steps, `agg_scores` and `completion_tokens`; the right answer is `answer`.
* [verifiers](https://github.com/PrimeIntellect-ai/verifiers) (`prompt`, `completion`, `reward`): rows with the same
  prompt are a list. The gain is the `reward`, the right answer `answer`. Scores of rubrics, which may know it, are
  columns only if the reader's option `dense` names them.
* [vLLM](https://docs.vllm.ai/en/latest/api/vllm/outputs/) and others, outputs of `generate` (`prompt`, `outputs`): the
  base score is `cumulative_logprob`, a column the number of tokens. The right answer, if there is one, is `answer`.
* [SGLang](https://docs.sglang.io/), outputs of `generate` (`text`, `meta_info`): rows with the same `prompt`, which the
  file needs beside them, are a list; the same, with `output_token_logprobs`.
* [OpenAI's responses](https://platform.openai.com/docs/api-reference/responses) (`object: response`): the text of each;
  those with the same `metadata` are a list, and an `answer` in it is the right one.
* [UltraFeedback](https://huggingface.co/datasets/openbmb/UltraFeedback) (`instruction`, `completions`): the gain is the
  `overall_score`.
* [HyPoradise](https://github.com/Hypotheses-Paradise/Hypo2Trans) (`input`, a list, and `output`): the hypotheses, with
  `ac_score` if there is one for each, and their reference.
* [NeMo](https://github.com/NVIDIA/NeMo), manifests (`audio_filepath`, `pred_text`): rows of one recording, as several
  models transcribe it, are a list; `text` is the reference. Beams (`.tsv`) are read as
  [opennmt](formats-texts.md#opennmt).
* [sherpa-onnx](https://github.com/k2-fsa/sherpa-onnx/pull/3953) (`hypotheses`): with `score` and `ys_log_probs`; the
  reference, if there is one, is `reference`.

Where the right answer is known, that of a candidate is what the rule for [answers](#answers) finds or, without a rule,
what is of its kind: what is in `\\boxed{}`, else the last number or letter, else the whole text. The gain, unless the
file has one, is 1 if they are equal. A right answer may stand at the end of a solution: `#### 42`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rerank.readers.problems import Problem
from rerank.readers.texts.answers import LETTER, NUMBER, OUTER, SECONDS, finder, plain
from rerank.readers.texts.json_lines import Doubtful, is_conversation, shown
from rerank.readers.texts.samples import FINISH
from rerank.readers.texts.text_list import SCORE

Object = dict[str, Any]
Paths = tuple[str, ...]  # of keys with dots between them; ``a#`` is the length of the list ``a``, ``a+`` its sum


@dataclass(frozen=True)
class Form:
    """The places in a program's objects that hold the parts of a list. Of several paths the first that exists counts.

    keys: what tells the form: an object has them all, with values of these kinds.
    many: the key of the list of candidates; empty if an object is one candidate.
    group: the paths of what the objects of one list have in common; empty: each is a list.
    text, columns: paths in a candidate. One that is a text needs none.
    along: keys of lists with an entry for each of ``many``.
    source, reference, right, id: paths in an object, ``right`` that of the right answer.
    prepared: makes of an object one that has all of this. Raises Problem.
    """

    keys: Mapping[str, type]
    many: str = ""
    group: Paths = ()
    text: Paths = ("text",)
    columns: Mapping[str, Paths] = field(default_factory=dict)
    along: tuple[str, ...] = ()
    source: Paths = ("prompt",)
    reference: Paths = ()
    right: Paths = ()
    id: Paths = ("id",)
    prepared: Callable[[Object], Object] = dict

    def list_of(self, rows: Sequence[Object], rule: str | None, named: Iterable[str]) -> Object:
        """The list that objects are, in the format ``jsonl``. Raises Problem.

        rule: the one for answers; named: what else is kept of candidates.
        """
        made = [self.prepared(row) for row in rows]
        head, keep = made[0], {key: (key, f"metrics.{key}") for key in (name.partition(":")[0] for name in named)}
        right = _first(head, self.right)
        find, answers = (None, set()) if right in (None, "") else _finder_of(str(right), rule)
        candidates = [one for row in made for one in self._candidates(row, {**keep, **self.columns})]
        for one in candidates:
            if find is not None and isinstance(one["text"], str):
                found = find(one.get("answer", one["text"]))
                one |= {"answer": found, "gain": one.get("gain", float(found in answers))}
        whole = {"id": _first(head, self.id), "source": _said(_first(head, self.source), every=True)}
        whole |= {"reference": _said(_first(head, self.reference)), "candidates": candidates}
        kind = Doubtful if any(isinstance(row, Doubtful) for row in rows) else dict
        return kind({key: value for key, value in whole.items() if value is not None})

    def _candidates(self, row: Object, columns: Mapping[str, Paths]) -> Iterator[Object]:
        """The candidates of an object."""
        entries = row[self.many] if self.many else [row]
        for key in self.along:
            values = row.get(key)
            if values is not None and (not isinstance(values, list) or len(values) != len(entries)):
                found = f"{len(values)} entries" if isinstance(values, list) else shown(values)
                raise Problem("columns", f"found {found} under {key!r}; expected one for each of {len(entries)} texts")
        along = [key for key in self.along if row.get(key) is not None]
        for k, entry in enumerate(entries):
            numbers = {name: _first(entry, paths) for name, paths in columns.items()} | {
                key: row[key][k] for key in along
            }
            text = _said(_first(entry, self.text)) if isinstance(entry, dict) else entry
            yield {"text": text} | {name: value for name, value in numbers.items() if value is not None}


def _first(item: Any, paths: Paths) -> Any:
    """The value under the first path that leads somewhere, None if none does."""
    for path in paths:
        value = item
        for key in path.rstrip("#+").split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if path[-1] in "#+":
            value = None if not isinstance(value, list) else len(value) if path[-1] == "#" else _sum(value)
        if value is not None:
            return value
    return None


def _sum(values: list[Any]) -> Any:
    """The sum of numbers, or of the first entries of lists, as SGLang has them; the list if there is none."""
    firsts = [value[0] if isinstance(value, list) and value else value for value in values]
    try:
        return math.fsum(firsts)
    except (TypeError, ValueError, OverflowError):
        return values


def _said(value: Any, *, every: bool = False) -> Any:
    """The text of the last message of a conversation, or of every one, a line each; other values as they are."""
    if not is_conversation(value):
        return value
    return "\n".join(_content(message.get("content")) for message in (value if every else value[-1:]))


def _content(content: Any) -> str:
    """The text of a message, which may have several parts, or none."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _finder_of(right: str, rule: str | None) -> tuple[Callable[[str], str | None], set[str | None]]:
    """The function that finds the answer in a text, and the answers that are right. Raises Problem where a rule takes
    too long."""
    right = right.rpartition("####")[2].strip()
    right = finder("boxed")(right) or right
    core = right.strip(OUTER + "$%")
    kind = "last-number" if NUMBER.fullmatch(core) else "letter" if LETTER.fullmatch(core) else "text"

    def find(text: str) -> str | None:
        try:
            boxed = None if rule else finder("boxed")(text)
            found = boxed if boxed and kind == "text" else finder(rule or kind)(boxed or text)
        except TimeoutError:
            message = f"the rule {rule!r} takes more than {SECONDS:g} s; expected a pattern that ends sooner"
            raise Problem("text", message) from None
        return (plain(found) or None) if found else None

    return find, {find(right), plain(right)} - {None}


def _logged(item: Object) -> Object:
    """The responses that lm-evaluation-harness logs of a document."""
    texts, filtered = _flat(item["resps"]), _flat(item.get("filtered_resps"))
    prompt, options = (*_values(next(iter(_values(item.get("arguments"))), [])), None, None)[:2]
    if isinstance(options, str) or not all(isinstance(text, str) for text in texts):
        message = "'resps' are log probabilities of given choices; expected texts that were sampled (generate_until)"
        raise Problem("text", message)
    made = {"id": item["doc_id"], "texts": texts, "prompt": prompt, "target": item.get("target")}
    if len(filtered) == len(texts):
        made["answer"] = [text if isinstance(text, str) and text != "[invalid]" else "" for text in filtered]
    names = _values(item.get("metrics")) or METRICS
    for name in (name for name in names if isinstance(name, str) and name != "bypass"):  # that of a run without metrics
        values: list[Any] = item[name] if isinstance(item.get(name), list) else [item.get(name)]
        if len(values) == len(texts) and all(isinstance(value, int | float) for value in values):
            return made | {"gain": [value + 0 for value in values]}  # true is 1
    return made


def _values(values: Any) -> list[Any]:
    """Those of an object, such as {"arg_0": ...}, or a list."""
    return list(values.values()) if isinstance(values, dict) else values if isinstance(values, list) else []


METRICS = "exact_match", "acc", "pass@1"


def _flat(values: Any) -> list[Any]:
    """The innermost entries of lists of lists, if each has one entry: the responses to a document."""
    while isinstance(values, list) and len(values) == 1 and isinstance(values[0], list):
        (values,) = values
    return values if isinstance(values, list) else []


def _response(item: Object) -> Object:
    """The text of a response of OpenAI's."""
    if item.get("error"):
        raise Problem(
            "text", f"the request has no response: {shown(_first(item, ('error.message', 'error')))}; send it again"
        )
    contents = [one.get("content") for one in item["output"] if isinstance(one, dict)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "output_text"]
    return {**item, "text": "".join(text for text in texts if isinstance(text, str)), FINISH: item.get("status")}


_ENDS = {FINISH: (FINISH, f"meta_info.{FINISH}"), "length": ("token_ids#", "meta_info.completion_tokens")}
_GENERATED = {SCORE: ("cumulative_logprob", "meta_info.output_token_logprobs+"), **_ENDS}

FORMS = (
    Form(
        {"doc_id": object, "resps": list}, many="texts", group=("doc_id", "doc_hash"), along=("answer", "gain"),
        right=("target",), prepared=_logged,
    ),
    Form(
        {"problem": str, "completions": list}, many="completions", source=("problem",), right=("answer",),
        along=("scores", "agg_scores", "completion_tokens"), id=("unique_id", "id"),
    ),
    Form(
        {"prompt": object, "completion": object, "reward": object}, group=("prompt",), text=("completion",),
        columns={"gain": ("reward",)}, right=("answer",), id=("example_id", "id"),
    ),
    Form({"outputs": list}, many="outputs", columns=_GENERATED, right=("answer",), id=("request_id", "id")),
    Form(
        {"prompt": object, "text": str, "meta_info": dict}, group=("prompt",), columns=_GENERATED,
        right=("answer",), id=(),
    ),
    Form(
        {"object": str, "output": list}, group=("metadata",), columns={FINISH: (FINISH,)}, source=(),
        right=("metadata.answer",), prepared=_response,
    ),
    Form(
        {"instruction": str, "completions": list}, many="completions", text=("response",), source=("instruction",),
        columns={"gain": ("overall_score",)},
    ),
    Form({"input": list, "output": str}, many="input", along=("ac_score",), source=(), reference=("output",)),
    Form(
        {"audio_filepath": str, "pred_text": str}, group=("audio_filepath",), text=("pred_text",), reference=("text",),
        columns={SCORE: (SCORE,)}, source=(), id=("audio_filepath",),
    ),
    Form(
        {"hypotheses": list}, many="hypotheses", columns={SCORE: (SCORE,), "ys_log_probs": ("ys_log_probs",)},
        reference=("reference",), source=(),
    ),
)  # fmt: skip


def form_of(item: Object) -> tuple[Form, Object] | None:
    """The form of an object, and the object without what a batch has put around it."""
    body = _first(item, ("response.body",))
    if isinstance(body, dict) and "output" in body:
        item = type(item)(body)
    for form in FORMS:
        if all(item.get(key) is not None and isinstance(item[key], kind) for key, kind in form.keys.items()):
            return form, item
    return None


def as_lists(
    objects: Iterable[tuple[int, Object | Problem]], rule: str | None, named: Iterable[str]
) -> Iterator[tuple[int, Object | Problem]]:
    """Objects of ``FORMS`` as lists of the format ``jsonl``; all others as they are. Rows of one list may be anywhere:
    those that have something in common are kept to the end."""
    groups = dict[str, tuple[int, Form, list[Object]]]()

    def made(form: Form, rows: list[Object]) -> Object | Problem:
        try:
            return form.list_of(rows, rule, named)
        except Problem as problem:
            return problem

    for number, item in objects:
        found = None if isinstance(item, Problem) or "candidates" in item else form_of(item)
        if found is None:
            yield number, item
        elif shared := [value for path in found[0].group if (value := _first(found[1], (path,))) not in (None, {})]:
            groups.setdefault(repr(shared), (number, found[0], []))[2].append(found[1])
        else:
            yield number, made(found[0], [found[1]])
    for number, form, rows in groups.values():
        first = repr(rows[0].get("filter"))
        yield number, made(form, [row for row in rows if repr(row.get("filter")) == first])
