"""Templates: frozen options, a scope, and a kernel that writes symbols for places; named sets of them; and the constant
symbols that they write: separators, flags, numbers and bins, as hashes with their texts.

A mark's hash is that of its text, so a name is rendered from the same symbols that were hashed. A mark that may appear
in place of a label or word has brackets in its text, which no label or word of a tree can have.
"""

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import Checked, hints_of, number_of
from rerank.base.registry import Registry
from rerank.data.symbols import text_hash
from rerank.readers.lists import Lists

TEXTS: dict[int, str] = {}


def mark(text: str) -> np.uint64:
    """The symbol of a constant, whose text is known whenever names are rendered."""
    h = text_hash(text)
    TEXTS[h] = text
    return np.uint64(h)


ARROW, UP, COLON, STAR, BAR = mark("→"), mark("^"), mark(":"), mark("*"), mark("|")
OPEN, CLOSE, END, SLASH = mark("("), mark(")"), mark("(end)"), mark("/")
LEFT, RIGHT = mark("<"), mark(">")
NESTED, CONJUNCT, FREE = mark("nested"), mark("conj"), mark("free")
SAME, DIFFERENT, LAST, INNER = mark("same"), mark("different"), mark("last"), mark("inner")
ON, OFF = mark("on"), mark("off")

# NUMBER[n + NUMBER_OFFSET] is the symbol of the integer n.
NUMBER_OFFSET = 64
NUMBER = np.array([mark(str(n)) for n in range(-NUMBER_OFFSET, NUMBER_OFFSET + 1)], dtype=np.uint64)
# LENGTH_BIN[n] for n = min(length, 5): 1, 2, 3-4 (as 4), 5 and more; 0 for an empty span.
LENGTH_BIN = np.array([mark(f"len={b}") for b in ("0", "1", "2", "4", "4", "5+")], dtype=np.uint64)

# Marks of the start and end of a text, and of signed numbers.
TEXT_START, TEXT_END = mark("<s>"), mark("</s>")
# SIGNED[n + SIGNED_OFFSET] is the symbol of n as a difference: +2, 0, -1.
SIGNED_OFFSET = 64
SIGNED = np.array([mark(f"{n:+d}" if n else "0") for n in range(-SIGNED_OFFSET, SIGNED_OFFSET + 1)], dtype=np.uint64)
# RATIO[n] is the symbol of n/10.
RATIO = np.array([mark(f"{n / 10:.1f}") for n in range(31)], dtype=np.uint64)
NOTHING = mark("(nothing)")  # takes the place of a word that is not there
# What counts and shares of words are called.
COPIED, RATE, DIGITS, NEW_DIGITS = mark("copied"), mark("rate"), mark("digits"), mark("new-digits")
RANK = mark("rank")
FINAL, COUNT, WORDS = mark("final"), mark("count"), mark("words")
SUBSTITUTIONS, INSERTIONS, DELETIONS = mark("substitutions"), mark("insertions"), mark("deletions")
# LENGTHS[i] is the symbol of the lengths from LENGTH_FROM[i] to below the next: 3, 10-11, 1024+.
LENGTH_FROM = np.array([*range(9), 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256, 512, 1024], np.int64)
_ENDS = zip(LENGTH_FROM[:-1].tolist(), (LENGTH_FROM[1:] - 1).tolist(), strict=True)
_TEXTS = [*(str(a) if a == b else f"{a}-{b}" for a, b in _ENDS), f"{LENGTH_FROM[-1]}+"]
LENGTHS = np.array([mark(text) for text in _TEXTS], dtype=np.uint64)


Symbols = tuple[str, ...]  # of a feature, as texts
EITHER = "lists"  # the content of templates that look at lists whatever their candidates are


@dataclass(frozen=True)
class Template(Checked, ABC):
    """A feature template: its dataclass fields are its options and the recipe's schema.

    An option is a number, a truth value or one of several texts (``Literal``); its annotation says what it may be (see
    ``ranges``). All templates of one kernel and scope run in one call per list; ``fire`` gets their options by name.
    """

    kind: ClassVar[str] = ""  # its name in recipes and features; that of the class if it says no other
    content: ClassVar[str] = "trees"  # what it looks at: lists of "trees" or of "texts", or EITHER
    free: ClassVar[bool] = False  # are its features free of penalties and pruning, and standardised (dense scores)?
    constants: ClassVar[dict[str, int]] = {}  # what the kernel gets too: the same for all templates of the class
    # The kernel fire(forest, places, sink, ids, seeds, options), for other content fire(view, sink, ids, seeds,
    # options), which writes the features of the templates ``ids`` (int64 [V]) with ``seeds`` (uint64 [V]) and
    # ``options`` (see ``option_records``) for all places.
    fire: ClassVar[Callable[..., None]]

    def __init_subclass__(cls) -> None:
        cls.kind = vars(cls).get("kind", cls.__name__)

    @property
    def name(self) -> str:
        """Name with the options that differ from their defaults: ``Rule(ancestors=1)``; hashed into every feature."""
        options = [
            f"{f.name}={value}" for f in dataclasses.fields(self) if (value := getattr(self, f.name)) != f.default
        ]
        return f"{self.kind}({', '.join(options)})" if options else self.kind

    @cached_property
    def seed(self) -> int:
        """64-bit hash of the name: the first symbol of each of the template's features."""
        return text_hash(self.name)

    @property
    @abstractmethod
    def scope(self) -> int:
        """The places that the template looks at: INSIDE, UPWARD, EDGES or TREE."""

    @property
    def depth(self) -> int:
        """The number of ancestors that it looks at (scope UPWARD)."""
        return 0

    def columns(self, rows: Lists, lists: np.ndarray) -> dict[Symbols, np.ndarray] | None:  # noqa: ARG002
        """The values for many lists at once, if it can: the values (float64 [N]) of a feature for every candidate,
        by the symbols of the feature, of which there may be none.

        rows: the candidates of all lists as those of one; lists: int64 [L + 1], those of list i are
        lists[i]..lists[i + 1].
        """
        return None

    @classmethod
    def gives_columns(cls) -> bool:
        """Whether it gives ``columns``, so that it need not see the lists one by one."""
        return cls.columns is not Template.columns

    def record(self) -> dict[str, float]:
        """The options and ``constants`` by name as ``fire`` gets them: a text as its place among the choices."""
        hints = hints_of(type(self))
        own = {f.name: number_of(getattr(self, f.name), hints[f.name]) for f in dataclasses.fields(self)}
        return dict(sorted((own | self.constants).items()))


@dataclass(frozen=True)
class TextTemplate(Template):
    """A template over lists of texts: ``fire(view, sink, ids, seeds, options)`` sees all candidates of a list."""

    content: ClassVar[str] = "texts"
    # What makes its kernel's view, a tuple of arrays, in place of the ``TextView``: of texts and what numbers words.
    look: ClassVar[Any] = None
    needs: ClassVar[str] = ""  # "source", "segmentation", "alignment": it gives nothing for lists without it

    scope = 0


def option_records(templates: Sequence[Template]) -> np.ndarray:
    """The options of templates whose records have the same names: [V] with a field for every option.

    A field is int64 or, for a float, float64. Where there are no options, it is int64 [V, 0].
    """
    rows = [template.record() for template in templates]
    if not rows[0]:
        return np.empty((len(rows), 0), np.int64)
    fields = [(name, np.float64 if isinstance(value, float) else np.int64) for name, value in rows[0].items()]
    return np.array([tuple(row.values()) for row in rows], np.dtype((np.record, fields)))


def make_template(spec: Any) -> Template:
    """A template from a recipe: ``Rule``, ``"Rule(ancestors=1)"`` or ``{Rule: {ancestors: 1}}``.

    Raises RecipeError: an unknown template or option, or a value that the option does not accept.
    """
    if isinstance(spec, dict) and len(spec) == 1:
        ((name, options),) = spec.items()
    elif isinstance(spec, str):
        name, options = _parse_call(spec)
    else:
        raise RecipeError(
            f"found {spec!r}, expected a template as Name, Name(option=value) or {{Name: {{option: value}}}}"
        )
    if not isinstance(name, str) or not isinstance(options, dict | None):
        raise RecipeError(f"found {spec!r}, expected {{Name: {{option: value}}}}")
    cls = templates.get(name)
    if not (isinstance(cls, type) and issubclass(cls, Template)):
        raise RecipeError(f"{name} is not a template; functions on candidates are named under features.user")
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key in options or {}:
        if key not in fields:
            raise RecipeError(f"template {name} has no option {key!r}; it has {', '.join(fields) or 'none'}")
    try:
        return cls(**(options or {}))
    except RecipeError as error:
        where = f"option {error.key} of template {name}" if error.key else f"template {name}"
        raise RecipeError(f"{where}: {error.message}") from None


def _parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """``Name(a=1, b=word)`` → (Name, {a: 1, b: "word"})."""
    name, bracket, rest = text.strip().partition("(")
    if not bracket:
        return name, {}
    if not rest.endswith(")"):
        raise RecipeError(f"found {text!r}, expected Name(option=value, ...)")
    options: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in rest[:-1].split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise RecipeError(f"found {part!r} in {text!r}, expected option=value")
        key, value = key.strip(), value.strip()
        if key in options:
            raise RecipeError(f"option {key} is set twice in {text!r}")
        literal: Any = {"True": True, "true": True, "False": False, "false": False}.get(value, value)
        options[key] = int(value) if re.fullmatch("-?[0-9]+", value) else literal
    return name, options


templates: Registry[type[Template]] = Registry("template", Template)


def _names_in(text: str) -> list[str]:
    """The templates that a text lists, with a semicolon between them."""
    return [name.strip() for name in text.split(";")]


_EDGES = [
    f"{kind}(binned={binned}, lp={lp}, ls={ls}, rp={rp}, rs={rs})"
    for kind in ("Edges", "WordEdges")
    for binned in (False, True)
    for lp, ls, rp, rs in product(range(3), repeat=4)
    if lp + ls + rp + rs <= 2
]
_CJ2005 = _names_in("""
    RightBranch; Heavy; CoPar(depths=5); CoLenPar; Word(k=1); Word(k=2); WProj;
    Rule; Rule(ancestors=1); Rule(root=True); Rule(conj=True); Rule(head=word); Rule(words=function);
    Rule(head=word, words=function);
    NGram(n=1, ancestors=1, root=True, conj=True); NGram(n=2, ancestors=1, root=True, conj=True);
    NGram(n=3, ancestors=1, root=True, conj=True); NGram(head=word); NGram(words=function);
    NGramTree; NGramTree(words=all); NGramTree(n=3, words=function);
    HeadTree; HeadTree(heads=semantic); HeadTree(heads=semantic, words=all);
    Heads; Heads(governor=word, dependent=word); Heads(governor=word, dependent=word, heads=semantic); Heads(n=3)
""")
_EXTENDED = _names_in("""
    Neighbours; Neighbours(l=2); Neighbours(r=2); LexFunHeads; SubjVerbAgr;
    SynSemHeads; SynSemHeads(syntactic=word); SynSemHeads(semantic=word);
    Heads(n=3, governor=word, dependent=word, heads=semantic); WProj(k=2); Rule(ancestors=2);
    LeftBranchLength; RightBranchLength;
    LogCondP; LogCondP(norm=sum); LogCondP(bin=5); LogCondP(norm=sum, bin=5)
""")
_NGRAMS = "TargetNGram; TargetNGram(n=2); TargetNGram(n=3)"

SETS: dict[str, list[str]] = {
    "base": [],
    "minimal": _names_in("Rule; Rule(ancestors=1); RightBranch; Heavy; Word(k=2); Heads; Dense"),
    "cj2005": [*_CJ2005, *_EDGES, "Dense"],
    "extended": [*_CJ2005, *_EDGES, "Dense", *_EXTENDED],
    "dense": ["BaseScore", "Dense", "SameAnswer"],
    "dptm": ["Dense", "PhrasePair"],
    "translation": _names_in(f"""
        Dense; PhrasePair; SourcePhrase; TargetPhrase; PhraseLengths; WordPair; Unaligned; Unaligned(side=target);
        {_NGRAMS}; PhraseBoundary; Jump; Given
    """),
    "text": _names_in(f"""
        Dense; SameAnswer; {_NGRAMS}; Length(binned=False); LengthRatio; Copy; Punctuation; CoOccurrence;
        ConsensusNGram; Given
    """),
    "speech": _names_in(f"Dense; {_NGRAMS}; EditOps; ConsensusNGram; ConsensusEdits; Given"),
    "labels": _names_in("""
        LabelNGram(n=3); LabelNGram(n=4); LabelNGram(n=5); LabelNGram(n=3, words=last); LabelNGram(n=2, words=all);
        LabelSpan; LabelSpan(see=ends); LabelSpan(see=outside); LabelSpan(see=length);
        SpanNGram; SpanNGram(n=4, words=False)
    """),
}
