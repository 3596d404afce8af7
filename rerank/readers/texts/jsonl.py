"""Lists in JSON, one object per line: texts of any system, with any named numbers.

Three lines this reads::

    {"id": "a", "source": "Es regnet .", "references": ["It rains ."], "candidates": ["It rains .", "It rain ."]}
    {"id": "b", "candidates": [{"text": "Yes .", "score": -1.5, "features": {"lm": -2.0, "rare": 1}}]}
    {"reference": "4", "candidates": [{"text": "4", "logprob": -0.7, "gain": 1.0}, {"text": "5", "logprob": -0.9}]}

An object needs only ``candidates``. A candidate is a text, or an object with the key ``text``. Its numbers are
the values of its other keys that are numbers (``score``, ``gain``, whatever there is) and those under ``columns`` and
``features``. A number that all candidates have, in nearly all of a file's first 1,000 lists, is a dense column, which
all candidates of the file must then have; the others are sparse features. Texts under ``segmentation`` and
``alignment`` are derivations, the one under ``answer`` is what the candidate comes to.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import isfinite
from typing import Any, ClassVar

from rerank.base.encoding import decoded
from rerank.base.errors import RecipeError
from rerank.readers.base import Order, Reader, Scores, check_names
from rerank.readers.lines import LineReader
from rerank.readers.lists import Lists, plain_texts
from rerank.readers.problems import Problem
from rerank.readers.streams import Writable
from rerank.readers.texts.answers import check_rule, plain
from rerank.readers.texts.forms import as_number
from rerank.readers.texts.json_lines import (
    FINISH,
    HIGHEST,
    JsonReader,
    LinePieces,
    Object,
    derived,
    json_line,
    number_of,
    shown,
    stepped,
    text_of,
    texts_of,
    written,
)
from rerank.readers.texts.responses import as_lists
from rerank.readers.texts.roles import check_roles
from rerank.readers.texts.text_list import BASE_SCORE, NUMBERS, PARTS, SCORE, Draft, Pieces


@dataclass(frozen=True)
class JsonlReader(JsonReader):
    """Lists in JSON lines.

    >>> (nbest,) = JsonlReader().parse(b'{"candidates": [{"text": "Yes .", "score": -1.5, "lm": -2}]}')
    >>> nbest.texts, nbest.names, nbest.scores
    ([b'Yes .'], ('score', 'lm'), array([[-1.5, -2. ]]))

    Parameters
    ----------
    duplicates, ids: see ``JsonReader``.
    labels: the keys of texts, such as ``model``, that are sparse features: ``model=a``.
    base: the name of the number that is the base score; in a file without any "score", all base scores are 0.
    dense: the names of the dense columns in addition to the base score; by default the file's first lists decide.
    answer: the rule for answers where the right one is known; by default as that suggests.
    roles: what keys are, where their names and kinds do not tell: ``{samples: candidates, response: text, passed:
        gain, reward: column}``.
    """

    form: ClassVar[str] = "jsonl"
    general: ClassVar[bool] = True
    most: ClassVar[int] = 1 << 5

    labels: tuple[str, ...] = ()
    base: str = SCORE
    dense: tuple[str, ...] | None = None
    answer: str | None = None
    roles: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.labels, "labels")
        if not isinstance(self.base, str) or not self.base:
            raise RecipeError(f"found {self.base!r}; expected the name of a number", key="base")
        if self.dense is not None:
            check_names(self.dense, "dense")
        check_rule(self.answer)
        check_roles(self.roles)
        more = (key for key, role in (self.roles or {}).items() if role == "label")
        object.__setattr__(self, "labels", tuple(dict.fromkeys([*self.labels, *more])))

    def parts(self, told: Mapping[str, Any]) -> bool:
        """Rows of one list may stand anywhere, and gains by answers are counted to the end of a file."""
        return super().parts(told) and "roles" in told and not (told["roles"].group or told["roles"].right)

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """A new score is "score", the old one "base_score" unless there is one already.

        Lists of other formats can be written too.
        """
        pieces = nbest.raw if isinstance(nbest.raw, Pieces) else None
        if pieces is None or not isinstance(pieces.head, dict) or "candidates" not in pieces.head:
            pieces = _described(nbest)
        chosen = range(len(nbest)) if order is None else order
        candidates = [pieces.candidates[i] for i in chosen]
        for k, i in enumerate(chosen):
            if scores is not None:
                entry = candidates[k] if isinstance(candidates[k], dict) else {"text": candidates[k]}
                old = entry.get(BASE_SCORE, entry.get(SCORE, float(nbest.base[i])))
                candidates[k] = {**entry, SCORE: float(scores[i]), BASE_SCORE: old}
        out.write(json_line({**pieces.head, "candidates": candidates}, nbest))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are known before a file is read: they are numbers however they are written."""
        return (*(self.dense or ()), *(() if self.known is None else self.known.names))

    def objects(self, lines: LineReader) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        named = [*dict.fromkeys([*self.columns, *self.labels])]
        return as_lists(self.found(lines), self.roles or {}, lines, self.answer, named, self.look, used=self.used)

    def found(self, lines: LineReader) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        """The objects as they stand in a file."""
        return super().objects(lines)

    def draft(self, content: dict[str, Any]) -> Draft:
        return self.together([content])

    def together(self, contents: Sequence[dict[str, Any]]) -> Draft:
        several, every = len(contents) > 1, list(map(_entries, contents))
        rows = [entry if isinstance(entry, dict) else {"text": entry} for entry in chain.from_iterable(every)]
        keys: dict[str, Any] = rows[0] if rows else {}
        if not keys.keys() >= set().union(*rows):
            keys = dict.fromkeys(chain.from_iterable(rows))
        if several and (len(keys) > MANY_KEYS or not all(every)):
            raise Problem("columns", UNLIKE)
        references, sources = list(map(_references, contents)), [item.get("source") for item in contents]
        if (texts := plain_texts(sources)) is not None:
            sources = list(map(bytes.strip, texts))
        else:
            sources = [None if source is None else text_of(source, "the source") for source in sources]
        texts = plain_texts([row.get("text") for row in rows])
        raws: list[Pieces] = [
            LinePieces(one.line) if several and isinstance(one, Object) else Pieces(one, of)
            for one, of in zip(contents, every, strict=True)
        ]
        draft = Draft(raws, texts or [], {}, sides={"source": sources, "references": references})
        draft.sizes = list(map(len, every)) if several else ()
        if texts is None:
            draft.texts = draft.tried(rows, _text, b"")
        steps = list[str]()
        for key in (key for key in keys if key not in _OTHERS):
            values = [row.get(key) for row in rows]
            if not (finite := _are_finite(values)) and key in self.columns:
                values = [as_number(one[0] if isinstance(one, list) and len(one) == 1 else one) for one in values]
                finite = _are_finite(values)
            if key in PARTS:
                draft.parts[key] = draft.tried(values, partial(_part, key), None)
            elif (
                finite
                or not _NUMERIC.isdisjoint(map(type, values))
                or (key in NUMBERS and values.count(None) < len(values))
            ):
                draft.numbers[key] = values if finite else draft.tried(values, partial(_number, key), None)
            if not finite and stepped(values):
                steps.append(key)
        if not keys.keys().isdisjoint(_NESTED):
            draft.put_features(draft.tried(rows, _nested, {}))
        if steps or FINISH in keys:
            draft.put(draft.tried(rows, lambda row, k: derived(row, steps, k), {}))
        if self.labels:
            features = draft.features or [{}] * len(rows)
            draft.features = [
                one | {f"{key}={row[key]}": 1.0 for key in self.labels if isinstance(row.get(key), str) and row[key]}
                for one, row in zip(features, rows, strict=True)
            ]
        if several and (draft.bad or any(None in values for values in draft.parts.values())):
            raise Problem("columns", UNLIKE)
        return draft


UNLIKE, MANY_KEYS = "lists that are not alike", 64
_NESTED = "columns", "features"
_OTHERS = "text", *_NESTED  # keys of candidates that are no numbers
_NUMERIC = {float, int, bool}


def _entries(content: Mapping[str, Any]) -> list[Any]:
    """The candidates of an object. Raises Problem."""
    entries = content.get("candidates")
    if not isinstance(entries, list):
        message = f"found {shown(entries)} under 'candidates'; expected a list of texts or objects. If other keys hold "
        message += f"lists or texts, say so, as --roles query=group,answer=text; found {', '.join([*content][:20])}"
        raise Problem("text", message)
    return entries


def _text(row: Mapping[str, Any], k: int) -> bytes:
    """The text of candidate ``k``. Raises Problem."""
    if row.get("text") is None:
        message = f"candidate {k} has no 'text'; if it stands under another key, say so, as --roles answer=text"
        raise Problem("text", message)
    return written(row["text"], f"candidate {k}")


def _are_finite(values: list[Any]) -> bool:
    """Whether all are numbers that an array can hold."""
    try:
        return isfinite(sum(values))
    except (TypeError, ValueError, OverflowError):
        return False


def _number(name: str, value: Any, k: int) -> float | None:
    """A value as a number of candidate ``k``; what is none is one that is missing, unless scores are called so."""
    if type(value) in _NUMERIC and abs(value) <= HIGHEST:
        return float(value)
    if value is None or not (name in NUMBERS or isinstance(value, float | int)):
        return None
    return number_of(value, f"{name!r} of candidate {k}", keys=(name,))


def _nested(entry: Mapping[str, Any], k: int) -> dict[str, float]:
    """The numbers of candidate ``k`` that stand under "columns" and "features". Raises Problem."""
    numbers = dict[str, float]()
    for key in ("columns", "features"):
        nested = entry.get(key)
        if nested is None:
            continue
        if not isinstance(nested, dict):
            raise Problem("columns", f"found {shown(nested)} as {key!r} of candidate {k}; expected an object")
        what = key.removesuffix("s")
        for name, value in nested.items():
            if name in numbers or isinstance(entry.get(name), float | int):
                raise Problem("columns", f"candidate {k} has two numbers called {name!r}; rename one of them")
            numbers[name] = number_of(value, f"{what} {name!r} of candidate {k}", "columns", (key, name))
    return numbers


def _part(key: str, value: Any, _: int) -> bytes | None:
    """The text under ``key``, if there is one; an answer may be a number. Raises Problem."""
    if key == "answer" and isinstance(value, int | float) and not isinstance(value, bool):
        if not abs(value) < float("inf"):
            raise Problem("infinite score", f"found {shown(value)}; expected 'answer' as a string or a finite number")
        return plain(str(value)).encode()
    return None if value is None else text_of(value, f"'{key}'")


def _references(item: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The texts under "references", or the one under "reference"."""
    one, many = item.get("reference"), item.get("references")
    if one is not None and many is not None:
        raise Problem("text", "both 'reference' and 'references'; expected one of them")
    if one is not None:
        return (text_of(one, "the reference"),)
    return () if many is None else texts_of(many, "the references")


def _described(nbest: Lists) -> Pieces:
    """The object for a list that was read in another format."""
    head: dict[str, Any] = {"id": nbest.id}
    head |= {} if nbest.source is None else {"source": decoded(nbest.source)}
    head |= {"references": [decoded(text) for text in nbest.references]} if nbest.references else {}
    names = nbest.names or [str(k) for k in range(nbest.scores.shape[1])]
    alignment = None if nbest.ended else nbest.alignment  # ends of sentences would be words
    parts = {"segmentation": nbest.segmentation, "alignment": alignment, "answer": nbest.answers}
    candidates: list[dict[str, Any]] = []
    for i in range(len(nbest)):
        values = dict(zip(names, nbest.scores[i].tolist(), strict=True))
        entry: dict[str, Any] = {"text": decoded(nbest.written(i)), SCORE: values.pop(names[nbest.column])}
        if nbest.sparse is not None:
            one = slice(nbest.sparse.first[i], nbest.sparse.first[i + 1])
            for key, value in zip(nbest.sparse.names[one], nbest.sparse.values[one].tolist(), strict=True):
                values[decoded(key)] = values.get(decoded(key), 0.0) + value
        if BASE_SCORE in values:
            entry[BASE_SCORE] = values.pop(BASE_SCORE)
        entry |= {"features": values} if values else {}
        candidates.append(
            entry | {key: decoded(text) for key, of in parts.items() if of and (text := of[i]) is not None}
        )
    return Pieces({**head, "candidates": []}, candidates)


class WrittenAsJsonl(Reader):
    """A reader whose lists are written in the format ``jsonl``, which holds whatever a list of texts has."""

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        JsonlReader().write(out, nbest, order, scores)

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:  # noqa: ARG002
        JsonlReader().write_bad(out, bad, None)
