"""The results of a run: metrics, predictions, selections."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.encoding import encoded
from rerank.base.progress import track
from rerank.data.shards import first_candidates, list_sizes
from rerank.extraction.content.base import Content
from rerank.extraction.extraction import Extracted
from rerank.learn.base import Weights
from rerank.learn.scoring import candidate_scores
from rerank.models.model import Model
from rerank.models.scorer import Ranked, Scorer, led, rank, write_ranked
from rerank.readers.base import Problem
from rerank.readers.lists import Lists
from rerank.readers.streams import open_output
from rerank.readers.texts.text_files import read_lines
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.sections import SplitSettings
from rerank.runs.corpora import Data
from rerank.runs.run import Run
from rerank.storage.outputs import output_file
from rerank.storage.strict_json import as_json


def describe(
    recipe: ListRecipe, split: str, extracted: Extracted, chosen: Run, content: Content[Any]
) -> dict[str, str]:
    """Add what needs the texts to the chosen run's reports of a split; returns the signatures of measures."""
    first = first_candidates(extracted.corpus)
    places = {name: np.where(choice >= 0, choice - first, -1) for name, choice in chosen.choices[split].items()}
    lists = content.read_again(recipe.data, split, extracted.ids, list_sizes(extracted.corpus))
    described = content.describe(split, lists, places)
    for name, measures in described.reports.items():
        chosen.splits[split][name] |= measures
    return described.signatures


def prediction_files(split: str) -> tuple[str, str, str, str]:
    """The files in ``predictions`` that ``write_predictions``, ``Compared.save`` and ``write_answers``, one of two,
    write for a split."""
    return f"{split}.nbest.gz", f"{split}.selections.npz", f"{split}.decoded.gz", f"{split}.decoded.jsonl.gz"


def made_room(directory: Path, split: str, number: int) -> Path:
    """The path of one of the ``prediction_files`` of a split."""
    target = output_file(directory, "predictions", prediction_files(split)[number])
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def write_answers(directory: Path, split: str, answers: list[bytes]) -> None:
    """The answers that lists are decoded to, one per line; as JSON strings where one has line ends."""
    plain = not any(b"\n" in text or b"\r" in text for text in answers)
    with open_output(made_room(directory, split, 2 if plain else 3)) as out:
        for text in answers:
            out.write((text if plain else as_json(text.decode("utf-8", "surrogatepass")).encode()) + b"\n")


def answers_written(directory: Path, split: str) -> list[bytes]:
    """The answers that ``write_answers`` wrote, without white space around them."""
    lines, strings = (directory / "predictions" / name for name in prediction_files(split)[2:])
    if not strings.exists():
        return list(read_lines(lines))
    return [encoded(json.loads(line)).strip() for line in read_lines(strings)]


class KeptList(NamedTuple):
    """A list that was kept while a split was read, and its number in the files."""

    number: int
    nbest: Lists


KeptLists = dict[int, KeptList | None]  # by number in the corpus


def write_predictions(
    recipe: ListRecipe, directory: Path, data: Data, model: Model, chosen: Run, tests: Mapping[str, KeptLists]
) -> None:
    """Every test split in the input's own format: the model's choice if it is a candidate, then the others by score.

    tests: by split, numbers of lists that are to be kept on the way, which are put there.
    """
    weights = chosen.weights[recipe.predictor]
    for split, kept in tests.items():
        scorer, extracted = Scorer(model), data.others[split]
        with open_output(made_room(directory, split, 0)) as out:
            ranked = ranked_lists(scorer, recipe.data, split, extracted, weights, chosen.answers.get(split), kept)
            shown = track(ranked, f"predict {split}", total=extracted.corpus.list_count)
            write_ranked(out, scorer.reader, shown)


def ranked_lists(
    scorer: Scorer,
    data: SplitSettings,
    split: str,
    extracted: Extracted,
    weights: Weights,
    first: np.ndarray | None = None,
    kept: KeptLists | None = None,
) -> Iterator[Ranked | Problem]:
    """All lists of a split in the order of the scores that ``weights`` give in its corpus, the candidates ``first``
    (int64 [L], -1 for none) before the others if they are given; bad ones keep their places.

    Scores are those of features' plain values, so that lists can be compared: see ``Extracted``. A list that the corpus
    lacks, since its reference cannot be used, is scored by the model itself.
    """
    sizes, scored = list_sizes(extracted.corpus), candidate_scores(extracted.corpus, weights)
    ends, added = np.cumsum(sizes), np.zeros(sizes.size)
    if extracted.origins is not None:
        added = candidate_scores(extracted.origins, Weights(weights.w, 0.0))
    lists = scorer.content.read_again(data, split, extracted.ids, sizes)
    for in_files, (number, nbest) in enumerate(lists):
        if kept is not None and number in kept:
            kept[number] = KeptList(in_files, nbest)
        if number < 0 or nbest.problem is not None:
            yield from scorer.rank([scorer.open(nbest)])
            continue
        start = ends[number] - sizes[number]
        by_weights = scored[start : ends[number]]
        place = None if first is None or first[number] < 0 else int(first[number] - start)
        yield Ranked(nbest, led(rank(by_weights, nbest.base), place), by_weights + added[number])
