"""What a list's candidates say of each bracket of their union, and which of probable brackets are a tree's."""

from typing import NamedTuple

import numpy as np

from rerank.kernels.compile import kernel
from rerank.metrics.decoding.bracket_kernel import Brackets

FAR = 20.0  # of margins, in deviations: none is larger
HAS, CROSSES, RELABELS = 1, 2, 3  # what a tree does to a bracket


class BracketVotes(NamedTuple):
    """For each of B brackets, what T candidates have in its place."""

    times: np.ndarray  # float64 [B]: how many have it; as all others, zeros at first
    best: np.ndarray  # float64 [B]: the best score of those
    margin: np.ndarray  # float64 [B]: by how much that is better than the best of the others
    crossed: np.ndarray  # float64 [2, B]: the weight of those with a bracket that crosses it, by two weightings
    relabelled: np.ndarray  # float64 [2, B]: of those that have another over its words, and not it
    most_crossed: np.ndarray  # float64 [B]: the weight of the heaviest bracket that crosses it
    most_relabelled: np.ndarray  # float64 [B]: and of another over its words

    @classmethod
    def empty(cls, B: int) -> "BracketVotes":
        """Before any candidate has been counted."""
        one, two = np.zeros((5, B)), np.zeros((2, 2, B))
        return cls(one[0], one[1], one[2], two[0], two[1], one[3], one[4])


@kernel
def crossing(found: Brackets, a: int, b: int) -> bool:
    """Do two brackets share words, though neither holds the other?"""
    if found.start[a] < found.start[b]:
        return bool(found.start[b] < found.end[a] < found.end[b])
    return bool(found.start[a] < found.end[b] < found.end[a] and found.start[b] < found.start[a])


@kernel
def _done_to(found: Brackets, t: int, b: int) -> int:
    """What tree t does to bracket b: HAS, CROSSES or RELABELS it; 0 for none of these."""
    relabels = 0
    for i in range(found.first[t], found.first[t + 1]):
        other = found.bracket[i]
        if other == b:
            return HAS
        if crossing(found, b, other):
            return CROSSES
        if found.start[b] == found.start[other] and found.end[b] == found.end[other]:
            relabels = RELABELS
    return relabels


@kernel
def count_votes(found: Brackets, order: np.ndarray, scores: np.ndarray, lead: np.ndarray, out: BracketVotes) -> None:
    """Fill times, best and margin of ``out`` from candidates in the ``order`` (int64) of their scores (float64 [T]).

    lead (int64 [B], zeros) is scratch.
    """
    for rank in range(order.shape[0]):
        t = order[rank]
        for i in range(found.first[t], found.first[t + 1]):
            b = found.bracket[i]
            if out.times[b] == 0:
                out.best[b] = scores[t]
            out.times[b] += 1
            lead[b] += lead[b] == rank
    for b in range(lead.shape[0]):
        out.margin[b] = FAR
        if lead[b] < order.shape[0]:
            out.margin[b] = max(-FAR, min(FAR, out.best[b] - scores[order[lead[b]]]))


@kernel
def weigh_rivals(
    found: Brackets, order: np.ndarray, weights: np.ndarray, total: np.ndarray, first: int, last: int, out: BracketVotes
) -> None:
    """Fill the rest of ``out`` for the brackets first..last - 1.

    weights: float64 [2, T]; total: float64 [B], the weight of every bracket by the first of them.
    """
    for rank in range(order.shape[0]):
        t = order[rank]
        for b in range(first, last):
            done = _done_to(found, t, b)
            for k in range(weights.shape[0]):
                if done == CROSSES:
                    out.crossed[k, b] += weights[k, t]
                elif done == RELABELS:
                    out.relabelled[k, b] += weights[k, t]
    for b in range(first, last):
        for other in range(total.shape[0]):
            if crossing(found, b, other):
                out.most_crossed[b] = max(out.most_crossed[b], total[other])
            elif other != b and found.start[b] == found.start[other] and found.end[b] == found.end[other]:
                out.most_relabelled[b] = max(out.most_relabelled[b], total[other])


@kernel
def drop_crossing(
    found: Brackets, order: np.ndarray, first: int, last: int, total: np.ndarray, kept: np.ndarray, count: int
) -> int:
    """Set total (float64 [B]) to 0 where a bracket crosses one that comes before it in ``order`` (int64 [B]) and stays.

    Looks at order[first:last], when ``count`` of those before stay, which ``kept`` (int32 [B]) begins with; returns the
    new number.
    """
    for i in range(first, last):
        b, free = order[i], True
        for j in range(count):
            if crossing(found, b, kept[j]):
                free = False
                break
        if free:
            kept[count] = b
            count += 1
        else:
            total[b] = 0.0
    return count


@kernel
def child_of(
    node: int, feature: np.ndarray, threshold: np.ndarray, members: np.ndarray, child: np.ndarray, sets: int, x: float
) -> int:
    """The child to which a row goes whose feature is x; see ``add_leaves``."""
    if feature[node] < sets:
        left = (members[node] >> np.uint64(x)) & np.uint64(1) == np.uint64(1)
    else:
        left = x <= threshold[node]
    return int(child[node, 0] if left else child[node, 1])


@kernel
def add_leaves(
    first: np.ndarray, feature: np.ndarray, threshold: np.ndarray, members: np.ndarray, child: np.ndarray,
    value: np.ndarray, sets: int, rows: np.ndarray, total: np.ndarray,
) -> None:  # fmt: skip
    """Add to total (float64 [n]) the value of the leaf of every tree that a row (float64 [n, C]) comes to.

    first: int64 [K + 1], the nodes of tree k; feature: int32, -1 at a leaf; child: int32 [nodes, 2], the first for rows
    whose feature is at most ``threshold`` or, of the first ``sets`` features, is a bit of ``members`` (uint64).
    """
    for k in range(first.shape[0] - 1):
        for i in range(rows.shape[0]):
            node = first[k]
            while feature[node] >= 0:
                node = child_of(node, feature, threshold, members, child, sets, rows[i, feature[node]])
            total[i] += value[node]


@kernel
def add_contributions(
    first: np.ndarray, feature: np.ndarray, threshold: np.ndarray, members: np.ndarray, child: np.ndarray,
    value: np.ndarray, sets: int, rows: np.ndarray, parts: np.ndarray,
) -> None:  # fmt: skip
    """Add to parts (float64 [n, C]) what each feature changes the value by, along the paths of ``add_leaves``.

    Every node has a value here.
    """
    for k in range(first.shape[0] - 1):
        for i in range(rows.shape[0]):
            node = first[k]
            while feature[node] >= 0:
                asked, before = feature[node], value[node]
                node = child_of(node, feature, threshold, members, child, sets, rows[i, asked])
                parts[i, asked] += value[node] - before
