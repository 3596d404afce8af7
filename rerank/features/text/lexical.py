"""Lexical: IBM model 1 of source and candidate, estimated from the sources and references of the training lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
from rerank.features.lexical.columns import COLUMNS, lexical_columns
from rerank.features.lexical.tables import LexicalTables
from rerank.features.marks import mark
from rerank.features.scores import Dense, ScoreView
from rerank.features.template import Template, TextTemplate, templates
from rerank.features.text.view import TextView

NAMES = np.array([mark(name) for name in COLUMNS], np.uint64)


@templates.add("Lexical")
@dataclass(frozen=True)
class Lexical(TextTemplate):
    """Log-probabilities of the candidate given the source and of the source given the candidate, and how many words
    either has that the other does not explain, by IBM model 1 (Brown et al. 1993; see ``rerank.features.lexical``).

    >>> Lexical(iterations=3).name
    'Lexical(iterations=3)'

    It learns from the sources and references of the training lists, by ``iterations`` of EM; lists in each of ``folds``
    parts of train get what the others say. Time: words of the source times different words of the candidates.
    """

    free: ClassVar[bool] = True
    iterations: Annotated[int, Range(1)] = 5
    folds: Annotated[int, Range(2)] = 5

    fire = staticmethod(Dense.fire)


def lexical_of(made: Sequence[Template]) -> Lexical | None:
    """The template of these that needs tables, if there is one."""
    found = [each for each in made if isinstance(each, Lexical)]
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise RecipeError(f"found {names}; expected one template Lexical", key="features.templates")
    return found[0] if found else None


def lexical_view(tables: LexicalTables, view: TextView) -> ScoreView:
    """The columns of a list as scores."""
    return ScoreView(view.base, lexical_columns(tables, view.source, view.words, view.first), NAMES)
