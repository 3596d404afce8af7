"""The pages of the documentation and the blocks in them."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

PAGES = sorted(
    page.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.md", "data/*.md", "benchmarks/*.md", "recipes/**/*.md")
    for page in ROOT.glob(pattern)
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# file: (\w+\.\w+)\n")
LINKED = re.compile(r"^\[[^]]*\]\((\S+)\) <!-- example (\S+) -->$", re.MULTILINE)


@cache
def text_of(page: str | Path) -> str:
    """A page as text."""
    return (ROOT / page).read_text(encoding="utf-8")


def fences(page: str | Path, language: str) -> list[str]:
    """The blocks of a language, in order."""
    return [body for kind, body in FENCE.findall(text_of(page)) if kind == language]


def files(page: str | Path) -> Iterator[tuple[str, str]]:
    """Names and texts of the modules, scripts and recipes that a page names, or links to."""
    for path, name in LINKED.findall(text_of(page)):
        yield name, ((ROOT / page).parent / path).read_text(encoding="utf-8")
    for body in [*fences(page, "python"), *fences(page, "yaml")]:
        if named := FILE.match(body):
            yield named[1], body
