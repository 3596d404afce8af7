"""Imports only point down, and there is no cycle: read off the sources."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from rerank.sources import CLASSIFICATION, EXTRACTION, TRAINING

PACKAGE = Path(__file__).parents[2] / "rerank"

# From the ground up; a module may import its own layer (without cycles) and those before it.
LAYERS = [
    {"errors", "compile", "registry", "progress", "files", "outputs", "checkpoints", "engine", "engines", "__init__"}
    | {
        "arrays",
        "strict_json",
        "interrupts",
        "kept_spool",
        "kernel_cache",
        "names",
        "written",
        "checksums",
        "sources",
        "locks",
        "stages",
        "usage",
        "recipe_yaml",
        "settings",
        "unforeseen",
        "escaping",
    },
    {"symbols", "tokens"},
    {"corpus", "shards"},
    {"class_names", "labelled", "labelled_kernel"},
    {"synthetic", "synthetic_kernel", "readers", "features", "metrics"},
    {"oracle"},
    {"learn"},
    {"recipe"},
    {"text_recipe", "provenance"},
    {"model"},
    {"standard"},
    {"predict", "content", "dense_line"},
    {"blocks", "assembly", "extraction", "evaluation", "report"},
    {"reranker", "inspection", "weights_text", "moses_weights"},
    {"examples", "data"},
    {"runs"},
    {"tuning", "base_score", "run_training", "results"},
    {"pipeline", "estimators"},
    {"classification"},
    {"cli"},
    {"__main__"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}


def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in known else node.module)
    return {name for name in found if name in known}


def top(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


GRAPH = {name: imports(path, modules()) for name, path in modules().items()}


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_imports_point_down(name: str) -> None:
    assert top(name) in LEVEL, f"give {top(name)} a place in LAYERS"
    for target in GRAPH[name]:
        if target != "rerank":
            assert LEVEL[top(target)] <= LEVEL[top(name)], f"{name} imports {target}"


def test_no_cycles() -> None:
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"cycle: {' -> '.join((*path[path.index(name) :], name))}"
        if name not in done:
            # A package's own __init__ may register its modules; that is no dependency of theirs on it.
            for target in GRAPH[name]:
                if not name.startswith(f"{target}."):
                    visit(target, (*path, name))
            done.add(name)

    for name in GRAPH:
        visit(name, ())


def test_kernels_know_nothing_of_files_or_printing() -> None:
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(d, ast.Name) and d.id == "kernel" for d in node.decorator_list
            ):
                calls = {n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
                assert not calls & {"open", "print", "input"}, f"{name}.{node.name}"


# What shows, stores, schedules or describes: no number depends on it.
NEUTRAL = {
    "escaping",
    "arrays", "checkpoints", "checksums", "engine", "engines", "errors", "evaluation", "files", "interrupts",
    "kept_spool", "kernel_cache", "locks", "model", "names", "progress", "provenance", "recipe", "recipe_yaml",
    "registry", "report", "settings", "sources", "strict_json", "text_recipe",
}  # fmt: skip


@pytest.mark.parametrize(
    ("roots", "parts"),
    [
        (["rerank.extraction"], EXTRACTION),
        (["rerank.run_training", "rerank.tuning"], TRAINING),
        (["rerank.classification.experiment"], CLASSIFICATION),
    ],
)
def test_what_decides_results_is_named(roots: list[str], parts: tuple[str, ...]) -> None:
    known, waiting, found = modules(), list(roots), set[str]()
    while waiting:
        name = waiting.pop()
        if name in found or top(name) in NEUTRAL:
            continue
        found.add(name)
        waiting += GRAPH[name]
        path = known[name].relative_to(PACKAGE).as_posix()
        assert name == "rerank" or any(path == part or path.startswith(f"{part}/") for part in parts), name
    for part in parts:
        assert (PACKAGE / part).exists(), part
