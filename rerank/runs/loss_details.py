"""What of a candidate is wrong: brackets by label, words. It takes the texts of all lists, which are read again."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from rerank.base.encoding import decoded
from rerank.data.symbols import SymbolTable
from rerank.extraction.content import metric_of
from rerank.metrics.gain import Gain
from rerank.metrics.parseval import Parseval
from rerank.metrics.parseval_by_label import LabelCount, count_by_label
from rerank.metrics.parseval_kernel import LENGTH
from rerank.readers.base import NBestList
from rerank.readers.texts.text_list import TextList
from rerank.readers.trees.trees import parse_brackets
from rerank.readers.trees.words import normal_text
from rerank.recipes.recipe import ListRecipe, Recipe
from rerank.runs.report.measures import count, fixed, signed
from rerank.runs.report.table import TextTable

BATCH = 500  # trees that are parsed at a time
LABELS, WORDS = 15, 20  # rows of a table
SYSTEMS = "base", "chosen", "oracle"


class LossDetails(ABC):
    """Looks at the texts of every list of a split; ``length`` is that of each list's reference (or source) in words."""

    length_of = "reference"

    def __init__(self, lists: int) -> None:
        self.length = np.full(lists, -1, np.int64)

    @abstractmethod
    def see(self, i: int, nbest: NBestList, places: Mapping[str, int], answer: bytes | None = None) -> None:
        """List ``i`` and the places of the candidates of SYSTEMS; ``answer`` is what was chosen
        where that need not be a candidate."""

    @abstractmethod
    def table(self) -> TextTable | None:
        """What was found; None where there is nothing to say."""


def texts_of(nbest: NBestList, places: Mapping[str, int], answer: bytes | None) -> dict[str, bytes]:
    """What SYSTEMS make of a list."""
    found = {name: nbest.texts[places[name]] for name in SYSTEMS}
    return found if answer is None else found | {"chosen": answer}


def loss_details(recipe: ListRecipe, lists: int) -> LossDetails:
    """What looks at the lists of ``recipe``."""
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
        texts = [list(column) for column in zip(*(each for _, each in self._waiting), strict=True)]
        gold, *systems = (parse_brackets(column, symbols) for column in texts)
        for name, trees in zip(SYSTEMS, systems, strict=True):
            reference, rows = self._metric.rows(gold, trees, np.arange(len(self._waiting) + 1), symbols)
            valid = self._metric.valid(rows)
            self.length[[i for i, _ in self._waiting]] = reference[:, LENGTH]
            for label, found in count_by_label(self._metric, gold, trees, symbols, valid).items():
                self._found[name][label] = found + self._found[name].get(label, (0, 0, 0))
        self._waiting = []

    def table(self) -> TextTable | None:
        """The labels with the most errors."""
        if self._waiting:
            self._count()
        base, chosen, oracle = (self._found[name] for name in SYSTEMS)
        none, total = LabelCount(0, 0, 0), sum(each.errors for each in chosen.values())
        rows = []
        for label in sorted(chosen, key=lambda label: (-chosen[label].errors, label))[:LABELS]:
            found = [system.get(label, none) for system in (base, chosen, oracle)]
            first, own, best = (100 * each.f1 for each in found)
            share = fixed(100 * own_errors / total, 1) if (own_errors := found[1].errors) else "0.0"
            shown = [fixed(first), fixed(own), signed(own - first), fixed(best)]
            rows.append([label, count(found[1].gold), *shown, count(own_errors), f"{share} %"])
        headings = ["label", "in gold", "base F", "chosen F", "ΔF", "oracle F", "errors", "of all errors"]
        note = "Errors of the chosen trees: brackets that they lack, and brackets that gold does not have."
        return TextTable("By label", headings, rows, note=note) if len(chosen) > 1 else None


class WordLosses(LossDetails):
    """Words that a text lacks, or has too often, compared with all references of its list; not ``named`` where texts
    are not meant to have the words of references."""

    def __init__(self, lists: int, *, named: bool) -> None:
        super().__init__(lists)
        self._named = named
        self._lacked = {name: Counter[str]() for name in SYSTEMS}
        self._extra = {name: Counter[str]() for name in SYSTEMS}

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
        for name, text in texts_of(nbest, places, answer).items():
            own = Counter(decoded(text).split())
            self._lacked[name] += least - own
            self._extra[name] += own - most

    def table(self) -> TextTable | None:
        """The words that are most often wrong."""
        wrong = {name: self._lacked[name] + self._extra[name] for name in SYSTEMS}
        rows = []
        for word in sorted(wrong["chosen"], key=lambda word: (-wrong["chosen"][word], word))[:WORDS]:
            parts: Sequence[int] = [self._lacked["chosen"][word], self._extra["chosen"][word]]
            totals = [wrong["chosen"][word], wrong["base"][word], wrong["oracle"][word]]
            rows.append([word, *map(count, (*parts, *totals))])
        headings = ["word", "missing", "too many", "wrong", "wrong in base", "wrong in oracle"]
        note = "Missing: fewer than any reference has; too many: more than any reference has."
        return TextTable("Words most often wrong", headings, rows, note=note) if rows else None
