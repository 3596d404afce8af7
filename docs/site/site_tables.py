"""The reference in the pages: behind a line ``<!-- NAME words -->``, up to ``<!-- end -->``, is what the code says.

``python docs/site/site_tables.py`` writes it into all pages; a test holds them to it.
"""

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from site_meanings import Setting, cell, markdown, options, settings
from typer.main import get_command

from rerank.base.errors import RecipeError
from rerank.cli.application import app, load_commands
from rerank.contrib import sklearn as estimators
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.sklearn.base import SHARED, OnlineClassifier
from rerank.contrib.structures.readers import sequence_readers
from rerank.contrib.structures.recipe import TaggingRecipe
from rerank.features.parse.local import LocalTree
from rerank.features.template import templates
from rerank.learn.base import learners
from rerank.learn.mert import MertSettings
from rerank.learn.pairs import pairs
from rerank.metrics.metric import metrics
from rerank.parts import LOSSES
from rerank.readers.base import readers
from rerank.readers.texts.forms import FORMS
from rerank.recipes.recipe import Recipe, TextRecipe

load_commands()
END = "<!-- end -->"
MARK = re.compile(  # and what follows it, unless that is another mark
    rf"^(?:\[[\w./-]+\]\([\w./-]+\) )?(<!-- (?!end )(\w+)((?: [\w.-]+)*) -->)$(?:\n(?:(?!<!-- \w+).*\n)*?{END}$)?",
    re.MULTILINE,
)
EXAMPLES = Path(__file__).with_name("features.txt")
PAGES = Path(__file__).parents[1]
SCRIPTS, RECIPES = PAGES / "examples", PAGES.parent / "recipes"
NAMED = {  # parts that are no registry's
    "mert": MertSettings,
    "local": LocalTree,
    "ranker": estimators.ListRanker,
    "tagger": estimators.SequenceTagger,
    "classifier": OnlineClassifier,
}
REGISTRIES: dict[str, Any] = {
    "learner": learners,
    "pairs": pairs,
    "reader": readers,
    "metric": metrics,
    "template": templates,
    "sentences": sequence_readers,
}


def expanded(page: str) -> str:
    """A page with its tables, in place of those that it has.

    Raises
    ------
    KeyError: a mark asks for a table, or part, that does not exist.
    """
    return MARK.sub(lambda mark: f"{mark[1]}\n\n{TABLES[mark[2]](*mark[3].split()).strip()}\n\n{END}", page)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Rows of cells in Markdown."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(each)} |" for each in lines) + "\n"


def _settings(rows: Iterable[Setting], head: str) -> str:
    return table(
        [head, "values", "default", "meaning"],
        ([f"`{row.key}`", cell(row.values), row.default.replace("|", "\\|"), cell(row.meaning)] for row in rows),
    )


def known() -> dict[str, type]:
    """The classes of all parts, and those that they derive from, by name."""
    return {base.__name__: base for parts in REGISTRIES.values() for _, part in parts for base in part.__mro__}


def option_table(kind: str, name: str = "") -> str:
    """The options of a registered part."""
    rows = list(options(NAMED[kind] if kind in NAMED else REGISTRIES[kind].get(name), known()))
    return _settings(rows, "parameter" if kind == "learner" else "option") if rows else "It has no options.\n"


def setting_table(task: str, *names: str) -> str:
    """The keys of recipes: of ``lists`` (of trees and of texts), ``classification`` or ``tagging``."""
    if task != "lists":
        kind = ClassificationRecipe if task == "classification" else TaggingRecipe
        made = {"": (kind, kind(name="x").model_dump(mode="json"))}
        return _settings(settings(made, list(names)), "key")
    made = {"trees": (Recipe, Recipe(name="x").model_dump(mode="json"))}
    texts = TextRecipe.model_validate({"name": "x", "task": "translation"})
    made["texts"] = (TextRecipe, texts.model_dump(mode="json"))
    return _settings(
        (row._replace(default="required" if row.key == "name" else row.default) for row in settings(made, list(names))),
        "key",
    )


def classifier_table() -> str:
    """The classifiers, their rules and the parameters that not all of them have."""
    rows = []
    for name in estimators.__all__:
        part = getattr(estimators, name)
        if issubclass(part, OnlineClassifier):
            own = [f"`{each}`" for each in inspect.signature(part).parameters if each not in SHARED]
            rows.append([f"`{name}`", cell((part.__doc__ or "").split("\n\n")[0]), ", ".join(own)])
    return table(["classifier", "rule", "parameters of its own"], rows)


def docstring(module: str, name: str = "") -> str:
    """What a module, or a class in it, says of itself, without the parameters, which have tables."""
    part = import_module(module)
    text = inspect.getdoc(getattr(part, name) if name else part) or ""
    return markdown(re.sub(r"Parameters\n-+\n(.+\n)+\n?", "", text + "\n"))


def example(name: str) -> str:
    """A file of docs/examples, or a script beside the recipes."""
    path = next(folder / name for folder in (SCRIPTS, RECIPES) if (folder / name).exists())
    return f"```python\n# file: {name}\n{path.read_text(encoding='utf-8')}```\n"


def source(module: str) -> str:
    """A module as it is written."""
    return f"```python\n{inspect.getsource(import_module(module))}```\n"


def format_section(name: str) -> str:
    """A format: what its reader says, or its module where that is longer, and its options."""
    reader = readers.get(name)
    own = (inspect.getdoc(reader) or "").split("\n>>> ")[0].strip()
    text = markdown(own if "::\n" in own else sys.modules[reader.__module__].__doc__ or "")
    return f"{text}\n\n{option_table('reader', name)}"


def form_table() -> str:
    """The known forms of JSON, with what tells them, the roles of their keys, and the test that holds these."""
    rows = []
    for form in FORMS:
        columns = [name for name in (*form.columns, *form.along) if name != "gain"]
        roles = {
            "text": (form.many, *form.text),
            "gain": (form.gain_key,),
            "columns": columns,
            "source": form.source,
            "reference": form.reference,
            "right answer": form.right,
        }
        said = [f"{role}: {', '.join(f'`{key}`' for key in keys if key)}" for role, keys in roles.items() if any(keys)]
        told = ", ".join(f"`{key}`" for key in form.keys)
        rows.append([form.form, told, "; ".join(said), cell(form.about), f"`test_forms[{form.form}]`"])
    return table(["form", "told by", "roles", "what it is", "test"], rows)


def loss_table() -> str:
    """Which losses a learner takes."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, learner in learners:
        default = {field.name: field.default for field in dataclasses.fields(learner)}.get("loss")
        if default is not None:
            takes = tuple("yes" if _takes(learner, loss) else "no" for loss in LOSSES)
            rows.setdefault((*takes, f"`{default}`"), []).append(f"`{name}`")
    heads = ["learner", *(f"`{loss}`" for loss in LOSSES), "default"]
    return table(heads, ([", ".join(names), *row] for row, names in rows.items()))


def _takes(learner: Any, loss: str) -> bool:
    try:
        learner(loss=loss)
    except RecipeError:
        return False
    return True


def template_table(content: str) -> str:
    """All templates of trees or of texts."""
    examples: dict[str, list[str]] = {}
    for line in EXAMPLES.read_text(encoding="utf-8").splitlines():
        examples.setdefault(re.split(r"[(|]", line)[0], []).append(line)
    rows, local = [], {row.key for row in options(LocalTree, known())}
    for name, template in templates:
        if (template.content == "trees") == (content == "trees"):
            given = "<br>".join(
                f"`{row.key}={row.default.strip('`')}`: {row.values}" + (f"; {row.meaning}" if row.meaning else "")
                for row in options(template, known())
                if not (issubclass(template, LocalTree) and row.key in local)
            ) + ("<br>those of local trees" if issubclass(template, LocalTree) else "")
            shown = "<br>".join(f"`{example}`" for example in examples[name])
            rows.append([f"`{name}`", cell(given.removeprefix("<br>")) or "none", cell(_said(template)), cell(shown)])
    return table(["template", "options", "looks at", "example"], rows)


def _said(part: type) -> str:
    """What a docstring says before its options, without its example."""
    text = re.split(r"\n+Parameters\n", part.__doc__ or "")[0]
    return "\n\n".join(block for block in text.split("\n\n") if not block.lstrip().startswith(">>>"))


def command_pages() -> str:
    """All commands with their arguments and options."""
    return "\n".join(_command(["rerank"], get_command(app)))


def _command(names: list[str], command: Any, parent: Any = None) -> Iterable[str]:
    inner = getattr(command, "commands", {})
    if len(names) > 1:
        yield f"## {' '.join(names[1:])}\n" if len(names) == 2 else f"### {' '.join(names[1:])}\n"
    yield f"{cell(command.help or '')}\n"
    context = command.make_context(names[-1], [], parent, resilient_parsing=True)
    yield f"```\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n"
    records = [each.get_help_record(context) for each in command.params if each.name != "help"]
    if rows := [[f"`{cell(name)}`", cell(said)] for name, said in filter(None, records)]:
        yield table(["option", "meaning"], rows)
    for name, each in inner.items():
        yield from _command([*names, name], each, context)


TABLES: dict[str, Callable[..., str]] = {
    "options": option_table,
    "settings": setting_table,
    "classifiers": classifier_table,
    "docstring": docstring,
    "example": example,
    "source": source,
    "format": format_section,
    "losses": loss_table,
    "forms": form_table,
    "templates": template_table,
    "commands": command_pages,
}

if __name__ == "__main__":
    for page in map(Path, sys.argv[1:] or sorted(map(str, PAGES.rglob("*.md")))):
        page.write_text(expanded(page.read_text(encoding="utf-8")), encoding="utf-8")
