"""A first run: the kernels that it needs are compiled beside it, by a processor that has nothing to do.

A run without kernels on disk waits for each of them as it is first called. So another process goes through the recipe
over a few lists in plain Python, which shows what each kernel is called with, and compiles them from the last one on.
Whoever comes to a kernel first compiles it, and the other finds it on disk.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rerank.base.progress import Compilation
from rerank.extraction.extraction import paths_of
from rerank.kernels.compile import Kernel, Rehearsal, thread_count
from rerank.kernels.sources import PACKAGE, user_files
from rerank.pool import Processes
from rerank.recipes.recipe import ListRecipe, TaskRecipe
from rerank.runs.experiment import Until, experiment
from rerank.storage.streams import Inputs

LISTS_PER_SPLIT = 4  # that the other process goes through


@contextmanager
def background_compilation(recipe: TaskRecipe, until: Until) -> Iterator[None]:
    """Compile the kernels that a recipe needs, within the block, in another process too, from the first that is not on
    disk: not with one processor, where lists come from a pipe or a URL, or where a part of the recipe is a user's,
    which may do more than compute."""
    worker = Processes(1)
    with ExitStack() as stack:

        def begin() -> None:
            with suppress(Exception):  # no room for files, or no means for processes: the run compiles alone
                if not isinstance(recipe, ListRecipe) or thread_count() < 2:
                    return
                paths = [path for split in recipe.splits for path in paths_of(recipe.data, split)]
                parts = user_files(recipe.model_dump()).values()
                if all(map(os.path.isfile, paths)) and all(path.is_relative_to(PACKAGE) for path in parts):
                    directory = stack.enter_context(TemporaryDirectory(prefix="rerank-", ignore_cleanup_errors=True))
                    worker.submit(rehearse, recipe, until, Path(directory, "few"))

        Compilation.at_first = begin
        try:
            yield
        finally:
            Compilation.at_first = None
            worker.shutdown(kill_workers=True)


def rehearse(recipe: ListRecipe, until: Until, directory: Path) -> None:
    """Carry out a recipe over a few lists in plain Python, and compile the kernels that it calls."""
    logging.disable()
    np.seterr(all="ignore")  # as in kernels
    Kernel.rehearsal = rehearsal = Rehearsal()
    with suppress(Exception):  # of so few lists nothing may be learned
        small = recipe.change({"features.min_lists": 1, "training.epochs": 1})
        experiment(small, Inputs(few=LISTS_PER_SPLIT), directory, until=until)
    rehearsal.compile()
