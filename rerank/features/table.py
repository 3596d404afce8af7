"""Feature → column: by a table of the kept features (counting.py decides which)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rerank.base.errors import ModelError, RecipeError
from rerank.data.symbols import ABSENT, HashIndex, index_of, numbers_of
from rerank.features.sink import ListFeatures
from rerank.storage.documents import as_json, read_object
from rerank.storage.files import DAMAGE, read_array

BASE_SCORE = "BaseScore"  # the template


@dataclass(frozen=True)
class FeatureTable:
    """The D features of a model, numbered in the order of their hashes: the same columns on every machine.

    hashes: uint64 [D], sorted except that the free columns come first, sorted among themselves; template:
    int32 [D], into ``templates``; symbols: uint64, those of column j are symbols[first[j]:first[j + 1]]; texts: the
    texts of the symbols by hash; about: counts of seen, kept and pruned features; scale: float64 [free], the factors
    for the values of the free columns (see ``rerank.data.corpus``).
    """

    hashes: np.ndarray
    template: np.ndarray
    first: np.ndarray
    symbols: np.ndarray
    templates: tuple[str, ...]
    texts: dict[int, str]
    about: dict[str, Any]
    scale: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        self.check()

    @cached_property
    def _index(self) -> HashIndex:
        """The columns by hash; made when it is first needed, so that loading a model runs no compiled code."""
        return index_of(self.hashes)

    @property
    def width(self) -> int:
        """Number of columns D."""
        return int(self.hashes.size)

    @property
    def free(self) -> int:
        """Number of free columns, which come first: those of dense scores, which no penalty may touch."""
        return int(self.scale.size)

    @property
    def base_column(self) -> int | None:
        """The column of the template BaseScore, which is the base score once more, if there is one."""
        template = self.templates.index(BASE_SCORE) if BASE_SCORE in self.templates else ABSENT
        columns = np.flatnonzero(self.template[: self.free] == template)
        return int(columns[0]) if columns.size else None

    def columns(self, features: ListFeatures) -> np.ndarray:
        """int32 [F]: the column of every feature of a list, ABSENT for those that are not in the table."""
        return numbers_of(self._index, features.hashes)

    @cached_property
    def free_columns(self) -> dict[int, int]:
        """The free columns by the identities of their features."""
        return {h: column for column, h in enumerate(self.hashes[: self.free].tolist())}

    def name(self, column: int) -> str:
        """The readable name of a column, ``Template|symbols``."""
        symbols = self.symbols[self.first[column] : self.first[column + 1]]
        texts = [self.texts.get(int(symbol), f"#{int(symbol):016x}") for symbol in symbols]
        return f"{self.templates[self.template[column]]}|{' '.join(texts)}"

    def save(self, directory: Path) -> None:
        """Write the table's files into an existing directory."""
        for name in ("hashes", "template", "first", "symbols"):
            np.save(directory / f"table_{name}.npy", getattr(self, name), allow_pickle=False)
        words = {f"{h:016x}": text.encode("utf-8", "surrogateescape").hex() for h, text in sorted(self.texts.items())}
        header = {"templates": self.templates, "texts": words, "about": self.about, "scale": self.scale.tolist()}
        (directory / "table.json").write_text(as_json(header))

    def check(self) -> None:
        """Raise a ValueError if the arrays do not fit together."""
        D = self.hashes.size
        shapes = {"hashes": (D,), "template": (D,), "first": (D + 1,), "symbols": (self.symbols.size,)}
        types = {"hashes": np.uint64, "template": np.int32, "first": np.int64, "symbols": np.uint64}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.shape != shape or array.dtype != types[name]:
                raise ValueError(f"its array {name!r} is {array.dtype} {array.shape}; expected {types[name]} {shape}")
        if self.scale.ndim != 1 or self.free > D or not np.all(np.isfinite(self.scale) & (self.scale > 0)):
            raise ValueError("its scale is not one positive number for each free column")
        free, rest = self.hashes[: self.free], self.hashes[self.free :]
        if (
            any(np.any(part[1:] <= part[:-1]) for part in (free, rest))
            or np.any(np.searchsorted(rest, free, side="right") > np.searchsorted(rest, free))  # one is in both
            or np.any(self.template < 0)
            or np.any(self.template >= len(self.templates))
            or self.first[0] != 0
            or np.any(self.first[1:] < self.first[:-1])
            or self.first[-1] != self.symbols.size
        ):
            raise ValueError("its arrays are out of order")


@dataclass(frozen=True)
class HashedTable(FeatureTable):
    """No table: 2^bits columns, where a feature's column is the upper bits of its hash; features may share columns.

    Dense scores are among the other columns: they are not scaled, and penalties touch them.
    """

    bits: int = 0

    @staticmethod
    def of(bits: int, templates: tuple[str, ...], about: dict[str, Any]) -> "HashedTable":
        """The table of 2^bits columns."""
        nothing, none = np.zeros(0, np.uint64), np.zeros(0, np.int32)
        return HashedTable(nothing, none, np.zeros(1, np.int64), nothing, templates, {}, about, bits=bits)

    @property
    def width(self) -> int:
        return 1 << self.bits

    def columns(self, features: ListFeatures) -> np.ndarray:
        return hashed_columns(features.hashes)

    def name(self, column: int) -> str:
        """Only a number: nobody knows which features share the column."""
        return f"hashed|#{column}"

    def save(self, directory: Path) -> None:
        header = {"bits": self.bits, "templates": self.templates, "about": self.about}
        (directory / "table.json").write_text(as_json(header))


def dense_columns(table: FeatureTable, names: Sequence[str], key: str) -> np.ndarray:
    """int64: the columns of the score columns ``names``; raises RecipeError for the setting ``key`` if one is not
    there."""
    free = enumerate(map(table.name, range(table.free)))
    dense = {name.partition("|")[2]: j for j, name in free if name.startswith("Dense")}
    if missing := [name for name in names if name not in dense]:
        raise RecipeError(f"found {missing[0]!r}; expected dense columns: {', '.join(dense) or 'none'}", key=key)
    return np.array([dense[name] for name in names], np.int64)


def hashed_columns(hashes: np.ndarray) -> np.ndarray:
    """int32 [F]: the columns of features of a HashedTable (identities count from 1)."""
    return (hashes - np.uint64(1)).astype(np.int32)


def load_table(directory: Path) -> FeatureTable:
    """The table that ``save`` wrote into ``directory``."""
    try:
        header = read_object(directory / "table.json")
        templates, about = tuple(_names(header["templates"])), _about(header)
        if "bits" in header:
            if type(bits := header["bits"]) is not int or not 4 <= bits <= 30:
                raise ValueError(f"{bits} hash bits; expected 4 to 30")
            return HashedTable.of(bits, templates, about)
        content: dict[str, Any] = {
            name: read_array(directory / f"table_{name}.npy", dtype, 1)
            for name, dtype in (("hashes", "u8"), ("template", "i4"), ("first", "i8"), ("symbols", "u8"))
        }
        texts = {
            int(h, 16): bytes.fromhex(word).decode("utf-8", "surrogateescape") for h, word in header["texts"].items()
        }
        scale = np.array(header.get("scale", []), np.float64)  # tables without free columns may lack it
        return FeatureTable(**content, templates=templates, texts=texts, about=about, scale=scale)
    except KeyError as error:
        raise ModelError(f"not a readable feature table: it has no {error}", path=str(directory)) from None
    except DAMAGE as error:
        raise ModelError(f"not a readable feature table: {error}", path=str(directory)) from None


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError("it has something else where names are expected")
    for name in value:
        name.encode("utf-8", "surrogateescape")  # half a surrogate pair is not a text
    return value


def _about(header: dict[str, Any]) -> dict[str, Any]:
    """Counts of features, in total and by template, and the names of score columns."""
    about = dict(header["about"])
    _names(about.get("scores", []))
    _names([about["base_score"]] if about.get("base_score") is not None else [])
    for source, columns in dict(about.get("score_sources", {})).items():
        _names([source, *_names(columns)])
    counts = [about[key] for key in ("seen", "kept", "pruned", "shared", "columns", "min_lists") if key in about]
    by_template = [number for entry in about.get("templates", {}).values() for number in entry.values()]
    if any(type(number) is not int for number in counts + by_template) or type(about.get("scored", False)) is not bool:
        raise ValueError("it has something else where counts, or true or false, are expected")
    return about
