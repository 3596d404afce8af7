"""Figures that recipes ask for: of runs over lists, and of classifiers."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import model_validator

from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
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


class ExampleFigure(FigureSettings):
    """A figure over runs of classification.

    kind: what it draws. parameter is the measure over the grid's key ``x``. epochs is the measure on the test part
    after every epoch, mean over the folds. online counts mistakes (by the labels without noise) over the examples of a
    single pass; stream is the measure on the test part during a single pass. scatter has one point per set, the
    measure of run ``y`` over that of run ``x``; one figure per noise level. A tuned run has its tuned parameters.
    x, y: a key of the grid, or two runs.
    inverse: draw over 1/(n·x) for n training examples.
    measure: what is drawn.
    every: how many examples lie between two points of online and stream.
    """

    kind: Literal["parameter", "online", "stream", "epochs", "scatter"]
    x: str | None = None
    y: str | None = None
    inverse: bool = False
    measure: Literal["error", "accuracy", "train_error", "train_accuracy"] = "accuracy"
    every: Annotated[int, Range(1)] = 1000

    @model_validator(mode="after")
    def _axes(self) -> "ExampleFigure":
        if (self.kind in ("parameter", "scatter") and self.x is None) or (self.kind == "scatter" and self.y is None):
            raise ValueError(f"a {self.kind} figure needs {'x' if self.kind == 'parameter' else 'x and y'}")
        return self

    @property
    def traced(self) -> bool:
        """Whether it is measured in passes of its own, not taken from the results."""
        return self.kind in ("online", "stream", "epochs")


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
