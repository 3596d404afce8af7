"""Extraction of a list: equal to the naive extractor, whatever is shared, centred, hashed, or out of room."""

import re
from typing import Any

import nltk
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_features import reference_features
from rendered_features import by_candidate, extracted, lists_of_trees, names_of, parsed, scores

from rerank.base.errors import DataError, RecipeError
from rerank.data.symbols import SymbolTable, text_hash
from rerank.data.trees import Trees
from rerank.features import extract, sink
from rerank.features.extract import Extractor, feature
from rerank.features.sink import OVERFLOW, ListFeatures, larger, new_sink
from rerank.features.template import SETS, Template, make_template
from rerank.readers.lists import Lists

EVERY_SET = [make_template(spec) for spec in SETS["extended"]]
# Options that no set uses, so that the twins are compared on them too.
MORE = [
    make_template(spec)
    for spec in [
        "Rule(mark_head=true, head=pos, nonhead=word)",
        "Rule(ancestors=8, root=true, conj=true, heads=semantic, nonhead=pos, words=all)",
        "NGram(n=4, mark_head=true, heads=semantic)",
        "NGram(n=1, nonhead=pos)",
        "Word(k=8)",
        "WProj(k=0, heads=syntactic)",
        "NGramTree(n=5, words=function)",
        "HeadTree(words=function, ancestors=2)",
        "HeadTree(heads=semantic, ancestors=1)",
        "Heads(n=3, governor=word, heads=semantic)",
        "Heads(dependent=word)",
        "Neighbours(l=0, r=0)",
        "Edges(lp=2, ls=2, rp=2, rs=2)",
        "CoPar(ignore_preterminals=true)",
        "CoLenPar(most=1)",
        "Rule(ancestors=1, root=True, conj=True)",
        "LogCondP(bin=10)",
        "LogCondP(norm=sum, bin=1000)",
    ]
]
ALL = [*EVERY_SET, *MORE]

CHASES = "(S1 (S (NP (DT The) (NN cat)) (VP (VBZ sees) (NP (NNS mice)) (PP (IN in) (NP (NN hay)))) (. .)))"
ATTACHED = "(S1 (S (NP (DT The) (NN cat)) (VP (VBZ sees) (NP (NP (NNS mice)) (PP (IN in) (NP (NN hay))))) (. .)))"
NOUN = "(S1 (S (NP (DT The) (NN cat) (NN sees)) (VP (VB mice) (PP (IN in) (NP (NN hay)))) (. .)))"

ODD = [
    # Heads: chains, and through coordinations in coordinations
    "(S1 (S (NP (DT The) (NN cat)) (VP (VBZ sees) (NP (NP (NNS mice)) (CC and) (NP (JJ big) (NNS birds)))) (. .)))",
    "(S1 (S (NP (NNS dogs)) (VP (VBP run) (PP (IN in) (NP (DT the) (NN park))))))",
    "(VP (VB a) (NP (NP (NN b)) (PP (IN of) (NP (NP (NN c)) (SBAR (WDT d))))))",
    "(S (NP (NP (NP (NN a)) (CC and) (NP (NN b))) (, ,) (CC or) (NP (JJ x) (NN c))) (VP (VB d)))",
    "(NP (NP (NN a)) (CC and) (NP (NNS b)))",
    # Subjects and verbs
    "(S (NP (NN today)) (NP (NNS cats)) (ADVP (RB often)) (VP (VBP run)) (NP (NN x)) (VP (VB y)))",
    "(SQ (VBZ is) (NP (PRP it)) (VP (VBG raining)))",
    "(S (PP (IN in) (NP (NN x))) (VP (VBZ is)))",
    "(FRAG (NP (NN x)) (VP (VBZ is)))",
    "(S (NP (NP (NNS dogs)) (PP (IN of) (NP (NN x)))) (VP (MD will) (VP (VB run))))",
    "(S (NP (NNP Art) (POS 's)) (VP (MD will) (VP (VB run))))",
    # Conjuncts: parallel or not, where a branch ends in one of them, at other levels; and what is no coordination
    "(NP (NP (DT a) (NN b)) (CC and) (NP (DT c) (NN d)))",
    "(UCP (NP (NN a)) (CC and) (VP (VB b)))",
    "(X (Y (Z (A a))) (CC or) (Y (Z b)))",
    "(X (Y (Z (A a)) (B b)) (CC or) (Y (Z (A c) (B d))))",
    "(NP (CC and) (NP (NN a)))",
    "(NP (NP (NN a)) (CONJP (RB as) (RB well) (IN as)) (NP (NN b)))",
    "(NP (NP (NN a)) (, ,) (CC and) (, ,) (NP (NN b)))",
    "(NP (CC both) (NP (NN a)) (CC and) (NP (NN b)))",
    "(NP (CC and) (NP (NN a)) (NP (NN b)))",
    "(NP (, ,) (CC and) (NP (NN a)))",
    "(NP (NP (NN a)) (CC and) (. .))",
    "(NP (NP (NN a)) (, ,) (NP (NN b)))",
    # Clauses in clauses, the first of them wherever it stands; marks of rules together
    "(S1 (S (NP (PRP She)) (VP (VBD said) (SBAR (IN that) (S (NP (PRP it)) (VP (MD will) (VP (VB rain)))))) (. .)))",
    "(NP (NN a) (SBAR (S (VP (VB b)))))",
    "(S (VP (VB a)) (CC or) (S (NP (NP (NN b)))))",
    # Right branches
    "(A (B (B (B (NN a)))) (: --))",
    "(X (. .) (Y (. !)))",
    "(NN a)",
    # The tag of a dollar sign is no end
    "(NP (QP ($ $) (CD 5)) (NN fine))",
]
PAIRS = [
    # The outer S starts one word earlier than the inner one: as far from the beginning as that is from the end.
    ("(S1 (NN a) (S (-NONE- *) (S (NN a))))", "(S1 (NN a) (NN a))"),
    # The words beside NP are the same in both; the end of the sentence is not as near.
    ("(S (NP (NN a)) (VP (VB b) (VB c) (VB d)))", "(S (NP (NN a)) (VP (VB b) (VB c) (VB d) (-NONE- *) (-NONE- *)))"),
]


def list_of(
    templates: list[Template], trees: list[Any], base: list[float], **options: Any
) -> tuple[ListFeatures, Extractor]:
    extractor = Extractor(templates, SymbolTable(), **options)
    return extractor.features(parsed(trees, extractor.symbols), np.array(base)), extractor


def varying(features: list[dict[Any, float]]) -> list[dict[Any, float]]:
    """The same without what is equal (as the float32 that is stored) in all candidates."""
    names = {name for one in features for name in one}
    kept = {name for name in names if len({np.float32(one.get(name, 0)) for one in features}) > 1}
    return [{name: value for name, value in one.items() if name in kept} for one in features]


def assert_same(found: list[dict[Any, float]], expected: list[dict[Any, float]]) -> None:
    for mine, naive in zip(found, expected, strict=True):
        assert mine.keys() == naive.keys()
        assert all(abs(mine[name] - naive[name]) <= 1e-5 * (1 + abs(naive[name])) for name in naive)


def hash_of(name: str) -> int:
    """The identity's definition, in Python's integers: the hash of template and symbols."""
    template, _, text = name.partition("|")
    h, word = text_hash(template), (1 << 64) - 1
    for symbol in text.split(" ") if text else []:
        h = (h ^ text_hash(symbol)) * 0xBF58476D1CE4E5B9 & word
        h = (h ^ h >> 32) * 0x94D049BB133111EB & word
    return h


def assert_kernels_equal_the_naive_extractor(trees: list[nltk.Tree], base: list[float]) -> None:
    features, extractor = list_of(ALL, trees, base, centred=False)
    names = names_of(features, extractor)
    assert len(set(names)) == len(names)  # one name, one feature
    assert [hash_of(name) for name in names] == features.full.tolist()
    naive = reference_features(ALL, trees, base)
    assert_same(by_candidate(features, names, len(trees)), varying(naive))
    # Centred: the same up to one number a feature, and never more entries than before.
    centred, extractor = list_of(ALL, trees, base, centred=True)
    names = names_of(centred, extractor)
    assert set(names) == {name for one in varying(naive) for name in one}
    stored = by_candidate(centred, names, len(trees))
    for i, name in enumerate(names):
        differences = [one.get(name, 0) - mine.get(name, 0) for one, mine in zip(naive, stored, strict=True)]
        assert np.ptp(differences) <= 1e-5 * (1 + abs(differences[0]))
        assert centred.first[i + 1] - centred.first[i] < len(trees)
    assert 0 not in centred.value


@settings(max_examples=80, deadline=None)
@given(lists_of_trees().flatmap(lambda trees: st.tuples(st.just(trees), scores(len(trees)))))
def test_kernels_equal_the_naive_extractor(drawn: tuple[list[nltk.Tree], list[float]]) -> None:
    assert_kernels_equal_the_naive_extractor(*drawn)


def test_kernels_equal_the_naive_extractor_on_odd_trees() -> None:
    """Each beside trees over its words in which little fires."""
    for tree in ODD:
        words = nltk.Tree.fromstring(tree).leaves()
        flat = f"(ZZ {' '.join(f'(Z {word})' for word in words)})"
        lists = [nltk.Tree.fromstring(text) for text in (tree, flat, f"(ZZ {flat})")]
        assert_kernels_equal_the_naive_extractor(lists, [0.0] * 3)
    for pair in PAIRS:
        assert_kernels_equal_the_naive_extractor([*map(nltk.Tree.fromstring, pair)], [0.0] * 2)


def test_centring_takes_away_the_most_frequent_value() -> None:
    def values(trees: list[str]) -> list[float]:
        found = extracted(["Word"], trees, centred=True)
        return [one.get("Word|a NN", 0) for one in found]

    one, two, none = "(X (NN a) (NN b))", "(X (NN a) (NN a))", "(X (DT a) (NN b))"
    assert values([one, one, two, none]) == [0, 0, 1, -1]
    assert values([two, one, none, two]) == [0, -1, -2, 0]
    assert values([two, one, two, one]) == [1, 0, 1, 0]  # as frequent: the smaller
    assert values([none, one, one]) == [-1, 0, 0]


@pytest.mark.parametrize("room", [(1, 1, 1, 1), (1, 1 << 10, 9, 1 << 16), (1 << 8, 1 << 6, 1, 300)])
def test_a_sink_that_overflows_gives_the_same(room: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    trees = [CHASES, ATTACHED, NOUN] * 30
    base = list(np.linspace(-9, -1, 90))
    expected, _ = list_of(ALL, trees, base)
    grown = []

    def small_at_first(*sizes: int) -> Any:
        return new_sink(*room, sizes[-1])

    def noted(sink: Any) -> Any:
        grown.append(int(sink.state[OVERFLOW]))
        return larger(sink)

    monkeypatch.setattr(extract, "new_sink", small_at_first)
    monkeypatch.setattr(extract, "larger", noted)
    monkeypatch.setattr(sink, "FIRST_ENTRIES", 0)
    found, _ = list_of(ALL, trees, base)
    assert len(grown) > 3
    for name in ListFeatures._fields:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


@settings(max_examples=40, deadline=None)
@given(lists_of_trees().flatmap(lambda trees: st.tuples(st.just(trees), scores(len(trees)), st.sampled_from([4, 10]))))
def test_hashed_features_share_columns_and_add_up(drawn: tuple[list[nltk.Tree], list[float], int]) -> None:
    trees, base, bits = drawn
    features, _ = list_of(ALL, trees, base, centred=False, bits=bits)
    assert features.hashes.size == 0 or (features.hashes.min() >= 1 and features.hashes.max() <= 1 << bits)
    expected: list[dict[int, float]] = [{} for _ in trees]
    for sums, naive in zip(expected, reference_features(ALL, trees, base), strict=True):
        for name, value in naive.items():
            number = (hash_of(name) >> (64 - bits)) + 1
            sums[number] = sums.get(number, 0) + value
    found = by_candidate(features, features.hashes.tolist(), len(trees))
    for number in {number for one in expected for number in one}:
        mine, naive = ([one.get(number, 0.0) for one in all_] for all_ in (found, expected))
        if any(mine):
            np.testing.assert_allclose(mine, naive, rtol=1e-5, atol=1e-4)
        else:
            assert np.ptp(naive) < 1e-4
    assert {n for one in found for n in one} <= {n for one in expected for n in one}


# Users' templates.


class Words:
    """Stands for a candidate."""

    def __init__(self, tokens: str) -> None:
        self.tokens = tokens.split()


def length(candidate: Words) -> dict[str, float]:
    return {"tokens": len(candidate.tokens), "always": 1, f"first is {candidate.tokens[0]}": 0.5}


def user_features(function: Any, name: str = "length") -> list[dict[str, float]]:
    extractor = Extractor([make_template("Rule")], SymbolTable(), user={name: function}, centred=False)
    trees = parsed([CHASES, ATTACHED], extractor.symbols)
    features = extractor.features(trees, np.zeros(2), [Words("a b"), Words("a c d")])
    return by_candidate(features, names_of(features, extractor), 2)


def test_users_templates_stand_beside_the_others() -> None:
    assert user_features(length) == [
        {"Rule|VP | → VBZ NP PP": 1.0, "length|tokens": 2.0},
        {"Rule|VP | → VBZ NP": 1.0, "Rule|NP | → NP PP": 1.0, "length|tokens": 3.0},
    ]
    by_word = user_features(lambda candidate: dict.fromkeys(candidate.tokens, -1.5), "bag of words")
    assert by_word[0] == {"Rule|VP | → VBZ NP PP": 1.0, "bag of words|b": -1.5}


def test_users_features_of_one_name_add_up_by_candidate_only() -> None:
    found = user_features(lambda candidate: {1: len(candidate.tokens), "1": 10})  # both are named "1"
    assert [one.get("length|1") for one in found] == [12, 13]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda candidate: {"x": 1 / (len(candidate.tokens) - 2)}, "template length failed .*ZeroDivisionError"),
        (lambda candidate: candidate.tree, "template length failed .*AttributeError"),
        (lambda _: [1], r"template length at .* gave \[1\]; expected a dict of numbers by name"),
        (lambda _: {"\ud800": 1}, "template length failed .*UnicodeEncodeError.*surrogates not allowed"),
        (lambda _: {"x": "many"}, "template length failed .*ValueError.*many"),
        (lambda _: {"x": float("nan")}, "'x' the value nan; expected a finite number"),
        (lambda _: {"x": 1e39}, r"'x' the value 1e\+39; expected a finite number, at most 3.4e\+38"),
    ],
)
def test_users_templates_that_fail_are_errors_of_the_recipe(function: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        user_features(function)


def inverse(candidate: Any) -> dict[str, float]:
    return {"x": 1 / (candidate.index - 1)}


DIVIDED = 'return {"x": 1 / (candidate.index - 1)}: ZeroDivisionError: division by zero'


@pytest.mark.parametrize("function", [inverse, feature(lambda candidate, _: inverse(candidate))])
def test_users_templates_that_fail_name_candidate_and_line(function: Any) -> None:
    lists = Lists.one("seven", "", 0, [b"a", b"b"], [1, 2], np.zeros((2, 1)))
    extractor = Extractor([], SymbolTable(), user={"own": function})
    place = f"list seven, candidate 2: template own failed at {__file__}:{inverse.__code__.co_firstlineno + 1}"
    with pytest.raises(RecipeError, match=re.escape(f"{place}, {DIVIDED}")):
        extractor.features(parsed([CHASES, ATTACHED], extractor.symbols), np.zeros(2), lists.candidates)


def test_errors_about_data_pass_through_users_templates() -> None:
    def fails(_candidate: Words) -> dict[str, float]:
        raise DataError("a tree too deep", list_id="7")

    with pytest.raises(DataError, match="list 7: a tree too deep"):
        user_features(fails)


def test_arrays_of_other_types_give_the_same_in_one_extractor() -> None:
    templates = [make_template(spec) for spec in ("Rule", "Heads")]  # all others are called alike
    extractor, base = Extractor(templates, SymbolTable()), np.array([-1.0, -2.0, -3.0])
    own = parsed([CHASES, ATTACHED, NOUN], extractor.symbols)
    frozen = Trees(*(array.copy() for array in own))
    for array in frozen:
        array.flags.writeable = False
    expected = extractor.features(own, base)
    for trees in (frozen, own, frozen, own):
        found = extractor.features(trees, base)
        for name in ListFeatures._fields:
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_a_template_can_be_used_once() -> None:
    twice = [make_template("Rule(ancestors=1)"), make_template({"Rule": {"ancestors": 1}})]
    with pytest.raises(RecipeError, match=r"template Rule\(ancestors=1\) is named twice"):
        Extractor(twice, SymbolTable())
    with pytest.raises(RecipeError, match="template Rule is named twice"):
        Extractor([make_template("Rule")], SymbolTable(), user={"Rule": length})


# Specifications of templates.


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("Rule", "Rule"),
        (" Rule( ancestors = 1 ,) ", "Rule(ancestors=1)"),
        ("Rule(ancestors=0)", "Rule"),  # a default said out loud is no other template
        ("Rule(words=function, ancestors=2, root=true)", "Rule(ancestors=2, root=True, words=function)"),
        ({"Rule": {"conj": True, "heads": "semantic"}}, "Rule(conj=True, heads=semantic)"),
        ("WordEdges(binned=True, lp=1)", "WordEdges(binned=True, lp=1)"),
    ],
)
def test_names_say_which_options_differ_from_their_defaults(spec: Any, name: str) -> None:
    assert make_template(spec).name == name
    assert make_template(make_template(spec).name) == make_template(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("Rul", "unknown template 'Rul'; did you mean Rule"),
        ("", "unknown template ''"),
        ("Rule(ancestors)", "found 'ancestors' .*expected option=value"),
        ("Rule(depth=1)", "template Rule has no option 'depth'; it has ancestors, root"),
        ("Rule(ancestors=one)", "option ancestors of template Rule: found 'one'; expected a whole number from 0 to 8"),
        ("Rule(ancestors=9)", "option ancestors of template Rule: found 9; expected a whole number from 0 to 8"),
        ("Rule(ancestors=true)", "option ancestors of template Rule: found True; expected a whole number from 0 to 8"),
        ("Rule(root=1)", "option root of template Rule: found 1; expected true or false"),
        ("Rule(words=3)", "option words of template Rule: found 3; expected one of none, function, all"),
        ("Rule(ancestors=1, ancestors=2)", "option ancestors is set twice"),
        ({"Rule": {}, "Word": {}}, "expected a template as"),
        ({"Rule": 1}, "expected {Name: {option: value}}"),
        (7, "found 7, expected a template as"),
        ("math:sqrt", "'math:sqrt' is not a class derived from"),
        ("math:nothing", "cannot import template"),
    ],
)
def test_specifications_that_name_no_template_are_refused(spec: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        make_template(spec)
