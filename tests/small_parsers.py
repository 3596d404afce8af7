"""The small parse lists with a second score beside them, and as the lists of two parsers."""

from pathlib import Path
from typing import Any

import numpy as np
import small
from pairs import read_pairs

from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval import Parseval
from rerank.readers.trees.charniak import CharniakReader

NOISE = 0.05  # standard deviation of the second score around the gain
JOINED: dict[str, Any] = {
    "nbest": "{root}/{split}.nbest.gz,{root}/{split}.scores",
    "reader": {"name": "joined", "of": {"name": "charniak"}},
}
MERGED: dict[str, Any] = {
    "nbest": "{root}/{split}.first,{root}/{split}.second",
    "reader": {"name": "merged", "of": [{"name": "charniak", "ids": "ordinal"}, {"name": "berkeley"}]},
}


def write_task(root: Path) -> None:
    """For every split the lists; ``scores``, the gain with noise; ``first`` and ``second``, which have a candidate in
    common: one parser has those in even places and their base scores, another the first and the rest with the gain."""
    small.write_slices(root)
    rng, measure = np.random.default_rng(7), Parseval()
    for split in small.SIZES:
        rows, first, second = ["# quality"], [], []
        paths = root / f"{split}.nbest.gz", root / f"{split}.gold.gz"
        symbols = SymbolTable()
        for nbest, trees, gold in read_pairs(CharniakReader(), *paths, symbols):
            own, stats = measure.stats(gold, trees, symbols)
            gain = measure.gain(stats, np.broadcast_to(own, (len(nbest), own.size)))
            quality = (gain + rng.normal(0.0, NOISE, len(nbest))).tolist()
            rows += map(repr, quality)
            found = list(zip(nbest.base.tolist(), nbest.texts, strict=True))
            even, rest = found[::2], [0, *range(1, len(found), 2)]
            first.append(
                "\n".join([f"{len(even)}\t{nbest.id}", *(f"{score}\n{text.decode()}" for score, text in even)])
            )
            other = (found[i][1].decode().replace("(S1 ", "(TOP  ", 1) for i in rest)
            second.append("\n".join(f"{quality[i]}\t{text}" for i, text in zip(rest, other, strict=True)))
        (root / f"{split}.scores").write_text("\n".join(rows) + "\n")
        small.write_lists(root / f"{split}.first", first)
        small.write_lists(root / f"{split}.second", second)
