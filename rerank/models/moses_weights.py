"""Weights for Moses: the file of sparse weights that its option ``weight-file`` reads, one ``name weight`` per line.

Moses takes lines that begin with "#" for comments, and splits at white space (``FVector::load`` in FeatureVector.cpp).
A sparse feature is called by the name of its feature function, "_", and what the function makes of it:

    Given|NAME                NAME: it came out of Moses, with its name
    PhrasePair|a b → c        pp_a,b~c      PhrasePairFeature name=pp
    WordPair|a → b            WT_a~b        WordTranslationFeature name=WT
    TargetNGram(n=2)|a b      TB_a:b        TargetBigramFeature name=TB

Weights of dense scores belong in the section [weight] of moses.ini; here they are in comments.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rerank.features.marks import ARROW
from rerank.features.table import FeatureTable, Table
from rerank.learn.base import Weights
from rerank.models.weights_text import strongest
from rerank.readers.score_columns import ScoreColumns

_INDEXED = re.compile(r"(.+)_(\d{1,3})")


def moses_name(template: str, symbols: Sequence[int], texts: Sequence[str]) -> str | None:
    """What Moses calls a feature; None if it has no such features.

    symbols, texts: the hashes of its symbols, and their texts.
    """
    name = None
    if template == "Given":
        name = " ".join(texts)
    elif template in ("PhrasePair", "WordPair") and symbols.count(int(ARROW)) == 1:
        at = symbols.index(int(ARROW))
        source, target = texts[:at], texts[at + 1 :]
        if source and target:
            prefix = "pp" if template == "PhrasePair" else "WT"
            name = f"{prefix}_{','.join(source)}~{','.join(target)}"
    elif template == "TargetNGram(n=2)":
        name = f"TB_{':'.join(texts)}"
    return None if name is None or re.search(r"\s|^#|^$", name) else name


def moses_lines(table: Table, weights: Weights, left_out: Counter[str], *, top: int | None = None) -> Iterator[str]:
    """The lines, without line ends; counts in ``left_out``, by template, the weights that Moses has no place for."""
    sparse: list[tuple[str, float]] = []
    for j in strongest(weights.w).tolist():
        weight = float(weights.w[j])
        if not isinstance(table, FeatureTable):
            left_out["hashed"] += 1
            continue
        template = table.templates[table.template[j]]
        if template == "Dense":
            continue
        symbols = table.symbols[table.first[j] : table.first[j + 1]].tolist()
        known = all(symbol in table.texts for symbol in symbols)
        name = moses_name(template, symbols, [table.texts[symbol] for symbol in symbols]) if known else None
        if name is None:
            left_out[template] += 1
        else:
            sparse.append((name, weight))
    yield from _dense_lines(table, weights)
    for name, weight in sparse[:top]:
        yield f"{name} {weight!r}"


def _dense_lines(table: Table, weights: Weights) -> Iterator[str]:
    """The comment with the weights of dense scores, one line per feature function."""
    yield f"# Multiply the weights of moses.ini by the base score's, {float(weights.base)!r}, and add to them:"
    yield "# [weight]"
    columns, names = ScoreColumns.of_table(table.about), [table.name(j) for j in range(table.free)]
    own = {name.removeprefix("Dense|"): float(weights.w[j]) for j, name in enumerate(names) if name[:6] == "Dense|"}
    # Moses wants a weight for every score of a function, also for those that never vary and are no features.
    dense = dict.fromkeys([name for name in columns.names if name != columns.base] if columns else (), 0.0) | own
    rows: dict[str, dict[int, float]] = {}
    for name, weight in dense.items():
        found = _INDEXED.fullmatch(name)
        if found and f"{found[1]}_0" in dense:  # LM_1 alone is a name of its own
            rows.setdefault(found[1], {})[int(found[2])] = weight
        else:
            rows[name] = {0: weight}
    for name, row in sorted(rows.items()):
        yield f"# {name}= {' '.join(repr(row.get(place, 0.0)) for place in range(max(row) + 1))}"
