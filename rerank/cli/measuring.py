"""The options of commands that measure, and the metric that they describe."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rerank.base.errors import DataError, RecipeError

if TYPE_CHECKING:
    from rerank.metrics.base import Metric

Prm = Annotated[Path | None, typer.Option(help="An EVALB parameter file.", show_default=False)]
Punctuation = Annotated[
    Literal["reference", "own", "evalb"] | None,
    typer.Option(
        help="Whose tags decide which words are punctuation; evalb refuses sentences where trees disagree. By default "
        "reference, and evalb with --prm.",
        show_default=False,
    ),
]
Measured = Annotated[
    Literal["parseval", "bleu", "chrf", "ter", "wer", "cer", "gain"],
    typer.Option("--metric", help="The measure; gain is a column of the lists themselves."),
]
Form = Annotated[
    Literal["lines", "tab", "id"],
    typer.Option(help="References of texts: one per line, several separated by tabs, or `id ||| reference` lines."),
]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="A setting of the metric, for example tokenize=13a."),
]
References = Annotated[
    list[str] | None, typer.Option("--reference", metavar="FILE", help="Another file of references of texts.")
]

Normalize = Annotated[
    bool, typer.Option("--normalize", help="Trees: bring escapes, quotes and brackets in words to one form.")
]


def make_metric(
    name: str,
    options: list[str] | None,
    *,
    prm: Path | None,
    punctuation: str | None,
    normalize: bool,
    references: list[str] | None,
    form: str,
) -> "Metric":
    """The metric that the options of a command describe; the last three go with trees or texts, not into it."""
    from rerank.extraction.content.texts import make_text_metric
    from rerank.extraction.content.trees import make_parseval

    if name == "parseval":
        kind, others = "text metrics", {"--reference": bool(references), "--form": form != "lines"}
    else:
        kind = "parseval"
        others = {"--prm": prm is not None, "--punctuation": punctuation is not None, "--normalize": normalize}
    for option in (option for option, given in others.items() if given):
        raise RecipeError(f"{option} is for {kind}, not for {name}")
    settings = parsed_options(options or []) | {"name": name}
    if name == "parseval":
        given = {"prm": str(prm) if prm else None, "punctuation": punctuation}
        return make_parseval(settings | {key: value for key, value in given.items() if value is not None})
    return make_text_metric(settings)


@contextmanager
def of_trees(*files: str) -> Iterator[None]:
    """Within the block, an error in one of the ``files``, which should hold trees, says what to do with texts."""
    from rerank.readers.detection import holds_texts

    try:
        yield
    except DataError as error:
        if error.path not in files or not holds_texts(error.path):
            raise
        message = f"{error.message}; for texts, name their measure, as --metric bleu"
        raise DataError(message, path=error.path, line=error.line, list_id=error.list_id) from None


def parsed_options(options: list[str]) -> dict[str, Any]:
    """``NAME=VALUE`` options; values are YAML."""
    from rerank.storage.bounded_yaml import yaml_value

    found = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise RecipeError(f"found --option {option!r}, expected NAME=VALUE")
        found[key.strip()] = yaml_value(value, f"--option {option!r}")
    return found
