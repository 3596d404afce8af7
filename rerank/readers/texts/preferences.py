"""Data sets of preferences, one JSON object per line: a prompt, an answer that was chosen, one that was rejected.

Three lines this reads::

    {"prompt": "2+2?", "chosen": "4", "rejected": "5"}
    {"prompt": "2+2?", "chosen": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}],
        "rejected": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "5"}]}
    {"prompt": "2+2?", "chosen": "4", "rejected": ["5", "22"]}

A text may be a conversation: the candidate is its last message, and what comes before, the same for all answers, is the
source where there is no prompt. Candidates are in the order of their texts, so that their places do not tell which of
them was chosen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

from rerank.base.errors import RecipeError
from rerank.readers.base import Problem
from rerank.readers.texts.json_lines import SampleReader, is_conversation, number_of, said, stepped, whole
from rerank.readers.texts.jsonl import WrittenAsJsonl
from rerank.readers.texts.text_list import Draft, Entry, each

GAIN = "gain"


class _Answer(NamedTuple):
    """An answer, not checked yet."""

    text: Any
    gain: float
    numbers: dict[str, Any]
    labels: dict[str, Any]


@dataclass(frozen=True)
class PreferencesReader(WrittenAsJsonl, SampleReader):
    """Lists of what was chosen, with the gain 1, and of what was rejected, with the gain 0.

    >>> (nbest,) = PreferencesReader().parse(b'{"prompt": "2+2?", "chosen": "4", "rejected": "5"}')
    >>> nbest.texts, nbest.names, nbest.scores
    ([b'4', b'5'], ('score', 'gain'), array([[0., 1.],
       [0., 0.]]))

    Parameters
    ----------
    duplicates, ids, steps: see ``SampleReader``.
    labels: the keys of texts, without that of the answers before them, that are sparse features: ``model`` for those
        under ``chosen_model`` and ``rejected_model``.
    prompt, chosen, rejected, id: the keys of these; prompt and id may be missing from the file.
    numbers: the keys of numbers by the name of their column, that of what was chosen first:
        ``{gain: [score_chosen, score_rejected]}``.
    """

    form: ClassVar[str] = "preferences"

    prompt: str = "prompt"
    chosen: str = "chosen"
    rejected: str = "rejected"
    id: str = "id"
    numbers: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.numbers is not None and not _are_numbers(self.numbers):
            message = "expected the names of columns, each with two keys: {gain: [score_chosen, score_rejected]}"
            raise RecipeError(f"found {self.numbers!r}; {message}", key="numbers")

    def draft(self, content: dict[str, Any], names: tuple[str, ...] | None) -> Draft:  # noqa: ARG002
        answers = [*self._answers(content, 0), *self._answers(content, 1)]
        steps = stepped([answer.numbers for answer in answers])
        read = each(answers, partial(self._candidate, steps=steps))
        order = sorted(range(len(read)), key=lambda k: str(answers[k].text))
        candidates = [one if isinstance(one, Problem) else one[0] for one in (read[k] for k in order)]
        before = dict.fromkeys(one[1] for one in read if not isinstance(one, Problem) and one[1])
        if len(before) > 1:
            message = "the answers come after different messages; they need to be answers to the same prompt"
            raise Problem("text", message)
        source = None if (given := content.get(self.prompt)) is None else whole(given, f"{self.prompt!r}")
        return Draft(candidates, [answers[k] for k in order], None, source=source or next(iter(before), source))

    def _candidate(self, answer: _Answer, k: int, steps: tuple[str, ...]) -> tuple[Entry, bytes | None]:
        """The candidate that an answer is, and what was said before it. Raises Problem."""
        text, before = said(answer.text, f"{self.chosen!r} or {self.rejected!r}")
        given = {name: value for name, value in answer.numbers.items() if value is not None and name not in steps}
        numbers = {name: number_of(value, f"the number {name!r} of an answer") for name, value in given.items()}
        numbers = {GAIN: answer.gain} | numbers | self.derived(answer.numbers, steps, k)
        return Entry(text, numbers, labels=self.labelled(answer.labels)), before

    def _answers(self, content: dict[str, Any], side: int) -> list[_Answer]:
        """The chosen (0) or rejected (1) answers. Raises Problem."""
        key = (self.chosen, self.rejected)[side]
        if key not in content:
            raise Problem("text", f"there is no {key!r}; the reader's options chosen and rejected name the keys")
        several = isinstance(content[key], list) and not is_conversation(content[key])
        texts = content[key] if several else [content[key]]
        columns: dict[str, list[Any]] = {}
        for name, keys in (self.numbers or {}).items():
            if keys[side] not in content:
                raise Problem("columns", f"there is no {keys[side]!r} for the column {name!r}")
            values = content[keys[side]]
            columns[name] = values if several and isinstance(values, list) else [values]
            if len(columns[name]) != len(texts):
                message = f"found {len(columns[name])} numbers under {keys[side]!r}; expected one for each text"
                raise Problem("columns", f"{message} under {key!r}")
        named = {label: content.get(f"{key}_{label}") for label in self.labels}
        labels = {label: found if isinstance(found, list) else [found] * len(texts) for label, found in named.items()}
        return [
            _Answer(
                text, 1.0 - side, {name: values[k] for name, values in columns.items()},
                {label: values[k] for label, values in labels.items() if len(values) == len(texts)},
            )
            for k, text in enumerate(texts)
        ]  # fmt: skip


def _are_numbers(found: Any) -> bool:
    """Whether it is what the option ``numbers`` takes."""
    if not isinstance(found, Mapping) or not all(isinstance(keys, list | tuple) for keys in found.values()):
        return False
    texts = [text for name, keys in found.items() for text in (name, *keys)]
    return all(isinstance(text, str) and text for text in texts) and len(texts) == 3 * len(found)
