"""Docstrings for mkdocstrings: their sections, such as Parameters and Raises, as Markdown lists."""

import re
from typing import Any

from griffe import Extension, Object

SECTION = re.compile(r"^([A-Z]\w+)\n-{3,}\n((?:.+\n?)+)", re.MULTILINE)
ENTRY = re.compile(r"^(\S[^:\n]*): ", re.MULTILINE)


class Sections(Extension):
    """Rewrites the docstrings of a package."""

    def on_package(self, *, pkg: Object, **_: Any) -> None:
        """Turn ``name: text`` lines below an underlined heading into a list, everywhere."""
        _rewrite(pkg)


def _rewrite(part: Object) -> None:
    if part.docstring is not None:
        text = part.docstring.value.replace("::\n\n", ":\n\n").replace("``", "`")
        part.docstring.value = SECTION.sub(_listed, text)
    for member in part.members.values():
        if not member.is_alias:
            _rewrite(member)


def _listed(found: re.Match[str]) -> str:
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?=\S)", found[2].strip())]
    named = [ENTRY.sub(r"`\1`: ", entry) for entry in entries]
    return f"**{found[1]}**\n\n" + "".join(f"* {entry}\n" for entry in named)
