"""Places: nodes are together exactly where their scope sees the same, and every occurrence is counted."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import nltk
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_features import CLAUSES, TABLES, Node, head_child, is_coordination, read
from rendered_features import lists_of_trees, parsed

from rerank.data.symbols import SymbolTable
from rerank.features.forest import Grower
from rerank.features.places import EDGE_REACH, EDGES, INSIDE, TREE, UPWARD, places_of
from rerank.features.sink import ENTRIES, OVERFLOW, new_sink


class Found(NamedTuple):
    node: np.ndarray
    first: np.ndarray
    candidate: np.ndarray
    times: np.ndarray


def places_in(trees: Sequence[Any], scope: int, depth: int = 0) -> Found:
    symbols = SymbolTable()
    forest = Grower(symbols).grow(parsed(trees, symbols), np.zeros(len(trees)), symbols)
    before, nodes, scopes = 3, forest.label.size, np.array([[scope, depth]])
    small, sink = (new_sink(1, 1, 1, before + nodes - less) for less in (1, 0))
    small.state[ENTRIES] = sink.state[ENTRIES] = before
    if nodes:
        assert places_of(forest, scopes, small)[0].node.size == 0
        assert small.state[OVERFLOW]
    (places,) = places_of(forest, scopes, sink)
    assert not sink.state[OVERFLOW]
    end = int(places.first[-1])
    assert sink.state[ENTRIES] == end
    return Found(places.node, places.first - before, sink.candidate[before:end], sink.value[before:end])


def inside(node: Node) -> str:
    return f"({node.label} {node.word}{' '.join(map(inside, node.children))})"


def is_head(node: Node, kind: str) -> bool:
    return node.parent is not None and head_child(node.parent, TABLES[kind]) is node


def flags(node: Node) -> tuple[bool, ...]:
    clauses = sum(above.label in CLAUSES for above in [node, *node.above])
    coordination = is_coordination(node), is_coordination(node.parent)
    return (*coordination, clauses <= 1, is_head(node, "syntactic"), is_head(node, "semantic"))


def seen(node: Node, tree: int, scope: int, depth: int) -> Any:
    """What a scope sees at a node; None where it does not look."""
    root = [node, *node.above][-1]
    if scope == INSIDE:
        return inside(node), is_head(node, "syntactic"), is_head(node, "semantic")
    if scope == UPWARD:
        return inside(node), flags(node), [(above.label, flags(above)) for above in node.above[:depth]]
    if scope == TREE:
        return tree if node is root else None
    if not node.children:
        return None
    beside = [root.words[max(edge - EDGE_REACH, 0) : edge + EDGE_REACH] for edge in (node.start, node.end)]
    return node.label, node.start, node.end, root.end, [list(map(inside, words)) for words in beside]


@settings(max_examples=120, deadline=None)
@given(
    lists_of_trees(),
    st.sampled_from([(INSIDE, 0), (UPWARD, 0), (UPWARD, 1), (UPWARD, 3), (EDGES, 0), (TREE, 0)]),
)
def test_places_partition_the_nodes_by_what_is_seen(trees: list[nltk.Tree], scope: tuple[int, int]) -> None:
    places = places_in(trees, *scope)
    nodes = [(node, y) for y, tree in enumerate(trees) for node in read(tree).below]
    keys = [repr(seen(node, y, *scope)) for node, y in nodes]
    expected = Counter((key, y) for key, (_, y) in zip(keys, nodes, strict=True) if key != "None")
    found: Counter[tuple[str, int]] = Counter()
    for p, node in enumerate(places.node):
        entries = slice(places.first[p], places.first[p + 1])
        candidates = places.candidate[entries].tolist()
        assert candidates == sorted(set(candidates))
        assert nodes[node][1] == candidates[0]
        for y, times in zip(candidates, places.times[entries].tolist(), strict=True):
            assert (keys[node], y) not in found  # one place for all that is seen alike
            found[keys[node], y] = times
    assert found == expected


def entries_at(trees: Sequence[str], node: int, scope: int, depth: int = 0) -> dict[int, float]:
    """Candidate → times of the place that has ``node`` (of all trees, in preorder) as its representative."""
    places = places_in(trees, scope, depth)
    p = places.node.tolist().index(node)
    entries = slice(places.first[p], places.first[p + 1])
    return dict(zip(places.candidate[entries].tolist(), places.times[entries].tolist(), strict=True))


def test_edges_of_unary_chains_and_swapped_distances_stay_apart() -> None:
    # The outer S starts one word earlier than the inner one: as far from the beginning as that is from the end.
    trees = ["(S1 (NN a) (S (-NONE- *) (S (NN a))))"]
    assert entries_at(trees, 2, EDGES) == {0: 1}
    assert entries_at(trees, 4, EDGES) == {0: 1}
