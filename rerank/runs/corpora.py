"""The corpora that a recipe is about, extracted or from the cache, and their files, opened before anything is read."""

import dataclasses
import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.data.shards import apart, list_sizes, share_of
from rerank.extraction.cache import CorpusCache
from rerank.extraction.extraction import Extracted
from rerank.features.table import Table
from rerank.metrics.base import Metric
from rerank.metrics.oracle import ListStatistics
from rerank.models.model import HEADER, Model, recipe_of
from rerank.pool import Engine
from rerank.readers.inputs import Inputs
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.sections import HOLDOUT, HoldoutSettings
from rerank.storage.strict_json import read_object

log = logging.getLogger("rerank")

ODD = "absent", "unknown_columns", "lowest_first", "normalized", "refused"  # reported where it applies; see SkipCount


def cache_of(directory: Path, inputs: Inputs | None = None) -> CorpusCache:
    """The cache that is shared by runs below one directory; see CorpusCache."""
    return CorpusCache(directory.absolute().parent / ".cache", inputs)


@dataclasses.dataclass
class Data:
    """The corpora of a recipe: its training split, table, and the other splits by name."""

    training: Extracted
    table: Table
    key: str
    others: dict[str, Extracted]

    @staticmethod
    def load(
        recipe: ListRecipe,
        directory: Path,
        splits: tuple[str, ...],
        engine: Engine | None = None,
        inputs: Inputs | None = None,
    ) -> "Data":
        """Extract, by ``engine``, or take from the cache, the training split and ``splits``, from ``inputs``."""
        store, start = cache_of(directory, inputs), recipe.training.start
        if start is None:
            training, table, key = store.training(recipe, engine)
        else:
            table = table_of(start, recipe)
            training = store.split(recipe, recipe.data.training, table, digest_of(start), engine)
            key = training.key
        others = {
            split: training if split == recipe.data.training else store.split(recipe, split, table, key, engine)
            for split in splits
            if not recipe.data.is_holdout(split)
        }
        if recipe.data.holdout is not None:
            training, others[HOLDOUT] = set_apart(training, recipe.data.holdout)
            key = training.key
        return Data(training, table, key, others)

    def size(self) -> dict[str, int]:
        """Lists, candidates and nonzeros of all splits together, and the columns of all."""
        corpora = [extracted.corpus for extracted in {"": self.training, **self.others}.values()]
        return {
            "lists": sum(corpus.list_count for corpus in corpora),
            "candidates": sum(corpus.candidate_count for corpus in corpora),
            "nonzeros": sum(corpus.nonzeros for corpus in corpora),
            "columns": self.training.corpus.width,
        }

    def counts(self, recipe: ListRecipe, metric: Metric) -> dict[str, Any]:
        """The entry of metrics.json on every split."""
        by_split = {}
        for split, extracted in {recipe.data.training: self.training, **self.others}.items():
            corpus = extracted.corpus
            by_split[split] = {
                "lists": corpus.list_count,
                "candidates": corpus.candidate_count,
                "nonzeros": corpus.nonzeros,
                "columns": corpus.width,
                "seconds": extracted.about["seconds"],
                "skipped": extracted.about["skipped"],
                "skipped_candidates": extracted.about["skipped_candidates"],
                "duplicates": extracted.about["duplicates"],
                **{key: extracted.about[key] for key in ODD if key in extracted.about},
                **sources_in(extracted),
                "statistics": dataclasses.asdict(ListStatistics.of(corpus, metric)),
            }
        return by_split


def digest_of(start: str) -> str:
    """The digest of a model that training continues from."""
    return str(read_object(Path(start) / HEADER)["digest"])


def table_of(start: str, recipe: ListRecipe) -> Table:
    """The features of the model that training continues from, which the recipe must ask for as well."""
    model = Model.load(start, trust=True)
    asked, known = (settings.features.model_dump(mode="json") for settings in (recipe, recipe_of(model)))
    if differing := sorted(key for key in asked if asked[key] != known[key]):
        raise DataError(
            "training cannot continue from this model: its feature table is another one; it was made with other "
            f"settings of features: {', '.join(differing)}",
            path=start,
        )
    return model.table


def set_apart(extracted: Extracted, settings: HoldoutSettings) -> tuple[Extracted, Extracted]:
    """(training lists, lists set apart) of the training split."""
    documents, by = extracted.ids, settings.by
    if by is not None:
        matches = [re.search(by, name) for name in extracted.ids]
        for name, match in zip(extracted.ids, matches, strict=True):
            if match is None or match[1] is None:
                raise DataError(f"data.holdout.by, {by!r}, matches no document in the id of this list", list_id=name)
        documents = [str(match[1]) for match in matches if match]
    chosen = apart(documents, settings.share, settings.seed)
    about = f"{extracted.key} {settings.model_dump_json()}"
    return part_of(extracted, ~chosen, about), part_of(extracted, chosen, f"{about} {HOLDOUT}")


def shared_lists(extracted: Extracted, share: float, seed: int) -> Extracted:
    """The share of the lists that ``share_of`` draws."""
    if share == 1:
        return extracted
    chosen = np.zeros(extracted.corpus.list_count, np.bool_)
    chosen[share_of(chosen.size, share, seed)] = True
    return part_of(extracted, chosen, f"{extracted.key} {share!r} {seed}")


def last_lists(extracted: Extracted, candidates: int) -> Extracted:
    """The last lists, which have this many candidates together."""
    sizes = list_sizes(extracted.corpus)
    return part_of(extracted, np.cumsum(sizes[::-1])[::-1] <= candidates, f"{extracted.key} last {candidates}")


def part_of(extracted: Extracted, chosen: np.ndarray, key: str) -> Extracted:
    """The lists of a split where ``chosen`` (bool [L]) holds, with their sources."""
    corpus = extracted.corpus.take(np.flatnonzero(chosen))
    if sources := extracted.corpus.about.get("sources"):
        names, lists = zip(*sources, strict=True)
        pieces = np.split(chosen, np.cumsum(lists)[:-1])
        counts = [[name, int(piece.sum())] for name, piece in zip(names, pieces, strict=True)]
        corpus = dataclasses.replace(corpus, about={**corpus.about, "sources": counts})
    ids = [name for name, taken in zip(extracted.ids, chosen, strict=True) if taken]
    return dataclasses.replace(extracted, corpus=corpus, ids=ids, key=key)


def sources_in(extracted: Extracted) -> dict[str, Any]:
    """The lists and candidates from each source, where a split has several."""
    if "sources" not in extracted.corpus.about:
        return {}
    names, lists = zip(*extracted.corpus.about["sources"], strict=True)
    sizes = np.split(list_sizes(extracted.corpus), np.cumsum(lists)[:-1])
    counts = ({"lists": part_sizes.size, "candidates": int(part_sizes.sum())} for part_sizes in sizes)
    return {"sources": dict(zip(names, counts, strict=True))}


def open_files(recipe: ListRecipe, inputs: Inputs) -> None:
    """Open every file of the recipe's splits. For a missing file, no file of another split is suggested; unless the
    split is a test split, none with "test" in its name.
    """
    files = {split: recipe.data.files(split) for split in recipe.splits}
    for split, kinds in files.items():
        others = {
            Path(path).name for other in files if other != split for paths in files[other].values() for path in paths
        }
        for kind, paths in kinds.items():
            for path in paths:
                if path == "-":
                    raise RecipeError("a recipe reads its files more than once; name a file", key=f"data.{kind}")
                if split not in recipe.data.tests:
                    with suppress(OSError):  # a name that is too long
                        others |= {neighbour.name for neighbour in Path(path).parent.glob("*test*")}
                try:
                    inputs.open(path, others=others)
                except DataError as error:
                    message, unnamed = error.message, type(recipe.data).model_fields["root"].default
                    if not os.path.exists(path) and recipe.data.root == unnamed:
                        message += "; name the folder of the lists with --set data.root=DIR"
                    if not os.path.exists(path) and split == recipe.data.dev:
                        message += "; `data.dev: null` trains without a dev split"
                    raise DataError(message, path=path) from None
    _warn_of_seen_lists(recipe, {split: kinds.get("nbest", []) for split, kinds in files.items()})


def _warn_of_seen_lists(recipe: ListRecipe, lists: dict[str, list[str]]) -> None:
    """Warn where scores are of lists that the model knows; ``lists`` are the files of every split."""
    data = recipe.data
    beside = data.reader.values()  # files that are named there go with the lists of every split
    known = {path: "trained" for path in lists[data.training] if path not in beside}
    for split in (*([data.dev] if data.dev and not data.is_holdout(data.dev) else []), *data.tests):
        for path in [path for path in lists[split] if path in known][:1]:
            message = "%s: the model is %s on its lists (%s): scores on them say little about other lists"
            log.warning(message, split, known[path], path)
        if split == data.dev:
            known = {path: "chosen" for path in lists[split] if path not in beside} | known
