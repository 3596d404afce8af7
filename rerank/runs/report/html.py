"""The report of a run as one self-contained HTML page: no scripts, nothing from a network."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rerank.base.encoding import plain
from rerank.runs.report import figures, sections, summary
from rerank.runs.report.choices import choice_table
from rerank.runs.report.data import Report
from rerank.runs.report.measures import NONE, duration, primary_of
from rerank.runs.report.reported import reported_table
from rerank.runs.report.rows import runs_of
from rerank.storage.files import write_text

# Characters that HTML does not allow: controls, lone surrogates (of bytes that are not UTF-8), noncharacters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def render(report: Report) -> str:
    """The page; the same report gives the same text.

    Raises
    ------
    DataError: an example of the task ``parse`` is not a bracketed tree.
    """
    return fill("lists.html.j2", _content(report))


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


def write_report(path: Path | str, report: Report) -> None:
    """Write the page to ``path``; it appears under its name only when complete.

    Raises
    ------
    DataError: as ``render``.
    RunError: the file cannot be written.
    """
    write_text(path, render(report))


def frame(
    *,
    title: str,
    task: str,
    facts: Sequence[str],
    sections: Sequence[str],
    summary: Mapping[str, Any] | None,
    recipe: str,
    provenance: Sequence[tuple[str, str]],
    environment: Sequence[str],
    about: str = "",
) -> dict[str, Any]:
    """What every report has, whatever it is of: see ``page.html.j2``.

    sections: their headings. summary: ``tiles``, each with ``name``, ``value`` and ``note``, and the ``sentence`` that
    says what came out.
    """
    named = [{"id": section.lower().replace(" ", "-"), "title": section} for section in (*sections, "Settings")]
    return {
        "title": title,
        "task": task,
        "facts": facts,
        "sections": named,
        "summary": summary,
        "recipe": recipe.rstrip("\n"),
        "provenance": provenance,
        "environment": environment,
        "about": about,
    }


def _content(report: Report) -> dict[str, Any]:
    metrics = report.metrics
    measure, task = primary_of(metrics), str(metrics.get("task", ""))
    legend = figures.legend(report.curves, metrics)
    ended = report.date.strftime("%Y-%m-%d %H:%M %Z").strip()
    runs = len(runs_of(metrics))
    examples = [sections.example(shown, task, measure) for shown in report.examples]
    optional = [
        ("Gains and losses", bool(report.changes or any(report.losses.values()))),
        ("Weights", bool(report.weights)),
        ("Examples", bool(examples)),
    ]
    titles = ["Results", *(title for title, there in optional if there), "Training", "Data"]
    return frame(
        title=str(metrics.get("name") or "Unnamed run"),
        task=task,
        facts=[ended, f"{runs} run{'s' if runs > 1 else ''}", duration(report.seconds)],
        sections=titles,
        summary=summary.summary(metrics),
        recipe=report.recipe,
        provenance=[
            ("finished", ended),
            ("duration", duration(report.seconds)),
            ("version", f"rerank {metrics.get('version', '')}".rstrip()),
            ("seed", str(metrics.get("seed", NONE))),
        ],
        environment=report.environment,
    ) | {
        "results": summary.results(metrics),
        "notes": summary.notes(metrics),
        "signature": metrics.get("metric"),
        "signatures": summary.signatures(metrics),
        "changes": report.changes,
        "losses": report.losses,
        "weights": report.weights,
        "learning": sections.learning(report.learning, measure),
        "legend": legend,
        "curves": sections.curves(report, legend),
        "sweep": sections.sweep(metrics),
        "figures": [{"svg": Markup(each.svg), "caption": each.caption} for each in report.figures],
        "reported": reported_table(metrics),
        "tables": [
            choice_table(metrics),
            sections.training(metrics),
            sections.mert(metrics),
            sections.mert_weights(metrics),
        ],
        "bound": sections.bound(metrics),
        "data": [table(metrics) for table in sections.DATA],
        "ranks": sections.ranks(metrics),
        "examples": examples,
        "has_trees": any(shown["drawings"] for shown in examples),
        "has_marks": any(piece.mark for shown in examples for text in shown["texts"] for piece in text.pieces),
    }
