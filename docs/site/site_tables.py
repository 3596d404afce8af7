"""The reference in the pages: a line ``<!-- NAME words -->`` stands for what the code says.

What the program or a file shows too comes into the site alone. The rest stands in the pages, up to ``<!-- end -->``:
``python docs/site/site_tables.py`` writes it into all of them; a test holds them to it.
"""

import dataclasses
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from site_meanings import Setting, cell, markdown, options, settings
from typer.main import get_command

from rerank.base.errors import RecipeError
from rerank.cli.application import app, load_commands
from rerank.contrib import sklearn as estimators
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.sklearn.classifiers import SHARED_FIELDS, OnlineClassifier
from rerank.contrib.structures.readers import sequence_readers
from rerank.contrib.structures.recipe import TaggingRecipe
from rerank.features.parse.local import LocalTree
from rerank.features.template import templates
from rerank.learn.learner import learners
from rerank.learn.pairs import pairs
from rerank.metrics.metric import metrics
from rerank.parts import LOSSES
from rerank.readers.reader import readers
from rerank.readers.texts.forms import FORMS
from rerank.recipes.recipe import Recipe, TextRecipe

load_commands()
END = "<!-- end -->"
MANY = 3  # as many parts, or commands, share an option that is described once for all
IN_SITE = (  # how marks begin; pages say what prints the same, or link to it
    *("classifiers", "commands", "example", "forms", "losses", "options", "shared", "templates"),
    *("settings classification", "settings tagging"),
)
MARK = re.compile(  # and what follows it, unless that is another mark
    rf"^(\[[\w./-]+\]\([\w./-]+\) )?(<!-- (?!end )(\w+)((?: [\w.-]+)*) -->)$(?:\n(?:(?!<!-- \w+).*\n)*?{END}$)?",
    re.MULTILINE,
)
ALL_SHARED = {"learner": "All its parameters are [shared](#shared-parameters).\n", "reader": ""}
EXAMPLES = Path(__file__).with_name("features.txt")
PAGES = Path(__file__).parents[1]
SCRIPTS, RECIPES = PAGES / "examples", PAGES.parent / "recipes"
NAMED = {  # parts that are no registry's
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


def expanded(page: str, site: bool = False) -> str:
    """A page with its tables, in place of those that it has; for the site, with all of them in place of links to them.

    Raises
    ------
    KeyError: a mark asks for a table, or part, that does not exist.
    """

    def text(mark: re.Match[str]) -> str:
        link, line, name, words = mark.groups()
        if line.removeprefix("<!-- ").startswith(IN_SITE) and not site:
            return f"{link or ''}{line}"
        return f"{line}\n\n{TABLES[name](*words.split()).strip()}\n\n{END}"

    return MARK.sub(text, page)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Rows of cells in Markdown."""
    heads = list(heads)
    head, *lines = (f"| {' | '.join(each)} |\n" for each in (heads, *rows))
    return f"{head}|{'---|' * len(heads)}\n{''.join(lines)}"


def _settings(rows: Iterable[Setting], head: str) -> str:
    return table(
        [head, "values", "default", "meaning"],
        ([f"`{row.key}`", cell(row.values), row.default.replace("|", "\\|"), cell(row.meaning)] for row in rows),
    )


def known() -> dict[str, type]:
    """The classes of all parts, and those that they derive from, by name."""
    return {base.__name__: base for parts in REGISTRIES.values() for _, part in parts for base in part.__mro__}


def option_table(kind: str, name: str = "") -> str:
    """The options of a registered part, without those that many parts of its kind share."""
    part = NAMED[kind] if kind in NAMED else REGISTRIES[kind].get(name)
    rows = list(options(part, known()))
    general = [row for _, base in readers if base in part.__mro__[1:] for row in options(base, known())]
    own = [row for row in rows if (row.key, row.meaning) not in _shared(kind) and row not in general]
    if not own:
        return ALL_SHARED.get(kind, "It has no options.\n") if rows else "It has no options.\n"
    return _settings(own, "parameter" if kind == "learner" else "option")


@cache
def _shared(kind: str) -> dict[tuple[str, str], dict[str, Setting]]:
    """By name and meaning, the options that three or more learners, or readers, have, of each."""
    found: dict[tuple[str, str], dict[str, Setting]] = {}
    for name, part in REGISTRIES[kind] if kind in ("learner", "reader") else ():
        for row in options(part, known()):
            found.setdefault((row.key, row.meaning), {})[name] = row
    return {option: parts for option, parts in found.items() if len(parts) >= MANY}


def shared_table(kind: str) -> str:
    """The options that many parts of a kind share, with the parts that have each default."""
    rows = []
    for (key, meaning), parts in _shared(kind).items():
        values = ", ".join(dict.fromkeys(value for part in parts.values() for value in part.values.split(", ")))
        defaults: dict[str, list[str]] = {}
        for name, part in parts.items():
            defaults.setdefault(part.default, []).append(f"`{name}`")
        told = [f"{default}: {', '.join(names)}" for default, names in defaults.items()]
        rows.append(
            [f"`{key}`", cell(values), "; ".join(told) if len(told) > 1 else next(iter(defaults)), cell(meaning)]
        )
    return table(["parameter" if kind == "learner" else "option", "values", "default", "meaning"], rows)


def setting_table(task: str, *names: str) -> str:
    """The keys of recipes: of ``lists`` (of trees and of texts), or what ``classification`` or ``tagging`` adds."""
    texts = TextRecipe.model_validate({"name": "x", "task": "translation"})
    made = {
        "trees": (Recipe, Recipe(name="x").model_dump(mode="json")),
        "texts": (TextRecipe, texts.model_dump(mode="json")),
    }
    rows = [row._replace(default="required") if row.key == "name" else row for row in settings(made, list(names))]
    if task != "lists":
        kind = ClassificationRecipe if task == "classification" else TaggingRecipe
        ours = settings({"": (kind, kind(name="x").model_dump(mode="json"))}, list(names))
        same = {row.key: row for row in rows}
        rows = [row for row in ours if not _means_the_same(row, same.get(row.key))]
    return _settings(rows, "key")


def _means_the_same(row: Setting, other: Setting | None) -> bool:
    """Has a key in both recipes the same meaning, or the same values and default?"""
    return other is not None and (row.meaning == other.meaning or row[1:3] == other[1:3])


def classifier_table() -> str:
    """The classifiers, their rules and the parameters that not all of them have."""
    rows = []
    for name in estimators.__all__:
        part = getattr(estimators, name)
        if issubclass(part, OnlineClassifier):
            own = [f"`{each}`" for each in inspect.signature(part).parameters if each not in SHARED_FIELDS]
            rows.append([f"`{name}`", cell((part.__doc__ or "").split("\n\n")[0]), ", ".join(own)])
    return table(["classifier", "rule", "parameters of its own"], rows)


def docstring(module: str, name: str = "") -> str:
    """What a module, or a class in it, says of itself, without parameters, which have tables, examples and sources."""
    part = import_module(module)
    text = inspect.getdoc(getattr(part, name) if name else part) or ""
    return markdown(re.sub(r"^(Parameters\n-+|>>> .*|Reference: .*)\n(.+\n)*\n?", "", text + "\n", flags=re.MULTILINE))


def example(name: str) -> str:
    """A file of docs/examples, or a script beside the recipes."""
    path = next(folder / name for folder in (SCRIPTS, RECIPES) if (folder / name).exists())
    return f"```python\n# file: {name}\n{path.read_text(encoding='utf-8')}```\n"


def format_section(name: str) -> str:
    """A format: what its reader says, or its module where that is longer, and its options."""
    reader = readers.get(name)
    own = (inspect.getdoc(reader) or "").split("\n>>> ")[0].strip()
    text = markdown(own if "::\n" in own else sys.modules[reader.__module__].__doc__ or "")
    return f"{text}\n\n{option_table('reader', name)}"


def form_table() -> str:
    """The known forms of JSON, with what tells them and the roles of their keys."""
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
        rows.append([form.form, told, "; ".join(said), cell(form.about)])
    return table(["form", "told by", "roles", "what it is"], rows)


def loss_table() -> str:
    """Which losses a learner takes."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, learner in learners:
        default = {field.name: field.default for field in dataclasses.fields(learner)}.get("loss")
        if default is not None:
            takes = [f"`{loss}`" for loss in LOSSES if _takes(learner, loss)]
            row = "all" if len(takes) == len(LOSSES) else ", ".join(takes), f"`{default}`"
            rows.setdefault(row, []).append(f"`{name}`")
    return table(["learner", "losses", "default"], ([", ".join(names), *row] for row, names in rows.items()))


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
                f"`{row.key}={row.default.strip('`')}`"
                + (f": {row.values}" if row.values != "true or false" else "")
                + (f"; {row.meaning}" if row.meaning else "")
                for row in options(template, known())
                if not (issubclass(template, LocalTree) and row.key in local)
            ) + ("<br>the options of local trees" if issubclass(template, LocalTree) else "")
            shown = "<br>".join(f"`{example}`" for example in examples[name])
            rows.append([f"`{name}`", cell(given.removeprefix("<br>")) or "none", cell(_said(template)), cell(shown)])
    return table(["template", "options", "looks at", "example"], rows)


def _said(part: type) -> str:
    """What a docstring says before its options, without its example, its source and the number of its features."""
    text = re.split(r"\n+Parameters\n", part.__doc__ or "")[0]
    text = " ".join("\n\n".join(block for block in text.split("\n\n") if not block.lstrip().startswith(">>>")).split())
    return re.sub(r" (?:[A-Z][\w ,&]+(?: \(\d{4}\))?; )?[^.]*\bfeatures? per [^.]*\.$", "", text)


def command_pages() -> str:
    """All commands with their arguments and options; those that many have stand in a table of their own."""
    pages = list(_commands(["rerank"], get_command(app)))
    counts = Counter(row for _, _, rows in pages for row in rows)
    many = [row for row, count in counts.items() if count >= MANY]
    text = []
    for names, said, rows in pages:
        heading = f"{'#' * min(len(names), 3)} {' '.join(names[1:])}\n\n" if len(names) > 1 else ""
        own = [[f"`{name}`", about] for name, about in rows if (name, about) not in many]
        also = [f"`{name.split(', ')[-1].split()[0]}`" for name, about in rows if (name, about) in many]
        listed = f"\n{table(['option', 'meaning'], own)}" if own else ""
        tail = f"\n[Shared](#shared-options): {', '.join(also)}.\n" if also else ""
        text.append(f"{heading}{said}\n{listed}{tail}")
    shared = table(["option", "meaning"], ([f"`{name}`", about] for name, about in many))
    text.insert(1, f"## Shared options\n\nMany commands have some of these.\n\n{shared}")
    return "\n".join(text)


def _commands(names: list[str], command: Any, parent: Any = None) -> Iterable[tuple[list[str], str, list[Any]]]:
    """Commands by their names, with their help, and the names and meanings of their options."""
    context = command.make_context(names[-1], [], parent, resilient_parsing=True)
    records = filter(None, (each.get_help_record(context) for each in command.params if each.name != "help"))
    rows = [(re.sub(r" <(str|path|.* range|list.*)>", "", name), cell(said)) for name, said in records]
    yield names, re.sub(r"Example: (.*)$", r"Example: `\1`", cell(command.help or "")), rows
    for name, each in getattr(command, "commands", {}).items():
        yield from _commands([*names, name], each, context)


TABLES: dict[str, Callable[..., str]] = {
    "options": option_table,
    "shared": shared_table,
    "settings": setting_table,
    "classifiers": classifier_table,
    "docstring": docstring,
    "example": example,
    "format": format_section,
    "losses": loss_table,
    "forms": form_table,
    "templates": template_table,
    "commands": command_pages,
}

if __name__ == "__main__":
    for page in map(Path, sys.argv[1:] or sorted(map(str, PAGES.rglob("*.md")))):
        page.write_text(expanded(page.read_text(encoding="utf-8")), encoding="utf-8")
