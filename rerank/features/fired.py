"""The features of a template: for examples, and to try one's own."""

from typing import Any

import numpy as np

from rerank.data.symbols import SymbolTable
from rerank.features.extract import Extractor
from rerank.features.template import make_template
from rerank.features.text.view import TextExtractor, make_view
from rerank.readers.lists import Lists
from rerank.readers.trees.trees import parse_brackets

NOTHING = {"trees": "(X (Y z))"}


def fired(template: Any, *candidates: str, source: str = "", **fields: Any) -> dict[str, float]:
    """The features that a template (as in recipes) gives the first of some candidates and not all of them, with their
    values: texts, or trees in brackets, with the base scores −1, −2, and so on.

    A single candidate is compared with an empty text, or a tree of one word. ``fields``: others of a ``Lists``.

    >>> fired("Rule", "(NP (DT the) (NN dog))")
    {'NP | → DT NN': 1.0}
    """
    made, symbols = make_template(template), SymbolTable()
    texts = [text.encode() for text in (*candidates, *[NOTHING.get(made.content, "")] * (len(candidates) == 1))]
    base = -np.arange(1.0, len(texts) + 1)
    if made.content == "trees":
        of_trees = Extractor([made], symbols, centred=False)
        features = of_trees.features(parse_brackets(texts, symbols), base)
    else:
        nbest = Lists.one("", "", 1, texts, range(1, len(texts) + 1), **{"scores": base[:, None]} | fields)
        view = make_view(nbest, source.encode(), symbols)
        features = TextExtractor([made], symbols, centred=False).features(view, texts=texts)
    named = {}
    for i, (first, last) in enumerate(zip(features.symbol_first, features.symbol_last, strict=True)):
        name = " ".join(symbols.text_of_hash(int(h)) or "?" for h in features.symbols[first:last])
        for e in range(features.first[i], features.first[i + 1]):
            if features.candidate[e] == 0:
                named[name] = round(float(features.value[e]), 4)
    return named
