"""What may come of bad input: an end as with good input, or one message that says where something is wrong."""

import contextlib
import io
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commands import pass_on
from strategies_damage import Files

from rerank.base.encoding import plain
from rerank.base.errors import DataError, ModelError, RecipeError, RerankError
from rerank.cli import application as cli

LONGEST_MESSAGE = 3000


@contextlib.contextmanager
def placed(files: Files) -> Iterator[Path]:
    """A directory with files, for the time of the block."""
    with tempfile.TemporaryDirectory() as made:
        for name, data in files.items():
            path = Path(made) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield Path(made)


def files_below(directory: Path, name: str = "") -> Files:
    """All files below a directory, as below ``name``."""
    found = sorted(path for path in directory.rglob("*") if path.is_file())
    return {os.path.join(name, path.relative_to(directory)): path.read_bytes() for path in found}


@contextlib.contextmanager
def refused(directory: Path | str) -> Iterator[None]:
    """The block ends well, or with an error of what is in ``directory``: short, printable, with a place."""
    try:
        yield
    except RerankError as error:
        _check(error, str(directory))


def _check(error: RerankError, directory: str) -> None:
    text = str(error)
    assert len(text) <= LONGEST_MESSAGE, text
    assert text == plain(text, "\n\t"), repr(text)
    if isinstance(error, RecipeError):
        assert error.key is not None or error.path is not None or "--set" in text, text
    else:
        assert isinstance(error, DataError | ModelError), text  # others are no fault of the input
        assert directory in os.fspath(error.path or ""), text


def command(*arguments: object) -> tuple[int, str]:
    """Exit code and stderr of a command, run in this process, of which only what is foreseen may come."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    before, logger = (sys.argv, sys.stdin), logging.getLogger("rerank")
    handlers = logger.handlers[:]
    code: Any = 0
    sys.argv, sys.stdin = ["rerank", *map(str, arguments)], io.TextIOWrapper(io.BytesIO())
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as ended:
        pass_on(ended)
        code = ended.code or 0
    finally:
        sys.argv, sys.stdin = before
        logger.handlers[:] = handlers
    said = err.getvalue()
    shown = f"{' '.join(map(str, arguments))}: exit code {code}: {said[-2000:]}"
    assert "Traceback" not in said, shown
    assert "This ended `" not in said, shown
    assert code in (0, 2), shown
    assert code == 0 or "Usage:" in said or f"\n{said}".count("\nerror: ") == 1, shown
    return code, said
