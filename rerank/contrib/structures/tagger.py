"""A tagger: the best labels of words, the best k, and how probable each is.

Its folder has the weights that are not 0 (``columns.npy``, int64, and ``values.npy``, float32; columns as in
``rerank.contrib.structures.chain``), and ``model.json``, with the texts of the attributes in their order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from pydantic import ConfigDict, Field

from rerank.base.errors import DataError
from rerank.base.ranges import Range
from rerank.contrib.structures.attributes import TokenFeatures, read_patterns
from rerank.contrib.structures.chain import Chains, chains_of, decode, named_k_best
from rerank.contrib.structures.readers import BATCH_SENTENCES, Token
from rerank.contrib.structures.training import marginals
from rerank.models import model as models
from rerank.models.provenance import Trust, require_trusted
from rerank.readers.memory.nbest import InputError
from rerank.recipes.settings import Section
from rerank.storage.files import new_directory, read_array, save_arrays

MAX_SENTENCES = 100_000  # of a request
MAX_STEPS = 20_000_000  # words times labels times sequences of a sentence, of 16 bytes each
Words: TypeAlias = Sequence[str] | Sequence[Sequence[str]]  # words, or tokens with several columns


class TaggerHeader(models.Header):
    """The content of ``model.json``. width: columns of tokens."""

    labels: Annotated[list[str], Field(min_length=1)]
    forbidden: list[list[int]]
    patterns: list[str]
    width: Annotated[int, Field(ge=1)]
    attributes: list[str]


class TagRequest(Section):
    """Sentences to tag, of words or of tokens with several columns. n: so many sequences of labels of each, with their
    scores."""

    model_config = ConfigDict(strict=True, extra="allow")

    sentences: list[list[str] | list[list[str]]] = Field(min_length=1, max_length=MAX_SENTENCES)
    n: Annotated[int, Range(1, 1000)] | None = None


class Tagging(NamedTuple):
    """Labels of a sentence, with their score."""

    labels: list[str]
    score: float


@dataclass(frozen=True)
class Tagger:
    """A model that tags words. Threads may share it.

    settings: the recipe it was trained by; about: provenance; features: what makes attributes of tokens; labels: K of
    them; mask: uint8 [K + 2, K], see ``Chains``; weights: float32 [D]; width: columns of tokens.
    """

    use: ClassVar[str] = "tags words"
    command: ClassVar[str] = "rerank tag"

    settings: dict[str, Any]
    about: dict[str, Any]
    features: TokenFeatures
    labels: tuple[str, ...]
    mask: np.ndarray
    weights: np.ndarray
    width: int = 1

    @staticmethod
    def load(directory: Path | str, trust: Trust = False) -> "Tagger":
        """Read what ``save`` wrote; trust: see ``rerank.load``.

        Raises
        ------
        ModelError: no tagger, damaged, or it names code that is not trusted.
        """
        source = str(directory)
        with models.stored_model(source, TaggerHeader) as (path, header):
            reader = header["settings"].get("data", {}).get("reader", {}).get("name", "")
            require_trusted([("data.reader", reader)], trust, source)
            arrays = {
                "columns": read_array(path / "columns.npy", np.int64, 1),
                "values": read_array(path / "values.npy", np.float32, 1),
            }
            return Tagger.of(header, arrays)

    @staticmethod
    def of(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> "Tagger":
        """Rebuild a model from its ``content``; a ValueError where weights are of other columns, or not finite."""
        ids = {name: j for j, name in enumerate(header["attributes"])}
        features = TokenFeatures(read_patterns(header["patterns"]), ids)
        columns, values, labels = arrays["columns"], arrays["values"], tuple(header["labels"])
        K = len(labels)
        mask, weights = np.ones((K + 2, K), np.uint8), np.zeros(K * (K + len(ids)), np.float32)
        for before, after in header["forbidden"]:
            mask[before, after] = 0
        if columns.size and not 0 <= columns.min() <= columns.max() < weights.size:
            raise ValueError(f"columns.npy has a column that is not among {weights.size}")
        if not np.isfinite(values).all():
            raise ValueError("values.npy holds weights that are not finite")
        weights[columns] = values
        return Tagger(header["settings"], dict(header["about"]), features, labels, mask, weights, header["width"])

    def content(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The stored form of the model: a header (JSON), and arrays."""
        features, columns = self.features, np.flatnonzero(self.weights)
        header = {
            "settings": self.settings,
            "about": self.about,
            "labels": list(self.labels),
            "forbidden": np.argwhere(self.mask == 0).tolist(),
            "patterns": [pattern.line for pattern in features.patterns],
            "width": self.width,
            "attributes": list(features.ids),
        }
        return header, {"columns": columns, "values": self.weights[columns]}

    def save(self, directory: Path | str) -> None:
        """Write the model; it appears under its name only when complete."""
        content, arrays = self.content()
        with new_directory(directory) as new:
            save_arrays(new, arrays)
            models.write_header(new, content)

    def tag(self, tokens: Words) -> list[str]:
        """The best labels of a sentence: words, or tokens with as many columns as in training.

        Raises
        ------
        DataError: tokens with other columns.
        """
        return next(self.tag_many([tokens]))

    def tag_many(self, sentences: Iterable[Words]) -> Iterator[list[str]]:
        """``tag`` of many sentences, in their order, made while they are asked for."""
        for chains in self._batches(sentences):
            yield from chains.split([self.labels[label] for label in decode(chains, self.weights).tolist()])

    def nbest(self, tokens: Words, k: int = 20) -> list[Tagging]:
        """The ``k`` best sequences of labels, best first, fewer if there are no more; see ``tag``."""
        return next(self.nbest_many([tokens], k))

    def nbest_many(self, sentences: Iterable[Words], k: int = 20) -> Iterator[list[Tagging]]:
        """``nbest`` of many sentences, in their order, made while they are asked for."""
        for chains in self._batches(sentences):
            for best in named_k_best(chains, self.weights, k, self.labels):
                yield [Tagging(labels, score) for score, labels in best]

    def marginals(self, tokens: Words) -> np.ndarray:
        """float64 [tokens, K]: how probable each of ``labels`` is, where a sequence is as e to the power of its score.

        Of models of maxent (CRFs) these are what they were trained for; other scores are of any scale.
        """
        return marginals(self.chains([tokens]), self.weights)

    def routes(self) -> dict[str, models.ModelRoute]:
        """The routes of a service."""
        return {"/tag": models.ModelRoute(TagRequest, answer_tags)}

    def health(self) -> dict[str, Any]:
        """The health report of a service."""
        return {"task": "tagging", "labels": self.labels}

    def warm_up(self) -> None:
        """Tag a word, so that the first request need not wait for compiled code."""
        token = ["a"] * self.width
        self.tag([token])
        self.nbest([token], 2)

    def chains(self, sentences: Sequence[Words]) -> Chains:
        """Sentences as the learner sees them, without their labels."""
        rows = [token_rows(tokens, number, self.width) for number, tokens in enumerate(sentences, start=1)]
        attributes = self.features.extract(rows)
        return chains_of(*attributes, None, self.mask, attribute_count=len(self.features.ids))

    def _batches(self, sentences: Iterable[Words]) -> Iterator[Chains]:
        rest = iter(sentences)
        while batch := list(islice(rest, BATCH_SENTENCES)):
            yield self.chains(batch)


def token_rows(tokens: Any, number: int, width: int | None = None) -> list[Token]:
    """The tokens of a sentence as rows of columns, a word being one with a single column.

    width: how many columns there are; None: any number, and a label behind them.

    Raises DataError: the sentence of this ``number`` is none.
    """
    form = (
        "a word and its label, as ('woman', 'NN')," if width is None else "a word" if width == 1 else f"{width} columns"
    )
    if not isinstance(tokens, Iterable) or isinstance(tokens, (str, Mapping)):
        raise DataError(f"sentence {number}: found {tokens!r}; expected a list of words or tokens")
    rows = list[Token]()
    for token in tokens:
        row = (token,) if isinstance(token, str) else tuple(token) if isinstance(token, (list, tuple)) else ()
        fits = len(row) > 1 and all(row) if width is None else len(row) == width
        if not fits or not all(isinstance(text, str) for text in row):
            raise DataError(f"sentence {number}: found {token!r}; expected {form} for every token")
        rows.append(row)
    return rows


def answer_tags(model: Tagger, request: TagRequest, limits: Any) -> tuple[dict[str, Any], int]:
    """The labels of sentences, or their best sequences of labels, and how many sentences there are."""
    for i, sentence in enumerate(request.sentences):
        if len(sentence) > limits.words:
            raise InputError(f"found {len(sentence):,} words; at most {limits.words:,} are tagged", f"sentences[{i}]")
        if len(sentence) * len(model.labels) * (request.n or 1) > MAX_STEPS:
            message = f"{request.n} sequences of labels of {len(sentence):,} words take too much room; ask for fewer"
            raise InputError(message, f"sentences[{i}]")
    if request.n is None:
        return {"labels": list(model.tag_many(request.sentences))}, len(request.sentences)
    nbest = [[tagging._asdict() for tagging in best] for best in model.nbest_many(request.sentences, request.n)]
    return {"nbest": nbest}, len(request.sentences)
