"""Commands to begin with: look says what a file of lists is taken for, new makes a recipe for it, list names the parts
that a recipe may have."""

import re
import shlex
import textwrap
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import Registry
from rerank.cli.application import ListReader, ListReferences, ReadOptions, Roles, command, out, show, shown_as_json

SHOWN = 5  # lines of a file that is there


@command("look", "Look", "rerank look llm/test")
def look(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Lists, in any format.")],
    references: ListReferences = None,
    *,
    reading: ReadOptions,
) -> None:
    """Say what a file is taken for: candidates, base score, what is right, columns.

    It is what every command says before its results, with the keys that are not used; --roles overrules it.
    """
    from rerank.extraction.list_checks import doubts_of_lists
    from rerank.readers.base import SkipCount, counted, usable
    from rerank.readers.detection import MOST, Account, filled
    from rerank.readers.given.reading import ListFile, read
    from rerank.readers.lists import one_by_one

    lists = read(file, reading.reader, references=references or None, roles=reading.roles)
    count = SkipCount("skip")
    assert isinstance(lists, ListFile)
    first = list(filled(usable(islice(one_by_one(lists.blocks()), MOST), counted, count)))
    if (account := Account.of(file, first, str(lists.settings["name"]))) is None:
        list(lists)  # says why no list is good, if there is one
        raise DataError("no list with candidates", path=file)
    show(*account.lines, account=account.as_data())
    count.warn()
    doubts = doubts_of_lists(first, roles=lists.settings.get("roles"))
    show(*doubts, doubts=doubts)


@command("new", "Start", "rerank new lists/train.jsonl lists/dev.jsonl lists/test.jsonl")
def new(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Lists: of training, dev and tests.")],
    *,
    references: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="References, or gold trees, of each file in turn; judgements (qrels) of all.",
        ),
    ] = None,
    sources: Annotated[list[str] | None, typer.Option(metavar="FILE", help="Inputs of each file in turn.")] = None,
    reader: ListReader = None,
    roles: Roles = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="Metric of the recipe.", show_default="as the lists suggest")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Recipe to write; NAME.yaml.")] = None,
) -> None:
    """Look at your files of lists, and write a recipe with comments for them.

    The names say which file is trained on and which is dev; the rest are tests.
    """
    from rerank.recipes.loading import task_named
    from rerank.runs.new_recipe import new_recipe
    from rerank.storage.files import write_text

    name = (
        output.stem
        if output is not None
        else re.sub(r"\W+", "-", Path(files[0]).resolve().parent.name).strip("-") or "lists"
    )
    place = output if output is not None else Path(f"{name}.yaml")
    made = new_recipe(name, files, references or [], sources or [], reader, roles, metric)
    if place.exists():
        kept = place.read_text(encoding="utf-8", errors="replace").splitlines()
        lost = [line for line in kept if line.strip() and line not in made.text.splitlines()]
        what = f"and would lose: {' / '.join(lost[:SHOWN])}" if lost else "the same that would be written"
        raise RecipeError(
            f"there is already a file, {what}; choose another with --output, or remove it", path=str(place)
        )
    write_text(place, made.text)
    model, tried = shlex.quote(f"runs/{name}/model"), shlex.join(made.tried)
    tries = [text.replace("MODEL", model).replace("FILE", tried) for text in task_named(made.task).tries]
    commands = [f"rerank run {shlex.quote(str(place))}", *tries]
    later = [f"  {line}" for line in commands[1:]]
    show(
        f"{place}: {made.found}",
        "later:",
        *later,
        f"now: {commands[0]}  # {made.shows}",
        recipe=str(place),
        next=commands,
    )


Kind = Literal["readers", "templates", "metrics", "learners", "losses", "pairs", "recipes"]
REGISTRIES = {  # their modules, in which they are called like their kind
    "readers": "rerank.readers.base",
    "templates": "rerank.features.template",
    "metrics": "rerank.metrics.metric",
    "learners": "rerank.learn.base",
    "losses": "rerank.learn.losses",
    "pairs": "rerank.learn.pairs",
}
PAPERS, WIDTH = "papers", 120


@command("list", "Look", "rerank list recipes")
def list_(
    kind: Annotated[Kind | None, typer.Argument(help="Kind of parts; everything by default.")] = None,
    *,
    every: Annotated[
        bool,
        typer.Option("--all", help="All learners, not only those that docs/choosing.md recommends; and settings."),
    ] = False,
) -> None:
    """List the parts that a recipe can name; with --all or --json, with their settings."""
    recommended = Registry[str]("recommended")  # learners that docs/choosing.md names
    for registry in [kind] if kind else get_args(Kind):
        if kind is None and not shown_as_json():
            out.print(registry, style="bold")
        parts = _parts(registry)
        listed = [part for part in parts if every or registry != "learners" or part["name"] in recommended]
        show(
            *(_by_use(parts) if registry == "recipes" else (_line(part, every) for part in listed)), **{registry: parts}
        )
        if len(listed) < len(parts):
            show(f"and {len(parts) - len(listed)} more: rerank list learners --all")
        if registry == "templates":
            from rerank.features.template import SETS

            sets = [{"name": name, "templates": list(members)} for name, members in SETS.items()]
            show(*(f"set {name}: {len(members)} templates" for name, members in SETS.items()), sets=sets)
        if registry == "readers":
            note = "every reader: scores='score', or 'cost' where lower is better"
            show(note, note=note)


def _parts(kind: Kind) -> list[dict[str, Any]]:
    """Name, settings with their defaults (as Python writes them; null where one must be given), and a sentence."""
    if kind == "recipes":
        from rerank.recipes.loading import about_recipe, shipped_recipes, task_named

        recipes = [{"name": name, "about": about_recipe(path)} for name, path in shipped_recipes().items()]
        for recipe, path in zip(recipes, shipped_recipes().values(), strict=True):
            task = re.search(r"^task: *(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
            of_paper = recipe["name"].startswith(f"{PAPERS}/")
            recipe["use"] = PAPERS if of_paper else task_named(task[1] if task else "parse").use
        return recipes
    return [_part(name, part) for name, part in getattr(import_module(REGISTRIES[kind]), kind)]


def _part(name: str, part: type) -> dict[str, Any]:
    import dataclasses

    fields = dataclasses.fields(part)
    settings = {f.name: None if f.default is dataclasses.MISSING else repr(f.default) for f in fields}
    about = " ".join((part.__doc__ or "").strip().split("\n\n")[0].split()).replace("``", "")
    return {"name": name, "settings": settings, "about": about}


def _by_use(recipes: list[dict[str, Any]]) -> list[str]:
    """Recipes in groups, those of papers last."""
    from rerank.recipes.loading import uses as every_use

    groups = {
        use: [f"  {_line(recipe)}" for recipe in recipes if recipe["use"] == use] for use in (*every_use(), PAPERS)
    }
    return [line for use, lines in groups.items() if lines for line in (f"{use}:", *lines)]


def _line(part: dict[str, Any], full: bool = False) -> str:
    """A part and what it is in one line, its first sentence; ``full``: all of it, with settings and their defaults."""
    settings = [key if default is None else f"{key}={default}" for key, default in part.get("settings", {}).items()]
    name = f"{part['name']}({', '.join(settings)})" if full and "settings" in part else part["name"]
    about = part.get("about", "")
    about = about if full else re.split(r"(?<=[\w)]\.) (?=[A-Z])", about)[0]
    line = "  ".join(filter(None, [name, about]))
    return line if full else textwrap.shorten(line, WIDTH, placeholder=" ...").replace(f"{name} ", f"{name}  ", 1)
