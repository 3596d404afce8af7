"""Lines of a byte stream, with lookahead and line numbers."""

from collections.abc import Iterator

from rerank.base.errors import DataError
from rerank.readers.streams import InputStream

LONGEST = 1 << 24  # bytes of one line or one tree; more than that is not a sentence but a wrong file


class LineReader:
    """Lines of ``stream`` without their ends (LF or CRLF); the last one needs none.

    ``number`` is the 1-based number of the line taken last, 0 before the first. ``nul`` says whether a NUL byte
    has been found so far, so that nobody needs to look for one in every line.
    """

    def __init__(self, stream: InputStream, *, chunk: int = 1 << 20) -> None:
        self.path = stream.path
        self.number = 0
        self.nul = False
        self._stream, self._chunk = stream, chunk
        self._lines: list[bytes] = []
        self._at = 0
        self._carry: list[bytes] = []
        self._ended = False

    def ahead(self, count: int) -> list[bytes]:
        """The next ``count`` lines without taking them; fewer only at the end of the stream."""
        while len(self._lines) - self._at < count and self._fill():
            pass
        return self._lines[self._at : self._at + count]

    def take(self, count: int) -> None:
        """Advance past ``count`` lines that ``ahead`` has shown."""
        self._at += count
        self.number += count

    def skip_blank(self) -> bool:
        """Advance past empty lines; returns whether anything follows."""
        while line := self.ahead(1):
            if line[0] and not line[0].isspace():
                return True
            self.take(1)
        return False

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """(number, line) of all remaining lines."""
        while self._at < len(self._lines) or self.ahead(1):
            line = self._lines[self._at]
            self.take(1)
            yield self.number, line

    def _fill(self) -> bool:
        """Read a chunk and cut it into lines; False at the end of the stream."""
        if self._ended:
            return False
        data = self._stream.read(self._chunk)
        self._ended = not data
        self.nul = self.nul or b"\0" in data
        if data and b"\n" not in data:
            self._carry.append(data)
            if sum(map(len, self._carry)) > LONGEST:
                number = self.number + len(self._lines) - self._at + 1
                message = (
                    f"a line of more than {LONGEST >> 20} MiB; expected a text file with one tree or sentence per line"
                )
                raise DataError(message, path=self.path, line=number)
            return True
        text = b"".join([*self._carry, data])
        lines = text.split(b"\n")
        last = lines.pop()
        self._carry = [last] if last and data else []
        if last and not data:
            lines.append(last)
        if b"\r" in text:
            lines = [line.removesuffix(b"\r") for line in lines]
        self._lines = self._lines[self._at :] + lines
        self._at = 0
        return True
