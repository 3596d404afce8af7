"""Commands that look into models: inspect and explain."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
import yaml
from rich.table import Table as RichTable

from rerank.base.errors import DataError, RecipeError
from rerank.base.escaping import plain
from rerank.cli.application import ListReader, PathsCommand, Predictor, app, out
from rerank.extraction.content.base import make_reader
from rerank.metrics.oracle import oracle as best_gain
from rerank.models.inspection import ablate as ablation
from rerank.models.inspection import find_features, part_sizes, provenance_rows, shares
from rerank.models.model import Model
from rerank.models.scorer import Opened, Scorer, rank
from rerank.readers.base import BadList, Reader, SkipCount
from rerank.readers.streams import stream_name
from rerank.runs.corpora import dev_corpus

MANY = 10_000  # ids that are compared with an unknown one
ModelDirectory = Annotated[Path, typer.Argument(metavar="MODEL", help="A model directory.")]


@app.command()
def inspect(
    model: ModelDirectory,
    top: Annotated[int, typer.Option(min=0, help="How many features of every template to show.")] = 3,
    feature: Annotated[
        str | None, typer.Option(help="Only features whose name contains this text.", show_default=False)
    ] = None,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="The dev score without each template (its weights set to zero).")
    ] = False,
    provenance: Annotated[
        bool, typer.Option("--provenance", help="Where the model comes from: files, settings, versions, sizes.")
    ] = False,
    predictor: Predictor = "average",
) -> None:
    """The strongest weights of a model, and the share of each template."""
    if provenance:
        _print_provenance(Model.load(model))
        return
    if predictor == "voted":
        raise RecipeError("the voted predictor has no weights of its own; inspect average or last")
    loaded = Model.load(model)
    weights = loaded.weights_of(predictor)
    if feature is not None:
        table = RichTable("feature", "weight")
        for name, weight in find_features(loaded, predictor, feature):
            table.add_row(plain(name), f"{weight:+.5g}")
        out.print(table)
        return
    counts = loaded.table.about
    nonzero = np.count_nonzero(weights.w)
    out.print(
        f"{plain(str(loaded.about.get('learner', '')))}: {nonzero:,} nonzero of {loaded.table.width:,} weights, "
        f"base score × {weights.base:.4g}; features seen {counts.get('seen', 0):,}, kept {counts.get('kept', 0):,}"
    )
    _print_shares(loaded, model, predictor, top, ablate)


def _print_provenance(model: Model) -> None:
    for name, value in provenance_rows(model):
        out.print(plain(f"{name}: {value}"))
    table = RichTable("part", "arrays", "bytes")
    for entry in part_sizes(model):
        table.add_row(entry.part, str(entry.arrays), f"{entry.bytes:,}")
    out.print(table)
    out.print(yaml.safe_dump(model.settings, sort_keys=False, allow_unicode=True))


def _print_shares(model: Model, directory: Path, predictor: str, top: int, ablate: bool) -> None:
    without: dict[str, list[str]] = {}
    heads = ["template", "columns", "nonzero", "share"]
    if ablate:
        corpus, metric = dev_corpus(model, directory.parent)
        whole, scores = ablation(model, predictor, corpus, metric)
        without = {name: [metric.text(score), metric.signed(whole - score)] for name, score in scores.items()}
        heads += ["dev without", "lost"]
        out.print(f"dev {metric.primary}: {metric.text(whole)} ({metric.signature})")
    table = RichTable(*heads)
    entries = shares(model, predictor, top)
    for entry in entries:
        cells = [plain(entry.template), f"{entry.columns:,}", f"{entry.nonzero:,}", f"{100 * entry.share:.1f} %"]
        table.add_row(*cells, *without.get(entry.template, []))
    out.print(table)
    for entry in entries if top else []:
        out.print(f"\n{plain(entry.template)}")
        for name, weight in entry.strongest:
            out.print(f"  {weight:+9.4g}  {plain(name.partition('|')[2])}")


@app.command(cls=PathsCommand)
def explain(
    model: ModelDirectory,
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="N-best lists.")],
    list_id: Annotated[str, typer.Option("--list", metavar="ID", help="The id of the list to explain.")],
    gold: Annotated[
        str | None, typer.Option(help="Gold trees or references, to compare with the oracle too.", show_default=False)
    ] = None,
    sources: Annotated[
        str | None, typer.Option(help="The inputs of lists of texts that do not hold their own.", show_default=False)
    ] = None,
    reader: ListReader = None,
    top: Annotated[int, typer.Option(min=1, help="How many features to show.")] = 15,
    predictor: Predictor = "average",
) -> None:
    """Why the winner of a list wins: features and weights of the winner against base choice and oracle."""
    scorer = Scorer(Model.load(model), predictor)
    form = scorer.reader if reader is None else make_reader(reader)
    found, best = _find(scorer, form, nbest, gold, sources, list_id)
    (ranked,) = list(scorer.rank([found]))
    if isinstance(ranked, BadList) or not len(found.nbest):
        raise DataError("the list has no candidates", path=nbest, list_id=list_id)
    winner = int(ranked.order[0])
    base = int(rank(found.nbest.base, found.nbest.base)[0])
    places = [("winner", winner), ("base choice", base)] + ([("oracle", best)] if best >= 0 else [])
    table = RichTable("", "candidate", "score", "base score", "text")
    for name, y in places:
        text = found.nbest.texts[y].decode("utf-8", "replace")
        table.add_row(name, str(y + 1), f"{ranked.scores[y]:.4f}", f"{found.nbest.base[y]:.4f}", plain(text))
    out.print(table)
    for name, other in places[1:]:
        if other == winner:
            out.print(f"the winner is the {name}")
            continue
        parts = scorer.explain(found, winner, other)
        table = RichTable("feature", "weight", "winner", name, "contribution", title=f"winner against {name}")
        for part in parts[:top]:
            table.add_row(
                plain(part.feature), f"{part.weight:+.4g}", f"{part.value:g}", f"{part.other:g}", f"{part.amount:+.4f}"
            )
        rest = parts[top:]
        if rest:
            table.add_row(f"{len(rest)} more", "", "", "", f"{sum(part.amount for part in rest):+.4f}")
        table.add_row("all", "", "", "", f"{sum(part.amount for part in parts):+.4f}")
        out.print(table)


def _find(
    scorer: Scorer, reader: Reader, nbest: str, gold: str | None, sources: str | None, list_id: str
) -> tuple[Opened, int]:
    """The list called ``list_id``, and its oracle (-1 without references)."""
    content, ids = scorer.content, list[str]()
    if gold is None:
        for item in scorer.read(reader, nbest, SkipCount("skip"), sources):
            ids.append(item.id if isinstance(item, BadList) else item.nbest.id)
            if ids[-1] == list_id:
                if isinstance(item, BadList):
                    raise DataError(f"the list cannot be used: {item}")
                return item, -1
        raise _no_list(list_id, ids, nbest)
    data = scorer.recipe.data.of_files(nbest, gold, sources).model_copy(update={"reader": reader})
    for raw in content.read(data, ""):
        ids.append(raw.nbest.id)
        if ids[-1] == list_id:
            count = SkipCount("skip")
            pair = content.pair(raw, count)
            if pair is None:
                raise DataError(f"the list cannot be used: {next(iter(count.first.values()))}")
            own, stats = content.stats(*pair)
            gain = content.metric.gain(stats, np.broadcast_to(own, (len(pair.nbest), own.size)))
            best = int(best_gain(np.array([0, len(pair.nbest)]), gain, pair.nbest.base)[0])
            return scorer.opened(pair), best
    raise _no_list(list_id, ids, nbest)


def _no_list(list_id: str, ids: list[str], path: str) -> DataError:
    """What to say where no list has an id."""
    near = difflib.get_close_matches(list_id, ids[:MANY]) or [*ids[:3], *ids[3:][-1:]]
    named = f"; it has {len(ids):,}, such as {', '.join(map(repr, near))}" if ids else ": it holds none"
    return DataError(f"no usable list {list_id!r} in the file{named}", path=stream_name(path))
