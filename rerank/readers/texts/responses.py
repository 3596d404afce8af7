"""Lists in JSON objects of other programs: in a response within an object, beside one another, in the only object of a
file, or rows that have something in common.
"""

import ast
import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from rerank.readers.lines import LineReader
from rerank.readers.problems import Problem, say_once
from rerank.readers.texts.answers import Grader
from rerank.readers.texts.forms import OPTIONS, Object, Roles, as_number, first_of, is_of, text_in
from rerank.readers.texts.json_lines import show
from rerank.readers.texts.keys import (
    HOLDERS,
    ID,
    NAMES,
    NUMBERED_TEXTS,
    RIGHT_ANSWERS,
    TEXT_KEYS,
    are_candidates,
    differ,
    entries_of,
    keys_of,
    likely_keys,
    majority,
    plain_name,
    singular,
)
from rerank.readers.texts.roles import WORDS, known_form, of_rows, roles_of

REQUIRED_ROLES = "candidates", "text", "group", "source", "base"  # in use; a column that is missing is refused
COLUMN_HOLDERS = {*NAMES["candidates"], *OPTIONS}.difference((*RIGHT_ANSWERS, "texts", "text"))  # of columns, or a text
LISTS = {"candidates", "nbest", "hypotheses", "hyps", "alternatives", "beams"}  # which hold those of a list alone
_NUMBERED_KEY = re.compile(r"(.+?)(?:[_ ]?(\d{1,3})|[_ ]([a-eA-E]))")


def as_lists(
    objects: Iterable[tuple[int, Object | Problem]], user_roles: Mapping[str, str], lines: LineReader, rule: str | None,
    extra_keys: Sequence[str], look: int, live: bool = False,
) -> Iterator[tuple[int, Object | Problem]]:  # fmt: skip
    """Objects as lists of the format ``jsonl``. Rows of one list may be anywhere: those that have something in common
    are kept to the end.

    user_roles: those of keys, by the user; lines: those of the objects, which then have the roles. rule: for answers.
    extra_keys: what else is kept of candidates. look: how many objects tell the roles. live: see ``roles_of``.
    """

    def unwrap(items: Iterable[tuple[int, Object | Problem]]) -> Iterator[tuple[int, Object | Problem]]:
        several = ((number, one) for number, item in items for one in _split_lists(item))
        return ((number, _with_index_keys(_unwrap_response(one, user_roles))) for number, one in several)

    rest = unwrap(objects)
    head, sound, roles = list[tuple[int, Object | Problem]](), list[Object](), lines.traits.get("roles")
    while roles is None and len(sound) < look and (entry := next(rest, None)) is not None:
        head.append(entry)
        sound += [] if isinstance(entry[1], Problem) else [entry[1]]
    if len(sound) == 1 and (lists := _lists_in(sound[0], user_roles))[0] is not sound[0]:
        beyond = list(islice(rest, 1))
        rest = chain(beyond, rest)
        if not beyond:
            if lists in sound[0].values() and (leftovers := [key for key, one in sound[0].items() if one is not lists]):
                say_once(f"{lines.path}: one object holds all lists; not used of it: {', '.join(leftovers)}")
            head = [*unwrap((number, one) for number, item in head for one in (lists if item is sound[0] else [item]))]
            sound = [item for _, item in head if not isinstance(item, Problem)]
            lines.traits["by_line"] = False
    try:
        roles = roles_of(sound, user_roles, extra_keys, live=live) if sound else roles
    except Problem as problem:
        yield from ((number, problem) for number, _ in chain(head, rest))
        return
    plain = live and any("candidates" in item for item in sound)  # in use, lists that need no roles
    required = REQUIRED_ROLES if live else WORDS[:-1]
    renames = user_roles if live else {key: role for key, role in user_roles.items() if key != role}  # names say it
    for key, role in _missing(sound, renames, required).items() if user_roles and sound and not plain else ():
        where = "training" if live else "roles"
        message = f"{key!r} is missing, the {role} in {where}; if it has another name: --roles NAME={role}"
        say_once(f"{lines.path}: {message}", logging.WARNING)
    rights = (first_of(item, roles.right) for item in sound) if roles is not None else ()
    grader = Grader(rule, [right for right in rights if right is not None])
    if roles is not None:
        lines.traits.setdefault("roles", replace(roles, rule=grader.rule))
    groups = dict[str, tuple[int, Roles, list[Object]]]()
    for number, item in chain(head, rest):
        if isinstance(item, Problem) or roles is None or (roles.plain and "candidates" in item):
            yield number, item
            continue
        own = roles if roles.fits(item) else known_form([item]) if "candidates" not in item else None
        shared = (own or roles).shared(item)
        if shared and (own is not None or roles.group):  # a row that lacks something is a bad candidate of its list
            groups.setdefault(shared, (number, own or roles, []))[2].append(item)
        elif own is None and "candidates" not in item and (lacking := roles.lacking(item) or "") != "candidates":
            how = "expected a list" if lacking == roles.many else "unlike in most objects"
            how = "fill in what merged cells leave empty, or remove the row" if lacking in roles.group else how
            yield number, Problem("text", f"found {show(item.get(lacking))} under {lacking!r}, {how}")
        else:
            yield number, item if own is None else _make_list(own, [item], grader, extra_keys)
    judged = None if live else _judged([*groups.values()], {*user_roles, *extra_keys})
    for number, form, rows in groups.values():
        same = [row for row in rows if repr(row.get("filter")) == repr(rows[0].get("filter"))]
        yield number, judged or _make_list(form, same, grader, extra_keys)
    grader.say(lines.path)


def _judged(groups: Sequence[tuple[int, Roles, list[Object]]], named: set[str]) -> Problem | None:
    """The problem of rows of which several have each text of a list: of judges, if each has several texts; named: the
    keys that the user knows."""
    rows = [(k, form, row) for k, (_, form, every) in enumerate(groups) for row in every if not form.form]
    own = [(k, first_of(row, form.text)) for k, form, row in rows]
    texts = [(k, text if isinstance(text, str) else repr(text)) for k, text in own]
    if min(Counter(texts).values(), default=1) == 1:
        return None
    keys = keys_of(row for *_, row in rows)
    pairs = {key: [(k, repr(row.get(key))) for k, _, row in rows] for key in keys}
    tell = [key for key in keys if len({*zip(texts, pairs[key], strict=True)}) == len(rows) > len({*pairs[key]})]
    if not tell or not named.isdisjoint(tell):
        return None
    message = f"each text stands in several rows of its list, one for each {tell[0]!r}; if these are judgements of one "
    message += f"candidate, write them into one row; if they are candidates, say --roles {tell[0]}=unused"
    return Problem("text", message)


def _missing(objects: Sequence[Object], roles: Mapping[str, str], needs: Sequence[str]) -> dict[str, str]:
    """The keys, of those with a role in ``needs``, that objects lack."""
    every = [*objects, *chain.from_iterable(entries_of([item], key) for item in objects for key in keys_of([item])
             if isinstance(item[key], list))]  # fmt: skip
    had = set(keys_of(every))
    lacking = {key: role for key, role in roles.items() if role in needs and not had & {key, key.partition(".")[0]}}
    return {key: role for key, role in lacking.items() if role == "candidates"} or lacking


def _split_lists(item: Object | Problem) -> Sequence[Object | Problem]:
    """The lists in an object, of a document or a recording, each with what is said of all; else itself."""
    if isinstance(item, Problem) or "candidates" in item:
        return [item]
    keys = [key for key, entries in item.items() if is_of(entries, [dict])
            and any(plain_name(name) in LISTS and are_candidates(one) for entry in entries[:3]
                    for name, one in entry.items())]  # fmt: skip
    rest = {key: value for key, value in item.items() if key not in keys}
    return [{**rest, **entry} for entry in item[keys[0]]] if len(keys) == 1 else [item]


def _unwrap_response(item: Object | Problem, roles: Mapping[str, str]) -> Object | Problem:
    """An object, or the response in it that holds the candidates; paths that have a role become keys of its own."""
    if isinstance(item, Problem):
        return item
    paths, item = [key for key in roles if "." in key], _parse_lists(item, roles)
    item = {**item, **{at: found for at in paths if (found := first_of(item, (at,))) is not None}} if paths else item
    if "candidates" in item or known_form([item]):
        return item
    item = {key: ((plain_name(key) in COLUMN_HOLDERS or roles.get(key) == "candidates")
                  and (_entries_by_name(value) or (not _rows_of(item) and _rows_of(value)))) or value
            for key, value in _list_numbered(item, roles).items()}  # fmt: skip
    if "custom_id" in item and "response" in item:
        body = first_of(item, ("response.body",))
        if isinstance(body, dict) and not body.keys().isdisjoint(("choices", "output")):
            return {**body, "id": item["custom_id"]}
        error = first_of({**item, "of": body}, ("error.message", "error", "of.error.message", "of.error"))
        return Problem("text", f"the request has no response: {show(error)}; send it again")
    within = {key: opened for key, value in item.items()
              if isinstance(value, dict) and plain_name(key) not in RIGHT_ANSWERS
              and (opened := _response_in(value)) is not None}  # fmt: skip
    if len(within) == 1:
        ((name, response),) = within.items()
        rest = {key: value for key, value in item.items() if key != name}
        if not any(plain_name(key) in TEXT_KEYS or are_candidates(value) for key, value in rest.items()):
            conflicts = {f"{name}.{key}": value for key, value in response.items() if rest.get(key, value) != value}
            return {**response, **conflicts, **rest}
    return item


def _parse_lists(item: Object, roles: Mapping[str, str]) -> Object:
    """An object whose candidates are one text, as in a cell of a table, that is a list in JSON or as Python shows it,
    with the lists of theirs and of what is as long."""
    texts = {key: text for key, text in item.items() if isinstance(text, str) and text[:1] == "["}
    holders = [key for key in texts if plain_name(key) in COLUMN_HOLDERS or roles.get(key) == "candidates"]
    lists = dict[str, list[Any]]()
    for key, text in texts.items() if holders else ():
        for parse in json.loads, ast.literal_eval:
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                if parse is json.loads or repr(parse(text)) == text:  # Python joins what numpy writes without commas
                    lists[key] = parse(text)
    sizes = [len(lists[key]) for key in holders if are_candidates(lists.get(key))]
    return item | {key: one for key, one in lists.items() if len(one) in sizes} if sizes else item


def _response_in(value: Any) -> Object | None:
    """The object in a response that holds the candidates; None where none does, or several."""
    if isinstance(value, list) and len(value) == 1:
        return _response_in(value[0])
    if not isinstance(value, dict) or _holds_candidates(value):
        return value if isinstance(value, dict) else None
    objects = [one for one in map(_response_in, value.values()) if one is not None]
    return objects[0] if len(objects) == 1 else None


def _holds_candidates(value: Any) -> bool:
    return isinstance(value, dict) and any(plain_name(key) in HOLDERS and are_candidates(value[key]) for key in value)


def _list_numbered(item: Object, user_roles: Mapping[str, str]) -> Object:
    """An object whose candidates stand beside one another, as ``response_1`` and ``response_2`` or ``output_a`` and
    ``output_b``, with a list of them, each with all that has its number or letter, and the place of the one that is
    right."""
    parts = {
        key: (found[1], (found[2] or found[3]).lower()) for key in item
        if (key[-1:].isdecimal() or key[-2:-1] in ("_", " ")) and (found := _NUMBERED_KEY.fullmatch(key))
    }  # fmt: skip
    own_texts = {plain_name(key) for key, role in user_roles.items() if role == "text"}
    counts = Counter(name for name, _ in parts.values() if plain_name(name) in NUMBERED_TEXTS | own_texts)
    text = next((name for name, count in counts.items() if count > 1), "")
    if not text or not (TEXT_KEYS | own_texts | HOLDERS | {plain_name(text)}).isdisjoint(map(plain_name, item)):
        return item
    full = [part for key, part in parts.items() if item[key] is not None]
    labels = {label for name, label in parts.values() if name == text}
    others = {name for name, label in full if label not in labels}
    entries = {label: Object() for name, label in full if name == text}
    own = [(key, name, label) for key, (name, label) in parts.items() if name not in others]
    longer: defaultdict[str, list[str]] = defaultdict(list)  # by what precedes an underscore or a space
    for key in item:
        for mark in re.finditer("[_ ]", key):
            longer[key[: mark.start()]].append(key)
    own += [(other, other[len(key) + 1 :], label) for key, name, label in own if name == text
            for other in longer[key]]  # fmt: skip
    for key, name, label in own:
        if label in entries:
            entries[label][name] = item[key]
    part_keys = {key for key, name, label in own if name == text or label in entries}
    rest = {key: value for key, value in item.items() if key not in part_keys}
    for key in [key for key in rest if user_roles.get(key) == "truth"] or likely_keys("truth", rest):
        number, label = as_number(rest[key]), str(rest[key]).lower().rpartition("_")[2]
        if isinstance(number, float) and number.is_integer():
            rest[key] = int(number)  # which may count from 0, or say that none is right
        elif label in entries and not isinstance(number, int):
            rest[key] = text_in(entries[label][text])
    return {**rest, f"{text}_*": list(entries.values())}


def _with_index_keys(item: Object | Problem) -> Object | Problem:
    """An object whose candidates that are lists of a text and numbers are objects, with their places as keys."""
    if isinstance(item, Problem) or "columns" in item:  # the names of what stands in rows
        return item
    lists = dict[str, list[Object]]()
    for key, entries in item.items():
        rows = entries if is_of(entries, [list]) and not any(isinstance(text_in(one), str) for one in entries) else []
        if rows and all(any(isinstance(text_in(part), str) for part in row[:2]) for row in rows):
            lists[key] = [{str(index): part for index, part in enumerate(row)} for row in rows]
    return {**item, **lists} if lists else item


def _entries_by_name(entries: Any) -> list[Object]:
    """Candidates that stand under the names of systems, or under their numbers; none where no texts are in all."""
    several = isinstance(entries, dict) and is_of([*entries.values()], [dict])
    texts = several and all(likely_keys("text", one) for one in entries.values())
    return [{"id": name, **one} for name, one in entries.items()] if texts else []


def _rows_of(columns: Any, user_roles: Container[str] = ()) -> list[Object]:
    """The rows whose columns stand under their names, as pandas and data sets write them; none where they do not. Those
    of texts get the name of one, unless ``user_roles`` has theirs."""
    if not isinstance(columns, dict):
        return []
    names, data, every = columns.get("columns", ()), columns.get("data", ()), [*columns.values()]
    if is_of(names, [str]) and is_of(data, [list]):
        return [dict(zip(names, row, strict=False)) for row in data]
    if is_of(every, [dict]) and all(one.keys() == every[0].keys() for one in every):  # by the rows' index
        every = [[*one.values()] for one in every]
    if len(every) < 2 or not is_of(every, [list]) or len({*map(len, every)}) > 1:
        return []
    of_all = zip(columns, every, strict=True)
    names = [singular(key) if is_of(one, [str]) and key not in user_roles else key for key, one in of_all]
    return [dict(zip(names, row, strict=True)) for row in zip(*every, strict=True)]


def _lists_in(item: Object, user_roles: Container[str]) -> list[Object]:
    """The lists, or their candidates, that the only object of a file holds, or an object in it, in columns, under one
    key or by their ids; itself where its keys are those of one list."""
    rows = _rows_of(item, user_roles)
    group = of_rows(rows, {}) if likely_keys("group", filter(ID.search, keys_of(rows))) else None
    if _asks(rows) or (group and ID.search(group.group[0])):
        return rows
    if any(key in user_roles for key in item):
        return [item]
    every = [item, *(value for value in item.values() if isinstance(value, dict))]
    has_names = any(likely_keys(role, item) for role in NAMES)

    def are_lists(key: str, rows: Any) -> bool:
        if not is_of(rows, [dict]):
            return False
        form = not has_names and likely_keys("group", keys_of(rows)) and of_rows(rows, {})
        several = form and differ(first_of(row, form.group) for row in rows)
        asks = likely_keys("source", [singular(key)]) and all(any(map(are_candidates, one.values())) for one in rows)
        alone = not has_names and (asks or all(map(_response_in, rows)))
        return bool(known_form(rows) or _asks(rows) or several or alone)

    tables: list[list[Object]] = [rows for holder in every for key, rows in holder.items() if are_lists(key, rows)]
    if len(tables) == 1:
        return tables[0]
    by_ids = [holder for holder in every if majority(_holds_candidates(one) or (are_candidates(one) and (
        isinstance(one[0], dict) or (len(one) > 1 and not has_names))) for one in holder.values())]  # fmt: skip
    if len(by_ids) != 1 or sum((by_ids[0] is item, has_names, len(by_ids[0]) < 2)) > 1:  # what speaks against it
        return [item]
    lists = by_ids[0].items()
    systems = [one for _, several in lists
               if is_of(several, [dict]) and (_asks(several) or all(map(_holds_candidates, several)))
               for one in several]  # fmt: skip
    return systems or [{"id": key, **(one if isinstance(one, dict) else {"candidates": one})} for key, one in lists]


def _asks(entries: Sequence[Object]) -> bool:
    """Whether entries are about several questions, and so no candidates of one list."""
    keys = (key for key in likely_keys("source", keys_of(entries)) if plain_name(key) not in ("source", "context"))
    return any(differ(entry.get(key) for entry in entries) for key in keys)


def _make_list(roles: Roles, rows: list[Object], grader: Grader, extra_keys: Sequence[str]) -> Object | Problem:
    try:
        return roles.list_of(rows, grader, extra_keys)
    except Problem as problem:
        return problem
