"""Lists in JSON, one object per line: texts of any system, with any named numbers.

Three lines this reads::

    {"id": "a", "source": "Es regnet .", "references": ["It rains ."], "candidates": ["It rains .", "It rain ."]}
    {"id": "b", "candidates": [{"text": "Yes .", "score": -1.5, "features": {"lm": -2.0, "rare": 1}}]}
    {"reference": "4", "candidates": [{"text": "4", "logprob": -0.7, "gain": 1.0}, {"text": "5", "logprob": -0.9}]}

An object needs only ``candidates``. A candidate is a text, or an object with the key ``text``. Its numbers are
the values of its other keys that are numbers (``score``, ``gain``, whatever there is) and those under ``features``. A
number that all candidates of a file's first list have is a dense column, which all candidates of the file must then
have; the others are sparse features. Texts under ``segmentation`` and ``alignment`` are derivations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.readers.base import BadList, NBestList, readers
from rerank.readers.streams import Writable
from rerank.readers.texts.json_lines import Build, JsonReader, encoded, json_line, number_of, shown, text_of, texts_of
from rerank.readers.texts.pieces import ListError, Pieces, each, first_places, left_out
from rerank.readers.texts.text_list import SparseScores, TextList

SCORE, BASE_SCORE = "score", "base_score"

_NUMBERS = (SCORE, BASE_SCORE, "gain")  # these keys must hold numbers, and are never sparse features


@readers.add("jsonl")
@dataclass(frozen=True)
class JsonlReader(JsonReader):
    """Lists in JSON lines.

    Parameters
    ----------
    duplicates, ids: see ``JsonReader``.
    base: the name of the number that is the base score; in a list without any "score", all base scores are 0.
    dense: the names of the dense columns in addition to the base score; by default the file's first list decides.
    """

    base: str = SCORE
    dense: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.base, str) or not self.base:
            raise RecipeError(f"found {self.base!r}; expected the name of a number", key="base")
        names = self.dense if self.dense is not None else ()
        if isinstance(names, str) or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise RecipeError(f"found {names!r}; expected a list of distinct names of numbers", key="dense")

    def write(
        self, out: Writable, nbest: NBestList, order: Sequence[int] | None = None, scores: np.ndarray | None = None
    ) -> None:
        """See ``Reader.write``; a new score is "score", the old one "base_score" unless there is one already.

        Lists of other formats can be written too.
        """
        pieces = nbest.raw if isinstance(nbest, TextList) and isinstance(nbest.raw, Pieces) else None
        if pieces is None or not isinstance(pieces.head, dict) or "candidates" not in pieces.head:
            pieces = _described(nbest)
        chosen = range(len(nbest)) if order is None else order
        candidates = [
            pieces.candidates[i] if scores is None else _rescored(pieces.candidates[i], float(nbest.base[i]), scores[i])
            for i in chosen
        ]
        out.write(json_line({**pieces.head, "candidates": candidates}, nbest))

    def write_bad(self, out: Writable, bad: BadList, like: NBestList | None) -> None:
        """See ``Reader.write_bad``."""
        out.write(json_line({**self._empty_item(bad, like), "candidates": []}, bad))

    def _id_key(self) -> str:
        return "id"

    def _builder(self) -> Build:
        return _ListBuilder(self)


class _ListBuilder:
    """Turns objects into lists; remembers the columns that the first list has decided on."""

    def __init__(self, reader: JsonlReader) -> None:
        self.reader, self.dense = reader, reader.dense
        if reader.dense is None and reader.known is not None:
            self.dense = reader.known.names
        self.names: tuple[str, ...] | None = None
        self.others: tuple[str, ...] = ()

    def __call__(self, item: dict[str, Any], name: str, path: str, line: int) -> TextList | BadList:
        entries = item.get("candidates")
        if not isinstance(entries, list):
            raise ListError("text", f"found {shown(entries)} under 'candidates'; expected a list of texts or objects")
        found, faults = each(entries, _candidate)
        faults |= self._misfits({place: one.numbers for place, one in found.items()})
        bad = left_out(faults, name, path, [line] * len(entries))
        if bad and len(bad) == len(entries):
            return BadList.of(bad)
        places = [place for place in found if place not in faults]
        kept = first_places([found[place].text for place in places])
        repeated = len(places) - len(kept)
        if repeated and self.reader.duplicates == "drop":
            places = [places[k] for k in kept]
        good = [found[place] for place in places]
        scores, sparse = self._columns([one.numbers for one in good])
        return TextList(
            id=name, path=path, line=line, texts=[one.text for one in good], lines=[line] * len(good), scores=scores,
            duplicates=repeated, form="jsonl", bad=tuple(bad), names=self.names or (self.reader.base,),
            others=self.others, sparse=sparse,
            segmentation=_derivations([one.segmentation for one in good]),
            alignment=_derivations([one.alignment for one in good]),
            source=None if item.get("source") is None else text_of(item["source"], "the source"),
            references=_references(item), raw=Pieces(item, [entries[place] for place in places]),
        )  # fmt: skip

    def _misfits(self, found: dict[int, dict[str, float]]) -> dict[int, ListError]:
        """The candidates whose numbers do not match the columns, which the file's first list decides on.

        A base score that candidates need not have is filled in. Raises ListError if they need one and none has it.
        """
        base = self.reader.base
        if not any(base in numbers for numbers in found.values()):
            if base != SCORE and found:
                message = f"no candidate has a number {base!r}, the base score; the reader's option base names another"
                raise ListError("score", message)
            for place in found:
                found[place].update({SCORE: 0.0})
        if self.names is None and found:
            self.names = self._decide([numbers for numbers in found.values() if base in numbers])
        checked = {place: self._misfit(numbers, place + 1) for place, numbers in found.items()}
        return {place: fault for place, fault in checked.items() if fault is not None}

    def _misfit(self, numbers: dict[str, float], k: int) -> ListError | None:
        """What is wrong with the numbers of candidate ``k``."""
        if self.reader.base not in numbers:
            return ListError("score", f"candidate {k} has no number {self.reader.base!r}, the base score")
        names = self.names or ()
        for name in names:
            if name not in numbers:
                like = "the file's first list" if self.reader.known is None else "the training lists"
                message = f"candidate {k} does not have the number {name!r}, as all of {like} do; "
                return ListError("columns", message + "name the dense columns in the reader's option dense")
        for name in _NUMBERS:
            if name in numbers and name not in names:
                message = f"candidate {k} has the number {name!r}, which no candidate of the file's first list has"
                return ListError("columns", message)
        return None

    def _decide(self, found: list[dict[str, float]]) -> tuple[str, ...]:
        """The names of the columns, from the numbers of the file's first list: the base score, then in their order."""
        shared = set(found[0]).intersection(*found).union(_NUMBERS)
        names = [name for numbers in found for name in numbers if name in shared]
        if self.dense is not None:
            if self.reader.dense is None:
                self.others = tuple(
                    name for name in dict.fromkeys(names) if name not in (*self.dense, *_NUMBERS, self.reader.base)
                )
            names = [*self.dense, *(name for name in names if name in _NUMBERS)]
        return tuple(dict.fromkeys([self.reader.base, *names]))

    def _columns(self, found: list[dict[str, float]]) -> tuple[np.ndarray, SparseScores | None]:
        """The dense columns, float64 [N, K], and the numbers that are left over."""
        names = self.names or (self.reader.base,)
        scores = np.array([[numbers.pop(name) for name in names] for numbers in found], np.float64)
        counts = [len(numbers) for numbers in found]
        if not any(counts):
            return scores.reshape(len(found), len(names)), None
        first = np.zeros(len(found) + 1, np.int64)
        np.cumsum(counts, out=first[1:])
        left = [pair for numbers in found for pair in numbers.items()]
        values = np.array([value for _, value in left], np.float64)
        sparse = SparseScores(first, [encoded(key) for key, _ in left], values)
        return scores.reshape(len(found), len(names)), sparse


class _Candidate(NamedTuple):
    """An entry of ``candidates``, taken apart."""

    text: bytes
    numbers: dict[str, float]
    segmentation: bytes | None
    alignment: bytes | None


def _candidate(entry: Any, k: int) -> _Candidate:
    """Candidate ``k``. Raises ListError."""
    return _Candidate(
        _text(entry, k), _numbers(entry, k), _derivation(entry, "segmentation"), _derivation(entry, "alignment")
    )


def _text(entry: Any, k: int) -> bytes:
    """The text of candidate ``k``."""
    if isinstance(entry, dict):
        if "text" not in entry:
            raise ListError("text", f"candidate {k} has no 'text'")
        entry = entry["text"]
    return text_of(entry, f"candidate {k}")


def _numbers(entry: Any, k: int) -> dict[str, float]:
    """The named numbers of candidate ``k``, in their order."""
    if not isinstance(entry, dict):
        return {}
    found: dict[str, float] = {}
    for name, value in entry.items():
        if type(value) is float or type(value) is int or (name in _NUMBERS and value is not None):
            found[name] = number_of(value, f"{name!r} of candidate {k}")
    features = entry.get("features")
    if features is None:
        return found
    if not isinstance(features, dict):
        raise ListError("columns", f"found {shown(features)} as 'features' of candidate {k}; expected an object")
    for name, value in features.items():
        if name in found:
            raise ListError("columns", f"candidate {k} has two numbers called {name!r}; rename one of them")
        found[name] = number_of(value, f"feature {name!r} of candidate {k}", "columns")
    return found


def _derivation(entry: Any, key: str) -> bytes | None:
    """The text under ``key``, if there is one. Raises ListError."""
    value = entry.get(key) if isinstance(entry, dict) else None
    return None if value is None else text_of(value, f"'{key}'")


def _derivations(texts: list[bytes | None]) -> list[bytes] | None:
    """The derivations of all candidates, empty for those without one; None if no candidate has one."""
    return None if all(text is None for text in texts) else [text or b"" for text in texts]


def _references(item: dict[str, Any]) -> tuple[bytes, ...]:
    """The texts under "references", or the one under "reference"."""
    one, many = item.get("reference"), item.get("references")
    if one is not None and many is not None:
        raise ListError("text", "both 'reference' and 'references'; expected one of them")
    if one is not None:
        return (text_of(one, "the reference"),)
    return () if many is None else texts_of(many, "the references")


def _rescored(candidate: Any, base: float, score: float) -> dict[str, Any]:
    """A candidate with a new score; ``base`` is its old one."""
    entry: dict[str, Any] = dict(candidate) if isinstance(candidate, dict) else {"text": candidate}
    old = entry.get(SCORE, base)
    return {**entry, SCORE: float(score), **({} if BASE_SCORE in entry else {BASE_SCORE: old})}


def _described(nbest: NBestList) -> Pieces:
    """The object for a list that was read in another format."""
    head: dict[str, Any] = {"id": nbest.id}
    named = nbest if isinstance(nbest, TextList) else None
    if named is not None and named.source is not None:
        head["source"] = _shown_text(named.source)
    if named is not None and named.references:
        head["references"] = [_shown_text(text) for text in named.references]
    names = named.names if named is not None and named.names else [str(k) for k in range(nbest.scores.shape[1])]
    candidates: list[dict[str, Any]] = []
    for i, text in enumerate(nbest.texts):
        values = dict(zip(names, nbest.scores[i].tolist(), strict=True))
        score = values.pop(names[nbest.column])
        entry: dict[str, Any] = {"text": _shown_text(text), SCORE: score}
        if named is not None and named.sparse is not None:
            one = slice(named.sparse.first[i], named.sparse.first[i + 1])
            for key, value in zip(named.sparse.names[one], named.sparse.values[one].tolist(), strict=True):
                values[_shown_text(key)] = values.get(_shown_text(key), 0.0) + value
        if BASE_SCORE in values:
            entry[BASE_SCORE] = values.pop(BASE_SCORE)
        candidates.append({**entry, **({"features": values} if values else {}), **_parts(named, i)})
    return Pieces({**head, "candidates": []}, candidates)


def _parts(named: TextList | None, i: int) -> dict[str, str]:
    """The derivation of a candidate."""
    if named is None:
        return {}
    found = {"segmentation": named.segmentation, "alignment": named.alignment}
    return {key: _shown_text(texts[i]) for key, texts in found.items() if texts is not None}


def _shown_text(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
