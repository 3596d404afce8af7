"""Commands that write a model's weights as text, and read them back: export and import."""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from rerank.base.errors import DataError, ModelError, RecipeError
from rerank.cli.answer import show, shown_as_json
from rerank.cli.application import ModelPlace, OutputFile, Predictor, command

log = logging.getLogger("rerank")


@command()
def export(
    model: ModelPlace,
    output: OutputFile = "-",
    form: Annotated[
        Literal["text", "moses"],
        typer.Option("--format", help="All weights, or the file of sparse weights that Moses reads."),
    ] = "text",
    predictor: Predictor = None,
    top: Annotated[int | None, typer.Option(min=0, help="Only this many features, the strongest.")] = None,
    sort: Annotated[
        Literal["weight", "name"], typer.Option(help="By |weight|, the largest first, or by name.")
    ] = "weight",
) -> None:
    """The weights of a model as text: one name and weight per line; with --json, an object that holds these."""
    from rerank.models.model import Model, model_files
    from rerank.models.weights_text import moses_lines, weight_lines
    from rerank.readers.streams import open_output
    from rerank.storage.outputs import check_apart
    from rerank.storage.strict_json import as_json

    if form == "moses" and shown_as_json():
        raise RecipeError("--format moses is no JSON: leave out --json")
    if form == "moses" and output.endswith((".gz", ".bz2", ".xz", ".zst")):
        raise RecipeError(f"Moses does not read compressed weights: write to {output.rpartition('.')[0]}")
    check_apart([output], model_files(model))
    loaded = Model.load(model, trust=True)  # nothing that it names is imported for this
    decision, asked = loaded.decision, predictor
    predictor = asked or decision.ranked_by
    try:
        weights, left_out = loaded.weights_of(predictor), Counter[str]()
    except ModelError as error:
        raise ModelError(error.message, path=str(model)) from None
    lines: Iterable[str]
    if form == "moses":
        lines = moses_lines(loaded.table, weights, left_out, top=top)
    else:
        lines = weight_lines(loaded.table, weights, top=top, order=sort)
    with open_output(output) as stream:
        if shown_as_json():
            named = {name: float(weight) for name, weight in map(str.split, lines)}
            stream.write(f"{as_json({'predictor': predictor, 'weights': named}, indent=2)}\n".encode())
        else:
            for line in lines:
                stream.write(line.encode("utf-8", "surrogateescape") + b"\n")
    log.info("weights of the predictor %s", predictor)
    if asked is None and decision.predictor != predictor:
        log.warning(
            "the model decodes lists by %s: its choices may differ from the best candidates by these weights",
            decision.predictor,
        )
    for template, count in sorted(left_out.items()):
        log.warning("%s: Moses cannot hold its %s weights", template, f"{count:,}")


@command("import")
def import_weights(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Weights as `rerank export` writes them; - for stdin.")],
    like: Annotated[str, typer.Option(metavar="MODEL", help="The model with the same features.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the new model goes.")],
) -> None:
    """A model with the weights of a text file, and everything else from another model.

    Features that the file does not name weigh 0. Last and average of the new model are the same; it has no votes, and
    no state to continue training from.
    """
    from rerank.models.model import Model
    from rerank.models.provenance import imported
    from rerank.models.weights_text import read_weights
    from rerank.readers.streams import stream_name

    if output.exists():
        raise DataError("already exists; name a new directory", path=str(output))
    model = Model.load(like, trust=True)  # nothing that it names is imported for this
    imported_weights = read_weights(file, model.table)
    weights = dict.fromkeys(("last", "average"), imported_weights.weights)
    about = imported(model.about, stream_name(file), imported_weights.sha256)
    replace(model, about=about, weights=weights, state={}, votes={}, brackets={}).save(output)
    log.info("%s weights, the others are 0", f"{imported_weights.features:,}")
    show(model=output, weights=imported_weights.features)
