"""One answer from a whole list instead of its best candidate: by expected gain, or fused from all trees.

Scores give every candidate a probability, p(y) ∝ exp(a · s(y)/σ). *mbr* (minimum Bayes risk; Kumar & Byrne 2004) takes
the candidate with the greatest expected gain, Σ p(r) · gain(y, r), where every candidate r is the reference in turn.
Where candidates have answers the gain is whether these are equal: the answer with the most probability wins (weighted
self-consistency; Wang et al. 2023), and of its candidates the one with the best score; without an answer there is no
gain.
*fuse* makes a tree of the brackets that are probable enough: see ``rerank.metrics.fusion``; *learned* too, but
how probable they are is what a ``BracketModel`` says, and a candidate that is worth nearly as much takes its place.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import Registry
from rerank.data.trees import brackets as bracketed
from rerank.extraction.content import Content
from rerank.learn.scoring import softmax
from rerank.metrics.bracket_model import BracketModel
from rerank.metrics.fusion import Fusion, VotedBracket, probabilities
from rerank.models.provenance import Decoding
from rerank.readers.lists import Lists, answer_numbers

TIE_TOLERANCE = 1e-12  # of candidates whose expected gain is as near to the best, the best by score is taken
Gains = Callable[[Sequence[Any]], Any] | Sequence[Sequence[float]] | np.ndarray
gain_functions: Registry[Callable[..., Any]] = Registry("gain function")  # from candidates to float64 [N, N]


class Decoded(NamedTuple):
    """The answer that a list is decoded to.

    text: the answer; place: the candidate that it is, None for a fused tree that is none; probabilities: float64 [N];
    expected: float64 [N], expected gains (0 for candidates beyond ``most``), None where there are none; votes: all
    brackets of a list whose trees were fused, the most probable first; left_out: candidates without a vote, as their
    words are others; answers: those that candidates have, with their shares of the probability, the greatest first;
    margin: how far the first is ahead of the second or, where there are no answers, the most probable candidate.
    Without an answer, as the margin was too small, ``text`` is empty and ``place`` None.
    """

    text: str
    place: int | None
    probabilities: np.ndarray
    expected: np.ndarray | None = None
    votes: Sequence[VotedBracket] = ()
    left_out: int = 0
    answers: Sequence[tuple[str, float]] = ()
    margin: float = 0.0


def agreement(nbest: Lists, p: np.ndarray) -> tuple[list[tuple[str, float]], float]:
    """The answers and the margin of a list, by the probabilities of its candidates (float64 [N]): see ``Decoded``."""
    if nbest.answers is None:
        return [], _lead(p)
    (shares,) = shares_of(answer_numbers(nbest), p[None])[:, :-1]
    texts = list(dict.fromkeys(decoded(answer) for answer in nbest.answers if answer is not None))
    order = np.argsort(-shares, kind="stable").tolist()
    return [(texts[v], float(shares[v])) for v in order], _lead(shares)


def _lead(shares: np.ndarray) -> float:
    """The distance of the greatest from the next."""
    first, second, *_ = sorted([*shares.tolist(), 0.0, 0.0], reverse=True)
    return float(first - second)


def shares_of(answers: np.ndarray, p: np.ndarray) -> np.ndarray:
    """float64 [A, V + 1]: the probability of each answer, by those of candidates (float64 [A, N]); 0 for none, -1."""
    some, size = answers >= 0, int(answers.max(initial=-1)) + 2
    return np.array([np.bincount(answers[some], of[some], size) for of in p], np.float64).reshape(len(p), size)


class Evidence:
    """A list whose candidates speak for one another.

    rows: the candidates as ``content`` reads them. most: see ``Decoding``. gains: a user's function from
    candidates to their gains, or these themselves (float64 [N, N]); None: the metric's.
    """

    def __init__(
        self, content: Content[Any], nbest: Lists, rows: Any, most: int = 200, gains: Gains | None = None
    ) -> None:
        self._content, self._nbest, self._rows = content, nbest, rows
        self._most, self._gains = most, gains
        self.cut = False  # whether only the ``most`` best candidates were compared with one another
        # int32 [N]: the answers, where it is the gain that they are equal.
        self.answers = answer_numbers(nbest) if gains is None and nbest.answers is not None else None
        # No cached_property: its lock is one for all lists in Python 3.11, and a forked process may find it locked.
        self._all: np.ndarray | None = None  # float64 [N, N]: gains[r, y] is the gain of candidate y if r is right
        self._fusion: Fusion | None = None

    def gains(self, indices: list[int]) -> np.ndarray:
        """The gains of the candidates at ``indices`` against each other."""
        if self._gains is None:
            return self._content.pairwise(self._nbest, self._rows, indices)
        candidates, N = self._nbest.candidates, len(indices)
        try:
            if callable(self._gains):
                matrix = np.asarray(self._gains([candidates[y] for y in indices]), np.float64)
            else:
                matrix = np.asarray(self._gains, np.float64)[np.ix_(indices, indices)]
        except Exception as error:  # the function is the user's: it can raise anything
            message = f"the gains of list {self._nbest.id!r} cannot be used: {type(error).__name__}: {error}"
            raise RecipeError(message, key="decode.gains") from error
        if matrix.shape != (N, N) or not np.isfinite(matrix).all():
            message = f"found gains of the shape {matrix.shape} for {N} candidates of list {self._nbest.id!r}"
            raise RecipeError(f"{message}; expected {N} x {N} finite numbers", key="decode.gains")
        return matrix

    def expected_gains(self, scores: np.ndarray, sharpness: np.ndarray, deviation: float) -> np.ndarray:
        """float64 [A, N]: expected gains; −∞ for candidates that are not among the ``most`` best by score."""
        N = scores.size
        if self.answers is not None:
            return shares_of(self.answers, probabilities(scores, sharpness, deviation))[:, self.answers]
        best, self.cut = np.lexsort((np.arange(N), -scores))[: self._most], self._most < N
        if not self.cut and self._all is None:
            self._all = np.ascontiguousarray(self.gains(list(range(N))).T)
        candidates = best if self._all is None else np.arange(N)
        by_reference = self.gains(best.tolist()).T.copy() if self._all is None else self._all[best]
        expectations = np.full((sharpness.size, N), -np.inf)
        for row, p in zip(expectations, probabilities(scores[best], sharpness, deviation), strict=True):
            # One reference after the other, for all candidates at once: along rows numpy adds in another order.
            row[candidates] = (by_reference * p[:, None]).sum(axis=0)
        return expectations

    @property
    def fusion(self) -> Fusion:
        """The trees, for fusion."""
        if self._fusion is None:
            self._fusion = Fusion(self._rows.trees, self._rows.symbols)
        return self._fusion


def best_expected(expectations: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """int64 [A]: the candidates with the greatest expected gain (float64 [A, N]); of equal ones, the one with the best
    score, then the first."""
    order = np.lexsort((np.arange(scores.size), -scores))
    by_score = expectations[:, order]
    return np.asarray(order[np.argmax(by_score >= by_score.max(axis=1, keepdims=True) - TIE_TOLERANCE, axis=1)])


def decode(
    how: Decoding, content: Content[Any], nbest: Lists, rows: Any, scores: np.ndarray, gains: Gains | None = None,
    brackets: BracketModel | None = None,
) -> Decoded:  # fmt: skip
    """The answer of a list with ``scores`` (float64 [N]); ``gains`` take the place of those that ``how`` names, and
    ``brackets`` judge where it is learned.
    """
    if not len(nbest):
        raise DataError("the list has no candidates", path=nbest.path, list_id=nbest.id)
    if gains is None and how.gains is not None:
        gains = gain_functions.get(how.gains)
    evidence, a = Evidence(content, nbest, rows, how.most, gains), np.array([how.sharpness])
    p = probabilities(scores, a, how.deviation)
    if how.kind == "mbr":
        expectations = evidence.expected_gains(scores, a, how.deviation)
        answers, margin = agreement(nbest, p[0])
        index = index_by_margin(how, int(best_expected(expectations, scores)[0]), margin, nbest.base)
        text = "" if index is None else decoded(nbest.original(index))
        finite = np.where(np.isfinite(expectations[0]), expectations[0], 0.0)
        return Decoded(text, index, p[0], finite, answers=answers, margin=margin)
    from rerank.extraction.trees import TreeContent  # the templates of trees

    require_trees(isinstance(content, TreeContent))
    fusion = evidence.fusion
    if not fusion.used.any():  # failed parses alone
        y = int(np.argmax(scores))
        return Decoded(decoded(nbest.original(y)), y, p[0], left_out=fusion.left_out, margin=_lead(p[0]))
    chances, near, loss = None, 0, np.inf
    if how.kind == "learned":
        if brackets is None:
            message = "the model holds no bracket model; train it with decode.kinds: [mbr, fuse, learned]"
            raise RecipeError(message, key="decode")
        chances = brackets.judge(fusion, scores, nbest.base, a, how.deviation)[0]
        near, loss = fusion.nearest(chances, how.threshold, scores)
    votes = fusion.votes(p[0], None if chances is None else fusion.without_crossing(chances))
    if loss < how.slack:
        index, text = near, decoded(nbest.original(near))
    else:
        tree = fusion.trees(p, np.array([how.threshold]), None if chances is None else chances[None])
        index, text = fusion.index_of(tree, scores), bracketed(tree, 0, rows.symbols)
    p = fusion.normalise(p)
    return Decoded(text, index, p[0], votes=votes, left_out=fusion.left_out, margin=_lead(p[0]))


def index_by_margin(how: Decoding, index: int, margin: float, base: np.ndarray) -> int | None:
    """``index``; where the margin is too small, what ``how`` says: None, or the best by base score (float64 [N])."""
    if margin >= how.margin:
        return index
    return None if how.below == "abstain" else int(np.argmax(base))


def best_answer(nbest: Lists, order: np.ndarray, scores: np.ndarray) -> Decoded:
    """The best candidate of a list, by its score, as an answer."""
    if not len(nbest):
        raise DataError("the list has no candidates", path=nbest.path, list_id=nbest.id)
    y, p = int(order[0]), np.array(softmax(scores.tolist()))  # ``probabilities`` where nothing was tuned
    answers, margin = agreement(nbest, p)
    return Decoded(decoded(nbest.original(y)), y, p, answers=answers, margin=margin)


def require_trees(trees: bool) -> None:
    """Refuse to fuse texts."""
    if not trees:
        raise RecipeError("only trees can be fused; use mbr for texts", key="decode")
