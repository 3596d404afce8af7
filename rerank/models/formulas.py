"""The weights of score columns as other programs take them: a table, a function of Python, the scales of a recogniser,
the weights of a search engine.

A recogniser fixes the weight of one score, so all weights are divided by that, which must be above 0: no choice
changes. icefall takes am + ngram_lm_scale·lm + attention_scale·attention (``rescore_with_attention_decoder`` in
https://github.com/k2-fsa/icefall/blob/master/icefall/decode.py); ESPnet (1 − ctc_weight)·decoder + ctc_weight·ctc +
lm_weight·lm + ngram_weight·ngram + penalty·length (https://github.com/espnet/espnet/blob/master/espnet2/bin/asr_inference.py);
NeMo am + beam_alpha·lm + beam_beta·length (its documentation of N-gram language models; early releases subtract the
last).

Search engines take weights of scores from 0 to 1 within each search, the columns ``minmax_1``, ``minmax_2``... of runs
of TREC: Elasticsearch's linear retriever weights of 0 or more, OpenSearch's normalization processor such weights with
the sum 1. Vespa takes any expression of its rank features, or of functions of the profile. See
https://elastic.co/docs/reference/elasticsearch/rest-apis/retrievers/linear-retriever,
https://docs.opensearch.org/docs/search-plugins/search-pipelines/normalization-processor and
https://docs.vespa.ai/en/ranking.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from rerank.base.errors import DataError
from rerank.features.table import FeatureTable, Table
from rerank.learn.base import Weights
from rerank.models.weights_text import strongest
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.texts.text_list import SCORE
from rerank.storage.strict_json import as_json

Formula = Literal["csv", "python", "icefall", "espnet", "nemo", "elastic", "opensearch", "vespa"]
DENSE = "Dense|"
SCALES: Mapping[str, Mapping[str, str]] = {
    "icefall": {"ngram_lm_scale": "lm", "attention_scale": "attention"},
    "nemo": {"beam_alpha": "lm", "beam_beta": "length"},
    "espnet": {"ctc_weight": "ctc", "lm_weight": "lm", "ngram_weight": "ngram", "penalty": "length"},
}
SCALED, FEATURE = re.compile("minmax_[0-9]+"), re.compile(r"\w+(\([\w, .]*\)(\.\w+)?)?")
UNITS = {"icefall": ("am",), "nemo": ("am",), "espnet": ("decoder", "ctc")}  # whose weights together are one
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
    elif form == "vespa":
        if odd := [name for name in weights if not FEATURE.fullmatch(name)]:
            message = (
                f"found the column {odd[0]!r}; expected a rank feature of Vespa, such as bm25(title), or a function"
            )
            raise DataError(message)
        terms = " + ".join(f"{weight!r} * {name}" for name, weight in weights.items())
        yield from ("rank-profile learned {", "  first-phase {", f"    expression: {terms}", "  }", "}")
    elif form in ("elastic", "opensearch"):
        yield from as_json(_of_engine(form, weights), indent=2).splitlines()
    else:
        for option, scale in _scales(form, weights).items():
            yield f"{option}: {scale!r}"


def _of_engine(form: str, weights: dict[str, float]) -> dict[str, Any]:
    """The query for a search engine: in Elasticsearch's, retrievers are to take the places of their names."""
    used = dict(sorted(((name, weight) for name, weight in weights.items() if weight), key=lambda pair: len(pair[0])))
    if odd := [name for name, weight in used.items() if not SCALED.fullmatch(name) or weight < 0]:
        message = f"{form} takes weights from 0 of scores from 0 to 1 in each search; found {used[odd[0]]:.4g} of"
        raise DataError(f"{message} {odd[0]!r}: weigh minmax_1, minmax_2, ... (`rerank weigh --columns`)")
    if form == "elastic":
        each = [{"retriever": name, "weight": weight, "normalizer": "minmax"} for name, weight in used.items()]
        return {"retriever": {"linear": {"retrievers": each}}}
    total = sum(used.values())
    combination = {"technique": "arithmetic_mean", "parameters": {"weights": [w / total for w in used.values()]}}
    processor = {"normalization": {"technique": "min_max"}, "combination": combination}
    return {"phase_results_processors": [{"normalization-processor": processor}]}


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
