"""The gains and losses of a run: lists by gain, scores by length of sentence and of list, brackets by label, words.

Labels and words take the texts of all lists, which are read again.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from rerank.base.encoding import decoded
from rerank.data.symbols import SymbolTable
from rerank.extraction.content import metric_of
from rerank.metrics.base import Metric
from rerank.metrics.gain import Gain
from rerank.metrics.parseval import Parseval
from rerank.metrics.parseval_by_label import LabelCount, count_by_label
from rerank.metrics.parseval_kernel import LENGTH
from rerank.readers.base import NBestList
from rerank.readers.texts.text_list import TextList
from rerank.readers.trees.trees import parse_brackets
from rerank.readers.trees.words import normal_text
from rerank.recipes.recipe import ListRecipe, Recipe
from rerank.runs.evaluation import Selections
from rerank.runs.report.measures import Measure
from rerank.runs.report.numbers import count, fixed, signed
from rerank.runs.report.table import TextTable

GROUPS = 5  # of lists by size, with about as many lists each
SAME = 1e-12  # gains that are this close are equal
BATCH = 500  # trees that are parsed at a time
LABELS, WORDS = 15, 20  # rows of a table
FREQUENT, OFTEN = 0.005, 10  # what share of the words of references, and how often, a function word is at least
UNCHANGED = 0.05  # a difference up to this, relative to base
SYSTEMS = "base", "chosen", "oracle"


def changes_row(
    split: str, base: np.ndarray, chosen: np.ndarray, gains: tuple[np.ndarray, np.ndarray]
) -> dict[str, str]:
    """The number of lists of a split that got better or worse by their gain, or stayed as they were.

    base, chosen: candidates (int64 [L]); gains: theirs (float64 [L]).
    """
    difference = gains[1] - gains[0]
    better, worse = difference > SAME, difference < -SAME
    other = ~better & ~worse & (chosen != base)
    lists = max(base.size, 1)
    return {
        "split": split,
        "better": f"{count(better.sum())} ({fixed(100 * better.sum() / lists, 1)} %)",
        "worse": f"{count(worse.sum())} ({fixed(100 * worse.sum() / lists, 1)} %)",
        "another candidate, as good": count(other.sum()),
        "the same candidate": count(np.sum(chosen == base)),
        "lists": count(base.size),
    }


def changes_table(rows: Sequence[Mapping[str, str]]) -> TextTable:
    """The rows of all splits."""
    return TextTable.of("Lists whose chosen candidate is better or worse than the base candidate", rows)


def size_groups(sizes: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Lists grouped by a size (int64 [L]): names such as ``4–9`` and the group of every list (int64 [L])."""
    if not sizes.size:
        return [], np.zeros(0, np.int64)
    edges, largest = np.unique(np.quantile(sizes, np.arange(1, GROUPS) / GROUPS, method="higher")), sizes.max()
    if edges[0] == largest > sizes.min():  # most lists are full: the others are the other group
        edges = sizes[sizes < largest].max(keepdims=True)
    _, group = np.unique(np.searchsorted(edges, sizes, side="left"), return_inverse=True)
    ends = [(int(sizes[group == k].min()), int(sizes[group == k].max())) for k in range(int(group.max()) + 1)]
    return [f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high in ends], np.asarray(group, np.int64)


def loss_table(
    by: str, unit: str, sizes: np.ndarray, metric: Metric, measure: Measure, selections: Selections, predictor: str
) -> TextTable | None:
    """Scores of base, ``predictor`` and oracle by the size of lists (int64 [L]), and what each group has left to gain.

    None where all lists are in one group. by, unit: what the size is, for the caption and the first heading.
    """
    names, group = size_groups(sizes)
    systems = "base", predictor, "oracle"
    if len(names) < 2 or not all(name in selections.rows for name in systems):
        return None
    rows, reference = [selections.rows[name] for name in systems], selections.reference
    everything, chosen, oracle, heading = reference.sum(axis=0), rows[1], rows[2], measure.heading
    total = chosen.sum(axis=0)
    lines = []
    for k, name in enumerate(names):
        members = group == k
        reference_sums = reference[members].sum(axis=0)
        base, score, best = (float(metric.scores(r[members].sum(axis=0), reference_sums)) for r in rows)
        with_oracle = total + oracle[members].sum(axis=0) - chosen[members].sum(axis=0)
        left = float(metric.scores(with_oracle, everything) - metric.scores(total, everything))
        lines.append(
            {
                unit: name,
                "lists": count(members.sum()),
                f"base {heading}": measure.text(base),
                f"chosen {heading}": measure.text(score),
                f"Δ{heading}": measure.signed(score - base),
                f"oracle {heading}": measure.text(best),
                "left to gain": measure.signed(left),
            }
        )
    note = f"Left to gain: the change of {heading} over all lists if the oracles of these lists were chosen."
    return TextTable.of(f"By {by}", lines, note=note)


class LossDetails(ABC):
    """Looks at the texts of every list of a split; ``length`` is that of each list's reference (or source) in words."""

    length_of = "reference"

    def __init__(self, lists: int) -> None:
        self.length = np.full(lists, -1, np.int64)

    @abstractmethod
    def see(self, i: int, nbest: NBestList, places: Mapping[str, int], answer: bytes | None = None) -> None:
        """Take list ``i`` with the places of the candidates of SYSTEMS; ``answer``: a choice that is none of them."""

    @abstractmethod
    def table(self) -> TextTable | None:
        """The most frequent errors; None where there is nothing to say."""


def texts_of(nbest: NBestList, places: Mapping[str, int], answer: bytes | None) -> dict[str, bytes]:
    """The texts of SYSTEMS for a list."""
    texts = {name: nbest.texts[places[name]] for name in SYSTEMS}
    return texts if answer is None else texts | {"chosen": answer}


def loss_details(recipe: ListRecipe, lists: int) -> LossDetails:
    """The details that suit the metric of ``recipe``."""
    metric = metric_of(recipe)
    if isinstance(metric, Parseval):
        assert isinstance(recipe, Recipe)
        return BracketLosses(lists, metric, normal=recipe.data.normalize)
    return WordLosses(lists, named=not isinstance(metric, Gain))


class BracketLosses(LossDetails):
    """Brackets by label; trees whose words, in ``normal`` form or as written, are not those of the gold tree are left
    out."""

    def __init__(self, lists: int, metric: Parseval, *, normal: bool = False) -> None:
        super().__init__(lists)
        self._metric, self._normal = metric, normal
        self._found: dict[str, dict[str, LabelCount]] = {name: {} for name in SYSTEMS}
        self._waiting: list[tuple[int, list[bytes]]] = []

    def see(self, i: int, nbest: NBestList, places: Mapping[str, int], answer: bytes | None = None) -> None:
        texts = [nbest.gold.text, *texts_of(nbest, places, answer).values()]
        self._waiting.append((i, list(map(normal_text, texts)) if self._normal else texts))
        if len(self._waiting) == BATCH:
            self._count()

    def _count(self) -> None:
        symbols = SymbolTable()
        texts = [list(column) for column in zip(*(item for _, item in self._waiting), strict=True)]
        gold, *systems = (parse_brackets(column, symbols) for column in texts)
        for name, trees in zip(SYSTEMS, systems, strict=True):
            reference, rows = self._metric.rows(gold, trees, np.arange(len(self._waiting) + 1), symbols)
            valid = self._metric.valid(rows)
            self.length[[i for i, _ in self._waiting]] = reference[:, LENGTH]
            for label, counted in count_by_label(self._metric, gold, trees, symbols, valid).items():
                self._found[name][label] = counted + self._found[name].get(label, (0, 0, 0))
        self._waiting = []

    def table(self) -> TextTable | None:
        """The labels with the most errors."""
        if self._waiting:
            self._count()
        base, chosen, oracle = (self._found[name] for name in SYSTEMS)
        none, total = LabelCount(0, 0, 0), sum(counted.errors for counted in chosen.values())
        rows = []
        for label in sorted(chosen, key=lambda label: (-chosen[label].errors, label))[:LABELS]:
            counts = [system.get(label, none) for system in (base, chosen, oracle)]
            first, score, best = (100 * counted.f1 for counted in counts)
            errors = counts[1].errors
            rows.append(
                {
                    "label": label,
                    "in gold": count(counts[1].gold),
                    "base F": fixed(first),
                    "chosen F": fixed(score),
                    "ΔF": signed(score - first),
                    "oracle F": fixed(best),
                    "errors": count(errors),
                    "of all errors": f"{fixed(100 * errors / max(total, 1), 1)} %",
                }
            )
        note = "Errors of the chosen trees: brackets that they lack, and brackets that gold does not have."
        return TextTable.of("By label", rows, note=note) if len(chosen) > 1 else None


class WordLosses(LossDetails):
    """Words that a text lacks, or has too often, compared with all references of its list; not ``named`` where texts
    are not meant to have the words of references."""

    def __init__(self, lists: int, *, named: bool) -> None:
        super().__init__(lists)
        self._named = named
        self._lacked = {name: Counter[str]() for name in SYSTEMS}
        self._extra = {name: Counter[str]() for name in SYSTEMS}
        self._right = Counter[str]()  # words of references

    def see(self, i: int, nbest: NBestList, places: Mapping[str, int], answer: bytes | None = None) -> None:
        assert isinstance(nbest, TextList)
        source, references = nbest.source, nbest.references
        golds = [Counter(decoded(text).split()) for text in references]
        if not golds:
            self.length_of = "source"
            self.length[i] = len(source.split()) if source else -1
            return
        self.length[i] = round(float(np.mean([gold.total() for gold in golds])))
        if not self._named:
            return
        least, most = golds[0].copy(), golds[0].copy()
        for gold in golds[1:]:
            least, most = least & gold, most | gold
        self._right += least
        for name, text in texts_of(nbest, places, answer).items():
            words = Counter(decoded(text).split())
            self._lacked[name] += least - words
            self._extra[name] += words - most

    def table(self) -> TextTable | None:
        """The words that are most often wrong."""
        wrong = {name: self._lacked[name] + self._extra[name] for name in SYSTEMS}
        base, chosen, often = wrong["base"], wrong["chosen"], max(OFTEN, FREQUENT * self._right.total())
        usual = {word for word, times in self._right.items() if times >= often}
        told = [word for word in chosen if word not in usual or abs(chosen[word] - base[word]) > UNCHANGED * base[word]]
        rows = [
            {
                "word": word,
                "missing": count(self._lacked["chosen"][word]),
                "too many": count(self._extra["chosen"][word]),
                "wrong": count(wrong["chosen"][word]),
                "wrong in base": count(wrong["base"][word]),
                "wrong in oracle": count(wrong["oracle"][word]),
            }
            for word in sorted(told, key=lambda word: (-chosen[word], word))[:WORDS]
        ]
        note = "Missing: fewer than any reference has; too many: more than any reference has. "
        note += "Left out: frequent words that are wrong about as often as in base."
        return TextTable.of("Words most often wrong", rows, note=note, folded=True) if rows else None
