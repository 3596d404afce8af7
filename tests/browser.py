"""Pages looked at in a headless browser, where there is one: at two widths, light and dark, with a check of what
overflows."""

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
window.onload = async () => {
  const frames = [...document.querySelectorAll("iframe")];
  const said = [];
  for (const frame of frames) said.push(await prepare(frame.contentDocument));
  const found = frames.map((frame, k) => ({...look(frame), said: said[k]}));
  const out = document.createElement("pre"); out.id = "found"; out.textContent = JSON.stringify(found);
  document.body.append(out);
};
"""


def look(page: str, directory: Path) -> list[dict[str, Any]]:
    """What is seen of ``page``, by frame; ``directory`` gets a screenshot of all frames side by side."""
    whole = directory / "page.html"
    whole.write_text(frames(f'srcdoc="{html.escape(page)}"'), encoding="utf-8")
    return look_at(whole.as_uri(), directory)


def frames(shown: str, prepare: str = "") -> str:
    """A page that shows another one in all frames, and looks at it after ``prepare``, the body of an asynchronous
    function of the other ``page`` in JavaScript; what that returns is ``said``."""
    inner = "".join(_frame(shown, *each) for each in FRAMES)
    script = f"<script>const prepare = async (page) => {{{prepare}}};{SCRIPT}</script>"
    return f'<!DOCTYPE html><html><body style="margin:0;white-space:nowrap">{inner}{script}</body></html>'


def look_at(address: str, directory: Path) -> list[dict[str, Any]]:
    """What ``frames`` has seen, at the address where it is."""
    picture = directory / "page.png"
    size = f"--window-size={sum(width for width, _ in FRAMES)},{HEIGHT}"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size, f"--screenshot={picture}"]
    done = subprocess.run(
        [str(BROWSER), *flags, "--virtual-time-budget=60000", "--dump-dom", address],
        capture_output=True, timeout=600, check=True,
    )  # fmt: skip
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout.decode("utf-8", "replace"), re.DOTALL)
    assert found is not None, "the page was not loaded"
    assert picture.stat().st_size > 10_000
    return list(json.loads(html.unescape(found[1])))


def _frame(shown: str, width: int, scheme: str) -> str:
    style = f"border:0;width:{width}px;height:{HEIGHT}px;color-scheme:{scheme}"
    return f'<iframe {shown} style="{style}"></iframe>'


def assert_nothing_overflows(found: list[dict[str, Any]]) -> None:
    """Fail where something of what was seen reaches over an edge."""
    for (width, scheme), seen in zip(FRAMES, found, strict=True):
        assert seen["over"] == [], f"{width} px, {scheme}"
        assert seen["wide"] <= 0, f"{width} px, {scheme}"
        assert seen["ground"] == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
