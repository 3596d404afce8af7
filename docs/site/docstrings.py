"""Docstrings for mkdocstrings: their sections, such as Parameters and Raises, as Markdown lists."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

SECTION = re.compile(r"^([A-Z]\w+)\n-{3,}\n((?:.+\n?)+)", re.MULTILINE)
ENTRY = re.compile(r"^(\S[^:\n]*): ", re.MULTILINE)


class Sections(Extension):
    """Rewrites the docstring of every object."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Turn ``name: text`` lines below an underlined heading into a list."""
        if obj.docstring is not None:
            text = obj.docstring.value.replace("::\n\n", ":\n\n").replace("``", "`")
            obj.docstring.value = SECTION.sub(_listed, text)


def _listed(found: re.Match[str]) -> str:
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?=\S)", found[2].strip())]
    named = [ENTRY.sub(r"`\1`: ", entry) for entry in entries]
    return f"**{found[1]}**\n\n" + "".join(f"* {entry}\n" for entry in named)
