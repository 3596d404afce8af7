"""Lists of parse trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from rerank.content.base import Content, Pair, Raw, make_reader, make_templates
from rerank.errors import RecipeError
from rerank.features import parse  # noqa: F401 - registers the templates
from rerank.features.extract import Extractor, ListFeatures
from rerank.features.heads import Rules
from rerank.metrics.base import metrics
from rerank.metrics.parseval import Parseval
from rerank.readers.base import BadList, NBestList, SkipCount
from rerank.readers.pairs import RawPair, parse_list, parse_pair, read_raw_pairs
from rerank.readers.trees import Trees, brackets
from rerank.recipe import FeatureSettings, Recipe, SplitSettings
from rerank.registry import build
from rerank.settings import Settings
from rerank.symbols import SymbolTable


class TreeContent(Content[Trees]):
    """Parses, with gold trees as references."""

    metric: Parseval

    def __init__(self, recipe: Recipe, *, centred: bool | None = None) -> None:
        super().__init__()
        self.user = bool(recipe.features.user)
        self.metric = make_parseval(recipe.metric)
        self.extractor = make_extractor(recipe.features, self.symbols, centred=centred)
        self.names = self.extractor.names

    def read(self, data: SplitSettings, split: str) -> Iterator[Raw]:
        """See ``Content.read``."""
        files = data.files(split)
        for raw in read_raw_pairs(make_reader(data.reader), files["nbest"][0], files["gold"][0]):
            yield Raw(raw.nbest, raw[1:])

    def pair(self, raw: Raw, count: SkipCount) -> Pair | None:
        """See ``Content.pair``."""
        pair = parse_pair(RawPair(raw.nbest, *raw.beside), self.symbols)
        if isinstance(pair, BadList):
            count.bad(pair)
            return None
        count.good(pair[0])
        return Pair(*pair)

    def open(self, nbest: NBestList) -> tuple[NBestList, Trees] | BadList:
        """See ``Content.open``."""
        return parse_list(nbest, self.symbols)

    def features(self, nbest: NBestList, content: Trees) -> ListFeatures:
        """See ``Content.features``."""
        return self.extractor.features(content, nbest.base, nbest.candidates if self.user else ())

    def stats(self, nbest: NBestList, content: Trees, gold: Trees) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        """See ``Content.stats``."""
        return self.metric.stats(gold, content, self.symbols)

    def gold_text(self, gold: Trees) -> str:
        """The gold tree in brackets."""
        return brackets(gold, 0, self.symbols)


def make_extractor(settings: FeatureSettings, symbols: SymbolTable, *, centred: bool | None = None) -> Extractor:
    """The extractor that a recipe (or a model) describes."""
    templates, user = make_templates(settings, "trees")
    return Extractor(
        templates,
        symbols,
        user=user,
        heads=cast(dict[str, Rules], settings.heads),
        centred=settings.centred if centred is None else centred,
        bits=settings.hash_bits or 64,
    )


def make_parseval(spec: Settings) -> Parseval:
    """PARSEVAL as a recipe (or a model) describes it; ``prm`` names an EVALB parameter file."""
    spec = dict(spec)
    prm = spec.pop("prm", None)
    if prm is not None:
        if set(spec) - {"name", "punctuation"}:
            raise RecipeError("an EVALB parameter file leaves no room for other settings", key="metric.prm")
        return Parseval.from_prm(prm, punctuation=spec.get("punctuation", "reference"))
    metric = build(metrics, spec, "metric")
    if not isinstance(metric, Parseval):
        raise RecipeError(f"{spec['name']} does not measure trees", key="metric.name")
    return metric
