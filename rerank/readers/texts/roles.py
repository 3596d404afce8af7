"""What the keys of JSON objects are, found once for a source from its first objects: a form of another program, or what
their kinds and their names tell.

* A key that holds a list of texts or of objects holds the candidates. Otherwise an object is a candidate, and
  those with the same value of a key of their lists (``prompt_id``, ``question``, ...) are a list, wherever they stand.
  A single object that holds nothing but lists, or objects with lists, under keys of its own holds them by their ids.
  Candidates may stand beside one another in an object, or a row of a table: ``response_1``, ``score_1``,
  ``response_2``, or ``output_a``, ``output_b``.
* Numbers of candidates are columns: numbers in their objects, and lists of numbers as long as the list of
  candidates. A number may be written as a text, or be true or false.
* The gain is what is called so, or ``passed``, ``correct``, ``is_correct``, ``label``, ``success``, ``acc``,
  ``exact_match``, ``pass@1``, ``correctness_math_verify``, ``graded_list``, ``selected`` or ``has_answer``, or, in
  whole numbers, ``relevance`` or ``grade``: one of them. A key whose value is a candidate, its id or its place (from
  0, or from 1 where that fits more lists; under ``answer`` among options alone), tells which has the gain 1. What is
  measured against references, as ``wer``, is a column only if ``roles`` say so.
* What has none of these roles is not used, and said.

``roles`` of the reader overrule this: ``{samples: candidates, response: text, passed: gain, reward: column}``.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any, cast

from rerank.base.errors import RecipeError
from rerank.readers.lines import LineReader
from rerank.readers.problems import Problem, say_once
from rerank.readers.texts.answers import Grader
from rerank.readers.texts.forms import (
    DOCUMENT,
    FORMS,
    NUMERAL,
    OPTIONS,
    VERDICTS,
    Object,
    Paths,
    Roles,
    as_number,
    first_of,
    is_of,
    is_whole,
    said_of,
)  # fmt: skip
from rerank.readers.texts.json_lines import FINISH, shown
from rerank.readers.texts.text_list import MOSTLY, NUMBERS, SCORE

MOST = 20_000  # candidates that tell the roles
SURELY = 0.98  # the share of numbers that are places where they stand for one
GAIN = "gain"
# What keys of a role are usually called, the likeliest first, without regard to capitals.
NAMES = {
    role: tuple(names.split()) for role, names in {
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
        "oracle_idx",
        "gain": "gain passed correct is_correct label success acc exact_match pass@1 graded right "
        "correctness_math_verify exec_match execution_match exec_acc em resolved solved winner_model has_answer "
        "selected is_selected accepted is_accepted relevant is_relevant clicked relevance grade",
    }.items()
}  # fmt: skip
GRADED = "label", "labels", "relevance", "grade"  # gains that may be beyond 1, if they are whole numbers
OWN = "answer", "predicted_answer", "extracted_answer", "extracted", "final_answer", "parsed_answer"  # of a candidate
# What is measured against a reference, which nobody has in use: no column unless the user says so.
MEASURED = frozenset((
    "wer", "cer", "ter", "mer", "bleu", "chrf", "meteor", "rouge", "rouge1", "rouge2", "rougel", "rouge_l", "bertscore",
    "edit_distance", "comet", "bleurt", "gleu", "f0.5", "f05",
))  # fmt: skip


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

    def is_mostly(self, *kinds: str) -> bool:
        return sum(self.kinds[kind] for kind in kinds) >= MOSTLY * self.kinds.total() > 0

    def is_numeric(self, *kinds: str) -> bool:
        """Whether the values are numbers, or of other ``kinds``."""
        return self.is_mostly(*_NUMBERS, *kinds) or self.alone

    @property
    def alone(self) -> bool:
        """Whether each number is in a list of its own, as R writes them."""
        return self.kinds["number in a list"] == len(self.values) > 0

    @property
    def is_gain(self) -> bool:
        """Whether numbers of this name are gains, and no counts, which may be beyond 1."""
        name = self.name.lower()
        called = not {name, singular(name)}.isdisjoint(NAMES["gain"])
        if not called or name == GAIN:
            return called
        numbers = [value for one in self.values if isinstance(value := as_number(one), int | float)]
        if name in GRADED:
            return name.startswith("label") or all(value >= 0 and value == int(value) for value in numbers)
        return not any(value > 1 for value in numbers)

    def __str__(self) -> str:
        """What most of the values are, and how many there are."""
        if not self.kinds:
            return f"nothing in all {self.of:,}"
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
    values = [value for item in objects if isinstance(item, dict) and (value := item.get(name)) is not None]
    return JsonKey(name, values, len(objects), steady=steady)


def table_of(form: Roles, lists: Sequence[Object]) -> dict[str, JsonKey]:
    """The keys of candidates, and those of lists as long as theirs."""
    rows = not (form.many or form.form)
    entries = entries_of(lists, form.many)
    table = {key: key_of(key, entries, steady=rows and not varies(lists, form.group, key)) for key in keys_of(entries)}
    for key in keys_of(lists) if form.many else ():
        had = [(item[key], item[form.many]) for item in lists if item.get(key) is not None]
        like = [each for each, many in had if isinstance(each, list) and len(each) == len(many)]
        mostly = 2 * len(had) > len(lists) and len(like) >= MOSTLY * len(had)
        if mostly and any(len(each) > 1 for each in like) and key not in {form.many, *form.keys, *NAMES["reference"]}:
            values = [one for each in like for one in each if one is not None]
            table[key] = JsonKey(key, values, len(entries), along=True)
    return table


def keys_of(objects: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(item for item in objects if isinstance(item, dict))))


def entries_of(objects: Sequence[Object], key: str) -> list[Any]:
    return list(islice(chain.from_iterable(item[key] if key else [item] for item in objects), MOST))


def varies(rows: Sequence[Object], group: Paths, key: str) -> bool:
    """Whether values of rows differ within a list."""
    seen = dict[str, Any]()
    return any(seen.setdefault(repr(first_of(row, group)), (own := first_of(row, (key,)))) != own for row in rows)


log = logging.getLogger("rerank")
ROWS = ("jsonl", "table")  # readers that find roles
WORDS = ("candidates", "text", "group", "id", "source", "reference", "gain", "base", "column", "answer", "label",
         "truth", "ordinal", "unused")  # fmt: skip
NEEDED = "candidates", "text", "group", "source", "base"  # in use; a column that is missing is refused
HOLDERS = {*NAMES["candidates"], "choices", "hits", "docs"}  # of the candidates in a response
# Of a candidate that stands alone; what is called otherwise may be the right answer beside a response.
SAID = {*NAMES["text"]}.difference(("answer", "solution", "code", "body", "caption", "target"))
# Of several beside one another, where no right answer is called so; pairs of others are what is compared, as in GLUE.
BESIDE = SAID.union(("answer", "solution", "code")).difference(
    ("text", "sentence", "sequence", "content", "passage", "document", "doc"))  # fmt: skip
# Lists that hold no candidates, but parts of one, or what is said of all.
PIECES = {"references", "refs", "gts", "segments", "tokens", "words", "steps", "turns", "tags", "keywords", "languages"}
PLACE = re.compile(r"^(best|winner|preference|preferred)$|_(index|idx)$", re.IGNORECASE)  # a number so called is one
_NUMBERED = re.compile(r"(.+?)(?:[_ ]?(\d{1,3})|[_ ]([a-eA-E]))")
ID = re.compile(r"(^|[_-])(id|idx|index|uuid|docid|docno|pid|hash|url|path|file|timestamp|at)s?$|^unnamed: \d+$",
                re.IGNORECASE)  # fmt: skip
VAGUE = {"source", "input", "instruction", "src", "doc_id"}  # of a list, unless its questions are several
_SPECIAL = {"text", "answer", "segmentation", "alignment", "features", "columns", FINISH}  # of a candidate in ``jsonl``


def check_roles(roles: Mapping[str, Any] | None) -> None:
    """Raises RecipeError where a role is none of ``WORDS``."""
    for key, role in (roles or {}).items():
        if role not in WORDS:
            raise RecipeError(f"found {role!r} as the role of {key!r}; expected one of {', '.join(WORDS)}", key="roles")


def roles_given(given: str | Mapping[str, str]) -> dict[str, str]:
    """Roles by key, also of ``samples=candidates,response=text``."""
    if not isinstance(given, str):
        return dict(given)
    pairs = [part.strip().rpartition("=") for part in given.split(",")]
    if wrong := [f"{key}{mark}{role}" for key, mark, role in pairs if not (key and role)]:
        raise RecipeError(f"found {wrong[0]!r}; expected KEY=ROLE, several with commas between them", key="roles")
    return {key: role for key, _, role in pairs}


def with_option(reader: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A reader's settings with an option of readers of JSON, also of those that it reads through; what they say
    themselves counts."""
    if reader.get("name") in ROWS:
        own = reader.get(key)
        both = {**value, **own} if own and key == "roles" else reader.get(key, value)
        return {**reader, key: both}
    if (inner := reader.get("of")) is None:
        return dict(reader)
    several = isinstance(inner, list | tuple)
    every = [{"name": one} if isinstance(one, str) else one for one in (inner if several else [inner])]
    given = [with_option(one, key, value) for one in every]
    return {**reader, "of": given if several else given[0]}


def with_roles(reader: Mapping[str, Any], given: str | Mapping[str, str] | None) -> dict[str, Any]:
    """A reader's settings with roles that the user has given, if any."""
    if given is None or "of" in reader:
        return dict(reader) if given is None else with_option(reader, "roles", roles_given(given))
    return {**reader, "roles": {**reader.get("roles", {}), **roles_given(given)}}


def as_lists(
    objects: Iterable[tuple[int, Object | Problem]], asked: Mapping[str, str], lines: LineReader, rule: str | None,
    named: Sequence[str], look: int, used: bool = False,
) -> Iterator[tuple[int, Object | Problem]]:  # fmt: skip
    """Objects as lists of the format ``jsonl``. Rows of one list may be anywhere: those that have something in common
    are kept to the end.

    asked: the roles of keys, by the user; lines: those of the objects, which then have the roles. rule: for answers.
    named: what else is kept of candidates. look: how many objects tell the roles. used: see ``roles_of``.
    """
    said = BESIDE.union(key.lower() for key, role in asked.items() if role == "text")
    paths = [key for key in asked if "." in key]
    rest: Iterator[Any] = ((number, _opened_up(item, said, paths)) for number, item in objects)
    head, sound, roles = list[tuple[int, Object | Problem]](), list[Object](), lines.told.get("roles")
    while roles is None and len(sound) < look and (entry := next(rest, None)) is not None:
        head.append(entry)
        sound += [] if isinstance(entry[1], Problem) else [entry[1]]
    if len(sound) == 1 and asked.keys().isdisjoint(sound[0]) and (lists := _alone(sound[0]))[0] is not sound[0]:
        beyond = list(islice(rest, 1))
        rest = chain(beyond, rest)
        if not beyond:
            left = [key for key, one in sound[0].items() if one is not lists] if lists in sound[0].values() else []
            if left:
                say_once(f"{lines.path}: one object holds all lists; not used of it: {', '.join(left)}")
            several = ((number, one) for number, item in head for one in (lists if item is sound[0] else [item]))
            head = [(number, _opened_up(one, said, paths)) for number, one in several]
            sound = [item for _, item in head if not isinstance(item, Problem)]
            lines.told["by_line"] = False
    try:
        roles = roles_of(sound, asked, named, used=used) if sound else roles
    except Problem as problem:
        yield from ((number, problem) for number, _ in chain(head, rest))
        return
    plain = used and any("candidates" in item for item in sound)  # in use, lists that need no roles
    needed = NEEDED if used else WORDS[:-1]
    for key, role in _missing(sound, asked, needed).items() if asked and sound and not plain else ():
        where = "training" if used else "roles"
        log.warning("%r is missing, the %s in %s; if it has another name: --roles NAME=%s", key, role, where, role)
    rights = (first_of(item, roles.right) for item in sound) if roles is not None else ()
    grader = Grader(rule, [right for right in rights if right is not None])
    if roles is not None:
        lines.told.setdefault("roles", replace(roles, rule=grader.rule))
    groups = dict[str, tuple[int, Roles, list[Object]]]()
    for number, item in chain(head, rest):
        if isinstance(item, Problem) or roles is None or (roles.plain and "candidates" in item):
            yield number, item
            continue
        own = roles if roles.fits(item) else _form([item]) if "candidates" not in item else None
        shared = (own or roles).shared(item)
        if shared and (own is not None or roles.group):  # a row that lacks something is a bad candidate of its list
            groups.setdefault(shared, (number, own or roles, []))[2].append(item)
        elif own is None and "candidates" not in item and (lacking := roles.lacking(item) or "") != "candidates":
            yield number, Problem("text", f"found {shown(item.get(lacking))} under {lacking!r}, unlike in most objects")
        else:
            yield number, item if own is None else _made(own, [item], grader, named)
    for number, form, rows in groups.values():
        first = repr(rows[0].get("filter"))
        yield number, _made(form, [row for row in rows if repr(row.get("filter")) == first], grader, named)
    grader.say(lines.path)


def _missing(objects: Sequence[Object], asked: Mapping[str, str], needed: Sequence[str]) -> dict[str, str]:
    """The keys, of those with a role that is ``needed``, that objects lack."""
    every = [*objects, *chain.from_iterable(entries_of([item], key) for item in objects for key in keys_of([item])
             if isinstance(item[key], list))]  # fmt: skip
    had = set(keys_of(every))
    lacking = {key: role for key, role in asked.items() if role in needed and key.partition(".")[0] not in had}
    return {key: role for key, role in lacking.items() if role == "candidates"} or lacking


def _opened_up(item: Object | Problem, said: Set[str], paths: Sequence[str]) -> Object | Problem:
    """An object, or the response in it that holds the candidates; said: the names of candidates' texts; paths: into the
    object, which become keys of its own."""
    if isinstance(item, Problem):
        return item
    item = {**item, **{at: found for at in paths if (found := first_of(item, (at,))) is not None}} if paths else item
    if "candidates" in item or _form([item]):
        return item
    item = _beside(item, said)
    if "custom_id" in item and "response" in item:
        body = first_of(item, ("response.body",))
        if isinstance(body, dict) and not body.keys().isdisjoint(("choices", "output")):
            return {**body, "id": item["custom_id"]}
        error = first_of({**item, "of": body}, ("error.message", "error", "of.error.message", "of.error"))
        return Problem("text", f"the request has no response: {shown(error)}; send it again")
    within = {key: opened for key, value in item.items()
              if isinstance(value, dict) and (opened := _opened(value)) is not None}  # fmt: skip
    if len(within) == 1:
        ((name, response),) = within.items()
        rest = {key: value for key, value in item.items() if key != name}
        if not any(key.lower() in SAID or _are_candidates(value) for key, value in rest.items()):
            lost = {f"{name}.{key}": value for key, value in response.items() if rest.get(key, value) != value}
            return {**response, **lost, **rest}
    return item


def _opened(value: Any) -> Object | None:
    """The object in a response that holds the candidates; None where none does, or several."""
    if isinstance(value, list) and len(value) == 1:
        return _opened(value[0])
    if not isinstance(value, dict) or _holds_candidates(value):
        return value if isinstance(value, dict) else None
    found = [one for one in map(_opened, value.values()) if one is not None]
    return found[0] if len(found) == 1 else None


def _holds_candidates(value: Any) -> bool:
    return isinstance(value, dict) and any(
        key.lower() in HOLDERS and _are_candidates(one) for key, one in value.items()
    )


def _beside(item: Object, said: Set[str]) -> Object:
    """An object whose candidates stand beside one another, as ``response_1`` and ``response_2`` or ``output_a`` and
    ``output_b``, with a list of them, each with all that has its number or letter, and the place of the one that is
    right."""
    parts = {
        key: (found[1], (found[2] or found[3]).lower()) for key in item
        if (key[-1:].isdecimal() or key[-2:-1] in ("_", " ")) and (found := _NUMBERED.fullmatch(key))
    }  # fmt: skip
    counts = Counter(name for name, _ in parts.values() if name.lower() in said)
    text = next((name for name, count in counts.items() if count > 1), "")
    if not text or not (SAID | said | HOLDERS).isdisjoint(map(str.lower, item)):
        return item
    entries = {label: Object() for key, (name, label) in parts.items() if name == text and item[key] is not None}
    for key, (name, label) in parts.items():
        if label in entries:
            entries[label][name] = item[key]
    used = {key for key, (name, label) in parts.items() if name == text or label in entries}
    rest, labels = {key: value for key, value in item.items() if key not in used}, list(entries)
    for key in _called("truth", rest):
        value = rest[key]
        label = f"{value:g}" if isinstance(value, float) else str(value).lower().rpartition("_")[2]
        rest[key] = labels.index(label) if label in labels else value
    return {**rest, f"{text}_*": list(entries.values())}


def _alone(item: Object) -> list[Object]:
    """The lists, or their candidates, that the only object of a file holds, or an object in it, under one key or by
    their ids; itself where its keys are those of one list."""
    every = [item, *(value for value in item.values() if isinstance(value, dict))]
    known = any(_called(role, item) for role in NAMES)

    def are_lists(rows: Any) -> bool:
        if not is_of(rows, [dict]):
            return False
        found = not known and _called("group", keys_of(rows)) and _of_rows(rows, {})
        several = found and _differ(first_of(row, found.group) for row in rows)
        return bool(_form(rows) or _asks(rows) or several or (not known and all(map(_opened, rows))))

    tables: list[list[Object]] = [*filter(are_lists, chain.from_iterable(place.values() for place in every))]
    if len(tables) == 1:
        return tables[0]
    by_ids = [place for place in every if _most(_holds_candidates(one) or (
        _are_candidates(one) and (isinstance(one[0], dict) or not known)) for one in place.values())]  # fmt: skip
    if len(by_ids) != 1 or sum((by_ids[0] is item, known, len(by_ids[0]) < 2)) > 1:  # what speaks against it
        return [item]
    lists = by_ids[0].items()
    systems = [one for _, several in lists if is_of(several, [dict]) and _asks(several) for one in several]
    return systems or [{"id": key, **(one if isinstance(one, dict) else {"candidates": one})} for key, one in lists]


def _asks(entries: Sequence[Object]) -> bool:
    """Whether entries are about several questions, and so no candidates of one list."""
    keys = (key for key in _called("source", keys_of(entries)) if key.lower() not in ("source", "context"))
    return any(_differ(entry.get(key) for entry in entries) for key in keys)


def _made(roles: Roles, rows: list[Object], grader: Grader, named: Sequence[str]) -> Object | Problem:
    try:
        return roles.list_of(rows, grader, named)
    except Problem as problem:
        return problem


def _form(objects: Sequence[Object]) -> Roles | None:
    """The known form of most objects."""
    counts = Counter(chain.from_iterable(objects))
    often = (form for form in FORMS if all(2 * counts[key] > len(objects) for key in form.keys))
    return next((form for form in often if _most(map(form.fits, objects))), None)


def roles_of(
    objects: Sequence[Object], asked: Mapping[str, str], named: Sequence[str] = (), *, used: bool = False
) -> Roles | None:
    """The roles of keys in objects; None where nothing tells. Raises Problem where two readings are as likely.

    used: whether a model is, which knows its features: whatever is called as gains are may be one.
    """
    placed = {role: key for key, role in asked.items() if role in ("candidates", "text", "group")}
    form = None if placed else _form(objects)
    if form is None:
        form = _of_lists(objects, placed) or _of_rows(objects, placed)
    if form is None:
        return None
    lists = list[Object]()
    for item in filter(form.fits, objects):
        with suppress(Problem):  # those that cannot be used are left to who reads them all
            made = form.prepared(item)
            lists += [made] if not form.many or isinstance(made.get(form.many), list) else []
    if not form.form:
        form = replace(form, **_sides(form, lists, asked))
    table = table_of(form, lists)
    if paths := [path for path in form.columns.get(GAIN, ()) if path in table]:
        form = replace(form, columns={**form.columns, GAIN: (paths[0],)})
    form, taken = _with_columns(form, table, asked, named, used)
    return _with_unused(form, table, lists, taken, asked)


def _most(flags: Iterable[bool]) -> bool:
    every = list(flags)
    return 2 * sum(every) > len(every)


def _called(role: str, keys: Iterable[str]) -> list[str]:
    """Those of the ``keys`` that are called as one of a role is, the likeliest first."""
    named = [(key.lower(), key) for key in keys][::-1]
    return [key for name in NAMES[role] for lower, key in named if lower == name]


def _of_lists(objects: Sequence[Object], placed: Mapping[str, str]) -> Roles | None:
    """The roles where an object is a list."""
    sure = objects[0] == objects[-1] or _called("truth", keys_of(objects))  # else, a list that all have holds none
    several = [key for key in keys_of(objects)
               if key not in PIECES and _most(_are_candidates(item.get(key)) for item in objects)
               and (sure or key.lower() in HOLDERS or _differ(item.get(key) for item in objects))]  # fmt: skip
    key = placed.get("candidates") or next(iter(_called("candidates", several)), "")
    if not key and len(several) > 1 and "text" not in placed:
        message = f"{several[0]!r} or {several[1]!r} could be the candidates; say which, as --roles "
        raise Problem("text", f"{message}{several[0]}=candidates (roles of the reader)")
    if not key and (len(several) != 1 or "group" in placed):
        return None
    key = key or several[0]
    lists = [item[key] for item in objects if isinstance(item.get(key), list)]
    entries, text = list(islice(chain.from_iterable(lists), MOST)), cast(Paths, ())
    if any(isinstance(entry, dict) for entry in entries):
        if (found := placed.get("text") or _text(lists)) is None:
            return None
        text = (found,)
    elif entries and all(isinstance(each, list) and not isinstance(said_of(each), str) for each in entries):
        text = ("0",) if all(isinstance(said_of(each[0]), str) for each in entries if each) else ("1",)
    columns: dict[str, Paths] = {SCORE: ("1" if text == ("0",) else "0",)} if text in (("0",), ("1",)) else {}
    whole = key == "candidates" and text in ((), ("text",))
    return Roles(keys={key: list}, many=key, text=text or ("text",), whole=whole, columns=columns)


def _are_candidates(values: Any) -> bool:
    """Whether a value is a list of what candidates can be, and no conversation."""
    if not isinstance(values, list) or not {*map(type, values)} <= {str, dict, list}:
        return False
    return bool(values) and not any(isinstance(one, dict) and "role" in one for one in values)


def _texts(entries: Sequence[Object], keys: Iterable[str]) -> list[str]:
    """Those of the ``keys`` that hold texts in most entries."""

    def holds_texts(key: str) -> bool:
        values = key_of(key, entries).values
        if {*map(type, values)} == {str}:
            return 2 * len(values) > len(entries)
        return _most(isinstance(said_of(first_of(entry, (key,))), str) for entry in entries)

    return list(filter(holds_texts, keys))


def _text(lists: Sequence[list[Any]]) -> str | None:
    """The key of a candidate's text: by its name, best of one that differs within lists, or, if there is no other but
    ids and what all share, the one that holds texts."""
    entries = [entry for entry in islice(chain.from_iterable(lists), MOST) if isinstance(entry, dict)]
    named, alone = _texts(entries, _text_keys(entries)), max(map(len, lists)) < 2
    unlike = [key for key in named or _texts(entries, keys_of(entries))
              if alone or any(_differ(first_of(entry, (key,)) for entry in each) for each in lists)]  # fmt: skip
    if named:  # all have the one that stands for one that says nothing
        whole = (key for key in unlike if all(first_of(entry, (key,)) is not None for entry in entries))
        return named[0] if named[0] in unlike else next(whole, named[0])
    others = unlike if len(unlike) == 1 else [key for key in unlike if not ID.search(key)]
    return others[0] if len(others) == 1 else next(iter([] if others else _documents(entries)), None)


def _documents(objects: Sequence[Object]) -> list[str]:
    """The keys of names or numbers of what was found."""
    keys = filter(DOCUMENT.match, keys_of(objects))
    return [key for key in keys if _most(isinstance(item.get(key), str | int) for item in objects)]


def _text_keys(objects: Sequence[Object]) -> list[str]:
    """The keys that are called as texts are, also those of objects within."""
    keys = keys_of(objects)
    within = ((key, _called("text", keys_of(item.get(key) for item in objects))) for key in keys)
    return _called("text", keys) + [f"{key}.{name}" for key, names in within for name in names]


def _differ(values: Iterable[Any]) -> bool:
    return len({*map(repr, values)}) > 1


def _of_rows(objects: Sequence[Object], placed: Mapping[str, str]) -> Roles | None:
    """The roles where an object is a candidate, whose text is not the same in all of a list."""
    if "candidates" in placed or (len(objects) < 2 and not {"text", "group"} <= placed.keys()):
        return None
    texts = [placed["text"]] if "text" in placed else _texts(objects, _text_keys(objects))
    rows = [roles for text in texts or _documents(objects) if (roles := _rows_with(text, objects, placed)) is not None]
    named = [] if texts else [key for key in _texts(objects, keys_of(objects)) if not ID.search(key)]
    others = [key for key in named if not key_of(key, objects).is_numeric()]  # either could be meant
    unlike = (roles for roles in rows if "text" in placed or varies(objects, roles.group, roles.text[0]))
    return next((roles for roles in unlike if not any(varies(objects, roles.group, key) for key in others)), None)


def _rows_with(text: str, objects: Sequence[Object], placed: Mapping[str, str]) -> Roles | None:
    """The roles of rows with this text, if something tells which are of one list."""
    keys = [key for key in keys_of(objects) if key != text and _most(key in item for item in objects)]
    parts = {key: [repr(item.get(key)) for item in objects] for key in keys}
    again = [key for key in keys if len(set(parts[key])) < len(objects)]
    asked = [key for key in _called("source", keys) if key != "context"]
    sure = (key for key in _called("group", again) if key.lower() not in VAGUE
            or not any(varies(objects, (key,), other) for other in asked if other != key))  # fmt: skip
    group = placed.get("group") or next(sure, "")
    if not group:
        runs = [key for key in again
                if 1 < len(set(parts[key])) == sum(one != other for one, other in pairwise(parts[key])) + 1
                and (ID.search(key) or not key_of(key, objects).is_numeric())]  # fmt: skip
        if len({tuple(map(parts[key].index, parts[key])) for key in runs}) > 1:
            message = f"{runs[0]!r} or {runs[1]!r} could tell the lists; say which, as --roles "
            raise Problem("text", f"{message}{runs[0]}=group (roles of the reader)")
        group = next(iter(runs), "")
    return Roles(keys={group: object, text: object}, group=(group,), text=(text,)) if group else None


def _sides(form: Roles, objects: Sequence[Object], asked: Mapping[str, str]) -> dict[str, Any]:
    """The keys of what a list has once."""
    taken = {form.many, *form.text, *form.columns, *asked} - {*form.group}
    keys = [key for key in keys_of(objects) if key not in taken]

    def of(role: str, fits: Callable[[Any], bool]) -> Paths:
        if given := [key for key, one in asked.items() if one == role]:
            return tuple(given[:1])
        found = (key for key in _called(role, keys) if _most(fits(item.get(key)) for item in objects))
        shared = [key for key in found if (form.many or not varies(objects, form.group, key))
                  and (role != "reference" or asked.get(key) != "group")]  # fmt: skip
        unlike = (key for key in shared if role == "source" and _differ(item.get(key) for item in objects))
        return tuple(islice(chain(unlike, shared), 1))  # all have the same name of a data set

    def spoken(value: Any) -> bool:
        return isinstance(said_of(value, every=True), str)

    def texts(value: Any) -> bool:
        return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))

    def said(value: Any) -> bool:
        return texts(value) or (is_of(value, [dict]) and texts([one.get("text") for one in value]))

    source, reference, ids = of("source", spoken), of("reference", said), form.group
    if form.many and reference and _most(item.get(reference[0]) == item[form.many] for item in objects):
        reference = ()  # of a consensus: each candidate is one
    right = of("answer", lambda value: isinstance(value, int | float) or texts(value))
    named = [key for key, one in asked.items() if one in ("truth", "ordinal")] or _called("truth", keys)
    tell = (_with_truth(form, objects, key, asked) for key in named if form.many and not reference)
    told = next(filter(None, tell), form)
    if form.many or ids[0] not in NAMES["id"]:
        ids = of("id", lambda value: isinstance(value, str | int))
    lists = len(objects) if form.many else len({repr(first_of(item, form.group)) for item in objects})
    if "id" not in asked.values() and len({repr(first_of(item, ids)) for item in objects}) < lists:
        ids = ()
    right = () if right == told.truth else right
    if form.whole:
        ids, source, reference = ("id",), ("source",), ("reference", "references")
        right = right if "answer" in asked.values() else ()
    found = {"source": source, "reference": reference, "right": right, "id": ids}
    return found | {"truth": told.truth, "placed": told.placed, "ordinal": told.ordinal}


def _with_truth(form: Roles, objects: Sequence[Object], key: str, asked: Mapping[str, str]) -> Roles | None:
    """The form with the key that names the candidate that is right; None where it does not, or always names the first
    one, which a program has chosen.

    Numbers are places where the name says so or the candidates are options; else whole numbers of JSON are, but under
    names of right answers: these, and counts of the right samples, are numbers too.
    """
    values = [item.get(key) for item in objects]
    whole = sum(map(is_whole, values))
    plain = sum(isinstance(value, int) for value in values)
    placed = key in asked or form.many in OPTIONS or PLACE.search(key) is not None
    placed |= 2 * plain > len(values) and key.lower() not in {*NAMES["answer"], "correct"}

    def places(*, ordinal: bool) -> tuple[Roles, list[int | None]]:
        how = replace(form, truth=(key,), placed=placed, ordinal=ordinal)
        every = [item[form.many] for item in objects]
        texts = [[said_of(form.text_of(entry)) for entry in entries] for entries in every]
        return how, list(map(how.place_of, values, texts, every))

    (how, found), (other, from_1) = places(ordinal=False), places(ordinal=True)
    counts = [len(one) - one.count(None) for one in (found, from_1)]
    unsure = counts[0] == counts[1] and found != from_1 and key not in asked
    if asked[key] == "ordinal" if key in asked else counts[1] > counts[0]:
        how, found, counts = other, from_1, counts[::-1]
    if counts[0] <= max(len(objects) / 2, SURELY * whole - 1 if placed else 0) or not any(found):
        return None
    if unsure:
        log.warning("%r is the place of the right candidate, 0 for the first; if 1: --roles %s=ordinal", key, key)
    return how


def _with_columns(
    form: Roles, table: Mapping[str, JsonKey], asked: Mapping[str, str], named: Sequence[str], used: bool
) -> tuple[Roles, set[str]]:
    """The form with the gain and the columns of candidates, and the keys that are used of them; used: see
    ``roles_of``."""
    taken = {*form.inner, *named, *_SPECIAL} | (set() if form.many else form.outer)
    free = [key for name, key in table.items() if name in asked or not (name in taken or ID.search(name))]
    likely = {key.name for key in free if key.is_gain and not used}
    gain, gains = _gain(form, [key for key in free if key.name not in asked], asked, likely)

    def name_of(key: JsonKey) -> str:
        """What the numbers of a key are called; empty if they are no column."""
        if key.name == gain:
            return GAIN
        if role := asked.get(key.name):
            return {"column": key.name, "base": SCORE}.get(role, "")
        if (
            key.steady
            or key.name in {*likely, *gains, *form.along, *form.along.values()}
            or (form.form and not key.along)
        ):
            return ""
        if key.name.lower() in MEASURED or singular(key.name) in OWN:
            return ""
        if key.along and not form.form and singular(key.name) == SCORE and key.is_numeric():
            return SCORE
        steps = not key.along and key.is_mostly("list of numbers", "number in a list")
        return key.name if key.is_numeric() or steps else ""

    columns = dict(form.columns)
    if GAIN in columns and gain != (reward := columns[GAIN][0]):  # a reward beside verdicts
        columns = {reward if name == GAIN else name: paths for name, paths in columns.items()}
    names = {key.name: name for key in free if (name := name_of(key))}
    inner = {key: name for key, name in names.items() if not table[key].along}
    columns |= {name: (f"{key}.0" if table[key].alone else key,) for key, name in inner.items()}
    lists = {**form.along, **{name: key for key, name in names.items() if key not in inner}}
    lists |= {name: name for name in named if name in table and table[name].along}
    dropped = set[str]()
    if form.whole:
        few = {key for key in {*NUMBERS} & table.keys() - asked.keys() if 2 * len(table[key].values) < table[key].of}
        others = table.keys() - {*names, *named, *_SPECIAL}
        dropped = few | {key for key in others if table[key].is_numeric("verdict")}
        dropped |= {key for key, name in inner.items() if key != name}
        columns = {name: paths for name, paths in columns.items() if paths[0] not in few
                   and (name != paths[0] or not {*table[name].kinds} <= {"number", "true or false"})}  # fmt: skip
    elif not form.form:
        columns |= {FINISH: (FINISH,)} if FINISH in table else {}
        own = [name for name, key in table.items() if singular(name) in OWN and not (key.steady or key.along)
               and name not in {*form.text, *form.right}]  # fmt: skip
        columns |= {"answer": tuple(sorted(own, key=lambda name: OWN.index(singular(name))))} if own else {}
        beside = [name for name, key in table.items() if key.along and singular(name) in OWN and not own]
        lists |= {"answer": beside[0]} if beside else {}
    columns |= {{"gain": GAIN, "base": SCORE}.get(role, path): (path,) for path, role in asked.items()
                if "." in path and role in ("gain", "base", "column")}  # fmt: skip
    form = replace(form, columns=columns, along=lists, dropped=frozenset(dropped), gains=gains)
    taken = {*form.inner, *named, *lists.values()} | (set() if form.many else form.outer)
    return form, taken | ({*_SPECIAL, *names} - dropped if form.whole else set())


def _gain(
    form: Roles, keys: Sequence[JsonKey], asked: Mapping[str, str], named: set[str]
) -> tuple[str, tuple[str, ...]]:
    """The key of the gain, empty where nothing is sure to be one, and those that could be it; named: as gains are.

    Of keys that say the same of every candidate, the first is.
    """
    if given := [key for key, role in asked.items() if role == GAIN]:
        return given[0], ()
    likely = [key.name for key in keys
              if (key.is_numeric("verdict") if key.name in named else key.is_mostly("verdict"))]  # fmt: skip
    if GAIN in likely:
        return GAIN, ()
    if GAIN in form.columns and len(likely) != 1:
        return form.columns[GAIN][0], ()
    numbers = {repr([*map(as_number, key.values)]) for key in keys if key.name in likely}
    return (likely[0], ()) if len(numbers) == 1 else ("", tuple(likely))


def _with_unused(
    form: Roles, table: Mapping[str, JsonKey], lists: Sequence[Object], taken: set[str], asked: Mapping[str, str]
) -> Roles:
    """The form with the keys that have no role; taken: those that are used of candidates."""
    without = [key for name, key in table.items() if name not in taken and not (key.along and name in form.outer)]
    unused = {key.name: str(key) for key in without}
    along = {name for name, key in table.items() if key.along}
    for key in keys_of(lists) if form.many else ():
        if key not in {*along, *form.outer}:
            unused[key] = f"{key_of(key, lists)} lists"
    doubtful = [key.name for key in without
                if not (form.form or key.steady or key.name in {*asked, *form.gains} or ID.search(key.name))
                and key.is_numeric("list of numbers")]  # fmt: skip
    entries = entries_of(lists, form.many)
    plain = form.whole and not (form.columns or form.along or form.dropped or form.truth or form.right) and all(
        isinstance(entry, str) or (isinstance(entry, dict) and "text" in entry) for entry in entries)  # fmt: skip
    return replace(form, plain=plain, unused=unused, doubtful=tuple(doubtful))
