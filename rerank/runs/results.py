"""The results of a run over lists: predictions, and a page of results, choice, lists that changed, weights, data."""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.progress import track
from rerank.extraction.content import Content, Description, Pair
from rerank.extraction.extraction import Extracted
from rerank.extraction.kinds import metric_of
from rerank.learn.base import Weights
from rerank.learn.scoring import scores
from rerank.metrics.oracle import list_gains, oracles
from rerank.models.model import Model
from rerank.models.scorer import Contribution, Opened, Scorer, led, rank
from rerank.models.weights import columns_by_template, shares
from rerank.readers.base import ListWriter, Problem, SkipCount
from rerank.readers.lists import Lists
from rerank.readers.streams import open_output
from rerank.recipes.recipe import ListRecipe
from rerank.runs.compared import FILE
from rerank.runs.report import page
from rerank.runs.report import results as tables
from rerank.runs.report.differences import KEY, compare_texts, compare_trees
from rerank.runs.report.page import Folded, PageSection, Part, markup
from rerank.runs.report.table import Bar, Measure, TextTable, count, fixed, primary_of, reals
from rerank.runs.run import Run
from rerank.storage.documents import as_json
from rerank.storage.outputs import output_file


def describe(
    split: str, lists: Iterable[tuple[int, Lists]], extracted: Extracted, chosen: Run, content: Content[Any]
) -> Description:
    """What needs the texts of the chosen run's choices from a split, whose ``lists`` are read where something does."""
    first = extracted.corpus.lists[:-1]
    places = {name: np.where(choice >= 0, choice - first, -1) for name, choice in chosen.choices[split].items()}
    return content.describe(split, lists, places)


# In ``predictions``, of a split: by ``write_predictions``, ``Compared.save`` and, one of two, ``write_answers``.
PREDICTIONS = "{}.nbest.gz", FILE, "{}.decoded.gz", "{}.decoded.jsonl.gz"


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


KeptLists = dict[int, tuple[int, Lists] | None]  # by number in the corpus: the number in the files, and the list


def write_predictions(
    recipe: ListRecipe, directory: Path, split: str, extracted: Extracted, model: Model, chosen: Run, kept: KeptLists
) -> Description:
    """A test split in the input's own format: the model's choice if it is a candidate, then the others by score.

    Its lists are read once, also for ``describe``. kept: the numbers of lists that are
    kept on the way, which are put there.
    """
    scorer, weights = Scorer(model), chosen.weights[recipe.predictor]
    lists = scorer.content.read_again(recipe.data, split, extracted.ids, np.diff(extracted.corpus.lists))
    with open_output(prediction_file(directory, split, 0)) as out:
        writer = ListWriter(out, scorer.reader)
        passed = _written(writer, scorer, lists, extracted, weights, chosen.answers.get(split), kept)
        passed = iter(track(passed, f"predict {split}", total=extracted.corpus.list_count))
        described = describe(split, passed, extracted, chosen, scorer.content)
        deque(passed, maxlen=0)  # what nothing has asked for
        writer.finish()
    return described


def _written(
    writer: ListWriter,
    scorer: Scorer,
    lists: Iterable[tuple[int, Lists]],
    extracted: Extracted,
    weights: Weights,
    first: np.ndarray | None,
    kept: KeptLists,
) -> Iterator[tuple[int, Lists]]:
    """All lists of a split, each of which is written on the way: its candidates by the scores that ``weights`` give in
    the corpus, after that in ``first`` (int64 [L], -1 for none), if it is given.

    Scores are those of features' plain values, so that lists can be compared: see ``Extracted``. A list that the corpus
    lacks, since its reference cannot be used, is scored by the model itself; bad ones keep their places.
    """
    sizes, scored = np.diff(extracted.corpus.lists), scores(extracted.corpus, weights)
    ends, added = np.cumsum(sizes), np.zeros(sizes.size)
    if extracted.origins is not None:
        added = scores(extracted.origins, Weights(weights.w, 0.0))
    for in_files, (number, nbest) in enumerate(lists):
        if number in kept:
            kept[number] = in_files, nbest
        if number < 0 or nbest.problem is not None:
            for ranked in scorer.rank([scorer.open(nbest)]):
                if isinstance(ranked, Problem):
                    writer.bad(ranked)
                else:
                    writer.good(ranked.nbest, [int(y) for y in ranked.order], ranked.scores)
        else:
            start = int(ends[number] - sizes[number])
            by_weights = scored[start : ends[number]]
            place = None if first is None or first[number] < 0 else int(first[number] - start)
            order = led(rank(by_weights, nbest.base), place)
            writer.good(nbest, [int(y) for y in order], by_weights + added[number])
        yield number, nbest


MAX_FEATURES = 10  # that decided a list
SAME_GAIN = 1e-12  # gains that are this close are equal
MAX_WEIGHTS, MAX_TEMPLATES, MAX_NAMED = 20, 25, 3  # rows of the tables, and features named for a template
MAX_PAIRS = 10  # phrase pairs of either kind


class Answers(NamedTuple):
    """The answers of a run to the lists of a split, compared with its base candidates.

    base, chosen: int64 [L], candidates of the corpus, -1 for none; the features of ``chosen`` tell why. before, after,
    best: float64 [L], the gains of base candidates, of answers and of the oracle. changed: bool [L], where the answer
    is not the base candidate. texts: of all lists of the files, where answers may be no candidates. examples: the
    lists that the page shows in full; pairs: see ``pair_places``. kept: both, which whoever reads them for something
    else puts there.
    """

    base: np.ndarray
    chosen: np.ndarray
    before: np.ndarray
    after: np.ndarray
    best: np.ndarray
    changed: np.ndarray
    texts: list[bytes] | None
    examples: Sequence[int]
    pairs: Mapping[int, tuple[int, int]]
    kept: KeptLists


def answers_of(
    recipe: ListRecipe, split: str, extracted: Extracted, model: Model, run: Run, decoded: list[bytes] | None
) -> Answers:
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
    pairs = pair_places(extracted, phrase_pairs(model, recipe.predictor), chosen)
    kept: KeptLists = dict.fromkeys([*examples, *(i for i, _ in pairs.values())])
    return Answers(base, chosen, before, after, best, changed, texts, examples, pairs, kept)


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
        columns = {
            "feature": [part.feature for part in self.contributions],
            "weight": reals([part.weight for part in self.contributions]),
            "chosen − base": reals([part.value - part.other for part in self.contributions]),
            "contribution": reals([part.amount for part in self.contributions]),
        }
        bars = [Bar(min(part.amount, 0.0), max(part.amount, 0.0)) for part in self.contributions]
        caption = "Features that decided; above zero for the chosen candidate"
        deciding = TextTable(caption, [*columns], [*zip(*columns.values(), strict=True)], bars=bars)
        return Folded(
            f"{self.list_id} ({self.split}) · {heading}: {numbers}",
            [candidates, deciding],
            open=open,
        )


def examples_of(scorer: Scorer, split: str, extracted: Extracted, answers: Answers) -> Iterator[Example]:
    """The lists of a split that were kept, in full."""
    firsts = extracted.corpus.lists[:-1]
    for i, (number, nbest) in ((i, kept) for i in answers.examples if (kept := answers.kept[i]) is not None):
        pair = scorer.content.pair(nbest, SkipCount("skip")) if nbest.problem is None else None
        if pair is None:
            continue
        texts, source = pair.nbest.texts, pair.nbest.source
        base, chosen = int(answers.base[i] - firsts[i]), int(answers.chosen[i] - firsts[i])
        before, after, best = (float(gains[i]) for gains in (answers.before, answers.after, answers.best))
        written = texts[chosen] if answers.texts is None else answers.texts[number]
        why = scorer.explain(Opened(pair.nbest, pair.content), chosen, base)[:MAX_FEATURES]
        first, last, input_text = (text.decode("utf-8", "replace") for text in (texts[base], written, source or b""))
        about = why, None if source is None else input_text
        yield Example(split, pair.nbest.id, scorer.content.gold_text(pair), first, last, before, after, best, *about)


def list_sections(
    metrics: Mapping[str, Any],
    *,
    runs: Sequence[Run] = (),
    examples: Sequence[Example] = (),
    changes: Sequence[Mapping[str, str]] = (),
    weights: Sequence[Part] = (),
) -> list[PageSection]:
    """The sections of a run over lists; runs: as they were trained; changes: a ``changes_row`` by
    split."""
    measure, task, corpora = primary_of(metrics), str(metrics.get("task", "")), metrics.get("corpora", {})
    results: list[Part] = [tables.results_table(metrics, split) for split in tables.splits_of(metrics)]
    results += [
        tables.meanings(metrics),
        *tables.notes(metrics),
        tables.reported_table(metrics),
        [reported_figure(metrics), coverage_figure(metrics)],
    ]
    results += [f"{name}: {text}" for name, text in tables.signatures(metrics)]
    learning = learning_figure(metrics.get("curve") or {}, measure, tables.dev_of(metrics))
    training: list[Part] = [[training_figure(runs, metrics), learning]]
    verdicts = {gain for one in examples for gain in (one.base_gain, one.chosen_gain)} <= {0.0, 1.0}
    sides = {"Now right" if verdicts else "Now better": 1, "Now wrong" if verdicts else "Now worse": -1}
    return [
        PageSection("Results", results),
        PageSection("Choice", [tables.choice_table(metrics)]),
        PageSection(
            "Lists", [TextTable.of("Answers compared with base candidates", changes), KEY if examples else None]
        ),
        *(
            PageSection(heading, [one.folded(task, measure, open=k == 0) for k, one in enumerate(side)])
            for heading, sign in sides.items()
            for side in [[one for one in examples if sign * (one.chosen_gain - one.base_gain) > 0]]
        ),
        PageSection("Weights", weights),
        PageSection("Training", [*training, tables.training_table(metrics)]),
        PageSection("Data", [metrics.get("account"), tables.corpora_table(corpora), tables.remarks_table(metrics)]),
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


def weight_tables(model: Model, predictor: str) -> list[TextTable]:
    """The strongest weights, and the share of all weights that each template has; none for a model without weights."""
    w = model.weights[predictor].strength
    order = np.argsort(-np.abs(w), kind="stable")[:MAX_WEIGHTS]
    order = order[w[order] != 0.0]
    weights = reals(w[order].tolist())
    rows = list(zip((model.table.name(int(j)) for j in order), weights, strict=True))
    bars = [Bar(min(weight, 0.0), max(weight, 0.0)) for weight in w[order].tolist()]
    note = "A weight is for one unit of its feature: weights of scores depend on what these are measured in."
    weighted = [share for share in shares(model, predictor, MAX_NAMED) if share.nonzero]
    left = len(weighted) - MAX_TEMPLATES
    by_template = [
        {
            "template": share.template,
            "its strongest": "; ".join(
                f"{name.removeprefix(f'{share.template}|')} {reals([w])[0]}" for name, w in share.strongest
            ),
            "share of weights": f"{fixed(100 * share.share, 1)} %",
            "nonzero weights": count(share.nonzero),
            "columns": count(share.columns),
        }
        for share in weighted[:MAX_TEMPLATES]
    ]
    more = f"{left} more templates have smaller shares." if left > 0 else ""
    return [
        TextTable("Strongest weights", ["feature", "weight"], rows, note=note, bars=bars),
        TextTable.of("Templates", by_template, texts=2, note=more),
    ]


def phrase_pairs(model: Model, predictor: str) -> dict[int, float]:
    """The weights, by column, of the phrase pairs that weigh most and of those that weigh least, in this order."""
    own = dict(columns_by_template(model)).get("PhrasePair", np.zeros(0, np.int64))
    w = np.zeros(model.table.width)
    w[own] = model.weights[predictor].w[own]
    order = np.argsort(-w, kind="stable")
    return {int(j): float(w[j]) for j in (*order[:MAX_PAIRS], *order[-MAX_PAIRS:]) if w[j]}


def pair_places(extracted: Extracted, pairs: Mapping[int, float], chosen: np.ndarray) -> dict[int, tuple[int, int]]:
    """The place of each column of ``pairs``: the first list and the number of the candidate in it that has more of what
    is liked than another one and is ``chosen``, or more of what is disliked than the chosen one; values count from what
    most have."""
    corpus, places = extracted.corpus, dict[int, tuple[int, int]]()
    rivals = np.repeat(chosen, np.diff(corpus.lists))  # the chosen candidate of every candidate's list
    for j, weight in pairs.items():
        value, at = np.zeros(corpus.candidate_count), np.flatnonzero(corpus.columns == j)
        value[np.searchsorted(corpus.rows, at, side="right") - 1] = corpus.values[at]
        for y in np.flatnonzero(np.sign(weight) * (value[rivals] - value) > 0)[:1]:
            i = int(np.searchsorted(corpus.lists, y, side="right")) - 1
            places[j] = i, int((chosen[i] if weight > 0 else y) - corpus.lists[i])
    return places


def phrase_table(scorer: Scorer, splits: Iterable[Answers]) -> Folded | None:
    """The phrase pairs that the model likes and dislikes most, each in a sentence; None where it has none."""
    pairs, found = phrase_pairs(scorer.model, scorer.predictor), dict[int, str]()
    names = {j: scorer.model.table.name(j).partition("|")[2] for j in pairs}
    for answers in splits:
        for j, (i, y) in answers.pairs.items():
            if (
                j not in found
                and (kept := answers.kept[i])
                and (pair := scorer.content.pair(kept[1], SkipCount("skip")))
            ):
                found[j] = _sentence(pair, y, names[j])
    rows = zip(names.values(), (found.get(j, "") for j in pairs), reals([*pairs.values()]), strict=True)
    caption = "Those that it likes in a sentence that it chooses, those that it dislikes in one that it rejects"
    bars = [Bar(min(weight, 0.0), max(weight, 0.0)) for weight in pairs.values()]
    table = TextTable(caption, ["phrase pair", "sentence", "weight"], [*rows], texts=2, bars=bars)
    return Folded("Phrase pairs that the model likes and dislikes most", [table]) if pairs else None


def _sentence(pair: Pair, y: int, name: str) -> str:
    """Source and candidate y, in bold the phrases of the pair called ``name`` where it is first."""
    source, words = (decoded(text).split() for text in (pair.nbest.source or b"", pair.nbest.texts[y]))
    for a, b, c, d in pair.content.spans[slice(*pair.content.phrase_first[y : y + 2])].tolist():
        sides = (source[:a], source[a:b], source[b:]), (words[:c], words[c:d], words[d:])
        if " → ".join(" ".join(phrase) for _, phrase, _ in sides).rstrip() == name:
            lines = (markup("{} <b>{}</b> {}", *map(" ".join, side)) for side in sides)
            return markup('<span class="aside">{}</span><br>{}', *lines)
    return markup("{}", " ".join(words))


def reported_figure(metrics: Mapping[str, Any]) -> page.Figure | None:
    """Gains of runs over the base on the first test split, with intervals, beside those of the paper."""
    measure, split, groups = primary_of(metrics), next(iter(tables.splits_of(metrics)), ""), tables.groups_of(metrics)
    rows = (metrics.get("reported") or {"rows": {}})["rows"]
    papers = {name: row[measure.key] for name, row in rows.items() if isinstance(row.get(measure.key), int | float)}
    places, gains, spreads, theirs = list[float](), list[float](), list[float](), list[float]()
    for place, name in enumerate(rows, start=1):
        test = (
            tables.compare_with_base(groups.get(name, ()), split, tables.ranked_by(groups[name]))
            if name in groups
            else None
        )
        if test and test["interval"] and name in papers and "base" in papers:
            low, high = (measure.scale * end for end in test["interval"])
            places.append(place)
            gains.append((low + high) / 2)
            spreads.append((high - low) / 2)
            theirs.append(measure.scale * (papers[name] - papers["base"]))
    ours = page.FigureLine([place - 0.1 for place in places], gains, "ours, with 95 % intervals", spreads, joined=False)
    paper = page.FigureLine([place + 0.1 for place in places], theirs, "the paper's", joined=False)
    x = page.Scale(0.4, len(rows) + 0.6, tuple((float(k), str(k)) for k in range(1, len(rows) + 1)))
    caption = f"{measure.heading} over the base, by the rows of the table above."
    return page.draw(caption, [ours, paper], "row", f"{measure.heading} over the base", x=x) if places else None


def dev_scores(run: Run) -> dict[int, float]:
    """The scores on dev by epoch."""
    return {line["epoch"]: line["dev"] for line in run.history if "dev" in line}


def training_figure(runs: Sequence[Run], metrics: Mapping[str, Any]) -> page.Figure | None:
    """The scores on dev after every epoch or, without dev, the mistakes while training; of the chosen run and the best.

    Batch learners have no course: they have a point among the lines of others, and no figure if they are alone.
    """
    measure, dev, best = primary_of(metrics), tables.dev_of(metrics), dict[str, float]()
    for run in runs:
        best[run.name] = max([best.get(run.name, -math.inf), *map(measure.better, dev_scores(run).values())])
    chosen = str(tables.chosen_of(metrics).get("name"))
    names = sorted(best, key=lambda name: (name != chosen, -best[name], name))[: len(page.PALETTE)]
    scored, lines = any(map(dev_scores, runs)), list[page.FigureLine]()
    for run in sorted((run for run in runs if run.name in names), key=lambda run: names.index(run.name)):
        course = {epoch: measure.scale * score for epoch, score in dev_scores(run).items()}
        if not scored:
            mistakes = accumulate(line["mistakes"] for line in run.history)
            course = {line["epoch"]: total for line, total in zip(run.history, mistakes, strict=True)}
        x = [epoch * run.training["lists"] for epoch in course]
        lines.append(page.FigureLine(x, [*course.values()], run.name, series=names.index(run.name) + 1))
    if not any(len(line.x) > 1 for line in lines):
        return None
    base = tables.value_at(metrics, "corpora", dev, "statistics", "base", measure.key)
    caption, label = f"Score on {dev} after every epoch.", f"{measure.name} on dev"
    if not scored:
        caption, label = "Mistakes made in training.", "mistakes (cumulative)"
    level = None if base is None or not scored else (measure.scale * base, f"base {measure.text(base)}")
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
    return page.draw(caption, lines, "training lists (log scale)", measure.name, x=page.logarithmic(sizes, margin=0.04))


def coverage_figure(metrics: Mapping[str, Any]) -> page.Figure | None:
    """The score over the share of lists that are answered, those with the largest margins; None without answers."""
    measure, lines, areas = primary_of(metrics), list[page.FigureLine](), list[str]()
    for split, curve in (tables.value_at(metrics, "training", "decode", "coverage") or {}).items():
        x, y = [100 * share for share in curve["coverage"]], [measure.scale * score for score in curve["score"]]
        lines.append(page.FigureLine(x, y, split))
        areas.append(f"{curve['aurc']:.4f} on {split}")
    caption = f"Score on the lists with the largest margins. AURC, the area under what is lost: {', '.join(areas)}."
    return page.draw(caption, lines, "lists that are answered (%)", measure.name) if lines else None
