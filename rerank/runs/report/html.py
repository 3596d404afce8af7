"""Reports as self-contained HTML pages: no scripts, nothing from a network."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rerank.base.encoding import plain
from rerank.runs.report.numbers import NONE, duration
from rerank.runs.report.rows import runs_of

# Characters that HTML does not allow: controls, lone surrogates (of bytes that are not UTF-8), noncharacters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def fill(template: str, content: Mapping[str, Any]) -> str:
    """A template of this package with its content, without characters that HTML does not allow."""
    return _FORBIDDEN.sub("\ufffd", _environment().get_template(template).render(content))


@cache
def _environment() -> Environment:
    """It compiles every template once."""
    return Environment(
        loader=PackageLoader("rerank.runs.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=False,
        keep_trailing_newline=True,
        finalize=_plain,
    )


def _plain(value: Any) -> Any:
    """``value`` made plain if it is a text; pictures are made of plain texts already."""
    return plain(value, kept="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def page(
    template: str,
    metrics: Mapping[str, Any],
    *,
    recipe: str,
    date: datetime,
    seconds: float,
    environment: Sequence[str],
    runs: str,
    **content: Any,
) -> str:
    """A report, see ``page.html.j2``: what every one has, and its own content; ``runs``: their kind, in the singular.

    The same content gives the same text.
    """
    ended, number = date.strftime("%Y-%m-%d %H:%M %Z").strip(), len(runs_of(metrics))
    every = {
        "title": str(metrics.get("name") or "Unnamed run"),
        "task": str(metrics.get("task", "")),
        "facts": [ended, f"{number} {runs}{'s' if number > 1 else ''}", duration(seconds)],
        "sections": lambda body: re.findall('<section id="([^"]+)">\n<h2>([^<]+)</h2>', body),
        "recipe": recipe.rstrip("\n"),
        "provenance": [
            ("finished", ended),
            ("duration", duration(seconds)),
            ("version", f"rerank {metrics.get('version', '')}".rstrip()),
            ("seed", str(metrics.get("seed", NONE))),
            ("metric", str(metrics.get("metric", NONE))),
        ],
        "environment": environment,
    }
    return fill(template, every | content)
