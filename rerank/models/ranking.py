"""A model's ranking of one list: its candidates, best first."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.models.scorer import Contribution, Ranked
from rerank.readers.nbest import Candidate, NBestList

if TYPE_CHECKING:
    from rerank.models.decoding import Decoded


class Ranking:
    """The candidates of a list, best first.

    ``order`` (int64 [N]) has their places in the list as it was given: that of the best, where it is one of them, then
    by score; ``id`` is the list's name, empty if it has none; ``predictor`` is what has chosen the best.
    """

    __slots__ = ("_explain", "_given", "_ranked", "order", "predictor")

    def __init__(
        self,
        given: Sequence[Any],
        ranked: Ranked,
        explain: Callable[[Ranked, int, int], list[Contribution]],
        predictor: str = "",
    ) -> None:
        self._given, self._ranked, self._explain = given, ranked, explain
        self.order, self.predictor = ranked.order, predictor

    @property
    def id(self) -> str:
        """The name of the list."""
        return self._ranked.nbest.id

    @property
    def nbest(self) -> NBestList:
        """The list as readers give lists."""
        return self._ranked.nbest

    @property
    def best(self) -> Any:
        """The best candidate, as it was given; None where the model gives no answer, as its margin is too small. Where
        it fuses trees, the fused one: if it is none of the list (``place`` is None), in brackets where candidates are
        texts, else as a ``Candidate``.

        Raises
        ------
        DataError: the list has no candidates.
        """
        if not self.order.size:
            raise DataError("the list has no candidates", list_id=self.id or None)
        if (place := self.place) is not None:
            return self._given[place]
        if not self.text:
            return None
        return self.text if isinstance(self._given[0], str) else Candidate(tree=self.text)

    @property
    def text(self) -> str:
        """The text of the best candidate, or the tree that was fused; empty without candidates."""
        return decoded(self._ranked.best)

    @property
    def place(self) -> int | None:
        """The place of the best candidate in the list as it was given; None for a fused tree that is none of them,
        where no answer is given, and without candidates."""
        answer = self._ranked.answer
        return answer.place if answer is not None else int(self.order[0]) if self.order.size else None

    @property
    def candidates(self) -> list[Any]:
        """The candidates as they were given, best first."""
        return [self._given[y] for y in self.order.tolist()]

    @property
    def scores(self) -> np.ndarray:
        """float64 [N]: the scores of the candidates in their order; votes where the model votes."""
        return np.asarray(self._ranked.scores[self.order])

    @property
    def probabilities(self) -> np.ndarray:
        """float64 [N]: the probabilities of the candidates in their order, as the model decodes by them; of a model
        that does not, in proportion to e^score."""
        return np.asarray(self._decoded.probabilities[self.order]) if len(self) else np.zeros(0)

    @property
    def answers(self) -> list[tuple[str, float]]:
        """The answers that candidates have, each with its share of the probabilities, the greatest first; empty without
        any."""
        return list(self._decoded.answers) if len(self) else []

    @property
    def margin(self) -> float:
        """The certainty of the choice, from 0 to 1: the share of the first answer less that of the second; without
        answers the highest probability less the next; 0 without candidates."""
        return self._decoded.margin if len(self) else 0.0

    @property
    def _decoded(self) -> "Decoded":
        from rerank.models.decoding import best_answer  # with the kernels of decoding

        ranked = self._ranked
        return ranked.answer or best_answer(ranked.nbest, ranked.order, ranked.scores)

    @property
    def unknown(self) -> int:
        """The number of features that vary in the list and that the model does not know."""
        return self._ranked.unknown

    def explain(self, place: int = 0, other: int = 1) -> list[Contribution]:
        """The reasons why the candidate at ``place`` of this order stands before ``other``: the features in which they
        differ, those that decide first. By default the best and the second; a list of one has nothing to explain.

        Raises
        ------
        DataError: a place that is not in the list.
        """
        if len(self) < 2:
            return []
        if wrong := [y for y in (place, other) if not -len(self) <= y < len(self)]:
            message = f"found the place {wrong[0]}; expected one from 0 to {len(self) - 1}"
            raise DataError(message, list_id=self.id or None)
        return self._explain(self._ranked, int(self.order[place]), int(self.order[other]))

    def __len__(self) -> int:
        return int(self.order.size)

    def __repr__(self) -> str:
        shown = f" {self.id}" if self.id else ""
        return f"<Ranking{shown}: {len(self)} candidates, best {self.best!r}>" if len(self) else f"<Ranking{shown}: 0>"
