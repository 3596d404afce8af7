"""WER and CER: edits are those of rapidfuzz and jiwer, on random and on real texts."""

import jiwer
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from strategies_text import encode, plain, spaced, texts_with_references

from rerank.metrics.wer import Cer, EditRate, Wer, align

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
        assert metric.correct(rows, row)[0] == (text == reference)


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
    @pytest.mark.parametrize("cls", [Wer, Cer])
    def test_lower_case(self, cls: type[EditRate]):
        text, reference = encode(["Ein ÜBER Test"]), encode(["ein über test"])
        row, rows = cls().stats(text, reference)
        assert cls().gain(rows, row)[0] < 1
        row, rows = cls(lowercase=True).stats(text, reference)
        assert cls(lowercase=True).gain(rows, row)[0] == 1

    @given(spaced())
    def test_white_space_between_words_is_no_word_and_at_the_ends_no_character(self, text):
        for metric, same in ((Wer(), " ".join(text.split())), (Cer(), text.strip())):
            row, rows = metric.stats(encode([text]), encode([same]))
            assert metric.correct(rows, row).tolist() == [True]

    def test_bytes_that_are_no_utf8_are_characters(self):
        row, rows = Cer().stats([b"a\xff\xfeb"], [b"a\xff\xc2b"])
        assert parts(rows[0], row) == (1, 0, 0, 4)

    def test_signatures(self):
        assert Wer().signature == "wer|case:mixed|references:fewest edits|version:1"
        assert Cer(lowercase=True).signature == "cer|case:lc|references:fewest edits|version:1"
