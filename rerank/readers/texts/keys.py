"""The keys of JSON objects, with the kinds of their values: what the roles of keys are told from."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

from rerank.readers.texts.forms import NUMERAL, VERDICTS, Object, Paths, Roles, as_number, first_of
from rerank.readers.texts.text_list import MOSTLY

MOST = 20_000  # candidates that tell the roles
GAIN = "gain"
# What keys of a role are usually called, the likeliest first, without regard to capitals.
NAMES: dict[str, tuple[str, ...]] = {
    "candidates": (
        "candidates", "samples", "nbest", "n_best", "hypotheses", "alternatives", "beams", "completions", "responses",
        "generations", "outputs", "output_list", "predictions", "preds", "answers", "solutions", "texts", "text",
    ),
    "text": (
        "text", "response", "completion", "generated_text", "translation_text", "output", "content", "hypothesis",
        "hyp", "prediction", "pred", "pred_text", "candidate", "transcript", "lexical", "display", "solution", "code",
        "answer", "translation", "sentence", "sequence", "message.content",
    ),
    "group": (
        "group", "prompt_id", "question_id", "qid", "query_id", "problem_id", "task_id", "doc_id", "example_id",
        "utt_id", "id", "prompt", "question", "query", "source", "problem", "input", "instruction", "src",
    ),
    "id": (
        "id", "qid", "question_id", "prompt_id", "task_id", "example_id", "unique_id", "problem_id", "query_id",
        "utt_id", "doc_id", "custom_id", "uid", "mention",
    ),
    "source": (
        "source", "prompt", "question", "query", "problem", "instruction", "question_content", "input", "context",
        "src",
    ),
    "reference": ("reference", "references", "target", "ref", "reference_text", "transcript"),
    "answer": ("answer", "ground_truth", "gold_answer"),
    "truth": ("gold", "label", "labels", "answer", "best", "correct", "target", "winner", "truth"),
    "gain": (
        "gain", "passed", "correct", "is_correct", "label", "success", "acc", "exact_match", "pass@1", "graded",
        "right", "correctness_math_verify", "exec_match", "execution_match",
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class JsonKey:
    """A key of candidates, with its values but null.

    of: how many candidates there are.
    along: whether the values stand in lists of objects, as long as those of the candidates.
    steady: whether those of one list are all the same.
    """

    name: str
    values: Sequence[Any]
    of: int
    along: bool = False
    steady: bool = False

    @cached_property
    def kinds(self) -> Counter[str]:
        """How many values are of a kind."""
        return Counter(map(_kind_of, self.values))

    def is_mostly(self, *kinds: str) -> bool:
        return sum(self.kinds[kind] for kind in kinds) >= MOSTLY * len(self.values) > 0

    def is_numeric(self, *kinds: str) -> bool:
        """Whether the values are numbers, or of other ``kinds``."""
        return self.is_mostly(*_NUMBERS, *kinds) or self.alone

    @property
    def alone(self) -> bool:
        """Whether each number is in a list of its own, as R writes them."""
        return self.kinds["number in a list"] == len(self.values) > 0

    @property
    def is_gain(self) -> bool:
        """Whether numbers of this name are gains."""
        return not {self.name.lower(), singular(self.name.lower())}.isdisjoint(NAMES["gain"])

    @property
    def counts(self) -> bool:
        """Whether numbers called like a gain are counts, which may be beyond 1."""
        if self.name.lower() in (GAIN, "label", "labels"):
            return False
        return any(isinstance(value := as_number(one), int | float) and value > 1 for one in self.values)

    def __str__(self) -> str:
        """What most of the values are, and how many there are."""
        if not self.values:
            return f"null in all {self.of:,}"
        kind = self.kinds.most_common(1)[0][0]
        first, _, rest = kind.partition(" ")
        return f"{kind if first == 'true' else f'{first}s {rest}'.strip()}, {len(self.values):,} of {self.of:,}"


_NUMBERS = "number", "true or false", "number written as text", "true or false written as text"


def _kind_of(value: Any) -> str:
    """The kind of a JSON value, in words."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return "true or false written as text"
    if isinstance(value, str):
        number = NUMERAL.fullmatch(value) is not None
        return "number written as text" if number else "verdict" if value.lower() in VERDICTS else "text"
    if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
        return "number in a list" if len(value) == 1 else "list of numbers"
    return "list" if isinstance(value, list) else "object"


def singular(key: str) -> str:
    """What the entries of a list under a key are called."""
    name = key.removesuffix("_list")
    return name[:-1] if name == key and name.endswith("s") and not name.endswith("ss") else name


def key_of(name: str, objects: Sequence[Any], *, steady: bool = False) -> JsonKey:
    """A key of objects, or of those among them that are some."""
    values = (item.get(name) for item in objects if is_object(item))
    return JsonKey(name, [value for value in values if value is not None], len(objects), steady=steady)


def table_of(form: Roles, lists: Sequence[Object]) -> dict[str, JsonKey]:
    """The keys of candidates, and those of lists as long as theirs."""
    rows = not (form.many or form.form)
    entries = entries_of(lists, form.many)
    table = {key: key_of(key, entries, steady=rows and not varies(lists, form.group, key)) for key in keys_of(entries)}
    for key in keys_of(lists) if form.many and not form.form else ():
        had = [item for item in lists if item.get(key) is not None]
        if (
            key not in {form.many, *NAMES["reference"]}
            and 2 * len(had) > len(lists)
            and len(like := [item for item in had if _as_long(item[key], item[form.many])]) >= MOSTLY * len(had)
            and any(len(item[key]) > 1 for item in like)
        ):
            values = [one for item in like for one in item[key] if one is not None]
            table[key] = JsonKey(key, values, len(entries), along=True)
    return table


def _as_long(values: Any, entries: Any) -> bool:
    return isinstance(values, list) and isinstance(entries, list) and len(values) == len(entries)


def keys_of(objects: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(filter(is_object, objects))))


def is_object(entry: Any) -> bool:
    return isinstance(entry, dict)


def entries_of(objects: Sequence[Object], key: str) -> list[Any]:
    return list(islice(chain.from_iterable(item[key] if key else [item] for item in objects), MOST))


def varies(rows: Sequence[Object], group: Paths, key: str) -> bool:
    """Whether values of rows differ within a list."""
    seen = dict[str, Any]()
    return any(seen.setdefault(repr(first_of(row, group)), row.get(key)) != row.get(key) for row in rows)
