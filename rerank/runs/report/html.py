"""Reports as self-contained HTML pages: no scripts, nothing from a network."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rerank.base.encoding import plain
from rerank.runs.report import curves, headline, list_tables
from rerank.runs.report.data import Report
from rerank.runs.report.example_parts import example_parts
from rerank.runs.report.measures import primary_of
from rerank.runs.report.numbers import NONE, duration
from rerank.runs.report.rows import runs_of, splits_of
from rerank.storage.files import write_text

# Characters that HTML does not allow: controls, lone surrogates (of bytes that are not UTF-8), noncharacters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def fill(template: str, content: Mapping[str, Any]) -> str:
    """A template of this package with its content, without characters that HTML does not allow."""
    environment = Environment(
        loader=PackageLoader("rerank.runs.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=False,
        keep_trailing_newline=True,
        finalize=_plain,
    )
    return _FORBIDDEN.sub("\ufffd", environment.get_template(template).render(content))


def _plain(value: Any) -> Any:
    """``value`` made plain if it is a text; pictures are made of plain texts already."""
    return plain(value, kept="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def frame(
    metrics: Mapping[str, Any],
    recipe: str,
    date: datetime,
    seconds: float,
    *,
    runs: str,
    sections: Mapping[str, Any],
    environment: Sequence[str],
) -> dict[str, Any]:
    """The part of its content that every report has: see ``page.html.j2``.

    runs: their kind, in the singular. sections: their headings, with something false for those that have no content.
    """
    ended, number = date.strftime("%Y-%m-%d %H:%M %Z").strip(), len(runs_of(metrics))
    titles = [*(title for title, content in sections.items() if content), "Settings"]
    return {
        "title": str(metrics.get("name") or "Unnamed run"),
        "task": str(metrics.get("task", "")),
        "facts": [ended, f"{number} {runs}{'s' if number > 1 else ''}", duration(seconds)],
        "sections": [(title.lower().replace(" ", "-"), title) for title in titles],
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


def render(report: Report) -> str:
    """The page of a run over lists; the same report gives the same text."""
    metrics = report.metrics
    measure, task = primary_of(metrics), str(metrics.get("task", ""))
    examples = [example_parts(example, task, measure) for example in report.examples]
    sections = {
        "Results": True,
        "Gains and losses": report.changes or any(report.losses.values()),
        "Weights": report.weights,
        "Examples": examples,
        "Training": True,
        "Data": True,
    }
    shown = frame(
        metrics,
        report.recipe,
        report.date,
        report.seconds,
        runs="run",
        sections=sections,
        environment=report.environment,
    )
    content = {
        "summary": headline.headline(metrics),
        "results": [headline.results_on_page(metrics, split) for split in splits_of(metrics)],
        "notes": headline.notes(metrics),
        "reported": list_tables.reported_table(metrics),
        "figures": report.figures,
        "signature": metrics.get("metric"),
        "signatures": headline.signatures(metrics),
        "changes": report.changes,
        "losses": report.losses,
        "weights": report.weights,
        "examples": examples,
        "legend": curves.legend(report.curves, metrics),
        "curves": curves.training_figures(report.curves, metrics),
        "learning": [curves.learning_figure(report.learning, measure), curves.sweep_figure(metrics)],
        "tables": [table(metrics) for table in list_tables.TRAINING],
        "bound": list_tables.bound(metrics),
        "data": [table(metrics) for table in list_tables.DATA],
        "ranks": curves.rank_figures(metrics),
    }
    return fill("lists.html.j2", shown | content)


def write_report(path: Path | str, report: Report) -> None:
    """Write the page to ``path``; it appears under its name only when complete."""
    write_text(path, render(report))
