"""Commands in this process."""

from __future__ import annotations

import io
import sys

import pytest
from commands import Command, Result

from rerank import cli


@pytest.fixture
def rerank(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process."""

    def run(*arguments: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["rerank", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        sys.stdout.flush()
        code = ended.value.code
        assert isinstance(code, int | None)
        return Result(code or 0, *capsys.readouterr())

    return run
