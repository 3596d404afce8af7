"""Files of other programs whose JSON objects hold samples or hypotheses under keys of their own: one table of forms.

Where the right answer is known, that of a candidate is what the rule for [answers](#answers) finds or, without a rule,
what is of its kind: what is in `\\boxed{}`, else the last number or letter, else the whole text. The gain, unless the
file has one, is 1 if they are equal. A right answer may stand at the end of a solution, `#### 42`, or be a list of all
that is right.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any

from rerank.readers.lines import word_scores
from rerank.readers.problems import Problem
from rerank.readers.texts.answers import Grader
from rerank.readers.texts.json_lines import FINISH, is_conversation, show
from rerank.readers.texts.text_list import BASE_SCORE, OF_WORDS, SCORE

Object = dict[str, Any]
Paths = tuple[str, ...]  # of keys with dots between them; ``a#`` is the length of the list ``a``, ``a+`` its sum


@dataclass(frozen=True)
class Roles:
    """The roles of the keys of a source's objects: the paths that hold the parts of a list. Of several paths the first
    that exists counts.
    """

    form: str = ""  # the name of a known form, empty where roles were inferred
    # An object of the form has all of these keys, with values of these kinds; ``[dict]`` is a list of objects.
    keys: Mapping[str, type | list[type]] = field(default_factory=dict)
    many: str = ""  # the key of the list of candidates; empty if an object is one candidate
    marks: frozenset[str] = frozenset()  # some of its candidates have one of these keys
    group: Paths = ()  # of what the objects of one list have in common; empty: each is a list
    text: Paths = ("text",)  # in a candidate; one that is a text needs none
    columns: Mapping[str, Paths] = field(default_factory=dict)  # in a candidate
    along: Mapping[str, str] = field(default_factory=dict)  # the keys of lists with an entry for each of ``many``
    source: Paths = ("prompt",)
    reference: Paths = ()
    right: Paths = ()  # the right answer
    truth: Paths = ()  # the candidate that is right, or its place
    by_index: bool = False  # whether a number under ``truth`` is the place of a candidate, also one written as a text
    ordinal: bool = False  # whether the place of the first candidate is 1, not 0
    id: Paths = ("id",)
    prepare: Callable[[Object], Object] = dict  # makes of an object one that has all of this. Raises Problem
    about: str = ""  # what the form is, with its address
    whole: bool = False  # whether candidates keep all that stands in them, but for ``omissions``
    plain: bool = False  # whether nothing is changed
    omissions: frozenset[str] = frozenset()
    gains: tuple[str, ...] = ()  # the keys that could be the gain, where that is not sure
    rule: str | None = None  # the rule by which most answers are found
    unused_keys: Mapping[str, str] = field(default_factory=dict)  # the keys without a role, with their kind and count
    doubtful: tuple[str, ...] = ()  # those of them that are numbers, and vary within lists

    @property
    def gain_key(self) -> str:
        """The key that the gain is under; empty where it is under none."""
        return self.along.get("gain") or self.columns.get("gain", ("",))[0]

    @property
    def key_roles(self) -> dict[str, str]:
        """The roles of keys, where they were inferred, as the option ``roles`` has them."""
        if self.form or self.plain:
            return {}
        sides = {"candidates": (self.many,), "text": self.text, "source": self.source, "reference": self.reference}
        sides |= {"answer": self.right, "id": self.id, "ordinal" if self.ordinal else "truth": self.truth}
        sides |= {"group": self.group}  # which may be the source, or an id, too
        roles = {paths[0]: role for role, paths in sides.items() if paths and paths[0]}
        roles |= dict.fromkeys(() if self.whole else self.reference, "reference")
        if self.many and self.text in (("text",), ("0",), ("1",)):  # texts, or what is called so
            del roles[self.text[0]]
        columns = {name: paths[0].removesuffix(".0") for name, paths in self.columns.items()} | dict(self.along)
        return roles | {key: {"gain": "gain", SCORE: "base"}.get(name, "column") for name, key in columns.items()}

    def fits(self, item: Object) -> bool:
        """Whether an object is of this form."""
        return self.lacking(item) is None

    def lacking(self, item: Object) -> str | None:
        """The first key of the form that an object does not have, or with another kind of value."""
        for key, kind in self.keys.items():
            if not is_of(first_of(item, (key,)), kind):
                return key
        marked = not self.marks or any(not self.marks.isdisjoint(one) for one in item[self.many])
        return None if marked else self.many

    @property
    def inner(self) -> set[str]:
        """The keys of candidates that have a role."""
        return _keys(self.text, *self.columns.values())

    @property
    def outer(self) -> set[str]:
        """The keys of objects that have a role."""
        sides = self.group, self.source, self.reference, self.right, self.truth, self.id
        return _keys(*sides, (*self.along.values(),)) | {*self.keys, self.many}

    def shared(self, item: Object) -> str:
        """The values that the objects of a list have in common; empty if there are none."""
        every = [value for path in self.group if (value := first_of(item, (path,))) not in (None, {})]
        return repr(every) if every else ""

    def list_of(self, rows: Sequence[Object], grader: Grader, extra_keys: Iterable[str]) -> Object:
        """The list that objects are, in the format ``jsonl``. Raises Problem.

        extra_keys: what else is kept of candidates.
        """
        every = [self.prepare(row) if self.fits(row) else {} for row in rows]
        head = next(filter(None, every), rows[0])
        keep = {key: (key, f"metrics.{key}") for key in (name.partition(":")[0] for name in extra_keys)}
        right = first_of(head, self.right)
        candidates = [one for row in every for one in self._candidates(row, keep)]
        if PROGRAM.search(str(right)) and not any("gain" in one for one in candidates):
            message = f"{self.right[0]!r} is a program, which no text equals; run it, and add its verdicts, one for "
            raise Problem("text", f'{message}each candidate, as "passed": [true, false, ...]')
        grader.grade(candidates, right, rows[0].get("exact_match"))
        if self.truth and candidates and "gain" not in candidates[0]:
            texts = [one.get("text") for one in candidates]
            index = self.place_of(first_of(head, self.truth), texts, head[self.many])
            for k, one in enumerate(candidates):
                one["gain"] = int(k == index or (index is not None and texts[k] == texts[index]))
        once = {"id": first_of(head, self.id), "source": text_in(first_of(head, self.source), every=True)}
        reference = first_of(head, self.reference)
        if len(self.reference) > 1 and not self.whole:
            reference = [first_of(head, (path,)) for path in self.reference if first_of(head, (path,)) is not None]
        elif is_of(reference, [dict]):
            reference = [first_of(one, ("text",)) for one in reference]
        many = head.get(self.many) or [None]
        if isinstance(reference, list) and is_of(self.text_of(many[0]), [str]):
            reference = text_in(reference)
        once["references" if isinstance(reference, list) else "reference"] = reference
        sides = {self.many, *[key for key in self.reference if head.get(key) is not None][:1]}  # of two, one is a fault
        item = {key: value for key, value in head.items() if key not in sides} if self.whole else {}
        item |= {key: value for key, value in once.items() if value is not None} | {"candidates": candidates}
        return item

    def text_of(self, entry: Any) -> Any:
        """The text of an entry of ``many``: a text, tokens, or a conversation."""
        return first_of(entry, self.text) if isinstance(entry, dict) else entry

    def place_of(self, truth: Any, texts: Sequence[Any], entries: Sequence[Any]) -> int | None:
        """The place of the candidate that is right: of this text or id, at this place or, of options, with this
        letter."""
        value = truth[0] if isinstance(truth, list) and len(truth) == 1 else truth
        if isinstance(value, str) and value in texts:
            return texts.index(value)
        ids = [entry.get("id") if isinstance(entry, dict) else None for entry in entries]
        if value is not None and value in ids:
            return ids.index(value)
        if self.many in OPTIONS and isinstance(value, str) and re.fullmatch("[A-Z]", value):
            value = ord(value) - ord("A") + self.ordinal
        if not (self.by_index and is_whole(value)):
            return None
        index = int(value) - self.ordinal
        return index if 0 <= index < len(texts) else None

    @cached_property
    def _columns_by_key(self) -> dict[str, list[tuple[int, str]]]:
        """The places and names of columns by the keys that their paths begin with: an object has few of many."""
        by_key = defaultdict[str, list[tuple[int, str]]](list)
        for place, (name, paths) in enumerate(self.columns.items()):
            for key in _keys(paths):
                by_key[key].append((place, name))
        return by_key

    def _columns_in(self, entry: Any, keep: Mapping[str, Paths]) -> dict[str, Paths]:
        """The columns that may be in an entry of ``many``, in their order, behind what else is kept."""
        if not isinstance(entry, dict):
            return {**keep, **self.columns}
        places = {place for key in entry for place in self._columns_by_key.get(key, ())}
        return {**keep, **{name: self.columns[name] for _, name in sorted(places)}}

    def _candidates(self, row: Object, keep: Mapping[str, Paths]) -> Iterator[Object]:
        """The candidates of an object; keep: what else is kept of them."""
        entries = row.get(self.many, [{}]) if self.many else [row]
        along = {name: own for name, key in self.along.items() if (own := first_of(row, (key,))) is not None}
        for name, of_list in along.items():
            if not isinstance(of_list, list) or len(of_list) != len(entries):
                shape = f"{len(of_list)} entries" if isinstance(of_list, list) else show(of_list)
                key = self.along[name]
                raise Problem("columns", f"found {shape} under {key!r}; expected one for each of {len(entries)} texts")
        for k, entry in enumerate(entries):
            inner = isinstance(entry, dict)
            candidate = {key: entry[key] for key in entry if key not in self.omissions} if self.whole and inner else {}
            text = text_in(self.text_of(entry))
            text = str(text) if is_whole(text) and DOCUMENT.match(self.text[0]) else text
            if text is not None or not self.group:
                candidate["text"] = text
            for name, paths in self._columns_in(entry, keep).items():
                if (value := first_of(entry, paths)) is not None:
                    candidate[name] = value if name == "answer" else as_number(value)
            for name, of_list in along.items():
                if of_list[k] is not None:
                    candidate[name] = of_list[k] if name == "answer" else as_number(of_list[k])
            yield candidate


def _keys(*sides: Paths) -> set[str]:
    """The keys that paths begin with, and those that have dots themselves."""
    return {key for path in chain(*sides) for key in (path, path.partition(".")[0].rstrip("#+"))}


def is_of(value: Any, kind: type | list[type]) -> bool:
    """Whether a value is of a kind; ``[dict]``: a list of objects, ``[str]``: one of texts."""
    if isinstance(kind, type):
        return value is not None and isinstance(value, kind)
    return isinstance(value, list) and bool(value) and all(isinstance(one, kind[0]) for one in value)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, also one that is written as a text, and no truth value."""
    return value.isdecimal() if isinstance(value, str) else isinstance(value, int) and not isinstance(value, bool)


# What tells the documents of a query apart where they have no text.
DOCUMENT = re.compile(
    r"^(pid|docno|url|asin|(doc|document|passage|corpus|item|product|page)[-_]?(id|no))$", re.IGNORECASE
)
OPTIONS = "choices", "options", "endings"  # among which one answers, unlike samples
METRICS = "exact_match", "acc", "pass@1"
PROGRAM = re.compile(r"^\s*(def|class|assert|import|from) ?\w", re.MULTILINE)
NUMERAL = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*%?\s*")
VERDICTS = {"pass": 1, "passed": 1, "true": 1, "correct": 1, "yes": 1, "t": 1, "f": 0,
            "fail": 0, "failed": 0, "false": 0, "incorrect": 0, "no": 0, "timeout": 0, "not_attempted": 0}  # fmt: skip


def as_number(value: Any) -> Any:
    """The number that a value stands for: one written as a text, true and false, a verdict; other values as they
    are."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and NUMERAL.fullmatch(value):
        return float(value.strip().rstrip("% "))
    return VERDICTS.get(value.lower(), value) if isinstance(value, str) else value


def first_of(item: Any, paths: Paths) -> Any:
    """The value under the first path that leads somewhere, None if none does."""
    for path in paths:
        if isinstance(item, dict) and (value := item.get(path)) is not None:
            return value
        value = item
        for key in path.rstrip("#+").split("."):
            if isinstance(value, list) and key.isdigit():
                value = value[int(key)] if int(key) < len(value) else None
            elif isinstance(value, list) and is_of(value, [dict]) and any(key in one for one in value):
                value = [one.get(key) for one in value]
            else:
                value = value.get(key) if isinstance(value, dict) else None
        if path[-1] in "#+":
            value = value if isinstance(value, list) else None
            if value is not None and path[-1] == "#":
                value = len(value)
            elif value is not None:  # SGLang has numbers as the first entries of lists
                with suppress(TypeError, ValueError, OverflowError):
                    value = math.fsum(one[0] if isinstance(one, list) and one else one for one in value)
        if value is not None:
            return value
    return None


def text_in(value: Any, *, every: bool = False) -> Any:
    """The text of a message, or of the last one of a conversation, or of every one, a line each; tokens with blanks
    between them; other values as they are."""
    if is_of(value, [str]) and not every:
        return " ".join(value)
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return value["text"]
    messages = [value] if isinstance(value, dict) and not value.keys().isdisjoint(("content", "parts")) else value
    if not is_conversation(messages):
        return value
    lines = list[str]()
    for message in messages if every else messages[-1:]:  # which may have several parts, or none
        content = message.get("content", message.get("parts"))
        parts = content if isinstance(content, list) else [content]
        texts = [part.get("text") if isinstance(part, dict) and not part.get("thought") else part for part in parts]
        lines.append("".join(text for text in texts if isinstance(text, str)))
    return "\n".join(lines)


def _from_log(item: Object) -> Object:
    """The responses that lm-evaluation-harness logs of a document."""
    texts, answers = _flat(item["resps"]), _flat(item.get("filtered_resps"))
    prompt, options = (*_values(next(iter(_values(item.get("arguments"))), [])), None, None)[:2]
    if isinstance(options, str) or not all(isinstance(text, str) for text in texts):
        message = "'resps' are log probabilities of given choices; expected texts that were sampled (generate_until)"
        raise Problem("text", message)
    entry = {"id": item["doc_id"], "texts": texts, "prompt": prompt, "target": item.get("target")}
    if len(answers) == len(texts):
        entry["answer"] = [text if isinstance(text, str) and text != "[invalid]" else "" for text in answers]
    names = _values(item.get("metrics")) or METRICS
    for name in (name for name in names if isinstance(name, str) and name != "bypass"):  # that of a run without metrics
        values: list[Any] = item[name] if isinstance(item.get(name), list) else [item.get(name)]
        if len(values) == len(texts) and all(isinstance(value, int | float) for value in values):
            return entry | {"gain": [value + 0 for value in values]}  # true is 1
    return entry


def _values(values: Any) -> list[Any]:
    """The values of an object, such as {"arg_0": ...}, or a list."""
    return list(values.values()) if isinstance(values, dict) else values if isinstance(values, list) else []


def _flat(values: Any) -> list[Any]:
    """The innermost entries of lists of lists, if each has one entry: the responses to a document."""
    while isinstance(values, list) and len(values) == 1 and isinstance(values[0], list):
        (values,) = values
    return values if isinstance(values, list) else []


def _response(item: Object) -> Object:
    """The text of a response of OpenAI's."""
    if item.get("error"):
        error = show(first_of(item, ("error.message", "error")))
        raise Problem("text", f"the request has no response: {error}; send it again")
    contents = [one.get("content") for one in item["output"] if isinstance(one, dict)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "output_text"]
    return {**item, "text": "".join(text for text in texts if isinstance(text, str)), FINISH: item.get("status")}


def _choices(item: Object) -> Object:
    """A response, with the columns that the log probabilities of tokens are in its choices."""
    prompts, choices = set[str](), list[Object]()
    for k, choice in enumerate(item["choices"], start=1):
        if "delta" in choice:
            raise Problem("text", f"choice {k} is a piece of a stream; ask for whole responses, without 'stream'")
        prompts |= {str(choice["prompt_token_ids"])} if choice.get("prompt_token_ids") else set()
        end = {FINISH: choice[FINISH] or ""} if FINISH in choice else {}
        columns, logprobs = Object(), choice.get("logprobs")
        values = logprobs.get("content", logprobs.get("token_logprobs")) if isinstance(logprobs, dict) else logprobs
        try:
            if values is not None:
                numbers = [one["logprob"] if isinstance(one, dict) else one for one in values]
                known = [float(one) for one in numbers if one is not None]  # None: the first of an echoed prompt
                columns = dict(zip((SCORE, *OF_WORDS[1:]), word_scores(known), strict=True))
        except (TypeError, ValueError, KeyError, OverflowError, Problem):
            columns = {SCORE: [logprobs]}  # a score that is refused
        choices.append({**columns, **choice, **end})
    if len(prompts) > 1:
        message = f"the choices are answers to {len(prompts)} prompts; send every prompt in a request of its own"
        raise Problem("text", message)
    return {**item, "choices": choices}


def _sides(item: Object, best: str, other: str) -> Object:
    """The answers under two keys, the ``best`` and the ``other``, in the order of their texts: places do not tell which
    was chosen."""
    answers, before = list[Object](), dict[str, None]()
    for gain, side in (1, best), (0, other):
        several = isinstance(item[side], list) and not is_conversation(item[side])
        texts = item[side] if several else [item[side]]
        columns = {key.removeprefix(f"{side}_").removesuffix(f"_{side}"): value for key, value in item.items()}
        for k, text in enumerate(texts):
            if is_conversation(text) and (prompt := text_in(text[:-1], every=True)):
                before[prompt] = None
            own = {
                name: value[k] if several and isinstance(value, list) and len(value) == len(texts) else value
                for name, value in columns.items() if name not in item
            }  # fmt: skip
            answers.append({**own, "text": text_in(text), "gain": gain})
    if len(before) > 1:
        message = "the answers come after different messages; they need to be answers to the same prompt"
        raise Problem("text", message)
    return {**item, "answers": sorted(answers, key=lambda one: str(one["text"])), "before": next(iter(before), None)}


def _of_two(item: Object, texts: tuple[str, str], verdict: str, best: tuple[Sequence[Any], Sequence[Any]]) -> Object:
    """An object with the list of two answers under keys of their own; ``best``: the verdicts for each, any other is for
    none."""
    pairs = zip(texts, best, strict=True)
    two = [{"text": text_in(item[key]), "gain": int(item.get(verdict) in verdicts)} for key, verdicts in pairs]
    return {**item, "two": two}


_ENDS = {FINISH: (FINISH, f"meta_info.{FINISH}"), "length": ("token_ids#", "meta_info.completion_tokens")}
_CHOICE_KEYS = frozenset((
    FINISH, "index", "message", "delta", "logprobs", "cumulative_logprob", "token_ids", "prompt_token_ids", "meta_info",
))  # fmt: skip
_GENERATED = {SCORE: ("cumulative_logprob", "meta_info.output_token_logprobs+"), **_ENDS}
_GITHUB, _HUB = "https://github.com/", "https://huggingface.co/datasets/"

# Forms of answers under two keys, the better ones and the others.
PAIRS = (
    ("preferences", "chosen", "rejected", f"{_HUB}allenai/reward-bench and many others: each side is an answer or a "
     "list of them, a text or a conversation; the list has them in the order of their texts. `chosen_score` and "
     "`score_rejected` are `score` in `roles`, `dense` and `labels`"),
    ("flagembedding", "pos", "neg", f"{_GITHUB}FlagOpen/FlagEmbedding, passages to learn from, in the order of their "
     "texts; `pos_scores` and `neg_scores` are `scores` in `roles`, `dense` and `labels`"),
    ("positives", "positive", "negative", f"{_HUB}mteb/stackoverflowdupquestions-reranking and others"),
    ("tevatron", "positive_passages", "negative_passages", f"{_GITHUB}texttron/tevatron"),
)  # fmt: skip

# Forms of two answers under keys of their own: these, that of the verdict, its values for each, that of the source.
PAIRS_BY_VERDICT = (
    ("chatbot arena", ("conversation_a", "conversation_b"), "winner", (["model_a"], ["model_b"]), "conversation_a.0",
     f"{_HUB}lmsys/chatbot_arena_conversations: a tie has no gain"),
    ("helpsteer3", ("response1", "response2"), "overall_preference", (range(-3, 0), range(1, 4)), "context",
     f"{_HUB}nvidia/HelpSteer3: the sign of the preference tells"),
    ("helpsteer2", ("response_1", "response_2"), "preference_strength", (range(-3, 0), range(1, 4)), "prompt",
     f"{_HUB}nvidia/HelpSteer2, `preference`: the sign of its strength tells"),
    ("shp", ("human_ref_A", "human_ref_B"), "labels", ([1], [0]), "history",
     f"{_HUB}stanfordnlp/SHP: the votes made the label, so they are no column"),
)  # fmt: skip

FORMS = (
    Roles(
        "lm-evaluation-harness", {"doc_id": object, "resps": list}, many="texts", group=("doc_id", "doc_hash"),
        along={"answer": "answer", "gain": "gain"}, right=("target",), prepare=_from_log,
        about=f"{_GITHUB}EleutherAI/lm-evaluation-harness, `--log_samples`: the answers are those of the first filter",
    ),
    Roles(
        "search-and-learn", {"problem": str, "completions": list}, many="completions", source=("problem",),
        right=("answer",), along={key: key for key in ("scores", "agg_scores", "completion_tokens")},
        id=("unique_id", "id"), about=f"{_GITHUB}huggingface/search-and-learn",
    ),
    Roles(
        "inspect", {"epoch": int, "input": object, "target": object, "output": dict}, group=("id",),
        text=("output.completion", "output.choices.0.message.content"), source=("input",), right=("target",),
        about="https://inspect.aisi.org.uk/eval-logs.html, as JSON: the answers tell what is right, as scorers do",
    ),
    Roles(
        "verifiers", {"prompt": object, "completion": object, "reward": object}, group=("prompt",),
        text=("completion",), columns={"gain": ("reward",)}, right=("answer",), id=("example_id", "id"),
        about=f"{_GITHUB}PrimeIntellect-ai/verifiers: scores of rubrics, which may know what is right, are columns "
        "only if `dense` or `roles` name them",
    ),
    Roles(
        "verl", {"input": str, "output": str, "gts": object}, group=("input",), text=("output",),
        columns={"gain": ("acc", "score")}, source=("input",), right=("gts",), id=(),
        about=f"{_GITHUB}volcengine/verl, `rollout_data_dir`: rewards that say `acc` know what is right; else the "
        "score is all that is known",
    ),
    Roles(
        "math-evaluation-harness", {"gt": object, "code": list, "pred": list}, many="code", source=("question",),
        along={"answer": "pred", "gain": "score"}, right=("gt",), id=("idx",),
        about=f"{_GITHUB}ZubinGou/math-evaluation-harness, and Qwen2.5-Math's: its verdicts are the gain",
    ),
    Roles(
        "vllm", {"outputs": [dict]}, many="outputs", marks=_CHOICE_KEYS, columns=_GENERATED, right=("answer",),
        id=("request_id", "id"),
        about="https://docs.vllm.ai/en/latest/api/vllm/outputs/ and others",
    ),
    Roles(
        "sglang", {"prompt": object, "text": str, "meta_info": dict}, group=("prompt",), columns=_GENERATED,
        right=("answer",), id=(), about="https://docs.sglang.io/: the file needs the prompt beside",
    ),
    Roles(
        "responses", {"object": str, "output": list}, group=("metadata",), columns={FINISH: (FINISH,)}, source=(),
        right=("metadata.answer",), prepare=_response,
        about="https://platform.openai.com/docs/api-reference/responses",
    ),
    Roles(
        "openai", {"choices": [dict]}, many="choices", marks=_CHOICE_KEYS, text=("text", "message.content"), source=(),
        prepare=_choices, right=("answer",),
        columns={name: (name,) for name in (SCORE, BASE_SCORE, *OF_WORDS[1:], FINISH, "gain", "answer")},
        about="https://platform.openai.com/docs/api-reference/ and servers like it: completions and chats, also in the "
        "output of a batch, by its `custom_id`; of log probabilities the sum is the score, beside mean, least, number",
    ),
    *(
        Roles(
            name, {best: object, other: object}, many="answers", source=("prompt", "query", "before"),
            columns={"gain": ("gain",)}, prepare=partial(_sides, best=best, other=other), about=about,
        )
        for name, best, other, about in PAIRS
    ),
    Roles(
        "ultrafeedback", {"instruction": str, "completions": list}, many="completions", text=("response",),
        source=("instruction",), columns={"gain": ("overall_score",)}, about=f"{_HUB}openbmb/UltraFeedback",
    ),
    Roles(
        "hyporadise", {"input": list, "output": str}, many="input", along={"ac_score": "ac_score"}, source=(),
        reference=("output",), about=f"{_GITHUB}Hypotheses-Paradise/Hypo2Trans",
    ),
    Roles(
        "nemo", {"audio_filepath": str, "pred_text": str}, group=("audio_filepath",), text=("pred_text",),
        reference=("text",), columns={SCORE: (SCORE,)}, source=(), id=("audio_filepath",),
        about=f"{_GITHUB}NVIDIA/NeMo, manifests that several models transcribed; beams (`.tsv`) are read as "
        "[opennmt](formats-texts.md#opennmt)",
    ),
    *(
        Roles(
            name, dict.fromkeys((*texts, verdict), object), many="two", columns={"gain": ("gain",)}, source=(source,),
            prepare=partial(_of_two, texts=texts, verdict=verdict, best=best), id=("question_id",), about=about,
        )
        for name, texts, verdict, best, source, about in PAIRS_BY_VERDICT
    ),
)  # fmt: skip
