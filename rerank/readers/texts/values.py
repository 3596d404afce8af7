"""Answers as values: what means the same has one form, however it is written, so that texts tell what is equal.

A value is a number, exact and without its unit, a tuple, an interval, a list, a set, an expression or words: 1,000 and
1e3 are 1000, \\frac12 is 0.5, 12\\frac{3}{5} is 12.6, x=5 is 5, and \\{2,1\\} is 1, 2.
"""

from decimal import MAX_PREC, Context, Decimal
from fractions import Fraction

import regex  # type: ignore[import-untyped] # unlike re, it can be told when to stop

LONGEST = 300  # characters of an answer that is looked into; a longer one is a number or a text
PLAIN = 30  # digits before or behind the point, from which on a number is written with an exponent
EXACT = Context(prec=MAX_PREC)

NUMBER = regex.compile(
    r"(?:(?<![\w.)])[-+−](?:\\?[$€£¥])?)?(?<![\w.])(?!0[xX][\da-fA-F])"
    r"(?:\d+(?:,\d+)*+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,4}(?!\d))?"
)
GROUPED = regex.compile(r"[^\d,]*+[1-9]\d{0,2}(?:,\d{3})++(?![\d,])")  # what commas in a number are for
VALUE = regex.compile(r"(?:(?:[a-z]=)?[\\{(\[]*-?\d[\d./]*(?:E[+-]\d+)?[\\)\]}]*(?:, |$))+")  # a form of numbers
WORD = regex.compile(r"(?<![\\\p{L}])(?:\p{L}{3,}|\p{L}\p{Ll})(?!\p{L})")
SPACE = regex.compile(r"(?:(?<!\\[a-zA-Z]+)\s+|\s+(?![a-zA-Z]))(?<!\d\s+(?=\d))")  # that parts nothing in a formula
_END = r"(?![a-zA-Z])"  # of a command
_SIGNS = str.maketrans(
    {"−": "-", "×": "*", "·": "*", "°": " ", "π": r"\pi ", "√": r"\sqrt ", "∞": r"\infty ", "∪": r"\cup ", "∈": r"\in "}
    | {"≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "²": "^2", "³": "^3"}
)
_ROWS = (
    (r"(?<=\d)\s*(?:\{\s*,\s*\}|,?\s*\\!|\\,)\s*(?=\d{3}(?!\d))", ""),
    (rf"\\(?:left|right|displaystyle|[bB]igg?[lr]?){_END}|\\?[$€£¥%]|(?<!\\)\\[()\[\]]", ""),
    (rf"(?<!\\)\\[,!;: ]|~|\\q?quad{_END}|\^\s*\{{?\s*\\circ{_END}\s*\}}?|\\degree{_END}", " "),
    (r"\\(?:text(?:bf|it|rm|normal|sf|tt)?|math(?:rm|bf|it|sf)|mbox|operatorname\*?)\s*\{([^{}]*)\}", r" \1 "),
    (rf"\\(?:cdot|times){_END}", "*"),
    (r"(?<=\d)\s*\*\s*10\s*\^\s*(?|\{\s*(-?\d{1,3})\s*\}|(\d{1,3})(?!\d))", r"e\1"),
    (r"(?<![\w.*^\\{])10\s*\^\s*(?|\{\s*(\d{1,3})\s*\}|(\d{1,3})(?![\d^]))", r"1e\1"),
    (r"\\[dtc]?frac\s*(?|\{\s*([^{}]+?)\s*\}|(\d))\s*(?|\{\s*([^{}]+?)\s*\}|(\d))", r"\\frac{\1}{\2}"),
    (r"\\[dtc]frac", r"\\frac"),
    (r"(?<![\w.,/}^])(\d[\d.,]*|[a-z]|\\pi)\s*/\s*(\d[\d.]*|[a-z])(?!\w|[./^])", r"\\frac{\1}{\2}"),
    (r"\\sqrt\s*(\w)", r"\\sqrt{\1}"),
    (r"([\^_])\s*\{\s*(\w)\s*\}", r"\1\2"),
    (rf"\\([lgn])eq{_END}", r"\\\1e "),
    (r"!=", r"\\ne "),
    (r"(?<=\d\s*(?:[cdk]?m| [ms]|ft|in|yd|feet|inches|units)) ?\^[23](?!\d)", ""),
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
_NAMED = regex.compile(
    r"((?:\([a-z](?:\s*,\s*[a-z])+\)|[a-zA-Z](?:_?\w)?)(?:\(-?\w+(?:[,|]\s*-?\w+)*\))?)\s*"
    rf"(?:=|\\(?:in|approx){_END})\s*"
)
_PART = r"(?<part>(?:[^,()\[\]{}]|(?&group))*+)"
_PARTS = regex.compile(rf"{_PART}(?:,{_PART})*+(?(DEFINE)(?<group>[(\[{{](?:[^()\[\]{{}}]|(?&group))*+[)\]}}]))")
_BRACKETED = regex.compile(r"(\\?\{|[(\[])(.*?)(\\?\}|[)\]])")


def plain(text: str) -> str:
    """The form of an answer: equal for answers that mean the same."""
    text = " ".join(text.split())
    if NUMBER.fullmatch(text) and ("," not in text or GROUPED.match(text)):
        return _written(Decimal(text.translate(str.maketrans("−", "-", ",\\$€£¥"))))
    return text if len(text) > LONGEST or '"' in text else _value(cleaned(text)) or text


def cleaned(text: str) -> str:
    """A text without commands that only change its looks, and with one command for those that mean the same."""
    text = text.translate(_SIGNS)
    for look, form in _LOOKS:
        text = look.sub(form, text)
    return text


def parted(text: str) -> list[str]:
    """The parts between commas that are in no brackets; none if brackets are not closed."""
    if regex.search(r",\s", text):  # by which others are told from those that group digits
        text = regex.sub(
            r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!\d|,\d)", lambda number: number[0].replace(",", ""), text
        )
    found = _PARTS.fullmatch(text)
    return list(found.captures("part")) if found else []


def _value(text: str) -> str:
    """The form of a text that is cleaned."""
    text = text.lstrip(" ,;:*`").rstrip(" .,;:*`")
    if number := _number(text):
        return number
    if len(parts := parted(text)) > 1:
        names = {named[1] for part in parts if (named := _NAMED.match(part.strip()))}
        items = list(map(_expression if len(names) > 1 else _value, parts))
        return ", ".join(items if WORD.search(text) else sorted(items))
    if named := _NAMED.match(text):
        return _value(text[named.end() :].rpartition("=")[2])
    if (exact := text.partition(r"\approx")[0]) not in ("", text):
        return _value(exact)
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed and (items := list(map(_value, parted(bracketed[2])))):
        opening, inside, closing = bracketed.groups()
        if opening == "{" or (opening == "\\{" and len(items) > 1):
            return _value(inside)
        if len(items) > 1 or opening == "\\{":
            return f"{opening}{', '.join(items)}{closing}"
        if VALUE.fullmatch(items[0]) or (len(items[0]) == 1 and items[0].isupper()):
            return items[0]
    return _expression(text)


def _number(text: str) -> str:
    """The form of a number; empty for what is none."""
    if (found := _RATIONAL.fullmatch(text)) is None:
        return ""
    sign, whole, over, under, number = found.groups()
    value = Fraction((over or number).replace(",", ""))
    if under:
        divisor = Fraction(under.replace(",", ""))
        if not divisor or (whole and not 0 <= value < divisor):
            return ""
        value = int(whole or 0) + value / divisor
    value = -value if sign == "-" else value
    places = value.denominator.bit_length()  # more than it has where these come to an end
    digits, rest = divmod(value.numerator * 10**places, value.denominator)
    return str(value) if rest else _written(Decimal(digits).scaleb(-places, EXACT))


def _written(number: Decimal) -> str:
    number = EXACT.normalize(number)
    return "0" if not number else f"{number:f}" if abs(number.adjusted()) < PLAIN else str(number)


def _expression(text: str) -> str:
    """The form of what is no number."""
    text = SPACE.sub("", text) if regex.search(r"[\d\\^_=+*/<>|{}]", text) else text.strip()
    return str(regex.sub(r"^\\frac\{-", r"-\\frac{", text.casefold() if WORD.search(text) else text))
