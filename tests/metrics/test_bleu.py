"""BLEU: counts and scores are those of the definition and of sacrebleu, on random and on real texts."""

import logging
import math
from collections import Counter

import numpy as np
import pytest
import sacrebleu
from hypothesis import example, given
from hypothesis import strategies as st
from strategies_text import encode, spaced, texts_with_references

from rerank.base.errors import RecipeError
from rerank.metrics.ngrams import Bleu
from rerank.metrics.text import words

METRIC = Bleu()
logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it advises on every sentence


def ngrams(text: str, n: int) -> Counter[tuple[str, ...]]:
    tokens = text.split()
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def counts_by_definition(text: str, references: list[str]) -> tuple[list[float], int, int]:
    """Matched and all n-grams, the text's and the closest reference's length."""
    correct, total = [], []
    for n in range(1, 5):
        most: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            most |= ngrams(reference, n)
        correct.append(float((ngrams(text, n) & most).total()))
        total.append(float(ngrams(text, n).total()))
    length = len(text.split())
    return correct + total, length, min((abs(len(r.split()) - length), len(r.split())) for r in references)[1]


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


class TestCounts:
    @given(texts_with_references())
    @example((["a a a a a a a"], ["a a b", "a b"]))  # clipping by the largest count of one reference
    @example((["a b c"], ["a", "a b c d e"]))  # of equally near lengths the shorter
    @example((["a\0 b", "a", "\0"], ["a\0"]))  # a NUL is part of a word
    def test_they_are_those_of_the_definition(self, drawn):
        texts, references = drawn
        reference, rows = METRIC.stats(encode(texts), encode(references))
        assert rows.shape == (len(texts), len(METRIC.columns))
        assert reference.tolist() == [min(len(r.split()) for r in references)]
        for row, text in zip(rows, texts, strict=True):
            ngram_counts, length, closest = counts_by_definition(text, references)
            assert row[:8].tolist() == ngram_counts
            assert (row[8], row[9] + reference[0]) == (length, closest)

    @given(st.integers(1, 3), st.integers(0, 2**32 - 1))
    def test_long_texts_with_many_words(self, reference_count, seed):
        rng = np.random.default_rng(seed)
        *references, text = (
            " ".join(f"w{i}" for i in rng.zipf(1.3, size=rng.integers(0, 400)) % 997)
            for _ in range(reference_count + 1)
        )
        reference, rows = METRIC.stats(encode([text]), encode(references))
        ngram_counts, length, closest = counts_by_definition(text, references)
        assert rows[0].tolist() == [*ngram_counts, length, closest - reference[0]]


class TestGain:
    @pytest.mark.parametrize("smoothing", ["add-1", "exp", "floor", "none"])
    @given(drawn=texts_with_references())
    def test_it_is_sacrebleus_sentence_bleu(self, smoothing, drawn):
        texts, references = drawn
        metric = Bleu(smoothing=smoothing)
        reference, rows = metric.stats(encode(texts), encode(references))
        gains = metric.gain(rows, reference)
        options = {"smooth_method": smoothing.replace("add-1", "add-k"), "use_effective_order": True}
        for text, gain in zip(texts, gains, strict=True):
            score = sacrebleu.sentence_bleu(text, references, tokenize="none", **options).score
            assert gain == pytest.approx(score / 100, abs=1e-9)

    @given(spaced(), spaced())
    def test_add_1_is_lin_and_ochs(self, text, reference):
        row, rows = METRIC.stats(encode([text]), encode([reference]))
        counts, length, closest = counts_by_definition(text, [reference])
        precisions = [counts[0] / max(length, 1)] + [(counts[n] + 1) / (counts[n + 4] + 1) for n in (1, 2, 3)]
        expected = math.prod(precisions) ** 0.25 * (min(1.0, math.exp(1 - closest / length)) if length else 0.0)
        assert METRIC.gain(rows, row)[0] == pytest.approx(expected, abs=1e-12)


class TestCorpus:
    def test_sums_of_any_shape_at_once(self):
        row, rows = METRIC.stats(encode(["a b", "a c b", ""]), encode(["a b c"]))
        alone = [float(METRIC.scores(r, row)) for r in rows]
        assert METRIC.scores(rows, row).tolist() == alone
        assert METRIC.scores(rows.reshape(3, 1, 10) + np.zeros((3, 2, 1)), row).tolist() == [[x, x] for x in alone]
        frozen = rows.copy()
        frozen.flags.writeable = False
        assert METRIC.scores(frozen, np.tile(row, (3, 1))).tolist() == alone


class TestSettings:
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

    def test_the_final_figures_signature_is_sacrebleus(self):
        scorer = sacrebleu.BLEU(tokenize="intl", lowercase=True)
        metric = Bleu(tokenize="intl", lowercase=True)
        for references in ([["a", "b"], ["c", "d"]], [["a"], ["b", "c"]]):
            width = max(map(len, references))
            scorer.corpus_score(["a", "b"], [[r[i] if i < len(r) else None for r in references] for i in range(width)])
            assert metric.corpus_signature(references) == str(scorer.get_signature())

    def test_every_setting_that_changes_a_number_is_in_the_signature(self):
        others = [Bleu(tokenize="13a"), Bleu(lowercase=True), Bleu(smoothing="exp"), Bleu(smoothing="floor")]
        assert len({metric.signature for metric in [METRIC, *others]}) == 5
        assert METRIC.signature.startswith("bleu|case:mixed|eff:no|tok:none|smooth:exp|version:")

    @pytest.mark.parametrize("settings", [{"tokenize": "moses"}, {"smoothing": "lin"}])
    def test_settings_that_mean_nothing_are_refused(self, settings):
        with pytest.raises(RecipeError) as caught:
            Bleu(**settings)
        assert caught.value.key in settings
