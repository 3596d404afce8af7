"""Digests of code: they follow what a module imports."""

from pathlib import Path

import pytest
import small

from rerank.extraction import cache
from rerank.kernels import sources
from rerank.kernels.sources import module_digest, user_digest
from rerank.recipes.recipe import Recipe, TextRecipe


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that modules are imported from."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def write(folder: Path, **texts: str) -> None:
    """Modules by name, ``__`` for a dot, with the packages around them."""
    for name, text in texts.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for package in path.parents[: len(path.relative_to(folder).parts) - 1]:
            (package / "__init__.py").touch()


IMPORTS = {
    "import": "import helper_a",
    "from": "from helper_a import f",
    "in a function": "def g():\n    from helper_a import f\n",
    "through another": "import between_a",
    "under a condition": "try:\n    import helper_a as h\nexcept ImportError:\n    h = None\n",
    "a package": "import pack_a.deep.leaf",
    "from a package": "from pack_a.deep import leaf",
    "relative": "from pack_a.near import x",
    "the package itself": "from pack_a import deep",
}


@pytest.mark.parametrize("how", list(IMPORTS))
def test_an_edit_of_what_a_module_imports_changes_its_digest(folder: Path, how: str) -> None:
    write(folder, helper_a="f = 1", between_a="import helper_a", other_a="")
    write(folder, pack_a__deep__leaf="f = 1", pack_a__near="from .deep.leaf import f\nfrom . import deep\nx = 1")
    write(folder, mine_a=IMPORTS[how])
    edited = dict.fromkeys(("a package", "from a package", "relative"), "pack_a/deep/leaf.py")
    edited["the package itself"] = "pack_a/deep/__init__.py"
    before = user_digest({"learner": {"name": "mine_a:Learner"}})
    assert before == module_digest("mine_a", folder / "mine_a.py")
    (folder / "other_a.py").write_text("not = imported")
    assert user_digest({"learner": {"name": "mine_a:Learner"}}) == before
    (folder / edited.get(how, "helper_a.py")).write_text("f = 22")
    assert user_digest({"learner": {"name": "mine_a:Learner"}}) != before


def test_cycles_broken_sources_and_libraries(folder: Path) -> None:
    write(
        folder,
        one_b="import two_b, numpy, rerank.data.corpus, missing_b\n",
        two_b="import one_b, broken_b",
        broken_b="def (",
    )
    before = user_digest("one_b:x")
    (folder / "broken_b.py").write_text("def ((")
    assert user_digest("one_b:x") != before


def test_what_is_installed_in_a_borrowed_environment_is_a_library(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    borrowed = folder / "other" / "lib" / "site-packages"
    monkeypatch.syspath_prepend(borrowed)
    write(borrowed, large_f="f = 1")
    write(folder, mine_f="import large_f")
    before = user_digest("mine_f:x")
    (borrowed / "large_f.py").write_text("f = 2")
    assert user_digest("mine_f:x") == before


def test_where_the_folder_lies_does_not_count(folder: Path) -> None:
    for name in ("here", "there"):
        (folder / name).mkdir()
        write(folder / name, mine_c="import helper_c", helper_c="f = 1")
    here, there = (module_digest("mine_c", folder / name / "mine_c.py") for name in ("here", "there"))
    assert here == there


def test_a_rule_that_is_run_by_its_file_has_kernels_of_its_own() -> None:
    """What is kept names the module, which other programs have under another name."""
    file = str(sources.PACKAGE / "learn/rules/arow.py")
    own, others = (sources.kernel_state({module: file}) for module in ("rerank.learn.rules.arow", "arow"))
    assert own == sources.kernel_state({"rerank.learn.base": str(sources.PACKAGE / "learn/base.py")}) != others


def test_what_names_no_module_counts_as_nothing() -> None:
    nothing = user_digest()
    assert (
        user_digest({"a": ["x", 1, None, {"no:such": "C:/data", "sys:path": 2}], "b": "::"}, "missing_d:f") == nothing
    )


def test_a_part_of_an_entry_point(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, mine_e="f = 1")
    monkeypatch.setattr(sources, "installed_parts", lambda: {"learner": {"own": "mine_e:Own"}})
    before = user_digest({"learner": {"name": "own"}})
    write(folder, mine_e="f = 22")
    assert user_digest({"learner": {"name": "own"}}) != before


OWN = """
from dataclasses import dataclass
from {module} import {base}
import helper_{{kind}}
@dataclass(frozen=True)
class Mine({base}):
    pass
"""
READER = OWN.format(module="rerank.readers.trees.charniak", base="CharniakReader")
METRIC = OWN.format(module="rerank.metrics.wer", base="Wer")
PARTS = {
    "reader": (READER, {"data": {"reader": {"name": "mine_reader:Mine"}}}),
    "metric": (METRIC, {"metric": {"name": "mine_metric:Mine"}}),
    "template": ("import helper_{kind}\n", {"features": {"templates": ["mine_template:Mine(k=2)"]}}),
    "options": ("import helper_{kind}\n", {"features": {"templates": [{"mine_options:Mine": {"k": 2}}]}}),
    "user": ("import helper_{kind}\n", {"features": {"user": {"own": "mine_user:f"}}}),
}


@pytest.mark.parametrize("kind", list(PARTS))
def test_every_kind_of_own_part_is_in_the_key_of_a_corpus(small_data: Path, folder: Path, kind: str) -> None:
    text, changes = PARTS[kind]
    write(folder, **{f"mine_{kind}": text.format(kind=kind), f"helper_{kind}": "f = 1"})
    recipe: Recipe | TextRecipe = small.recipe(small_data, **({} if kind == "metric" else changes))
    if kind == "metric":
        texts = {"nbest": str(small_data / "{split}.nbest.gz"), "references": None, "sources": None}
        recipe = TextRecipe.model_validate({"name": "x", "task": "speech", "data": texts} | changes)
    before = cache._settings_key(recipe, "train", None)
    assert cache._settings_key(recipe, "train", None) == before
    (folder / f"helper_{kind}.py").write_text("f = 22")
    assert cache._settings_key(recipe, "train", None) != before
