"""The results of a run over lists: predictions, and a page of results, choice, lists that changed, weights, data."""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.progress import track
from rerank.extraction.content import Content, Description
from rerank.extraction.extraction import Extracted
from rerank.extraction.kinds import metric_of
from rerank.learn.base import Weights
from rerank.learn.scoring import scores
from rerank.metrics.oracle import list_gains, oracles
from rerank.models.model import Model
from rerank.models.scorer import Contribution, Scorer, led, rank
from rerank.readers.base import ListWriter, Problem, SkipCount
from rerank.readers.lists import Lists
from rerank.recipes.recipe import ListRecipe
from rerank.runs.compared import FILE
from rerank.runs.report import page
from rerank.runs.report import results as tables
from rerank.runs.report.differences import KEY, compare_texts, compare_trees
from rerank.runs.report.page import Folded, PageSection, Part
from rerank.runs.report.table import Bar, Measure, TextTable, count, fixed, primary_of, reals
from rerank.runs.run import Run
from rerank.storage.compressed import open_output
from rerank.storage.documents import as_json
from rerank.storage.outputs import output_file

# In ``predictions``, of a split: by ``write_predictions``, ``Compared.save`` and, one of two, ``write_answers``.
PREDICTIONS = "{}.nbest.gz", FILE, "{}.decoded.gz", "{}.decoded.jsonl.gz"
MAX_FEATURES = 10  # that decided a list
SAME_GAIN = 1e-12  # gains that are this close are equal
MAX_WEIGHTS = 20  # rows of a table


def prediction_file(directory: Path, split: str, number: int) -> Path:
    """The path of one of the PREDICTIONS of a split, in a folder that is there."""
    target = output_file(directory, "predictions", PREDICTIONS[number].format(split))
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def write_answers(directory: Path, split: str, answers: list[bytes]) -> None:
    """The answers that lists are decoded to, one per line; as JSON strings where one has line ends."""
    plain = not any(b"\n" in text or b"\r" in text for text in answers)
    with open_output(prediction_file(directory, split, 2 if plain else 3)) as out:
        for text in answers:
            out.write((text if plain else as_json(text.decode("utf-8", "surrogatepass")).encode()) + b"\n")


class Answers(NamedTuple):
    """The answers of a run to the lists of a split, compared with its base candidates.

    base, chosen: int64 [L], candidates of the corpus, -1 for none; the features of ``chosen`` tell why. before, after,
    best: float64 [L], the gains of base candidates, of answers and of the oracle. changed: bool [L], where the answer
    is not the base candidate. texts: of all lists of the files, where answers may be no candidates. examples: the lists
    that the page shows in full, by number in the corpus, each with its number in the files once that has been read.
    """

    base: np.ndarray
    chosen: np.ndarray
    before: np.ndarray
    after: np.ndarray
    best: np.ndarray
    changed: np.ndarray
    texts: list[bytes] | None
    examples: dict[int, tuple[int, Lists] | None]


def answers_of(recipe: ListRecipe, split: str, extracted: Extracted, run: Run, decoded: list[bytes] | None) -> Answers:
    """The answers of a run to a split, of which the page shows up to ``recipe.examples`` that are better and as many
    that are worse, drawn by its seed; decoded: their texts, where lists are decoded."""
    corpus, choices, use = extracted.corpus, run.choices[split], run.decision.predictor
    base, chosen = choices["base"], choices.get(use, choices[recipe.predictor])
    before, best = list_gains(corpus, base), list_gains(corpus, oracles(corpus))
    if use in choices:
        after, changed, texts = list_gains(corpus, chosen), chosen != base, None
    else:
        rows, reference = run.selections[split].rows, run.selections[split].reference
        after, changed = metric_of(recipe).gain(rows[use], reference), (rows[use] != rows["base"]).any(axis=1)
        texts = [text.strip() for text in decoded or []]
    difference, rng = np.where((base >= 0) & (chosen >= 0), after - before, 0.0), np.random.default_rng(recipe.seed)
    sides = (rng.permutation(np.flatnonzero(sign * difference > SAME_GAIN)) for sign in (1, -1))
    examples = sorted(int(i) for side in sides for i in side[: recipe.examples])
    return Answers(base, chosen, before, after, best, changed, texts, dict.fromkeys(examples))


def write_predictions(
    recipe: ListRecipe, directory: Path, split: str, extracted: Extracted, model: Model, chosen: Run, answers: Answers
) -> Description:
    """A test split in the input's own format: the model's choice if it is a candidate, then the others by score.

    Its lists are read once, also for ``describe`` and for the examples, which are put into ``answers``.
    """
    scorer = Scorer(model)
    lists = scorer.content.read_again(recipe.data, split, extracted.ids, np.diff(extracted.corpus.lists))
    with open_output(prediction_file(directory, split, 0)) as out:
        writer = ListWriter(out, scorer.reader)
        weights, first = chosen.weights[recipe.predictor], chosen.answers.get(split)
        passed = _written(writer, scorer, lists, extracted, weights, first, answers.examples)
        passed = track(passed, f"predict {split}", total=extracted.corpus.list_count)
        described = describe(split, passed, extracted, chosen, scorer.content)
        deque(passed, maxlen=0)  # what nothing has asked for
        writer.finish()
    return described


def _written(
    writer: ListWriter, scorer: Scorer, lists: Iterable[tuple[int, Lists]], extracted: Extracted, weights: Weights,
    first: np.ndarray | None, examples: dict[int, tuple[int, Lists] | None],
) -> Iterator[tuple[int, Lists]]:  # fmt: skip
    """All lists of a split, each of which is written on the way: its candidates by the scores that ``weights`` give in
    the corpus, after that in ``first`` (int64 [L], -1 for none), if it is given. The ``examples`` are kept.

    Scores are those of features' plain values, so that lists can be compared: see ``Extracted``. A list that the corpus
    lacks, since its reference cannot be used, is scored by the model itself; bad ones keep their places.
    """
    starts, scored = extracted.corpus.lists, scores(extracted.corpus, weights)
    added = np.zeros(starts.size - 1)
    if extracted.origins is not None:
        added = scores(extracted.origins, Weights(weights.w, 0.0))
    for in_files, (number, nbest) in enumerate(lists):
        if number in examples:
            examples[number] = in_files, nbest
        if number < 0 or nbest.problem is not None:
            for ranked in scorer.rank([scorer.open(nbest)]):
                if isinstance(ranked, Problem):
                    writer.bad(ranked)
                else:
                    writer.good(ranked.nbest, [int(y) for y in ranked.order], ranked.scores)
        else:
            start = int(starts[number])
            by_weights = scored[start : starts[number + 1]]
            place = None if first is None or first[number] < 0 else int(first[number] - start)
            order = led(rank(by_weights, nbest.base), place)
            writer.good(nbest, [int(y) for y in order], by_weights + added[number])
        yield number, nbest


def describe(
    split: str, lists: Iterable[tuple[int, Lists]], extracted: Extracted, chosen: Run, content: Content[Any]
) -> Description:
    """What needs the texts of the chosen run's choices from a split, whose ``lists`` are read where something does."""
    first = extracted.corpus.lists[:-1]
    places = {name: np.where(choice >= 0, choice - first, -1) for name, choice in chosen.choices[split].items()}
    return content.describe(split, lists, places)


@dataclass(frozen=True)
class Example:
    """A list in full.

    gold, base, chosen: reference, generator's best candidate and answer: bracketed trees for the task ``parse``, plain
    text for others, where ``gold`` has one reference per line. contributions: those to the choice, the strongest first.
    source: the input, where it is known.
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

    def folded(self, task: str, measure: Measure, *, open: bool = False) -> Folded:
        """The list as the page has it: what differs, and the features that decided."""
        if task == "parse":
            candidates = compare_trees(self.gold, self.base, self.chosen, self.list_id)
        else:
            candidates = compare_texts(self.source, self.gold.splitlines(), self.base, self.chosen)
        heading = "gain" if measure.lower_is_better else measure.heading
        gains = {"base": self.base_gain, "chosen": self.chosen_gain, "oracle": self.oracle_gain}
        numbers = ", ".join(f"{name} {measure.gain(gain)}" for name, gain in gains.items())
        parts = self.contributions
        names, amounts = [part.feature for part in parts], [part.amount for part in parts]
        weights, apart = reals([part.weight for part in parts]), reals([part.value - part.other for part in parts])
        deciding = TextTable(
            "Features that decided; above zero for the chosen candidate",
            ["feature", "weight", "chosen − base", "contribution"],
            [*zip(names, weights, apart, reals(amounts), strict=True)], bars=[*map(Bar.of, amounts)],
        )  # fmt: skip
        return Folded(f"{self.list_id} ({self.split}) · {heading}: {numbers}", [candidates, deciding], open=open)


def examples_of(scorer: Scorer, split: str, extracted: Extracted, answers: Answers) -> Iterator[Example]:
    """The lists of a split that were kept, in full."""
    for i, (number, nbest) in ((i, kept) for i, kept in answers.examples.items() if kept is not None):
        pair = scorer.content.pair(nbest, SkipCount("skip")) if nbest.problem is None else None
        if pair is None:
            continue
        base, chosen = (int(choice[i] - extracted.corpus.lists[i]) for choice in (answers.base, answers.chosen))
        before, after, best = (float(gain[i]) for gain in (answers.before, answers.after, answers.best))
        written = pair.nbest.texts[chosen] if answers.texts is None else answers.texts[number]
        why = scorer.explain(pair, chosen, base)[:MAX_FEATURES]
        texts = pair.nbest.texts[base], written, pair.nbest.source or b""
        first, last, source = (text.decode("utf-8", "replace") for text in texts)
        about = why, None if pair.nbest.source is None else source
        yield Example(split, pair.nbest.id, scorer.content.gold_text(pair), first, last, before, after, best, *about)


def list_sections(
    metrics: Mapping[str, Any],
    *,
    runs: Sequence[Run] = (),
    examples: Sequence[Example] = (),
    changes: Sequence[Mapping[str, str]] = (),
    weights: Sequence[Part] = (),
) -> list[PageSection]:
    """The sections of a run over lists; runs: as they were trained; changes: a ``changes_row`` by split."""
    measure, task = primary_of(metrics), str(metrics.get("task", ""))
    results = [tables.results_table(metrics, split) for split in tables.splits_of(metrics)]
    notes = [*tables.notes(metrics), *(f"{name}: {text}" for name, text in tables.signatures(metrics))]
    learning = learning_figure(metrics.get("curve") or {}, measure, tables.dev_of(metrics))
    verdicts = {gain for one in examples for gain in (one.base_gain, one.chosen_gain)} <= {0.0, 1.0}
    sides = {"Now right" if verdicts else "Now better": 1, "Now wrong" if verdicts else "Now worse": -1}
    changed = TextTable.of("Answers compared with base candidates", changes)
    sizes = tables.corpora_table(metrics.get("corpora", {}))
    return [
        PageSection("Results", [*results, tables.reported_table(metrics), *notes]),
        PageSection("Choice", [tables.choice_table(metrics)]),
        PageSection("Lists", [changed, KEY if examples else None]),
        *(
            PageSection(heading, [one.folded(task, measure, open=k == 0) for k, one in enumerate(side)])
            for heading, sign in sides.items()
            for side in [[one for one in examples if sign * (one.chosen_gain - one.base_gain) > 0]]
        ),
        PageSection("Weights", weights),
        PageSection("Training", [[training_figure(runs, metrics), learning]]),
        PageSection("Data", [metrics.get("account"), sizes]),
    ]


def changes_row(split: str, answers: Answers) -> dict[str, str]:
    """The number of lists of a split that got better or worse by their gain, or stayed as they were."""
    difference = answers.after - answers.before
    better, worse, lists = difference > SAME_GAIN, difference < -SAME_GAIN, max(difference.size, 1)
    return {
        "split": split,
        "better": f"{count(better.sum())} ({fixed(100 * better.sum() / lists, 1)} %)",
        "worse": f"{count(worse.sum())} ({fixed(100 * worse.sum() / lists, 1)} %)",
        "another candidate, as good": count((~better & ~worse & answers.changed).sum()),
        "the same candidate": count((~answers.changed).sum()),
        "lists": count(difference.size),
    }


def weight_table(model: Model, predictor: str) -> TextTable:
    """The strongest weights; none for a model without weights."""
    w = model.weights[predictor].strength
    order = np.argsort(-np.abs(w), kind="stable")[:MAX_WEIGHTS]
    order = order[w[order] != 0.0]
    strongest = w[order].tolist()
    rows = list(zip((model.table.name(int(j)) for j in order), reals(strongest), strict=True))
    note = "A weight is for one unit of its feature: weights of scores depend on what these are measured in."
    return TextTable("Strongest weights", ["feature", "weight"], rows, note=note, bars=[*map(Bar.of, strongest)])


def training_figure(runs: Sequence[Run], metrics: Mapping[str, Any]) -> page.Figure | None:
    """The scores on dev after every epoch, of the chosen run and the best.

    Batch learners have no course: they have a point among the lines of others, and no figure if they are alone.
    """
    measure, dev, best = primary_of(metrics), tables.dev_of(metrics), dict[str, float]()
    scored = [(run, {line["epoch"]: line["dev"] for line in run.history if "dev" in line}) for run in runs]
    for run, course in scored:
        best[run.name] = max([best.get(run.name, -math.inf), *map(measure.better, course.values())])
    if not any(len(course) > 1 for _, course in scored):
        return None
    chosen, lines = str(tables.chosen_of(metrics).get("name")), list[page.FigureLine]()
    names = sorted(best, key=lambda name: (name != chosen, -best[name], name))[: len(page.PALETTE)]
    for series, name in enumerate(names, start=1):
        for run, course in ((run, course) for run, course in scored if run.name == name):
            x = [epoch * run.training["lists"] for epoch in course]
            lines.append(page.FigureLine(x, [measure.scale * score for score in course.values()], name, series=series))
    base = tables.value_at(metrics, "corpora", dev, "statistics", "base", measure.key)
    level = None if base is None else (measure.scale * base, f"base {measure.text(base)}")
    caption, label = f"Score on {dev} after every epoch.", f"{measure.heading} on dev"
    return page.draw(caption, lines, "lists processed in training", label, level=level)


def learning_figure(curve: Mapping[str, Any], measure: Measure, dev: str) -> page.Figure | None:
    """The score on every split over how many lists training had, and whether more of them would help; None for no
    ``curve``, an entry of metrics.json."""
    if not curve:
        return None
    points, split, test = curve["points"], curve["split"], curve["last"]
    sizes = [point["lists"] for point in points]
    scores = {name: [point["splits"][name] for point in points] for name in points[0]["splits"]}
    if dev not in scores and all(point["dev"] is not None for point in points):
        scores[dev] = [point["dev"] for point in points]
    step = scores[split][-1] - scores[split][-2]
    doublings = math.log2(sizes[-1] / sizes[-2]) if sizes[-1] > sizes[-2] else 1.0
    rate = "" if abs(doublings - 1) < 0.05 else f", {measure.signed(step / doublings)} per doubling"
    helps = test["p"] < tables.SIGNIFICANT_BELOW and measure.better(step) > 0
    caption = (
        f"Doubling the training lists changes {measure.heading} on {split} by {measure.signed(curve['slope'])} (least "
        f"squares over {len(points)} sizes). The last step, from {sizes[-2]:,} to {sizes[-1]:,} lists, brought "
        f"{measure.signed(step)}{rate}: {tables.verdict(test, lower_is_better=measure.lower_is_better)}. More lists "
        f"{'are likely to' if helps else 'may not'} help."
    )
    lines = [page.FigureLine(sizes, [measure.scale * score for score in own], name) for name, own in scores.items()]
    return page.draw(
        caption, lines, "training lists (log scale)", measure.heading, x=page.logarithmic(sizes, margin=0.04)
    )
