"""Digests of code: what caches, stored runs and compiled kernels are keyed by, in addition to data and settings.

For this program, the sources that decide a result are named here. For users' modules, it is the file that a recipe
names by import path, or as an installed package registers it, and whatever that imports from the same folder, or from
another that is not a library's. Imports are read off the sources; one by a computed name is not seen.
"""

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from rerank.base.registry import CONTRIB, installed_parts, module_of, own_parts, texts_in

PACKAGE = Path(__file__).parents[1]
COMPILATION = ("kernels/compile.py", "kernels/leaves.py")
EXTRACTION = (*COMPILATION, "data", "extraction", "features", "metrics", "readers", "storage/streams.py")
TRAINING = (
    *EXTRACTION, "learn", "runs/combination.py",
    "runs/run.py", "runs/training.py",
)  # fmt: skip


@cache
def code_digest(parts: tuple[str, ...]) -> str:
    """Digest of sources of this program: files, and all files in directories, as in ``EXTRACTION``; a directory that is
    absolute is one of another package."""
    files: dict[str, Path] = {}
    for part in parts:
        root = PACKAGE / part
        for path in root.rglob("*.py") if root.is_dir() else [root]:
            files[path.relative_to(PACKAGE if root.is_relative_to(PACKAGE) else root).as_posix()] = path
    return _digest(files)


def user_digest(*settings: Any) -> str:
    """Digest of ``user_files``."""
    return _digest(user_files(*settings))


def user_files(*settings: Any) -> dict[str, Path]:
    """The modules of all parts of others that ``settings`` name, and of their imports.

    Those of this program are left out: ``code_digest`` has them; of a part in ``rerank.contrib`` its folder counts.
    """
    files: dict[str, Path] = {}
    for name in {name for part in settings for text in texts_in(part) for name in _modules_named(text)}:
        if name.startswith(f"{CONTRIB}."):
            folder = PACKAGE.joinpath(*name.split(".")[1:3])
            files |= {path.relative_to(PACKAGE).as_posix(): path for path in folder.rglob("*.py")}
        if name.partition(".")[0] == PACKAGE.name:
            continue
        spec = getattr(sys.modules.get(name), "__spec__", None)
        with suppress(Exception):  # the package around it is the user's: the import itself will report what it raises
            spec = spec or find_spec(name)
        if spec is not None and spec.origin and Path(spec.origin).is_file():
            files |= _with_imports(name, Path(spec.origin))
    return files


def module_digest(module: str, path: Path) -> str:
    """Digest of a module, which may be the one that is run, and of its imports."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return _digest(_with_imports(module if spec is None else str(spec.name), path))


def kernel_state(files: Mapping[str, str | None]) -> str | None:
    """The state of the sources of kernels, by the files of their modules: 16 hexadecimal digits; None where one was
    typed in, without a file.

    It is that of the import: a kernel is compiled on its first call, when a file may have changed already.
    """
    state = _package_state()
    for module, file in sorted(files.items()):
        path = Path(file or "").absolute()
        if not path.is_file():
            return None
        if module.partition(".")[0] != PACKAGE.name:
            state = hashlib.sha256(f"{state} {module_digest(module, path)}".encode()).hexdigest()[:16]
    return state


@cache
def _package_state() -> str:
    """The state of all sources of this program that define kernels, or how they are compiled."""
    kernels: dict[str, Path] = {}
    for path in PACKAGE.rglob("*.py"):
        source = path.read_bytes()
        if path.parent.name == "kernels" or any(
            mark in source for mark in (b"@kernel", b"@body(", b"@by_type", b"@staticmethod")
        ):
            kernels[path.relative_to(PACKAGE).as_posix()] = path
    return _digest(kernels)[:16]


def _digest(files: dict[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _modules_named(text: str) -> list[str]:
    """The module of the part that a text may name: ``package.module:Name``, with or without options after it."""
    name = text.partition("(")[0].strip()
    module, colon, _ = name.partition(":")
    if colon:
        return [module] if all(part.isidentifier() for part in module.split(".")) else []
    every = (*own_parts().values(), *installed_parts().values())
    return [module_of(parts[name]) for parts in every if name in parts]


def _with_imports(module: str, path: Path) -> dict[str, Path]:
    """The files of a module and of all that it imports from the same folder or another that is not a library's."""
    depth = module.count(".") + (path.name == "__init__.py")
    root, top = path.absolute().parents[depth], module.partition(".")[0]
    library = _is_library(root)
    others = [] if library else [Path(folder or ".").absolute() for folder in sys.path]
    folders = [root, *(folder for folder in others if not _is_library(folder))]
    files: dict[str, Path] = {}
    waiting = [(module, path)]
    while waiting:
        name, path = waiting.pop()
        if name in files:
            continue
        files[name] = path
        for target in _imports(path, name if path.name == "__init__.py" else name.rpartition(".")[0]):
            first = target.partition(".")[0]
            # This program's sources have a digest of their own; of a library, the package of the module counts.
            relevant = first == top if library else first != PACKAGE.name
            if relevant and (file := _file_below(folders, target)) is not None:
                waiting.append((target, file))
    return files


def _is_library(folder: Path) -> bool:
    """Whether a folder of modules is Python's own or holds what is installed, in this environment or one it borrows."""
    libraries = (sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib"))
    return not {"site-packages", "dist-packages"}.isdisjoint(folder.parts) or any(map(folder.is_relative_to, libraries))


def _file_below(folders: list[Path], module: str) -> Path | None:
    """The file of a module in the first of the folders that has it."""
    paths = (folder.joinpath(*module.split(".")) for folder in folders)
    files = (file for path in paths for file in (path / "__init__.py", path.with_name(f"{path.name}.py")))
    return next(filter(Path.is_file, files), None)


def _imports(path: Path, package: str) -> set[str]:
    """The names of all modules that a file may import, which may be those of functions, and of the packages around."""
    names = set[str]()
    with suppress(SyntaxError, ValueError):  # not Python source, or broken
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                dots, start = "." * node.level, f"{node.module}." if node.module else ""
                with suppress(ImportError):  # above the top
                    names |= {resolve_name(f"{dots}{start}{alias.name}", package) for alias in node.names}
    return {".".join(parts[:end]) for parts in (name.split(".") for name in names) for end in range(1, len(parts) + 1)}
