"""The pictures of the folders, and of the way of a list through them, are those of the sources; those of the results
are those of their tables."""

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


DRAWN = runpy.run_path(str(DOCS / "draw_house.py"))


@pytest.mark.parametrize(("name", "draw"), [("house", "picture"), ("way", "way")])
def test_the_picture_is_of_the_imports(name: str, draw: str) -> None:
    assert DRAWN[draw]() == (DOCS / f"{name}.svg").read_text(encoding="utf-8"), "run: python docs/draw_house.py"


@pytest.mark.parametrize("name", ["parses", "translations"])
def test_figures_of_results_are_of_their_tables(name: str) -> None:
    drawn = runpy.run_path(str(DOCS / "draw_results.py"))[name]()
    assert drawn == (DOCS / f"results-{name}.svg").read_text(encoding="utf-8"), "run: python docs/draw_results.py"


def test_the_way_of_a_list_does_not_climb_back() -> None:
    names = list(DRAWN["WAY"])
    for number, name in enumerate(names):
        assert set(DRAWN["steps_back"](name)) <= set(names[:number]), name
