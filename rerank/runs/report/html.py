"""One page: a headline, sections, and the recipe, folded; without scripts, with nothing from a network.

A section is a heading with parts one below the other: a text is a paragraph, a mapping a list of names and values, a
sequence a row of figures; a ``TextTable`` and ``Markup`` are what they are, ``Folded`` holds parts of its own. What is
empty or None is left out. Everything that is inserted is escaped, except for ``Markup``, which ``markup`` makes.
"""

import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import version
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rerank import __version__
from rerank.base.encoding import plain
from rerank.runs.report.plot import Figure
from rerank.runs.report.results import runs_of
from rerank.runs.report.table import NONE, TextTable, duration

# Characters that HTML does not allow: controls, lone surrogates (of bytes that are not UTF-8), noncharacters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


@dataclass(frozen=True)
class Folded:
    """Parts behind a line that one opens."""

    summary: str
    parts: "Sequence[Part]"
    open: bool = False


Part: TypeAlias = str | Mapping[str, str] | Sequence[Figure | None] | TextTable | Folded | None


@dataclass(frozen=True)
class PageSection:
    """A part of a page with a heading; its parts are those of ``html``."""

    heading: str
    parts: Sequence[Part]

    @property
    def name(self) -> str:
        """Its place on the page."""
        return "-".join(re.findall(r"\w+", self.heading.lower()))


def markup(template: str, *values: object) -> Markup:
    """``template``, HTML with a {} for each of ``values``, which are escaped unless they are ``Markup``."""
    return Markup(template).format(*map(_plain, values))


def _plain(value: Any) -> Any:
    """``value`` made plain if it is a text; pictures are made of plain texts already."""
    return plain(value, kept="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> Environment:
    """It compiles every template once."""
    loader = PackageLoader("rerank.runs.report", ".")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, finalize=_plain, trim_blocks=True)


def page(
    title: str,
    sections: Iterable[PageSection],
    *,
    kicker: str = "rerank",
    facts: Sequence[str] = (),
    about: str = "",
    summary: Mapping[str, Any] | None = None,
) -> str:
    """A page; summary: ``tiles`` of (name, value, note), the second of which stands out, and a ``sentence``.

    The same content gives the same text.
    """
    filled = [section for section in sections if any(section.parts)]
    template = _environment().get_template("page.html.j2")
    text = template.render(title=title, sections=filled, kicker=kicker, facts=facts, about=about, summary=summary or {})
    return _FORBIDDEN.sub("\ufffd", text)


def report(
    metrics: Mapping[str, Any],
    sections: Sequence[PageSection],
    *,
    recipe: str,
    seconds: float,
    date: datetime | None = None,
    machine: Sequence[str] | None = None,
    about: str = "",
    summary: Mapping[str, Any] | None = None,
) -> str:
    """The page of a run.

    metrics: the content of metrics.json. recipe: the resolved one, as YAML. date: when the run ended, now by default;
    seconds: how long it took. machine: lines about machine, Python and libraries, by default these here.
    """
    ended = (date or datetime.now().astimezone()).strftime("%Y-%m-%d %H:%M %Z").strip()
    number = len(runs_of(metrics))
    provenance = {
        "finished": ended,
        "duration": duration(seconds),
        "version": f"rerank {metrics.get('version', '')}".rstrip(),
        "seed": str(metrics.get("seed", NONE)),
        "metric": str(metrics.get("metric", NONE)),
        "machine": "; ".join(environment() if machine is None else machine),
    }
    yaml = markup('<pre tabindex="0"><code>{}</code></pre>', recipe.rstrip("\n"))
    settings = PageSection("Settings", [Folded("The recipe with all defaults", [yaml]), provenance])
    return page(
        str(metrics.get("name") or "Unnamed run"),
        [*sections, settings],
        kicker=f"rerank report · {metrics.get('task', '')}",
        facts=[ended, f"{number} run{'s' if number > 1 else ''}", duration(seconds)],
        about=about,
        summary=summary,
    )


def environment() -> list[str]:
    """Lines about machine, Python and libraries."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy"))
    return [
        f"rerank {__version__}",
        f"Python {platform.python_version()}, {libraries}",
        f"{platform.system()} {platform.machine()}",
    ]
