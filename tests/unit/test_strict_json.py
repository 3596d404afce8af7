"""Objects in JSON files: what is no JSON, or ambiguous, is one error."""

from __future__ import annotations

from pathlib import Path

import pytest

from rerank.strict_json import read_object


def test_an_object(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes('{"a": [1, 2.5, null, "ä"], "b": {"a": {}}}'.encode())
    assert read_object(tmp_path / "a.json") == {"a": [1, 2.5, None, "ä"], "b": {"a": {}}}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"", "not valid JSON"),
        (b"\xff{}", "not valid JSON"),
        (b"[1]", "found list; expected an object"),
        (b'{"a": NaN}', "NaN is no number"),
        (b'{"a": [-Infinity]}', "-Infinity is no number"),
        (b'{"b": {"a": 1, "a": 1}}', "the key 'a' stands twice"),
        (b'{"a": ' + b"[" * 200_000, "nested too deep"),
        (b'{"a": ' * 200_000, "nested too deep"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "not valid JSON"),
    ],
)
def test_anything_else(tmp_path: Path, written: bytes, message: str) -> None:
    (tmp_path / "a.json").write_bytes(written)
    with pytest.raises(ValueError, match=rf"^a\.json: .*{message}"):
        read_object(tmp_path / "a.json")
