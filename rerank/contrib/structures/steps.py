"""The course of a recipe of tagging: taggers, the best on dev, what it gets right, its best sequences reranked."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rerank.contrib.structures import fitting
from rerank.contrib.structures.metrics import LabelMetric, SpanScore, counts_of
from rerank.contrib.structures.readers import TaggedSentence, sentences_of
from rerank.contrib.structures.recipe import RerankSettings, TaggingRecipe, check_labels
from rerank.contrib.structures.tagger import Tagger
from rerank.contrib.structures.training import structured
from rerank.kernels.sources import COMPILATION
from rerank.learn.base_weight import make_learner
from rerank.learn.folds import FOLDS, sections
from rerank.readers.problems import SkipCount
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import Single, TaskRecipe
from rerank.recipes.settings import changed
from rerank.runs import experiment
from rerank.runs.compared import Compared
from rerank.runs.experiment import Kind, Metrics, Stages, code_of
from rerank.runs.report import results as report
from rerank.runs.report.page import PageSection
from rerank.runs.report.table import TextTable, count, fixed
from rerank.storage.files import open_output
from rerank.storage.outputs import RUNS, Work, key_of, output_file
from rerank.storage.streams import read_in

SOURCES = (  # what results depend on
    *COMPILATION, "data", "learn", "metrics", "readers", str(Path(__file__).parent),
)  # fmt: skip
FEWEST_CROSSED = 4 * FOLDS  # sentences, without others to test on, from which on they are cross-validated
CONTEXT = 4  # words on either side of an error


def sizes_table(corpora: Mapping[str, Any]) -> TextTable:
    """The sizes of the splits."""
    rows = [
        {
            "split": split,
            **{key: count(entry[key]) for key in ("sentences", "tokens", "labels")},
            "left out": count(sum(entry["skipped"].values())),
        }
        for split, entry in corpora.items()
    ]
    return TextTable.of("Sentences", rows)


def label_table(
    split: str, metric: LabelMetric, sentences: Sequence[TaggedSentence], guessed: Sequence[Sequence[str]]
) -> TextTable:
    """Precision, recall and F1 by label, or by type of span, the most frequent first."""
    spans = isinstance(metric, SpanScore)
    counts = counts_of(guessed, [sentence.labels for sentence in sentences], spans=spans)
    rows = [
        {
            "type" if spans else "label": name,
            "P": fixed(100 * correct / max(found, 1)),
            "R": fixed(100 * correct / max(right, 1)),
            "F1": fixed(200 * correct / max(found + right, 1)),
            "correct": count(correct),
            "found": count(found),
            "right": count(right),
        }
        for name, (correct, found, right) in sorted(counts.items(), key=lambda item: -item[1][2])
    ]
    return TextTable.of(f"{split}, by {'type of span' if spans else 'label'}", rows)


def error_table(
    split: str, sentences: Sequence[TaggedSentence], guessed: Sequence[Sequence[str]], most: int
) -> TextTable:
    """The first wrong label of the first sentences that have one, with the words around it."""
    rows = list[dict[str, str]]()
    for sentence, labels in zip(sentences, guessed, strict=True):
        wrong = [i for i, (label, right) in enumerate(zip(labels, sentence.labels, strict=True)) if label != right]
        if wrong and len(rows) < most:
            i, words = wrong[0], sentence.words
            context = [*words[max(i - CONTEXT, 0) : i], f"[{words[i]}]", *words[i + 1 : i + 1 + CONTEXT]]
            row = {"sentence": sentence.id, "words": " ".join(context), "right": sentence.labels[i]}
            rows.append(row | {"found": labels[i], "wrong labels": count(len(wrong))})
    return TextTable.of(f"{split}, in context", rows, texts=4)


log = logging.getLogger("rerank")
LISTS, SECOND = "lists", "rerank"  # folders: the lists of the second stage, and its results


@dataclass(eq=False)
class TaggingRun:
    """A trained tagger, with what was evaluated of it."""

    single: Single[Any]
    tagger: Tagger
    dev: float | None = None
    selections: dict[str, Compared] = field(default_factory=dict)
    guessed: dict[str, list[list[str]]] = field(default_factory=dict)

    def entry(self) -> dict[str, Any]:
        """The run in metrics.json."""
        recipe = self.single.recipe
        return {
            "name": self.single.name, "seed": recipe.seed, "learner": recipe.learner, "dev": self.dev,
            "training": self.tagger.about["training"],
            "splits": {split: compared.reports() for split, compared in self.selections.items()},
            "significance": {split: compared.significance() for split, compared in self.selections.items()},
        }  # fmt: skip


class TaggingSteps(Kind[TaggingRecipe]):
    """The steps for labelled sentences; sentences: those of every split."""

    results = ("model", LISTS)
    singles: list[Single[Any]]

    def check(self) -> None:
        recipe, data = self.recipe, self.recipe.data
        self.singles = recipe.expand()
        fitting.sequence_reader(data.reader)
        for single in self.singles:
            structured(make_learner(single.recipe.learner))
            fitting.token_features_of(single.recipe.features, 1)
        self.metric = fitting.label_metric(recipe.metric, ())  # auto: until labels are known
        self.splits = tuple(dict.fromkeys([*data.train, *([data.dev] if data.dev else []), *data.tests]))
        self.files = [data.place(split) for split in self.splits]
        for path in self.files:
            self.inputs.open(path, others=[])
        self.code = code_of(recipe, SOURCES)
        self.size, self.predictions = {"splits": len(data.tests)}, [f"{split}.txt" for split in data.tests]
        self.sentences, self.skipped = dict[str, list[TaggedSentence]](), dict[str, SkipCount]()
        self.runs = list[TaggingRun]()

    def extract(self) -> dict[str, int]:
        data = self.recipe.data
        for split in self.splits:
            count = self.skipped[split] = SkipCount(data.on_bad_list)
            path = data.place(split)
            read = read_in(data.encoding, fitting.sequence_reader(data.reader).read(path))
            self.sentences[split] = list(sentences_of(read, count))
            if not self.sentences[split]:
                raise count.nothing(path)
            count.warn()
            if split in data.train:
                check_labels(self.sentences[split], data.reader, path)
        self.train_sentences = [sentence for split in data.train for sentence in self.sentences[split]]
        labels = {label for sentence in self.train_sentences for label in sentence.labels}
        self.metric = fitting.label_metric(self.recipe.metric, labels)
        return {"sentences": sum(map(len, self.sentences.values()))}

    def counts(self) -> dict[str, Any]:
        return {
            split: {
                "sentences": len(sentences),
                "tokens": sum(len(sentence.tokens) for sentence in sentences),
                "labels": len({label for sentence in sentences for label in sentence.labels}),
                "skipped": dict(self.skipped[split].reasons),
            }
            for split, sentences in self.sentences.items()
        }

    def train(self, work: Stages) -> dict[str, int]:
        dev = self.recipe.data.dev
        for single in self.singles:
            tagger = self._trained(single)
            run = TaggingRun(single, tagger)
            if dev is not None:
                rows, reference = self._rows(dev, self._guess(run, dev))
                run.dev = float(self.metric.scores(rows.sum(axis=0), reference.sum(axis=0)))
                log.info("%s: %s on %s", single.name, self.metric.text(run.dev), dev)
            self.runs.append(run)
            work.append({"run": single.name, "seed": single.recipe.seed, **line} for line in tagger.about["history"])
        return {"results": len(self.runs)}

    def _trained(self, single: Single[Any]) -> Tagger:
        """The tagger of a single run, unless it is kept already."""
        recipe, dev = single.recipe, self.recipe.data.dev
        settings = recipe.model_dump(mode="json", exclude={"name", "about", "quick", "rerank", "examples"})
        key = key_of(self.code, [self.inputs.digest(path) for path in self.files], settings)
        work = Work(output_file(self.directory, RUNS, f"{key}.npz"), key)
        if (kept := work.load()) is not None:
            header, arrays = kept
            return Tagger.of(header["tagger"], header["lexicons"], arrays)
        tagger, training = fitting.train_tagger(recipe, self.train_sentences, self.sentences[dev] if dev else None)
        seconds = sum(line.get("seconds", 0.0) for line in training.history)
        tagger.about["history"] = training.history
        tagger.about["training"] = {
            "learner": recipe.learner["name"], "epochs": training.epoch, "seconds": round(seconds, 3),
            "attributes": len(tagger.features.ids), "nonzero_weights": int(np.count_nonzero(tagger.weights)),
            "mistakes": [line["mistakes"] for line in training.history if "mistakes" in line],
        }  # fmt: skip
        content, lexicons, arrays = tagger.content()
        work.save({"tagger": content, "lexicons": lexicons}, arrays)
        return tagger

    @property
    def chosen(self) -> TaggingRun:
        """The run that is best on dev, the first of equals."""
        return max(self.runs, key=lambda run: 0.0 if run.dev is None else run.dev)

    def make_model(self) -> Tagger:
        return self.chosen.tagger

    def evaluate(self) -> Metrics:
        recipe, metric, chosen, data = self.recipe, self.metric, self.chosen, self.recipe.data
        for split in data.tests if self.tests else ():
            self._measure(split, self.runs, most_frequent(self.train_sentences, self.sentences[split]))
        alone = self.tests and not data.tests and len(data.train) == 1
        if crossed := alone and len(self.train_sentences) >= FEWEST_CROSSED:
            self._measure(data.train[0], [chosen], self._cross_validated())
        entries = [run.entry() for run in self.runs]
        entry = entries[self.runs.index(chosen)]
        metrics = self.run_results(entry, entries, metric) | {
            "predictor": recipe.training.predictor, "corpora": self.counts(), "dev_split": data.dev,
            "signatures": {split: {metric.primary: metric.signature} for split in entry["splits"]},
            "folds": FOLDS if crossed else None, "unit": "sentences",
        }  # fmt: skip
        if recipe.rerank is not None and self.tests:
            self._rerank(metrics, recipe.rerank)
        return metrics

    def _measure(self, split: str, runs: Sequence[TaggingRun], usual: list[list[str]]) -> None:
        """Measure runs on a split, whose words have the ``usual`` labels as the base."""
        metric, used = self.metric, self.recipe.training.predictor
        base, reference = self._rows(split, usual)
        for run in runs:
            rows = {"base": base, used: self._rows(split, self._guess(run, split))[0]}
            ids = [each.id for each in self.sentences[split]]
            run.selections[split] = Compared(metric, reference, rows, ids=ids, **self.recipe.testing)

    def _cross_validated(self) -> list[list[str]]:
        """Label sections of the training sentences by taggers, like the chosen one, of all other sections; returns the
        usual labels there."""
        every, chosen, usual = self.train_sentences, self.chosen, list[list[str]]()
        log.info("cross-validation: %d sections of the sentences", FOLDS)
        epochs = int(chosen.tagger.about["training"]["epochs"])
        taggings = fitting.jackknifed(chosen.single.recipe, every, FOLDS, 1, epochs)
        chosen.guessed[self.recipe.data.train[0]] = [list(best[0].labels) for _, best in taggings]
        for first, end in sections(len(every)):
            usual += most_frequent([*every[:first], *every[end:]], every[first:end])
        return usual

    def predict(self) -> None:
        """Words with the labels of the chosen tagger, in the format of the files, and the rows of statistics."""
        reader = fitting.sequence_reader(self.recipe.data.reader)
        for split in self.recipe.data.tests:
            with open_output(output_file(self.directory, "predictions", f"{split}.txt")) as out:
                for sentence, labels in zip(self.sentences[split], self._guess(self.chosen, split), strict=True):
                    reader.write(out, sentence, labels)
            self.chosen.selections[split].save(output_file(self.directory, "predictions", f"{split}.selections.npz"))

    def _ranking(self, stage: RerankSettings) -> TaskRecipe:
        """The recipe that ranks the best sequences, whose lists are written here."""
        data, chosen = self.recipe.data, self.chosen
        place = output_file(self.directory, LISTS)
        place.mkdir(exist_ok=True)
        epochs = int(chosen.tagger.about["training"]["epochs"])
        with open_output(place / "train.jsonl.gz") as out:
            recipe = chosen.single.recipe
            fitting.write_lists(out, fitting.jackknifed(recipe, self.train_sentences, stage.folds, stage.n, epochs))
        others = dict.fromkeys([*([data.dev] if data.dev else []), *data.tests])
        for split in others:
            with open_output(place / f"{split}.jsonl.gz") as out:
                fitting.write_lists(out, fitting.best_of(chosen.tagger, [self.sentences[split]], stage.n))
        settings = {
            "name": f"{self.recipe.name}-rerank", "task": "ranking", "seed": chosen.single.recipe.seed,
            "metric": {"name": self.metric.name}, "features": {"set": "labels"},
            "data": {"root": str(place), "nbest": "{root}/{split}.jsonl.gz", "reader": "jsonl", "sources": None,
                     "references": None, "dev": data.dev, "tests": list(data.tests)},
            "decode": {"kinds": []},
        }  # fmt: skip
        return read_settings(changed(settings, stage.recipe))

    def _rerank(self, metrics: Metrics, stage: RerankSettings) -> None:
        """Rank the best sequences, and put the results beside those of the tagger."""
        results = experiment.run(self._ranking(stage), output_file(self.directory, SECOND), engine=self.engine)
        predictor, metric, said = results.get("predictor", "average"), self.metric, list[str]()
        for split, systems in results["splits"].items():
            metrics["splits"][split] |= {"oracle": systems["oracle"], "reranked": systems[predictor]}
            own, second = self.chosen.selections[split], Compared.of_run(self.directory / SECOND, split)
            own.rows["reranked"], tagger = second.rows[predictor], self.recipe.training.predictor
            tests = own.significance([("reranked", "base"), ("reranked", tagger)])
            beside = tests[f"reranked_vs_{tagger}"]
            metrics["significance"][split] |= {
                "reranked_vs_base": tests["reranked_vs_base"],
                "reranked_vs_tagger": beside,
            }
            change = metric.gain(own.rows["reranked"], own.reference) - metric.gain(own.rows[tagger], own.reference)
            said.append(
                f"On {split}, reranking makes {count((change > 0).sum())} of the tagger's sentences better and "
                f"{count((change < 0).sum())} worse: {report.verdict(beside)}."
            )
        metrics["second"] = " ".join(said)

    def sections(self, metrics: Metrics) -> list[PageSection]:
        recipe = self.recipe
        crossed = [split for split in recipe.data.train if split in self.chosen.selections]
        pairs = {
            split: (self.sentences[split], self._guess(self.chosen, split)) for split in [*recipe.data.tests, *crossed]
        }
        words = "The base is the label of each word that is its most frequent one in training."
        second = "" if recipe.rerank is None else "The report of the ranking is in rerank/report.html."
        return [
            PageSection("Results", [*(report.results_table(metrics, split) for split in pairs), words, second]),
            PageSection("Labels", [label_table(split, self.metric, *each) for split, each in pairs.items()]),
            PageSection("Errors", [error_table(split, *each, recipe.examples) for split, each in pairs.items()]),
            PageSection("Data", [sizes_table(metrics["corpora"])]),
        ]

    def _guess(self, run: TaggingRun, split: str) -> list[list[str]]:
        if split not in run.guessed:
            run.guessed[split] = list(run.tagger.tag_many(sentence.tokens for sentence in self.sentences[split]))
        return run.guessed[split]

    def _rows(self, split: str, guessed: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of guesses for a split, float64 [L, K], and of what is right, float64 [L, R]."""
        reference, rows = self.metric.rows(guessed, (each.labels for each in self.sentences[split]))
        return rows, reference


def most_frequent(train: Iterable[TaggedSentence], sentences: Iterable[TaggedSentence]) -> list[list[str]]:
    """Labels of sentences: of every word its most frequent one in ``train``, the first of equals; of unknown words that
    of all words."""
    counts, every = dict[str, Counter[str]](), Counter[str]()
    for sentence in train:
        every.update(sentence.labels)
        for word, label in zip(sentence.words, sentence.labels, strict=True):
            counts.setdefault(word, Counter())[label] += 1
    usual = {word: labels.most_common(1)[0][0] for word, labels in counts.items()}
    other = every.most_common(1)[0][0]
    return [[usual.get(word, other) for word in sentence.words] for sentence in sentences]
