"""The report as a browser shows it: nothing overflows, colours can be told from their ground."""

import re
from pathlib import Path

import pytest
from browser import assert_nothing_overflows, look, needs_browser
from synthetic_report import make_full_report, make_grid, make_trained, render

CSS = (Path(__file__).parents[2] / "rerank/runs/report/report.css").read_text()
TEXT = ("text", "muted", "accent", "wrong", "missed")
LINES = tuple(f"series-{k}" for k in range(1, 8))


def colours(dark: bool) -> dict[str, str]:
    """The page's colours."""
    light, _, rest = CSS.partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light.partition("*,")[0]))
    return found | (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", rest.partition("*,")[0])) if dark else {})


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a: str, b: str) -> float:
    """The contrast ratio of two colours by WCAG 2.2."""
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_contrast(dark: bool) -> None:
    own = colours(dark)
    for ground in ("page", "panel", "accent-soft"):
        for name in TEXT:
            assert contrast(own[name], own[ground]) >= 4.5, f"{name} on {ground}"
    for name in LINES:
        assert contrast(own[name], own["page"]) >= 3, name


@needs_browser
def test_nothing_overflows(tmp_path: Path) -> None:
    parts = make_full_report()
    parts["runs"] += map(make_trained, make_grid())
    assert_nothing_overflows(look(render(**parts), tmp_path))
