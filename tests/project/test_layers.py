"""Layers, public names, and sums that are taken in order."""

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from pages import ROOT

import rerank
from rerank.base.registry import module_of, own_parts
from rerank.contrib import PARTS
from rerank.kernels.sources import EXTRACTION, TRAINING

PACKAGE = Path(__file__).parents[2] / "rerank"

# From the ground up; a module may import its own layer (without cycles) and those before it.
LAYERS = [
    {"__init__", "base", "parts"},
    {"storage"},
    {"kernels"},
    {"pool"},
    {"data"},
    {"readers", "features", "metrics"},
    {"learn"},
    {"recipes"},
    {"extraction"},
    {"models"},
    {"runs"},
    {"cli"},
    {"__main__"},
    {"contrib"},
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


@cache
def graph() -> dict[str, set[str]]:
    """What every module imports."""
    known = modules()
    found = {name: imports(path, known) for name, path in known.items()}
    return found | {
        "rerank": {"rerank.base.errors", "rerank.base.encoding"}
    }  # which it loads for a name it is asked for


# What a registry imports when one of its parts is asked for.
REGISTERED = {
    place: {module_of(part) for part in own_parts()[kind].values() if not module_of(part).startswith("rerank.contrib")}
    for kind, place in (
        ("learner", "rerank.learn.learner"),
        ("metric", "rerank.metrics.metric"),
        ("reader", "rerank.readers.reader"),
        ("template", "rerank.features.template"),
    )
}


def test_imports_point_down() -> None:
    assert {top(name) for name in graph()} <= {*LEVEL}, "give every folder a place in LAYERS"
    up = [
        f"{name} imports {target}"
        for name, targets in graph().items()
        for target in targets - {"rerank"}
        if LEVEL[top(target)] > LEVEL[top(name)]
    ]
    assert up == []


def test_the_core_does_without_contrib() -> None:
    """No module of the core imports or names a part of contrib, and no part of it another."""
    named = re.compile(r"contrib(?:\.|/|\W+import\W+)(\w+)")
    for name, path in modules().items():
        _, _, part = name.partition("rerank.contrib.")
        others = {other for other in named.findall(path.read_text()) if other != part.partition(".")[0]}
        assert not others, f"{name} names {others}"


def test_contrib_is_known_by_what_registers() -> None:
    registering = {
        path.parent.name for path in (PACKAGE / "contrib").glob("*/__init__.py") if "def register(" in path.read_text()
    }
    assert {part.rpartition(".")[2] for part in PARTS} == registering


def test_no_cycles() -> None:
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"cycle: {' -> '.join((*path[path.index(name) :], name))}"
        if name not in done:
            # A package's own __init__ may register its modules; that is no dependency of theirs on it.
            for target in graph()[name]:
                if not name.startswith(f"{target}."):
                    visit(target, (*path, name))
            done.add(name)

    for name in graph():
        visit(name, ())


# What shows, stores, schedules or describes: no number depends on it.
NEUTRAL = (
    "base", "parts", "storage", "kernels.sources", "pool", "recipes",
    "models.model", "models.provenance", "runs.compared", "runs.report",
)  # fmt: skip


def neutral(name: str) -> bool:
    return any(f"{name}.".startswith(f"rerank.{part}.") for part in NEUTRAL)


@pytest.mark.parametrize(
    ("roots", "parts"),
    [(["rerank.extraction.extraction"], EXTRACTION), (["rerank.runs.training", "rerank.runs.combination"], TRAINING)],
)
def test_what_decides_results_is_named(roots: list[str], parts: tuple[str, ...]) -> None:
    known, waiting, found = modules(), list(roots), set[str]()
    while waiting:
        name = waiting.pop()
        if name in found or neutral(name):
            continue
        found.add(name)
        waiting += [*graph()[name], *REGISTERED.get(name, ())]
        path = known[name].relative_to(PACKAGE).as_posix()
        package = path.endswith("__init__.py")  # what holds no code but what it imports
        assert package or any(path == part or path.startswith(f"{part}/") for part in parts), name
    for part in parts:
        assert (PACKAGE / part).exists(), part


def test_no_class_name_is_used_for_two_things() -> None:
    found: dict[str, list[str]] = {}
    for name, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(name)
    assert not {name: places for name, places in found.items() if len(places) > 1}


LIGHT = """
import sys
import rerank
assert not {"numba", "scipy", "numpy", "pydantic"} & set(sys.modules), sorted(sys.modules)
try:
    rerank.lode
except AttributeError as error:
    assert "lode" in str(error)
else:
    raise AssertionError
assert len(list(rerank.read(sys.argv[1]))) == 1
assert "rerank.readers.moses" not in sys.modules
"""


def test_importing_loads_nothing_heavy_and_files_of_json_no_other_readers(tmp_path: Path) -> None:
    (tmp_path / "lists.jsonl").write_text('{"id": "a", "candidates": [{"text": "x", "score": 1}]}\n')
    subprocess.run([sys.executable, "-c", LIGHT, tmp_path / "lists.jsonl"], check=True)


def test_every_public_name_is_there_and_described() -> None:
    assert sorted(rerank.__all__) == dir(rerank)
    for name in rerank.__all__:
        value = getattr(rerank, name)
        assert name == "__version__" or value.__doc__, name
    assert Path(rerank.__file__).with_name("py.typed").exists()


NAMES = {"dot", "vdot", "inner", "matmul", "tensordot", "einsum", "linalg", "polyfit", "cov", "corrcoef"}
ANSWERS = {
    "contrib/sklearn/ranker.py",
    "metrics/bracket_model.py",
}  # about matrices of the caller, which no file has, or counts, which are exact in any order


def uses(tree: ast.AST) -> list[int]:
    """The lines that multiply matrices, or name a function of numpy that does or may."""
    return sorted(
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np" and node.attr in NAMES)
    )


def test_sums_are_taken_in_a_fixed_order() -> None:
    assert uses(ast.parse("a @ b\nnp.linalg.norm(x)\nnp.dot(x, y)")) == [1, 2, 3]
    sources = {str(path.relative_to(ROOT / "rerank")): path for path in sorted((ROOT / "rerank").rglob("*.py"))}
    found = {name: uses(ast.parse(path.read_text(encoding="utf-8"))) for name, path in sources.items()}
    assert {name for name, lines in found.items() if lines} == ANSWERS


@pytest.mark.parametrize("path", sorted(
    path for folder in ("benchmarks", "data", "docs", "recipes") for path in (ROOT / folder).rglob("*.py")
), ids=lambda path: str(path.relative_to(ROOT)))  # fmt: skip
def test_scripts_import_what_there_is(path: Path) -> None:
    for found in ast.walk(ast.parse(path.read_text())):
        if isinstance(found, ast.ImportFrom) and (found.module or "").split(".")[0] == "rerank":
            module = importlib.import_module(str(found.module))
            for name in found.names:
                assert hasattr(module, name.name) or importlib.import_module(f"{found.module}.{name.name}")


def test_no_repeated_group_is_possessive() -> None:
    """Python 3.11.2, that of Debian 12, backtracks into ``(...)*+`` all the same, but not into ``(?>(...)*)``."""
    sources = {path.name: path.read_text() for path in PACKAGE.rglob("*.py")}
    assert not [name for name, text in sources.items() if "import re\n" in text and re.search(r"\)[*+?]\+", text)]
