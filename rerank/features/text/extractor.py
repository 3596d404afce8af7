"""From the view of one list of texts to its sparse features."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from rerank.base.interrupts import check
from rerank.data.symbols import SymbolTable, known_hash
from rerank.features.collecting import ListFeatures
from rerank.features.extract import FeatureExtractor
from rerank.features.sink import Sink
from rerank.features.template import Template
from rerank.features.text.view import TextView

log = logging.getLogger("rerank")


class TextExtractor(FeatureExtractor):
    """Runs templates over lists of texts; the parameters are those of FeatureExtractor.

    ``needs`` has the templates that need a "source", "segmentation" or "alignment", by that; ``lacking`` what of these
    was missing, so that they gave nothing; the first such list is logged.
    """

    content = "texts"

    def __init__(self, templates: Sequence[Template], symbols: SymbolTable, **others: Any) -> None:
        super().__init__(templates, symbols, **others)
        self.needs: dict[str, list[str]] = {}
        for template in templates:
            if need := getattr(template, "needs", ""):
                self.needs.setdefault(need, []).append(template.name)
        self.lacking: dict[str, object] = {}

    def features(
        self, view: TextView, candidates: Sequence[Any] = (), *, names: bool = True, texts: Sequence[bytes] = ()
    ) -> ListFeatures:
        """The features of one list; ``candidates`` are needed only for users' templates, ``texts`` for those with a
        view of their own (``look``).

        names: add the names of features to the table of symbols.
        """
        total = view.first.size - 1
        if self.user and len(candidates) != total:
            raise ValueError(f"{total} texts with {len(candidates)} candidates")
        self._note_lacking(view, total)

        hash_of = self.symbols.hash_of if names else known_hash
        views: dict[Any, tuple[np.ndarray, ...]] = {None: view}
        for look in {family.look for family in self._families if family.look is not None}:
            views[look] = look(texts, hash_of)

        def fire(sink: Sink) -> None:
            for family in self._families:
                check()
                family.fire(views[family.look], sink, family.ids, family.seeds, family.options)

        return self._extract(total, candidates, self.symbols if names else None, fire)

    def _note_lacking(self, view: TextView, total: int) -> None:
        has = {"source": view.source.size, "segmentation": len(view.spans), "alignment": len(view.points)}
        for need, names in self.needs.items():
            if names and total and view.words.size and not has[need]:
                token = object()
                if self.lacking.setdefault(need, token) is token:  # only one of several threads is the first
                    log.warning("a list has no %s: %s give no features there", need, ", ".join(names))
