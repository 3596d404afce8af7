"""The best sequences of labels as lists in JSON lines, which `task: ranking` and `rerank rank` read.

A candidate's text is its words with their labels behind slashes, its answer the labels alone, its score the tagger's;
the reference is the text with the right labels, where these are known.
"""

from collections.abc import Iterable, Iterator, Sequence

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.contrib.structures.fitting import train_tagger
from rerank.contrib.structures.readers import TaggedSentence
from rerank.contrib.structures.recipe import TaggingRecipe
from rerank.contrib.structures.slash import slashed
from rerank.contrib.structures.tagger import Tagger, Tagging
from rerank.readers.streams import OutputStream
from rerank.storage.strict_json import as_json

Best = Iterator[tuple[TaggedSentence, list[Tagging]]]  # sentences with their best sequences


def best_of(tagger: Tagger, batches: Iterable[Sequence[TaggedSentence]], n: int) -> Best:
    """Sentences with their ``n`` best sequences."""
    for batch in batches:
        yield from zip(batch, tagger.nbest_many((sentence.tokens for sentence in batch), n), strict=True)


def jackknifed(recipe: TaggingRecipe, sentences: Sequence[TaggedSentence], folds: int, n: int, epochs: int) -> Best:
    """Sentences with their best sequences by a tagger that was trained, for this many epochs, on the other folds.

    A fold is a run of sentences, so that documents fall into one or two.

    Raises
    ------
    DataError: fewer sentences than folds.
    """
    if len(sentences) < folds:
        raise DataError(f"found {len(sentences)} sentences; expected {folds} or more, one for each of the --folds")
    shorter = recipe.changed({"training.epochs": epochs, "training.patience": None})
    for fold in range(folds):
        first, end = (len(sentences) * k // folds for k in (fold, fold + 1))
        tagger, _ = train_tagger(shorter, [*sentences[:first], *sentences[end:]])
        yield from best_of(tagger, [sentences[first:end]], n)


def write_lists(out: OutputStream, best: Best) -> int:
    """Write lists; returns how many.

    Ids that are not there, or are repeated, are replaced by places in the file, blanks in words by underscores.

    Raises
    ------
    DataError: a label with a blank.
    """
    seen, number = set[str](), -1
    for number, (sentence, taggings) in enumerate(best):
        for label in {label for tagging in taggings for label in tagging.labels} | {*sentence.labels}:
            if label.split() != [label]:
                message = f"found the label {label!r}; behind a slash it may have no blanks"
                raise DataError(message, path=sentence.path or None, line=sentence.line or None)
        name = sentence.id if sentence.id and sentence.id not in seen else f"sentence {number}"
        seen.add(name)
        words = ["_".join(word.split()) for word in sentence.words]
        references = {"references": [slashed(words, sentence.labels)]} if sentence.labels else {}
        candidates = [
            {"text": slashed(words, labels), "score": score, "answer": " ".join(labels)} for labels, score in taggings
        ]
        line = {"id": name, "source": " ".join(words), **references, "candidates": candidates}
        out.write(encoded(f"{as_json(line)}\n"))
        out.flush()
    return number + 1
