"""What the extractor gives, as feature names with values; and random lists of trees over the same words."""

from collections.abc import Collection, Sequence
from typing import Any

import nltk
import numpy as np
from hypothesis import strategies as st
from reference_trees import tree_over

from rerank.data.symbols import SymbolTable, index_of, numbers_of
from rerank.data.trees import Trees, parse_brackets
from rerank.features.counting import FeatureCounter, Pruning, add_counts, make_table
from rerank.features.extract import Extractor
from rerank.features.sink import ListFeatures
from rerank.features.table import FeatureTable
from rerank.features.template import make_template


def parsed(trees: Sequence[nltk.Tree | str], symbols: SymbolTable) -> Trees:
    """Trees of one list as arrays."""
    return parse_brackets([str(tree).encode() for tree in trees], symbols)


class TableBuilder:
    """Counts the features of lists in this process and makes their table; the parameters are those of Pruning."""

    def __init__(self, templates: Sequence[str], min_lists: int, free: Collection[str] = ()) -> None:
        self._pruning = Pruning(tuple(templates), min_lists, free)
        self._counter = FeatureCounter()

    def add(self, features: ListFeatures) -> np.ndarray:
        """Count the features of one list; returns their provisional ids (int32 [F])."""
        return self._counter.add(features)

    def finish(self, symbols: SymbolTable) -> tuple[FeatureTable, np.ndarray]:
        """The table, and the column of every provisional id (int32, ABSENT for pruned features)."""
        counts, names, place = self._counter.finish()
        kept = add_counts([counts], self._pruning.limits)
        named = names.some(np.searchsorted(counts.hashes, kept.hashes))
        known = {int(h): symbols.text_of_hash(int(h)) for h in np.unique(named[1])}
        texts = {h: text for h, text in known.items() if text is not None}
        table = make_table([kept], [named], self._pruning, texts)
        return table, numbers_of(index_of(table.hashes), counts.hashes)[place]


def names_of(features: ListFeatures, extractor: Extractor) -> list[str]:
    """The name of every feature of a list, by way of a table that keeps them all."""
    builder = TableBuilder(extractor.names, min_lists=1)
    builder.add(features)
    table, column = builder.finish(extractor.symbols)
    return [table.name(int(c)) for c in column]


def by_candidate(features: ListFeatures, names: Sequence[Any], total: int) -> list[dict[Any, float]]:
    """For every candidate: name → stored value."""
    found: list[dict[Any, float]] = [{} for _ in range(total)]
    for i, name in enumerate(names):
        for e in range(features.first[i], features.first[i + 1]):
            assert name not in found[features.candidate[e]]
            found[features.candidate[e]][name] = float(features.value[e])
    return found


def extracted(
    specs: Sequence[Any], trees: Sequence[nltk.Tree | str], base: Sequence[float] | None = None, **options: Any
) -> list[dict[str, float]]:
    """For every candidate of one list: feature name → value (not centred unless asked)."""
    extractor = Extractor([make_template(spec) for spec in specs], SymbolTable(), **{"centred": False, **options})
    scores = np.zeros(len(trees)) if base is None else np.array(base, np.float64)
    features = extractor.features(parsed(trees, extractor.symbols), scores)
    return by_candidate(features, names_of(features, extractor), len(trees))


def once(*names: str) -> dict[str, float]:
    return dict.fromkeys(names, 1.0)


# Random lists.

ROOTS = ["S1", "TOP", "ROOT", "", "S", "FRAG", "NP"]
PHRASES = ["S", "SBAR", "NP", "NP", "VP", "PP", "UCP", "WHNP", "ADJP", "CONJP", "SQ", "X"]
TAGS = ["NN", "NNS", "DT", "CC", "CC", ",", ".", ":", "$", "VBZ", "MD", "IN", "TO", "PRP", "POS", "JJ", "XX"]
WORDS = ["The", "the", "dog", "Dogs", "$", ",", "and", "of", "is", "日本", "-LRB-"]


def grown(words: Sequence[str], root: str | None = None) -> st.SearchStrategy[nltk.Tree]:
    """Random trees over ``words`` with labels that templates look at."""
    return tree_over(words, root, PHRASES, TAGS)


@st.composite
def changed(draw: st.DrawFn, tree: nltk.Tree) -> nltk.Tree:
    """``tree`` with one node changed: another label, another tree over its words, or a trace in front."""
    tree = tree.copy(deep=True)
    places = tree.treepositions()
    place = draw(st.sampled_from([place for place in places if not isinstance(tree[place], str)]))
    node = tree[place]
    change = draw(st.sampled_from(["label", "tree", "trace"]))
    if change == "label":
        node.set_label(draw(st.sampled_from(TAGS if isinstance(node[0], str) else PHRASES)))
    elif change == "trace" and not isinstance(node[0], str):
        node.insert(0, nltk.Tree("-NONE-", ["*"]))
    elif place:
        tree[place] = draw(grown(node.leaves()))
    return tree


@st.composite
def lists_of_trees(draw: st.DrawFn, most: int = 4) -> list[nltk.Tree]:
    """Candidates that share their words and much of their structure, like those of a parser."""
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9))
    trees = [draw(grown(words, draw(st.sampled_from(ROOTS))))]
    for _ in range(draw(st.integers(0, most - 1))):
        fresh = draw(st.integers(0, 3)) == 0
        trees.append(draw(grown(words, draw(st.sampled_from(ROOTS))) if fresh else changed(trees[-1])))
    return trees


def scores(total: int) -> st.SearchStrategy[list[float]]:
    """Base scores of a list."""
    return st.lists(st.floats(-60, 0, width=32), min_size=total, max_size=total)
