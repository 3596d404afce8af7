"""Metrics for texts: a list's candidates against its references, as rows of statistics that add up.

Texts are compared as code points and words.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import accumulate
from typing import Any, ClassVar, Literal
from unicodedata import normalize

import numpy as np
import regex  # type: ignore[import-untyped] # unlike re, it knows punctuation

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError
from rerank.base.interrupts import check
from rerank.data.symbols import Tokens, lines, words_of_lines
from rerank.metrics.metric import Metric
from rerank.readers.lists import Lists

PUNCTUATION = regex.compile(r"\p{P}+")
Form = Literal["nfkc", "case", "marks", "blanks"]
FORMS: dict[Form, Callable[[str], str]] = {  # what ``normalize`` does to a text, in this order
    "nfkc": partial(normalize, "NFKC"),
    "case": str.lower,
    "marks": lambda text: " ".join(PUNCTUATION.sub("", text).split()),
    "blanks": lambda text: "".join(text.split()),
}


class TextMetric(Metric):
    """A metric for candidates that are texts.

    The reference row of a list holds what an empty hypothesis has, and a candidate's row holds its difference from that
    where the two share a quantity. A list without candidates, whose choice is a row of zeros, therefore counts as an
    empty hypothesis, as it does for the tools that score files of texts.
    """

    @abstractmethod
    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of N candidates of one list: (reference row float64 [R], rows float64 [N, K]).

        Raises DataError: there is no reference.
        """

    def list_stats(self, nbest: Lists, references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """``stats`` of a list as its reader gives it: float64 [R] and [N, K].

        Raises DataError: the list lacks what the metric needs; says path, line and list.
        """
        try:
            return self.stats(nbest.texts, references)
        except DataError as error:
            raise DataError(error.message, path=nbest.path, line=nbest.line, list_id=nbest.id) from None

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        """float64 [N, N]: the gain of text y if text r were the only reference; each is made the reference in turn."""
        gains = np.zeros((len(texts), len(texts)))
        for r, text in enumerate(texts):
            check()
            reference, rows = self.stats(texts, [text])
            gains[:, r] = self.gain(rows, reference)
        return gains

    def corpus(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
        """Scores of L texts, each with its references: final figures; the keys are those of ``report``.

        If the field has a reference implementation (sacrebleu), that computes them.

        Raises DataError: not as many hypotheses as sets of references, or a text without references.
        """
        check_aligned(hypotheses, references)
        (stats,), reference = self.sum_stats([hypotheses], references)
        return self.of_sums(stats, reference)

    def sum_stats(
        self, selections: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The sums of statistics of S selections of L texts (float64 [S, K]), and those of their references (float64
        [R])."""
        stats, reference = np.zeros((len(selections), len(self.columns))), np.zeros(len(self.reference_columns))
        for golds, *texts in zip(references, *selections, strict=True):
            different = list(dict.fromkeys(texts))
            reference_row, rows = self.stats(list(map(encoded, different)), list(map(encoded, golds)))
            stats += rows[[different.index(text) for text in texts]]
            reference += reference_row
        return stats, reference

    def of_sums(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """The scores of ``corpus``, given the sums of the statistics of texts."""
        return self.report(stats, reference)

    def corpus_signature(self, references: Sequence[Sequence[str]]) -> str:  # noqa: ARG002 - others look at it
        """The signature for the figures of ``corpus``: by default ``signature``."""
        return self.signature


@dataclass(frozen=True)
class NormalizingMetric(TextMetric):
    """A metric of texts that may be brought to one form first; white space at their ends does not count.

    Parameters
    ----------
    normalize: what does not count, in candidates and references, such as ``{case: true, marks: true}``: ``case``,
        ``marks`` of punctuation, ``blanks``, and by ``nfkc`` what that form of Unicode makes equal: é as one code point
        or two, wide letters, ligatures.
    """

    normalize: Mapping[Form, bool] = field(default_factory=dict)

    @property
    def signature(self) -> str:
        """The name and the forms: ``wer|case:mixed``, ``wer|normalize:case+marks``."""
        forms = "+".join(form for form in FORMS if self.normalize.get(form))
        return f"{self.name}|{f'normalize:{forms}' if forms else 'case:mixed'}"

    def normal(self, texts: Sequence[bytes]) -> list[bytes]:
        """The texts as they are compared."""
        if any(self.normalize.values()):
            texts = [encoded(apply_forms(decoded(text), self.normalize)) for text in texts]
        return [text.strip() for text in texts]


def apply_forms(text: str, forms: Mapping[Form, bool]) -> str:
    """A text in all of the ``forms``."""
    for form, change in FORMS.items():
        text = change(text) if forms.get(form) else text
    return text


class SacrebleuMetric(TextMetric):
    """A metric whose rows of statistics are this program's, and whose scores of whole corpora are sacrebleu's."""

    @abstractmethod
    def make_scorer(self) -> Any:
        """sacrebleu's metric with these settings; a call loads sacrebleu, which takes a while."""

    def corpus(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
        check_aligned(hypotheses, references)
        if not hypotheses:
            return self.report(np.zeros(len(self.columns)), np.zeros(len(self.reference_columns)))
        width = max(map(len, references))  # sacrebleu takes them by number, None if a text has fewer than others
        by_number = [[texts[r] if r < len(texts) else None for texts in references] for r in range(width)]
        return self.figures(scorer(self).corpus_score(list(hypotheses), by_number))

    @abstractmethod
    def counts(self, stats: np.ndarray, reference: np.ndarray) -> list[Any]:
        """Sums of statistics as sacrebleu has them."""

    def of_sums(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """Compute sacrebleu's figures from sums: to the bit those of the texts, where the statistics are its own."""
        return self.figures(scorer(self)._compute_score_from_stats(self.counts(stats, reference)))

    def figures(self, score: Any) -> dict[str, float]:
        """A score from sacrebleu with the keys of ``report``."""
        return {self.primary: float(score.score)}

    def corpus_signature(self, references: Sequence[Sequence[str]]) -> str:
        """sacrebleu's signature of ``corpus``, e.g. ``nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0``."""
        counts = {len(texts) for texts in references}
        return f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}|{self.scorer_signature()}"

    @property
    def signature(self) -> str:
        """sacrebleu's signature without the number of references, which depends on the data."""
        return f"{self.name}|{self.scorer_signature()}"

    def scorer_signature(self) -> str:
        """sacrebleu's signature for these settings."""
        metric = scorer(self)
        return str(type(metric)._SIGNATURE_TYPE({**metric.__dict__, "num_refs": None}).format())

    def prepare(self, texts: Sequence[bytes]) -> list[bytes]:
        """The texts as sacrebleu prepares them, with words separated by white space."""
        prepare = scorer(self)._preprocess_segment
        return [encoded(prepare(decoded(text))) for text in texts]


@cache
def scorer(metric: SacrebleuMetric) -> Any:
    """sacrebleu's metric, made only once for equal settings."""
    return metric.make_scorer()


def check_references(references: Sequence[bytes]) -> None:
    """Refuse a list without a reference."""
    if not references:
        raise DataError("found no reference, expected at least one; add one or remove the list")


def check_aligned(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Refuse texts that cannot be paired with their references."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"found {len(hypotheses):,} texts and references for {len(references):,}; expected the same number of each"
        )
    for number, texts in enumerate(references, start=1):
        if not texts:
            raise DataError(f"text {number:,} has no reference, expected at least one")


def to_lowercase(texts: Sequence[bytes]) -> list[bytes]:
    """The texts in lower case."""
    return [encoded(decoded(text).lower()) for text in texts]


def equality(texts: Sequence[bytes]) -> np.ndarray:
    """float64 [N, N]: 1 for equal texts, else 0."""
    _, same = np.unique(np.array(texts, object), return_inverse=True)
    return np.asarray(same[:, None] == same, np.float64)


MAX_PAIRS = 1 << 20  # of words of a text and of its reference: sacrebleu may take a minute for these


@dataclass(frozen=True)
class Ter(SacrebleuMetric):
    """Translation edit rate on 0-100 (more if a text is longer than its reference), which sacrebleu computes: slowly,
    so that it is reported and no more.

    >>> Ter().corpus(["down sat the cat"], [["the cat sat down"]])
    {'ter': 50.0}

    Reference: Snover et al. 2006 (AMTA).

    Parameters
    ----------
    normalized: punctuation marks become words of their own, by tercom's rules.
    case_sensitive: whether case counts.

    ``stats``: how many more edits a text takes than an empty one; ``reference``: the edits of an empty text, and the
    length in words. Of several references, the one with the fewest edits counts, and the length is their mean. The gain
    of a sentence is 1 - edits / length; if the reference is empty, it is 0, or 1 for an empty text.
    """

    name: ClassVar[str] = "ter"

    primary = "ter"
    percent = 1.0
    columns = ("more_edits",)
    reference_columns = ("edits_of_nothing", "length")
    lower_is_better = True

    normalized: bool = False
    case_sensitive: bool = False

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        check_references(references)
        golds = [decoded(text) for text in references]
        longest, longest_reference = (max((len(text.split()) for text in side), default=0) for side in (texts, golds))
        if longest * longest_reference > MAX_PAIRS:
            message = f"a text of {longest:,} words for a reference of {longest_reference:,}; TER takes"
            raise DataError(f"{message} {MAX_PAIRS:,} pairs of words at most; expected one sentence per line")
        empty, *scores = (scorer(self).sentence_score(decoded(text), golds) for text in (b"", *texts))
        rows = np.array([each.num_edits - empty.num_edits for each in scores], np.float64)
        return np.array([empty.num_edits, empty.ref_length], np.float64), rows[:, None]

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """TER (0-100) of summed edits: float64 [..., K] and [..., R] → [...]; 100 for edits without a reference."""
        edits, length = stats[..., 0] + reference[..., 0], reference[..., 1]
        return np.asarray(100.0 * np.where(length > 0, edits / np.where(length > 0, length, 1.0), edits > 0))

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """1 - TER as a fraction: float64 [..., K] and [..., R] → [...]; below 0 for texts that are much too long."""
        return np.asarray(1.0 - self.scores(stats, reference) / 100.0)

    def counts(self, stats: np.ndarray, reference: np.ndarray) -> list[Any]:
        return [float(stats[0] + reference[0]), float(reference[1])]

    def make_scorer(self) -> Any:
        from sacrebleu.metrics.ter import TER

        return TER(normalized=self.normalized, case_sensitive=self.case_sensitive)


_SPACE = re.compile(r"[^\S\x00-\x7f]")
_MARK, _PART = rb"[!-/:-@\[-`{-~]", rb"[^ \t-\r\x1c-\x1f]"  # punctuation of ASCII; what white space does not cut
# What a blank comes after: a word up to a mark at its end, else a mark at its beginning.
_EDGE = re.compile(rb"(?<!%b)(?:%b+(?=%b(?!%b))|%b(?=%b))" % (_PART, _PART, _MARK, _PART, _MARK, _PART))


def with_blanks(raw: bytes) -> np.ndarray:
    """UTF-8 text (uint8, read-only) with blanks for the white space that is not ASCII's."""
    if not raw.isascii():
        raw = _SPACE.sub(" ", raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return np.frombuffer(raw, np.uint8)


def words(texts: Sequence[bytes]) -> Tokens:
    """The words of T texts as hashes, cut at all Unicode white space, like ``str.split``."""
    return words_of_lines(with_blanks(lines(texts)), len(texts), 1)


def words_and_marks(texts: Sequence[bytes]) -> Tokens:
    """Words as hashes; an ASCII mark at a word's end, or else at its beginning, is a word of its own."""
    text = _EDGE.sub(rb"\g<0> ", with_blanks(lines(texts)).tobytes())
    return words_of_lines(np.frombuffer(text, np.uint8), len(texts), 1)


def characters(texts: Sequence[bytes], *, space: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The code points of T texts, with white ``space`` or without it; a byte that is not UTF-8 is one of its own.

    int64 [T + 1] and uint32, read-only: those of text t are ``points[first[t]:first[t + 1]]``.
    """
    strings = [text.decode("utf-8", "surrogateescape") for text in texts]
    strings = strings if space else ["".join(text.split()) for text in strings]
    first = np.fromiter(accumulate(map(len, strings), initial=0), np.int64, len(texts) + 1)
    return first, np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), "<u4")
