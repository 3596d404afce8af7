"""The documentation site builds without a warning: links, anchors, the table of contents, public names."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import site_tables
from pages import PAGES, ROOT, text_of
from site_meanings import options

TOOLS = ("material", "mkdocstrings", "mkdocs_jupyter", "latex2mathml")


@pytest.mark.parametrize("page", [page for page in PAGES if page.parts[0] == "docs"], ids=str)
def test_tables_in_pages_are_what_the_code_says(page: Path) -> None:
    assert site_tables.expanded(text_of(page)) == text_of(page), "run python docs/site/site_tables.py"


@pytest.mark.parametrize("kind", list(site_tables.REGISTRIES))
def test_every_option_of_a_part_has_a_meaning(kind: str) -> None:
    for name, part in site_tables.REGISTRIES[kind]:
        for option in options(part, site_tables.known()):
            assert option.values, (name, option)
            assert option.meaning or kind == "template", (name, option)  # templates say it in their sentence


@pytest.mark.parametrize("page", ["docs/recipes.md", "docs/classification.md"])
def test_every_setting_has_values_and_a_meaning(page: str) -> None:
    rows = [row for row in text_of(page).splitlines() if row.startswith("| `")]
    assert len(rows) > 20
    for row in rows:
        assert all(cell.strip() for number, cell in enumerate(row.split(" | ")) if number != 2), row


@pytest.mark.skipif(not all(map(find_spec, TOOLS)), reason="mkdocs is not installed: pip install -e '.[docs]'")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "RUN_NOTEBOOKS": "false"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    index = (tmp_path / "site" / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "voted" in index
    learners = (tmp_path / "site" / "recipes" / "index.html").read_text(encoding="utf-8")
    assert "training.epochs" in learners
