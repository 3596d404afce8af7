"""Errors: the place first, and nothing endless or unprintable in it."""

import pytest

from rerank.base.errors import DataError, ModelError, RecipeError


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ({"path": "a", "line": 3, "list_id": "x"}, "a:3: list x: bad"),
        ({"path": "a", "line": 3}, "a:3: bad"),
        ({"path": "a"}, "a: bad"),
        ({"list_id": "x"}, "list x: bad"),
        ({"path": "a\0b"}, "a\\x00b: bad"),
        ({}, "bad"),
        ({"list_id": "x" * 1000}, f"list {'x' * 100}...: bad"),
        ({"list_id": "a\r\x1b[31m\u2028é"}, "list a\\r\\x1b[31m\\u2028é: bad"),
    ],
)
def test_data_error(place: dict[str, object], shown: str) -> None:
    assert str(DataError("bad", **place)) == shown  # type: ignore[arg-type]


def test_recipe_error() -> None:
    assert str(RecipeError("bad", key="a.b", path="r.yaml")) == "r.yaml: a.b: bad"
    assert str(RecipeError("bad", key="a.b")) == "a.b: bad"
    assert str(RecipeError("bad", key="\x07" + "k" * 1000)) == f"\\x07{'k' * 99}...: bad"
    assert str(RecipeError("bad")) == "bad"


@pytest.mark.parametrize("kind", [DataError, RecipeError, ModelError])
def test_messages_end(kind: type[DataError | RecipeError | ModelError]) -> None:
    assert str(kind("x" * 10_000, path="a")) == f"a: {'x' * 2000}..."
    line_end = "\n" if kind is RecipeError else "\\n"
    assert str(kind("one\ntwo\t\x1b[31m\u202e", path="a")) == f"a: one{line_end}two\t\\x1b[31m\\u202e"
