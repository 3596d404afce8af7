"""Figures that recipes ask for: of runs over lists, and of classifiers."""

from collections.abc import Sequence
from typing import Literal

from rerank.base.errors import RecipeError
from rerank.recipes.settings import Section


class FigureSettings(Section):
    """The settings of figures of all tasks.

    name: the name of the figure's file.
    runs: the names of the runs that are drawn, by default all; with the point of a grid, as in tables, that point
    alone.
    title: the beginning of the caption, by default the name.
    paper: a paper's words about the figure that this one repeats, for the caption.
    """

    name: str
    runs: tuple[str, ...] = ()
    title: str = ""
    paper: str = ""

    def shows(self, *names: str) -> bool:
        """Whether the run with one of these names is drawn."""
        return not self.runs or any(name in self.runs for name in names)


class ListFigure(FigureSettings):
    """A figure over runs of reranking.

    kind: what it draws. course is ``measure`` over the lists processed in training, one line per run and point of its
    grid. size is the score on a test split, less that of the base, over the share of columns with a weight; one
    line per run, over its grid. epochs is the score on dev, mean and standard deviation over all epochs, one bar per
    run.
    measure: course: the measure that it draws.
    split: size: the test split; null: the first.
    """

    kind: Literal["course", "size", "epochs"]
    measure: Literal["mistakes", "nonzero_weights"] = "mistakes"
    split: str | None = None


def check_names(figures: Sequence[FigureSettings], runs: Sequence[str]) -> None:
    """Refuse figures of the same name, and figures of runs that there are not."""
    if len({figure.name for figure in figures}) < len(figures):
        raise RecipeError("two figures have the same name", key="figures")
    for number, figure in enumerate(figures):
        for name in figure.runs:
            if name not in runs:
                raise RecipeError(
                    f"found {name!r}; runs: {', '.join(dict.fromkeys(runs))}", key=f"figures.{number}.runs"
                )
