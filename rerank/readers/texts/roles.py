"""What the keys of JSON objects are, by a source's first objects: a form of another program, or what their kinds and
names tell.

* A key that holds a list of texts or objects holds the candidates. Otherwise an object is a candidate, and
  those with the same value of a key of their lists (``prompt_id``, ``question``, ...) are a list, wherever they stand.
  A single object that holds nothing but lists, or objects with lists, under keys of its own holds them by their ids;
  one that holds columns of the same length, among them questions, holds their rows.
  Candidates may stand beside one another in an object, or a row of a table: ``response_1``, ``score_1``,
  ``response_2``, or ``output_a``, ``output_b``.
* Numbers of candidates are columns: numbers in their objects, and lists of numbers as long as the list of
  candidates. A number or a list may be written as a text; true and false are numbers.
* The gain is what is called so, or ``passed``, ``is_correct``, ``label``, ``acc``, ``pass@1``, ``selected``,
  ``has_answer`` and the like, or, in whole numbers, ``relevance`` or ``grade``: one of them. A key whose value is a
  candidate, its id or its place (from 0, or 1 where that fits more lists; under ``answer`` among options alone),
  tells which has the gain 1. What is measured against references, as ``wer``, says which is best, as ``oracle``, or is
  a second verdict, as ``passed_hidden``, is a column only if ``roles`` say so.
* What has no role is not used, and said.

``roles`` of the reader overrule this: ``{samples: candidates, response: text, passed: gain, reward: column}``.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice, pairwise
from typing import Any, cast

from rerank.base.errors import RecipeError
from rerank.readers.lists import GAIN
from rerank.readers.problems import Problem
from rerank.readers.texts.forms import (
    DOCUMENT,
    FORMS,
    OPTIONS,
    Object,
    Paths,
    Roles,
    as_number,
    first_of,
    is_of,
    is_whole,
    text_in,
)  # fmt: skip
from rerank.readers.texts.json_lines import FINISH, has_steps, show
from rerank.readers.texts.keys import (
    ANSWER_KEYS,
    HOLDERS,
    ID,
    NAMES,
    REFERENCE_BASED,
    RESPONSES,
    RIGHT_ANSWERS,
    SAMPLE_CANDIDATES,
    JsonKey,
    all_keys,
    are_candidates,
    differ,
    entries_of,
    keys_of,
    likely_keys,
    majority,
    plain_name,
    singular,
    table_of,
    varies,
)
from rerank.readers.texts.text_list import NUMBERS, SCORE

log = logging.getLogger("rerank")
ROWS = ("jsonl", "table")  # readers that find roles
WORDS = ("candidates", "text", "group", "id", "source", "reference", "gain", "base", "column", "answer", "label",
         "truth", "ordinal", "unused")  # fmt: skip
MIN_INDEX_SHARE = 0.98  # the share of numbers that are places where they stand for one
# Lists that hold no candidates, but parts of one, or what is said of all.
PIECES = {"references", "refs", "gts", "segments", "tokens", "words", "steps", "turns", "tags", "keywords", "languages",
          "logprobs", "top_logprobs"}  # fmt: skip
INDEX_KEY = re.compile(r"^(best|winner|preference|preferred)$|_(index|idx)$", re.IGNORECASE)  # of a number that is one
NUMBERED_REFERENCE = re.compile(r"ref(erence)?[_-]?\d+$", re.IGNORECASE)
VAGUE_GROUPS = {"source", "input", "instruction", "src", "docid"}  # may be what the questions of several lists share
_INDIRECT = "object of numbers", "number with marks or a unit"  # kinds of what is no number as it stands
_LISTS = "list", "list of numbers", "number in a list"  # kinds that no answer is of
_SERVER_KEYS = "usage", "timings"  # what servers say of their work
_SPECIAL = {"text", "answer", "segmentation", "alignment", "features", "columns", FINISH}  # of a candidate in ``jsonl``


def parse_roles(spec: str | Mapping[str, str]) -> dict[str, str]:
    """Roles by key, also of ``samples=candidates,response=text``."""
    if isinstance(spec, Mapping):
        return dict(spec)
    if not isinstance(spec, str):
        raise RecipeError(f"found {spec!r}; expected a dict, as {{'passed': 'gain'}}", key="roles")
    pairs = [part.strip().rpartition("=") for part in spec.split(",")]
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
    readers = [with_option(one, key, value) for one in every]
    return {**reader, "of": readers if several else readers[0]}


def with_roles(reader: Mapping[str, Any], roles: str | Mapping[str, str] | None) -> dict[str, Any]:
    """A reader's settings with roles that the user has given, if any."""
    if roles is None or "of" in reader:
        return dict(reader) if roles is None else with_option(reader, "roles", parse_roles(roles))
    return {**reader, "roles": {**reader.get("roles", {}), **parse_roles(roles)}}


def known_form(objects: Sequence[Object]) -> Roles | None:
    """The known form of most objects."""
    counts = Counter(chain.from_iterable(objects))
    often = (form for form in FORMS if all(2 * counts[key] > len(objects) for key in form.keys))
    return next((form for form in often if majority(map(form.fits, objects))), None)


def roles_of(
    objects: Sequence[Object], roles: Mapping[str, str], extra_keys: Sequence[str] = (), *, live: bool = False
) -> Roles | None:
    """The roles of keys in objects; None where nothing tells. Raises Problem where two readings are as likely.

    live: whether a model is in use, which knows its features: whatever is called as gains are may be one.
    """
    by_role = {role: key for key, role in roles.items() if role in ("candidates", "text", "group")}
    form = (None if by_role else known_form(objects)) or _of_lists(objects, by_role) or of_rows(objects, by_role)
    if form is None:
        return None
    lists = list[Object]()
    for item in filter(form.fits, objects):
        with suppress(Problem):  # those that cannot be used are left to who reads them all
            row = form.prepare(item)
            lists += [row] if not form.many or isinstance(row.get(form.many), list) else []
    if not form.form:
        columns = {} if "base" in roles.values() else form.columns
        form = replace(form, columns=columns, **_sides(form, lists, roles))
    table = table_of(form, lists)
    if paths := [path for path in form.columns.get(GAIN, ()) if path in table]:
        form = replace(form, columns={**form.columns, GAIN: (paths[0],)})
    form, role_keys = _with_columns(form, table, roles, extra_keys, live)
    return _with_leftovers(form, table, lists, role_keys, roles)


def _of_lists(objects: Sequence[Object], by_role: Mapping[str, str]) -> Roles | None:
    """The roles where an object is a list."""
    table = all_keys(objects)
    single = objects[0] == objects[-1]
    sure = single or likely_keys("truth", table)  # else, a list that all have holds none
    alone = _texts(objects, table, (key for key in table if plain_name(key) in RESPONSES))
    several = [key for key, own in table.items()
               if key not in PIECES and not (alone and plain_name(key) in RIGHT_ANSWERS)
               and 2 * sum(map(are_candidates, own.values)) > len(objects)
               and (sure or plain_name(key) in HOLDERS or differ(item.get(key) for item in objects))]  # fmt: skip
    sizes = [len(one) for key in several for one in table[key].values if isinstance(one, list)]
    if not single and max(sizes, default=0) < 2 and HOLDERS.isdisjoint(map(plain_name, several)):
        several = []  # parts of a candidate, or what is said of one
    beside = alone and several and "candidates" not in by_role and HOLDERS.isdisjoint(map(plain_name, several))
    if beside and of_rows(objects, by_role):
        return None  # tokens or steps of the response
    key = by_role.get("candidates") or next(iter(likely_keys("candidates", several)), "")
    if not key and len(several) > 1 and "text" not in by_role:
        message = f"{several[0]!r} or {several[1]!r} could be the candidates; say which, as --roles "
        raise Problem("text", f"{message}{several[0]}=candidates (roles of the reader)")
    if not key and (len(several) != 1 or "group" in by_role):
        return None
    key = key or several[0]
    lists = [item[key] for item in objects if isinstance(item.get(key), list)]
    entries, text = list(islice(chain.from_iterable(lists), SAMPLE_CANDIDATES)), cast(Paths, ())
    columns: dict[str, Paths] = {}
    if any(isinstance(entry, dict) for entry in entries):
        of_entries = all_keys(entries)
        first = _texts(entries, of_entries, ("0", "1"))[:1] if "text" not in by_role else []  # as pairs are
        if (path := by_role.get("text") or next(iter(first), None) or _text(lists, of_entries)) is None:
            return None
        alike = not differ([text_in(first_of(entry, (path,))) for entry in entries] for entries in lists)
        verdicts = (one for one in table.values() if one.is_gain)
        has_name = "candidates" in by_role or plain_name(key) in HOLDERS
        if alike and not has_name and any(one.is_mostly("true or false") for one in verdicts):
            return None  # the names of metrics of a candidate
        text = (path,)
        columns = {SCORE: ("1" if path == "0" else "0",)} if first else {}
    whole = key == "candidates" and text in ((), ("text",))
    return Roles(keys={key: list}, many=key, text=text or ("text",), whole=whole, columns=columns)


def _texts(entries: Sequence[Object], table: Mapping[str, JsonKey], keys: Iterable[str]) -> list[str]:
    """The ``keys`` that hold texts in most entries, whose own keys are a ``table``."""

    def holds_texts(key: str) -> bool:
        if key in table and {*map(type, values := table[key].values)} == {str}:
            return 2 * len(values) > len(entries)
        return majority(isinstance(text_in(first_of(entry, (key,))), str) for entry in entries)

    return list(filter(holds_texts, keys))


def _text(lists: Sequence[list[Any]], table: Mapping[str, JsonKey]) -> str | None:
    """The key of a candidate's text: by its name, best of one that differs within lists, or, if there is no other but
    ids and what all share, the one that holds texts."""
    entries = [entry for entry in islice(chain.from_iterable(lists), SAMPLE_CANDIDATES) if isinstance(entry, dict)]
    keys, alone = _texts(entries, table, _text_keys(table)), max(map(len, lists)) < 2
    # Tokens are one text, sentences are not.
    single = (name for name, key in table.items() if not any(" " in token for tokens in key.values
              if is_of(tokens, [str]) for token in tokens))  # fmt: skip
    unlike = [key for key in keys or _texts(entries, table, single)
              if alone or any(differ(first_of(entry, (key,)) for entry in each) for each in lists)]  # fmt: skip
    if keys:  # all have the one that stands for one that says nothing
        whole = (key for key in unlike if all(first_of(entry, (key,)) is not None for entry in entries))
        return keys[0] if keys[0] in unlike else next(whole, keys[0])
    others = unlike if len(unlike) == 1 else [key for key in unlike if not ID.search(key)]
    return others[0] if len(others) == 1 else next(iter([] if others else _documents(entries)), None)


def _documents(objects: Sequence[Object]) -> list[str]:
    """The keys of names or numbers of what was found."""
    keys = filter(DOCUMENT.match, keys_of(objects))
    return [key for key in keys if majority(isinstance(item.get(key), str | int) for item in objects)]


def _text_keys(table: Mapping[str, JsonKey]) -> list[str]:
    """The keys that are called as texts are, also those of objects within."""
    within = ((name, likely_keys("text", keys_of(key.values))) for name, key in table.items())
    return likely_keys("text", table) + [f"{key}.{name}" for key, names in within for name in names]


def of_rows(objects: Sequence[Object], by_role: Mapping[str, str]) -> Roles | None:
    """The roles where an object is a candidate, whose text is not the same in all of a list."""
    if "candidates" in by_role or (len(objects) < 2 and not {"text", "group"} <= by_role.keys()):
        return None
    table = all_keys(objects)
    texts = [by_role["text"]] if "text" in by_role else _texts(objects, table, _text_keys(table))
    tries = (_rows_with(text, objects, table, by_role) for text in texts or _documents(objects))
    rows = [roles for roles in tries if roles is not None]
    keys = [] if texts else [key for key in _texts(objects, table, table) if not ID.search(key)]
    others = [key for key in keys if not table[key].is_numeric()]  # either could be meant
    unlike = (roles for roles in rows if "text" in by_role or varies(objects, roles.group, roles.text[0]))
    return next((roles for roles in unlike if not any(varies(objects, roles.group, key) for key in others)), None)


def _rows_with(
    text: str, objects: Sequence[Object], table: Mapping[str, JsonKey], by_role: Mapping[str, str]
) -> Roles | None:
    """The roles of rows with this text, if something tells which are of one list."""
    counts = Counter(chain.from_iterable(objects))
    keys = [key for key, count in counts.items() if key != text and 2 * count > len(objects)]
    parts = {key: [repr(item.get(key)) for item in objects] for key in keys}
    repeats = [key for key in keys if len(set(parts[key])) < len(objects)]
    sources = [key for key in likely_keys("source", keys) if key != "context"]
    clear = [key for key in sources if plain_name(key) not in VAGUE_GROUPS]
    sure = (key for key in likely_keys("group", repeats) if not any(varies(objects, (key,), other) for other in
            (sources if plain_name(key) in VAGUE_GROUPS else clear) if other != key))  # fmt: skip
    group = by_role.get("group") or next(sure, "")
    if not group:
        runs = [key for key in repeats
                if 1 < len(set(parts[key])) <= len(objects) / 2  # else, two that are equal by chance would be a list
                and len(set(parts[key])) == sum(one != other for one, other in pairwise(parts[key])) + 1
                and (ID.search(key) or not table[key].is_numeric())]  # fmt: skip
        if len({tuple(map(parts[key].index, parts[key])) for key in runs}) > 1:
            message = f"{runs[0]!r} or {runs[1]!r} could tell the lists; say which, as --roles "
            raise Problem("text", f"{message}{runs[0]}=group (roles of the reader)")
        group = next(iter(runs), "")
    for key in repeats if plain_name(group) in VAGUE_GROUPS and "group" not in by_role else ():
        both = [*zip(parts[group], parts[key], strict=True)]
        divides = len({*parts[group]}) < len({*both}) < len(objects)
        if divides and ID.search(key) and len({*both}) == sum(one != other for one, other in pairwise(both)) + 1:
            message = f"{group!r} alone or with {key!r} could tell the lists; say --roles {group}=group (roles of the "
            raise Problem("text", f"{message}reader), or write both under one key")
    return Roles(keys={group: object, text: object}, group=(group,), text=(text,)) if group else None


def _sides(form: Roles, objects: Sequence[Object], roles: Mapping[str, str]) -> dict[str, Any]:
    """The keys of what a list has once."""
    role_keys = {form.many, *form.text, *form.columns, *roles} - {*form.group}
    keys = [key for key in keys_of(objects) if key not in role_keys]
    heads = {form.shared(item): item for item in objects[::-1]}.values() if form.group else objects

    def of(role: str, fits: Callable[[Any], bool]) -> Paths:
        if own := [key for key, one in roles.items() if one == role]:
            return tuple(own if role == "reference" else own[:1])
        names = (key for key in likely_keys(role, keys) if majority(fits(item.get(key)) for item in heads))
        shared = [key for key in names if (form.many or not varies(objects, form.group, key))
                  and (role != "reference" or roles.get(key) != "group")]  # fmt: skip
        unlike = (key for key in shared if role == "source" and differ(item.get(key) for item in objects))
        return tuple(islice(chain(unlike, shared), 1))  # all have the same name of a data set

    def texts(value: Any) -> bool:
        return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))

    source, ids = of("source", lambda value: isinstance(text_in(value, every=True), str)), form.group
    reference = of(
        "reference", lambda value: texts([one.get("text") for one in value] if is_of(value, [dict]) else value)
    )
    if not reference:  # one of several under each
        numbered = [key for key in keys if NUMBERED_REFERENCE.match(key) and key not in roles
                    and majority(isinstance(item.get(key), str) for item in objects)
                    and (form.many or not varies(objects, form.group, key))]  # fmt: skip
        reference = tuple(numbered) if len(numbered) > 1 else ()
    if form.many and reference:  # none where it is all candidates, as in a consensus, or the first, which one chose
        values = [item.get(reference[0]) for item in objects]
        firsts = [text_in(form.text_of(next(iter(item[form.many]), None))) for item in objects]
        is_choice = plain_name(reference[0]) in ("transcript", "target") and values == firsts and len(objects) > 1
        every = majority(value == item[form.many] for value, item in zip(values, objects, strict=True))
        reference = () if is_choice or every else reference
    right = of("answer", lambda value: isinstance(value, int | float) or texts(value))
    truth_keys = [key for key, one in roles.items() if one in ("truth", "ordinal")] or likely_keys("truth", keys)
    tell = (_with_truth(form, objects, key, roles) for key in truth_keys if form.many and not reference)
    choice_form = next(filter(None, tell), form)
    if form.many or plain_name(ids[0]) not in NAMES["id"]:
        ids = of("id", lambda value: isinstance(value, str | int))
    if "id" not in roles.values() and len({repr(first_of(item, ids)) for item in heads}) < len(heads):
        ids = ()
    right = () if right == choice_form.truth else right
    if form.whole:
        ids, source, reference = ("id",), ("source",), ("reference", "references")
        right = right if "answer" in roles.values() else ()
    sides = {"source": source, "reference": reference, "right": right, "id": ids}
    return sides | {"truth": choice_form.truth, "by_index": choice_form.by_index, "ordinal": choice_form.ordinal}


def _with_truth(form: Roles, objects: Sequence[Object], key: str, roles: Mapping[str, str]) -> Roles | None:
    """The form with the key that names the candidate that is right; None where it does not, or always names the first
    one, which a program has chosen.

    Numbers are places where the name says so or the candidates are options; else whole numbers of JSON are, but under
    names of right answers: these, and counts of the right samples, are numbers too.
    """
    values = [item.get(key) for item in objects]
    whole = sum(map(is_whole, values))
    plain = sum(isinstance(value, int) for value in values)
    by_index = key in roles or form.many in OPTIONS or INDEX_KEY.search(key) is not None
    by_index |= 2 * plain > len(values) and plain_name(key) not in {*NAMES["answer"], "correct"}

    def read_as(*, ordinal: bool) -> tuple[Roles, list[int | None]]:
        how = replace(form, truth=(key,), by_index=by_index, ordinal=ordinal)
        every = [item[form.many] for item in objects]
        texts = [[text_in(form.text_of(entry)) for entry in entries] for entries in every]
        return how, list(map(how.place_of, values, texts, every))

    (how, indices), (other, from_1) = read_as(ordinal=False), read_as(ordinal=True)
    counts = [len(one) - one.count(None) for one in (indices, from_1)]
    unsure = counts[0] == counts[1] and indices != from_1 and key not in roles
    if roles[key] == "ordinal" if key in roles else counts[1] > counts[0]:
        how, indices, counts = other, from_1, counts[::-1]
    if counts[0] <= max(len(objects) / 2, MIN_INDEX_SHARE * whole - 1 if by_index else 0) or not any(indices):
        return None
    if unsure:
        log.warning("%r is the place of the right candidate, 0 for the first; if 1: --roles %s=ordinal", key, key)
    return how


def _with_columns(
    form: Roles, table: Mapping[str, JsonKey], roles: Mapping[str, str], extra_keys: Sequence[str], live: bool
) -> tuple[Roles, set[str]]:
    """The form with the gain and the columns of candidates, and the keys that are used of them; live: see
    ``roles_of``."""
    role_keys = {*form.inner, *extra_keys, *_SPECIAL} | (set() if form.many else form.outer)
    free = [key for name, key in table.items() if name in roles or not (name in role_keys or ID.search(name))]
    for key in free:
        if roles.get(key.name) == "column":
            _check_column(key)
    likely = {key.name for key in free if key.is_gain and not live}
    gain, gains = _gain(form, [key for key in free if key.name not in roles], roles, likely)
    likely |= {key.name for key in free if gain and key.may_be_gain}  # other words on what is right
    gain_keys = {*likely, *gains, *form.along, *form.along.values()}

    def name_of(key: JsonKey) -> str:
        """The name of the numbers of a key; empty if they are no column."""
        if key.name == gain:
            return GAIN
        if role := roles.get(key.name):
            return {"column": key.name, "base": SCORE}.get(role, "")
        if key.steady or key.name in gain_keys or (form.form and not key.along):
            return ""
        numbered = key.name in ("f1", "F1") and f"{key.name[0]}2" in table
        if (REFERENCE_BASED.search(key.name) and not numbered) or singular(key.name) in ANSWER_KEYS:
            return ""
        if not form.form and (singular(key.name) if key.along else key.name).lower() == SCORE and key.is_numeric():
            return SCORE
        steps = not key.along and has_steps(key.values)
        return key.name if key.is_numeric() or steps else ""

    columns = dict(form.columns)
    if GAIN in columns and gain != (reward := columns[GAIN][0]):  # a reward beside verdicts
        columns = {reward if name == GAIN else name: paths for name, paths in columns.items()}
    names = {key.name: name for key in free if (name := name_of(key))}
    if base := [key for key, role in roles.items() if role == "base"]:
        names |= {key: {SCORE: "other_score"}.get(key, key) for key in names if names[key] == SCORE and key not in base}
    inner = {key: name for key, name in names.items() if not table[key].along}
    columns |= {name: (f"{key}.0" if table[key].alone else key,) for key, name in inner.items()}
    lists = {**form.along, **{name: key for key, name in names.items() if key not in inner}}
    lists |= {name: name for name in extra_keys if name in table and table[name].along}
    omissions = set[str]()
    if form.whole:
        few = {key for key in {*NUMBERS} & table.keys() - roles.keys() if 2 * len(table[key].values) < table[key].of}
        others = table.keys() - {*names, *extra_keys, *_SPECIAL}
        omissions = few | {key for key in others if table[key].is_numeric("verdict")}
        # The numbers of a key that is often something else would else be sparse features, and yet said to be unused.
        omissions |= {key for key in others - role_keys - {*NUMBERS} if table[key].kinds["number"]}
        omissions |= {key for key, name in inner.items() if key != name}
        omissions |= {key for key, role in roles.items() if role == "unused"}
        columns = {name: paths for name, paths in columns.items() if paths[0] not in few
                   and (name != paths[0] or not {*table[name].kinds} <= {"number", "true or false"})}  # fmt: skip
    elif not form.form:
        columns |= {FINISH: (FINISH,)} if FINISH in table else {}
        answers = [name for name, key in table.items() if singular(name) in ANSWER_KEYS and not key.is_mostly(*_LISTS)
                   and roles.get(name, "answer") == "answer"]  # fmt: skip
        own = [name for name in answers if not (table[name].steady or table[name].along)
               and name not in {*form.text, *form.right}]  # fmt: skip
        columns |= {"answer": tuple(sorted(own, key=lambda name: ANSWER_KEYS.index(singular(name))))} if own else {}
        beside = [name for name in answers if table[name].along and not own]
        lists |= {"answer": beside[0]} if beside else {}
    columns |= {{"gain": GAIN, "base": SCORE}.get(role, path): (path,) for path, role in roles.items()
                if "." in path and role in ("gain", "base", "column")}  # fmt: skip
    form = replace(form, columns=columns, along=lists, omissions=frozenset(omissions), gains=gains)
    role_keys = {*form.inner, *extra_keys, *lists.values()} | (set() if form.many else form.outer)
    return form, role_keys | ({*_SPECIAL, *names} - omissions if form.whole else set())


def _check_column(key: JsonKey) -> None:
    """Say which values of a column that the user names are no numbers. Raises Problem where most are none."""
    if key.is_mostly("text", "object", *_LISTS[:2], *_INDIRECT) and not has_steps(key.values):
        message = f"found {show(key.values[0])} under {key.name!r}; expected numbers in a column, as 1234.5"
        message += f"; of an object: --roles {key.path}=column" * (key.path != key.name)
        raise Problem("columns", message)
    kinds = str if key.alone or has_steps(key.values) else str | dict | list
    odd = [value for value in key.values if isinstance(value, kinds) and not isinstance(as_number(value), int | float)]
    if odd:
        message = "%r: %d of %d values are no numbers, as %s: 0 for these, or, where nearly all lists have it, bad"
        log.warning(message, key.name, len(odd), len(key.values), show(odd[0]))


def _gain(
    form: Roles, keys: Sequence[JsonKey], roles: Mapping[str, str], gain_names: set[str]
) -> tuple[str, tuple[str, ...]]:
    """The key of the gain, empty where nothing is sure to be one, and those that could be it; gain_names: as gains are.

    Of keys that say the same of every candidate, the first is.
    """
    if own := [key for key, role in roles.items() if role == GAIN]:
        return own[0], ()
    likely = [key.name for key in keys
              if (key.is_numeric("verdict") if key.name in gain_names else key.is_mostly("verdict"))]  # fmt: skip
    if GAIN in likely:
        return GAIN, ()
    if GAIN in form.columns and len(likely) != 1:
        return form.columns[GAIN][0], ()
    numbers = {repr([*map(as_number, key.values)]) for key in keys if key.name in likely}
    unsure = likely or [key.name for key in keys if key.may_be_gain]
    return (likely[0], ()) if len(numbers) == 1 else ("", tuple(unsure))


def _with_leftovers(
    form: Roles, table: Mapping[str, JsonKey], lists: Sequence[Object], role_keys: set[str], roles: Mapping[str, str]
) -> Roles:
    """The form with the keys that have no role; role_keys: those that are used of candidates."""
    without = [key for name, key in table.items() if name not in role_keys and not (key.along and name in form.outer)]
    paths = {key for key, role in roles.items() if role != "unused"}.union(form.text, *form.columns.values())
    for group in (key for key in table.values() if key.is_mostly("object", "object of numbers")):
        own = {f"{group.name}.{name}": key for name, key in all_keys(group.values).items()}
        if group.name in form.text or not paths.isdisjoint(own):
            rest = ((path, one) for path, one in own.items() if path not in paths and one.is_numeric("verdict"))
            without += [replace(one, name=path, steady=not differ(one.values)) for path, one in rest]
    unused_keys = {key.name: str(key) for key in without}
    for name, key in all_keys(lists if form.many else ()).items():
        if name not in form.outer and not (name in table and table[name].along):
            unused_keys[name] = f"{key} lists"
    doubtful = [key.path for key in without
                if not (form.form or key.steady or ID.search(key.name) or key.name in _SERVER_KEYS
                        or {*roles, *form.gains}.intersection((key.name, key.path)))
                and (key.is_numeric(*_INDIRECT, share=0.5) or has_steps(key.values))]  # fmt: skip
    plain = form.whole and not (form.columns or form.along or form.omissions or form.truth or form.right) and all(
        isinstance(entry, str) or (isinstance(entry, dict) and "text" in entry)
        for entry in entries_of(lists, form.many))  # fmt: skip
    return replace(form, plain=plain, unused_keys=unused_keys, doubtful=tuple(doubtful))
