"""Boosted trees over the columns of a corpus and then, as column D, the base score; read from LightGBM's text format.

LightGBM itself takes a thousand times as long to start for a list, and ends the process where a text is damaged. A
feature that a candidate lacks is 0, and so is one that all of a list have alike: see ``ListFeatures``.
"""

import re
from typing import NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel

END = "end of trees\n"  # what follows it says how they were grown
LEAF = "leaf_value"
KINDS = {
    "split_feature": np.int64, "threshold": np.float64, "split_gain": np.float64, "decision_type": np.int64,
    "left_child": np.int64, "right_child": np.int64, "internal_value": np.float64, LEAF: np.float64,
}  # fmt: skip
NUMERIC = 0, 2  # decision types: values up to the threshold go left, and none is missing


class BoostedTrees(NamedTuple):
    """K trees, the nodes of each after those of the last: the root first, the leaves at the end."""

    text: np.ndarray  # uint8
    gains: np.ndarray  # float64 [D + 1]: by how much the splits by each column bettered what was optimised
    first: np.ndarray  # int64 [K + 1]
    feature: np.ndarray  # int64 [nodes]: the column that is asked for, -1 at a leaf
    threshold: np.ndarray  # float64 [nodes]
    child: np.ndarray  # int64 [nodes, 2]: for values up to the threshold, and above it
    value: np.ndarray  # float64 [nodes]: of leaves what is added to a score, of others about the mean of that

    def scores(self, corpus: Corpus) -> np.ndarray:
        """float64 [N]: the sum of all trees for every candidate."""
        total, row = np.zeros(corpus.candidate_count), np.zeros(self.gains.size)
        add_trees(self, corpus.rows, corpus.columns, corpus.values, corpus.base, row, total, np.zeros(0))
        return total

    def parts(self, corpus: Corpus, y: int) -> np.ndarray:
        """float64 [D + 1]: by how much each column changes the score of candidate y, along its paths (Saabas 2014)."""
        row, part = np.zeros((2, self.gains.size))
        rows, base = corpus.rows[y : y + 2], corpus.base[y : y + 1]
        add_trees(self, rows, corpus.columns, corpus.values, base, row, np.zeros(1), part)
        return np.asarray(part)


@kernel
def add_trees(
    trees: BoostedTrees,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    base: np.ndarray,
    row: np.ndarray,
    total: np.ndarray,
    part: np.ndarray,
) -> None:
    """Add to total what trees give every candidate and to part, unless it is empty, what each column changes."""
    for y in range(total.shape[0]):
        for p in range(rows[y], rows[y + 1]):
            row[columns[p]] = np.float32(values[p])
        row[-1] = base[y]
        for k in range(trees.first.shape[0] - 1):
            node = trees.first[k]
            while trees.feature[node] >= 0:
                j, before = trees.feature[node], trees.value[node]
                node = trees.child[node, 0 if row[j] <= trees.threshold[node] else 1]
                if part.shape[0] > 0:
                    part[j] += trees.value[node] - before
            total[y] += trees.value[node]
        for p in range(rows[y], rows[y + 1]):
            row[columns[p]] = 0.0


def read_trees(text: bytes, width: int) -> BoostedTrees:
    """The trees in ``text``, over ``width`` columns and the base score.

    Raises
    ------
    ValueError: they are no trees over these columns whose every path ends at a leaf.
    """
    blocks = re.split(r"^Tree=\d+\n", text.decode("ascii").partition(END)[0], flags=re.MULTILINE)[1:]
    if not blocks:
        raise ValueError("there are no trees in it")
    grown = [_numbers(block) for block in blocks]
    first = np.cumsum([0, *(2 * tree[LEAF].size - 1 for tree in grown)], dtype=np.int64)
    feature, child = np.full(first[-1], -1), np.zeros((first[-1], 2), np.int64)
    threshold, gain, value = np.zeros((3, first[-1]))
    for tree, root, end in zip(grown, first, first[1:], strict=False):
        splits, sides = tree["split_feature"].size, np.stack([tree["left_child"], tree["right_child"]], axis=1)
        inner = slice(root, root + splits)
        feature[inner], threshold[inner], gain[inner] = (tree[key] for key in list(KINDS)[:3])
        value[root:end] = np.append(tree["internal_value"], tree[LEAF])
        child[inner] = root + np.where(sides < 0, splits + ~sides, sides)
        apart = (child[inner] > np.arange(root, root + splits)[:, None]) & (child[inner] < end)
        if not (apart.all() and ((feature[inner] >= 0) & (feature[inner] <= width)).all()):
            raise ValueError("its trees have a path that ends at no leaf, or ask for a column that is not there")
    if not np.isfinite([threshold, gain, value]).all():
        raise ValueError("its trees hold numbers that are not finite")
    gains = np.bincount(feature[feature >= 0], gain[feature >= 0], width + 1)
    return BoostedTrees(np.frombuffer(text, np.uint8), gains, first, feature, threshold, child, value)


def _numbers(block: str) -> dict[str, np.ndarray]:
    """The numbers of one tree by key."""
    lines = dict(line.split("=", 1) for line in block.splitlines() if line)
    if missing := {*KINDS, "num_cat", "is_linear"} - lines.keys():
        raise ValueError(f"one of its trees lacks {min(missing)}")
    try:
        numbers = {key: np.array(lines[key].split(), kind) for key, kind in KINDS.items()}
    except OverflowError as error:
        raise ValueError(f"one of its trees has a number that is too large ({error})") from None
    if any(array.size != numbers[LEAF].size - (key != LEAF) for key, array in numbers.items()):
        raise ValueError(f"one of its trees has not as many splits as its {numbers[LEAF].size} leaves need")
    if lines["num_cat"] != "0" or lines["is_linear"] != "0" or not np.isin(numbers["decision_type"], NUMERIC).all():
        raise ValueError("its trees have other splits than those of numbers, or other leaves than constant ones")
    return numbers
