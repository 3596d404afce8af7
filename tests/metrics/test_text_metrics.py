"""Metrics of texts: those of the definition, of sacrebleu, rapidfuzz and jiwer; rows add up to figures of corpora."""

import logging
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jiwer
import numpy as np
import pytest
import sacrebleu
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from sacrebleu.metrics import BLEU, CHRF, TER
from strategies_text import encode, plain, spaced, texts_with_references

import rerank
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.extraction.texts import make_text_metric
from rerank.metrics.chrf import Chrf
from rerank.metrics.metric import chosen_rows, metrics
from rerank.metrics.ngrams import Bleu
from rerank.metrics.text import NormalizingMetric, Ter, TextMetric, words, words_and_marks
from rerank.metrics.wer import Cer, Match, Wer
from rerank.readers.lists import Lists

logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it advises on every sentence
METRICS = [
    Bleu(), Bleu(tokenize="13a", lowercase=True), Chrf(), Chrf(word_order=2, beta=3, whitespace=True, lowercase=True),
    Chrf(char_order=2), Ter(), Ter(normalized=True, case_sensitive=True), Wer(), Cer(),
    Wer(normalize={"marks": True}), Cer(normalize={"blanks": True}), Match(), Match(normalize={"marks": True}),
]  # fmt: skip
every = pytest.mark.parametrize("metric", METRICS, ids=str)


@every
@given(lists=st.lists(texts_with_references(), min_size=1, max_size=5), data=st.data())
def test_a_choices_rows_add_up_to_the_score_of_its_texts_an_empty_list_is_an_empty_text(
    metric: TextMetric, lists: list[tuple[list[str], list[str]]], data: st.DataObject
) -> None:
    """For BLEU, chrF and TER, sacrebleu computes the latter."""
    parts = [metric.stats(encode(texts), encode(references)) for texts, references in lists]
    begins = np.cumsum([0, *(len(texts) for texts, _ in lists)])
    picks = [data.draw(st.integers(-1, len(texts) - 1)) for texts, _ in lists]
    chosen = np.array([-1 if y < 0 else begins[i] + y for i, y in enumerate(picks)])
    stats = chosen_rows(np.concatenate([rows for _, rows in parts]), chosen).sum(axis=0)
    reference = np.sum([row for row, _ in parts], axis=0)
    texts = ["" if y < 0 else texts[y] for y, (texts, _) in zip(picks, lists, strict=True)]
    found = metric.corpus(texts, [r for _, r in lists])
    assert metric.report(stats, reference) == pytest.approx(found, abs=1e-9)
    assert metric.of_sums(stats, reference) == found


@every
@given(lists=st.lists(texts_with_references(), max_size=2))
def test_texts_against_each_other_are_as_one_by_one(
    metric: TextMetric, lists: list[tuple[list[str], list[str]]]
) -> None:
    texts = encode([text for both in lists for of_side in both for text in of_side])
    assert np.array_equal(metric.pairwise(texts), TextMetric.pairwise(metric, texts))


@every
def test_a_list_without_a_reference_is_an_error_with_its_place(metric: TextMetric) -> None:
    nbest = Lists.one("17", "x.nbest", 3, [b"a"], [3], np.zeros((1, 1)))
    with pytest.raises(DataError, match=r"x\.nbest:3: list 17: found no reference"):
        metric.list_stats(nbest, [])
    assert metric.list_stats(nbest, [b"a"])[1].shape == (1, len(metric.columns))


@every
@pytest.mark.parametrize(
    ("references", "message"), [([["a"]], "found 2 texts and references for 1"), ([["a"], []], "text 2 has no ref")]
)
def test_texts_without_references_are_errors(metric: TextMetric, references: list[list[str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        metric.corpus(["a", "b"], references)
    assert metric.corpus([], [])[metric.primary] == pytest.approx(0.0, abs=1e-9)


TEXTS = st.text("aab(B .,é\u3000ßΣ", max_size=30)
CHRF_OPTIONS = st.fixed_dictionaries(
    {
        "char_order": st.integers(0, 6),
        "word_order": st.integers(0, 2),
        "beta": st.integers(1, 3),
        "whitespace": st.booleans(),
        "lowercase": st.booleans(),
    }
).filter(lambda options: options["char_order"] + options["word_order"] > 0)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4), st.lists(TEXTS, min_size=1, max_size=3), CHRF_OPTIONS)
def test_sentences_are_sacrebleus(texts, references, options):
    metric, peer = Chrf(**options), CHRF(**options)
    reference, stats = metric.stats(encode(texts), encode(references))
    assert stats.shape == (len(texts), len(metric.columns))
    assert reference.shape == (len(metric.reference_columns),)
    whole = stats.copy()
    whole[:, 1::3] += reference
    scores = metric.scores(stats, reference)
    for text, counts, score, gain in zip(texts, whole, scores, metric.gain(stats, reference), strict=True):
        assert counts.tolist() == peer._extract_corpus_statistics([text], [[r] for r in references])[0]
        assert score == peer.sentence_score(text, references).score
        assert gain == score / 100


def test_all_white_space_and_marks_of_unicode():
    points = [chr(p) for p in range(1, 0x3100)]
    texts = [f"{p}ab{p}c,{p}d" for p in points] + ["(a", "(a)", "a\nb."]
    counts = words_and_marks([text.encode() for text in texts]).first
    for text, count in zip(texts, np.diff(counts).tolist(), strict=True):
        assert count == sum(1 + (len(w) > 1 and bool({w[0], w[-1]} & set(string.punctuation))) for w in text.split())


SENTENCES = st.lists(st.sampled_from("abcde"), max_size=12).map(" ".join)
MARKED = st.text("aB1 .,&-'\u3000\u4e00()", max_size=20)
TER_OPTIONS = st.fixed_dictionaries({"normalized": st.booleans(), "case_sensitive": st.booleans()})


@settings(max_examples=200, deadline=None)
@given(st.lists(SENTENCES, min_size=1, max_size=4), st.lists(SENTENCES, min_size=1, max_size=3))
def test_sentences_with_several_references(texts, references):
    metric, peer = Ter(), TER()
    reference, stats = metric.stats(encode(texts), encode(references))
    assert stats.shape == (len(texts), 1)
    scores, gains = metric.scores(stats, reference), metric.gain(stats, reference)
    for text, row, score, gain in zip(texts, stats, scores, gains, strict=True):
        expected = peer.sentence_score(text, references)
        assert row[0] + reference[0] == expected.num_edits
        assert reference[1] == expected.ref_length
        assert score == pytest.approx(expected.score, abs=1e-9)
        assert gain == pytest.approx(1 - expected.score / 100)


@settings(max_examples=200, deadline=None)
@given(MARKED, MARKED, TER_OPTIONS)
@example("1", "..1", {"normalized": True})
def test_settings_are_sacrebleus(text, reference, options):
    metric = Ter(**options)
    row, stats = metric.stats(encode([text]), encode([reference]))
    expected = TER(**options).sentence_score(text, [reference])
    assert metric.scores(stats, row).tolist() == [pytest.approx(expected.score, abs=1e-9)]


SETTINGS: dict[type[TextMetric], list[dict[str, Any]]] = {
    Bleu: [{}, {"tokenize": "13a"}, {"lowercase": True}, {"smoothing": "exp"}, {"smoothing": "floor"}],
    Chrf: [{}, {"char_order": 5}, {"word_order": 2}, {"beta": 1}, {"lowercase": True}, {"whitespace": True}],
    Ter: [{}, {"normalized": True}, {"case_sensitive": True}],
}
PEERS = {
    Bleu(tokenize="intl", lowercase=True): BLEU(tokenize="intl", lowercase=True),
    Chrf(word_order=2): CHRF(word_order=2),
    Ter(): TER(),
}


def test_every_setting_that_changes_a_number_is_in_the_signature_which_in_reports_is_sacrebleus() -> None:
    for cls, every in SETTINGS.items():
        assert len({cls(**settings).signature for settings in every}) == len(every)
    for metric, peer in PEERS.items():
        for references in ([["a", "b"], ["c", "d"]], [["a"], ["b", "c"]]):
            width = max(map(len, references))
            peer.corpus_score(["a", "b"], [[r[i] if i < len(r) else None for r in references] for i in range(width)])
            assert metric.corpus_signature(references) == str(peer.get_signature())
    assert Bleu().signature.startswith("bleu|case:mixed|eff:no|tok:none|smooth:exp|version:")
    assert Chrf().signature.startswith("chrf|case:mixed|")


@pytest.mark.parametrize(
    ("metric", "text", "reference", "gain"),
    [
        (Chrf(char_order=1), b"\xff\xfe", b"\xfe\xff", 1.0),
        (Chrf(char_order=1), b"\xc3\xa9", b"\xfe\xff", 0.0),
        (Ter(), b"\xff \xc3\x89", b"\xff \xc3\xa9", 1.0),
        (Ter(), b"\xfe", b"\xff \xc3\xa9", 0.0),
        (Cer(), b"a\xff\xfeb", b"a\xff\xc2b", 0.75),
    ],
)
def test_bytes_that_are_not_utf8_are_characters(metric: Any, text: bytes, reference: bytes, gain: float) -> None:
    row, rows = metric.stats([text], [reference])
    assert metric.gain(rows, row).tolist() == [gain]


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: Chrf().stats([b"a"], [b"b", b"a" * ((1 << 20) + 1)]), DataError, "a reference of 1,048,577 bytes"),
        (lambda: build(metrics, {"name": "chrf", "char_order": -1}, "metric"), RecipeError, r"metric\.char_order: fo"),
        (lambda: Chrf(char_order=0), RecipeError, "at least one n-gram"),
        (lambda: Chrf(beta=0), RecipeError, "beta: found 0"),
        (lambda: Ter().stats([b"a " * 1025], [b"a " * 1030]), DataError, "1,025 words for a reference of 1,030; TER"),
        (lambda: make_text_metric({"name": "ter"}), RecipeError, r"\[ter\] reports it; training .* take bleu or chrf"),
        (lambda: build(metrics, {"name": "ter", "normalised": True}, "metric"), RecipeError, "did you mean normalized"),
        (lambda: Bleu(tokenize="moses"), RecipeError, "tokenize: found"),
        (lambda: Bleu(smoothing="lin"), RecipeError, "smoothing: found"),
    ],
)
def test_what_metrics_refuse(made: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        made()


METRIC = Bleu()


@st.composite
def long_texts(draw: st.DrawFn) -> list[str]:
    """Two to four texts of up to 400 words, of which some are frequent."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = rng.integers(0, 400, draw(st.integers(2, 4)))
    return [" ".join(f"w{word}" for word in rng.zipf(1.3, size) % 997) for size in sizes]


class TestWords:
    @given(st.lists(st.text(max_size=12) | spaced(), max_size=4))
    def test_texts_are_cut_where_python_cuts_them(self, texts):
        tokens = words(encode(texts))
        expected = [text.split() for text in texts]
        assert np.diff(tokens.first).tolist() == [len(parts) for parts in expected]
        hashes = {}
        for word, h in zip([word for parts in expected for word in parts], tokens.hashes.tolist(), strict=True):
            assert hashes.setdefault(word, h) == h
        assert len(set(hashes.values())) == len(hashes)

    def test_every_white_space_of_unicode_and_no_other_character_cuts(self):
        characters = [chr(c) for c in range(0x11000) if not 0xD800 <= c < 0xE000]  # behind them there is none
        counts = np.diff(words(encode([f"a{c}b" for c in characters])).first)
        assert [c for c, count in zip(characters, counts, strict=True) if count == 2] == [
            c for c in characters if len(f"a{c}b".split()) == 2
        ]

    @given(st.lists(st.lists(st.sampled_from(b"a \x1c\xc2\x85\xa0\xe1\x9a\x80\xe2\x81\x9f\xe3\x8a"), max_size=8)))
    def test_bytes_that_are_no_utf8_are_cut_like_their_surrogate_escapes(self, texts):
        raw = [bytes(text) for text in texts]
        expected = [len(text.decode("utf-8", "surrogateescape").split()) for text in raw]
        assert np.diff(words(raw).first).tolist() == expected


class TestGain:
    @pytest.mark.parametrize("smoothing", ["add-1", "exp", "floor", "none"])
    @given(drawn=texts_with_references() | long_texts().map(lambda texts: (texts[:1], texts[1:])))
    @example(drawn=(["a a a a a a a"], ["a a b", "a b"]))  # clipping by the largest count of one reference
    @example(drawn=(["a b c"], ["a", "a b c d e"]))  # of equally near lengths the shorter
    @example(drawn=(["a\0 b", "a", "\0"], ["a\0"]))  # a NUL is part of a word
    def test_it_is_sacrebleus_sentence_bleu(self, smoothing, drawn):
        texts, references = drawn
        metric = Bleu(smoothing=smoothing)
        reference, rows = metric.stats(encode(texts), encode(references))
        gains = metric.gain(rows, reference)
        options = {"smooth_method": smoothing.replace("add-1", "add-k"), "use_effective_order": True}
        for text, gain in zip(texts, gains, strict=True):
            score = sacrebleu.sentence_bleu(text, references, tokenize="none", **options).score
            assert gain == pytest.approx(score / 100, abs=1e-9)


class TestCorpus:
    def test_sums_of_any_shape_at_once(self):
        row, rows = METRIC.stats(encode(["a b", "a c b", ""]), encode(["a b c"]))
        alone = [float(METRIC.scores(r, row)) for r in rows]
        assert METRIC.scores(rows, row).tolist() == alone
        assert METRIC.scores(rows.reshape(3, 1, 10) + np.zeros((3, 2, 1)), row).tolist() == [[x, x] for x in alone]
        frozen = rows.copy()
        frozen.flags.writeable = False
        assert METRIC.scores(frozen, np.tile(row, (3, 1))).tolist() == alone


class TestBleuSettings:
    REAL = ("Ein „Test“, it's 3.5% — über-NEU!", "it's 3.5 % test-new; “quoted” U.S. 我爱 texts.")

    @pytest.mark.parametrize("lowercase", [False, True])
    @pytest.mark.parametrize("tokenize", ["none", "13a", "intl", "char", "zh"])
    def test_tokenisers_and_lower_case_are_sacrebleus(self, tokenize, lowercase):
        metric, (reference, text) = Bleu(tokenize=tokenize, lowercase=lowercase, smoothing="exp"), self.REAL
        texts = [text, reference.upper(), "", reference]
        row, rows = metric.stats(encode(texts), encode([reference]))
        for t, r in zip(texts, rows, strict=True):
            options = {"tokenize": tokenize, "lowercase": lowercase}
            expected = sacrebleu.sentence_bleu(t, [reference], **options).score
            assert 100 * metric.gain(r, row) == pytest.approx(expected, abs=1e-9)
            assert metric.scores(r, row) == pytest.approx(metric.corpus([t], [[reference]])["bleu"], abs=1e-9)


def parts(row: np.ndarray, reference: np.ndarray) -> tuple[float, float, float, float]:
    """Substitutions, insertions, deletions and reference units."""
    return row[0], row[1], row[2] + reference[0], row[3] + reference[0]


def words_of(text: str) -> list[str]:
    return text.split()


def characters_of(text: str) -> list[str]:
    return list(text.strip())


@pytest.mark.parametrize(("metric", "units"), [(Wer(), words_of), (Cer(), characters_of)], ids=["wer", "cer"])
class TestEdits:
    @given(drawn=texts_with_references() | long_texts().map(lambda texts: (texts[:1], texts[1:])))
    @example(drawn=(["a b"], ["a c", "b b b"]))  # one edit; two
    @example(drawn=(["a b"], ["a", "a b c"]))  # one edit each: the longer reference
    def test_the_reference_with_the_fewest_edits_counts_the_longest_of_equals(self, metric, units, drawn):
        texts, references = drawn
        row, rows = metric.stats(encode(texts), encode(references))
        assert row.tolist() == [min(len(units(r)) for r in references)]
        for text, found in zip(texts, rows, strict=True):
            ops = [Levenshtein.editops(units(reference), units(text)) for reference in references]
            fewest = min(map(len, ops))
            best = [r for r in range(len(references)) if len(ops[r]) == fewest]
            r = max(best, key=lambda r: len(units(references[r])))
            counts = [sum(o.tag == kind for o in ops[r]) for kind in ("replace", "insert", "delete")]
            assert parts(found, row) == (*counts, length := len(units(references[r])))
            assert metric.scores(found, row) == fewest / max(length, 1)
            assert metric.gain(found[None], row)[0] == 1 - fewest / max(length, 1)


@given(st.lists(st.tuples(plain(), plain()), min_size=1, max_size=5))
def test_reports_are_jiwers(pairs):
    texts, references = map(list, zip(*pairs, strict=True))
    single = [[reference] for reference in references]
    for metric, process in ((Wer(), jiwer.process_words), (Cer(), jiwer.process_characters)):
        expected = process(references, texts)
        report = metric.corpus(texts, single)
        length = max(expected.hits + expected.substitutions + expected.deletions, 1)
        assert report[metric.name] == pytest.approx(getattr(expected, metric.name))
        for kind in ("substitutions", "insertions", "deletions"):
            assert report[kind] == pytest.approx(getattr(expected, kind) / length)


class TestNormalizing:
    @pytest.mark.parametrize("cls", [Wer, Cer, Match])
    @pytest.mark.parametrize(
        ("form", "text", "right"),
        [
            ("case", "Ein ÜBER Test", "ein über test"),
            ("marks", "« Well , yes! »", "Well yes"),
            ("nfkc", "é ｅ ﬁ", "e\u0301 e fi"),
            ("blanks", "今日 は　雨", "今日は雨"),
        ],
    )
    def test_what_does_not_count(self, cls: type[NormalizingMetric], form: str, text: str, right: str) -> None:
        if form == "blanks" and cls is Wer:  # which tell words apart
            with pytest.raises(RecipeError, match="expected a mapping of nfkc, case, marks to true or false"):
                cls(normalize={"blanks": True})
            return
        for switches, wanted in ({}, False), ({form: False}, False), ({form: True}, True):
            metric = cls(normalize=switches)  # type: ignore[arg-type]
            row, rows = metric.stats(encode([text]), encode([right]))
            assert metric.perfect(rows, row).tolist() == [wanted]
            assert metric.pairwise(encode([text, right]))[0, 1] == metric.gain(rows, row)[0]

    @pytest.mark.parametrize("given_", [{"cases": True}, {"case": None}, {"case": 1}, ["case"], "case"])
    def test_forms_that_there_are_not_are_refused(self, given_: Any) -> None:
        with pytest.raises(RecipeError, match="expected a mapping of nfkc, case, marks, blanks to true or false"):
            Match(normalize=given_)

    def test_marks_leave_no_blanks_behind_and_wide_ones_are_marks(self) -> None:
        metric = Cer(normalize={"marks": True, "nfkc": True})
        assert metric.corpus(["a （ b ） c"], [["a b c"]])["cer"] == 0

    def test_signatures(self):
        assert Wer().signature == "wer|case:mixed|references:fewest edits|version:1"
        assert (
            Cer(normalize={"nfkc": True, "case": True, "marks": False}).signature
            == "cer|normalize:nfkc+case|references:fewest edits|version:1"
        )


def test_a_list_with_answers_is_right_by_these() -> None:
    texts, answers = [b"So 1,000", b"it is 8", b"1000", b"So"], [b"1,000", b"8", None, b""]
    nbest = Lists.one("0", "", 0, texts, [0] * 4, np.zeros((4, 1)), answers=answers)
    row, rows = Match().list_stats(nbest, [b"1000.0", b"7"])
    assert Match().gain(rows, row).tolist() == [1, 0, 0, 0]
    row, rows = Match().list_stats(nbest.replace(answers=None), [b"1000", b"So"])
    assert Match().gain(rows, row).tolist() == [0, 0, 1, 1]


@dataclass(frozen=True)
class Odd(TextMetric):
    """A metric of a user's that gives other numbers than it says."""

    name = primary = "odd"
    columns = reference_columns = ("x",)
    rows: tuple[float, ...] = ()

    def stats(self, texts: Any, _: Any) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(1), np.tile(self.rows, (len(texts), 1))

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return np.log(stats[..., 0])


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("rows", [(0.0,), (1.0, 2.0)])
def test_rows_and_scores_that_nothing_can_be_measured_by_are_refused(rows: Any) -> None:
    lists = [rerank.NBest("seven", ["a", "b"], references=["a"])]
    metric = {"name": f"{__name__}:Odd", "rows": rows}
    with pytest.raises(RecipeError, match=r"metric: odd has statistics of the shape .* finite numbers"):
        rerank.evaluate([0], lists, metric)
