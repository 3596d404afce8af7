"""Warnings taken out of the log, by thread, for whoever is to show them: once, or in the order of tasks."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

Warnings = list[tuple[int, str]]  # level and message


class _Kept(logging.Filter):
    """Keeps the warnings of threads that ask for it."""

    own = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        kept: Warnings | None = getattr(self.own, "kept", None)
        if kept is None or record.levelno < logging.WARNING:
            return True
        kept.append((record.levelno, record.getMessage()))
        return False


logging.getLogger("rerank").addFilter(_Kept())


@contextmanager
def kept_warnings() -> Iterator[Warnings]:
    """The warnings that this thread logs within the block, instead of their being logged."""
    before, kept = getattr(_Kept.own, "kept", None), Warnings()
    _Kept.own.kept = kept
    try:
        yield kept
    finally:
        _Kept.own.kept = before
