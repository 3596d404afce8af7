"""The report of a recipe of tagging as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rerank.metrics.spans import LabelMetric, SpanScore, counts_by_label, counts_by_type
from rerank.readers.sequences.base import TaggedSentence
from rerank.recipes.tagging_recipe import TaggingRecipe
from rerank.runs.report import headline, list_tables
from rerank.runs.report.html import page
from rerank.runs.report.numbers import count, fixed
from rerank.runs.report.table import TextTable
from rerank.runs.results import environment
from rerank.storage.files import write_text

CONTEXT = 4  # words on either side of an error


def write_page(
    path: Path,
    recipe: TaggingRecipe,
    metrics: Mapping[str, Any],
    seconds: float,
    metric: LabelMetric,
    sentences: Mapping[str, Sequence[TaggedSentence]],
    guessed: Mapping[str, Sequence[Sequence[str]]],
) -> None:
    """Write the report to ``path``; sentences, guessed: those of every test split, and the labels they were given."""
    pairs = {split: (sentences[split], guessed[split]) for split in sentences}
    text = page(
        "tagging.html.j2",
        metrics,
        recipe=recipe.as_yaml(),
        date=datetime.now().astimezone(),
        seconds=seconds,
        environment=environment(),
        runs="run",
        about=recipe.about,
        summary=headline.headline(metrics),
        parts=[
            ("results", "Results", [headline.results_on_page(metrics, split) for split in sentences]),
            ("labels", "Labels", [label_table(split, metric, *each) for split, each in pairs.items()]),
            ("errors", "Errors", [error_table(split, *each, recipe.examples) for split, each in pairs.items()]),
            ("training", "Training", [list_tables.training_table(dict(metrics))]),
            ("data", "Data", [sizes_table(metrics["corpora"])]),
        ],
        second=recipe.rerank is not None,
    )
    write_text(path, text)


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
    counts = (counts_by_type if spans else counts_by_label)(guessed, [sentence.labels for sentence in sentences])
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
