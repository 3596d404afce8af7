"""Documents as examples: texts in files, or the 20 Newsgroups, through scikit-learn's vectorisers."""

import re
import warnings
from collections.abc import Sequence
from typing import Any

from rerank.base.errors import DataError, RecipeError
from rerank.data.labelled import Labelled, from_csr
from rerank.readers.lines import LineReader
from rerank.readers.streams import open_stream
from rerank.recipes.settings import Settings
from rerank.runs.examples.scikit import ScikitPart, part_named, scikit

VECTORIZERS = {
    "count": ScikitPart("feature_extraction.text", "CountVectorizer"),
    "tfidf": ScikitPart("feature_extraction.text", "TfidfVectorizer"),
}
KEY = "data.vectorizer"


def read_texts(paths: Sequence[str], vectorizer: Settings) -> tuple[list[Labelled], tuple[str, ...]]:
    """The documents of every file, one ``label TAB text`` per line, and the names of the features.

    The first file alone decides which features there are. Empty lines are skipped.
    """
    labels, texts = zip(*(_documents(path) for path in paths), strict=True)
    return _vectorised(labels, texts, vectorizer, paths[0])


def _documents(path: str) -> tuple[list[str], list[str]]:
    labels, texts = [], []
    with open_stream(path) as stream:
        for number, line in LineReader(stream):
            if not line.strip():
                continue
            label, tab, text = line.decode().partition("\t")
            if not tab or not label.strip():
                message = f"found {line.decode()[:40]!r}, expected a label, a tab and a text"
                raise DataError(message, path=path, line=number)
            labels.append(label.strip())
            texts.append(text)
    if not labels:
        raise DataError("the file is empty; expected lines of a label, a tab and a text", path=path)
    return labels, texts


def read_newsgroups(categories: Sequence[str], vectorizer: Settings) -> tuple[Labelled, tuple[str, ...]]:
    """All messages of these categories, headers included, and the names of the features.

    scikit-learn fetches the collection on first use and keeps it.
    """
    datasets = scikit("datasets", "data.newsgroups")
    try:
        fetched = datasets.fetch_20newsgroups(subset="all", categories=list(categories), shuffle=False)
    except (KeyError, ValueError) as error:
        raise RecipeError(f"the 20 Newsgroups have no such category: {error}", key="data.newsgroups") from None
    except OSError as error:
        raise DataError(f"cannot fetch the 20 Newsgroups: {error}; they are fetched once, over the network") from None
    labels = [fetched.target_names[each] for each in fetched.target]
    (examples,), names = _vectorised([labels], [fetched.data], vectorizer, "20 Newsgroups")
    return examples, names


def _vectorised(
    labels: Sequence[list[str]], texts: Sequence[list[str]], settings: Settings, path: str
) -> tuple[list[Labelled], tuple[str, ...]]:
    made = _vectorizer(settings)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about settings that others leave without effect
            matrices = [made.fit_transform(texts[0]), *(made.transform(part) for part in texts[1:])]
    except (re.error, scikit("utils._param_validation", KEY).InvalidParameterError, TypeError) as error:
        raise RecipeError(f"the vectoriser does not accept its settings: {error}", key=KEY) from None
    except ValueError as error:
        raise DataError(f"the texts yield no features: {error}", path=path) from None
    names = tuple(str(name) for name in made.get_feature_names_out())
    first = from_csr(matrices[0], labels[0])
    rest = [
        from_csr(matrix, part).align(first.classes, first.width)
        for matrix, part in zip(matrices[1:], labels[1:], strict=True)
    ]
    return [first, *rest], names


def _vectorizer(settings: Settings) -> Any:
    """The vectoriser that the settings describe; lists stand for tuples, which YAML does not have."""
    if "ngram_range" in settings:
        pair = settings["ngram_range"]
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise RecipeError(f"found {pair!r}; expected two numbers [low, high]", key=f"{KEY}.ngram_range")
        settings = {**settings, "ngram_range": tuple(pair)}
    return part_named(VECTORIZERS, settings, KEY, refused=("input", "dtype"))
