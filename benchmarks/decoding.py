"""CPU seconds of decoding lists beside those of scoring them: the least of several rounds each, in turn, warm.

    python benchmarks/decoding.py --model runs/parse/model --lists DIR/test.nbest.gz [--rounds 3]

*scoring* is what `rerank rank` does: reading, features, scores. *mbr*, *fuse* and *learned* start from the scores and
from what was read, and end with the answers. The settings are those that the model was tuned to, where it was, else a
sharpness of 1.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from rerank.extraction.content import Pair
from rerank.metrics.bracket_model import BracketModel
from rerank.models.decoding import decode
from rerank.models.model import Model
from rerank.models.provenance import Decoding, decodings_of
from rerank.models.scorer import Ranked, Scorer
from rerank.readers.reader import SkipCount


def main() -> None:
    """Print the seconds as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--lists", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    scorer = Scorer(Model.load(given.model))
    brackets = BracketModel.of(scorer.model.brackets) if scorer.model.brackets else None
    kinds = ["mbr", *(["fuse"] if scorer.recipe.task == "parse" else []), *(["learned"] if brackets else [])]
    found: dict[str, list[float]] = {name: [] for name in ("scoring", *kinds)}
    for number in range(given.rounds + 1):
        start = time.process_time()
        lists = [item for item in scorer.read(scorer.reader, given.lists, SkipCount("skip")) if isinstance(item, Pair)]
        scores = [ranked.scores for ranked in scorer.rank(lists) if isinstance(ranked, Ranked)]
        taken = {"scoring": time.process_time() - start}
        for kind in kinds:
            apart = np.concatenate([own - own.mean() for own in scores])
            plain = Decoding(kind=kind, sharpness=1.0, deviation=float(apart.std()))  # type: ignore[arg-type]
            how = decodings_of(scorer.model.about).get(kind, plain)
            start = time.process_time()
            for item, own in zip(lists, scores, strict=True):
                decode(how, scorer.content, item.nbest, item.content, own, brackets=brackets)
            taken[kind] = time.process_time() - start
        for name, seconds in taken.items():
            found[name] += [seconds] if number else []  # the first round compiles
    least = {name: round(min(seconds), 3) for name, seconds in found.items()}
    shares = {f"{name} / scoring": round(least[name] / least["scoring"], 3) for name in kinds}
    print(
        json.dumps({"lists": len(scores), "candidates": sum(own.size for own in scores), **least, **shares}, indent=1)
    )


if __name__ == "__main__":
    main()
