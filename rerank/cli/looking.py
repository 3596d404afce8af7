"""The command that says what a file of lists is taken for."""

from typing import Annotated

import typer

from rerank.cli.answer import show
from rerank.cli.application import Encoding, ListReader, OnBadList, Roles, command


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
    from rerank.base.errors import DataError
    from rerank.extraction.list_checks import doubts_of_lists
    from rerank.readers.given.reading import ListFile, read

    lists = read(file, reader, references=references or None, on_bad_list=on_bad_list, roles=roles)
    account = lists.account if isinstance(lists, ListFile) else None
    if account is None or not isinstance(lists, ListFile):
        raise DataError("no list with candidates", path=file)
    show(*account.lines, account=account.as_data())
    doubts = doubts_of_lists(lists.first_items(), roles=lists.settings.get("roles"))
    show(*doubts, doubts=doubts)
