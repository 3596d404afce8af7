"""The answers of candidates: rules that find the answer in a text, so that texts which say the same can vote together.

| rule            | the answer |
|-----------------|------------|
| `boxed`         | what the last ``\\boxed{...}`` holds |
| `last-number`   | the box or, without one, the last number, with the fraction, point or formula that it is part of |
| `letter`        | the box or the last letter from A to E that stands alone: "(B)", "**B**"; `letter:J`: from A to J |
| `text`          | the box or the whole text, without its case and the punctuation around it |
| `json:KEY`      | the value of KEY in the last JSON object that has it: a text, or JSON with sorted keys |
| `regex:PATTERN` | the first group that is not empty (without groups, the whole) of the pattern's last match |
| `math-verify`   | the expression that math-verify finds (extra `math`), simplified: (x+2)/7 is x/7+2/7 |

Answers are values: numbers, exact and without their units (1,000 and 1e3 are one answer, so are \\frac12, 1/2 and 0.5),
tuples, intervals, lists, sets, letters, expressions as they are written, or words, whose case does not matter.
"""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from decimal import MAX_PREC, Context, Decimal
from fractions import Fraction
from functools import cache, partial
from importlib.util import find_spec
from math import prod
from typing import Any

import regex  # type: ignore[import-untyped] # unlike re, it can be told when to stop

from rerank.base.errors import RecipeError
from rerank.storage.documents import as_json

MAX_ANSWER = 300  # characters of an answer that is looked into; a longer one is a number or a text
PLAIN_DIGITS = 30  # digits before or behind the point, from which on a number is written with an exponent
EXACT_CONTEXT = Context(prec=MAX_PREC)

NUMBER = regex.compile(
    r"(?:(?<![\w.)])[-+−](?:\\?[$€£¥])?)?(?<![\w.])(?!0[xX][\da-fA-F])"
    r"(?:\d+(?:,\d+)*+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,4}(?!\d))?"
)
GROUPED = regex.compile(r"[^\d,]*+[1-9]\d{0,2}(?:,\d{3})++(?![\d,])")  # what commas in a number are for
VALUE = regex.compile(r"(?:(?:[a-z]=)?[\\{(\[]*-?\d[\d./]*(?:E[+-]\d+)?[\\)\]}]*(?:, |$))+")  # a form of numbers
WORD = regex.compile(r"(?<![\\\p{L}])(?:\p{L}{3,}|\p{L}\p{Ll})(?!\p{L})")
SPACE = regex.compile(r"(?:(?<!\\[a-zA-Z]+)\s+|\s+(?![a-zA-Z]))(?<!\d\s+(?=\d))")  # that parts nothing in a formula
_END = r"(?![a-zA-Z])"  # of a command
_FRACTIONS = str.maketrans({"½": r"\frac12", "⅓": r"\frac13", "⅔": r"\frac23", "¼": r"\frac14", "¾": r"\frac34"})
_SIGNS = _FRACTIONS | str.maketrans(
    {"−": "-", "×": "*", "·": "*", "°": " ", "π": r"\pi ", "√": r"\sqrt ", "∞": r"\infty ", "∪": r"\cup ", "∈": r"\in "}
    | {"≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "²": "^2", "³": "^3"}
)
_ROWS = (
    (r"(?<=\d)\s*(?:\{\s*,\s*\}|,?\s*\\!|\\,)\s*(?=\d{3}(?!\d))", ""),
    (r"(?<=(?<![\d.,] ?)[1-9]\d{0,2}(?:\p{Zs}\d{3})*)\p{Zs}(?=\d{3}(?:\p{Zs}\d{3})*+(?![\d/]|\p{Zs}\d|,\d))", ""),
    (rf"\\(?:left|right|displaystyle|[bB]igg?[lr]?){_END}|\\?[$€£¥%]|(?<!\\)\\[()\[\]]", ""),
    (rf"(?<!\\)\\[,!;: ]|~|\\q?quad{_END}|\^\s*\{{?\s*\\circ{_END}\s*\}}?|\\degree{_END}", " "),
    (
        r"\\(?:text(?:bf|it|rm|normal|sf|tt)?|math(?:rm|bf|it|sf)|mbox|boldsymbol|operatorname\*?)\s*\{([^{}]*)\}",
        r" \1 ",
    ),
    (rf"\\(?:cdot|times){_END}", "*"),
    (r"(?<=\d)\s*\*\s*10\s*\^\s*(?|\{\s*(-?\d{1,3})\s*\}|(\d{1,3})(?!\d))", r"e\1"),
    (r"(?<![\w.*^\\{])10\s*\^\s*(?|\{\s*(\d{1,3})\s*\}|(\d{1,3})(?![\d^]))", r"1e\1"),
    (r"\\[dtc]?frac\s*(?|\{\s*([^{}]+?)\s*\}|(\d))\s*(?|\{\s*([^{}]+?)\s*\}|(\d))", r"\\frac{\1}{\2}"),
    (r"\\[dtc]frac", r"\\frac"),
    (r"(?<![\w.,/}^])(\d[\d.,]*|(?<!\d\s+)[a-z]|\\pi)\s*/\s*(\d[\d.]*|[a-z])(?!\w|[./^])", r"\\frac{\1}{\2}"),
    (r"\\sqrt\s*(\w)", r"\\sqrt{\1}"),
    (r"([\^_])\s*\{\s*(\w)\s*\}", r"\1\2"),
    (rf"\\([lgn])eq{_END}", r"\\\1e "),
    (r"!=", r"\\ne "),
    (r"(?<=[\d}]\s*(?:[cdk]?m| [ms]| m/s|ft|in|yd|feet|inches|units)) ?\^[23](?!\d)", ""),
    (r"(?<=[\d)}])\s*,?\s+(?:and|or)\s+(?=[-\d\\(])", ", "),
    (r"\s+", " "),
)
_LOOKS = [(regex.compile(look), form) for look, form in _ROWS]
_DECIMAL = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_UNIT = (
    rf"\s*(?:(?:[cmdk]?m|[mk]?g|km/?h|m[lL]|min|hr|ft|in|lbs?|oz|mph|pct){_END})?"
    r"(?:[\s/]+(?!(?i:and|or|to|of|pi|[mbtr]+illion|thousand|hundred|dozen|times|[ap]m|mod|squared|cubed|factorial)\b)"
    r"(?:\p{L}{2,}|[mghsL]\b)\.?)*"
)
_RATIONAL = regex.compile(
    rf"([-+]?)\s*(?:(\d+)\s*(?=\\frac))?(?:\\frac\{{(-?{_DECIMAL})\}}\{{({_DECIMAL})\}}|"
    rf"({_DECIMAL}(?:[eE][-+]?\d{{1,3}})?)){_UNIT}"
)
_NAME = regex.compile(
    r"((?:\([a-z](?:\s*,\s*[a-z])+\)|[a-zA-Z](?:_?\w)?)(?:\(-?\w+(?:[,|]\s*-?\w+)*\))?)\s*"
    rf"(?:=|\\(?:in|approx){_END})\s*"
)
_PART = r"(?<part>(?:[^,()\[\]{}]|(?&group))*+)"
_PARTS = regex.compile(rf"{_PART}(?:,{_PART})*+(?(DEFINE)(?<group>[(\[{{](?:[^()\[\]{{}}]|(?&group))*+[)\]}}]))")
_BRACKETS = regex.compile(r"(\\?\{|[(\[])(.*?)(\\?\}|[)\]])")


def plain(text: str) -> str:
    """The form of an answer: equal for answers that mean the same."""
    text = " ".join(text.split())
    if NUMBER.fullmatch(text) and ("," not in text or GROUPED.match(text)):
        return _write(Decimal(text.translate(str.maketrans("−", "-", ",\\$€£¥"))))
    return text if len(text) > MAX_ANSWER or '"' in text else _value(clean(text)) or text


def clean(text: str) -> str:
    """A text without commands that only change its looks, and with one command for those that mean the same."""
    text = text.translate(_SIGNS)
    for look, form in _LOOKS:
        text = look.sub(form, text)
    return text


def split_parts(text: str) -> list[str]:
    """The parts between commas that are in no brackets; none if brackets are not closed."""
    if regex.search(r",\s|,0\d\d(?!\d)", text):  # by which others are told from those that group digits
        text = regex.sub(
            r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!\d|,\d)", lambda number: number[0].replace(",", ""), text
        )
    match = _PARTS.fullmatch(text)
    return list(match.captures("part")) if match else []


def _value(text: str) -> str:
    """The form of a text that is ``clean``."""
    text = text.lstrip(" ,;:*`").rstrip(" .,;:*`").removeprefix(r"\approx").lstrip()
    name = _NAME.match(text)
    if number := _number(text) or (name and _number(text[name.end() :])):
        return number
    if len(parts := split_parts(text)) > 1:
        names = {name[1] for part in parts if (name := _NAME.match(part.strip()))}
        items = list(map(_expression if len(names) > 1 else _value, parts))
        return ", ".join(items if WORD.search(text) else sorted(items))
    if name:
        return _value(text[name.end() :].rpartition("=")[2])
    if (exact := text.partition(r"\approx")[0]) not in ("", text):
        return _value(exact)
    brackets = _BRACKETS.fullmatch(text)
    if brackets and (items := list(map(_value, split_parts(brackets[2])))):
        opening, inside, closing = brackets.groups()
        if opening == "{" or (opening == "\\{" and len(items) > 1):
            return _value(inside)
        if len(items) > 1 or opening == "\\{":
            return f"{opening}{', '.join(items)}{closing}"
        if VALUE.fullmatch(items[0]) or (len(items[0]) == 1 and items[0].isupper()):
            return items[0]
    return _expression(text)


def _number(text: str) -> str:
    """The form of a number; empty for what is none."""
    if (match := _RATIONAL.fullmatch(text)) is None:
        return ""
    sign, whole, over, under, number = match.groups()
    value = Fraction((over or number).replace(",", ""))
    if under:
        divisor = Fraction(under.replace(",", ""))
        if not divisor or (whole and not 0 <= value < divisor):
            return ""
        value = int(whole or 0) + value / divisor
    value = -value if sign == "-" else value
    decimals = value.denominator.bit_length()  # more than it has where these come to an end
    digits, rest = divmod(value.numerator * 10**decimals, value.denominator)
    return str(value) if rest else _write(Decimal(digits).scaleb(-decimals, EXACT_CONTEXT))


def _write(number: Decimal) -> str:
    number = EXACT_CONTEXT.normalize(number)
    return "0" if not number else f"{number:f}" if abs(number.adjusted()) < PLAIN_DIGITS else str(number)


def _expression(text: str) -> str:
    """The form of what is no number."""
    formula = regex.search(r"[\d\\^_=+*/<>|{}]|^\p{L}(?: - \p{L})+$", text)
    text = SPACE.sub("", text) if formula else text.strip()
    return str(regex.sub(r"^\\frac\{-", r"-\\frac{", text.casefold() if WORD.search(text) else text))


PATTERN_SECONDS = 1.0  # that a pattern may take with a text
MAX_PATTERN = 100_000  # characters, with repeated groups written out, as compiling does: each takes some 600 bytes
MAX_TRIES = 100  # brackets in a text that begin no JSON object, before it is taken to have none
MATH, MATH_SECONDS = "math-verify", 2  # that it may take to read an expression, and to simplify it
WINDOW = 200  # characters on either side of a number among which the formula is that it is part of
LAST_LETTER = "E"  # the last letter that may be an answer, unless a right one is behind it
EDGES = " .,;:!?*/='`\"“”#|_~<>"  # of formulas
OUTER = " .,;:!?…\"'`´“”„‘’«»*_()[]{}<>¡¿、。，；：！？（）「」『』【】《》"

BOX = regex.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", regex.DOTALL)
CHOICE = regex.compile(r"\W*([A-Z])(?:\W*|[).:]\s(?!.*\b[A-Z]\b).*)")  # a letter, and what it stands for
NO_ARTICLE = r"(?!(?<=[AI])\s+(?!(?:is|was|and|or|because|since|as)\b)[a-z])(?!\}?\s*[*^+]\s*\w)"
RUN = regex.compile(  # of what formulas are made of
    r"(?:\\[a-zA-Z]+ ?| (?=\\[a-zA-Z])|[(\[](?:\\[a-zA-Z]+|[^()\[\]\p{L}]|\b\p{L}\b)*+[)\]]|[\d.,(){}\[\]|\\_-]|"
    r"(?<=\d):(?=\d)|(?<!\p{L})(?!(?<=\d)[mghsL]\b)[a-zA-Z](?!\p{L})| ?[+*/<>^=] ?|"
    r" (?:\p{L}+illion|thousand|dozen)\b|(?<=[\d)}]|\b[a-z]) - (?=[\d(\\])|(?<== -) (?=\d))++"
)
VARIABLE = regex.compile(r"(?<![\\\p{L}])[a-zA-Z](?!\p{L})")
FORMULA = regex.compile(rf"[\\^_(\[{{]|\d:\d|\d \p{{L}}|{VARIABLE.pattern}")
NEWLINE = r"\\n(?!(?:abla|eq?|eg|ot|u)\b)"  # not a command
ESCAPES = regex.compile(rf'({NEWLINE}|\\(?:["\\/]|u[\da-fA-F]{{4}}|[rt](?![a-z])))|\\')  # of JSON, or what begins LaTeX

Finder = Callable[[str], str | None]


def _last(pattern: Any, text: str) -> str | None:
    answer = None
    for match in pattern.finditer(text, timeout=PATTERN_SECONDS):
        answer = next(filter(None, match.groups()), "") if pattern.groups else match[0]
    return answer


def _last_number(text: str) -> str | None:
    if (box := find_box(text)) is not None or (len(text) <= MAX_ANSWER and VALUE.fullmatch(plain(text))):
        return text if box is None else box
    text = regex.sub(r"(\\[a-zA-Z]+)(?=\d)", r"\1 ", regex.sub(NEWLINE, "\n", text).translate(_FRACTIONS))
    if not (numbers := list(NUMBER.finditer(text))):
        return None
    last, (start, end) = str(numbers[-1][0]), numbers[-1].span()
    line = text[max(start - WINDOW, 0) : start].rpartition("\n")[2] + text[start : end + WINDOW].partition("\n")[0]
    return _formula(clean(line)) or (last if "," not in last or GROUPED.match(last) else last.rpartition(",")[2])


def _formula(line: str) -> str:
    """The formula that the last number in a line is part of; empty if it stands alone, or in a calculation."""
    if not (numbers := list(NUMBER.finditer(line))):
        return ""
    start, end = numbers[-1].span()
    first, last = next(run.span() for run in RUN.finditer(line) if run.end() >= end)
    before, _, left = line[first:start].rpartition("=")
    left = f"{before}={left}" if VARIABLE.search(before) else left
    formula = (left.lstrip(EDGES) + line[start:end] + line[end:last].partition("=")[0]).rstrip(EDGES).rstrip("\\.")
    whole = len(formula) < WINDOW and split_parts(formula)
    return formula if whole and (FORMULA.search(formula) or VALUE.fullmatch(plain(formula))) else ""


def _letter(reach: str, text: str) -> str | None:
    if (box := find_box(text)) is not None:
        return letter_in(box) or box
    return _last(regex.compile(rf"(?<!\w['’]?)[A-{reach}](?!['’]?\w){NO_ARTICLE}"), text)


def letter_in(text: str) -> str:
    """The letter that a box or a right answer is; empty if it is none."""
    match = CHOICE.fullmatch(clean(text[:MAX_ANSWER]))
    return str(match[1]) if match else ""


def _text(text: str) -> str:
    if (box := find_box(text)) is not None:
        return box
    text = text.casefold().strip()
    inner = text.strip(OUTER)
    return f".{inner}" if inner[:1].isdigit() and f".{inner}" in text else inner


def find_box(text: str) -> str | None:
    starts, last, box = list[int](), -1, None  # where open braces begin, -1 for one that is no box
    for match in BOX.finditer(text):
        if match[0] == "{" or match[0].startswith(("\\boxed", "\\fbox")):
            starts.append(match.end() if len(match[0]) > 1 else -1)
        elif match[0] == "}" and starts and (start := starts.pop()) > last:
            last, box = start, text[start : match.start()]
    return box


def _of_json(key: str, text: str) -> str | None:
    text = ESCAPES.sub(lambda escape: escape[0] if escape[1] else "\\\\", text)
    values: list[Any] = [None]  # of the objects that have the key, also in others

    def note(item: dict[str, Any]) -> dict[str, Any]:
        values.extend(value for name, value in item.items() if name == key and value is not None)
        return item

    decoder = json.JSONDecoder(strict=False, parse_int=plain, parse_float=plain, object_hook=note)
    at, tries = text.find("{"), MAX_TRIES
    while at >= 0 and tries:
        try:
            at = decoder.raw_decode(text, at)[1]
        except (ValueError, RecursionError):
            at, tries = at + 1, tries - 1
        at = text.find("{", at)
    value = values[-1]
    if value is None or isinstance(value, str):
        return value
    return as_json(value, sort_keys=True, ensure_ascii=False, allow_nan=True)


def _simplify(text: str) -> str | None:
    """The expression that math-verify finds, as sympy writes it, simplified unless that takes too long."""
    from math_verify import parse
    from math_verify.errors import TimeoutException
    from math_verify.utils import timeout
    from sympy import Eq, nsimplify, simplify

    limit = MATH_SECONDS if threading.current_thread() is threading.main_thread() else None
    if len(text) <= MAX_ANSWER and "$" not in text and not WORD.search(clean(text)):
        text = f"${text}$"  # a formula
    expressions = parse(text, parsing_timeout=limit)
    if not expressions or isinstance(expressions[0], str):
        return expressions[0] if expressions else None
    value = expressions[0].rhs if isinstance(expressions[0], Eq) and expressions[0].lhs.is_Symbol else expressions[0]
    with suppress(Exception, TimeoutException):  # whatever sympy raises at what it cannot simplify
        value = timeout(limit)(lambda: simplify(nsimplify(value, rational=True)))() if limit else value
    return str(value) if str(value) not in ("nan", "zoo") else None


_FINDERS: dict[str, Finder] = {
    "boxed": find_box,
    "last-number": _last_number,
    "letter": partial(_letter, LAST_LETTER),
    "text": _text,
    MATH: _simplify,
}


@cache
def finder(rule: str) -> Finder:
    """The function that finds the answer in a text; None or an empty text where there is none.

    Raises
    ------
    RecipeError: not a rule, or one that needs what is not installed.
    """
    name, _, rest = rule.partition(":")
    if rule == MATH and find_spec("math_verify") is None:
        message = "math-verify is not installed: pip install 'rerank-nbest[math]'"
        raise RecipeError(message, key="data.answer")
    if rule in _FINDERS:
        return _FINDERS[rule]
    if name == "letter" and regex.fullmatch("[A-Z]", rest):
        return partial(_letter, rest)
    if name == "json" and rest:
        return partial(_of_json, rest)
    if name != "regex" or not rest:
        forms = f"expected {', '.join(_FINDERS)}, letter:J, json:KEY or regex:PATTERN"
        raise RecipeError(f"found {rule!r}; {forms}", key="data.answer")
    times = prod(max(int(most or least), 1) for least, most in regex.findall(r"\)\{(\d{1,9}),?(\d{0,9})", rest))
    if (length := times * len(rest)) > MAX_PATTERN:
        limit = f"expected at most {MAX_PATTERN:,}"
        raise RecipeError(f"found {rule!r}, {length:,} parts with groups repeated; {limit}", key="data.answer")
    try:
        return partial(_last, regex.compile(rest))
    except regex.error as error:
        raise RecipeError(f"found {rule!r}; expected a regular expression: {error}", key="data.answer") from None


def check_rule(rule: str | None) -> str | None:
    """``rule``, which may be None; a RecipeError if it is no rule."""
    if rule is not None:
        finder(rule if isinstance(rule, str) else repr(rule))
    return rule
