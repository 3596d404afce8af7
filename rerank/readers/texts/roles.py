"""What the keys of JSON objects are, found once for a source from its first objects: a form of another program, or what
their kinds and their names tell.

* A key that holds a list of texts or of objects is that of the candidates. Otherwise an object is a candidate, and
  those with the same value of a key of their lists (``prompt_id``, ``question``, ...) are a list, wherever they stand.
* Numbers of candidates are columns: those of objects, and those of lists as long as that of the candidates. A number
  may be written as a text, or be true or false.
* The gain is what is called so, or ``passed``, ``correct``, ``is_correct``, ``label``, ``success``, ``acc``,
  ``exact_match``, ``pass@1``, ``correctness_math_verify`` or ``graded_list``: one of them. A key whose value is one of
  the candidates, or its place, tells which is right: the gain is 1 for that one.
* What has none of these roles is not used, and said.

``roles`` of the reader overrule this: ``{samples: candidates, response: text, passed: gain, reward: column}``.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

from rerank.base.errors import RecipeError
from rerank.readers.problems import Problem
from rerank.readers.texts.answers import Grader
from rerank.readers.texts.forms import FORMS, NUMERAL, VERDICTS, Object, Paths, Roles, as_number, first_of, said_of
from rerank.readers.texts.samples import FINISH
from rerank.readers.texts.text_list import NUMBERS, SCORE

log = logging.getLogger("rerank")
MOST = 20_000  # candidates that tell the roles
MOSTLY = 0.9  # the share of a key's values that make it one of numbers
GAIN = "gain"
ROWS = ("jsonl", "table")  # readers that find roles
WORDS = ("candidates", "text", "group", "id", "source", "reference", "gain", "base", "column", "answer", "label",
         "truth", "unused")  # fmt: skip
NEEDED = "candidates", "text", "group", "source", "base"  # in use; a column that is missing is refused
GAINS = {GAIN, "passed", "correct", "is_correct", "label", "success", "acc", "exact_match", "pass@1", "graded",
         "right", "correctness_math_verify", "exec_match", "execution_match"}  # fmt: skip
# What keys are usually called, the likeliest first, without regard to capitals.
LISTS = ("candidates", "samples", "nbest", "n_best", "hypotheses", "alternatives", "beams", "completions", "responses",
         "generations", "outputs", "output_list", "predictions", "preds", "answers", "solutions", "texts",
         "text")  # fmt: skip
TEXTS = ("text", "response", "completion", "generated_text", "translation_text", "output", "content", "hypothesis",
         "hyp", "prediction", "pred", "pred_text", "candidate", "transcript", "lexical", "display", "solution", "code",
         "answer", "translation", "sentence", "sequence", "message.content")  # fmt: skip
LISTED = ("group", "prompt_id", "question_id", "qid", "query_id", "problem_id", "task_id", "doc_id", "example_id",
          "utt_id", "id", "prompt", "question", "query", "source", "problem", "input", "instruction",
          "src")  # fmt: skip
SOURCES = ("source", "prompt", "question", "query", "problem", "instruction", "question_content", "input", "context",
           "src")  # fmt: skip
REFERENCES = "reference", "references", "target", "ref", "reference_text", "transcript"
RIGHT = "answer", "ground_truth", "gold_answer"
TRUTHS = "gold", "label", "labels", "answer", "best", "correct", "target", "winner", "truth"
IDS = ("id", "qid", "question_id", "prompt_id", "task_id", "example_id", "unique_id", "problem_id", "query_id",
       "utt_id", "doc_id", "custom_id", "uid", "mention")  # fmt: skip
_ID = re.compile(r"(^|_)(id|idx|index|uuid)$", re.IGNORECASE)
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


def as_lists(
    objects: Iterable[tuple[int, Object | Problem]],
    asked: Mapping[str, str],
    told: Callable[[Roles], None],
    rule: str | None,
    named: Sequence[str],
    look: int,
    path: str,
) -> Iterator[tuple[int, Object | Problem]]:
    """Objects as lists of the format ``jsonl``. Rows of one list may be anywhere: those that have something in common
    are kept to the end.

    asked: the roles of keys, by the user; told: is told which were found. rule: for answers. named: what else is kept
    of candidates. look: how many objects tell the roles.
    """
    rest = chain.from_iterable(map(_spread, objects))
    head = list(_sound(rest, look))
    shown = [unwrapped(item) for _, item in head if not isinstance(item, Problem)]
    try:
        roles = roles_of(shown, asked, named, used=look == 1) if shown else None
    except Problem as problem:
        yield from ((number, problem) for number, _ in chain(head, rest))
        return
    for key, role in _missing(shown, asked).items() if look == 1 else ():
        log.warning("%r is missing, the %s in training; if it has another name: --roles NAME=%s", key, role, role)
    rights = (first_of(item, roles.right) for item in shown) if roles is not None else ()
    grader = Grader(rule, [right for right in rights if right is not None])
    if roles is not None:
        told(replace(roles, rule=grader.rule))
    groups = dict[str, tuple[int, Roles, list[Object]]]()
    for number, item in chain(head, rest):
        if isinstance(item, Problem) or roles is None or (roles.plain and "candidates" in item):
            yield number, item
            continue
        item = unwrapped(item)
        own = roles if roles.fits(item) else _form([item]) if "candidates" not in item else None
        shared = _shared(own or roles, item)
        if shared and (own is not None or roles.group):  # a row that lacks something is a bad candidate of its list
            groups.setdefault(shared, (number, own or roles, []))[2].append(item)
        elif own is None and roles.group and "candidates" not in item:
            yield number, Problem("text", f"there is no {roles.group[0]!r}, which tells its list, as in other rows")
        else:
            yield number, item if own is None else _made(own, [item], grader, named)
    for number, form, rows in groups.values():
        first = repr(rows[0].get("filter"))
        yield number, _made(form, [row for row in rows if repr(row.get("filter")) == first], grader, named)
    grader.say(path)


def _missing(objects: Sequence[Object], asked: Mapping[str, str]) -> dict[str, str]:
    """The keys, of those that are needed in use, that objects of another form than ``jsonl`` lack."""
    every = [*objects, *chain.from_iterable(_entries([item], key) for item in objects for key in asked
             if asked[key] == "candidates" and isinstance(item.get(key), list))]  # fmt: skip
    had = set(_keys(filter(_is_object, every)))
    needed = {key: role for key, role in asked.items() if role in NEEDED and key.partition(".")[0] not in had}
    first = {key: role for key, role in needed.items() if role == "candidates"}
    return {} if not objects or any("candidates" in item for item in objects) else first or needed


def _sound(objects: Iterator[tuple[int, Any]], count: int) -> Iterator[tuple[int, Any]]:
    """The first objects, ``count`` of them without a problem."""
    for number, item in objects:
        yield number, item
        count -= not isinstance(item, Problem)
        if not count:
            return


def _spread(entry: tuple[int, Object | Problem]) -> Iterator[tuple[int, Object | Problem]]:
    """An object, or the lists that it holds by their ids, as EvalPlus writes them."""
    number, item = entry
    inner = [] if isinstance(item, Problem) or "candidates" in item else [*filter(_by_id, item.values())]
    if len(inner) != 1:
        yield number, item
        return
    yield from ((number, {"id": key, "candidates": entries}) for key, entries in inner[0].items())


def _by_id(value: Any) -> bool:
    """Whether it is an object that holds lists of objects."""
    lists = list(value.values()) if isinstance(value, dict) else []
    return bool(lists) and all(isinstance(one, list) and one and all(map(_is_object, one)) for one in lists)


def unwrapped(item: Object) -> Object:
    """The object without what a batch has put around it."""
    body = first_of(item, ("response.body",))
    return type(item)(body) if isinstance(body, dict) and "output" in body else item


def _shared(roles: Roles, item: Object) -> str:
    """What objects of a list have in common; empty if that is nothing."""
    every = [value for path in roles.group if (value := first_of(item, (path,))) not in (None, {})]
    return repr(every) if every else ""


def _made(roles: Roles, rows: list[Object], grader: Grader, named: Sequence[str]) -> Object | Problem:
    try:
        return roles.list_of(rows, grader, named)
    except Problem as problem:
        return problem


def _form(objects: Sequence[Object]) -> Roles | None:
    """The known form of most objects."""
    return next((form for form in FORMS if 2 * sum(map(form.fits, objects)) > len(objects)), None)


OTHERS = "choices", "chosen", "responses"  # keys that tell a format with a reader of its own


def roles_of(
    objects: Sequence[Object], asked: Mapping[str, str], named: Sequence[str] = (), *, used: bool = False
) -> Roles | None:
    """The roles of keys in objects; None where nothing tells. Raises Problem where two readings are as likely.

    used: whether a model is, which knows its features: whatever is called as gains are may be one.
    """
    placed = {role: key for key, role in asked.items() if role in ("candidates", "text", "group")}
    if not placed and any(_most(objects, partial(_has, key=key)) for key in OTHERS):
        return None
    form = None if placed else _form(objects)
    if form is None:
        form = _of_lists(objects, placed) or _of_rows(objects, placed)
    return None if form is None else _settled(form, objects, asked, named, used)


def _most(objects: Sequence[Any], holds: Callable[[Any], Any]) -> bool:
    return 2 * sum(bool(holds(item)) for item in objects) > len(objects)


def _has(item: Object, key: str) -> bool:
    return key in item


def _called(names: Sequence[str], keys: Iterable[str]) -> list[str]:
    """Those of the ``keys`` that have one of the ``names``, in the order of the names."""
    by_name = {key.lower(): key for key in keys}
    return [by_name[name] for name in names if name in by_name]


def _keys(objects: Iterable[Object]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(objects)))


def _of_lists(objects: Sequence[Object], placed: Mapping[str, str]) -> Roles | None:
    """The roles where an object is a list."""

    def holds(key: str) -> bool:
        return key != "references" and _most([item.get(key) for item in objects], _are_candidates)

    several = list(filter(holds, _keys(objects)))
    key = placed.get("candidates") or next(iter(_called(LISTS, several)), "")
    if not key and len(several) > 1 and "text" not in placed:
        message = f"{several[0]!r} or {several[1]!r} could be the candidates"
        raise Problem("text", f"{message}; {_advice(several[0], 'candidates')}")
    if not key and (len(several) != 1 or "group" in placed):
        return None
    key = key or several[0]
    entries = _entries([item for item in objects if isinstance(item.get(key), list)], key)
    text: Paths = ()
    if objects_in := list(filter(_is_object, entries)):
        if (found := _text(objects_in, placed)) is None:
            return None
        text = (found,)
    elif entries and all(isinstance(each, list) and not all(isinstance(one, str) for one in each) for each in entries):
        text = ("0",)
    columns = {SCORE: ("1",)} if text == ("0",) else {}
    whole = key == "candidates" and text in ((), ("text",))
    return Roles(keys={key: list}, many=key, text=text or ("text",), whole=whole, columns=columns)


def _are_candidates(values: Any) -> bool:
    """Whether a value is a list of what candidates can be, and no conversation."""
    if not isinstance(values, list) or not all(isinstance(one, str | dict | list) for one in values):
        return False
    return bool(values) and not any(isinstance(one, dict) and "role" in one for one in values)


def _entries(objects: Sequence[Object], key: str) -> list[Any]:
    return list(islice(chain.from_iterable(item[key] if key else [item] for item in objects), MOST))


def _text(entries: Sequence[Object], placed: Mapping[str, str], *, only: bool = True) -> str | None:
    """The key of a candidate's text: by its name or, if there is no other and ``only``, the one that holds texts."""
    if "text" in placed:
        return placed["text"]

    def spoken(key: str) -> bool:
        return _most(entries, lambda entry: isinstance(said_of(first_of(entry, (key,))), str))

    keys = [key for key in [*_keys(entries), "message.content"] if spoken(key)]
    found = _called(TEXTS, keys)
    return next(iter(found or (keys if only and len(keys) == 1 else [])), None)


def _of_rows(objects: Sequence[Object], placed: Mapping[str, str]) -> Roles | None:
    """The roles where an object is a candidate."""
    if len(objects) < 2 or (text := _text(objects, placed, only=False)) is None or "candidates" in placed:
        return None
    keys = [key for key in _keys(objects) if key != text and _most(objects, partial(_has, key=key))]
    parts = {key: [repr(item.get(key)) for item in objects] for key in keys}
    again = [key for key in keys if len(set(parts[key])) < len(objects)]
    group = placed.get("group") or next(iter(_called(LISTED, again)), "")
    if not group:
        runs = [key for key in again if 1 < len(set(parts[key])) == _runs(parts[key])]
        runs = [key for key in runs if not _is_numeric(_kinds(objects, key))]
        if len({tuple(map(parts[key].index, parts[key])) for key in runs}) > 1:
            raise Problem("text", f"{runs[0]!r} or {runs[1]!r} could tell the lists; {_advice(runs[0], 'group')}")
        group = next(iter(runs), "")
    return Roles(keys={group: object, text: object}, group=(group,), text=(text,)) if group else None


def _runs(values: Sequence[str]) -> int:
    """The number of runs of equal values."""
    return sum(one != other for one, other in pairwise(values)) + 1


def _advice(key: str, role: str) -> str:
    return f"say which, as --roles {key}={role} (roles of the reader)"


def kind_of(value: Any) -> str:
    """The kind of a JSON value, in words; empty for null."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str) and NUMERAL.fullmatch(value):
        return "number written as text"
    if isinstance(value, str):
        if value.lower() in ("true", "false"):
            return "true or false written as text"
        return "verdict" if value.lower() in VERDICTS else "text"
    if isinstance(value, list):
        numbers = all(isinstance(one, int | float) for one in value) and bool(value)
        return ("number in a list" if len(value) == 1 else "list of numbers") if numbers else "list"
    return "" if value is None else "object"


_NUMBERS = {"number", "true or false", "number written as text", "true or false written as text"}


def _kinds(entries: Iterable[Any], key: str) -> Counter[str]:
    return Counter(filter(None, (kind_of(entry.get(key)) for entry in entries if isinstance(entry, dict))))


def _is_numeric(kinds: Counter[str], more: Iterable[str] = ()) -> bool:
    return sum(kinds[kind] for kind in {*_NUMBERS, *more}) >= MOSTLY * kinds.total() > 0 or _alone(kinds)


def _alone(kinds: Counter[str]) -> bool:
    """Whether each number is in a list of its own, as R writes them."""
    return kinds["number in a list"] == kinds.total() > 0


def singular(key: str) -> str:
    """What the entries of a list under a key are called."""
    name = key.removesuffix("_list")
    return name[:-1] if name == key and name.endswith("s") and not name.endswith("ss") else name


def _settled(
    form: Roles, objects: Sequence[Object], asked: Mapping[str, str], named: Sequence[str], used: bool
) -> Roles:
    """A form with the roles of all keys; used: see ``roles_of``."""
    fitting = list(_prepared(form, filter(form.fits, objects)))
    top = [key for key in _keys(fitting) if key != form.many] if form.many else []
    along = [] if form.form else [key for key in top if _along(fitting, key, form.many)]
    if not form.form:
        form = replace(form, **_sides(form, fitting, top or _keys(fitting), asked))
    entries = _entries(fitting, form.many)
    kinds = {key: _kinds(entries, key) for key in _keys(filter(_is_object, entries))}
    kinds |= {key: _kinds(({key: one} for item in fitting for one in item.get(key) or ()), key) for key in along}
    inner, outer = _used(form)
    taken = {*inner, *named, *_SPECIAL} | (set() if form.many else outer)
    free = {key: kind for key, kind in kinds.items() if key in asked or not (key in taken or _ID.search(key))}
    likely = {key for key in free if _is_gain(key) and not (used or _counts(entries, fitting, key, key in along))}
    gain, gains = _gain(form, free, asked, likely)
    if GAIN in form.columns and gain != (reward := form.columns[GAIN][0]):  # a reward beside verdicts
        form = replace(form, columns={reward if key == GAIN else key: paths for key, paths in form.columns.items()})
    steady = set() if form.many or form.form else {key for key in free if not _varies(fitting, form.group, key)}
    names = {key: name for key in free if (name := _name(key, free[key], form, asked, gain, likely, key in along))
             and (key in asked or key == gain or key not in {*gains, *steady})}  # fmt: skip
    inside = [(key, name) for key, name in names.items() if key not in along]
    columns = {**form.columns, **{name: (f"{key}.0" if _alone(kinds[key]) else key,) for key, name in inside}}
    dropped = set[str]()
    if form.whole:
        others = kinds.keys() - {*names, *named, *_SPECIAL}
        dropped = {key for key in others if _is_numeric(kinds[key], ["verdict"])}
        dropped |= {key for key, name in inside if key != name}
        few = {key for key in NUMBERS if key in kinds and 2 * kinds[key].total() < len(entries) and key not in asked}
        dropped |= few
        exact = {key for key, kind in kinds.items() if kind.total() == kind["number"] + kind["true or false"]}
        gone = {name for name, (path, *_) in columns.items() if path in few or (name == path and name in exact)}
        columns = {name: paths for name, paths in columns.items() if name not in gone}
    elif not form.form:
        columns |= {FINISH: (FINISH,)} if FINISH in kinds else {}
        columns |= {"answer": ("answer",)} if form.many and "answer" in kinds and "answer" not in form.text else {}
    lists = {**form.along, **{names[key]: key for key in along if key in names}}
    form = replace(form, columns=columns, along=lists, dropped=frozenset(dropped), gains=gains)
    inner, outer = _used(form)
    placed = {*inner, *named, *lists.values()} | (set() if form.many else outer)
    placed |= {*_SPECIAL, *names} - dropped if form.whole else set()
    without = [key for key in kinds if key not in placed and kinds[key].total()]
    unused = {key: f"{_plural(kinds[key])}, {kinds[key].total():,} of {len(entries):,}" for key in without}
    for key in (key for key in top if key not in along and key not in outer):
        kind = _kinds(fitting, key)
        unused |= {key: f"{_plural(kind)}, {kind.total():,} of {len(fitting):,} lists"} if kind.total() else {}
    doubtful = [key for key in without if not (form.form or key in {*asked, *gains, *steady} or _ID.search(key))
                and _is_numeric(kinds[key], ["list of numbers"])]  # fmt: skip
    plain = form.whole and not (columns or lists or dropped or form.truth or form.right) and all(
        isinstance(entry, str) or (isinstance(entry, dict) and "text" in entry) for entry in entries)  # fmt: skip
    return replace(form, plain=plain, unused=unused, doubtful=tuple(doubtful))


def _is_object(entry: Any) -> bool:
    return isinstance(entry, dict)


def _used(form: Roles) -> tuple[set[str], set[str]]:
    """The keys of candidates, and those of lists, that have a role."""

    def heads(paths: Iterable[str]) -> set[str]:
        return {path.partition(".")[0].rstrip("#+") for path in paths}

    outer = (*form.group, *form.source, *form.reference, *form.right, *form.truth, *form.id, *form.keys, form.many)
    return heads(chain(form.text, *form.columns.values())), heads(outer) | set(form.along.values())


def _name(
    key: str, kind: Counter[str], form: Roles, asked: Mapping[str, str], gain: str, likely: set[str], along: bool
) -> str:
    """What the numbers of a key are called; empty if they are no column."""
    role = asked.get(key, "")
    if key == gain:
        return GAIN
    if role in ("column", "base"):
        return SCORE if role == "base" else key
    if role or form.form or key in likely:
        return ""
    if along and singular(key) == SCORE:
        return SCORE
    steps = kind["list of numbers"] + kind["number in a list"] >= MOSTLY * kind.total() > 0
    return key if _is_numeric(kind) or (steps and not along) else ""


def _counts(entries: Sequence[Any], lists: Sequence[Object], key: str, along: bool) -> bool:
    """Whether numbers called like a gain are counts, which may be beyond 1."""
    if key.lower() in (GAIN, "label", "labels"):
        return False
    values = chain.from_iterable(item.get(key) or () for item in lists) if along else (
        entry.get(key) for entry in entries if isinstance(entry, dict))  # fmt: skip
    return any(isinstance(value := as_number(one), int | float) and value > 1 for one in values)


def _is_gain(key: str) -> bool:
    """Whether numbers of this name are gains."""
    return key.lower() in GAINS or singular(key.lower()) in GAINS


def _prepared(form: Roles, objects: Iterable[Object]) -> Iterator[Object]:
    """Objects that have all of a form; those that cannot be used are left to who reads them all."""
    for item in objects:
        with suppress(Problem):
            made = form.prepared(item)
            if not form.many or isinstance(made.get(form.many), list):
                yield made


def _plural(kinds: Counter[str]) -> str:
    """What most values are, in words."""
    kind = kinds.most_common(1)[0][0] if kinds else "null"
    first, _, rest = kind.partition(" ")
    return kind if first == "true" else f"{first}s {rest}".strip()


def _along(objects: Sequence[Object], key: str, many: str) -> bool:
    """Whether a key holds lists as long as those of the candidates."""
    lists = [item for item in objects if item.get(key) is not None]
    return _most(objects, lambda item: item.get(key) is not None) and all(
        isinstance(item[key], list) and len(item[key]) == len(item[many]) for item in lists
    ) and any(len(item[key]) > 1 for item in lists) and key not in REFERENCES  # fmt: skip


def _varies(rows: Sequence[Object], group: Paths, key: str) -> bool:
    """Whether numbers of rows differ within a list."""
    seen = dict[str, Any]()
    return any(seen.setdefault(repr(first_of(row, group)), row.get(key)) != row.get(key) for row in rows)


def _gain(
    form: Roles, kinds: Mapping[str, Counter[str]], asked: Mapping[str, str], named: set[str]
) -> tuple[str, tuple[str, ...]]:
    """The key of the gain, empty where nothing is sure to be one, and those that could be it; named: as gains are."""
    if given := [key for key, role in asked.items() if role == GAIN]:
        return given[0], ()

    def tells(key: str, kind: Counter[str]) -> bool:
        return _is_numeric(kind, ["verdict"]) if key in named else kind["verdict"] >= MOSTLY * kind.total() > 0

    likely = [key for key, kind in kinds.items() if key not in asked and tells(key, kind)]
    if GAIN in likely:
        return GAIN, ()
    if GAIN in form.columns and len(likely) != 1:
        return form.columns[GAIN][0], ()
    return (likely[0], ()) if len(likely) == 1 else ("", tuple(likely))


def _sides(form: Roles, objects: Sequence[Object], keys: Sequence[str], asked: Mapping[str, str]) -> dict[str, Any]:
    """The keys of what a list has once."""

    def of(role: str, names: Sequence[str], fits: Callable[[Any], bool]) -> tuple[str, ...]:
        if given := [key for key, one in asked.items() if one == role]:
            return tuple(given[:1])
        free = [key for key in keys if key not in asked and key not in form.text and key not in form.columns]
        found = [key for key in _called(names, free) if _most([item.get(key) for item in objects], fits)]
        return tuple(found[:1])

    def spoken(value: Any) -> bool:
        return isinstance(said_of(value, every=True), str)

    def texts(value: Any) -> bool:
        return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))

    source, reference = of("source", SOURCES, spoken), of("reference", REFERENCES, texts)
    if source and not form.many and source != form.group and asked.get(source[0]) != "source":
        source = source if not _varies(objects, form.group, source[0]) else ()
    right = of("answer", RIGHT, lambda value: isinstance(value, int | float) or texts(value)) if form.many else ()
    truth = () if reference or not form.many else of("truth", TRUTHS, lambda value: value is not None)
    if truth and not _tells(objects, form, truth[0]):
        truth = ()
    if truth == right:
        right = ()
    ids = of("id", IDS, lambda value: isinstance(value, str | int))
    if not form.many and form.group[0] in IDS:
        ids = form.group
    elif ids and asked.get(ids[0]) != "id" and form.many:
        ids = ids if len({repr(item.get(ids[0])) for item in objects}) == len(objects) else ()
    elif not form.many and ids and _varies(objects, form.group, ids[0]):
        ids = ()
    if form.whole:
        ids, source, reference = ("id",), ("source",), ("reference", "references")
        right = () if not any(role == "answer" for role in asked.values()) else right
    return {"source": source, "reference": reference, "right": right, "truth": truth, "id": ids}


def _tells(objects: Sequence[Object], form: Roles, key: str) -> bool:
    """Whether a key names the candidate that is right, or its place: not the first one always, which a program has
    chosen."""
    places = list[int]()
    for item in objects:
        value, entries = item.get(key), item[form.many]
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(entries):
            places.append(value)
            continue
        texts = [said_of(first_of(entry, form.text)) if not isinstance(entry, str) else entry for entry in entries]
        if isinstance(value, str) and value in texts:
            places.append(texts.index(value))
    return 2 * len(places) > len(objects) and any(places)
