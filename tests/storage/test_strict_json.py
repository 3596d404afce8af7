"""Objects in JSON files: what is no JSON, or ambiguous, is one error."""

import math
import re
from pathlib import Path

import pytest

import rerank
from rerank.base.errors import RunError
from rerank.storage.documents import as_json, read_object


def test_an_object(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes('{"a": [1, 2.5, null, "ä"], "b": {"a": {}}}'.encode())
    assert read_object(tmp_path / "a.json") == {"a": [1, 2.5, None, "ä"], "b": {"a": {}}}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"", "not valid JSON"),
        (b"\xff{}", "not valid JSON"),
        (b"[1]", "found list; expected an object"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": [-Infinity]}', "-Infinity is not a number"),
        (b'{"b": {"a": 1, "a": 1}}', "the key 'a' appears twice"),
        (b'{"a": ' + b"[" * 200_000, "nested too deep"),
        (b'{"a": ' * 200_000, "nested too deep"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "not valid JSON"),
    ],
)
def test_anything_else(tmp_path: Path, written: bytes, message: str) -> None:
    (tmp_path / "a.json").write_bytes(written)
    with pytest.raises(ValueError, match=rf"^a\.json: .*{message}"):
        read_object(tmp_path / "a.json")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_not_written(number: float) -> None:
    for value, place in (
        (number, "the result"),
        ({"a": [1.0, {"b": number}]}, "a.1.b"),
        ({"runs": ({}, {"bound": number})}, "runs.1.bound"),
    ):
        with pytest.raises(RunError, match=f"^{place} is {number}, which no JSON file can hold"):
            as_json(value)
    assert as_json({"b": 1, "a": "ä"}, sort_keys=True, ensure_ascii=False) == '{"a": "ä", "b": 1}'


def test_json_is_written_in_one_place() -> None:
    """Elsewhere nobody would refuse NaN; what is advised to users, with {{ in its text, writes nothing here."""
    package = Path(rerank.__file__).parent
    writers = [path for path in package.rglob("*.py") if re.search(r"\bjson\.dumps?\((?!\{\{)", path.read_text())]
    assert [path.name for path in writers] == ["documents.py"]
