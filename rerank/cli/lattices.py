"""Decoding of word lattices, for the command ``decode``."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rerank.base.encoding import encoded
from rerank.base.errors import DataError, ModelError, RecipeError
from rerank.base.progress import track
from rerank.cli.answer import shown_as_json
from rerank.cli.application import warn_of_skipped

if TYPE_CHECKING:
    from rerank.models.lattices import WordPath
    from rerank.readers.lattices import WordLattice
    from rerank.readers.skip_count import SkipCount

log = logging.getLogger("rerank")


def decode_lattices(
    path: str, output: str, count: "SkipCount", *, model: str | None, n: int | None, scales: str | None,
    symbols: str | None, references: str | None,
) -> None:  # fmt: skip
    """Write the best words of every lattice in a line, or the n best as a list; log error rates."""
    import numpy as np

    from rerank.metrics.wer import Wer
    from rerank.models.lattices import best_texts, check_scales, default_scales, oracle_text, paired
    from rerank.readers.lattices import WordLattice, read_lattices, read_symbols
    from rerank.readers.skip_count import usable
    from rerank.readers.streams import open_output
    from rerank.readers.texts.text_pairs import read_references

    if model is not None and scales is not None:
        raise RecipeError("--scales: found weights beside those of --model; leave one of them out")
    given = _weights_of(model) if model is not None else None if scales is None else _parsed(scales)
    found = read_lattices(path, None if symbols is None else read_symbols(symbols))
    expected = None if references is None else read_references([references])
    rows, right, wer = list[np.ndarray](), list[np.ndarray](), Wer()

    def line_of(item: Any, count: "SkipCount") -> bytes | None:
        lattice, reference = item
        if not isinstance(lattice, WordLattice):
            count.bad(lattice)
            return b"" if n else b"\n"
        count.lists += 1
        weights = default_scales(lattice.names) if given is None else given
        if given is None and count.lists == 1:
            log.info("scales: %s", ", ".join(f"{name} {scale:g}" for name, scale in weights.items()))
        check_scales(weights, lattice.names, lattice.path)
        best = best_texts(lattice, weights, n or 1)
        if reference is not None:
            said = [encoded(text) for text in (best[0].text, oracle_text(lattice, reference), reference)]
            for made, stats in zip((right, rows), wer.stats(said[:2], said[2:]), strict=True):
                made.append(stats)
        return _written(lattice, best, n, reference)

    pairs = track(paired(found, expected, references or ""), "decode", unit="lattices")
    lines: Iterator[bytes] = usable(pairs, line_of, count)
    with open_output(output) as out:
        for line in lines:
            out.write(line)
    if not count.lists and not count.skipped:
        raise DataError("found no lattices", path=path)
    if rows:
        rates = map(wer.text, wer.scores(np.sum(rows, axis=0), np.sum(right, axis=0)).tolist())
        log.info("WER %s, of the paths with the fewest errors %s, of %d lattices", *rates, len(rows))
    warn_of_skipped(count)


def _written(lattice: "WordLattice", best: "list[WordPath]", n: int | None, reference: str | None) -> bytes:
    """The line of a lattice."""
    from rerank.storage.strict_json import as_json

    shown: dict[str, Any] = {"id": lattice.id}
    if n:
        shown |= {} if reference is None else {"reference": reference}
        shown["candidates"] = [{"text": path.text, **path.columns} for path in best]
    elif shown_as_json():
        shown |= {"text": best[0].text, "score": best[0].score, **best[0].columns}
    else:
        return encoded(f"{best[0].text}\n")
    return encoded(f"{as_json(shown)}\n")


def _weights_of(model: str) -> dict[str, float]:
    """The weights of a model of score columns."""
    from rerank.models.formulas import dense_weights
    from rerank.models.model import Model

    loaded = Model.load(model, trust=True)  # nothing that it names is imported for this
    try:
        return dense_weights(loaded.table, loaded.weights_of(loaded.decision.ranked_by))
    except (DataError, ModelError) as error:
        raise type(error)(error.message, path=model) from None


def _parsed(scales: str) -> dict[str, float]:
    """The weights that an option gives."""
    found = dict[str, float]()
    for part in scales.split(","):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise RecipeError(f"--scales: found {part!r}; expected a name and a number, as in am=1,lm=12") from None
    return found
