"""The command that lists the parts that a recipe can name."""

from importlib import import_module
from typing import Annotated, Any, Literal, get_args

import typer

from rerank.cli.answer import out, show, shown_as_json
from rerank.cli.application import command

Kind = Literal["readers", "templates", "metrics", "learners", "losses", "recipes"]
REGISTRIES = {  # their modules, in which they are called like their kind
    "readers": "rerank.readers.base",
    "templates": "rerank.features.template",
    "metrics": "rerank.metrics.base",
    "learners": "rerank.learn.base",
}


@command("list")
def list_(kind: Annotated[Kind | None, typer.Argument(help="What to list; everything by default.")] = None) -> None:
    """List the parts that a recipe can name, with their settings."""
    for registry in [kind] if kind else get_args(Kind):
        if kind is None and not shown_as_json():
            out.print(registry, style="bold")
        parts = _parts(registry)
        show(*map(_line, parts), **{registry: parts})
        if registry == "templates":
            from rerank.features.sets import SETS

            sets = [{"name": name, "templates": list(members)} for name, members in SETS.items()]
            show(*(f"set {name}: {len(members)} templates" for name, members in SETS.items()), sets=sets)
        if registry == "readers":
            note = "every reader: scores='score', or 'cost' where lower is better"
            show(note, note=note)


def _parts(kind: Kind) -> list[dict[str, Any]]:
    """Name, settings with their defaults (as Python writes them; null where one must be given), and a sentence."""
    if kind == "recipes":
        from rerank.recipes.shipped import about_recipe, shipped_recipes

        return [{"name": name, "about": about_recipe(path)} for name, path in shipped_recipes().items()]
    if kind == "losses":
        from rerank.learn.losses import LOSSES

        return [{"name": name} for name in sorted(LOSSES)]
    return [_part(name, part) for name, part in getattr(import_module(REGISTRIES[kind]), kind)]


def _part(name: str, part: type) -> dict[str, Any]:
    import dataclasses

    fields = dataclasses.fields(part)
    settings = {f.name: None if f.default is dataclasses.MISSING else repr(f.default) for f in fields}
    return {
        "name": name,
        "settings": settings,
        "about": " ".join((part.__doc__ or "").strip().split("\n\n")[0].split()),
    }


def _line(part: dict[str, Any]) -> str:
    """A part with its settings and their defaults, and the first sentence of its documentation."""
    settings = [key if default is None else f"{key}={default}" for key, default in part.get("settings", {}).items()]
    name = f"{part['name']}({', '.join(settings)})" if "settings" in part else part["name"]
    return "  ".join(filter(None, [name, part.get("about", "")]))
