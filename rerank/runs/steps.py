"""What is done for a recipe stage by stage: ``pipeline.run`` asks for it, lists and labelled examples answer."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from rerank import __version__
from rerank.engines.settings import Engine
from rerank.kernels.sources import code_digest, user_digest
from rerank.models.model import Model
from rerank.readers.inputs import Inputs
from rerank.recipes.recipe import Single, TaskRecipe
from rerank.runs.stages import Stages

R = TypeVar("R", bound=TaskRecipe)
Metrics = dict[str, Any]


class Steps(ABC, Generic[R]):
    """What is done in the stages, which stand here in their order.

    trains, tests: which of the two parts of the work are wanted. ``check`` finds the others: singles, the single runs;
    files, all that are read; code, the digest of the code that results depend on, this program's and that of the user's
    own parts; size: how much is tested, for the history; predictions: files there that must not be anybody else's.
    """

    results: ClassVar[tuple[str, ...]] = ()  # what a new run starts without, in addition to what all recipes leave
    singles: Sequence[Single[Any]]
    files: list[str]
    code: str
    size: dict[str, int]
    predictions: list[str]

    def __init__(self, recipe: R, directory: Path, stages: Sequence[str], engine: Engine, inputs: Inputs) -> None:
        self.recipe, self.directory, self.engine, self.inputs = recipe, directory, engine, inputs
        self.trains, self.tests = "train" in stages, "test" in stages

    @abstractmethod
    def check(self) -> None:
        """Build every part that the recipe names and open its files, before anything is read or written.

        Raises
        ------
        RecipeError: an unknown part or setting, or settings that exclude one another.
        DataError: a file that does not exist or cannot be opened.
        """

    @abstractmethod
    def extract(self) -> dict[str, int]:
        """Read what the work begins with; returns its size."""

    @abstractmethod
    def counts(self) -> dict[str, Any]:
        """What metrics.json says about everything that is read."""

    @abstractmethod
    def train(self, work: Stages) -> dict[str, int]:
        """Make all single runs that are not kept already, and put their epochs into the history; returns what was
        done."""

    def decode(self) -> None:
        """Tune how lists are decoded."""

    @abstractmethod
    def model(self) -> Model | None:
        """The model that is served, if the recipe makes one."""

    @abstractmethod
    def evaluate(self) -> Metrics:
        """The content of metrics.json, except for what later stages add."""

    @abstractmethod
    def predict(self) -> None:
        """Write what is predicted for the test splits."""

    @abstractmethod
    def curve(self) -> dict[str, Any]:
        """How results depend on the amount of training data: the entry ``curve`` of metrics.json."""

    @abstractmethod
    def report(self, metrics: Metrics, seconds: float) -> None:
        """Write the page, and the figures, which ``metrics`` then has as numbers; seconds: how long it all took."""

    def head(self, seed: int, metric: str) -> Metrics:
        """What metrics.json begins with; metric: its signature."""
        task, name = self.recipe.task, self.recipe.name
        return {"schema": 1, "task": task, "name": name, "seed": seed, "version": __version__, "metric": metric}


def code_of(recipe: TaskRecipe, parts: tuple[str, ...]) -> str:
    """Digest of code: of those parts of this program, and of the user's own parts in a recipe."""
    return f"{code_digest(parts)[:32]} {user_digest(recipe.model_dump())[:32]}"
