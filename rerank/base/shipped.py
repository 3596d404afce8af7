"""Recipes and lists that come with the program. Lists go by name where a file is taken: ``llm/test``, and ``llm`` for
all its splits where several files are. A file of this name comes first."""

import os
from collections.abc import Iterable
from pathlib import Path

from rerank.base.errors import DataError

_PACKAGE = Path(__file__).parents[1]
# A wheel has them inside the package, a checkout beside it.
HOME = _PACKAGE / "shipped" if (_PACKAGE / "shipped").is_dir() else _PACKAGE.parent
SPLITS = "train", "dev", "test"


def shipped_files() -> dict[str, str]:
    """The files by name: ``llm/test`` of lists, ``quickstart/test.gold`` of gold trees."""
    names = {path: path.name.removesuffix(".gz") for path in sorted((HOME / "data").glob("*/*.gz"))}
    return {f"{path.parent.name}/{name.removesuffix('.jsonl').removesuffix('.nbest')}": str(path)
            for path, name in names.items()}  # fmt: skip


def files_of(names: Iterable[str]) -> list[str]:
    """The files that names are, or those of shipped lists."""
    names, files = list(names), shipped_files() if not all(map(os.path.exists, names)) else {}

    def those(name: str) -> list[str]:
        wanted = [name, *(f"{name}/{split}" for split in SPLITS)]
        return [] if os.path.exists(name) else [files[one] for one in wanted if one in files]

    return [file for name in names for file in those(name) or [name]]


def file_of(name: str) -> str:
    """The file that a name is, or that of shipped lists. Raises DataError where these are several."""
    if len(files := files_of([name])) > 1:
        raise DataError(
            f"these are {len(files)} files; expected one: {', '.join(f'{name}/{x}' for x in SPLITS)}", path=name
        )
    return files[0]
