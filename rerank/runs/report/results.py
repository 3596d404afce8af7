"""The tables that page and terminal make of metrics.json: results, choice, training, data, a paper's numbers.

Runs that differ only in the seed form one group, and their numbers are one mean with a standard deviation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from rerank.runs.report.table import (
    NONE,
    Bar,
    Measure,
    Spread,
    TextTable,
    count,
    duration,
    fixed,
    measures_of,
    p_value,
    primary_of,
)

PREDICTORS = ("average", "voted", "mert", "mbr", "fuse", "learned")
BASELINES = {  # what runs are compared with: its name, and the predictor
    "base": ("base", ""),
    "first": ("first candidate", ""),
    "oracle": ("oracle", ""),
    "reranked": ("reranked", ""),
    "logistic": ("dense columns alone", "logistic"),
}
SIGNIFICANT_BELOW = 0.05  # the p
TESTS_OF_MEASURE = ("approximate_randomization", "paired_bootstrap")  # whose difference is that of corpus scores
SIZES = {  # headings of what is counted in the data, whatever they are of
    "lists": "lists", "candidates": "candidates", "sentences": "sentences", "tokens": "tokens", "labels": "labels",
    "examples": "examples", "test_examples": "tested", "nonzeros": "nonzeros", "columns": "feature columns",
    "splits": "divisions",
}  # fmt: skip
SKIP_COUNTS = {"skipped": "left out", "skipped_candidates": "candidates left out"}  # and of counts by reason
Metrics = Mapping[str, Any]


def verdict(test: Mapping[str, Any] | None, *, lower_is_better: bool = False, amount: str = "") -> str:
    """The outcome of a test of A against B: a phrase that says how A is; empty without one.

    test: ``difference`` (of A from B), ``p`` and ``test``, as in metrics.json or by ``compare_with_base``.
    lower_is_better: a property of the measure, which the resampling tests compare; the differences of the other tests
    are in gains and in right answers. amount: the size of the difference in the measure, with its name.

    >>> verdict({"test": "paired_bootstrap", "difference": 0.0153, "p": 0.0001}, amount="1.53 F")
    '1.53 F better, p < .001'
    >>> verdict({"test": "mcnemar", "difference": -0.02, "p": 0.005})
    'worse, p .005'
    >>> verdict({"test": "paired_bootstrap", "difference": 0.001, "p": 0.43}, amount="0.10 F")
    'the difference is not significant, p .430'
    """
    if test is None:
        return ""
    chance, difference = f"p {p_value(test['p'])}", test["difference"]
    if not test["p"] < SIGNIFICANT_BELOW:
        return f"{'the difference is ' if amount else ''}not significant, {chance}"
    if difference == 0:
        return f"the seeds disagree, {chance}"
    of_measure = test["test"] in TESTS_OF_MEASURE
    better = (difference < 0) == (lower_is_better and of_measure)
    return f"{f'{amount} ' if amount and of_measure else ''}{'better' if better else 'worse'}, {chance}"


def _interval(test: Mapping[str, Any] | None, measure: Measure) -> str:
    return " to ".join(map(measure.signed, test["interval"])) if test and test["interval"] else ""


def value_at(tree: Mapping[str, Any], *path: str) -> Any:
    """The value that nested mappings hold at ``path``; None where it ends."""
    value: Any = tree
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def groups_of(metrics: Metrics) -> dict[str, list[Metrics]]:
    """The runs of each name, seed by seed, in the order of the first of each."""
    groups = dict[str, list[Metrics]]()
    for run in metrics["runs"]:
        groups.setdefault(run["name"], []).append(run)
    return groups


def spread_of(runs: Sequence[Metrics], *path: str) -> Spread | None:
    """A number of runs, over the seeds that have it; None if none has."""
    values = [value for run in runs if (value := value_at(run, *path)) is not None]
    return Spread.of(values) if values else None


def ranking_predictor(runs: Sequence[Metrics]) -> str:
    """The predictor whose scores rank lists in these runs."""
    return str(runs[0].get("ranked_by", PREDICTORS[0]))


def main_score(runs: Sequence[Metrics], split: str, key: str) -> Spread | None:
    """The score of what MERT has tuned, where there is that, else of the predictor that ranks the lists of the runs."""
    predictors = "mert", ranking_predictor(runs)
    return next(filter(None, (spread_of(runs, "splits", split, name, key) for name in predictors)), None)


def dev_of(metrics: Metrics) -> str:
    """The name of the split that runs are chosen on: what ``metrics`` says under ``dev_split``, else "dev"."""
    return str(metrics.get("dev_split") or "dev")


def splits_of(metrics: Metrics) -> list[str]:
    """The splits with results, test splits before dev and train."""
    last = {"train": 2, dev_of(metrics): 1}
    return sorted(metrics.get("splits", {}), key=lambda split: last.get(split, 0))


class Row(NamedTuple):
    """A line of a results table: name and predictor (empty for baselines), scores by measure, the primary one less the
    base's, what ``compare_with_base`` gives, and the runs that it is of, one for each seed; none for baselines."""

    name: str
    predictor: str
    scores: Mapping[str, Spread | None]
    difference: float | None
    test: Mapping[str, Any] | None
    runs: Sequence[Metrics] = ()


def result_rows(metrics: Metrics, split: str) -> Iterator[Row]:
    """The lines of the results on ``split``: BASELINES, ways to choose that need no training where candidates have
    answers (``runs.vote``), and the PREDICTORS of each group; before these "last", where it ranks the lists of the run.
    """
    votes = {name: (name, "") for name in value_at(metrics, "training", "votes", split) or ()}
    lines = [(label, by, name, [metrics]) for name, (label, by) in (BASELINES | votes).items()]
    for name, runs in groups_of(metrics).items():
        predictors = (*(["last"] if ranking_predictor(runs) == "last" else []), *PREDICTORS)
        lines += [(name, predictor, predictor, runs) for predictor in predictors]
    primary = primary_of(metrics).key
    base = value_at(metrics, "splits", split, "base", primary)
    for label, by, name, runs in lines:
        group = [run for run in runs if value_at(run, "splits", split, name) is not None]
        alike = all(value_at(run, "alike", split, name) for run in runs)  # it chooses as another one does
        if not group or (alike and name != metrics["predictor"]):
            continue
        keys = {key for run in group for key in run["splits"][split][name]}
        scores = {key: spread_of(group, "splits", split, name, key) for key in keys}
        score, test = scores.get(primary), compare_with_base(runs, split, name)
        trained = () if runs[0] is metrics else group
        difference = score.mean - base if score and base is not None and (test or trained) else None
        yield Row(label, by, scores, difference, test, trained)


def compare_with_base(runs: Sequence[Metrics], split: str, predictor: str) -> dict[str, Any] | None:
    """The test of one predictor of some runs against the base, as in metrics.json; None if there is none.

    Over several seeds: the largest p, the widest interval and the mean of the differences, which is 0 where these
    disagree about its sign. An interval of something else than the measure, as with McNemar's test, is None.
    """
    tests = [test for run in runs if (test := value_at(run, "significance", split, f"{predictor}_vs_base"))]
    if not tests:
        return None
    name, differences = str(tests[0].get("test", "")), [float(test["difference"]) for test in tests]
    lows, highs = zip(*(test["interval"] for test in tests), strict=True)
    agree = len(tests) == 1 or min(differences) * max(differences) > 0
    interval = (min(lows), max(highs)) if name in TESTS_OF_MEASURE else None
    mean = fmean(differences) if agree else 0.0
    return {"test": name, "difference": mean, "p": max(test["p"] for test in tests), "interval": interval}


def results_table(metrics: Metrics, split: str, *, narrow: bool = False) -> TextTable:
    """The results on a split; the rows of one run form a group, intervals of differences are bars; ``narrow``: without
    them."""
    primary, rows = primary_of(metrics), list(result_rows(metrics, split))
    keys = {key for systems in metrics["splits"].values() for report in systems.values() for key in report}
    measures = [measure for key, measure in measures_of(metrics).items() if key in keys]
    lines, best, bars, name, chosen = list[dict[str, str]](), set[tuple[int, int]](), list[Bar | None](), "", None
    for index, row in enumerate(rows):
        if first := index == 0 or (row.name, bool(row.runs)) != (rows[index - 1].name, bool(rows[index - 1].runs)):
            name = row.name if len(row.runs) < 2 else f"{row.name} ({len(row.runs)} seeds)"
        if any(metrics["chosen"].items() <= run.items() for run in row.runs):
            chosen = name
            if metrics["predictor"] == row.predictor:  # what the headline is about
                best = {(index, k) for k in range(1, 5)}
        nonzero = spread_of(row.runs, "training", "nonzero_weights") if first else None
        lines.append(
            {
                "run": name,
                "predictor": row.predictor,
                primary.heading: primary.spread(row.scores.get(primary.key)),
                "Δ base": "" if row.difference is None else primary.signed(row.difference),
                "against the base": verdict(row.test, lower_is_better=primary.lower_is_better),
                "interval": "" if narrow else _interval(row.test, primary),
                **{measure.heading: measure.spread(row.scores.get(measure.key)) for measure in measures},
                "nonzero weights": count(nonzero.mean) if nonzero else "",
            }
        )
        interval = row.test and row.test["interval"]
        bars.append(Bar(interval[0], interval[1], row.difference) if interval else None)
    several = split == dev_of(metrics) and len(metrics["runs"]) > 1
    note, bars = "The run was chosen by its score on this split." if several else "", bars if any(bars) else []
    caption = f"Results on {split}"
    return TextTable.of(
        caption, lines, texts=2, merged=True, highlight=chosen, best=best, note=note, bars=bars, front=4
    )


def headline(metrics: Metrics) -> dict[str, Any] | None:
    """Base, chosen run and oracle on the first test split, as tiles and one sentence; None without one."""
    measure, predictor = primary_of(metrics), metrics.get("predictor", "")  # a task of somebody's own may have none
    split = next(iter(splits_of(metrics)), "")
    base, score, oracle = (
        value_at(metrics, "splits", split, name, measure.key) for name in ("base", predictor, "oracle")
    )
    if base is None or score is None:
        return None
    winner, runs = metrics["chosen"], len(metrics["runs"])
    test = compare_with_base([metrics], split, predictor)
    judge = partial(verdict, test, lower_is_better=measure.lower_is_better)
    room = 0.0 if oracle is None else oracle - base
    share = f"; {100 * (score - base) / room:.0f} % of the way from base to oracle" if measure.better(room) > 0 else ""
    columns = max((entry.get("columns") or 0 for entry in metrics.get("corpora", {}).values()), default=0)
    weights = count(metrics.get("training", {}).get("nonzero_weights"))
    interval = _interval(test, measure)
    tiles = [
        (f"Base {measure.heading}", measure.text(base), f"without a reranker, on {split}"),
        (f"Model {measure.heading}", measure.text(score), f"{winner['name']}, {predictor} predictor"),
        (
            "Difference", measure.signed(score - base),
            (judge() or "not tested") + (f"; interval {interval}" if interval else ""),
        ),
        (f"Oracle {measure.heading}", measure.text(oracle), f"the best possible choice{share}"),
        ("Nonzero weights", weights, f"of {count(columns)} feature columns" if columns else ""),
    ]  # fmt: skip
    choice = f", the best of {runs} runs on {dev_of(metrics)}," if runs > 1 else ""
    outcome = judge(amount=f"{measure.text(abs(score - base))} {measure.name}")
    sentence = (
        f"On {split}, {winner['name']} (seed {winner['seed']}){choice} reaches {measure.name} {measure.text(score)} "
        f"with its {predictor} predictor; the base has {measure.text(base)}{f': {outcome}' if outcome else ''}."
    )
    notes = metrics.get("second"), metrics.get("base_doubt"), base_warning(metrics), exact_match_loss(metrics, split)
    return {"tiles": tiles, "sentence": " ".join(filter(None, [sentence, *notes]))}


def base_warning(metrics: Metrics) -> str:
    """A warning where the chosen run did not beat the base on the lists that epochs, or what a batch learner learns
    from, were chosen by; else ""."""
    training, measure = metrics.get("training", {}), primary_of(metrics)
    base, folds = training.get("base") or {}, training.get("columns") or {}
    if base.get("beaten") is not False or "mert" in training:  # MERT weighs the base score again
        return ""
    if held_out := folds.get("lists"):
        outcome = f"Nothing beat the base on {held_out} training lists held out in turn"
    else:
        outcome = f"No epoch beat the base on {base['split']}"
    outcome += f" ({measure.name} {measure.text(folds['base'] if held_out else base['dev'])})"
    if use := (training.get("decode") or {"use": ""})["use"]:
        dev = training["decode"][use]["dev"]
        if measure.better(dev - (folds["base"] if held_out else base["dev"])) > 0:
            return f"{outcome} by its best candidates; with {use} it reaches {measure.text(dev)} there."
    if base["kept"]:
        return f"{outcome}: the model is the base itself."
    if held_out:
        return f"{outcome}: the model may be no better than the base itself."
    return f"{outcome}: this model does harm there; `base: auto` finds the weight of the base score."


def exact_match_loss(metrics: Metrics, split: str) -> str:
    """The entirely right trees that a decision which makes trees of its own gives up; empty where it gives up none."""
    decision = metrics.get("decision") or {}
    by, best = ((metrics["splits"][split].get(decision.get(key)) or {}) for key in ("predictor", "ranked_by"))
    exact = [scores["exact_match"] for scores in (by, best) if "exact_match" in scores]
    if len(exact) < 2 or exact[0] >= exact[1]:
        return ""
    trees, candidates = (fixed(100 * value, 1) for value in exact)
    who = f"{decision['predictor']} gives that up"
    return f"Of its trees {trees} % are entirely right, of the best candidates {candidates} %: {who}."


def blind_note(metrics: Metrics) -> str:
    """The figures that are blind, and the split that each choice was made on; empty where ``metrics`` does not say."""
    blind = metrics.get("blind")
    if not blind:
        return ""
    choices = "; ".join(f"on {split}: {', '.join(what)}" for split, what in blind["chosen_on"].items())
    tests = ", ".join(blind["splits"])
    figures = f"Blind figures: the chosen settings on {tests}" if tests else "No figure is blind"
    warning = "The program cannot know of choices made by looking at test figures before this run."
    return f"{figures}. Chosen {choices}. {warning}"


def notes(metrics: Metrics) -> list[str]:
    """Notes that explain the numbers of the results tables."""
    rows = [row for split in splits_of(metrics) for row in result_rows(metrics, split)]
    tests = dict.fromkeys(row.test["test"].replace("_", " ") for row in rows if row.test)
    several = any(len(row.runs) > 1 for row in rows)
    lines = [*(f"Warning: {line}." for line in metrics.get("doubts", [])), cross_validation_note(metrics)]
    if several:
        lines.append("± is the standard deviation over seeds; the other numbers of several seeds are means.")
    if tests:
        seeds = " Of several seeds: the widest interval, the largest p." if several else ""
        lines.append(
            "Base: what one has without a reranker; oracle: the best possible choice. Δ, interval and verdict compare "
            f"a row with the base ({', '.join(tests)}): p is how often chance alone makes so large a difference, and "
            f"the interval covers 95 % of resampled tests.{seeds}"
        )
    return [*filter(None, [*lines, blind_note(metrics)])]


def cross_validation_note(metrics: Metrics) -> str:
    """The note on figures of training lists; empty where there are none."""
    scheme = f"are cut into {metrics.get('folds')} sections, and what was learned from the others is tried on each"
    what = f"the {metrics.get('unit', 'lists')} of {', '.join(splits_of(metrics))}"
    return f"Cross-validated: {what} {scheme}; the model learns from all of them." if metrics.get("folds") else ""


def signatures(metrics: Metrics) -> list[str]:
    """The signatures of the final figures, a line for each, with the splits where those of a measure differ."""
    measures, lines = measures_of(metrics), list[str]()
    by_key = dict[str, dict[str, list[str]]]()  # the splits by measure and signature
    for split, texts in (metrics.get("signatures") or {}).items():
        for key, text in texts.items():
            by_key.setdefault(key, {}).setdefault(text, []).append(split)
    for key, splits in by_key.items():
        name = measures[key].heading if key in measures else key
        lines += [
            f"{name} on {', '.join(on)}: {text}" if len(splits) > 1 else f"{name}: {text}"
            for text, on in splits.items()
        ]
    return lines


def choice_table(metrics: Metrics) -> TextTable:
    """One line for all settings that were tried on the lists set apart; no lines where none were."""
    choice = metrics.get("choice")
    if not choice:
        return TextTable("", (), ())
    measure, seeds = primary_of(metrics), choice["points"][0]["seeds"]
    rows = [
        {
            "settings": point["name"],
            "near the best": "yes" if point["near"] else "",
            measure.heading: measure.text(point["score"]),
            "interval": "[{}, {}]".format(*map(measure.text, point["interval"])),
            "difference": "best" if point["name"] == choice["best"] else
            f"{measure.signed(point['difference'])} ±{measure.text(point['error'])}",
            f"{measure.heading} on dev": measure.text(point["dev"]),
            "length": fixed(point["report"].get("length_ratio"), 3),
            "nonzero weights": count(point["nonzero_weights"]),
        }
        for point in choice["points"]
    ]  # fmt: skip
    note = (
        f"Chosen: {choice['chosen']}, the fewest weights of those within one standard error (±) of the best. Means of "
        f"{seeds} seed{'s' if seeds > 1 else ''}; intervals and errors are over lists and seeds."
    )
    caption = f"Settings on {choice['lists']:,} training lists set apart"
    bars = [Bar(low, high, point["score"]) for point in choice["points"] for low, high in [point["interval"]]]
    return TextTable.of(caption, rows, texts=2, highlight=choice["chosen"], note=note, bars=bars, from_zero=False)


def corpora_table(corpora: Metrics) -> TextTable:
    """The sizes of the splits, or sets."""
    rows = list[dict[str, str]]()
    for name, entry in corpora.items():
        row = {"data": name} | {heading: count(entry.get(key)) for key, heading in SIZES.items()}
        for key, heading in SKIP_COUNTS.items():
            row[heading] = count(sum(entry[key].values()) if key in entry else None)
        classes = ", ".join(f"{label}: {number:,}" for label, number in entry.get("classes", {}).items())
        rows.append(row | {"examples of each class": classes, "time to build": duration(entry.get("seconds"))})
    return TextTable.of("Sizes", rows)


def reported_table(metrics: Metrics) -> TextTable | None:
    """One line per row of the paper, every measure of ours beside the paper's; None for a recipe without any.

    A measure is a key, of the first test split, or ``split.key``. Rows that are no run of ours have no number of it.
    """
    entry = metrics.get("reported")
    if not entry:
        return None
    rows: Mapping[str, Metrics] = entry["rows"]
    groups, lines = groups_of(metrics), [{"run": name} for name in rows]
    measures, first = measures_of(metrics), next(iter(splits_of(metrics)), "")
    for key in dict.fromkeys(key for row in rows.values() for key in row):
        split, dot, name = key.rpartition(".")
        measure = measures.get(name)
        heading = measure.heading if measure else name.replace("_", " ")
        heading = f"{split} {heading}" if dot else heading
        for line, (run, row) in zip(lines, rows.items(), strict=True):
            runs, ours, paper = groups.get(run), "", row.get(key)
            if measure is not None and run in BASELINES:
                ours = measure.text(value_at(metrics, "splits", split or first, run, name))
            elif measure is not None and runs:
                ours = measure.spread(main_score(runs, split or first, name))
            elif runs and (spread := spread_of(runs, "training", name)) is not None:
                ours = fixed(spread.mean, 1) if name == "seconds" else count(spread.mean)
            if paper is not None and not isinstance(paper, str):  # other values in percent if they are fractions
                share = f"{100 * paper:.2f}" if abs(paper) <= 1 else count(paper)
                paper = share if measure is None else measure.text(paper)
            line |= {heading: ours or NONE, f"{heading} (paper)": paper or NONE}
    table = TextTable.of(f"Ours beside the paper's: {entry['source']}", lines)
    headings = ["paper" if heading.endswith(" (paper)") else heading for heading in table.headings]
    return replace(table, headings=headings)
