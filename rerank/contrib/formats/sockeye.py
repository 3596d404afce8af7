"""The JSON lines of sockeye's translator (``--output-type json``), with or without n-best lists.

Three lines this reads::

    {"score": 0.3, "scores": [[0.3], [0.9]], "sentence_id": 1, "translation": "a b", "translations": ["a b", "a c"]}
    {"score": 1.5, "scores": [1.5, 2.5], "sentence_id": 2, "translation": "d", "translations": ["d", "e"]}
    {"score": 0.7, "sentence_id": 3, "translation": "f"}

``translations`` and ``scores`` are missing if there is only one translation. A translation has one score or a list
of them, the first of which is its own; the others are scores of target factors. Sockeye's scores are negative log
probabilities, so the base score is their negative. An empty translation with an infinite score, sockeye's answer to an
empty or unusable input, is a list without candidates.
"""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

from rerank.readers.base import Order, Problem, Scores
from rerank.readers.lists import Lists
from rerank.readers.streams import Writable
from rerank.readers.texts.json_lines import JsonReader, json_line, number_of, shown, written
from rerank.readers.texts.text_list import Draft, Entry

_FACTORS = "translations_factors"


class _Row(NamedTuple):
    """One translation; ``nested``: whether its scores are a list in the file."""

    text: Any
    values: list[Any]
    nested: bool
    factors: Any


@dataclass(frozen=True)
class SockeyeReader(JsonReader):
    """Lists of sockeye.

    >>> (nbest,) = SockeyeReader().parse(b'{"translations": ["a b", "a c"], "scores": [0.25, 0.5]}')
    >>> nbest.texts, nbest.base
    ([b'a b', b'a c'], array([-0.25, -0.5 ]))

    Parameters
    ----------
    duplicates, ids: see ``JsonReader``.
    scores: "cost" if lower is better, as sockeye writes them, or "score" (or "logprob") if higher is better.
    """

    form: ClassVar[str] = "sockeye"

    scores: Literal["cost", "score", "logprob"] = "cost"

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New scores replace the old ones, negated for ``scores: cost``."""
        assert not nbest.of_trees, "lists of sockeye's JSON lines"
        chosen = list(range(len(nbest)) if order is None else order)
        if scores is None and chosen == list(range(len(nbest))) and not nbest.bad:
            out.write(json_line(nbest.raw.head, nbest))
            return
        sign = -1.0 if self.scores == "cost" else 1.0
        rows: list[_Row] = [nbest.raw.candidates[i] for i in chosen]
        if scores is not None:
            new = [sign * float(scores[i]) + 0.0 for i in chosen]
            rows = [row._replace(values=[one, *row.values[1:]]) for one, row in zip(new, rows, strict=True)]
        item = dict(nbest.raw.head)
        if rows:
            item |= {"translation": rows[0].text, "score": rows[0].values[0], **rows[0].factors}
        if "translations" in item or len(rows) > 1:
            nested = any(row.nested for row in rows)
            item["translations"] = [row.text for row in rows]
            item["scores"] = [row.values if nested else row.values[0] for row in rows]
        if _FACTORS in item:
            item[_FACTORS] = [row.factors for row in rows]
        out.write(json_line(item, nbest))

    @property
    def nothing(self) -> dict[str, Any]:
        """The answer of sockeye to an input that it cannot use."""
        return {"translation": "", "score": float("inf")}

    @property
    def id_key(self) -> str:
        return "sentence_id"

    def draft(self, content: dict[str, Any]) -> Draft:
        """Most of a list's translations tell how many scores they have."""
        rows = _rows(content)
        width = Counter(len(row.values) for row in rows).most_common(1)[0][0] if rows else 1
        names = "score", *(f"factor{k}" for k in range(1, width))
        return Draft.of(rows, partial(self._candidate, names), head=content, names=names)

    def _candidate(self, names: tuple[str, ...], row: _Row, k: int) -> Entry:
        """Translation ``k``. Raises Problem."""
        if not row.values:
            raise Problem("score", f"translation {k} has no score")
        if len(row.values) != len(names):
            message = f"translation {k} has {len(row.values)} scores; most of the list have {len(names)}"
            raise Problem("columns", message)
        if not isinstance(row.factors, dict):
            raise Problem("columns", f"found {shown(row.factors)} under {_FACTORS!r}; expected objects")
        text = written(row.text, f"translation {k}")
        what = f"the score of translation {k}"
        numbers = [number_of(value, what) for value in row.values]
        signed = [0.0 - number for number in numbers] if self.scores == "cost" else numbers
        return Entry(text, dict(zip(names, signed, strict=True)))


def _rows(item: dict[str, Any]) -> list[_Row]:
    """The translations of an object, not checked yet. Raises Problem."""
    if "translations" not in item:
        for key in ("translation", "score"):
            if key not in item:
                message = f"the object has no {key!r}, which sockeye writes with --output-type json"
                raise Problem("text" if key == "translation" else "score", message)
        score = item["score"]
        if item["translation"] == "" and isinstance(score, float) and score - score != 0.0:
            return []
        return [_Row(item["translation"], [score], False, {})]
    texts, scores = item["translations"], item.get("scores")
    factors = item.get(_FACTORS)
    if not isinstance(texts, list):
        raise Problem("text", f"found {shown(texts)} under 'translations'; expected a list of texts")
    for key, values in (("scores", scores), (_FACTORS, [{}] * len(texts) if factors is None else factors)):
        if not isinstance(values, list) or len(values) != len(texts):
            said = f"{len(values)} entries" if isinstance(values, list) else shown(values)
            raise Problem("columns", f"found {said} under {key!r}; expected one for each of {len(texts)} translations")
    rows = []
    for k, (text, score) in enumerate(zip(texts, scores or [], strict=True)):
        nested = isinstance(score, list)
        rows.append(_Row(text, score if nested else [score], nested, factors[k] if factors is not None else {}))
    return rows
