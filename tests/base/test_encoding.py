"""Names of splits, and files named after what users give."""

import os
from pathlib import Path

import pytest
import small
from hypothesis import given
from hypothesis import strategies as st

from rerank.base.encoding import LONGEST, file_name, is_name
from rerank.base.errors import RecipeError
from rerank.recipes.recipe import TextRecipe
from rerank.recipes.settings import validate

NAMES = ["test", "dev_2", "wsj.24", "ood-news", "a+b", "my test", "größe", "1", "_"]
NO_NAMES = [
    "",
    ".",
    "..",
    "../up",
    "/etc/passwd",
    "a/b",
    "a\\b",
    ".hidden",
    "-o",
    "a.",
    " a",
    "a\n",
    "a\0b",
    "{root}",
    "x" * 101,
]


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    assert is_name(name)
    assert file_name(name) == name
    assert small.recipe(Path(), data={"tests": [name]}).data.tests == (name,)


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("key", ["train", "dev", "tests", "mert"])
def test_what_is_no_name_of_a_split(name: str, key: str) -> None:
    settings: dict[str, object] = {"name": "x", "data": {key: [name] if key == "tests" else name}}
    if key == "mert":
        settings = {"name": "x", "mert": {"split": name}}
    with pytest.raises(RecipeError, match=r"the name of a split may have letters, digits and _") as caught:
        validate(TextRecipe, settings)
    if name == "/etc/passwd":
        assert "name the folder in data.root (/etc) and the split 'passwd'" in str(caught.value)


@given(name=st.text(), other=st.text())
def test_a_file_name_stays_in_its_directory(name: str, other: str) -> None:
    found = file_name(name)
    assert os.path.basename(found) == found not in ("", ".", "..")
    assert is_name(found)
    assert len(os.fsencode(found)) <= LONGEST
    assert (file_name(other) == found) == (other == name)
