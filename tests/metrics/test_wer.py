"""WER and CER: edits are those of rapidfuzz and jiwer, on random and on real texts."""

from typing import Any

import jiwer
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from strategies_text import encode, plain, spaced, texts_with_references

from rerank.base.errors import RecipeError
from rerank.metrics.text import NormalizingMetric
from rerank.metrics.wer import Cer, Match, Wer, align
from rerank.readers.lists import Lists

sequences = st.lists(st.integers(0, 3), max_size=14)


def parts(row: np.ndarray, reference: np.ndarray) -> tuple[float, float, float, float]:
    """Substitutions, insertions, deletions and reference units."""
    return row[0], row[1], row[2] + reference[0], row[3] + reference[0]


def aligned(text: list[int], reference: list[int]) -> tuple[int, int]:
    """Edits and substitutions, in scratch that is no larger than it must be and full of rubbish."""
    edits, substitutions = np.full((2, len(text) + 1), 77, np.int32)
    found = align(np.array(text, np.uint64), np.array(reference, np.uint64), edits, substitutions)
    return found >> 32, found & 0xFFFFFFFF


class TestAlign:
    @given(sequences, sequences)
    def test_edits_and_substitutions_are_rapidfuzzs(self, text, reference):
        operations = Levenshtein.editops(reference, text)
        assert aligned(text, reference) == (len(operations), sum(o.tag == "replace" for o in operations))

    @given(st.integers(0, 2**32 - 1))
    def test_long_sequences(self, seed):
        rng = np.random.default_rng(seed)
        text, reference = (rng.integers(0, 20, size=rng.integers(0, 300)).tolist() for _ in range(2))
        assert aligned(text, reference)[0] == Levenshtein.distance(text, reference)


def words_of(text: str) -> list[str]:
    return text.split()


def characters_of(text: str) -> list[str]:
    return list(text.strip())


@pytest.mark.parametrize(("metric", "units"), [(Wer(), words_of), (Cer(), characters_of)], ids=["wer", "cer"])
class TestCounts:
    @given(drawn=texts_with_references())
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
            assert parts(found, row) == (*counts, len(units(references[r])))

    @given(text=plain(), reference=plain())
    def test_gain_is_one_minus_the_rate(self, metric, units, text, reference):
        row, rows = metric.stats(encode([text]), encode([reference]))
        edits, length = Levenshtein.distance(units(reference), units(text)), len(units(reference))
        assert metric.scores(rows, row)[0] == edits / max(length, 1)
        assert metric.gain(rows, row)[0] == 1 - edits / max(length, 1)
        assert metric.perfect(rows, row)[0] == (text == reference)


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


class TestSettings:
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
        for settings, wanted in ({}, False), ({form: False}, False), ({form: True}, True):
            metric = cls(normalize=settings)  # type: ignore[arg-type]
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

    @given(spaced())
    def test_white_space_between_words_is_no_word_and_at_the_ends_no_character(self, text):
        for metric, same in ((Wer(), " ".join(text.split())), (Cer(), text.strip())):
            row, rows = metric.stats(encode([text]), encode([same]))
            assert metric.perfect(rows, row).tolist() == [True]

    def test_bytes_that_are_no_utf8_are_characters(self):
        row, rows = Cer().stats([b"a\xff\xfeb"], [b"a\xff\xc2b"])
        assert parts(rows[0], row) == (1, 0, 0, 4)

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
    row, rows = Match().list_stats(nbest.changed(answers=None), [b"1000", b"So"])
    assert Match().gain(rows, row).tolist() == [0, 0, 1, 1]
