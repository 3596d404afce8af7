"""Pages looked at in a headless browser, where there is one: at two widths, light and dark, with a check of what
overflows."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
FRAMES = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
HEIGHT = 3000
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (apt-get install chromium)")

# What is measured in every frame: its ground, and the elements that reach over its edges without a box that scrolls.
SCRIPT = """
const boxed = (each) => { for (let at = each.parentElement; at; at = at.parentElement)
    if (["auto", "scroll", "hidden"].includes(at.ownerDocument.defaultView.getComputedStyle(at).overflowX)) return true;
  return false; };
const name = (each) => `${each.tagName}.${each.getAttribute("class")}: ${each.textContent.trim().slice(0, 40)}`;
const look = (frame) => {
  const page = frame.contentDocument, width = page.documentElement.clientWidth, found = [];
  for (const each of page.querySelectorAll("details")) each.open = true;
  for (const each of page.body.querySelectorAll("*")) {
    const box = each.getBoundingClientRect();
    if (box.width && (box.right > width + 1 || box.left < -1) && !boxed(each)) found.push(name(each));
  }
  for (const text of page.querySelectorAll(".plot text")) {
    const box = text.getBoundingClientRect(), own = text.closest("svg").getBoundingClientRect();
    if (box.left < own.left - 2 || box.right > own.right + 2) found.push(name(text));
  }
  for (const tree of page.querySelectorAll(".tree")) {
    const box = tree.parentElement;
    if (box.scrollWidth > box.clientWidth && !box.matches(".scroll[tabindex]")) found.push(name(tree));
  }
  const style = frame.contentWindow.getComputedStyle(page.body);
  return {wide: page.documentElement.scrollWidth - width, over: found, ground: style.backgroundColor};
};
window.onload = () => {
  const found = [...document.querySelectorAll("iframe")].map(look);
  const out = document.createElement("pre"); out.id = "found"; out.textContent = JSON.stringify(found);
  document.body.append(out);
};
"""


def look(page: str, directory: Path) -> list[dict[str, Any]]:
    """What is seen of ``page``, by frame; ``directory`` gets a screenshot of all frames side by side."""
    frames = "".join(_frame(page, *each) for each in FRAMES)
    whole, picture = directory / "page.html", directory / "page.png"
    body = f'<body style="margin:0;white-space:nowrap">{frames}<script>{SCRIPT}</script></body>'
    whole.write_text(f"<!DOCTYPE html><html>{body}</html>", encoding="utf-8")
    size = f"--window-size={sum(width for width, _ in FRAMES)},{HEIGHT}"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size, f"--screenshot={picture}"]
    done = subprocess.run(
        [str(BROWSER), *flags, "--dump-dom", whole.as_uri()], capture_output=True, timeout=600, check=True
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout.decode("utf-8", "replace"), re.DOTALL)
    assert found is not None, "the page was not loaded"
    assert picture.stat().st_size > 10_000
    return list(json.loads(html.unescape(found[1])))


def _frame(page: str, width: int, scheme: str) -> str:
    style = f"border:0;width:{width}px;height:{HEIGHT}px;color-scheme:{scheme}"
    return f'<iframe srcdoc="{html.escape(page)}" style="{style}"></iframe>'


def assert_nothing_overflows(page: str, directory: Path) -> None:
    """Look at ``page`` in the browser and fail where something reaches over an edge."""
    for (width, scheme), seen in zip(FRAMES, look(page, directory), strict=True):
        assert seen["over"] == [], f"{width} px, {scheme}"
        assert seen["wide"] <= 0, f"{width} px, {scheme}"
        assert seen["ground"] == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
