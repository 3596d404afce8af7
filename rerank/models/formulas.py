"""The weights of score columns as other programs take them: a table, a function of Python, a recogniser's scales.

A recogniser fixes the weight of one score, so all weights are divided by that, which must be above 0: no choice
changes. icefall takes am + ngram_lm_scale·lm + attention_scale·attention (``rescore_with_attention_decoder`` in
https://github.com/k2-fsa/icefall/blob/master/icefall/decode.py); ESPnet (1 − ctc_weight)·decoder + ctc_weight·ctc +
lm_weight·lm + ngram_weight·ngram + penalty·length (https://github.com/espnet/espnet/blob/master/espnet2/bin/asr_inference.py).
"""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Literal

from rerank.base.errors import DataError
from rerank.features.table import FeatureTable, Table
from rerank.learn.base import Weights
from rerank.models.weights_text import strongest
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.texts.text_list import SCORE

Formula = Literal["csv", "python", "icefall", "espnet"]
DENSE = "Dense|"
SCALES: Mapping[str, Mapping[str, str]] = {
    "icefall": {"ngram_lm_scale": "lm", "attention_scale": "attention"},
    "espnet": {"ctc_weight": "ctc", "lm_weight": "lm", "ngram_weight": "ngram", "penalty": "length"},
}
UNITS = {"icefall": ("am",), "espnet": ("decoder", "ctc")}  # whose weights together are one
ALSO = {"acoustic": "am", "ngram_lm": "lm", "att": "attention", "length_bonus": "length"}  # further names of scores


def dense_weights(table: Table, weights: Weights) -> dict[str, float]:
    """The weights of score columns, for values as files have them, by their names; the base
    score's is first, where it has a weight.

    Raises
    ------
    DataError: there are weights of other features, which no formula of columns holds.
    """
    columns, base = ScoreColumns.of_table(table.about), float(weights.base)
    found, others = dict[str, float](), 0
    for j in strongest(weights.w).tolist():
        name = table.name(j)
        if j == table.base_column:
            base += float(weights.w[j])
        elif isinstance(table, FeatureTable) and name.startswith(DENSE):
            found[name.removeprefix(DENSE)] = float(weights.w[j])
        else:
            others += 1
    if others:
        message = f"found {others:,} weights of features that are no score columns; "
        raise DataError(message + "a formula is for a model of columns alone, as `rerank weigh --save` makes it")
    name = columns.base if columns is not None and columns.base else SCORE
    return ({name: base} if base else {}) | found  # lists without base scores lack the column


def formula_lines(form: Formula, weights: dict[str, float]) -> Iterator[str]:
    """The lines, without line ends.

    Raises
    ------
    DataError: the program has no place for a column, or does not take the sign of its weight.
    """
    if form == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([("column", "weight"), *weights.items()])
        yield from text.getvalue().splitlines()
    elif form == "python":
        yield f"WEIGHTS = {weights!r}"
        yield from ("", "")
        yield "def score(columns):"
        yield '    """The score of a candidate by its columns, higher is better."""'
        yield "    return sum(weight * columns[name] for name, weight in WEIGHTS.items())"
    else:
        for option, scale in _scales(form, weights).items():
            yield f"{option}: {scale!r}"


def _scales(form: str, weights: dict[str, float]) -> dict[str, float]:
    """The scales of a recogniser by the names of its options."""
    places, units, used = SCALES[form], UNITS[form], dict[str, float]()
    known = dict.fromkeys([*units, *places.values()])
    for column, weight in weights.items():
        name = ALSO.get(column, column)
        if weight and (name not in known or name in used):
            message = (
                f"{form} has no place for {column!r}, but one each for {', '.join(known)}: rename columns, or choose"
            )
            raise DataError(f"{message} those to weigh (`rerank weigh --columns`)")
        used |= {name: weight} if weight else {}
    unit = sum(used.get(name, 0.0) for name in units)
    if unit <= 0 or any(used.get(name, 0.0) < 0 for name in units):
        shown = ", ".join(f"{name} {used[name]:.4g}" for name in units if name in used) or "none"
        message = f"{form} takes other scales relative to {' and '.join(units)}, whose weights must be above 0"
        raise DataError(f"{message}; found {shown}")
    return {option: used.get(name, 0.0) / unit for option, name in places.items()}
