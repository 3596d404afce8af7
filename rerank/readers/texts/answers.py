"""The answers of candidates: rules that find the answer in a text, so that texts which say the same can vote together.

| rule            | the answer |
|-----------------|------------|
| `boxed`         | what the last ``\\boxed{...}`` holds, braces in it included |
| `last-number`   | the last number |
| `letter`        | the last letter from A to E that stands alone: "(B)", "**B**", "Answer: B" |
| `text`          | the whole text, without its case and the punctuation around it |
| `json:KEY`      | the value of KEY in the last JSON object of the text that has it: a text, or JSON with sorted keys |
| `regex:PATTERN` | the first group (without groups, the whole) of the pattern's last match |

What is a number as a whole is brought to one form, exactly: 1,000, 1000.0 and 1e3 are the same answer.
"""

import json
from collections.abc import Callable
from decimal import MAX_PREC, Context, Decimal
from functools import cache, partial
from typing import Any, TypeVar

import regex  # type: ignore[import-untyped] # unlike re, it can be told when to stop

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import RecipeError
from rerank.readers.nbest import NBestList
from rerank.readers.problems import Problem
from rerank.storage.strict_json import as_json

SECONDS = 1.0  # that a pattern may take with a text
LONGEST_PATTERN = 10_000  # parts, with repeated groups written out: each takes some 600 bytes
PARTS = regex.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*(?:,\d*)?\}|.", regex.DOTALL)  # of a pattern
TRIES = 100  # brackets in a text that begin no JSON object, before it is taken to have none
PLAIN = 30  # digits before or behind the point, from which on a number is written with an exponent
EXACT = Context(prec=MAX_PREC)
OUTER = " .,;:!?…\"'`´“”„‘’«»*_()[]{}<>"

NUMBER = regex.compile(
    r"(?:(?<![\w.)])[-+−](?:\\?[$€£¥])?)?(?<![\w.])(?!0[xX][\da-fA-F])"
    r"(?:\d+(?:,\d+)*+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,4}(?!\d))?"
)
GROUPED = regex.compile(r"[^\d,]*+\d{1,3}(?:,\d{3})++(?![\d,])")  # what commas in a number are for
CURRENCY = str.maketrans("−", "-", ",\\$€£¥")
LETTER = regex.compile(r"(?<![\w'’])[A-E](?![\w'’])")
BOX = regex.compile(r"\\boxed\s*\{|\\.|[{}]", regex.DOTALL)

N = TypeVar("N", bound=NBestList)
Finder = Callable[[str], str | None]


def plain(text: str) -> str:
    """A text with its white space brought to one form or, if it is a number, the way in which that is written most
    simply: equal for equal numbers."""
    text = " ".join(text.split())
    if not NUMBER.fullmatch(text) or ("," in text and not GROUPED.match(text)):
        return text
    number = EXACT.normalize(Decimal(text.translate(CURRENCY)))
    return "0" if not number else f"{number:f}" if abs(number.adjusted()) < PLAIN else str(number)


def _last(pattern: Any, text: str) -> str | None:
    found = None
    for match in pattern.finditer(text, timeout=SECONDS):
        found = match[1 if pattern.groups else 0]
    return found


def _last_number(text: str) -> str | None:
    found = _last(NUMBER, text)
    return found if found is None or "," not in found or GROUPED.match(found) else found.rpartition(",")[2]


def _without_punctuation(text: str) -> str:
    text = text.casefold().strip()
    inner = text.strip(OUTER)
    return f".{inner}" if inner[:1].isdigit() and f".{inner}" in text else inner


def _boxed(text: str) -> str | None:
    opened, last, found = list[int](), -1, None  # where open braces begin, -1 for one that is no box
    for match in BOX.finditer(text):
        if match[0] == "{" or match[0].startswith("\\boxed"):
            opened.append(match.end() if len(match[0]) > 1 else -1)
        elif match[0] == "}" and opened and (start := opened.pop()) > last:
            last, found = start, text[start : match.start()]
    return found


def _of_json(key: str, text: str) -> str | None:
    decoder = json.JSONDecoder(strict=False, parse_int=plain, parse_float=plain)
    at, tries, found = text.find("{"), TRIES, None
    while at >= 0 and tries:
        try:
            item, at = decoder.raw_decode(text, at)
            if (value := item.get(key)) is not None:
                written = as_json(value, sort_keys=True, ensure_ascii=False, allow_nan=True)
                found = value if isinstance(value, str) else written
        except (ValueError, RecursionError):
            at, tries = at + 1, tries - 1
        at = text.find("{", at)
    return found


_FINDERS: dict[str, Finder] = {
    "boxed": _boxed,
    "last-number": _last_number,
    "letter": partial(_last, LETTER),
    "text": _without_punctuation,
}


@cache
def finder(rule: str) -> Finder:
    """The function that finds the answer in a text; None or an empty text where there is none.

    Raises
    ------
    RecipeError: not a rule.
    """
    name, _, rest = rule.partition(":")
    if rule in _FINDERS:
        return _FINDERS[rule]
    if name == "json" and rest:
        return partial(_of_json, rest)
    if name != "regex" or not rest:
        expected = f"expected {', '.join(_FINDERS)}, json:KEY or regex:PATTERN"
        raise RecipeError(f"found {rule!r}; {expected}", key="data.answer")
    if (length := expanded_length(rest)) > LONGEST_PATTERN:
        expected = f"expected at most {LONGEST_PATTERN:,}"
        raise RecipeError(f"found {rule!r}, {length:,} parts with groups repeated; {expected}", key="data.answer")
    try:
        return partial(_last, regex.compile(rest))
    except regex.error as error:
        raise RecipeError(f"found {rule!r}; expected a regular expression: {error}", key="data.answer") from None


def expanded_length(pattern: str) -> int:
    """The number of parts of a pattern whose repeated groups are written out, as compiling does: (ab){3} has six."""
    lengths, group = [0], 0  # of the open groups, of the group that has just been closed
    for part in PARTS.findall(pattern):
        if part == "(":
            lengths.append(0)
        elif part == ")" and len(lengths) > 1:
            group = lengths.pop()
            lengths[-1] += group
            continue
        elif part[0] == "{" and len(part) > 1:
            times = max(map(int, regex.findall(r"\d{1,9}", part)), default=1)
            lengths[-1] += group * max(times - 1, 0)
            group *= max(times, 1)
            continue
        else:
            lengths[-1] += 1
        group = 0
    return sum(lengths)


def check_rule(rule: str | None) -> str | None:
    """``rule``, which may be None; a RecipeError if it is no rule."""
    if rule is not None:
        finder(rule if isinstance(rule, str) else repr(rule))
    return rule


def with_answers(nbest: N, rule: str | None) -> N:
    """A list with the answers that a rule finds in its candidates, besides those that it has already.

    Raises
    ------
    Problem: a pattern takes too long with a candidate.
    """
    if rule is None:
        return nbest
    answers = list(nbest.answers or [None] * len(nbest))
    try:
        for y, text in enumerate(nbest.texts):
            if answers[y] is None and (found := finder(rule)(decoded(text))):
                answers[y] = encoded(plain(found)) or None
    except TimeoutError:
        message = f"{rule!r} takes more than {SECONDS:g} s with a candidate; expected a pattern that ends sooner"
        raise Problem("answer", message).at(nbest.id, nbest.path, nbest.line) from None
    return nbest.changed(answers=answers)
