"""The report of a run over lists: everything that it shows, gathered, and some lists whose texts are read again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.data.shards import first_candidates, list_sizes, parts
from rerank.extraction.content import metric_of
from rerank.extraction.content.base import Pair
from rerank.extraction.extraction import Extracted
from rerank.metrics.oracle import list_gains, oracles
from rerank.models.inspection import shares
from rerank.models.model import Model
from rerank.models.scorer import Contribution, Scorer, rank
from rerank.readers.base import SkipCount, SkippedList
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data
from rerank.runs.learning import shown_curve
from rerank.runs.report import headline, list_tables
from rerank.runs.report.html import page
from rerank.runs.report.list_figures import (
    Curve,
    LearningCurve,
    coverage_figure,
    draw_figures,
    learning_figure,
    sweep_figure,
    training_figures,
)
from rerank.runs.report.measures import Measure, primary_of
from rerank.runs.report.numbers import count, fixed, reals
from rerank.runs.report.plot import Figure, write_figures
from rerank.runs.report.rows import decided_by, dev_of, splits_of
from rerank.runs.report.table import TextTable
from rerank.runs.report.trees import draw_example
from rerank.runs.report.words import mark_example
from rerank.runs.results import answers_written, environment
from rerank.runs.run import Run
from rerank.runs.stages import Metrics
from rerank.storage.files import write_text

FEATURES_SHOWN = 10
CANDIDATES = 1000  # of a list at most
TEXTS = ("translation", "speech", "ranking")  # tasks whose candidates are texts


@dataclass(frozen=True)
class Example:
    """One list of a split, shown in full.

    ``gold``, ``base`` and ``chosen`` are the reference, the generator's best candidate and the model's: bracketed trees
    for the task ``parse``, plain text for others, where ``gold`` has one reference per line. ``contributions``: those
    to the choice, the strongest first. ``source``: the input, where it is known.
    """

    split: str
    list_id: str
    gold: str
    base: str
    chosen: str
    base_gain: float
    chosen_gain: float
    oracle_gain: float
    contributions: Sequence[Contribution] = ()
    source: str | None = None
    candidates: TextTable | None = None
    columns: TextTable | None = None

    def parts(self, task: str, measure: Measure) -> dict[str, Any]:
        """The list as the page lays it out: its trees, or its texts with their differences, and its tables."""
        texts, trees = [], []
        if task in TEXTS:
            texts = mark_example(self.source, self.gold.splitlines(), self.base, self.chosen)
        elif task == "parse":
            trees = draw_example(self.gold, self.base, self.chosen, self.list_id)
        gains = {"base": self.base_gain, "chosen": self.chosen_gain, "oracle": self.oracle_gain}
        return {
            "list": self,
            "gains": [(f"{name} {gain_heading(measure)}", measure.gain(gain)) for name, gain in gains.items()],
            "drawings": trees,
            "texts": texts,
            "marks": any(piece.mark for text in texts for piece in text.pieces),
            "contributions": contributions_table(self.contributions),
        }


def choose_examples(base: np.ndarray, base_gain: np.ndarray, gain: np.ndarray, number: int, seed: int) -> list[int]:
    """Lists whose gain changed, two thirds of them for the better, drawn by seed; in the order of the corpus.

    base: int64 [L], candidates, -1 where there are none; base_gain, gain: float64 [L], of these and of what was chosen.
    """
    difference = np.where(base >= 0, gain - base_gain, 0.0)
    better, worse = np.flatnonzero(difference > 0), np.flatnonzero(difference < 0)
    rng = np.random.default_rng(seed)
    first = min(len(better), max(number - number // 3, number - len(worse)))
    picked = [*rng.permutation(better)[:first], *rng.permutation(worse)[: number - first]]
    return sorted(int(i) for i in picked)


class Answers(NamedTuple):
    """The answers of a split's lists: ``texts`` has one for every list of its files, ``gains`` (float64 [L])
    those of the corpus's lists."""

    texts: list[bytes]
    gains: np.ndarray


def look_again(
    recipe: ListRecipe, split: str, extracted: Extracted, model: Model, base: np.ndarray, chosen: np.ndarray,
    measure: Measure, answers: Answers | None = None,
) -> list[Example]:  # fmt: skip
    """Examples from a split, whose files are read up to the last of them.

    answers: what takes the place of the candidates ``chosen``, which contributions are still about.
    """
    corpus = extracted.corpus
    choices = {"base": base, "chosen": chosen, "oracle": oracles(corpus)}
    before, after = list_gains(corpus, base), list_gains(corpus, chosen) if answers is None else answers.gains
    picked = set(choose_examples(base, before, after, recipe.examples, recipe.seed))
    gains = {}  # of all candidates of a list
    for place, part in parts(corpus):
        for i in picked & set(range(place.lists, place.lists + part.list_count)):
            gains[i] = np.array(part.gain[slice(*part.lists[i - place.lists : i - place.lists + 2])])
    scorer = Scorer(model, recipe.predictor)
    firsts, sizes = first_candidates(corpus), list_sizes(corpus)
    examples: dict[int, Example] = {}
    lists = enumerate(scorer.content.read_again(recipe.data, split, extracted.ids, sizes)) if picked else ()
    for at, (i, nbest) in lists:
        if i not in picked or isinstance(nbest, SkippedList) or chosen[i] < 0:
            continue
        places = {name: int(choice[i] - firsts[i]) for name, choice in choices.items()}
        if (pair := scorer.content.pair(nbest, SkipCount("skip"))) is not None:
            examples[i] = _example(split, scorer, pair, places, gains[i], measure)
            if answers is not None:
                examples[i] = replace(examples[i], chosen=_text(answers.texts[at]), chosen_gain=float(after[i]))
        if i == max(picked):
            break
    return [examples[i] for i in sorted(examples)]


def _example(
    split: str, scorer: Scorer, pair: Pair, places: dict[str, int], gains: np.ndarray, measure: Measure
) -> Example:
    """One list in full; places: of the base candidate, the chosen one and the oracle in the list."""
    opened, nbest = scorer.opened(pair), pair.nbest
    base, chosen = places["base"], places["chosen"]
    texts, source, named = [_text(text) for text in nbest.texts], getattr(nbest, "source", None), nbest.named()
    return Example(
        split, nbest.id, scorer.content.gold_text(pair), texts[base], texts[chosen],
        base_gain=float(gains[base]), chosen_gain=float(gains[chosen]), oracle_gain=float(gains[places["oracle"]]),
        contributions=scorer.explain(opened, chosen, base)[:FEATURES_SHOWN],
        source=None if source is None else _text(source),
        columns=columns_table(named.names, named.scores[base], named.scores[chosen]),
        candidates=candidates_table(texts, scorer.scores(opened), nbest.base, gains, places, measure),
    )  # fmt: skip


def columns_table(names: Sequence[str], base: np.ndarray, chosen: np.ndarray) -> TextTable | None:
    """The scores that a list brings, of base and chosen side by side; None for a single one."""
    values = zip(names, base.tolist(), chosen.tolist(), strict=True)
    rows = [[name, *reals([first, second, second - first])] for name, first, second in values]
    headings = ["score", "base", "chosen", "chosen − base"]
    return TextTable("Scores of the list", headings, rows) if len(rows) > 1 else None


def candidates_table(
    texts: Sequence[str], scores: np.ndarray, base: np.ndarray, gains: np.ndarray, places: Mapping[str, int],
    measure: Measure,
) -> TextTable:  # fmt: skip
    """The candidates of a list in the model's order; ``places``: by role, which of them has it."""
    order = rank(scores, base)[:CANDIDATES]
    rows = list[list[str]]()
    shown = order.tolist(), reals(scores[order].tolist()), reals(base[order].tolist())
    for place, score, by_base in zip(*shown, strict=True):
        roles = ", ".join(role for role, other in places.items() if other == place)
        rows.append([str(len(rows) + 1), roles, texts[place], score, by_base, measure.gain(float(gains[place]))])
    left = len(texts) - len(rows)
    note = f"{count(left)} more candidates are not shown." if left else ""
    headings = ["rank", "which", "candidate", "score", "base score", gain_heading(measure)]
    return TextTable("Candidates by the model's score", headings, rows, texts=3, note=note, style="long-3")


def contributions_table(parts: Sequence[Contribution]) -> TextTable | None:
    """The strongest contributions, each with its bar."""
    amounts = [part.amount for part in parts]
    weights, differences = [part.weight for part in parts], [part.value - part.other for part in parts]
    names = [part.feature for part in parts]
    rows = list(zip(names, reals(weights), reals(differences), reals(amounts), strict=True))
    headings = ["feature", "weight", "chosen − base", "contribution"]
    caption = "Strongest contributions to the choice"
    return TextTable(caption, headings, rows, style="contributions", bars=amounts) if rows else None


def gain_heading(measure: Measure) -> str:
    """The name of a candidate's gain."""
    return "gain" if measure.lower_is_better else measure.heading


def _text(text: bytes) -> str:
    return text.decode("utf-8", "replace")


CHANGES = "Lists whose chosen candidate is better or worse than the base candidate"
SAME = 1e-12  # gains that are this close are equal
STRONGEST, TEMPLATES, NAMED = 20, 25, 3  # rows of the tables of weights, and features named for a template


@dataclass(frozen=True)
class Report:
    """Everything that the report of a run over lists shows.

    Parameters
    ----------
    metrics: the content of metrics.json; ``runs`` holds all runs of the recipe, the top level the chosen one. A run's
        name and seed identify it; runs with one name and one learner are taken to be the same run with several seeds.
        ``dev_split`` names the split that runs are chosen on, if that is not "dev"; a run's ``dev`` is its score there.
    recipe: the resolved recipe, as YAML.
    date: when the run ended; ``seconds``: how long it took. environment: lines about machine, Python and libraries.
    curves: one for every run that kept a history. figures: those that the recipe asks for.
    changes: how many lists got better or worse; weights: of the model.
    learning: how results depend on the number of training lists.
    """

    metrics: dict[str, Any]
    recipe: str
    date: datetime
    seconds: float
    curves: Sequence[Curve] = ()
    figures: Sequence[Figure] = ()
    examples: Sequence[Example] = ()
    environment: Sequence[str] = ()
    changes: TextTable | None = None
    weights: Sequence[TextTable] = ()
    learning: LearningCurve | None = None


def write_page(
    recipe: ListRecipe, directory: Path, data: Data, model: Model, runs: list[Run], chosen: Run, metrics: Metrics,
    seconds: float,
) -> None:  # fmt: skip
    """Write the report, with a closer look at every test split, and the figures, which ``metrics`` then has as
    numbers."""
    measure, curves = primary_of(metrics), [run.curve() for run in runs]
    figures = draw_figures(recipe, metrics, curves)
    write_figures(directory, figures, metrics)
    examples: list[Example] = []
    changes: list[dict[str, str]] = []
    for split in recipe.data.tests:
        extracted, choices, served = data.others[split], chosen.choices[split], decided_by(metrics)
        both = choices["base"], choices.get(served, choices[recipe.predictor])
        answers = None
        if served not in choices:
            found = chosen.selections[split]
            gains_of_answers = metric_of(recipe).gain(found.rows[served], found.reference)
            answers = Answers(answers_written(directory, split), gains_of_answers)
        examples += look_again(recipe, split, extracted, model, *both, measure, answers)
        gains = [list_gains(extracted.corpus, choice) for choice in both]
        if answers is not None:
            gains[1] = answers.gains
            rows = chosen.selections[split].rows
            both = both[0], np.where((rows[served] == rows["base"]).all(axis=1), both[0], -2)
        changes.append(changes_row(split, *both, gains))
    report = Report(
        metrics, recipe.as_yaml(), datetime.now().astimezone(), seconds, curves, figures, examples, environment(),
        changes=TextTable.of(CHANGES, changes) if changes else None, weights=weight_tables(model, recipe.predictor),
        learning=shown_curve(metrics.get("curve") or {}, measure, dev_of(metrics)),
    )  # fmt: skip
    write_text(directory / "report.html", render(report))


def render(report: Report) -> str:
    """The page of a run over lists."""
    metrics = report.metrics
    measure, task = primary_of(metrics), str(metrics.get("task", ""))
    return page(
        "lists.html.j2",
        metrics,
        recipe=report.recipe,
        date=report.date,
        seconds=report.seconds,
        environment=report.environment,
        runs="run",
        summary=headline.headline(metrics),
        results=[
            *(headline.results_on_page(metrics, split) for split in splits_of(metrics)),
            *list_tables.coverage_tables(metrics),
        ],
        notes=headline.notes(metrics),
        steps=headline.next_steps(metrics),
        account=metrics.get("account", {}).items(),
        reported=list_tables.reported_table(metrics),
        figures=[*report.figures, coverage_figure(metrics)],
        signature=metrics.get("metric"),
        signatures=headline.signatures(metrics),
        changes=report.changes,
        weights=report.weights,
        examples=[example.parts(task, measure) for example in report.examples],
        curves=training_figures(report.curves, metrics),
        learning=[learning_figure(report.learning, measure), sweep_figure(metrics)],
        tables=[table(metrics) for table in list_tables.TRAINING],
        bound=list_tables.bound(metrics),
        data=[table(metrics) for table in list_tables.DATA],
    )


def changes_row(split: str, base: np.ndarray, chosen: np.ndarray, gains: Sequence[np.ndarray]) -> dict[str, str]:
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


def weight_tables(model: Model, predictor: str) -> list[TextTable]:
    """The strongest weights, and the share of all weights that each template has; none for a model without weights."""
    w = model.weights[predictor].strength
    if not np.any(w):
        return []
    order = np.argsort(-np.abs(w), kind="stable")[:STRONGEST]
    order = order[w[order] != 0.0]
    names = [model.table.name(int(j)) for j in order]
    rows = list(zip(names, reals(w[order].tolist()), strict=True))
    note = "A weight is for one unit of its feature: weights of scores depend on what these are measured in."
    return [TextTable("Strongest weights", ["feature", "weight"], rows, note=note), _shares_table(model, predictor)]


def _shares_table(model: Model, predictor: str) -> TextTable:
    """Every template with its share of the sum of all weights' sizes."""
    weighted = [share for share in shares(model, predictor, NAMED) if share.nonzero]
    rows = [
        {
            "template": share.template,
            "its strongest": "; ".join(
                f"{name.removeprefix(f'{share.template}|')} {reals([w])[0]}" for name, w in share.strongest
            ),
            "share of weights": f"{fixed(100 * share.share, 1)} %",
            "nonzero weights": count(share.nonzero),
            "columns": count(share.columns),
        }
        for share in weighted[:TEMPLATES]
    ]
    left = len(weighted) - TEMPLATES
    note = f"{left} more templates have smaller shares." if left > 0 else ""
    return TextTable.of("Templates", rows, texts=2, note=note, style="long-2")
