"""Data sets with a list of answers to every prompt and lists of their numbers, one JSON object per line.

Three lines this reads::

    {"prompt": "2+2?", "responses": ["4", "5"], "scores": [-0.5, -0.75]}
    {"prompt": "2+2?", "responses": ["4", "5", "22"], "scores": [-0.5, -0.75, -3], "gains": [1, 0, 0]}
    {"id": 7, "prompt": "3+3?", "responses": ["6"], "reference": "6", "models": ["a"]}

A text may be a conversation, of which the last message counts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.base.errors import RecipeError
from rerank.readers.base import Order, Problem, Scores
from rerank.readers.lists import Lists
from rerank.readers.streams import Writable
from rerank.readers.texts.json_lines import (
    SampleReader,
    is_conversation,
    json_line,
    number_of,
    said,
    shown,
    stepped,
    whole,
)
from rerank.readers.texts.text_list import BASE_SCORE, SCORE, Draft, Entry, each

USUAL = {SCORE: "scores", BASE_SCORE: "base_scores", "gain": "gains"}  # the keys of numbers, where there are any


@dataclass(frozen=True)
class ParallelReader(SampleReader):
    """Lists of texts with parallel lists of numbers.

    >>> (nbest,) = ParallelReader().parse(b'{"prompt": "2+2?", "responses": ["4", "5"], "scores": [-0.5, -0.75]}')
    >>> nbest.source, nbest.texts, nbest.scores
    (b'2+2?', [b'4', b'5'], array([[-0.5 ],
       [-0.75]]))

    Parameters
    ----------
    duplicates, ids, steps: see ``SampleReader``.
    labels: the keys of lists of texts, such as ``models``, whose entries are sparse features: ``models=a``.
    prompt, texts, reference, id: the keys of these; all but ``texts`` may be missing from the file. A reference is a
        text, or a list of several.
    numbers: the keys of lists of numbers by the name of their column, ``{score: logprobs, gain: ratings}``; by default
        ``scores``, ``base_scores`` and ``gains`` are ``score``, ``base_score`` and ``gain``, if they are there.
    """

    form: ClassVar[str] = "parallel"

    prompt: str = "prompt"
    texts: str = "responses"
    reference: str = "reference"
    id: str = "id"
    numbers: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        keys = {} if self.numbers is None else self.numbers
        if not isinstance(keys, Mapping) or not all(isinstance(x, str) and x for x in (*keys, *keys.values())):
            message = "expected the names of columns with the keys of their numbers: {score: logprobs, gain: ratings}"
            raise RecipeError(f"found {keys!r}; {message}", key="numbers")

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New scores replace the old ones, which are ``base_scores`` unless these are there.

        Lists of one entry for each text are put into the new order too.
        """
        assert not nbest.of_trees, "lists of texts with parallel numbers"
        chosen = list(range(len(nbest)) if order is None else order)
        rows: list[dict[str, Any]] = [nbest.raw.candidates[i] for i in chosen]
        if scores is not None:
            old, new = USUAL[BASE_SCORE], (USUAL if self.numbers is None else self.numbers).get(SCORE, USUAL[SCORE])
            pairs = zip(rows, chosen, strict=True)
            rows = [{old: float(nbest.base[i]), **row, new: float(scores[i])} for row, i in pairs]
        keys = dict.fromkeys(key for row in rows for key in row) or {self.texts: None}
        item = {**nbest.raw.head, **{key: [row.get(key) for row in rows] for key in keys}}
        out.write(json_line(item, nbest))

    @property
    def nothing(self) -> dict[str, Any]:
        return {self.texts: []}

    def draft(self, content: dict[str, Any], names: tuple[str, ...] | None) -> Draft:  # noqa: ARG002
        texts = content.get(self.texts)
        if not isinstance(texts, list):
            message = f"found {shown(texts)} under {self.texts!r}; expected a list of texts"
            raise Problem("text", f"{message}; the reader's option texts names the key")
        usual = {name: key for name, key in USUAL.items() if key in content}
        keys = usual if self.numbers is None else self.numbers
        for name, key in keys.items():
            values = content.get(key)
            if not isinstance(values, list) or len(values) != len(texts):
                said = f"{len(values)} entries" if isinstance(values, list) else shown(values)
                message = f"found {said} under {key!r} for the column {name!r}; expected one for each of "
                raise Problem("columns", f"{message}{len(texts)} texts")
        named, once = (self.texts, *keys.values(), *self.labels), (self.prompt, self.reference, self.id)
        lists = [key for key, value in content.items() if isinstance(value, list) and len(value) == len(texts)]
        along = [key for key in lists if key in named or key not in once]
        rows = [{key: content[key][k] for key in along} for k in range(len(texts))]
        source, reference = content.get(self.prompt), content.get(self.reference)
        given: list[Any] = reference if isinstance(reference, list) and not is_conversation(reference) else [reference]
        steps = stepped([{name: row[key] for name, key in keys.items()} for row in rows])
        candidates = each(rows, lambda row, k: self._candidate(row, k, keys, steps))
        source = None if source is None else whole(source, f"{self.prompt!r}")
        references = tuple(whole(one, f"{self.reference!r}") for one in given if one is not None)
        return Draft(candidates, rows, content, source=source, references=references)

    def _candidate(self, row: dict[str, Any], k: int, keys: Mapping[str, str], steps: Collection[str]) -> Entry:
        """Candidate ``k``; steps: the columns of scores of its steps. Raises Problem."""
        text = said(row[self.texts], f"text {k}").text
        given = {name: (row[key], key) for name, key in keys.items() if row[key] is not None and name not in steps}
        numbers = {name: number_of(value, f"entry {k} of {key!r}") for name, (value, key) in given.items()}
        numbers |= self.derived({name: row[keys[name]] for name in steps}, steps, k)
        return Entry(text, numbers, labels=self.labelled(row))
