"""PARSEVAL: equality with the definition, and what random trees do not have on hand-computed cases."""

import nltk
import numpy as np
import pytest
import small
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference_parseval import parseval
from reference_trees import tree_over

from rerank.base.errors import RecipeError
from rerank.data.symbols import SymbolTable
from rerank.data.trees import parse_brackets
from rerank.metrics.metric import best_of_lists, chosen_rows, mean_rows
from rerank.metrics.parseval import Parseval, cut_label, equivalents


def counts(gold: str, test: str, metric: Parseval | None = None) -> dict[str, float]:
    """The statistics of one pair of trees by name, the gold side as this candidate sees it."""
    metric = metric or Parseval()
    symbols = SymbolTable()
    golds, tests = (parse_brackets([text.encode()], symbols) for text in (gold, test))
    reference, rows = metric.stats(golds, tests, symbols)
    found = dict(zip(metric.columns, rows[0], strict=True)) | dict(
        zip(metric.reference_columns, reference, strict=True)
    )
    found["gold"] += found.pop("gold_shift")
    found["words"] += found.pop("word_shift")
    return found


IT_RAINS = "(S1 (S (NP (PRP It)) (VP (VBZ rains)) (. .)))"


class TestLabels:
    @pytest.mark.parametrize(
        ("label", "cut"),
        [("NP", "NP"), ("NP-SBJ", "NP"), ("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("NP-LOC=3", "NP"), ("NP=3-LOC", "NP"),
         ("-LRB-", "-LRB-"), ("-NONE-", "-NONE-"), ("-", "-"), ("=X-1", "=X-1"), ("", ""), ("PRP$", "PRP$")],
    )  # fmt: skip
    def test_function_tags_and_indices_are_cut_but_not_a_leading_one(self, label, cut):
        assert cut_label(label) == cut

    def test_features_and_functions_are_no_part_of_tags_and_labels(self):
        gold = "(S1 (S##m=x## (NP##m=y##-SUJ (DT##lemma=a-b|n=s## a) (CLS-SUJ it)) (##PU## ##)))"
        c = counts(gold, "(S1 (S (NP (DT a) (CLS it)) (##PU## ##)))")
        assert (c["matched"], c["gold"], c["test"], c["words"], c["correct_tags"]) == (2, 2, 2, 3, 3)
        marks = Parseval(delete=("", "S1", "$,", "PU-Q"), delete_for_length=("$,",))
        c = counts("(S1 (S (NN a) ($,-X ,) (PU-Q b) (PU c)))", "(S1 (S (NN a) (CC ,) (PU b) (PU c)))", marks)
        assert (c["words"], c["length"]) == (2, 3)

    def test_pairs_span_an_equivalence(self):
        classes = equivalents([("a", "b"), ("c", "d"), ("d", "b")])
        assert len(classes) == 4
        assert set(classes.values()) == {"a"}

    def test_tables_grow_with_the_symbols(self):
        metric, symbols = Parseval(), SymbolTable()
        first = parse_brackets([b"(S1 (NP (NN a)))"], symbols)
        assert metric.stats(first, first, symbols)[1][0, 0] == 1
        many = b"(S1 (S %s))" % b" ".join(b"(XP-%d (T%d w%d))" % (i, i, i) for i in range(3000))
        later = parse_brackets([many], symbols)
        reference, rows = metric.stats(later, later, symbols)
        assert reference[0] == rows[0, 0] == 3001
        assert metric.table(symbols).flags.size == len(symbols)


class TestPunctuation:
    def test_other_tags_of_punctuation_are_words(self):
        assert counts("(S1 (X (-LRB- -LRB-) (HYPH -) ($ $) (NN a)))", "(S1 (X (-LRB- -LRB-) (HYPH -) ($ $) (NN a)))")[
            "words"
        ] == 4  # fmt: skip

    # The reference takes '-' for punctuation, the candidate for a noun inside the NP.
    GOLD = "(S1 (S (NP (NN a)) (: -) (VP (VB b))))"
    TEST = "(S1 (S (NP (NN a) (NN -)) (VP (VB b))))"


class TestTagsAndLength:
    def test_length_counts_punctuation_but_not_traces(self):
        c = counts("(S1 (S (-NONE- *) (NN a) (, ,) (NN b) (. .)))", "(S1 (S (NN a) (, ,) (NN b) (. .)))")
        assert c["length"] == 4
        metric = Parseval(delete_for_length=(".", ","))
        assert counts("(S1 (S (NN a) (, ,) (. .)))", "(S1 (S (NN a) (, ,) (. .)))", metric)["length"] == 1


class TestYields:
    def mismatch(self, gold: str, *candidates: str, metric: Parseval | None = None):
        symbols = SymbolTable()
        trees = parse_brackets([gold.encode()], symbols), parse_brackets([c.encode() for c in candidates], symbols)
        return (metric or Parseval()).mismatch(*trees, symbols)

    def test_traces_and_tags_do_not_matter(self):
        assert self.mismatch("(S (-NONE- *) (NN a) (-NONE- *))", "(S (VB a))", "(S (X (. a)) (-NONE- 0))") == ""

    def test_where_they_part(self):
        for gold, tests, place in (
            ("(S (NN a) (NN b))", ("(S (NN a) (NN b))", "(S (NN a) (NN c))"), "found 'c', the reference has 'b'"),
            ("(S (NN a) (NN b))", ("(S (NN a))",), "found the end, the reference has 'b'"),
            ("(S (NN a))", ("(S (NN a) (NN b))",), "found 'b', the reference has the end"),
        ):
            assert self.mismatch(gold, *tests) == f"the trees have different words: at word 2 {place}"

    def test_equal_words(self):
        metric = Parseval(equal_words=(("Example", "example"),))
        assert self.mismatch("(S (NN Example))", "(S (NN example))", metric=metric) == ""
        assert "found 'example', the reference has 'Example'" in self.mismatch("(S (NN Example))", "(S (NN example))")
        c = counts(
            "(S (NN Example))", "(S (NN example))", Parseval(punctuation="evalb", equal_words=metric.equal_words)
        )
        assert (c["matched"], c["refused"]) == (1, 0)

    @pytest.mark.parametrize("mode", ["reference", "own", "evalb"])
    @pytest.mark.parametrize("test", ["", "(())", "(S1)", "(S1 (S ()))", "(S1 (-NONE- *))"])
    def test_a_failed_parse_is_skipped_with_its_reference(self, mode, test):
        metric = Parseval(punctuation=mode)
        c = counts("(S1 (S (NP (NN a)) (NN b)))", test, metric)
        assert (c["skipped"], c["refused"], c["test"], c["gold"], c["words"], c["exact"]) == (1, 0, 0, 0, 0, 0)
        assert counts(test, "(S1 (NN a))", metric)["refused"] == 1  # EVALB compares lengths: 0 and 1
        c = counts(test, test, metric)
        assert (c["skipped"], c["refused"]) == (1, 0)

    def test_nothing_is_gained_by_failing_where_there_are_no_brackets(self):
        metric, symbols = Parseval(), SymbolTable()
        gold = parse_brackets([b"(S1 (NN a))"], symbols)
        reference, rows = metric.stats(
            gold, parse_brackets([b"(())", b"(S1 (NN b))", b"(S1 (NN a))"], symbols), symbols
        )
        assert metric.gain(rows, np.broadcast_to(reference, (3, reference.size))).tolist() == [0, 0, 1]


class TestScores:
    GOLD = ("(S1 (S (NP (NN a)) (VP (VB b))))", "(S1 (. .))", "(S1 (NN a))")
    TEST = ("(S1 (S (NP (NN a)) (X (VB b))))", "(S1 (. .))", "(S1 (NP (NN a)))")

    def rows(self, metric):
        symbols = SymbolTable()
        golds, tests = (parse_brackets([t.encode() for t in side], symbols) for side in (self.GOLD, self.TEST))
        return metric.rows(golds, tests, np.arange(4), symbols)

    def test_report_is_micro_averaged_and_leaves_out_skipped_sentences(self):
        metric = Parseval()
        reference, rows = self.rows(metric)
        report = metric.report(rows.sum(axis=0), reference.sum(axis=0))
        assert report == pytest.approx(
            {
                "f1": 4 / 7,
                "precision": 2 / 4,
                "recall": 2 / 3,
                "exact_match": 0.0,
                "average_crossing": 0.0,
                "no_crossing": 1.0,
                "two_or_less_crossing": 1.0,
                "tagging_accuracy": 1.0,
                "sentences": 3.0,
                "refused": 0.0,
                "skipped": 1.0,
                "valid": 2.0,
            }
        )
        assert metric.scores(rows, reference).tolist() == pytest.approx([2 / 3, 0.0, 0.0])

    def test_gain(self):
        metric = Parseval()
        reference, rows = self.rows(metric)
        assert metric.gain(rows, reference).tolist() == pytest.approx([2 / 3, 1.0, 0.0])
        assert metric.perfect(rows, reference).tolist() == [False, False, False]

    def test_nothing_at_all_scores_zero(self):
        metric = Parseval()
        report = metric.report(np.zeros(len(metric.columns)), np.zeros(len(metric.reference_columns)))
        assert set(report.values()) == {0.0}

    def test_a_refused_candidate_gains_nothing_and_leaves_the_sums(self):
        metric, symbols = Parseval(punctuation="evalb"), SymbolTable()
        golds = parse_brackets([TestPunctuation.GOLD.encode(), IT_RAINS.encode()], symbols)
        tests = parse_brackets([TestPunctuation.TEST.encode(), IT_RAINS.encode()], symbols)
        reference, rows = metric.rows(golds, tests, np.arange(3), symbols)
        assert metric.gain(rows, reference).tolist() == [0.0, 1.0]
        assert metric.valid(rows).tolist() == [False, True]
        report = metric.report(rows.sum(axis=0), reference.sum(axis=0))
        assert (report["f1"], report["recall"], report["exact_match"], report["refused"]) == (1.0, 1.0, 1.0, 1.0)
        assert (report["no_crossing"], report["tagging_accuracy"]) == (1.0, 1.0)

    def test_a_list_without_candidates_is_a_failed_parse(self):
        metric, symbols = Parseval(), SymbolTable()
        golds = parse_brackets([IT_RAINS.encode()] * 2, symbols)
        reference, rows = metric.rows(golds, parse_brackets([IT_RAINS.encode()], symbols), np.array([0, 1, 1]), symbols)
        one = metric.rows(golds, parse_brackets([IT_RAINS.encode(), b"(())"], symbols), np.arange(3), symbols)
        found = metric.report(rows.sum(axis=0), reference.sum(axis=0))
        assert found == metric.report(*(part.sum(axis=0) for part in one[::-1]))
        assert (found["recall"], found["sentences"], found["skipped"], found["valid"]) == (1.0, 2.0, 1.0, 1.0)

    def test_signature_names_what_changes_the_number(self):
        signatures = {
            m.signature
            for m in (
                Parseval(), Parseval(punctuation="own"), Parseval(punctuation="evalb"), Parseval(labeled=False),
                Parseval(delete=("TOP",)), Parseval(equal_labels=()), Parseval(equal_words=(("a", "b"),)),
                Parseval(punctuation="evalb", quote_labels=("POS",)),
            )
        }  # fmt: skip
        assert len(signatures) == 8
        assert "punctuation:reference" in Parseval().signature
        assert Parseval(delete=DELETED, equal_labels=(("ADVP", "PRT"),)) == Parseval()
        assert Parseval(quote_labels=("POS",)).signature == Parseval().signature

    def test_parameters_are_checked(self):
        with pytest.raises(RecipeError, match="punctuation: found 'mine'; expected one of reference, own, evalb"):
            Parseval(punctuation="mine")
        with pytest.raises(RecipeError, match="equal_labels: expected pairs"):
            Parseval(equal_labels=(("A",),))
        with pytest.raises(RecipeError, match="cutoff"):
            Parseval(cutoff=-1)
        assert Parseval(equal_labels=[["ADVP", "PRT"]]) == Parseval()


TAGS = ["NN", "VB", ".", ",", "''", "POS", "RP"]
LABELS = ["S", "NP", "NP-SBJ", "VP=2", "ADVP", "PRT", "TOP", "NP"]


@st.composite
def tree_pairs(draw) -> tuple[nltk.Tree, nltk.Tree]:
    words = draw(st.lists(st.sampled_from(["a", "b", "'", "."]), min_size=1, max_size=7))
    others = draw(st.sampled_from([words, words, words, words[:-1], [*words, "a"], ["b", *words[1:]], []]))
    roots = st.sampled_from(["S1", "TOP", "ROOT", ""])
    gold, test = (tree_over(side, draw(roots), LABELS, TAGS, traces=True) for side in (words, others or ["a"]))
    return draw(gold), draw(test) if others else nltk.Tree("S1", [nltk.Tree("-NONE-", ["*"])])


DELETED = ("", "TOP", "S1", "ROOT", "-NONE-", ",", ":", "``", "''", ".")
METRICS = st.builds(
    Parseval,
    punctuation=st.sampled_from(["reference", "own", "evalb"]),
    labeled=st.booleans(),
    delete=st.sampled_from([DELETED, DELETED, ("", "S1", "TOP", "POS")]),
    quote_labels=st.sampled_from([(), ("''", "POS")]),
    equal_labels=st.sampled_from([(("ADVP", "PRT"),), (("NP", "VP"), ("S", "TOP"), ("NN", "VB"), (".", "POS"))]),
    equal_words=st.sampled_from([(), (("a", "b"),)]),
)


# A quote mark that the reference's tag deletes, and the candidate's does not: EVALB keeps it in both.
MARKS = ("(S1 (S (NP (NNS a)) ('' ') (VP (VB b))))", "(S1 (S (NP (NNS a) (POS ')) (VP (VB b))))")
QUOTED = nltk.Tree.fromstring(MARKS[0]), nltk.Tree.fromstring(MARKS[1])
QUOTING = Parseval(punctuation="evalb", quote_labels=("''", "POS"))


class TestAgainstTheDefinition:
    @settings(max_examples=400, deadline=None)
    @given(tree_pairs(), METRICS)
    @example(QUOTED, QUOTING)
    def test_all_counts(self, pair, metric):
        expected = parseval(*pair, metric)
        c = counts(*(tree.pformat(margin=10**6) for tree in pair), metric)
        names = ("matched", "gold", "test", "crossing", "words", "refused", "skipped", "exact")
        assert [c[name] for name in names] == [getattr(expected, name) for name in names]
        assert c["correct_tags"] == expected.tags
        counted = not (expected.refused or expected.skipped)
        assert c["no_crossing"] == (counted and expected.crossing == 0)
        assert c["two_or_less_crossing"] == (counted and expected.crossing <= 2)

    @settings(max_examples=50, deadline=None)
    @given(st.lists(tree_pairs(), min_size=1, max_size=4), METRICS)
    @example([QUOTED], QUOTING)
    def test_many_lists_at_once_are_candidates_alone(self, pairs, metric):
        """Of other words than the reference's, and of some that change what is counted there, among others."""
        symbols = SymbolTable()
        lists = [[tree.pformat(margin=10**6).encode() for tree in (gold, test, gold, test)] for gold, test in pairs]
        golds = parse_brackets([texts[0] for texts in lists], symbols)
        candidates = parse_brackets([text for texts in lists for text in texts], symbols)
        reference, rows = metric.rows(golds, candidates, 4 * np.arange(len(pairs) + 1), symbols)
        for i, texts in enumerate(lists):
            for k, text in enumerate(texts):
                alone = parse_brackets([texts[0]], symbols), parse_brackets([text], symbols)
                one_reference, (one,) = metric.stats(*alone, symbols)
                assert (reference[i] == one_reference).all()
                assert (rows[4 * i + k] == one).all()


GUM = small.SHARED / "parse" / "gum"
# split: base precision, recall, F, exact match, oracle F, F of a random choice (per cent)
FIGURES = {
    "dev": (82.62, 82.64, 82.63, 38.4, 91.25, 77.28),
    "test": (82.39, 82.25, 82.32, 34.6, 91.35, 77.60),
    "train": (83.40, 83.31, 83.36, 39.9, 92.78, 77.16),
}


def read_lists(split: str):
    """(list offsets, base scores, trees of candidates, reference trees) of a split, with a plain loop."""
    lists = [text.split("\n") for text in small.lists_of(GUM / f"{split}.nbest.gz")]
    base = np.array([float(line) for lines in lists for line in lines[1::2]])
    trees = [line.encode() for lines in lists for line in lines[2::2]]
    gold = [line.encode() for line in small.lines_of(GUM / f"{split}.gold.gz")]
    return np.cumsum([0, *(len(lines) // 2 for lines in lists)]), base, trees, gold


@small.needs("parse/gum")
class TestRealLists:
    @pytest.mark.parametrize("split", FIGURES)
    def test_published_figures(self, split):
        lists, base, texts, golds = read_lists(split)
        metric, symbols = Parseval(), SymbolTable()
        gold, trees = parse_brackets(golds, symbols), parse_brackets(texts, symbols)
        reference, rows = metric.rows(gold, trees, lists, symbols)
        gain = metric.gain(rows, np.repeat(reference, np.diff(lists), axis=0))
        total = reference.sum(axis=0)

        def report(chosen):
            return metric.report(chosen_rows(rows, chosen).sum(axis=0), total)

        plain = report(best_of_lists(lists, base, base))
        found = [100 * plain[key] for key in ("precision", "recall", "f1", "exact_match")]
        best = 100 * report(best_of_lists(lists, gain, -np.arange(base.size)))["f1"]  # the first of the best
        blind = 100 * metric.report(mean_rows(lists, rows).sum(axis=0), total)["f1"]
        expected = FIGURES[split]
        assert found[:3] == pytest.approx(expected[:3], abs=0.005)
        assert found[3] == pytest.approx(expected[3], abs=0.05)
        assert [best, blind] == pytest.approx(expected[4:], abs=0.005)
        if split == "test":
            own = Parseval(punctuation="own")
            reference, rows = own.rows(gold, trees, lists, symbols)
            chosen = chosen_rows(rows, best_of_lists(lists, base, base))
            assert 100 * own.report(chosen.sum(axis=0), reference.sum(axis=0))["f1"] == pytest.approx(81.87, abs=0.005)
