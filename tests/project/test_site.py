"""The documentation site builds without a warning: links, anchors, the table of contents, public names."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import site_tables
from browser import BROWSER, needs_browser
from pages import PAGES, ROOT, text_of
from site_meanings import options

import rerank

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
    rows = [row for row in site_tables.expanded(text_of(page), site=True).splitlines() if row.startswith("| `")]
    assert len(rows) > 20
    for row in rows:
        assert all(cell.strip() for number, cell in enumerate(row.split(" | ")) if number != 2), row


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    if not all(map(find_spec, TOOLS)):
        pytest.skip("mkdocs is not installed: pip install -e '.[docs]'")
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "RUN_NOTEBOOKS": "false"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return place


def test_the_site_has_its_pages_and_an_index_of_words(site: Path) -> None:
    assert "voted" in (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "training.epochs" in (site / "recipes" / "index.html").read_text(encoding="utf-8")
    interface = (site / "api" / "index.html").read_text(encoding="utf-8")
    assert all(f'id="rerank.{name}"' in interface for name in listed())


def listed() -> list[str]:
    """The names on the page of the Python API."""
    return re.findall(r"^ +- (\w+)$", text_of("docs/api.md"), re.MULTILINE)


def test_every_public_name_is_on_the_page_of_the_interface() -> None:
    assert {*listed(), "Tagger", "tagger", "__version__"} == set(rerank.__all__)  # taggers have a page of their own


@needs_browser
@pytest.mark.parametrize("page", ["index", "start/index", "best-of-n/index", "results/index", "learners/index"])
def test_pages_open_in_a_browser(site: Path, page: str) -> None:
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    address = (site / f"{page}.html").as_uri()
    seen = subprocess.run([str(BROWSER), *flags, address], capture_output=True, timeout=300, check=True).stdout.decode()
    assert "<h1" in seen.partition("<article")[2]
