"""A reader of somebody's own, named by its import path: lists as tables with a header, an empty line behind each."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rerank.readers.base import NBestList, Order, Reader, Scores, SkippedList
from rerank.readers.streams import PathLike, Writable, open_stream
from rerank.readers.texts.text_list import TextList


@dataclass(frozen=True)
class Tables(Reader):
    """Lists as tables: text, score and whatever else the list's header names, with tabs between them."""

    def read(self, path: PathLike) -> Iterator[NBestList | SkippedList]:
        with open_stream(path) as stream:
            blocks = b"".join(iter(lambda: stream.read(1 << 20), b"")).decode().split("\n\n")
        for i, block in enumerate(filter(None, blocks)):
            header, *rows = [line.split("\t") for line in block.strip("\n").splitlines()]
            texts = [row[0].encode() for row in rows]
            scores = np.array([row[1:] for row in rows], np.float64).reshape(len(rows), len(header) - 1)
            yield TextList(str(i), str(path), 1, texts, [1] * len(rows), scores, names=tuple(header[1:]))

    def write(self, out: Writable, nbest: NBestList, order: Order = None, scores: Scores = None) -> None:
        assert isinstance(nbest, TextList)
        lines = ["\t".join(["text", *nbest.names])]
        for i in range(len(nbest)) if order is None else order:
            values = nbest.scores[i].tolist()
            values[nbest.column] = values[nbest.column] if scores is None else float(scores[i])
            lines.append("\t".join([nbest.texts[i].decode(), *map(repr, values)]))
        out.write(("\n".join(lines) + "\n\n").encode())
