"""A model that picks: candidates in memory, or the lists of a file, in the order of their scores."""

import logging
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError, RecipeError
from rerank.extraction.content import Pair
from rerank.features.table import HashedTable
from rerank.learn.scoring import softmax
from rerank.models.model import HEADER, Model, models
from rerank.models.provenance import Trust
from rerank.models.scorer import Contribution, Ranked, Scorer
from rerank.models.weights import named_weights
from rerank.readers.lists import Candidate, Lists
from rerank.readers.memory.nbest import CandidateLike, InputError, NBest, Plain, as_error, as_list, files_only, iterate
from rerank.readers.memory.reading import FrameColumns, FrameLists, check_keys, is_frame
from rerank.readers.reader import OnBadList, Problem, ScoreColumns, SkipCount, check_names, make_reader
from rerank.readers.texts.jsonl import is_table, table
from rerank.readers.texts.text_list import SCORE
from rerank.recipes.recipe import ListRecipe, TextRecipe
from rerank.storage.documents import as_json, read_object
from rerank.storage.streams import PathLike

if TYPE_CHECKING:
    from rerank.models.decoding import Decoded, Gains

log = logging.getLogger("rerank")
# A list: its candidates, an ``NBest``, or a dict that is a JSON line.
Candidates: TypeAlias = NBest | Mapping[str, Any] | Iterable[CandidateLike]


def load(path: PathLike, predictor: str | None = None, *, trust: Trust = False) -> Any:
    """The model in a directory that ``rerank run``, or ``Reranker.save``, has left; a ``Tagger`` if
    it tags words, else a ``Reranker``.

    predictor: "average", "last", "mert" or "voted", for the best candidate by it, or "mbr", "fuse" or "learned", to
        decode lists, where the model has it; by default what was decided on dev.
    trust: which code the model may name for this process to import and call, such as features of your own: none, all
    (True), or the code of some modules, as ``["levels"]``.

    Raises
    ------
    ModelError: not a model, damaged, not one of lists, without the predictor, or names code that is not trusted.
    """
    try:
        header = read_object(Path(path, HEADER))
    except (OSError, ValueError):  # of which ``Model.load`` says more
        header = {}
    for kind in models.names():
        if kind in header:
            return models.get(kind).load(os.fspath(path), trust)
    return Reranker(Model.load(os.fspath(path), trust), predictor)


class Ranking:
    """The candidates of a list, best first.

    ``predictor`` has chosen the best; ``unknown`` is how many features vary that the model does not know.
    """

    __slots__ = ("_answer", "_model", "_nbest", "_order", "_originals", "_scores", "predictor", "unknown")

    def __init__(
        self, model: "Reranker", originals: Sequence[Any], nbest: Lists | Plain,
        order: np.ndarray | list[int], scores: np.ndarray | list[float], unknown: int, answer: "Decoded | None" = None,
    ) -> None:  # fmt: skip
        self._model, self._originals, self._nbest, self.predictor = model, originals, nbest, model.predictor
        self._order, self._scores, self.unknown, self._answer = order, scores, unknown, answer

    @property
    def order(self) -> np.ndarray:
        """int64 [N]: the places of the candidates as given: first the best's, if it is one of them, then by score."""
        return np.asarray(self._order, np.int64)

    @property
    def id(self) -> str:
        """The name of the list, empty if it has none."""
        return self._nbest.id

    @property
    def nbest(self) -> Lists:
        """The list as readers give lists."""
        if isinstance(self._nbest, Plain):
            self._nbest = self._nbest.lists()
        return self._nbest

    @property
    def best(self) -> Any:
        """The best candidate, as it was given; None where the model gives no answer, as its margin is too small. Where
        it fuses trees, the fused one: if it is none of the list (``place`` is None), in brackets where candidates are
        texts, else as a ``Candidate``.

        Raises
        ------
        DataError: the list has no candidates.
        """
        if not len(self):
            raise DataError("the list has no candidates", list_id=self.id or None)
        if (index := self.place) is not None:
            return self._originals[index]
        if not self.text:
            return None
        return self.text if isinstance(self._originals[0], str) else Candidate(tree=self.text)

    @property
    def text(self) -> str:
        """The text of the best candidate, or the tree that was fused; empty without candidates."""
        if self._answer is not None:
            return self._answer.text
        return decoded(self.nbest.original(int(self._order[0]))) if len(self) else ""

    @property
    def place(self) -> int | None:
        """The place of the best candidate in the list as it was given; None for a fused tree that is none of them,
        where no answer is given, and without candidates."""
        return self._answer.place if self._answer is not None else int(self._order[0]) if len(self) else None

    @property
    def candidates(self) -> list[Any]:
        """The candidates as they were given, best first."""
        return [self._originals[y] for y in self._order]

    @property
    def scores(self) -> np.ndarray:
        """float64 [N]: the scores of the candidates in their order; votes where the model votes."""
        return np.asarray(np.asarray(self._scores)[self.order])

    @property
    def probabilities(self) -> np.ndarray:
        """float64 [N]: the probabilities of the candidates in their order, as the model decodes by them; of a model
        that does not, in proportion to e^score."""
        return np.array(self.as_object()["probabilities"])

    def as_object(self) -> dict[str, list[Any]]:
        """The order, scores and probabilities as JSON has them."""
        order: list[int] = self._order if isinstance(self._order, list) else self._order.tolist()
        scores: list[float] = self._scores if isinstance(self._scores, list) else self._scores.tolist()
        every = softmax(scores) if self._answer is None else self._answer.probabilities.tolist()
        return {"order": order, "scores": [scores[y] for y in order], "probabilities": [every[y] for y in order]}

    @property
    def answers(self) -> list[tuple[str, float]]:
        """The answers that candidates have, each with its share of the probabilities, the greatest first; empty without
        any."""
        return [] if isinstance(self._nbest, Plain) or not len(self) else list(self._decoding.answers)

    @property
    def margin(self) -> float:
        """The certainty of the choice, from 0 to 1: the share of the first answer less the second's; without
        answers the highest probability less the next; 0 without candidates."""
        return self._decoding.margin if len(self) else 0.0

    @property
    def _decoding(self) -> "Decoded":
        if self._answer is None:
            from rerank.models.decoding import best_answer  # with the kernels of decoding

            self._answer = best_answer(self.nbest, self.order, np.asarray(self._scores))
        return self._answer

    def explain(self, place: int = 0, other: int = 1) -> list[Contribution]:
        """The reasons why the candidate at ``place`` of this order stands before ``other``: the features in which they
        differ, the most decisive first. By default the best and the second; a list of one has nothing to explain.

        Raises
        ------
        DataError: a place that is not in the list.
        """
        if len(self) < 2:
            return []
        if wrong := [y for y in (place, other) if not -len(self) <= y < len(self)]:
            message = f"found the place {wrong[0]}; expected one from 0 to {len(self) - 1}"
            raise DataError(message, list_id=self.id or None)
        choice, less = int(self._order[place]), int(self._order[other])
        return self._model._scorer.explain(self._model._open(self.nbest), choice, less)

    def __len__(self) -> int:
        return len(self._order)

    def __repr__(self) -> str:
        name = f" {self.id}" if self.id else ""
        return f"<Ranking{name}: {len(self)} candidates, best {self.best!r}>" if len(self) else f"<Ranking{name}: 0>"


class Reranker:
    """A model and one of its predictors. Threads may share it: nothing that rankings depend on changes."""

    def __init__(self, model: Model, predictor: str | None = None) -> None:
        self._scorer, self._unknown = Scorer(model, predictor), set[str]()  # unknown columns that a warning has named
        self._texts = isinstance(self._scorer.recipe, TextRecipe)

    def __repr__(self) -> str:
        weights = self._scorer.weights
        size = "trees" if weights.trees is not None else f"{np.count_nonzero(weights.w):,} weights"
        return f"<Reranker, {self.recipe.task}: {self.model.about['learner']}, {size}, chooses by {self.predictor}>"

    @cached_property
    def _columns(self) -> ScoreColumns | None:
        """The score columns that candidates must have; None: the first candidate's."""
        columns = self._scorer.content.columns
        return ScoreColumns((SCORE,), SCORE) if columns is None and not self._texts else columns

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: the model, from which everything else is made again."""
        return Reranker, (self.model, self.predictor)

    @property
    def model(self) -> Model:
        """The basis of its rankings: weights, features and where they come from."""
        return self._scorer.model

    @property
    def predictor(self) -> str:
        """The predictor that chooses, which may be a way of decoding."""
        return self._scorer.predictor

    @property
    def ranked_by(self) -> str:
        """The predictor that gives the scores."""
        return self._scorer.ranked_by

    @property
    def recipe(self) -> ListRecipe:
        """The recipe that made the model, all defaults written out; ``recipe.as_yaml()`` is what `rerank run` takes."""
        return self._scorer.recipe

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the numbers that candidates have, the base score's first."""
        columns = self._columns or ScoreColumns((SCORE,), SCORE)
        return (columns.base or SCORE, *(name for name in columns.names if name != columns.base))

    @property
    def sees_source(self) -> bool:
        """Whether features look at the source of a list; those of one's own are taken to do so."""
        content = self._scorer.content
        return bool(content.needs.get("source") or content.user)

    @cached_property
    def of_columns(self) -> bool:
        """Whether score columns and their weights are all that it chooses by: it looks at no text, tree or vote."""
        scorer, by_columns = self._scorer, getattr(self._scorer.content, "by_columns", False)
        linear = scorer.how is None and scorer.predictor != "voted" and scorer.weights.trees is None
        by_name = not isinstance(self.model.table, HashedTable)
        return linear and by_name and by_columns and not getattr(scorer.content, "answer", None)

    def rank(self, candidates: Candidates, source: str | None = None) -> Ranking:
        """Candidates for one input, best first.

        candidates: texts or trees, with or without numbers; an ``NBest``, which see; or a dict of a JSON line. source:
        their input, for features that look at it.

        Raises
        ------
        DataError: a candidate that cannot be used; says which one, and why.
        """
        if source is None and (ranking := self.rank_plain(candidates)) is not None:
            return ranking
        originals, pair = self._pair(candidates, source)
        (item,) = self._scorer.rank([pair])
        assert isinstance(item, Ranked)
        return Ranking(self, originals, *item)

    def rank_plain(self, candidates: Candidates, most: int = sys.maxsize) -> Ranking | None:
        """``rank`` of dicts that hold a text of at most so many bytes, the numbers of ``columns`` and nothing else;
        None for others, and where the model looks at more than these numbers."""
        if (plain := self._plain(candidates)) is None or max(map(len, plain.texts)) > most:
            return None
        ranking = self._scorer.rank_plain(plain)
        return None if ranking is None else Ranking(self, plain.rows, plain, *ranking)

    def best(self, candidates: Candidates, source: str | None = None) -> Any:
        """The best of some candidates, as it was given; or a tree fused of them, see ``Ranking.best``.

        Raises
        ------
        DataError: as for ``rank``; or there are no candidates.
        """
        return self.rank(candidates, source).best

    def decode(
        self, candidates: Candidates, source: str | None = None, *, how: str | None = None, gains: "Gains | None" = None
    ) -> "Decoded":
        """One answer from all candidates, with what speaks for it: the best candidate, the one with the greatest
        expected gain, or a tree fused of all.

        Parameters
        ----------
        candidates, source: as for ``rank``.
        how: "mbr", "fuse" or "learned" (parses) or "best"; by default as ``predictor`` says.
        gains: for mbr, what every candidate gains (rows) if another is the reference (columns), or a function that
            gives this for candidates; by default the metric's.

        Raises
        ------
        DataError: as for ``rank``; or there are no candidates. ModelError: the model was not tuned for this.
        RecipeError: gains that cannot be used.
        """
        how = "mbr" if how is None and gains is not None else how
        return self._scorer.answer(self._pair(candidates, source)[1], self._scorer.decoding(how), gains)

    def rank_many(
        self,
        lists: Iterable[Candidates] | PathLike,
        *,
        format: str | Mapping[str, Any] | None = None,
        sources: PathLike | None = None,
        on_bad_list: OnBadList = "error",
    ) -> Iterator[Ranking]:
        """The rankings of many lists, in their order, made while they are asked for: by 64 lists where the model votes,
        else one by one, which is faster.

        Parameters
        ----------
        lists: of candidates, or ``NBest``s; or the path of a file of lists, "-" or ``sys.stdin`` for standard input.
        format: the reader of the file, by name or with options; by default the format of the training lists.
        sources: a file with the inputs of the file's lists, one per line.
        on_bad_list: whether a list of the file that cannot be used is an "error", or is left out ("skip") and logged.

        Raises
        ------
        DataError: a list or candidate that cannot be used, an unreadable file. RecipeError: an unknown format, or one
            for lists that are no file.
        """
        if lists is sys.stdin or lists is getattr(sys.stdin, "buffer", None):
            lists = "-"
        if isinstance(lists, str | os.PathLike):
            count = SkipCount(on_bad_list)
            reader = self._scorer.reader if format is None else make_reader(format)
            for item in self._scorer.rank(self._scorer.read(reader, os.fspath(lists), count, sources)):
                if isinstance(item, Ranked):
                    yield Ranking(self, item.nbest.candidates, *item)
            count.warn()
            return
        if is_frame(lists):
            raise InputError("found a data frame; expected lists: score_frame ranks its rows", "lists")
        files_only("lists in memory", format=format, sources=sources)
        every = iterate(lists, "lists, in a list", "lists")
        waiting = deque[Sequence[CandidateLike]]()

        def pairs() -> Iterator[Pair]:
            for number, each in enumerate(every):
                candidates, pair = self._pair(each, None, str(number))
                waiting.append(candidates)
                yield pair

        for item in self._scorer.rank(self._scorer.watch(pairs())):
            assert isinstance(item, Ranked)
            yield Ranking(self, waiting.popleft(), *item)

    def score_frame(
        self, frame: Any, *, into: tuple[str, str] = ("score", "rank"), **columns: Unpack[FrameColumns]
    ) -> Any:
        """A data frame with the scores of its rows, and their ranks in their lists: 1 for the best.

        Parameters
        ----------
        frame: of pandas, polars, pyarrow or another library. Its rows keep their order, and it is not changed.
        into: the names of the two columns (float64, int64) that the frame which is returned has besides its own.
        columns: as in ``read``; by default as in the data frame that the model was trained on.

        Raises
        ------
        DataError: a column that is missing, or a value in it; a candidate that cannot be used. RecipeError: ``into`` is
            not two names.
        """
        check_keys("score_frame", columns)
        check_names(into, "into")
        if len(into) != 2:
            raise RecipeError(f"found {into!r}; expected two names, of the scores and of the ranks", key="into")
        lists = self.frame_lists(frame, columns, with_truth=False)
        if self._scorer.content.needs_scores and not {"score", "chosen"} & lists.names.keys():
            message = f"no column of base scores, {self.columns[0]!r} of the training lists; name it, as score="
            raise DataError(message)
        scores, ranks = np.zeros(len(lists.frame)), np.zeros(len(lists.frame), np.int64)
        for rows, ranking in zip(lists.rows_by_list.values(), self.rank_many(lists), strict=True):
            indices = np.array(rows)[ranking.order]
            scores[indices], ranks[indices] = ranking.scores, np.arange(1, indices.size + 1)
        return lists.with_columns(dict(zip(into, (scores, ranks), strict=True)))

    def frame_lists(self, frame: Any, columns: Mapping[str, Any], *, with_truth: bool) -> FrameLists:
        """The lists of a data frame, whose columns are those of training unless others are named; ``with_truth``
        tells whether it says what is right in them.

        Raises
        ------
        DataError: a column that is missing, or a value in it.
        """
        right = () if with_truth else ("gain", "references", "chosen", "rejected")
        about = self.model.about.get("frame") or {}
        names = {key: name for key, name in about.items() if key not in right} | dict(columns)
        self._tell_unknown(name for name in columns.get("columns", ()) if name not in self.columns)
        if self._columns:
            names["columns"] = [name for name in self._columns.names if name != self._columns.base]
        kind = "text" if self._texts else "tree"
        if "chosen" not in names and kind not in names and {"text", "tree"} & names.keys():
            raise DataError(f"the model ranks {kind}s; name their column, as {kind}=")
        return FrameLists.of(table(frame) if is_table(frame) else frame, names, self._columns, complete=bool(about))

    def save(self, path: PathLike) -> None:
        """Write the model to a directory, which appears under its name only when it is complete.

        Raises
        ------
        RunError: the directory cannot be written. RecipeError: it has no name, or is a URL.
        """
        self.model.save(Path(path))

    def to_json(self) -> str:
        """The weights by name, for other programs: a JSON object with the weight of the base score, ``base``, the
        weights that are not 0 by feature, ``weights``, and the names of the score columns, the base score's first. The
        weights belong to the predictor ``ranked_by``; where ``predictor`` is another, it decodes their scores.

        The score of a candidate is base · base score + Σ weight · value. Features of columns are called
        ``Dense|NAME``.

        Raises
        ------
        ModelError: the predictor is not one vector of weights, but votes or trees.
        """
        weights = self.model.weights_of(self.ranked_by)
        entry = {
            "task": self.recipe.task,
            "predictor": self.predictor,
            "ranked_by": self.ranked_by,
            "columns": list(self.columns),
            "base": weights.base,
            "weights": named_weights(self.model.table, weights),
        }
        return as_json(entry, indent=1)

    def _pair(self, candidates: Candidates, source: str | None, name: str = "") -> tuple[Sequence[CandidateLike], Pair]:
        """The candidates as they were given, and as a list with what they are."""
        if source is None and (plain := self._plain(candidates, name)) is not None:
            lists = plain.lists()
            return plain.rows, Pair(lists, lists)  # these columns are what the model looks at, all of them fit
        if isinstance(candidates, Mapping) and "candidates" in candidates:
            source = candidates.get("source") if source is None else source
            name, candidates = str(candidates.get("id", name)), candidates["candidates"]
        if isinstance(candidates, NBest):
            originals, name, rows = candidates.candidates, candidates.id, candidates.rows
            source = candidates.source if source is None else source
        elif is_frame(candidates):
            message = f"found {type(candidates).__name__}; expected several candidates, in a list"
            raise InputError(f"{message}; score_frame ranks the rows of a data frame", "candidates")
        else:
            every = iterate(candidates, "several candidates, in a list", "candidates")
            originals, rows = candidates if isinstance(candidates, list | tuple) else list(every), None
        if source is not None and not self._texts:
            message = "the model ranks parses, which have no source; leave it out"
            raise InputError(message, "source", list_id=name or None)
        if rows is not None:
            if rows.of_trees == self._texts:
                message = "trees, not texts" if rows.of_trees else "texts, not trees"
                raise DataError(f"the model ranks {message}", path=rows.path, list_id=name)
            if not rows.of_trees and source is not None:
                rows = rows.replace(source=encoded(source).strip())
        else:
            texts, scored = self._texts, self._scorer.content.needs_scores
            rows = as_list(originals, self._columns, texts=texts, name=name, source=source, scored=scored)
        return originals, self._open(rows)

    def _plain(self, candidates: Candidates, name: str = "") -> Plain | None:
        """The candidates, if their numbers are all that the model looks at."""
        columns = self._columns if self.of_columns else None
        return None if columns is None or type(candidates) is not list else Plain.of(candidates, columns, name)

    def _open(self, nbest: Lists) -> Pair:
        """The candidates of a list, all of them."""
        pair = self._scorer.open(nbest)
        if isinstance(pair, Problem):
            raise as_error(pair)
        if len(pair.nbest.bad) > len(nbest.bad):
            raise as_error(next(problem for problem in pair.nbest.bad if problem not in nbest.bad))
        self._tell_unknown(self._scorer.content.unknown(nbest))
        return pair

    def _tell_unknown(self, columns: Iterable[str]) -> None:
        """Log score columns that the model does not know, once each."""
        if new := sorted(set(columns) - self._unknown):
            self._unknown.update(new)
            names = ", ".join(map(repr, self.columns))
            log.warning("score columns that the model does not know: %s; it has %s", ", ".join(map(repr, new)), names)
