"""From labelled sentences to a tagger: attributes, constraints, training; and ``rerank.tagger``."""

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from rerank.base.encoding import encoded
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.contrib.structures.attributes import (
    Attributes,
    TokenFeatures,
    default_patterns,
    read_patterns,
)
from rerank.contrib.structures.chain import UNKNOWN, Chains, chains_of, decode
from rerank.contrib.structures.metrics import LabelMetric, has_spans, parts_of, span_form
from rerank.contrib.structures.readers import (
    SequenceReader,
    TaggedSentence,
    join_tags,
    sentences_of,
    sequence_readers,
    text_lines,
)
from rerank.contrib.structures.recipe import TaggingRecipe, TokenFeatureSettings, check_labels
from rerank.contrib.structures.tagger import Tagger, Tagging, token_rows
from rerank.contrib.structures.training import ChainProblem
from rerank.learn.base_weight import make_learner
from rerank.learn.contract import accept
from rerank.learn.folds import sections
from rerank.learn.learner import Weights
from rerank.learn.train import Observer, score_on, train
from rerank.metrics.metric import metrics
from rerank.models.provenance import provenance
from rerank.readers.problems import SkipCount
from rerank.recipes.loading import read_settings
from rerank.recipes.settings import Settings, as_settings
from rerank.storage.documents import as_json
from rerank.storage.files import OutputStream
from rerank.storage.streams import PathLike

log = logging.getLogger("rerank")
# A file, or sentences whose tokens are rows that end with the label, as (word, tag).
LabelledSource: TypeAlias = PathLike | Iterable[Sequence[Sequence[str]]]


def sequence_reader(settings: str | Settings, key: str = "data.reader") -> SequenceReader:
    """Build the reader that settings, or a name, describe."""
    return build(sequence_readers, as_settings(settings, "conll"), key)


def label_metric(spec: Settings, labels: Collection[str]) -> LabelMetric:
    """The metric that a recipe names or, for auto, that of spans where labels speak of these."""
    metric = build(
        metrics, {"name": "spans" if has_spans(labels) else "tags"} if spec["name"] == "auto" else spec, "metric"
    )
    if not isinstance(metric, LabelMetric):
        raise RecipeError(f"{spec['name']} does not measure labels; expected spans, tags or auto", key="metric.name")
    return metric


def token_features_of(settings: TokenFeatureSettings, width: int) -> TokenFeatures:
    """The maker of attributes of tokens with this many columns; it knows no attributes yet."""
    lines = list[str]()
    for item in settings.templates:
        if item == "default":
            lines += default_patterns(width)
        elif item == "B" or (item.startswith(("U", "B")) and ":" in item):
            lines.append(item)
        else:
            lines += [line for _, line in text_lines(item)]
    return TokenFeatures(read_patterns(lines))


def label_mask(labels: Sequence[str], how: str, sequences: Iterable[Sequence[str]]) -> np.ndarray:
    """uint8 [K + 2, K]: 1 where a label may follow another, begin (row K) and end (row K + 1); see ``constraints``.

    Where labels do not mark spans, or are not always as spans have them, any may follow any. The mask allows labels for
    any number of tokens: one may begin, follow itself, and end.
    """
    K = len(labels)
    free = np.ones((K + 2, K), np.uint8)
    if how == "none":
        return free
    if not has_spans(labels):
        forms = [span_form(label) for label in labels]
        if has_spans(forms):
            label, form = next(pair for pair in zip(labels, forms, strict=True) if pair[0] != pair[1])
            message = "the labels look like those of spans in another form, and are taken for tags: write %s for %s"
            log.warning(f"{message}, or, if they are tags, set constraints: none and metric: tags", form, label)
        return free
    parts = [*map(parts_of, labels)]
    has_ends, outside = any(part in "ES" for part, _ in parts), ("O", "")  # BIOES: a span ends with E

    def may_follow(before: tuple[str, str], after: tuple[str, str]) -> bool:
        is_open = before[0] in "BI"
        return (is_open and before[1] == after[1]) if after[0] in "IE" else not (has_ends and is_open)

    steps = [[may_follow(before, after) for after in parts] for before in [*parts, outside]]
    mask = np.array([*steps, [may_follow(part, outside) for part in parts]], np.uint8)
    number = {label: k for k, label in enumerate(labels)}
    for sequence in sequences:
        ids = [number[label] for label in sequence if label in number]
        if ids and not all(mask[step] for step in ((K, ids[0]), *pairwise(ids), (K + 1, ids[-1]))):
            log.info("labels begin spans where they cannot in IOB2 or BIOES: any may follow any")
            return free
    return mask if (mask[K] & mask[K + 1] & mask[:K].diagonal()).any() else free


def train_tagger(
    recipe: TaggingRecipe, sentences: Sequence[TaggedSentence], dev: Sequence[TaggedSentence] | None = None
) -> Tagger:
    """Train a tagger by a recipe of a single run; its provenance has the ``history`` and what metrics.json says of the
    ``training``.

    Raises DataError: sentences whose tokens have different columns.
    """
    settings = recipe.training
    width, every = len(sentences[0].tokens[0]), [*sentences, *(dev or ())]
    for sentence in every:
        if any(len(token) != width for token in sentence.tokens):
            message = f"found tokens of other columns than the {width} of the first sentence"
            raise DataError(message, path=sentence.path or None, line=sentence.line or None)
    labels = tuple(sorted({label for sentence in sentences for label in sentence.labels}))
    mask = label_mask(labels, recipe.constraints, (sentence.labels for sentence in every))
    number, features = {label: k for k, label in enumerate(labels)}, token_features_of(recipe.features, width)

    def chains(attributes: Attributes, sentences: Sequence[TaggedSentence]) -> Chains:
        """Sentences as a learner sees them, labels that training does not have being unknown."""
        gold = [number.get(label, UNKNOWN) for sentence in sentences for label in sentence.labels]
        return chains_of(*attributes, gold, mask, attribute_count=len(features.ids))

    attributes = features.learn([sentence.tokens for sentence in sentences], recipe.features.cutoff)
    corpus = chains(attributes, sentences)
    observers = list[Observer]()
    if dev is not None:
        dev_chains = chains(features.extract([each.tokens for each in dev]), dev)
        metric, right = label_metric(recipe.metric, labels), [sentence.labels for sentence in dev]

        def evaluate(weights: Weights) -> float:
            guesses = dev_chains.split([labels[k] for k in decode(dev_chains, weights.w).tolist()])
            reference, rows = metric.rows(guesses, right)
            return metric.score(rows, reference)

        observers = [score_on(evaluate)]
    training = train(
        accept(make_learner(recipe.learner)), ChainProblem(corpus, recipe.seed, settings.shuffle),
        epochs=settings.epochs, predictor=settings.predictor, patience=settings.patience, observers=observers,
    )  # fmt: skip
    K, weights = len(labels), training.weights[settings.predictor].w.astype(np.float32)
    table = weights[K * K :].reshape(-1, K)
    rows = np.asarray(table.any(axis=1))  # attributes without any weight are forgotten
    features.ids = {text: j for j, text in enumerate(text for text, k in features.ids.items() if rows[k])}
    weights = np.concatenate([weights[: K * K], table[rows].ravel()])
    history, learner = training.history, str(recipe.learner["name"])
    facts = {
        "learner": learner, "epochs": training.epoch, "seconds": round(sum(line["seconds"] for line in history), 3),
        "attributes": len(features.ids), "nonzero_weights": int(np.count_nonzero(weights)),
        "mistakes": [line["mistakes"] for line in history],
    }  # fmt: skip
    about = provenance(learner=learner, seed=recipe.seed, epochs=training.epoch, history=history, training=facts)
    return Tagger(recipe.model_dump(mode="json"), about, features, labels, mask, weights, width)


def tagger(
    train: LabelledSource,
    dev: LabelledSource | None = None,
    *,
    reader: str | Mapping[str, Any] = "conll",
    learner: str | Mapping[str, Any] = "perceptron",
    templates: str | Sequence[str] = "default",
    features: Mapping[str, Any] | None = None,
    epochs: int | None = None,
    seed: int = 1,
    constraints: str = "auto",
    training: Mapping[str, Any] | None = None,
) -> Tagger:
    """Train a tagger of words.

    Parameters
    ----------
    train, dev: files, or lists of sentences, each a list of tokens ``(word, label)`` or, with more columns between
        them, ``(word, tag, label)``. dev chooses the epoch.
    reader: the format of files, by name or with options.
    learner: by name or with parameters; maxent makes a CRF.
    templates: "default", lines in the syntax of CRF++, or files of them.
    features, training, constraints: further settings, as in recipes of ``task: tagging``.
    epochs, seed: passes over the sentences, and their order.

    Raises
    ------
    RecipeError: a setting that is unknown or has no such value. DataError: sentences that cannot be used.
    """
    settings = {
        "name": "tagger",
        "task": "tagging",
        "seed": seed,
        "data": {"reader": reader, "dev": None},
        "features": {"templates": templates, **(features or {})},
        "learner": learner,
        "constraints": constraints,
        "training": dict(training or {}) | ({} if epochs is None else {"epochs": epochs}),
    }
    recipe = read_settings(settings)
    assert isinstance(recipe, TaggingRecipe)
    return train_tagger(recipe, _sentences_from(train, reader), None if dev is None else _sentences_from(dev, reader))


def _sentences_from(source: LabelledSource, reader: str | Mapping[str, Any]) -> list[TaggedSentence]:
    """Labelled sentences of a file, or of a program."""
    if isinstance(source, str | os.PathLike):
        items = sequence_reader(reader if isinstance(reader, str) else dict(reader), "reader").read(source)
        sentences = list(sentences_of(items, SkipCount()))
        check_labels(sentences, as_settings(reader), os.fspath(source))
    elif not isinstance(source, Iterable) or isinstance(source, Mapping):
        raise DataError(f"found {source!r}; expected a file, or sentences with labels")
    else:
        sentences = []
        for number, tokens in enumerate(source, start=1):
            if rows := token_rows(tokens, number):
                labels = tuple(row[-1] for row in rows)
                sentences.append(TaggedSentence(tuple(row[:-1] for row in rows), labels, str(number)))
    if not sentences:
        raise DataError("found no sentences; expected some with labels")
    return sentences


Best = Iterator[tuple[TaggedSentence, list[Tagging]]]  # sentences with their best sequences


def best_of(tagger: Tagger, batches: Iterable[Sequence[TaggedSentence]], n: int) -> Best:
    """Sentences with their ``n`` best sequences."""
    for batch in batches:
        yield from zip(batch, tagger.nbest_many((sentence.tokens for sentence in batch), n), strict=True)


def jackknife(tagger: Tagger, sentences: Sequence[TaggedSentence], folds: int, n: int) -> Best:
    """Sentences with their best sequences by taggers like this one, trained for as many epochs on the other folds.

    A fold is a run of sentences, so that documents fall into one or two.

    Raises DataError: fewer sentences than folds.
    """
    if len(sentences) < folds:
        raise DataError(f"found {len(sentences)} sentences; expected {folds} or more, one for each fold")
    shorter = {"training.epochs": tagger.about["epochs"], "training.patience": None}
    recipe = TaggingRecipe.model_validate(tagger.settings).change(shorter)
    for first, end in sections(len(sentences), folds):
        yield from best_of(train_tagger(recipe, [*sentences[:first], *sentences[end:]]), [sentences[first:end]], n)


def write_lists(out: OutputStream, best: Best) -> int:
    """Write lists in JSON lines, which `task: ranking` and `rerank rank` read; returns how many.

    A candidate's text is its words with their labels behind slashes, its answer the labels alone, its score the
    tagger's; the reference is the text with the right labels, where these are known.

    Ids that are not there, or are repeated, are replaced by places in the file, blanks in words by underscores.

    Raises DataError: a label with a blank.
    """
    ids, number = set[str](), -1
    for number, (sentence, taggings) in enumerate(best):
        for label in {label for tagging in taggings for label in tagging.labels} | {*sentence.labels}:
            if label.split() != [label]:
                message = f"found the label {label!r}; behind a slash it may have no blanks"
                raise DataError(message, path=sentence.path or None, line=sentence.line or None)
        name = sentence.id if sentence.id and sentence.id not in ids else f"sentence {number}"
        ids.add(name)
        words = ["_".join(word.split()) for word in sentence.words]
        references = {"references": [join_tags(words, sentence.labels)]} if sentence.labels else {}
        candidates = [
            {"text": join_tags(words, labels), "score": score, "answer": " ".join(labels)} for labels, score in taggings
        ]
        line = {"id": name, "source": " ".join(words), **references, "candidates": candidates}
        out.write(encoded(f"{as_json(line)}\n"))
        out.flush()
    return number + 1
