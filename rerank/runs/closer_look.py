"""A closer look at the lists of a split, whose texts are read again: lists to show, and the errors of all of them."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rerank.data.shards import Lists, first_candidates, list_sizes, own, parts
from rerank.extraction.content.base import Pair
from rerank.extraction.extraction import Extracted
from rerank.metrics.oracle import oracles
from rerank.models.model import Model
from rerank.models.scorer import Scorer, rank
from rerank.readers.base import NBestList, SkipCount, SkippedList
from rerank.recipes.recipe import ListRecipe
from rerank.runs.losses import LossDetails, loss_details
from rerank.runs.report.data import Example, ShownCandidate, ShownColumn, ShownContribution

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


def choose_examples(base: np.ndarray, base_gain: np.ndarray, gain: np.ndarray, number: int, seed: int) -> list[int]:
    """Lists whose gain changed, two thirds of them for the better, drawn by seed; in the order of the corpus.

    base: int64 [L], candidates, -1 where there are none; base_gain, gain: float64 [L], of these and of what was chosen.
    """
    difference = np.where(base >= 0, gain - base_gain, 0.0)
    better, worse = np.flatnonzero(difference > 0), np.flatnonzero(difference < 0)
    rng = np.random.default_rng(seed)
    first = min(len(better), max(number - number // 3, number - len(worse)))
    picked = [*rng.permutation(better)[:first], *rng.permutation(worse)[: number - first]]
    return sorted(int(i) for i in picked)


class Choices(NamedTuple):
    """The candidates of a split that are compared, int64 [L] each; -1 for a list without candidates."""

    base: np.ndarray
    chosen: np.ndarray
    oracle: np.ndarray


class Answers(NamedTuple):
    """What the lists of a split were decoded to: ``texts`` has one for every list of its files, ``gains`` (float64 [L])
    those of the corpus's lists."""

    texts: list[bytes]
    gains: np.ndarray


def look_again(
    recipe: ListRecipe,
    split: str,
    extracted: Extracted,
    model: Model,
    base: np.ndarray,
    chosen: np.ndarray,
    answers: Answers | None = None,
) -> tuple[list[Example], LossDetails]:
    """Examples from a split, and what is wrong with the candidates of all its lists; its files are read once.

    answers: what takes the place of the candidates ``chosen``, which contributions are still about.
    """
    corpus = extracted.corpus
    choices = Choices(base, chosen, oracles(corpus))
    before, after = list_gains(corpus, base), list_gains(corpus, chosen) if answers is None else answers.gains
    picked = set(choose_examples(base, before, after, recipe.examples, recipe.seed))
    gains = _gains_of(corpus, picked)
    scorer = Scorer(model, recipe.predictor)
    firsts, sizes = first_candidates(corpus), list_sizes(corpus)
    found: dict[int, Example] = {}
    details = loss_details(recipe, corpus.list_count)
    for at, (i, nbest) in enumerate(scorer.content.read_again(recipe.data, split, extracted.ids, sizes)):
        if i < 0 or isinstance(nbest, SkippedList) or chosen[i] < 0:
            continue
        places = {name: int(choice[i] - firsts[i]) for name, choice in choices._asdict().items()}
        answer = None if answers is None else answers.texts[at]
        details.see(i, nbest, places, answer)
        pair = scorer.content.pair(nbest, SkipCount("skip")) if i in picked else None
        if pair is not None:
            found[i] = _example(split, scorer, pair, places, gains[i])
            if answer is not None:
                found[i] = replace(found[i], chosen=_text(answer), chosen_gain=float(after[i]))
    return [found[i] for i in sorted(found)], details


def _gains_of(lists: Lists, picked: set[int]) -> dict[int, np.ndarray]:
    """The gains of all candidates of the lists ``picked``, by list."""
    found = {}
    for place, part in parts(lists):
        for i in picked & set(range(place.lists, place.lists + part.list_count)):
            first, last = part.lists[i - place.lists : i - place.lists + 2]
            found[i] = np.array(part.gain[first:last])
    return found


def _example(split: str, scorer: Scorer, pair: Pair, places: dict[str, int], gains: np.ndarray) -> Example:
    """One list in full; places: of the base candidate, the chosen one and the oracle in the list."""
    opened, nbest = scorer.opened(pair), pair.nbest
    base, chosen = places["base"], places["chosen"]
    texts, scores = [_text(text) for text in nbest.texts], scorer.scores(opened)
    named = nbest.named()
    return Example(
        split=split,
        list_id=nbest.id,
        gold=scorer.content.gold_text(pair),
        base=texts[base],
        chosen=texts[chosen],
        base_gain=float(gains[base]),
        chosen_gain=float(gains[chosen]),
        oracle_gain=float(gains[places["oracle"]]),
        contributions=[
            ShownContribution(part.feature, part.weight, part.value - part.other, part.amount)
            for part in scorer.explain(opened, chosen, base)[:FEATURES_SHOWN]
        ],
        source=_source(nbest),
        candidates=[
            ShownCandidate(
                float(scores[y]),
                float(nbest.base[y]),
                float(gains[y]),
                texts[y],
                ", ".join(name for name, place in places.items() if place == y),
            )
            for y in rank(scores, nbest.base).tolist()
        ],
        columns=[
            ShownColumn(name, float(named.scores[base, k]), float(named.scores[chosen, k]))
            for k, name in enumerate(named.names)
        ],
    )


def _source(nbest: NBestList) -> str | None:
    """The input of a list, if it is known."""
    source = getattr(nbest, "source", None)
    return None if source is None else _text(source)


def _text(text: bytes) -> str:
    return text.decode("utf-8", "replace")
