"""The course of a recipe over lists: corpora (cached), runs, the choice of the best on dev, tests, artefacts."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.extraction.content import Content, SelectedTexts
from rerank.extraction.extraction import ExtractedSplit, paths_of
from rerank.extraction.kinds import content_of, metric_of, resolve_features
from rerank.features.table import FeatureTable
from rerank.kernels.sources import TRAINING
from rerank.learn.base_weight import make_learner
from rerank.learn.contract import accept
from rerank.learn.folds import FOLDS, sections
from rerank.learn.learner import Weights
from rerank.learn.pairs import pairs
from rerank.learn.train import bytes_needed, require_source
from rerank.metrics.metric import scored_rows
from rerank.models.model import HEADER, Model, one_base, raw_weights
from rerank.models.provenance import columns_seen, provenance
from rerank.models.scorer import Scorer
from rerank.pool import require
from rerank.readers.detection import Account, log_account
from rerank.readers.reader import ScoreColumns, make_reader
from rerank.recipes.recipe import ListRecipe, Single, TextRecipe, tree_learner
from rerank.recipes.sections import HOLDOUT
from rerank.recipes.settings import files_in
from rerank.runs import results
from rerank.runs.combination import DENSE_LINE, dense_line, fit, make_mert
from rerank.runs.compared import Compared, doubts_of_base
from rerank.runs.corpora import Data, doubts, open_files, part_of, visit_lists
from rerank.runs.decoding import SplitDecoder, check_decoding, learn_brackets, tune_decoding, ways_to_decode
from rerank.runs.experiment import Kind, Metrics, Stages, code_of
from rerank.runs.report.page import PageSection
from rerank.runs.report.table import Bar, TextTable, own_measure, reals
from rerank.runs.run import Run, blind, choose, weight_counts
from rerank.runs.training import IN_MEMORY, RunTask, data_identity
from rerank.storage.documents import as_json
from rerank.storage.files import open_output
from rerank.storage.outputs import RUNS, output_file

log = logging.getLogger("rerank")
MIN_LISTS_TO_CROSS = 4 * FOLDS  # lists, without others to test on, from which on they are cross-validated
MAX_WEIGHTS = 20  # rows of a table
DUPLICATE_SHARE = 0.05  # the share of candidates that repeat another from which on it is said


class ListKind(Kind[ListRecipe]):
    """Lists of candidates.

    data: the corpora; corpora: their counts; doubts: what looks wrong with them, base_doubt: with the base score; runs:
    all single runs, trained; line: see ``dense_line``, where there are test splits; winner: the run that is served.
    """

    singles: list[Single[ListRecipe]]
    data: Data
    content: Content[Any]
    corpora: dict[str, Any]
    doubts: list[str]
    base_doubt: str
    runs: list[Run]
    winner: Run
    line: tuple[dict[str, Weights], dict[str, Any] | None]
    choice: dict[str, Any]
    model: Model

    def check(self) -> None:
        recipe, self.starts = self.recipe, dict[str, Model]()
        content_of(recipe)
        make_reader(recipe.data.reader)
        check_decoding(recipe)
        for single in recipe.expand():
            check_single(single.recipe, self._start(single.recipe))
        open_files(recipe, self.inputs)
        self.recipe = recipe = resolve_features(recipe)
        self.singles = recipe.expand()
        self.metric = metric_of(recipe)
        self.splits = recipe.data.tests if self.tests else ()
        self.answers, self.texts = list[results.Predictions](), dict[str, list[SelectedTexts]]()  # by split
        self.size = {"splits": len(self.splits)}
        self.predictions = [name.format(split) for split in recipe.data.tests for name in results.PREDICTIONS]
        lists = [path for split in recipe.splits for path in paths_of(recipe.data, split)]
        start = recipe.training.start
        self.files = [*lists, *files_in(recipe.model_dump()), *([str(Path(start) / HEADER)] if start else [])]
        self.code = code_of(recipe, TRAINING)

    def extract(self) -> dict[str, int]:
        recipe = self.recipe
        mert_splits = [recipe.mert.split] if isinstance(recipe, TextRecipe) and recipe.mert else []
        names = tuple(dict.fromkeys([*filter(None, [recipe.data.dev]), *mert_splits, *self.splits]))
        self.data = Data.load(recipe, self.output, names, self.engine, self.inputs, self._start(recipe))
        about, lists = self.data.training.about, self.data.training.corpus
        log_account(Account(**about["account"]) if "account" in about else None)
        if about["duplicates"] >= DUPLICATE_SHARE * lists.candidate_count:
            message = "%s: %s of %s candidates repeat another of their list, and are learned from as often as they "
            message += "stand there; the reader's option duplicates: drop keeps the first of each"
            log.warning(message, recipe.data.training, f"{about['duplicates']:,}", f"{lists.candidate_count:,}")
        self.content = content_of(recipe, columns=ScoreColumns.of_table(self.data.table.about))
        self.corpora = self.data.counts()
        self.doubts = doubts(self.data, self.content, self.corpora)
        base = self.content.column_names[0] if self.data.table.about.get("scored") else None
        corpora = (each.corpus for each in (self.data.training, *self.data.others.values()))
        self.base_doubt = " ".join([*about.get("amiss", []), *doubts_of_base(base, recipe.data.reader, corpora)])
        for line in filter(None, [*self.doubts, self.base_doubt]):
            log.warning("%s", line)
        sizes = {key: sum(of[key] for of in self.corpora.values()) for key in ("lists", "candidates", "nonzeros")}
        return sizes | {"columns": lists.width}

    def counts(self) -> dict[str, Any]:
        return self.corpora

    def _start(self, recipe: ListRecipe) -> Model | None:
        """The model that training continues from."""
        path = recipe.training.start
        if path is None:
            return None
        if path == IN_MEMORY:
            self.starts[path] = self.inputs.start
        if path not in self.starts:
            self.starts[path] = Model.load(path, trust=True)
        return self.starts[path]

    def train(self, work: Stages) -> dict[str, int]:
        each = enumerate(self.singles)
        tasks = [self._task(self.data, single.name, single.recipe, f"{number:04d}") for number, single in each]
        runs = [task.load() for task in tasks]
        pending = [number for number, run in enumerate(runs) if run is None]
        fits: Iterator[Run | None] = map(_fit, (tasks[number] for number in pending))
        if len(pending) > 1 and self.engine.workers > 1 and self.callback is None:  # nobody watches
            log.info("training %d runs, %d at once", len(pending), min(self.engine.workers, len(pending)))
            fits = self.engine.map(_fit, [tasks[number] for number in pending])
        for number in pending:
            log.info("run %d of %d: %s", number + 1, len(tasks), tasks[number])
            runs[number] = next(fits) or tasks[number].load()
        self.runs = [run for run in runs if run is not None]
        for task, run in zip(tasks, self.runs, strict=True):
            join_base(run, self.data.table)
            work.append({"run": task.name, "seed": task.recipe.seed, **line} for line in run.history)
        self.line = dense_line(self.data.training.corpus, self.data.table, self.metric) if self.splits else ({}, None)
        return {"epochs": sum(run.training["epochs_run"] for run in self.runs)}

    def _task(self, data: Data, name: str, single: ListRecipe, stage: str) -> RunTask:
        """A run with what it needs of the data."""
        mert, start = single.mert if isinstance(single, TextRecipe) else None, self._start(single)
        path = None if self.output is None else output_file(self.output.absolute(), RUNS, f"{stage}.npz")
        others = [data.others[split] if split else None for split in (single.data.dev, mert and mert.split)]
        lists = [each.key for each in (data.training, *others) if each is not None]
        digests = (*lists, code_of(single, TRAINING), *([] if start is None else [start.digest]))
        dev, mert_lists = (None if each is None else each.corpus for each in others)
        about = digests, path, mert_lists, data.table, start, self.callback
        return RunTask(name, single, data.training.corpus, dev, *about)

    def decode(self) -> None:
        holdout = self.data.others[HOLDOUT].corpus if self.recipe.data.holdout else None
        self.winner, self.choice = choose(self.recipe, self.runs, holdout, self.metric)
        if len(self.runs) > 1 and self.recipe.data.dev:
            log.info("best on dev: %s, seed %d", self.winner.name, self.winner.recipe.seed)
        self._tune([(self.data, run) for run in self.runs])

    def _tune(self, runs: Sequence[tuple[Data, Run]]) -> None:
        """Find out how runs decode best, each with the data that it was trained on."""
        if "learned" in self.recipe.decoders:
            for data, run in runs:
                learn_brackets(data, run)
        tune_decoding(runs)

    def make_model(self) -> Model:
        """The chosen run as a model."""
        winner, data = self.winner, self.data
        score, base = winner.dev_score, winner.training["base"]
        files = self.recipe.data.files(self.recipe.data.training)
        about = provenance(
            learner=winner.training["learner"],
            run=winner.name,
            seed=winner.recipe.seed,
            epochs=winner.training["epochs"],
            dev=None if score is None else {"split": base["split"], "measure": self.metric.primary, "score": score},
            training_data=data_identity(data.training.key, winner.recipe),
            lists=int(winner.training.get("lists", 0)),
            training_base=base["training"],
            columns=columns_seen(self.content.column_names, self.content.live_columns, data.training.sample),
            files={kind: [self.inputs.digest(path) for path in paths] for kind, paths in files.items()},
            decodings=winner.decodings,
            decision=winner.decision,
            start=start.digest or IN_MEMORY if (start := self._start(self.recipe)) else "",
        )
        settings, roles = winner.recipe.model_dump(mode="json"), data.training.about["roles"]
        reader = settings["data"]["reader"]
        if roles and reader["name"] != "table":  # those that were found in training, for use
            from rerank.readers.texts.roles import with_option  # with the forms of JSON

            settings["data"]["reader"] = reader = with_option(reader, "roles", roles)
            settings["data"] |= {"roles": reader["roles"]} if "roles" in reader else {}
        votes = winner.votes(data.training.corpus)
        arrays = votes.arrays() if votes else {}
        weights = {name: raw_weights(weights, data.table) for name, weights in winner.weights.items()}
        brackets = winner.brackets.arrays._asdict() if winner.brackets else {}
        digests = data.training.sample.digests
        self.model = Model(settings, about, data.table, weights, winner.state, arrays, brackets, digests)
        return self.model

    def evaluate(self) -> Metrics:
        recipe, data, metric, winner = self.recipe, self.data, self.metric, self.winner
        tests = {split: data.others[split] for split in self.splits}
        for run in self.runs:
            run.evaluate(tests, data.training.corpus, metric, self.line[0] if run is winner else {})
        for split in self.splits:
            self._predict(split)
        cross = self.tests and not self.splits and data.training.corpus.list_count >= MIN_LISTS_TO_CROSS
        if cross:
            self._cross_validate()
        entries = [run.entry(tests=not self.base_doubt) for run in self.runs]  # nothing is claimed against such a base
        entry = entries[self.runs.index(winner)]
        self.reports, self.signatures = entry["splits"], dict[str, dict[str, str]]()
        for split in winner.choices:
            self._describe(split, data.training if cross else data.others[split])
        return self.run_results(entry, entries, metric) | {
            **own_measure(metric),
            "signatures": self.signatures,
            **{key: value for key, value in data.training.about.items() if key == "account"},
            "corpora": self.corpora,
            "doubts": self.doubts,
            **({"base_doubt": self.base_doubt} if self.base_doubt else {}),
            "features": {key: value for key, value in data.table.about.items() if key != "templates"},
            "dev_split": entry["training"]["base"]["split"],
            "reported": recipe.reported.model_dump() if recipe.reported else None,
            **winner.decision.model_dump(),
            "decision": winner.decision.model_dump(),
            DENSE_LINE: self.line[1],
            "folds": FOLDS if cross else None,
            "choice": self.choice,
            "blind": blind(recipe, self.choice),
            **({"curve": self._curve()} if self.tests and recipe.training.curve else {}),
        }

    def _predict(self, split: str) -> None:
        """Decode a test split, and write its predictions meanwhile."""
        winner, directory, lists = self.winner, self.directory, self.data.others[split]
        ways = {kind: number for number, (run, kind) in enumerate(ways_to_decode(self.runs)) if run is winner}
        leading = ways.get(winner.decision.predictor)
        texts, self.texts[split] = results.selected_texts(lists, winner.choices[split], ways)
        decoder = SplitDecoder(self.data, self.runs, winner, split)
        with open_output(results.prediction_file(directory, split, 0)) as out:
            predictions = results.Predictions(out, self.data, winner, split, Scorer(self.model), leading)
            visitors = [*decoder.visitors, predictions.visitor, *([texts] if self.content.final else [])]
            count = visit_lists(self.data, split, visitors)
            predictions.writer.finish()
        answers = decoder.finish(count)
        if answers is not None:
            plain = not any(b"\n" in text or b"\r" in text for text in answers)  # else they are strings of JSON
            with open_output(results.prediction_file(directory, split, 2 if plain else 3)) as out:
                for text in answers:
                    out.write((text if plain else as_json(text.decode("utf-8", "surrogatepass")).encode()) + b"\n")
        predictions.finish(answers)
        self.answers.append(predictions)

    def _describe(self, split: str, lists: ExtractedSplit) -> None:
        """Add what needs the texts of a split to the results of the chosen run; those of selections that nobody knew
        when its lists were read are read now."""
        choices, texts, self.signatures[split] = self.winner.choices[split], self.texts.get(split, ()), {}
        if not self.content.final:
            return
        if not texts or not choices.keys() <= texts[0][0].keys():
            visitor, texts = results.selected_texts(lists, choices, {})
            visit_lists(self.data, split, [visitor])
        reports, self.signatures[split] = self.content.describe(split, [*choices], texts)
        for name, measures in reports.items():
            self.reports[split][name] |= measures

    def _cross_validate(self) -> None:
        """Measure the chosen run on the training lists: sections of them, by trainings on all other sections."""
        split, lists, winner = self.recipe.data.training, self.data.training, self.winner
        parts = list[tuple[Data, Run]]()
        for first, last in sections(lists.corpus.list_count):
            log.info("cross-validation: without the training lists from %s to %s", f"{first + 1:,}", f"{last:,}")
            mask = np.zeros(lists.corpus.list_count, np.bool_)
            mask[first:last] = True
            rest, section = (part_of(lists, taken, f"{lists.key} {first}") for taken in (~mask, mask))
            data = replace(self.data, training=rest, others={**self.data.others, split: section})
            run = fit(self._task(data, winner.name, winner.recipe, f"without-{first}"))
            join_base(run, data.table)
            parts.append((data, run))
        self._tune(parts)
        for data, run in parts:
            line, _ = dense_line(data.training.corpus, data.table, self.metric)
            run.evaluate({split: data.others[split]}, data.training.corpus, self.metric, line)
        decoders = [SplitDecoder(data, [run], run, split) for data, run in parts]
        visitors = [visitor for each in decoders for visitor in each.visitors]
        count = visit_lists(self.data, split, visitors) if visitors else 0
        for each in decoders:
            each.finish(count)
        winner.take_over(split, lists, [run for _, run in parts])

    def predict(self) -> None:
        for split, selections in self.winner.selections.items():
            selections.save(results.prediction_file(self.directory, split, 1))

    def _curve(self) -> dict[str, Any]:
        """Scores by share of the training lists, their slope, and a test of the last step on the first test split.

        The slope is the least-squares one over base-2 logarithms of the numbers of lists: what doubling them brings.
        """
        winner, metric, splits, training = self.winner, self.metric, self.splits, self.winner.recipe.training
        by_share = dict[float, Run]()
        for share in sorted({share for share in training.curve if share < training.share}) if splits else ():
            log.info("learning curve: %g %% of the training lists", 100 * share)
            single = winner.recipe.change({"training.share": share})
            try:
                by_share[share] = fit(self._task(self.data, winner.name, single, f"share-{share:g}"))
            except (DataError, RecipeError) as error:
                log.warning("training.curve: a share of %g cannot be trained on, and is left out: %s", share, error)
        if not by_share:
            return {}
        by_share[training.share], tables = winner, dict[str, Compared]()
        for split in splits:
            lists = self.data.others[split].corpus
            rows = {f"{share}": scored_rows(lists, metric, run.scores(lists)) for share, run in by_share.items()}
            tables[split] = Compared(metric, lists.reference, rows, **self.recipe.testing)
        points = [
            {"share": share, "lists": run.training["lists"], "dev": run.dev_score,
             "splits": {split: table.report(f"{share}")[metric.primary] for split, table in tables.items()}}
            for share, run in by_share.items()
        ]  # fmt: skip
        sizes = np.log2([point["lists"] for point in points])
        offsets = sizes - sizes.mean()
        rise = (offsets * [point["splits"][splits[0]] for point in points]).sum()
        slope, first = float(rise / (np.square(offsets).sum() or 1.0)), tables[splits[0]]
        other, last = [*first.rows][-2:]
        return {"split": splits[0], "points": points, "slope": slope, "last": first.test_between(last, other).as_dict()}

    def sections(self, metrics: Metrics) -> list[PageSection]:
        scorer = Scorer(self.model, self.recipe.predictor)
        changes = [results.changes_row(own.split, own.after - own.before, own.changes) for own in self.answers]
        generators = [results.examples_of(scorer, own) for own in self.answers]
        examples = [*chain.from_iterable(generators)]
        w = self.model.weights[self.recipe.predictor].strength
        order = np.argsort(-np.abs(w), kind="stable")[:MAX_WEIGHTS]
        order = order[w[order] != 0.0]
        names, strongest = [self.model.table.name(j) for j in order.tolist()], w[order].tolist()
        note = "A weight is for one unit of its feature: weights of scores depend on what these are measured in."
        rows, bars = [*zip(names, reals(strongest), strict=True)], [*map(Bar.of, strongest)]
        weights = [TextTable("Strongest weights", ["feature", "weight"], rows, note=note, bars=bars)]
        return results.list_sections(metrics, runs=self.runs, weights=weights, examples=examples, changes=changes)


def join_base(run: Run, table: FeatureTable) -> None:
    """Let the base score of a run have one weight: that of the template BaseScore, if there is one, is added to it."""
    run.weights = {name: one_base(predictor, table, standard=True) for name, predictor in run.weights.items()}
    base = run.training["base"]
    run.training |= weight_counts(run.weights, run.recipe.training.predictor)
    run.training["base"] = base | {"weights": {name: run.weights[name].base for name in base["weights"]}}


def _fit(task: RunTask) -> Run | None:
    """Fit a run; None stands for one that is kept on a disk, and read from there."""
    run = fit(task)
    return run if task.work() is None else None


def check_single(single: ListRecipe, start: Model | None = None) -> None:
    """Build the parts that a single run names, and refuse settings that exclude one another; start: the model that it
    continues from.

    Raises
    ------
    RecipeError: names the setting, and what is expected.
    """
    settings, learner = single.training, accept(make_learner(single.learner))
    require_source(learner, build(pairs, settings.pairs, "training.pairs"))
    ensemble, select, mert = settings.ensemble, settings.select, getattr(single, "mert", None)
    options = {"mert": mert, "training.select": select, "training.ensemble": ensemble}
    stages = {key: stage for key, stage in options.items() if stage is not None}
    if trees := tree_learner([single.learner, *(stage.model_dump() for stage in stages.values())]):
        make_learner({"name": trees}).require()
    if isinstance(single, TextRecipe) and mert is not None:
        make_mert(single)
    if select is not None:
        accept(make_learner(select.learner, "training.select.learner"))
    no_such = "an ensemble has no such training; leave it out" if ensemble is not None else ""
    for key, conflict, message in (
        ("training.vote", settings.vote, f"{learner.name} finds one optimum, in one go; leave it out" * learner.batch),
        *((key, trees, f"works with weights, and {trees} has trees; leave one of them out") for key in stages),
        ("training.ensemble", ensemble is not None and single.data.dev is None,
         "the scores of its members are compared on dev; name data.dev"),
        ("training.start", settings.start, no_such),
        ("training.vote", settings.vote, no_such),
        ("training.start", select is not None and settings.start is not None,
         "a selection starts from the beginning; leave out start or select"),
        ("training.start", start is not None and not learner.linear,
         f"{learner.name} grows its trees from the beginning; leave it out"),
    ):  # fmt: skip
        if conflict and message:
            raise RecipeError(message, key=key)
    if (bits := single.features.hash_bits) is not None:  # a table of features has only as many columns as there are
        need = bytes_needed(learner, 1 << bits)
        require(need, f"2^{bits} columns with {single.learner['name']}", "take fewer bits", "features.hash_bits")
