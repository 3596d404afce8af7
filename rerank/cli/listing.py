"""The command that lists the parts that a recipe can name."""

import re
import textwrap
from importlib import import_module
from typing import Annotated, Any, Literal, get_args

import typer

from rerank.base.registry import Registry
from rerank.cli.application import command, out, show, shown_as_json

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


@command("list")
def list_(
    kind: Annotated[Kind | None, typer.Argument(help="What to list; everything by default.")] = None,
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
        shown = [part for part in parts if every or registry != "learners" or part["name"] in recommended]
        show(
            *(_by_use(parts) if registry == "recipes" else (_line(part, every) for part in shown)), **{registry: parts}
        )
        if len(shown) < len(parts):
            show(f"and {len(parts) - len(shown)} more: rerank list learners --all")
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

    found = {
        use: [f"  {_line(recipe)}" for recipe in recipes if recipe["use"] == use] for use in (*every_use(), PAPERS)
    }
    return [line for use, lines in found.items() if lines for line in (f"{use}:", *lines)]


def _line(part: dict[str, Any], full: bool = False) -> str:
    """A part and what it is in one line, its first sentence; ``full``: all of it, with settings and their defaults."""
    settings = [key if default is None else f"{key}={default}" for key, default in part.get("settings", {}).items()]
    name = f"{part['name']}({', '.join(settings)})" if full and "settings" in part else part["name"]
    about = part.get("about", "")
    about = about if full else re.split(r"(?<=[\w)]\.) (?=[A-Z])", about)[0]
    line = "  ".join(filter(None, [name, about]))
    return line if full else textwrap.shorten(line, WIDTH, placeholder=" ...").replace(f"{name} ", f"{name}  ", 1)
