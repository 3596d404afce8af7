"""Commands to begin with: look says what a file of lists is taken for, new makes a recipe for it."""

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from rerank.base.errors import DataError, RecipeError
from rerank.cli.application import Encoding, ListReader, OnBadList, Roles, command, show

SHOWN = 5  # lines of a file that is there


@command()
def look(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Lists, in any format.")],
    references: Annotated[
        list[str] | None, typer.Argument(metavar="[REF...]", help="References, for lists without.", show_default=False)
    ] = None,
    *,
    reader: ListReader = None,
    roles: Roles = None,
    encoding: Encoding = None,  # noqa: ARG001 - its callback acts
    on_bad_list: OnBadList = "skip",
) -> None:
    """Say what a file is taken for: candidates, base score, what is right, columns, and the keys that are not used.

    It is what every command says before its results; --roles overrules it.
    """
    from rerank.extraction.list_checks import doubts_of_lists
    from rerank.readers.given.reading import ListFile, read

    lists = read(file, reader, references=references or None, on_bad_list=on_bad_list, roles=roles)
    account = lists.account if isinstance(lists, ListFile) else None
    if account is None or not isinstance(lists, ListFile):
        list(read(file, reader, references=references or None, on_bad_list="error", roles=roles))  # why no list is good
        raise DataError("no list with candidates", path=file)
    show(*account.lines, account=account.as_data())
    doubts = doubts_of_lists(lists.first_items(), roles=lists.settings.get("roles"))
    show(*doubts, doubts=doubts)


@command()
def new(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Lists: of training, dev and tests.")],
    *,
    references: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="References, or gold trees, of each file in turn; judgements (qrels) of all.",
            show_default=False,
        ),
    ] = None,
    sources: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Inputs of each file in turn.", show_default=False)
    ] = None,
    reader: ListReader = None,
    roles: Roles = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="What is measured.", show_default="as the lists suggest")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the recipe goes; NAME.yaml.", show_default=False)
    ] = None,
) -> None:
    """Look at files of lists, recognise their form, and write a recipe with comments.

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
    model, tried = shlex.quote(f"runs/{name}/model"), shlex.quote(made.tried)
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
