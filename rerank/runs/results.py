"""The results of a run over lists: predictions, and a page of results, choice, lists that changed, weights, data.

The candidates of a list stand next to one another, with what differs from its reference marked. What base or chosen
candidate have and the reference has not gets ×; what the reference has and they lack gets −B where the base lacks it,
−C where the chosen one does. Of trees these are the brackets that PARSEVAL counts with its default settings: all
nonterminals except roots (TOP, S1, ROOT, unlabelled) and those without a word that counts, function tags cut, ADVP and
PRT the same. Of texts they are words, by the matching blocks of ``difflib``; the nearest of several references counts,
the one that takes the fewest inserted or deleted words.

A tree is nested lists, which the style of the page lays out: it is read aloud and copied like a text, and its width is
that of the words in the reader's font.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from rerank.data.symbols import SymbolTable
from rerank.data.trees import Trees, leaves, parse_brackets
from rerank.extraction.content import SelectedTexts
from rerank.extraction.extraction import ExtractedSplit
from rerank.learn.learner import Weights
from rerank.learn.scoring import scores as scores_of
from rerank.metrics.metric import Metric, list_gains, oracles
from rerank.metrics.parseval import EMPTY_TAG, Parseval, cut_label, equivalents
from rerank.models.scorer import Contribution, Scorer, put_first, rank
from rerank.readers.lists import Lists
from rerank.readers.reader import ListWriter, Problem, Reader, SkipCount
from rerank.runs.compared import FILE
from rerank.runs.corpora import Data, RereadList, Visitor
from rerank.runs.report import page
from rerank.runs.report import results as tables
from rerank.runs.report.page import Details, PageSection, Part, markup
from rerank.runs.report.table import Bar, Measure, TextTable, count, fixed, primary_of, reals
from rerank.runs.run import Run
from rerank.storage.outputs import output_file
from rerank.storage.streams import Writable

# In ``predictions``, of a split: by ``Predictions``, ``Compared.save`` and, one of two, answers, one per line.
PREDICTIONS = "{}.nbest.gz", FILE, "{}.decoded.gz", "{}.decoded.jsonl.gz"
MAX_FEATURES = 10  # that decided a list
SAME_GAIN = 1e-12  # gains that are this close are equal
MAX_WORDS = 2_000  # of a text
WRONG = "×"
KEY = markup(
    '<p class="note"><span class="wrong">A<sup>×</sup></span> is not in the reference; <span class="missed">A<sup>−BC'
    "</sup></span> of the reference is missed by base (B), by the chosen candidate (C), or by both.</p>"
)
_DELETE = frozenset(Parseval.delete)  # labels that are not brackets, tags whose words do not count
_EQUAL = equivalents(Parseval.equal_labels)
Bracket = tuple[str, int, int]  # the label, and the span over the words that count


def prediction_file(directory: Path, split: str, number: int) -> Path:
    """The path of one of the PREDICTIONS of a split, in a folder that is there."""
    target = output_file(directory, "predictions", PREDICTIONS[number].format(split))
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def prediction_of(
    reader: Reader, metric: Metric, leading: int | None, entry: RereadList, scores: np.ndarray, offset: float,
    gains: np.ndarray, reference: np.ndarray,
) -> tuple[bytes, int, Lists]:  # fmt: skip
    """The prediction of a list in the input's format: its candidates by their scores in the corpus (float64 [N]), after
    the answer with the number ``leading`` among findings, if lists are decoded. With it, whether the answer is better
    (1) or worse (-1) than the base candidate, and the list itself if so, else without its candidates.

    The scores that are written are those of features' plain values, so that lists can be compared: ``offset`` makes
    them such, see ``ExtractedSplit``. gains: of base candidate and, where lists are not decoded, of answer.
    """
    nbest, answer, (before, after) = entry.nbest, None, gains
    if leading is not None and (answer := entry.findings[leading]) is not None:
        after = metric.gain(answer.rows[0], reference)
    order = put_first(rank(scores, nbest.base), None if answer is None else answer.candidate)
    sign = 0 if not scores.size or abs(after - before) <= SAME_GAIN else 1 if after > before else -1
    out = BytesIO()
    reader.write(out, nbest, order.tolist(), scores + offset)
    return out.getvalue(), sign, nbest if sign else nbest.select([])


class Predictions:
    """The predictions of a run's model for a test split, which go to ``out`` as lists are read again; bad ones keep
    their places.

    leading: see ``prediction_of``. examples: the lists that the page shows in full, by number in the corpus, each with
    its index in the files: up to ``recipe.examples`` that are better and as many that are worse, drawn by its seed.

    Of the answers, once all are known (``finish``): base, choice: int64 [L], candidates of the corpus, -1 for none; the
    features of ``choice`` tell why. before, after, best: float64 [L], the gains of base candidates, of answers and of
    the oracle. changes: bool [L], where the answer is not the base candidate. texts: of all lists of the files, where
    answers may be no candidates.
    """

    after: np.ndarray
    changes: np.ndarray
    texts: list[bytes] | None

    def __init__(
        self, out: Writable, data: Data, run: Run, split: str, scorer: Scorer, leading: int | None
    ) -> None:  # fmt: skip
        recipe, lists = data.recipe, data.others[split]
        corpus, weights = lists.corpus, run.weights[recipe.predictor]
        offsets = np.zeros(corpus.list_count)
        if lists.origins is not None:
            offsets = scores_of(lists.origins, Weights(weights.w, 0.0))
        self.split, self.lists, self._run, choices = split, lists, run, run.choices[split]
        self.base, self.choice = choices["base"], choices.get(run.decision.predictor, choices[recipe.predictor])
        self.before, self.best = list_gains(corpus, self.base), list_gains(corpus, oracles(corpus))
        gains = np.stack([self.before, list_gains(corpus, self.choice)], axis=1)
        self._scorer, of_lists = scorer, [offsets, gains, corpus.reference]
        see = partial(prediction_of, scorer.reader, data.metric, leading)
        scores = [scores_of(corpus, weights)]
        self.visitor = Visitor(lists, self._add, see, scores, of_lists, opens=False, whole=True)
        self.writer, self.examples = ListWriter(out, self._scorer.reader), dict[int, tuple[int, Lists]]()
        self._order = np.random.default_rng(recipe.seed).permutation(corpus.list_count)
        self._limit, self._sides = recipe.examples, {1: list[int](), -1: list[int]()}

    def finish(self, texts: list[bytes] | None) -> None:
        """Find out what the answers are, once all lists are evaluated; texts: theirs, where they are decoded."""
        choices, table = self._run.choices[self.split], self._run.selections[self.split]
        predictor = self._run.decision.predictor
        if predictor in choices:
            self.choice, self.texts = choices[predictor], None
            self.after, self.changes = list_gains(self.lists.corpus, self.choice), self.choice != self.base
        else:
            rows, self.texts = table.rows[predictor], [text.strip() for text in texts or []]
            self.after = table.metric.gain(rows, table.reference)
            self.changes = (rows != table.rows["base"]).any(axis=1)

    def _add(self, index: int, number: int, finding: Any) -> None:
        if number < 0:  # the reference cannot be used, or nothing
            (ranking,) = self._scorer.rank([self._scorer.open(finding)])
            if isinstance(ranking, Problem):
                self.writer.bad(ranking)
            else:
                self.writer.good(ranking.nbest, ranking.order.tolist(), ranking.scores)
            return
        data, sign, nbest = finding
        self.writer.copy(data, nbest)
        if sign:
            side, self.examples[number] = self._sides[sign], (index, nbest)
            side.append(number)
            if len(side) > self._limit:
                side.sort(key=self._order.__getitem__)
                del self.examples[side.pop()]


def selected_texts(
    lists: ExtractedSplit, choices: Mapping[str, np.ndarray], ways: Mapping[str, int]
) -> tuple[Visitor, list[SelectedTexts]]:  # fmt: skip
    """A visitor that reads the texts of selections again, and the list that it fills. choices: int64 [L], candidates of
    the corpus, -1 for none; ways: those that are decoded meanwhile, by the numbers of their answers among findings."""
    starts, texts = lists.corpus.lists[:-1], list[SelectedTexts]()
    indices, see = [np.where(y < 0, -1, y - starts) for y in choices.values()], partial(texts_of, [*choices], ways)
    return Visitor(lists, lambda _index, _number, text: texts.append(text), see, [], indices, opens=False), texts


def texts_of(names: Sequence[str], ways: Mapping[str, int], entry: RereadList, *indices: int) -> SelectedTexts:
    """The texts that are selected from a list, given their indices."""
    choices, texts = dict(zip(names, indices, strict=True)), entry.nbest.texts
    for name, number in ways.items():
        answer = entry.findings[number]
        choices[name] = -1 if answer is None or answer.candidate is None else answer.candidate
    return {name: texts[y] if y >= 0 else b"" for name, y in choices.items()}, entry.nbest.references


@dataclass(frozen=True)
class Example:
    """A list in full.

    gold: the reference; texts: those of the generator's best candidate and of the answer: bracketed trees for the task
    ``parse``, plain text for others, where ``gold`` has one reference per line; gains: of these two, and of the oracle.
    contributions: those to the choice, the strongest first. source: the input, where it is known.
    """

    split: str
    list_id: str
    gold: str
    texts: tuple[str, str]
    gains: tuple[float, float, float]
    contributions: Sequence[Contribution] = ()
    source: str | None = None

    def fold(self, task: str, measure: Measure, *, open: bool = False) -> Details:
        """The list as the page has it: what differs, and the features that decided."""
        if task == "parse":
            candidates = compare_trees(self.gold, *self.texts, self.list_id)
        else:
            candidates = compare_texts(self.source, self.gold.splitlines(), *self.texts)
        heading, parts = "gain" if measure.lower_is_better else measure.heading, self.contributions
        names, amounts = [part.feature for part in parts], [part.amount for part in parts]
        gains = zip(("base", "chosen", "oracle"), self.gains, strict=True)
        numbers = ", ".join(f"{name} {measure.gain(gain)}" for name, gain in gains)
        weights, gaps = reals([part.weight for part in parts]), reals([part.value - part.other for part in parts])
        deciding = TextTable(
            "Features that decided; above zero for the chosen candidate",
            ["feature", "weight", "chosen − base", "contribution"],
            [*zip(names, weights, gaps, reals(amounts), strict=True)], bars=[*map(Bar.of, amounts)],
        )  # fmt: skip
        return Details(f"{self.list_id} ({self.split}) · {heading}: {numbers}", [candidates, deciding], open=open)


def examples_of(scorer: Scorer, of: Predictions) -> Iterator[Example]:
    """The lists of a split that were kept, in full."""
    starts = of.lists.corpus.lists
    for i, (number, nbest) in of.examples.items():
        pair = scorer.content.pair(nbest, SkipCount("skip")) if nbest.problem is None else None
        if pair is None:
            continue
        base, choice = (int(selection[i] - starts[i]) for selection in (of.base, of.choice))
        gains = float(of.before[i]), float(of.after[i]), float(of.best[i])
        answer = pair.nbest.texts[choice] if of.texts is None else of.texts[number]
        why = scorer.explain(pair, choice, base)[:MAX_FEATURES]
        texts = pair.nbest.texts[base], answer, pair.nbest.source or b""
        first, last, source = (text.decode("utf-8", "replace") for text in texts)
        about = why, None if pair.nbest.source is None else source
        yield Example(of.split, pair.nbest.id, scorer.content.gold_text(pair), (first, last), gains, *about)


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
    notes = [*tables.notes(metrics), *tables.signatures(metrics)]
    learning = learning_figure(metrics.get("curve") or {}, measure, tables.dev_of(metrics))
    verdicts = {gain for example in examples for gain in example.gains[:2]} <= {0.0, 1.0}
    sides = {"Now right" if verdicts else "Now better": 1, "Now wrong" if verdicts else "Now worse": -1}
    comparison = TextTable.of("Answers compared with base candidates", changes)
    sizes = tables.corpora_table(metrics.get("corpora", {}))
    return [
        PageSection("Results", [*results, tables.reported_table(metrics), *notes]),
        PageSection("Choice", [tables.choice_table(metrics)]),
        PageSection("Lists", [comparison, KEY if examples else None]),
        *(
            PageSection(heading, [example.fold(task, measure, open=k == 0) for k, example in enumerate(side)])
            for heading, sign in sides.items()
            for side in [[example for example in examples if sign * (example.gains[1] - example.gains[0]) > 0]]
        ),
        PageSection("Weights", weights),
        PageSection("Training", [[training_figure(runs, metrics), learning]]),
        PageSection("Data", [metrics.get("account"), sizes]),
    ]


def changes_row(split: str, difference: np.ndarray, mask: np.ndarray) -> dict[str, str]:
    """The number of lists of a split that got better or worse, by the ``difference`` of their gain (float64 [L]), or
    have another answer (``mask``, bool [L]) or the same."""
    better, worse, lists = difference > SAME_GAIN, difference < -SAME_GAIN, max(difference.size, 1)
    return {
        "split": split,
        "better": f"{count(better.sum())} ({fixed(100 * better.sum() / lists, 1)} %)",
        "worse": f"{count(worse.sum())} ({fixed(100 * worse.sum() / lists, 1)} %)",
        "another candidate, as good": count((~better & ~worse & mask).sum()),
        "the same candidate": count((~mask).sum()),
        "lists": count(difference.size),
    }


def training_figure(runs: Sequence[Run], metrics: Mapping[str, Any]) -> page.Figure | None:
    """The scores on dev after every epoch, of the chosen run and the best.

    Batch learners have no course: they have a point among the lines of others, and no figure if they are alone.
    """
    measure, dev, best = primary_of(metrics), tables.dev_of(metrics), dict[str, float]()
    courses = [(run, {line["epoch"]: line["dev"] for line in run.history if "dev" in line}) for run in runs]
    for run, course in courses:
        best[run.name] = max([best.get(run.name, -math.inf), *map(measure.better, course.values())])
    if not any(len(course) > 1 for _, course in courses):
        return None
    winner, lines = metrics["chosen"]["name"], list[page.FigureLine]()
    names = sorted(best, key=lambda name: (name != winner, -best[name], name))[: len(page.PALETTE)]
    for series, name in enumerate(names, start=1):
        for run, course in ((run, course) for run, course in courses if run.name == name):
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
        f"Doubling the training lists changes {measure.name} on {split} by {measure.signed(curve['slope'])} (least "
        f"squares over {len(points)} sizes). The last step, from {sizes[-2]:,} to {sizes[-1]:,} lists, brought "
        f"{measure.signed(step)}{rate}: {tables.verdict(test, lower_is_better=measure.lower_is_better)}. More lists "
        f"{'are likely to' if helps else 'may not'} help."
    )
    lines = [page.FigureLine(sizes, [measure.scale * score for score in own], name) for name, own in scores.items()]
    return page.draw(
        caption, lines, "training lists (log scale)", measure.heading, x=page.logarithmic(sizes, margin=0.04)
    )


def mark_text(text: str, mark: str = "") -> Markup:
    """``text`` with its mark, if it has one."""
    kind = "wrong" if mark == WRONG else "missed"
    return markup('<span class="{}">{}<sup>{}</sup></span>', kind, text, mark) if mark else markup("{}", text)


def compare_trees(gold: str, base: str, choice: str, list_id: str | None = None) -> Markup:
    """The trees of one list, drawn; base and chosen are one drawing if they are equal."""
    symbols, marks = SymbolTable(), dict[int, str]()
    raw = [text.encode("utf-8", "surrogateescape") for text in (gold, base, choice)]
    trees = parse_brackets(raw, symbols, path="the report's examples", list_id=list_id)
    for t, letter in enumerate("BC", start=1):
        misses, errors = differences(trees, symbols, t)
        marks |= {k: marks.get(k, "−") + letter for k in misses} | dict.fromkeys(errors, WRONG)
    titles = ["Gold", "Base and chosen"] if base == choice else ["Gold", "Base", "Chosen"]
    figures = [
        markup(
            '<figure><figcaption>{}</figcaption><div class="scroll" tabindex="0" role="region" aria-label="{} tree">'
            '<ul class="tree">{}</ul></div></figure>',
            *(title, title, draw(trees, symbols, t, marks)),
        )
        for t, title in enumerate(titles)
    ]
    return markup('<div class="trees">{}</div>', Markup().join(figures))


def differences(trees: Trees, symbols: SymbolTable, t: int) -> tuple[list[int], list[int]]:
    """(nodes of tree 0, the reference, that tree ``t`` misses; nodes of tree ``t`` that the reference has not).

    Brackets are matched one to one; among equal brackets in one tree the upper ones are matched first. Words whose gold
    tag is punctuation do not count; where the trees have different numbers of words, each tree's own tags decide.
    """
    gold, own = (leaves(trees, symbols.intern(EMPTY_TAG), of) for of in (0, t))
    mask = np.isin(trees.label, [symbols.intern(tag) for tag in _DELETE])
    in_gold = brackets_of(trees, symbols, 0, gold[~mask[gold]])
    in_tree = brackets_of(trees, symbols, t, own[~mask[gold if gold.size == own.size else own]])
    return _surplus(in_gold, in_tree), _surplus(in_tree, in_gold)


def brackets_of(trees: Trees, symbols: SymbolTable, t: int, words: np.ndarray) -> dict[int, Bracket]:
    """The brackets of tree ``t`` by node, over ``words``, the nodes of those that count (int64, ascending)."""
    nodes, brackets = np.arange(*trees.first[t : t + 2]), dict[int, Bracket]()
    nodes = nodes[trees.word[nodes] < 0]
    spans = np.searchsorted(words, [nodes, nodes + trees.size[nodes]]).T.tolist()
    for k, symbol, (start, end) in zip(nodes.tolist(), trees.label[nodes].tolist(), spans, strict=True):
        label = cut_label(symbols.text(symbol))
        if label not in _DELETE and end > start:
            brackets[k] = _EQUAL.get(label, label), start, end
    return brackets


def _surplus(brackets: Mapping[int, Bracket], others: Mapping[int, Bracket]) -> list[int]:
    counts, nodes = Counter(others.values()), list[int]()
    for k, bracket in brackets.items():
        counts[bracket] -= 1
        if counts[bracket] < 0:
            nodes.append(k)
    return nodes


def draw(trees: Trees, symbols: SymbolTable, t: int, marks: Mapping[int, str]) -> Markup:
    """Tree ``t`` as items of a list, without traces unless it has no words; ``marks``: by node."""
    words = {*leaves(trees, symbols.intern(EMPTY_TAG), t).tolist()} or {*leaves(trees, -1, t).tolist()}
    below = dict[int, Markup]()  # the items of a node's children
    for k in reversed(range(*trees.first[t : t + 2].tolist())):
        label, parent = symbols.text(int(trees.label[k])), int(trees.parent[k])
        if k in words:
            item = markup('<li class="leaf"><small>{}</small> {}</li>', label, symbols.text(int(trees.word[k])))
        elif k in below:
            item = markup("<li>{}<ul>{}</ul></li>", mark_text(label, marks.get(k, "")), below[k])
        else:
            continue
        below[parent] = item + below.get(parent, Markup())
    return below[-1]


def compare_texts(source: str | None, references: Sequence[str], base: str, choice: str) -> Markup:
    """The texts of one list from source to chosen; base and chosen are one if they are equal."""
    golds = [_words(text) for text in references]
    misses = [[""] * len(gold) for gold in golds]
    rows = list[tuple[str, Markup]]()
    for letter, title, text in (("B", "Base", base), ("C", "Chosen", choice)):
        words = _words(text)
        marks = [WRONG if golds else ""] * len(words)
        blocks = [SequenceMatcher(None, words, gold, autojunk=False).get_matching_blocks() for gold in golds]
        distances = [len(gold) - 2 * sum(block.size for block in own) for gold, own in zip(golds, blocks, strict=True)]
        if golds:
            k = distances.index(min(distances))
            matches = {block.b + i for block in blocks[k] for i in range(block.size)}
            misses[k] = [mark + letter * (j not in matches) for j, mark in enumerate(misses[k])]
            for block in blocks[k]:
                marks[block.a : block.a + block.size] = [""] * block.size
        rows.append((title, _join(words, marks)))
    if base == choice:
        rows = [("Base and chosen", rows[0][1])]
    for k, (gold, letters) in reversed(list(enumerate(zip(golds, misses, strict=True), start=1))):
        title = "Reference" if len(golds) == 1 else f"Reference {k}"
        rows.insert(0, (title, _join(gold, [letter and f"−{letter}" for letter in letters])))
    if source is not None:
        rows.insert(0, ("Source", markup("{}", source)))
    nothing = markup('<span class="aside">(no words)</span>')
    items = (markup('<div><dt>{}</dt><dd dir="auto">{}</dd></div>', title, text or nothing) for title, text in rows)
    return markup('<dl class="words">{}</dl>', Markup().join(items))


def _words(text: str) -> list[str]:
    words = text.split()
    return words if len(words) <= MAX_WORDS else [*words[:MAX_WORDS], "…"]


def _join(words: Sequence[str], marks: Sequence[str]) -> Markup:
    """The words, those next to each other with one mark together."""
    runs = groupby(zip(words, marks, strict=True), key=lambda pair: pair[1])
    return Markup(" ").join(mark_text(" ".join(word for word, _ in run), mark) for mark, run in runs)
