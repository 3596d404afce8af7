"""Templates of parses: features written out by hand, named sets, options, and head rules."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from rendered_features import extracted, once, parsed

from rerank.base.errors import RecipeError
from rerank.data.symbols import SymbolTable
from rerank.features.extract import families_of
from rerank.features.forest import EDGES, SEMANTIC, SYNTACTIC, Grower, HeadTable, Rules
from rerank.features.template import SETS, Template, make_template, templates

# Base scores


def scored(spec: str, *base: float) -> list[dict[str, float]]:
    found = extracted([spec], [f"(X{i} (NN a))" for i in range(len(base))], base)
    return [{name.partition("|")[2]: value for name, value in one.items()} for one in found]


def test_base_scores_far_apart() -> None:
    """Sums of exponentials neither overflow nor vanish, and no number is above the largest."""
    assert scored("LogCondP(norm=sum)", 1000, -1000) == [{}, {"": -2000}]
    largest = float(np.finfo(np.float32).max)
    assert scored("LogCondP", -10, -1.79e308) == [{}, {"": -largest}]
    assert scored("LogCondP(bin=5)", -10, -12.5, -1.79e308) == [once("0"), once("5"), once("64")]


# Sets


def test_the_papers_set() -> None:
    templates = [make_template(spec) for spec in SETS["cj2005"]]
    assert Counter(template.kind for template in templates) == {
        "RightBranch": 1,
        "Heavy": 1,
        "CoPar": 1,
        "CoLenPar": 1,
        "Word": 2,
        "WProj": 1,
        "Rule": 7,
        "NGram": 5,
        "NGramTree": 3,
        "HeadTree": 3,
        "Heads": 4,
        "Edges": 30,
        "WordEdges": 30,
        "Dense": 1,  # what the papers' lists do not have
    }
    assert set(SETS["cj2005"]) < set(SETS["extended"])


def fire() -> None:
    """Stands for a kernel."""


def test_a_class_can_say_its_name_and_compute_its_scope() -> None:
    @dataclass(frozen=True)
    class Other(Template):
        kind: ClassVar[str] = "Label"
        fire = staticmethod(fire)

        @property
        def scope(self) -> int:
            return EDGES

    (call,) = families_of([Other()])
    assert (Other().name, call.scope, call.options.shape) == ("Label", EDGES, (1, 0))


def test_every_template_is_registered_under_its_name() -> None:
    for name, part in templates:
        assert part.kind == name
        assert make_template(name).name == name


def head_words(tree: str, syntactic: Rules = SYNTACTIC, semantic: Rules = SEMANTIC) -> tuple[str, str]:
    """The words of the root's syntactic and of its semantic head."""
    symbols = SymbolTable()
    forest = Grower(symbols, syntactic, semantic).grow(parsed([tree], symbols), np.zeros(1), symbols)
    return symbols.text(forest.word[forest.syn_leaf[0]]), symbols.text(forest.word[forest.sem_leaf[0]])


@pytest.mark.parametrize(
    ("tree", "syntactic", "semantic"),
    [
        # Clauses
        ("(S1 (INTJ (UH oh)) (S (VP (VB go))))", "go", "go"),
        ("(S (NP (PRP it)) (VP (MD will) (VP (VB rain))))", "will", "rain"),
        ("(S (NP (NN tea)) (ADJP (JJ hot)))", "tea", "tea"),
        ("(SBAR (WHNP (WDT which)) (S (VP (VBZ rains))))", "which", "rains"),
        ("(SBARQ (WHNP (WP who)) (SQ (VBZ is) (VP (VBG coming))))", "is", "coming"),
        ("(SQ (AUX is) (NP (PRP it)) (ADJP (JJ hot)))", "is", "hot"),
        ("(SINV (S (VP (VB go))) (VP (VBD said)) (NP (PRP she)))", "said", "said"),
        # Verb phrases
        ("(VP (MD will) (VP (VB have) (VP (VBN rained))))", "will", "rained"),
        ("(VP (AUX is) (ADJP (JJ hot)))", "is", "hot"),
        ("(VP (ADVP (RB well)) (VBN made))", "made", "made"),
        # Noun phrases
        ("(NP (NN cup) (SBAR (S (VP (VBZ is)))))", "cup", "cup"),
        ("(NP (NP (NNS cups)) (CC and) (NP (NNS jars)))", "cups", "cups"),
        ("(NP (NP (NNP Ann) (POS 's)) (NN cup))", "cup", "cup"),
        ("(NP (JJR more) (JJ hot))", "more", "hot"),
        ("(NP (QP (IN about) (CD two)) (DT a))", "a", "two"),
        ("(NP (DT the) (NML (NN tea) (NN time)))", "time", "time"),
        # Prepositional phrases
        ("(PP (IN of) (NP (DT the) (NN cup)))", "of", "cup"),
        ("(PP (IN out) (PP (IN of) (NP (NN bed))))", "out", "bed"),
        ("(PP (PP (IN in) (NP (NN bed))) (CC or) (PP (IN at) (NP (NN sea))))", "in", "sea"),
        # Modifiers
        ("(ADJP (JJ able) (S (VP (TO to) (VP (VB go)))))", "able", "able"),
        ("(ADVP (RB very) (RB well))", "well", "well"),
        ("(QP (IN about) (CD two) (CD hundred))", "hundred", "hundred"),
        ("(CONJP (RB as) (RB well) (IN than))", "than", "than"),
        # Questions' phrases
        ("(WHNP (WDT which) (NN cup))", "which", "cup"),
        ("(WHNP (WHNP (WP who)) (PP (IN of) (NP (PRP us))))", "who", "who"),
        ("(WHADVP (WRB how))", "how", "how"),
        # The rest
        ("(FRAG (ADVP (RB now)) (NP (NN tea)))", "tea", "tea"),
        ("(INTJ (RB well) (UH oh))", "oh", "oh"),
        ("(RRC (ADVP (RB now)) (VP (VBG going)))", "going", "going"),
        ("(X (NP (NN tea)) (NN cup))", "cup", "cup"),
        # Labels without a rule: the first child
        ("(NP-SBJ (DT the) (NN tea))", "the", "the"),
        # A preterminal is its own head.
        ("(NN tea)", "tea", "tea"),
    ],
)
def test_heads_of_treebank_labels(tree: str, syntactic: str, semantic: str) -> None:
    assert head_words(tree) == (syntactic, semantic)


@pytest.mark.parametrize(
    ("steps", "head"),
    [
        (["< B"], "b1"),
        (["> B"], "b2"),
        (["> B A"], "b2"),  # whichever of the labels comes first from that side
        (["< B A"], "a1"),
        (["< Z", "> A", "< B"], "a2"),  # steps in their order
        (["> *"], "c"),
        (["> *", "< B"], "c"),  # nothing comes after "any label"
        (["< Z"], "a1"),  # nothing found: the first child
        (["> Z"], "a1"),
        ([], "a1"),
    ],
)
def test_rules_of_ones_own(steps: list[str], head: str) -> None:
    tree = "(P (A a1) (B b1) (A a2) (B b2) (C c))"
    assert head_words(tree, {"P": steps}, {}) == (head, "a1")


@pytest.mark.parametrize("step", ["B", "left B", "<B", ""])
def test_steps_without_a_direction_are_refused(step: str) -> None:
    with pytest.raises(RecipeError, match=f"head rule of P has the step '{step}'; expected < or >"):
        HeadTable({"P": ["< A", step]}, SymbolTable())
