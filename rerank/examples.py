"""Lists to show in a report: where the model's choice differs from the base choice."""

from __future__ import annotations

import numpy as np

from rerank.corpus import Corpus
from rerank.extraction import Extracted
from rerank.model import Model
from rerank.readers.base import NBestList, SkipCount
from rerank.recipe import ListRecipe
from rerank.report.data import Contribution, Example
from rerank.reranker import Opened, Reranker

FEATURES_SHOWN = 10


def choose_examples(corpus: Corpus, base: np.ndarray, chosen: np.ndarray, number: int, seed: int) -> list[int]:
    """Lists whose choice changed, two thirds of them for the better, drawn by seed; in the order of the corpus.

    base, chosen: int64 [L], candidates.
    """
    changed = np.flatnonzero((chosen >= 0) & (chosen != base))
    difference = corpus.gain[chosen[changed]] - corpus.gain[base[changed]]
    better, worse = changed[difference > 0], changed[difference < 0]
    rng = np.random.default_rng(seed)
    first = min(len(better), max(number - number // 3, number - len(worse)))
    picked = [*rng.permutation(better)[:first], *rng.permutation(worse)[: number - first]]
    return sorted(int(i) for i in picked)


def make_examples(
    recipe: ListRecipe, split: str, extracted: Extracted, model: Model, base: np.ndarray, chosen: np.ndarray
) -> list[Example]:
    """Examples of a split, their texts read again from its files."""
    corpus = extracted.corpus
    picked = choose_examples(corpus, base, chosen, recipe.examples, recipe.seed)
    wanted = {extracted.ids[i]: i for i in picked}
    if not wanted:
        return []
    reranker = Reranker(model, recipe.predictor)
    found: dict[int, Example] = {}
    for item in reranker.content.pairs(recipe.data, split, SkipCount("skip")):
        i = wanted.get(item.nbest.id)
        if i is None or i in found:
            continue
        first = int(corpus.lists[i])
        places = int(base[i]) - first, int(chosen[i]) - first
        parts = reranker.explain(Opened(item.nbest, item.content), places[1], places[0])
        texts = [text.decode("utf-8", "replace") for text in (item.nbest.texts[y] for y in places)]
        found[i] = Example(
            split=split,
            list_id=item.nbest.id,
            gold=reranker.content.gold_text(item.gold),
            base=texts[0],
            chosen=texts[1],
            base_gain=float(corpus.gain[base[i]]),
            chosen_gain=float(corpus.gain[chosen[i]]),
            oracle_gain=float(corpus.gain[first : int(corpus.lists[i + 1])].max()),
            contributions=[
                Contribution(part.feature, part.weight, part.value - part.other, part.amount)
                for part in parts[:FEATURES_SHOWN]
            ],
            source=_source(item.nbest),
        )
    return [found[i] for i in sorted(found)]


def _source(nbest: NBestList) -> str | None:
    """The input of a list, where it is known."""
    source = getattr(nbest, "source", None)
    return None if source is None else source.decode("utf-8", "replace")
