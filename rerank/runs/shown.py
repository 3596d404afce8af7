"""Lists to show in a report: where the model's choice differs from the base choice."""

from __future__ import annotations

import numpy as np

from rerank.data.shards import Lists, first_candidates, list_sizes, own, parts
from rerank.extraction.extraction import Extracted
from rerank.models.model import Model
from rerank.models.scorer import Scorer
from rerank.readers.base import NBestList, SkipCount
from rerank.recipes.recipe import ListRecipe
from rerank.runs.report.data import Example, ShownContribution

FEATURES_SHOWN = 10


def list_gains(lists: Lists, chosen: np.ndarray | None = None) -> np.ndarray:
    """float64 [L]: the gain of every list's choice (int64 [L]), or of its best candidate; 0 where there is none."""
    found = []
    for place, part in parts(lists):
        gains = np.zeros(part.list_count)
        full = np.flatnonzero(np.diff(part.lists))
        if chosen is None:
            gains[full] = np.maximum.reduceat(part.gain, part.lists[full]) if full.size else 0.0
        else:
            gains[full] = part.gain[own(chosen, place, part)[full]]
        found.append(gains)
    return np.concatenate(found)


def choose_examples(
    base: np.ndarray, chosen: np.ndarray, base_gain: np.ndarray, gain: np.ndarray, number: int, seed: int
) -> list[int]:
    """Lists whose choice changed, two thirds of them for the better, drawn by seed; in the order of the corpus.

    base, chosen: int64 [L], candidates; base_gain, gain: float64 [L], their gains.
    """
    changed = np.flatnonzero((chosen >= 0) & (chosen != base))
    difference = gain[changed] - base_gain[changed]
    better, worse = changed[difference > 0], changed[difference < 0]
    rng = np.random.default_rng(seed)
    first = min(len(better), max(number - number // 3, number - len(worse)))
    picked = [*rng.permutation(better)[:first], *rng.permutation(worse)[: number - first]]
    return sorted(int(i) for i in picked)


def make_examples(
    recipe: ListRecipe, split: str, extracted: Extracted, model: Model, base: np.ndarray, chosen: np.ndarray
) -> list[Example]:
    """Examples from a split, with their texts read again from its files."""
    corpus = extracted.corpus
    gains = {"base": list_gains(corpus, base), "chosen": list_gains(corpus, chosen), "oracle": list_gains(corpus)}
    picked = choose_examples(base, chosen, gains["base"], gains["chosen"], recipe.examples, recipe.seed)
    if not picked:
        return []
    scorer = Scorer(model, recipe.predictor)
    firsts, sizes = first_candidates(corpus), list_sizes(corpus)
    found: dict[int, Example] = {}
    for i, raw in scorer.content.read_again(recipe.data, split, extracted.ids, sizes):
        pair = scorer.content.pair(raw, SkipCount("skip")) if i in picked else None
        if pair is None:
            continue
        places = int(base[i] - firsts[i]), int(chosen[i] - firsts[i])
        opened = scorer.opened(pair)
        parts = scorer.explain(opened, places[1], places[0])
        texts = [text.decode("utf-8", "replace") for text in (pair.nbest.texts[y] for y in places)]
        found[i] = Example(
            split=split,
            list_id=pair.nbest.id,
            gold=scorer.content.gold_text(pair),
            base=texts[0],
            chosen=texts[1],
            base_gain=float(gains["base"][i]),
            chosen_gain=float(gains["chosen"][i]),
            oracle_gain=float(gains["oracle"][i]),
            contributions=[
                ShownContribution(part.feature, part.weight, part.value - part.other, part.amount)
                for part in parts[:FEATURES_SHOWN]
            ],
            source=_source(pair.nbest),
        )
        if len(found) == len(picked):
            break
    return [found[i] for i in sorted(found)]


def _source(nbest: NBestList) -> str | None:
    """The input of a list, if it is known."""
    source = getattr(nbest, "source", None)
    return None if source is None else source.decode("utf-8", "replace")
