"""The course of a recipe of tagging: taggers, the best on dev, its measures, its best sequences reranked."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rerank.contrib.structures import fitting
from rerank.contrib.structures.metrics import LabelMetric
from rerank.contrib.structures.readers import TaggedSentence, sentences_of
from rerank.contrib.structures.recipe import RerankSettings, TaggingRecipe, check_labels
from rerank.contrib.structures.tagger import Tagger
from rerank.contrib.structures.training import require_structured
from rerank.kernels.sources import TRAINING
from rerank.learn.base_weight import make_learner
from rerank.learn.contract import accept
from rerank.learn.folds import FOLDS, sections
from rerank.readers.problems import SkipCount
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import Single, TaskRecipe
from rerank.recipes.settings import change
from rerank.runs import experiment
from rerank.runs.compared import Compared
from rerank.runs.experiment import Content, Kind, Metrics, Stages, code_of
from rerank.runs.report import results as report
from rerank.runs.report.page import PageSection
from rerank.runs.report.table import TextTable, count, fixed
from rerank.storage.files import open_output
from rerank.storage.outputs import output_file
from rerank.storage.streams import read_in

MIN_SENTENCES_FOR_FOLDS = 4 * FOLDS  # for cross-validation, where there are no others to test on
CONTEXT_WORDS = 4  # words on either side of an error


def label_table(
    split: str, metric: LabelMetric, sentences: Sequence[TaggedSentence], guesses: Sequence[Sequence[str]]
) -> TextTable:
    """Precision, recall and F1 by label, or by type of span, the most frequent first."""
    counts = metric.counts(guesses, [sentence.labels for sentence in sentences])
    rows = [
        {
            metric.unit: name,
            "P": fixed(100 * correct / max(found, 1)),
            "R": fixed(100 * correct / max(right, 1)),
            "F1": fixed(200 * correct / max(found + right, 1)),
            "correct": count(correct),
            "found": count(found),
            "right": count(right),
        }
        for name, (correct, found, right) in sorted(counts.items(), key=lambda item: -item[1][2])
    ]
    return TextTable.of(f"{split}, by {metric.unit}", rows)


def error_table(
    split: str, sentences: Sequence[TaggedSentence], guesses: Sequence[Sequence[str]], limit: int
) -> TextTable:
    """The first wrong label of the first sentences that have one, with the words around it."""
    rows = list[dict[str, str]]()
    for sentence, labels in zip(sentences, guesses, strict=True):
        wrong = [i for i, (label, right) in enumerate(zip(labels, sentence.labels, strict=True)) if label != right]
        if wrong and len(rows) < limit:
            i, words = wrong[0], sentence.words
            context = [*words[max(i - CONTEXT_WORDS, 0) : i], f"[{words[i]}]", *words[i + 1 : i + 1 + CONTEXT_WORDS]]
            row = {"sentence": sentence.id, "words": " ".join(context), "right": sentence.labels[i]}
            rows.append(row | {"found": labels[i], "wrong labels": count(len(wrong))})
    return TextTable.of(f"{split}, in context", rows, texts=4)


log = logging.getLogger("rerank")
LISTS, SECOND_STAGE = "lists", "rerank"  # directories: the lists of the second stage, and its results


@dataclass(eq=False)
class TaggingRun:
    """A trained tagger, with its evaluation."""

    single: Single[Any]
    tagger: Tagger
    dev: float | None = None
    selections: dict[str, Compared] = field(default_factory=dict)
    guesses: dict[str, list[list[str]]] = field(default_factory=dict)

    def entry(self) -> dict[str, Any]:
        """The run in metrics.json."""
        recipe = self.single.recipe
        return {
            "name": self.single.name, "seed": recipe.seed, "learner": recipe.learner, "dev": self.dev,
            "training": self.tagger.about["training"],
            "splits": {split: compared.reports() for split, compared in self.selections.items()},
            "significance": {split: compared.significance() for split, compared in self.selections.items()},
        }  # fmt: skip


class TaggingKind(Kind[TaggingRecipe]):
    """The steps for labelled sentences; sentences: by split."""

    results = ("model", LISTS)

    def check(self) -> None:
        recipe, data = self.recipe, self.recipe.data
        self.singles = recipe.expand()
        fitting.sequence_reader(data.reader)
        for single in self.singles:
            require_structured(accept(make_learner(single.recipe.learner)))
            fitting.token_features_of(single.recipe.features, 1)
        self.metric = fitting.label_metric(recipe.metric, ())  # auto: until labels are known
        self.splits = tuple(dict.fromkeys([*data.train, *([data.dev] if data.dev else []), *data.tests]))
        self.files = [data.path(split) for split in self.splits]
        for path in self.files:
            self.inputs.open(path, others=[])
        self.code = code_of(recipe, (*TRAINING, str(Path(__file__).parent)))
        self.size, self.predictions = {"splits": len(data.tests)}, [f"{split}.txt" for split in data.tests]
        self.sentences, self.skipped = dict[str, list[TaggedSentence]](), dict[str, SkipCount]()
        self.runs = list[TaggingRun]()

    def extract(self) -> dict[str, int]:
        data = self.recipe.data
        for split in self.splits:
            count = self.skipped[split] = SkipCount(data.on_bad_list)
            path = data.path(split)
            items = read_in(data.encoding, fitting.sequence_reader(data.reader).read(path))
            self.sentences[split] = list(sentences_of(items, count))
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
            settings = single.recipe.model_dump(mode="json", exclude={"name", "about", "quick", "rerank", "examples"})
            run = TaggingRun(single, Tagger.of(*self.once(self.files, settings, partial(self._content, single.recipe))))
            if dev is not None:
                run.dev = self._compared(dev, {"dev": self._guess(run, dev)}).score("dev")
                log.info("%s: %s on %s", single.name, self.metric.text(run.dev), dev)
            self.runs.append(run)
            history = run.tagger.about["history"]
            work.append({"run": single.name, "seed": single.recipe.seed, **line} for line in history)
        return {"results": len(self.runs)}

    def _content(self, recipe: TaggingRecipe) -> Content:
        """The content of the tagger that a recipe of a single run makes."""
        dev = self.recipe.data.dev
        return fitting.train_tagger(recipe, self.train_sentences, self.sentences[dev] if dev else None).content()

    @property
    def best(self) -> TaggingRun:
        """The run that is best on dev, the first of equals."""
        return max(self.runs, key=lambda run: 0.0 if run.dev is None else run.dev)

    def make_model(self) -> Tagger:
        return self.best.tagger

    def evaluate(self) -> Metrics:
        recipe, metric, best, data = self.recipe, self.metric, self.best, self.recipe.data
        for split in data.tests if self.tests else ():
            self._measure(split, self.runs, usual_labels(self.train_sentences, self.sentences[split]))
        alone = self.tests and not data.tests and len(data.train) == 1
        if has_folds := alone and len(self.train_sentences) >= MIN_SENTENCES_FOR_FOLDS:
            self._measure(data.train[0], [best], self._cross_validate())
        entries = [run.entry() for run in self.runs]
        entry = entries[self.runs.index(best)]
        metrics = self.run_results(entry, entries, metric) | {
            "predictor": recipe.training.predictor, "corpora": self.counts(), "dev_split": data.dev,
            "signatures": {split: {metric.primary: metric.signature} for split in entry["splits"]},
            "folds": FOLDS if has_folds else None, "unit": "sentences",
        }  # fmt: skip
        if recipe.rerank is not None and self.tests:
            self._rerank(metrics, recipe.rerank)
        return metrics

    def _measure(self, split: str, runs: Sequence[TaggingRun], usual: list[list[str]]) -> None:
        """Measure runs on a split, whose words have the ``usual`` labels as the base."""
        for run in runs:
            guesses = {"base": usual, self.recipe.training.predictor: self._guess(run, split)}
            run.selections[split] = self._compared(split, guesses)

    def _cross_validate(self) -> list[list[str]]:
        """Label sections of the training sentences by taggers, like the best one, of all other sections; returns the
        usual labels there."""
        every, best, usual = self.train_sentences, self.best, list[list[str]]()
        log.info("cross-validation: %d sections of the sentences", FOLDS)
        taggings = fitting.jackknife(best.tagger, every, FOLDS, 1)
        best.guesses[self.recipe.data.train[0]] = [list(first.labels) for _, (first, *_) in taggings]
        for first, end in sections(len(every)):
            usual += usual_labels([*every[:first], *every[end:]], every[first:end])
        return usual

    def predict(self) -> None:
        """Write words with the labels of the best tagger, in the format of the files, and the rows of statistics."""
        reader = fitting.sequence_reader(self.recipe.data.reader)
        for split in self.recipe.data.tests:
            with open_output(output_file(self.directory, "predictions", f"{split}.txt")) as out:
                for sentence, labels in zip(self.sentences[split], self._guess(self.best, split), strict=True):
                    reader.write(out, sentence, labels)
            self.best.selections[split].save(output_file(self.directory, "predictions", f"{split}.selections.npz"))

    def _ranking(self, stage: RerankSettings) -> TaskRecipe:
        """The recipe that ranks the best sequences, whose lists are written here."""
        data, best = self.recipe.data, self.best
        directory = output_file(self.directory, LISTS)
        directory.mkdir(exist_ok=True)
        lists = {"train": fitting.jackknife(best.tagger, self.train_sentences, stage.folds, stage.n)}
        for split in [*([data.dev] if data.dev else []), *data.tests]:
            lists[split] = fitting.best_of(best.tagger, [self.sentences[split]], stage.n)
        for split, sentences in lists.items():
            with open_output(directory / f"{split}.jsonl.gz") as out:
                fitting.write_lists(out, sentences)
        settings = {
            "name": f"{self.recipe.name}-rerank", "task": "ranking", "seed": best.single.recipe.seed,
            "metric": {"name": self.metric.name}, "features": {"set": "labels"},
            "data": {"root": str(directory), "nbest": "{root}/{split}.jsonl.gz", "reader": "jsonl", "sources": None,
                     "references": None, "dev": data.dev, "tests": list(data.tests)},
            "decode": {"kinds": []},
        }  # fmt: skip
        return read_settings(change(settings, stage.recipe))

    def _rerank(self, metrics: Metrics, stage: RerankSettings) -> None:
        """Rank the best sequences, and add the results to those of the tagger."""
        results = experiment.run(self._ranking(stage), output_file(self.directory, SECOND_STAGE), engine=self.engine)
        predictor, metric, sentences = results.get("predictor", "average"), self.metric, list[str]()
        for split, systems in results["splits"].items():
            metrics["splits"][split] |= {"oracle": systems["oracle"], "reranked": systems[predictor]}
            own, second = self.best.selections[split], Compared.of_run(self.directory / SECOND_STAGE, split)
            own.rows["reranked"], tagger = second.rows[predictor], self.recipe.training.predictor
            tests = own.significance([("reranked", "base"), ("reranked", tagger)])
            test = tests[f"reranked_vs_{tagger}"]
            metrics["significance"][split] |= {
                "reranked_vs_base": tests["reranked_vs_base"],
                "reranked_vs_tagger": test,
            }
            change = metric.gain(own.rows["reranked"], own.reference) - metric.gain(own.rows[tagger], own.reference)
            sentences.append(
                f"On {split}, reranking makes {count((change > 0).sum())} of the tagger's sentences better and "
                f"{count((change < 0).sum())} worse: {report.verdict(test)}."
            )
        metrics["second"] = " ".join(sentences)

    def sections(self, metrics: Metrics) -> list[PageSection]:
        recipe = self.recipe
        splits = [split for split in recipe.data.train if split in self.best.selections]
        pairs = {
            split: (self.sentences[split], self._guess(self.best, split)) for split in [*recipe.data.tests, *splits]
        }
        words = "The base is the label of each word that is its most frequent one in training."
        second = "" if recipe.rerank is None else "The report of the ranking is in rerank/report.html."
        return [
            PageSection("Results", [*(report.results_table(metrics, split) for split in pairs), words, second]),
            PageSection("Labels", [label_table(split, self.metric, *each) for split, each in pairs.items()]),
            PageSection("Errors", [error_table(split, *each, recipe.examples) for split, each in pairs.items()]),
            PageSection("Data", [report.corpora_table(metrics["corpora"])]),
        ]

    def _guess(self, run: TaggingRun, split: str) -> list[list[str]]:
        if split not in run.guesses:
            run.guesses[split] = list(run.tagger.tag_many(sentence.tokens for sentence in self.sentences[split]))
        return run.guesses[split]

    def _compared(self, split: str, guesses: Mapping[str, list[list[str]]]) -> Compared:
        """The labels of a split that are guessed, by the name of who does so."""
        sentences, rows = self.sentences[split], dict[str, np.ndarray]()
        for name, labels in guesses.items():
            reference, rows[name] = self.metric.rows(labels, (each.labels for each in sentences))
        return Compared(self.metric, reference, rows, ids=[each.id for each in sentences], **self.recipe.testing)


def usual_labels(train: Iterable[TaggedSentence], sentences: Iterable[TaggedSentence]) -> list[list[str]]:
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
