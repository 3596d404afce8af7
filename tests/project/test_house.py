"""The picture of the folders is that of the sources."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_picture_is_of_the_imports() -> None:
    drawn = runpy.run_path(str(DOCS / "draw_house.py"))["picture"]()
    assert drawn == (DOCS / "house.svg").read_text(encoding="utf-8"), "run: python docs/draw_house.py"
