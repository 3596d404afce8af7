"""Docstrings for mkdocstrings: their sections, such as Parameters and Raises, as Markdown lists."""

import re
from pathlib import Path
from typing import Any

from griffe import Extension, GriffeLoader, Module, Object, visit

SECTION = re.compile(r"^([A-Z]\w+)\n-{3,}\n((?:.+\n?)+)", re.MULTILINE)
ENTRY = re.compile(r"^(\S[^:\n]*): ", re.MULTILINE)


class Sections(Extension):
    """Rewrites the docstrings of a package."""

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **_: Any) -> None:
        """Turn ``name: text`` lines below an underlined heading into a list, everywhere."""
        assert isinstance(pkg.filepath, Path)
        for folder in sorted(path for path in pkg.filepath.parent.iterdir() if path.is_dir()):
            if folder.name not in pkg.members and any(
                folder.glob("*.py")
            ):  # griffe passes over folders without __init__
                pkg.set_member(folder.name, _module(folder, pkg, loader))
        _rewrite(pkg)


def _module(folder: Path, parent: Module, loader: GriffeLoader) -> Module:
    """A folder of modules."""
    found = Module(folder.name, filepath=[folder], parent=parent)
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.set_member(
            path.stem, visit(path.stem, path, text, parent=found, modules_collection=loader.modules_collection)
        )
    return found


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
