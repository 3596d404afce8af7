"""Digests of code: what caches, stored runs and compiled kernels are keyed by, in addition to data and settings.

For this program, the sources that decide a result are named here. For users' modules, it is the file that a recipe
names by import path or entry point, and whatever that imports from the same folder, or from another that is not a
library's. Imports are read off the sources; a module that is imported by a computed name is not seen.
"""

import ast
import hashlib
import site
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rerank.base.registry import texts_in

PACKAGE = Path(__file__).parents[1]
COMPILATION = ("kernels/compile.py", "kernels/shortcuts.py")
EXTRACTION = (*COMPILATION, "data", "extraction", "features", "metrics", "readers")
TRAINING = (
    *EXTRACTION, "kernels/by_type.py", "learn", "models/predictions.py", "runs/mert.py",
    "runs/ensembles.py", "runs/run.py", "runs/training.py",
)  # fmt: skip
CLASSIFICATION = (
    *COMPILATION, "data", "features/dense.py", "kernels/by_type.py", "learn", "metrics",
    "models/predictions.py", "readers", "runs/examples",
)  # fmt: skip
INSTALLED = {"site-packages", "dist-packages"}


@cache
def code_digest(parts: tuple[str, ...]) -> str:
    """Digest of sources of this program: files, and all files in directories, as in ``EXTRACTION``."""
    digest = hashlib.sha256()
    for part in parts:
        place = PACKAGE / part
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(f"{path.relative_to(PACKAGE).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def user_digest(*settings: Any) -> str:
    """Digest of the modules of all parts that ``settings`` name by import path or entry point, and of their imports."""
    found: dict[str, Path] = {}
    for name in sorted({name for each in settings for text in texts_in(each) for name in _module_named(text)}):
        path = _file_of(name)
        if path is not None:
            found |= _with_imports(Module(name, path))
    return _digest(found)


def module_digest(name: str, path: Path) -> str:
    """Digest of the module ``name``, whose file is ``path``, and of its imports."""
    return _digest(_with_imports(Module(name, path)))


def name_of(module: str) -> str:
    """The name by which a module that is being imported, or run, was found."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return module if spec is None else str(spec.name)


def _digest(files: dict[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _module_named(text: str) -> list[str]:
    """The module of the part that a text may name: ``package.module:Name``, with or without options after it."""
    name = text.partition("(")[0].strip()
    module, colon, _ = name.partition(":")
    if colon:
        return [module] if all(part.isidentifier() for part in module.split(".")) else []
    return _entry_points().get(name, [])


@cache
def _entry_points() -> dict[str, list[str]]:
    """The modules of the parts that installed packages provide, by name."""
    found: dict[str, list[str]] = {}
    for group in entry_points().groups:
        for point in entry_points(group=group) if group.startswith("rerank.") else ():
            found.setdefault(point.name, []).append(point.module)
    return found


def _file_of(name: str) -> Path | None:
    """The file of a module; None if there is none, which the import itself will report."""
    try:
        spec = getattr(sys.modules.get(name), "__spec__", None) or find_spec(name)
    except Exception:  # the package around it is the user's: it can raise anything
        return None
    path = Path(spec.origin) if spec is not None and spec.origin else None
    return path if path is not None and path.is_file() else None


class Module(NamedTuple):
    """A module: its dotted name and its file."""

    name: str
    path: Path

    @property
    def package(self) -> list[str]:
        """The parts of its package's name, to which relative imports refer."""
        parts = self.name.split(".")
        return parts if self.path.name == "__init__.py" else parts[:-1]

    @property
    def root(self) -> Path:
        """The folder that its dotted name starts from."""
        folder = self.path.parent
        for part in reversed(self.package):
            if folder.name != part:
                return self.path.parent
            folder = folder.parent
        return folder


def _with_imports(first: Module) -> dict[str, Path]:
    """The files of a module and of all that it imports from the same folder or another that is not a library's."""
    installed = _is_library(first.root)
    others = (Path(place or ".").absolute() for place in sys.path)
    folders = [first.root, *(place for place in others if not _is_library(place))]
    found: dict[str, Path] = {}
    waiting = [first]
    while waiting:
        module = waiting.pop()
        if module.name in found:
            continue
        found[module.name] = module.path
        for name in _imports(module):
            top = name.partition(".")[0]
            if top == PACKAGE.name or (installed and top != first.name.partition(".")[0]):
                continue  # part of this program, whose sources have their own digest, or of a library
            path = _below(folders[:1] if installed else folders, name)
            if path is not None:
                waiting.append(Module(name, path))
    return found


def _is_library(folder: Path) -> bool:
    """Whether a folder of modules is Python's own or holds what is installed, in this environment or one it borrows."""
    if not INSTALLED.isdisjoint(folder.parts):
        return True
    return any(folder.is_relative_to(place) for place in _libraries())


@cache
def _libraries() -> tuple[Path, ...]:
    """The folders of libraries, Python's own and installed ones."""
    named = [sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple({Path(place) for place in [*named, *site.getsitepackages(), site.getusersitepackages()] if place})


def _below(folders: Iterable[Path], name: str) -> Path | None:
    """The file of a module in the first of the folders that has it."""
    for folder in folders:
        place = folder.joinpath(*name.split("."))
        for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if path.is_file():
                return path
    return None


def _imports(module: Module) -> set[str]:
    """The names of all modules that a module may import, and of the packages around them."""
    status = module.path.stat()
    found = set[str]()
    for level, name in _import_statements(module.path, status.st_mtime_ns, status.st_size):
        package = module.package
        parts = [*package[: len(package) - level + 1], *name.split(".")] if level else name.split(".")
        parts = [part for part in parts if part]
        found |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return found


@lru_cache(maxsize=1024)
def _import_statements(path: Path, time: int, size: int) -> tuple[tuple[int, str], ...]:  # noqa: ARG001 - time, size: keys
    """What a source file imports: how many leading dots, and the dotted name, which may end in a class or function."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # not Python source, or broken
        return ()
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.level, f"{node.module or ''}.{alias.name}") for alias in node.names]
    return tuple(found)
