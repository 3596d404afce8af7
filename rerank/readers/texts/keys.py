"""The keys of JSON objects: what those of a role are usually called, and what kinds of values are under them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Any

from rerank.readers.lists import GAIN
from rerank.readers.texts.forms import NUMERAL, VERDICTS, Object, Paths, Roles, as_number, first_of
from rerank.readers.texts.text_list import MIN_COLUMN_SHARE, SCORE

SAMPLE_CANDIDATES = 20_000  # candidates that tell the roles


@lru_cache(maxsize=1 << 12)
def plain_name(key: str) -> str:
    """A name without its capitals and what stands between its words: ``questionId`` is ``question_id``."""
    return re.sub(r"[\W_]", "", key.lower())


# What keys of a role are usually called, the likeliest first, as plain names.
NAMES = {
    role: tuple(map(plain_name, names.split())) for role, names in {
        "candidates": "candidates samples nbest n_best hypotheses hyps alternatives beams completions responses "
        "generations outputs output_list predictions preds ctxs passages endings answers solutions texts text",
        "text": "text response completion generated_text translation_text output content hypothesis hyp prediction "
        "pred pred_text candidate transcript lexical display solution code answer translation sentence "
        "sequence generation generated_solution generated_answer generated_code generated_response "
        "model_output model_response model_answer llm_output llm_response raw_output raw_response model_patch mt "
        "passage document doc snippet contents page_content body caption predicted_sql pred_sql generated_sql target",
        "group": "group prompt_id question_id qid query_id problem_id task_id instance_id doc_id example_id utt_id utt "
        "id prompt question query source problem input instruction src",
        "id": "id qid question_id prompt_id task_id example_id unique_id problem_id query_id utt_id doc_id "
        "custom_id uid mention utt",
        "source": "source prompt question query problem instruction question_content input context src",
        "reference": "reference references target ref refs gts reference_text transcript",
        "answer": "answer ground_truth gold_answer expected_answer correct_answer reference_answer ground_truth_answer",
        "truth": "gold label labels answer best correct target winner truth preference preferred choice answer_index "
        "answer_key answerkey true_label gold_label answer_idx correct_index correct_idx best_index best_idx "
        "gold_index gold_idx label_idx target_idx gold_id correct_id best_id label_id target_id oracle_index "
        "oracle_idx chosen chosen_index selected selected_index best_answer best_response",
        "gain": "gain passed pass correct label success acc exact_match pass@1 graded right ok correctness_math_verify "
        "exec_match execution_match exec_acc em resolved solved winner_model has_answer selected accepted relevant "
        "clicked click picked purchased relevance grade rel qrel judgment judgement y_true",
    }.items()
}  # fmt: skip
VERDICT_WORDS = {*NAMES["gain"], "accuracy", "correctness", "positive", "passing", "match"}  # in names of gains
# Gains that may be beyond 1, if they are whole numbers.
GRADED = "label", "labels", "relevance", "grade", "rel", "qrel", "judgment", "judgement", "ytrue"
# What a candidate comes to.
ANSWER_KEYS = "answer", "predicted_answer", "extracted_answer", "extracted", "final_answer", "parsed_answer", "parsed"
# What is measured against a reference, or says which is the best: nobody has it in use, so it is no column unless the
# user says so.
REFERENCE_BASED = re.compile(
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:[a-z]*bleu|[wctm]er|[a-z]*chrf|rouge[a-z]*|meteor|bert_?score|"
    r"edit_distance|bleurt|gleu|f[-_]?(1|0\.?5)(?!\d)|comet(?!.?(kiwi|qe))|(num|n)_(errors|edits)|best|gold|oracle|human|"
    r"winner|win|won|chosen|preferred|^(target|preference|choice)$)(?![a-z])"
)
# Of a candidate that stands alone; what is called otherwise may be the right answer beside a response.
TEXT_KEYS = {*NAMES["text"]}.difference(("answer", "solution", "code", "body", "caption", "target"))
# Of several beside one another, where no right answer is called so; pairs of others are what is compared, as in GLUE.
RESPONSES = TEXT_KEYS.difference(("text", "sentence", "sequence", "content", "passage", "document", "doc"))
NUMBERED_TEXTS = RESPONSES.union(("answer", "solution", "code"))
RIGHT_ANSWERS = "answers", "solutions"  # all that is right, beside a response; else, candidates
MARKED = re.compile(r"[^\w\s]?\s?\d+([.,'’\s]\d{3})*([.,]\d+)?\s?([^\W\d_]{1,3}\b)?[^\w\s]?")  # as $1,234 or 0,5 ms
_NUMBERS = "number", "true or false", "number written as text", "true or false written as text"
HOLDERS = {*NAMES["candidates"], "choices", "hits", "docs"}  # of the candidates in a response
ID = re.compile(r"(^|[_-]|(?<=[a-z])(?=[A-Z]))(?i:id|idx|index|uuid|docid|docno|[pqu]id|hash|url|path|file|timestamp|"
                r"at)s?$|^(?i:unnamed: [\d.]+)$")  # fmt: skip


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
        """How many values are of a kind; an empty list is of none."""
        if {*map(type, self.values)} <= {float, int}:
            return Counter({"number": len(self.values)} if self.values else ())
        return Counter(_kind_of(value) for value in self.values if value != [])

    def is_mostly(self, *kinds: str, share: float = MIN_COLUMN_SHARE) -> bool:
        return sum(self.kinds[kind] for kind in kinds) >= share * self.kinds.total() > 0

    def is_numeric(self, *kinds: str, share: float = MIN_COLUMN_SHARE) -> bool:
        """Whether the values are numbers, or of other ``kinds``; share: of them that are."""
        return self.is_mostly(*_NUMBERS, *kinds, share=share) or self.alone

    @property
    def alone(self) -> bool:
        """Whether each number is in a list of its own, as R writes them."""
        return self.kinds["number in a list"] == len(self.values) > 0

    @property
    def path(self) -> str:
        """The key or, of objects of numbers, the path to the first of them that differs."""
        if not self.is_mostly("object of numbers"):
            return self.name
        inner = (key for key in keys_of(self.values) if differ(first_of(value, (key,)) for value in self.values))
        return f"{self.name}.{next(inner, next(iter(keys_of(self.values))))}"

    @property
    def is_gain(self) -> bool:
        """Whether numbers of this name are gains, and no counts, which may be beyond 1."""
        name, one = plain_name(self.name), plain_name(singular(self.name))
        is_name = not {name.removeprefix("is"), one.removeprefix("is")}.isdisjoint(NAMES["gain"])
        is_name |= one == SCORE and self.is_mostly("true or false")
        if not is_name or name == GAIN:
            return is_name
        numbers = [number for value in self.values if isinstance(number := as_number(value), int | float)]
        if name not in GRADED or self.steady:  # a label that all of a list have is its right answer
            return not any(number > 1 for number in numbers)
        return name.startswith("label") or all(number >= 0 and number == int(number) for number in numbers)

    @property
    def may_be_gain(self) -> bool:
        """Whether there is a gain's name within its own, and nothing but 0 and 1 under it, or few grades."""
        words = {word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", self.name)}
        verdicts = {as_number(value) for value in self.values if isinstance(value, bool | int | float | str)}
        return not (self.steady or SCORE in words or words.isdisjoint(VERDICT_WORDS)) and (
            verdicts == {0, 1} or (not words.isdisjoint(GRADED) and len(verdicts) > 1 and verdicts <= {*range(6)})
        )

    def __str__(self) -> str:
        """The kind of most of the values, and how many there are."""
        if not self.kinds:
            return f"nothing in all {self.of:,}"
        kind = self.kinds.most_common(1)[0][0]
        first, _, rest = kind.partition(" ")
        return f"{kind if first == 'true' else f'{first}s {rest}'.strip()}, {len(self.values):,} of {self.of:,}"


def _kind_of(value: Any) -> str:
    """The kind of a JSON value, in words."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return "true or false written as text"
    if isinstance(value, str):
        kind = "number written as text" if NUMERAL.fullmatch(value) else "verdict" if value.lower() in VERDICTS else ""
        return kind or ("number with marks or a unit" if MARKED.fullmatch(value) else "text")
    if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
        return "number in a list" if len(value) == 1 else "list of numbers"
    if isinstance(value, dict) and value and all(isinstance(one, int | float) for one in value.values()):
        return "object of numbers"
    return "list" if isinstance(value, list) else "object"


def singular(key: str) -> str:
    """The name of the entries of a list under a key."""
    name = key.removesuffix("_list")
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name == key and name.endswith("s") and not name.endswith("ss") else name


def all_keys(objects: Sequence[Any]) -> dict[str, JsonKey]:
    """All keys of objects, or of those among them that are some: in one pass, as sparse features have many names."""
    values = dict[str, list[Any]]()
    for item in objects:
        for name, value in item.items() if isinstance(item, dict) else ():
            own = values.setdefault(name, [])
            if value is not None:
                own.append(value)
    return {name: JsonKey(name, own, len(objects)) for name, own in values.items()}


def table_of(form: Roles, lists: Sequence[Object]) -> dict[str, JsonKey]:
    """The keys of candidates, and those of lists as long as theirs."""
    rows = not (form.many or form.form)
    entries = entries_of(lists, form.many)
    table = all_keys(entries)
    if rows:
        varying = varying_keys(lists, form.group)
        table = {name: replace(key, steady=name not in varying) for name, key in table.items()}
    pairs = (pair for item in lists for pair in item.items() if form.many)
    paths = ((key, *(f"{key}.{name}" for name in keys_of([value]) if _kind_of(value[name]) == "list of numbers"))
             for key, value in pairs)  # fmt: skip
    for key in dict.fromkeys(chain.from_iterable(paths)):
        had = [(own, item[form.many]) for item in lists if (own := first_of(item, (key,))) is not None]
        like = [each for each, many in had if isinstance(each, list) and len(each) == len(many)]
        mostly = 2 * len(had) > len(lists) and len(like) >= MIN_COLUMN_SHARE * len(had)
        if mostly and any(len(each) > 1 for each in like) and key not in {form.many, *form.keys, *NAMES["reference"]}:
            values = [one for each in like for one in each if one is not None]
            table[key] = JsonKey(key, values, len(entries), along=True)
    return table


def keys_of(objects: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(item for item in objects if isinstance(item, dict))))


def entries_of(objects: Sequence[Object], key: str) -> list[Any]:
    return list(islice(chain.from_iterable(item[key] if key else [item] for item in objects), SAMPLE_CANDIDATES))


def varies(rows: Sequence[Object], group: Paths, key: str) -> bool:
    """Whether values of rows differ within a list; one that is missing does not."""
    pairs = ((repr(first_of(row, group)), own) for row in rows if (own := first_of(row, (key,))) is not None)
    firsts = dict[str, Any]()
    return any(firsts.setdefault(of_list, own) != own for of_list, own in pairs)


def varying_keys(rows: Sequence[Object], group: Paths) -> set[str]:
    """The keys of which values of rows differ within a list: from those of its first row."""
    firsts, names = dict[str, Object](), set[str]()
    for row in rows:
        first = firsts.setdefault(repr(first_of(row, group)), row)
        names |= {key for key, value in row.items() if first.get(key) != value}
        names |= {key for key in first.keys() - row.keys() if first[key] is not None}
    return names


def majority(flags: Iterable[bool]) -> bool:
    every = list(flags)
    return 2 * sum(every) > len(every)


def likely_keys(role: str, keys: Iterable[str]) -> list[str]:
    """The ``keys`` that are called as one of a role is, the likeliest first."""
    pairs = [(plain_name(key), key) for key in keys][::-1]
    return [key for name in NAMES[role] for own, key in pairs if own == name]


def are_candidates(values: Any) -> bool:
    """Whether a value is a list of what candidates can be, and no conversation."""
    if not isinstance(values, list) or not {*map(type, values)} <= {str, dict, list}:
        return False
    return bool(values) and not any(isinstance(one, dict) and "role" in one for one in values)


def differ(values: Iterable[Any]) -> bool:
    return len({*map(repr, values)}) > 1
