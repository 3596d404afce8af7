"""The options of commands that measure, and the metric that they describe."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rerank.base.errors import DataError, RecipeError
from rerank.cli.application import allow_local_imports

if TYPE_CHECKING:
    from rerank.metrics.metric import Metric

TEXTS = "bleu", "chrf", "wer", "cer", "match"
ORDERS = "ndcg", "map", "mrr", "recall", "precision", "err"
MEASURES = "parseval", *TEXTS, "gain", "counts", *ORDERS


def _known(metric: str | None) -> str | None:
    """The name of a measure, with its cut-off if it has one, the import path of one, or settings."""
    from rerank.metrics.metric import metrics

    if metric is not None and not re.search("[:{]", metric) and metric.partition("@")[0] not in metrics.names():
        raise typer.BadParameter(f"{metric!r} is not one of {', '.join(MEASURES)}")
    return allow_local_imports(metric)


Measured = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help=f"The measure: parseval, {', '.join(TEXTS)}; or, of columns of the lists, gain, counts, "
        f"{', '.join(ORDERS)}, also with a cut-off, ndcg@10; or settings, {{name: bleu, tokenize: 13a}}, or your "
        "own, module:Class.",
        show_default="parseval; rerank oracle: the gain of texts",
        callback=_known,
    ),
]
Compared = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="What is compared: wer, bleu, ndcg@10, ..., or settings, {name: gain, column: x}.",
        show_default="gain",
        callback=allow_local_imports,
    ),
]


@dataclass
class Measuring:
    """A metric, and the references that it compares with."""

    metric: Measured = None
    references: Annotated[
        list[str] | None, typer.Option("--reference", metavar="FILE", help="Another file of references of texts.")
    ] = None
    form: Annotated[
        Literal["auto", "lines", "tab", "id"],
        typer.Option(
            help="References of texts: one on each line, several separated by tabs, or one with its id; auto: lines "
            "that may have ids."
        ),
    ] = "auto"
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Trees: bring escapes, quotes and brackets in words to one form.")
    ] = False

    def settings(self, usual: str = "parseval") -> dict[str, Any]:
        """The settings of the metric, by default the ``usual`` one; options that are of no use for it are refused."""
        settings = metric_settings(self.metric or usual)
        parses = settings["name"] == "parseval"
        of_texts = {"--reference": bool(self.references), "--form": self.form != "auto"}
        for option in (
            option for option, given in (of_texts if parses else {"--normalize": self.normalize}).items() if given
        ):
            raise RecipeError(f"{option} is for {'text metrics' if parses else 'parseval'}, not for {settings['name']}")
        return settings

    def make(self) -> "Metric":
        """The metric, also one that is reported and no more."""
        from rerank.extraction.texts import make_text_metric
        from rerank.extraction.trees import make_parseval

        settings = self.settings()
        return make_parseval(settings) if settings["name"] == "parseval" else make_text_metric(settings, reported=True)


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


def metric_settings(metric: str) -> dict[str, Any]:
    """The settings of a metric, of its name or YAML."""
    from rerank.recipes.settings import named
    from rerank.storage.documents import yaml_options

    settings = named(yaml_options([f"metric={metric}"], "--metric NAME")["metric"])
    if not isinstance(settings, dict) or "name" not in settings:
        message = f"found {metric!r}; expected a name, or settings, as {{name: gain, column: x}}"
        raise RecipeError(message, key="--metric")
    return settings
