"""Make the speech example: lists of up to 20 transcripts of invented sentences, in JSON lines.

    python data/make_asr.py [--output DIR] [--seed N]

1. `asr_language` draws the sentences.
2. A noisy channel makes a network of each: in every place the word that was said, those that sound like it, perhaps
   nothing, perhaps a word out of noise, each with an acoustic cost, that of its sound and of chance.
3. A bigram language model of a small sample of other sentences rates the paths; the best ones by a badly weighted
   sum of both scores are the list.

The base recogniser trusts its acoustic score too much, and its language model has seen little. A reranker can weigh the
scores anew and learn which words go together.
"""

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

from asr_language import INSERTED, SHORT, confusions, sentence
from example_files import Draw, List, run

SIZES = {"train": 400, "dev": 100, "test": 150}
"""Lists of each split."""

LIST_SIZE, BEAM = 20, 150
SAMPLE = 50
"""Sentences that the language model is estimated on."""

LM_WEIGHT = 0.3
"""Weight of the language model in the base score, beside 1 for the acoustic score."""

Network = list[list[tuple[tuple[str, ...], int]]]
"""For every place, what can be heard there, with its acoustic cost in hundredths."""


class Bigrams:
    """A bigram model, interpolated with unigrams and a uniform distribution; costs are hundredths of -ln p."""

    def __init__(self, sentences: list[list[str]], vocabulary: int) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.before: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self.vocabulary = vocabulary
        for words in sentences:
            marked = ["<s>", *words, "</s>"]
            self.words.update(marked[1:])
            self.before.update(marked[:-1])
            self.pairs.update(pairwise(marked))

    def cost(self, before: str, word: str) -> int:
        """The cost of `word` after `before`."""
        known = self.before[before]
        pair = self.pairs[before, word] / known if known else 0.0
        single = self.words[word] / self.words.total()
        share = 0.5 if known else 0.0
        return round(-100 * math.log(share * pair + (0.9 - share) * single + 0.1 / self.vocabulary))


def hear(words: list[str], alike: dict[str, list[tuple[str, int]]], draw: Draw) -> Network:
    """What can be heard of a sentence."""

    def cost(distance: float) -> int:
        return max(0, round(100 * draw.about(1.0 + 1.1 * distance, 1.65)))

    network: Network = []
    for word in words:
        options = [((word,), cost(0.0))]
        options += [(tuple(other.split("_")), cost(0.2 + distance)) for other, distance in alike.get(word, [])]
        if word in SHORT and draw.chance(0.4):
            options.append(((), cost(1.0)))
        network.append(options)
        if draw.chance(0.2):
            network.append([((), cost(0.6)), ((draw.one(INSERTED),), cost(0.6))])
    return network


def decode(network: Network, model: Bigrams) -> list[tuple[str, int, int]]:
    """The best distinct paths as (text, acoustic cost, language model's cost), the best first."""

    def rank(path: tuple[tuple[str, ...], int, int]) -> tuple[float, tuple[str, ...]]:
        return round(path[1] + LM_WEIGHT * path[2], 6), path[0]

    paths: list[tuple[tuple[str, ...], int, int]] = [((), 0, 0)]
    for options in [*network, [(("</s>",), 0)]]:
        best: dict[tuple[str, ...], tuple[tuple[str, ...], int, int]] = {}
        for words, acoustic, language in paths:
            for added, cost in options:
                total = language
                for before, word in zip((words[-1:] or ("<s>",)) + added, added, strict=False):
                    total += model.cost(before, word)
                path = (words + added, acoustic + cost, total)
                if path[0] not in best or rank(path) < rank(best[path[0]]):
                    best[path[0]] = path
        paths = sorted(best.values(), key=rank)[:BEAM]
    return [(" ".join(words[:-1]), acoustic, language) for words, acoustic, language in paths[:LIST_SIZE]]


def make_splits(seed: int, sizes: dict[str, int]) -> dict[str, list[List]]:
    """The lists of every split. No sentence comes twice."""
    alike, sampler = confusions(), Draw(f"{seed}/sample")
    model = Bigrams([sentence(sampler) for _ in range(SAMPLE)], 400)
    seen: set[str] = set()
    splits: dict[str, list[List]] = {}
    for split, size in sizes.items():
        splits[split] = []
        for number in range(1, size + 1):
            draw = Draw(f"{seed}/{split}/{number}")
            words = sentence(draw)
            while " ".join(words) in seen:
                words = sentence(draw)
            seen.add(" ".join(words))
            candidates = []
            for text, acoustic, language in decode(hear(words, alike, draw), model):
                score = -round(acoustic + LM_WEIGHT * language) / 100
                features = {"acoustic": -acoustic / 100, "lm": -language / 100}
                candidates.append({"text": text, "score": score, "features": features})
            item = {"id": f"{split}-{number}", "reference": " ".join(words), "candidates": candidates}
            splits[split].append(item)
    return splits


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    description = "Make the speech example: lists of transcripts of invented sentences."
    run(description, Path(__file__).resolve().parent / "asr", lambda seed: make_splits(seed, SIZES), arguments)


if __name__ == "__main__":
    main()
