"""The lists of a split in a run's order: the scores come from the split's corpus, everything else from its files."""

from collections.abc import Iterator

import numpy as np

from rerank.data.shards import Lists, list_sizes, parts
from rerank.extraction.extraction import Extracted
from rerank.learn.base import Weights
from rerank.learn.scoring import scores
from rerank.models.scorer import Ranked, Scorer, led, rank
from rerank.readers.base import SkippedList
from rerank.recipes.sections import SplitSettings


def ranked_lists(
    scorer: Scorer,
    data: SplitSettings,
    split: str,
    extracted: Extracted,
    weights: Weights,
    first: np.ndarray | None = None,
) -> Iterator[Ranked | SkippedList]:
    """All lists of a split in the order of the scores that ``weights`` give in its corpus, the candidates ``first``
    (int64 [L], -1 for none) before the others if they are given; bad ones keep their places.

    What is written are scores of features' values as they are, so that lists can be compared: see ``Extracted``. A list
    that the corpus lacks, since its reference cannot be used, is scored by the model itself.
    """
    sizes, own = list_sizes(extracted.corpus), _scores(extracted.corpus, weights)
    ends, added = np.cumsum(sizes), np.zeros(sizes.size)
    if extracted.origins is not None:
        added = _scores(extracted.origins, Weights(weights.w, 0.0))
    for number, nbest in scorer.content.read_again(data, split, extracted.ids, sizes):
        if number < 0 or isinstance(nbest, SkippedList):
            opened = nbest if isinstance(nbest, SkippedList) else scorer.open(nbest)
            yield from scorer.rank([opened])
            continue
        start = ends[number] - sizes[number]
        found = own[start : ends[number]]
        place = None if first is None or first[number] < 0 else int(first[number] - start)
        yield Ranked(nbest, led(rank(found, nbest.base), place), found + added[number])


def _scores(lists: Lists, weights: Weights) -> np.ndarray:
    """float64 [N]: of every candidate."""
    return np.concatenate([scores(part, weights) for _, part in parts(lists)])
