"""The first part of the page: what came out, in one sentence, a few large numbers, and one table per split."""

from collections.abc import Mapping
from typing import Any

from rerank.runs.report.choices import blind_note
from rerank.runs.report.measures import MEASURES, Measure, count, measures_of, primary_of
from rerank.runs.report.rows import (
    PREDICTORS,
    Comparison,
    chosen_of,
    compare_with_base,
    decided_by,
    dev_of,
    result_rows,
    runs_of,
    share_closed,
    splits_of,
)
from rerank.runs.report.spread import Spread
from rerank.runs.report.table import TextTable, spread_text
from rerank.runs.report.verdict import unbeaten

_SHOWN = ("last", *PREDICTORS)


def summary(metrics: Mapping[str, Any]) -> dict[str, Any] | None:
    """Base, chosen run and oracle on the first test split, as tiles and one sentence; None without them."""
    measure, predictor = primary_of(metrics), decided_by(metrics)
    split = next(iter(splits_of(metrics)), "")
    systems = metrics.get("splits", {}).get(split, {})
    base, score, oracle = (systems.get(name, {}).get(measure.key) for name in ("base", predictor, "oracle"))
    if base is None or score is None:
        return None
    chosen = chosen_of(metrics)
    run = f"{chosen.get('name', 'model')}, {predictor} predictor"
    test = compare_with_base([metrics], split, predictor)
    closed = None if oracle is None else share_closed(measure, base, score, oracle)
    share = "" if closed is None else f"{100 * closed:.0f} % of the way from base to oracle"
    columns = max((entry.get("columns") or 0 for entry in metrics.get("corpora", {}).values()), default=0)
    size = f"of {count(columns)} feature columns" if columns else ""
    tiles = [
        {"name": f"Base {measure.heading}", "value": measure.text(base), "note": f"on {split}"},
        {"name": f"Reranked {measure.heading}", "value": measure.text(score), "note": run},
        {"name": "Difference", "value": measure.signed(score - base), "note": _certainty(test, measure)},
        {"name": f"Oracle {measure.heading}", "value": measure.text(oracle), "note": share},
        {"name": "Nonzero weights", "value": count(metrics.get("training", {}).get("nonzero_weights")), "note": size},
    ]
    seed = f" (seed {chosen['seed']})" if "seed" in chosen else ""
    picked = f", the best of {len(runs_of(metrics))} runs on {dev_of(metrics)}," if len(runs_of(metrics)) > 1 else ""
    sentence = (
        f"On {split}, {chosen.get('name', 'the model')}{seed}{picked} reaches {measure.heading} {measure.text(score)} "
        f"with its {predictor} predictor; the base has {measure.text(base)}"
    )
    amount = f"{measure.text(abs(score - base))} {measure.heading}"
    sentence += f": {test.verdict(measure, amount, 'base')}." if test is not None else "."
    sentence += f" {lost}" if (lost := unbeaten(metrics)) else ""
    return {"tiles": tiles, "sentence": sentence}


def results(metrics: Mapping[str, Any]) -> list[TextTable]:
    """One results table per split; the rows of one run form a group."""
    return [_results_on(split, metrics) for split in splits_of(metrics)]


def _results_on(split: str, metrics: Mapping[str, Any]) -> TextTable:
    measures, primary = measures_of(metrics), primary_of(metrics)
    rows, chosen, name = [], None, ""
    for row in result_rows(metrics, split, _SHOWN):
        if row.first:
            name = row.name if row.seeds == 1 else f"{row.name} ({row.seeds} seeds)"
            chosen = name if row.chosen else chosen
        rows.append(
            [
                name,
                row.predictor,
                *(spread_text(row.scores.get(measure.key), measure) for measure in measures),
                "" if row.difference is None else primary.signed(row.difference),
                _interval(row.test, primary),
                row.test.verdict(primary) if row.test else "",
                _nonzero(row.nonzero) if row.first else "",
            ]
        )
    headings = ["run", "predictor", *(measure.heading for measure in measures)]
    headings += [f"Δ{primary.heading}", "interval", "against the base", "nonzero weights"]
    picked = split == dev_of(metrics) and len(runs_of(metrics)) > 1
    note = "The run was chosen by its score on this split." if picked else ""
    return TextTable(f"Results on {split}", headings, rows, texts=2, merged=True, chosen=chosen, note=note)


def _nonzero(spread: Spread | None) -> str:
    if spread is None:
        return ""
    return count(spread.mean) if spread.deviation is None else f"{count(spread.mean)} ±{count(spread.deviation)}"


def notes(metrics: Mapping[str, Any]) -> list[str]:
    """Notes that explain the numbers of the results tables."""
    rows = [row for split in splits_of(metrics) for row in result_rows(metrics, split, _SHOWN)]
    tests = dict.fromkeys(name.replace("_", " ") for row in rows if row.test for name in row.test.names)
    found = [f"Warning: {line}." for line in metrics.get("doubts", [])]
    if any(row.seeds > 1 for row in rows):
        found.append("± is the standard deviation over seeds; the other numbers of several seeds are means.")
    if tests:
        seeds = " Of several seeds: the widest interval, the largest p." if any(row.seeds > 1 for row in rows) else ""
        found.append(f"Δ, interval and verdict compare a predictor with the base ({', '.join(tests)}).{seeds}")
    if said := blind_note(metrics):
        found.append(said)
    return found


def signatures(metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(measure, signature) of the final figures, with the splits where their signatures differ."""
    by_split: Mapping[str, Mapping[str, str]] = metrics.get("signatures") or {}
    headings = {measure.key: measure.heading for measure in MEASURES}
    found = []
    for key in dict.fromkeys(key for own in by_split.values() for key in own):
        splits: dict[str, list[str]] = {}
        for split, own in by_split.items():
            if key in own:
                splits.setdefault(own[key], []).append(split)
        for text, names in splits.items():
            where = f" on {', '.join(names)}" if len(splits) > 1 else ""
            found.append((f"{headings.get(key, key)}{where}", text))
    return found


def _interval(test: Comparison | None, measure: Measure) -> str:
    return f"{measure.signed(test.interval[0])} to {measure.signed(test.interval[1])}" if test and test.interval else ""


def _certainty(test: Comparison | None, measure: Measure) -> str:
    if test is None:
        return "not tested"
    interval, found = _interval(test, measure), test.verdict(measure)
    return f"{found}; interval {interval}" if interval else found
