"""What mkdocs does in addition: tables of the program, formulas as MathML, no public name without a docstring."""

import inspect
import logging
import re
from collections.abc import Iterator
from typing import Any

from latex2mathml.converter import convert
from site_tables import expanded

import rerank

log = logging.getLogger("mkdocs.plugins.rerank")
FORMULA = re.compile(r"^\$\$\n?(.+?)\n?\$\$$", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> None:
    """The version at the foot of every page; links to edit it where a repository is named."""
    config.copyright = f"rerank {rerank.__version__}"
    config.edit_uri = config.edit_uri if config.repo_url else None


def on_pre_build(config: Any) -> None:  # noqa: ARG001
    """In strict mode a public name without a docstring ends the build."""
    for name in undocumented():
        log.warning("%s is public and has no docstring", name)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ARG001
    """A page with its tables and formulas."""
    return FORMULA.sub(_formula, expanded(markdown, site=True))


def _formula(found: re.Match[str]) -> str:
    lines = [convert(line.strip(), display="block") for line in re.split(r"\\\\\n", found[1]) if line.strip()]
    return f'<div class="formula">\n{"".join(lines)}\n</div>\n'


def undocumented() -> Iterator[str]:
    """Public names, and public members of public classes, without a docstring."""
    for name in rerank.__all__:
        part = getattr(rerank, name)
        if isinstance(part, str) or not callable(part):
            continue
        if not inspect.getdoc(part):
            yield f"rerank.{name}"
        if inspect.isclass(part) and part.__module__.startswith("rerank"):
            for member, value in vars(part).items():
                shown = inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod))
                if shown and not member.startswith("_") and not inspect.getdoc(getattr(part, member)):
                    yield f"rerank.{name}.{member}"
