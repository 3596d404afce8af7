"""What must be the same, bit by bit, in two corpora, tables or extractions."""

from rerank.data.corpus import Corpus, concatenate
from rerank.extraction.extraction import ExtractedSplit
from rerank.features.table import FeatureTable

ARRAYS = ("lists", "rows", "columns", "values", "base", "gain", "stats", "reference", "weight")


def bytes_of(corpus: Corpus) -> dict[str, bytes]:
    """The arrays of a corpus, in whatever parts it is."""
    whole = concatenate([corpus])
    return {name: getattr(whole, name).tobytes() for name in ARRAYS}


def assert_same(found: Corpus, expected: Corpus) -> None:
    """Corpora with what is said about them."""
    assert (found.width, found.free, found.about) == (expected.width, expected.free, expected.about)
    assert bytes_of(found) == bytes_of(expected)


def assert_same_tables(found: FeatureTable, expected: FeatureTable) -> None:
    """Tables of features."""
    for name in ("hashes", "template", "first", "symbols", "scale"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name
    assert (found.texts, found.templates, found.about) == (expected.texts, expected.templates, expected.about)


def assert_same_extracted(found: ExtractedSplit, expected: ExtractedSplit) -> None:
    """All that is extracted of a split but how long it took."""
    assert_same(found.corpus, expected.corpus)
    assert (found.origins is None) == (expected.origins is None)
    if found.origins is not None and expected.origins is not None:
        assert_same(found.origins, expected.origins)
    assert found.ids == expected.ids
    assert found.indices.tolist() == expected.indices.tolist()
    assert [array.tobytes() for array in found.sample] == [array.tobytes() for array in expected.sample]
    assert {**found.about, "seconds": 0} == {**expected.about, "seconds": 0}
