"""A reader of somebody's own, named by its import path: lists as tables with a header, an empty line behind each."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rerank.readers.lists import Lists
from rerank.readers.reader import Order, Reader, Scores
from rerank.storage.streams import PathLike, Writable, open_stream


@dataclass(frozen=True)
class Tables(Reader):
    """Lists as tables: text, score and whatever else the list's header names, with tabs between them."""

    def blocks(self, path: PathLike) -> Iterator[Lists]:
        with open_stream(path) as stream:
            blocks = b"".join(iter(lambda: stream.read(1 << 20), b"")).decode().split("\n\n")
        for i, block in enumerate(filter(None, blocks)):
            header, *rows = [line.split("\t") for line in block.strip("\n").splitlines()]
            texts = [row[0].encode() for row in rows]
            scores = np.array([row[1:] for row in rows], np.float64).reshape(len(rows), len(header) - 1)
            yield Lists.one(str(i), str(path), 1, texts, [1] * len(rows), scores, names=tuple(header[1:]))

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        assert not nbest.of_trees
        lines = ["\t".join(["text", *nbest.names])]
        for i in range(len(nbest)) if order is None else order:
            values = nbest.scores[i].tolist()
            values[nbest.column] = values[nbest.column] if scores is None else float(scores[i])
            lines.append("\t".join([nbest.texts[i].decode(), *map(repr, values)]))
        out.write(("\n".join(lines) + "\n\n").encode())
