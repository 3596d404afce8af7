"""Lists of a program that are what a line of a JSON format holds: pairs of preferences, parallel lists, and so on."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any, cast

import numpy as np

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.readers.base import OnBadList, SkipCount, counted, usable
from rerank.readers.given.errors import told
from rerank.readers.given.nbest import NBest
from rerank.readers.lines import LineReader
from rerank.readers.streams import InputStream
from rerank.readers.texts.json_lines import JsonReader
from rerank.storage.strict_json import as_json

log = logging.getLogger("rerank")


@dataclass(frozen=True)
class ObjectLists:
    """Objects as lists, read by the reader of lines like them; they begin again if the objects do."""

    objects: Iterable[Mapping[str, Any]]
    reader: JsonReader
    on_bad_list: OnBadList = "error"

    def __iter__(self) -> Iterator[NBest]:
        count = SkipCount(self.on_bad_list)
        lines = LineReader(InputStream(cast(IO[bytes], _ObjectLines(self.objects)), ""))
        records = (record._replace(line=0) for record in self.reader.records(lines))  # they have no lines
        with told():
            yield from map(NBest.of, usable(self.reader.lists(lines, records), counted, count))
        for line in str(count).splitlines()[1:]:
            log.warning("%s", line)


class _ObjectLines:
    """Objects as a file, a line for each."""

    def __init__(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self._objects = enumerate(objects)

    def read(self, size: int) -> bytes:  # noqa: ARG002 - a line, however long
        """The next line; b"" at the end."""
        for place, item in self._objects:
            if not isinstance(item, Mapping):
                raise DataError(f"found {type(item).__name__}; expected a dict like the first", list_id=str(place))
            try:
                return encoded(as_json(dict(item), ensure_ascii=False, default=_plain, allow_nan=True)) + b"\n"
            except (TypeError, ValueError, RecursionError) as error:
                raise DataError(f"a dict that is no JSON object: {error}", list_id=str(place)) from None
        return b""


def _plain(value: Any) -> Any:
    """Numbers, lists and mappings of other libraries as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"found {type(value).__name__}")
