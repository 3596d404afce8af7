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
        _add_folders(pkg.filepath.parent, pkg, loader)
        _rewrite(pkg)


def _add_folders(folder: Path, to: Module, loader: GriffeLoader) -> None:
    """Add the folders in a folder with their modules: griffe passes over those without __init__."""
    for path in sorted(folder.iterdir()):
        if path.name not in to.members and any(path.glob("*.py")):
            found = Module(path.name, filepath=[path], parent=to)
            to.set_member(path.name, found)
            for file in sorted(path.glob("*.py")):
                text, modules = file.read_text(encoding="utf-8"), loader.modules_collection
                found.set_member(file.stem, visit(file.stem, file, text, parent=found, modules_collection=modules))
            _add_folders(path, found, loader)


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
