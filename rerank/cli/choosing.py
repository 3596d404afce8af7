"""Commands that choose from lists: vote and weigh, which compare ways to, and rank, by a model or base scores alone."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rerank.base.encoding import amount
from rerank.base.errors import DataError, RecipeError
from rerank.base.progress import track
from rerank.cli import application as cli
from rerank.cli.evaluating import MetricName, metric_settings, reader_of

if TYPE_CHECKING:
    from rerank.extraction.content import Pair
    from rerank.models.model import Model
    from rerank.models.scorer import Ranked, Scorer
    from rerank.readers.problems import Problem
    from rerank.runs.vote import SourceTable

    Lists = Iterator[Pair | Problem]

log = logging.getLogger("rerank")
BASE = "base"  # in place of a model
SAMPLE_LISTS = 1000  # lists that show how scores deviate, if nothing was tuned; of a file, ranked before one is written


@cli.command("rank", "Use", "rerank rank runs/asr/model asr/test --json", seldom="decode")
def rank_(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model directory; base to decode base scores.")],
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="Lists to rank; - for standard input.")] = "-",
    output: cli.OutputFile = "-",
    *,
    reading: cli.ListOptions,
    n_best: Annotated[
        int | None,
        typer.Option(
            min=1, help="Write this many candidates per list, in the input's format, with new and old scores."
        ),
    ] = None,
    predictor: cli.Predictor = None,
    decode: Annotated[
        str | None,
        typer.Option(
            metavar="SETTINGS",
            help="Settings of mbr and fuse in place of the tuned ones, as {sharpness: 2, threshold: 0.6}: "
            "sharpness, deviation, threshold, most, gains.",
            callback=lambda settings: cli.allow_local_imports(settings) if "gains" in (settings or "") else settings,
        ),
    ] = None,
    metric: MetricName = None,
    trust: cli.Trust = False,
    sources: Annotated[
        str | None, typer.Option(help="The inputs of lists of texts that do not hold their own, one per line.")
    ] = None,
) -> None:
    """Choose the best candidate of each list with a model, one per line.

    The lists are in the format of those that the model was trained on, unless --reader names another. A list without
    candidates gives an empty line and a warning; a choice with line ends is refused. --n-best gives the first
    candidates of each list. --predictor mbr takes the candidate with the greatest expected gain, fuse makes a tree of
    the brackets that are probable enough, which may be none of the candidates. Without a model (MODEL is base) --metric
    says what candidates gain.

    With --json every line is an object: the list's id, the predictor, the text (as it stands) and the place in the
    input (from 1, null for a tree that is no candidate) of the choice, and the candidates, the first or as many as
    --n-best says, with their places, texts and scores; where lists are decoded, also all probabilities, expected gains
    and brackets.
    """
    from rerank.models.model import Model
    from rerank.models.provenance import decodings_of
    from rerank.models.scorer import Scorer, write_ranked
    from rerank.readers.reader import SkipCount, make_reader
    from rerank.storage.files import open_output

    cli.check_files(nbest, sources, output, None if model == BASE else model)
    if model == BASE:
        settings = metric_settings(metric or "parseval")
        if predictor is None and decode is None:
            log.warning("--predictor base takes the best by base score; this decodes, with settings that nothing tuned")
        predictor = predictor or ("fuse" if settings["name"] == "parseval" else "mbr")
        model_ = _base_model(settings)
    else:
        if metric:
            raise RecipeError("--metric is for lists without a model; a model has its own metric")
        model_ = Model.load(model, trust)
    kind = predictor if predictor in ("mbr", "fuse") and predictor not in decodings_of(model_.about) else None
    scorer = Scorer(model_, None if kind else predictor)
    training_format = scorer.recipe.data.reader
    if model == BASE or reading.reader is not None or reading.roles is not None:
        usual = None if model == BASE else training_format
        form = make_reader(reader_of(nbest, reading.reader or usual, reading.roles, training_format["name"]))
    else:
        form = scorer.reader
    if n_best is not None and scorer.predictor in ("fuse", "learned") and not cli.shown_as_json():
        log.warning(
            "the candidates are in the order of their scores by %s; the model's own choices are trees that it fuses, "
            "which are written without --n-best", scorer.ranked_by,
        )  # fmt: skip
    count, counts = SkipCount(reading.on_bad_list), Counter[str]()
    # Lists whose lines are counted, or that go with another file's: whether one was lost shows at the end.
    with open_output(output, whole=sources is not None or any(one.bounded for one in form.every)) as stream:
        pairs = _set_decoding(scorer, kind, decode, scorer.read(form, nbest, count, sources))
        lists = _count_lists(track(scorer.rank(pairs), "rank"), counts)
        if cli.shown_as_json():
            for ranking in lists:
                stream.write(_as_object(ranking, scorer.predictor, n_best or 1))
        elif n_best is not None:
            write_ranked(stream, form, lists, n_best)
        else:
            lines = map(_best_line, lists)
            for line in chain(list(islice(lines, 0 if nbest == "-" else SAMPLE_LISTS)), lines):
                stream.write(line)
    count.warn()
    _warn(scorer, counts, "an empty line" if n_best is None else "a list without candidates")
    amounts = amount(count.lists, "list"), amount(counts["unknown"], "unknown feature")
    log.info("%s, %s, by the predictor %s", *amounts, scorer.predictor)


def _warn(scorer: "Scorer", counts: Counter[str], instead: str) -> None:
    """Say what the lists lacked; ``instead``: what is written for those without candidates."""
    if counts["empty"]:
        log.warning("%d of the %d lists had no usable candidate: %s each", counts["empty"], counts["all"], instead)
    if not counts["all"]:
        log.warning("no list in the input")
    if counts["left out"]:
        log.warning("%s without a vote: other words than the best has", amount(counts["left out"], "candidate"))
    missing = ", ".join(name for names in scorer.content.needs.values() for name in names)
    if counts["without source"] and missing:
        message = "%s came without their source, which features of %s need; see --sources"
        log.warning(message, amount(counts["without source"], "list"), missing)


def _base_model(settings: dict[str, Any]) -> "Model":
    """A model that scores candidates as their lists do, which gain by the metric of these settings."""
    import numpy as np

    from rerank.features.table import FeatureTable
    from rerank.learn.learner import Weights
    from rerank.metrics.metric import measures_orders
    from rerank.models.model import Model
    from rerank.recipes.loading import measuring_recipe

    if measures_orders(settings["name"]):
        raise RecipeError(f"{settings['name']} measures orders, and decoding gives no order", key="--metric")
    task = {"parseval": "parse", "gain": "ranking"}.get(settings["name"], "translation")
    nothing = np.zeros(0, np.uint64)
    table = FeatureTable(nothing, np.zeros(0, np.int32), np.zeros(1, np.int64), nothing, (), {}, {})
    weights = dict.fromkeys(("last", "average"), Weights(np.zeros(0), 1.0))
    return Model(measuring_recipe(task, settings).model_dump(mode="json"), {}, table, weights)


def _set_decoding(scorer: "Scorer", kind: str | None, settings: str | None, lists: "Lists") -> "Lists":
    """Set how ``scorer`` decodes: as its model was tuned to, by the untuned ``kind``, or as the settings say; returns
    the lists, some of which may have been read to see how far scores deviate from their lists' means."""
    import numpy as np
    from pydantic import ValidationError

    from rerank.models.provenance import Decoding
    from rerank.readers.problems import Problem
    from rerank.recipes.settings import first_fault
    from rerank.storage.documents import yaml_options

    named = [] if settings is None else [f"--decode={settings}"]
    settings_of_user = yaml_options(named, "--decode SETTINGS").get("--decode", {})
    if not isinstance(settings_of_user, dict):
        raise RecipeError(f"--decode: found {settings!r}; expected settings, as {{sharpness: 2}}")
    if not kind and not settings_of_user:
        return lists
    if not kind and scorer.how is None:
        raise RecipeError("--decode: nothing is decoded; say how with --predictor mbr or fuse")
    usual = {"kind": kind, "sharpness": 1.0} if kind or scorer.how is None else scorer.how.model_dump()
    if kind and "deviation" not in settings_of_user:
        sample = list(islice(lists, SAMPLE_LISTS))
        by_list = [ranked.scores for ranked in scorer.rank_by_scores(sample) if not isinstance(ranked, Problem)]
        deviations = np.concatenate([np.zeros(0), *(scores - scores.mean() for scores in by_list if scores.size)])
        deviation = float(np.sqrt(np.mean(deviations**2))) if deviations.size else 1.0
        usual["deviation"] = deviation if deviation > 0 and np.isfinite(deviation) else 1.0
        lists = chain(sample, lists)
    try:
        scorer.how = Decoding.model_validate(usual | settings_of_user)
    except ValidationError as error:
        key, message = first_fault(Decoding, error)
        raise RecipeError(f"--decode: {key[0]}: {message}") from None
    scorer.predictor = scorer.how.kind
    return lists


def _count_lists(lists: "Iterable[Ranked | Problem]", counts: Counter[str]) -> "Iterator[Ranked | Problem]":
    """Pass ``lists`` on and count them, those without candidates or source, and what the model does not know."""
    from rerank.readers.problems import Problem

    for ranking in lists:
        counts["all"] += 1
        counts["empty"] += isinstance(ranking, Problem) or not ranking.order.size
        if not isinstance(ranking, Problem):
            counts["unknown"] += ranking.unknown
            counts["left out"] += ranking.answer.left_out if ranking.answer is not None else 0
            counts["without source"] += not ranking.nbest.of_trees and ranking.nbest.source is None
        yield ranking


def _as_object(ranking: "Ranked | Problem", predictor: str, most: int) -> bytes:
    """The choice from a list, and its first candidates, as a line of JSON."""
    from rerank.readers.problems import Problem
    from rerank.storage.documents import as_json

    name = ranking.id if isinstance(ranking, Problem) else ranking.nbest.id
    line: dict[str, Any] = {"id": name, "predictor": predictor, "text": None, "place": None, "candidates": []}
    if isinstance(ranking, Problem) or not ranking.order.size:
        return f"{as_json(line)}\n".encode()
    nbest, scores, answer = ranking.nbest, ranking.scores, ranking.answer
    index = int(ranking.order[0]) if answer is None else answer.place
    candidates = [
        {"place": y + 1, "text": nbest.original(y).decode("utf-8", "surrogatepass")}
        | {"score": float(scores[y]), "base_score": float(nbest.base[y])}
        for y in ranking.order[:most].tolist()
    ]
    line |= {"text": ranking.best.decode("utf-8", "surrogatepass"), "candidates": candidates}
    line["place"] = None if index is None else index + 1
    if answer is not None:
        line["probabilities"] = answer.probabilities.tolist()
        if answer.expected is not None:
            line["expected_gains"] = answer.expected.tolist()
        if answer.votes:
            line["brackets"] = [vote.as_object() for vote in answer.votes]
    return f"{as_json(line)}\n".encode()


def _best_line(ranking: "Ranked | Problem") -> bytes:
    """The line with the choice; an empty one where there is no candidate."""
    text: bytes = getattr(ranking, "best", b"")
    if (b"\n" in text or b"\r" in text) and (nbest := getattr(ranking, "nbest", None)):
        message = "the choice has line ends, and the plain output is a line for each list; --json gives it as it stands"
        raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id)
    return text + b"\n"


@dataclass
class Comparing:
    """The options of a table of ways to choose."""

    metric: MetricName = None
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Score columns to use, comma-separated.", show_default="all")
    ] = None
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation of what is learned.")] = 5
    samples: Annotated[int, typer.Option(min=1, max=cli.MAX_SAMPLES, help="Resamples of a test of significance.")] = (
        1000
    )
    seed: cli.Seed = 1

    @property
    def how(self) -> dict[str, Any]:
        """The arguments of the function that makes the table."""
        use = self.columns.split(",") if self.columns else None
        return {"folds": self.folds, "samples": self.samples, "seed": self.seed, "use": use}


def show_table(table: "SourceTable") -> None:
    """Show ways to choose, and what else there is about them."""
    cli.show(*filter(None, [table.results.doubt]), **table.as_data())
    for part in table.tables():
        cli.show(part, *filter(None, [part.note]))


@cli.command("vote", "Start", "rerank vote sums")
def vote(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Lists with gains.")],
    *,
    reading: cli.ListOptions,
    answer: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Rule for answers in texts: boxed, last-number, letter, text, json:KEY, regex:PATTERN, math-verify.",
            show_default="what the lists say",
        ),
    ] = None,
    comparing: Comparing,
    curve: Annotated[
        Path | None, typer.Option(help="Write accuracy over the number of samples, as FILE.svg and FILE.json.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Train a model on all lists, and write it here.")] = None,
) -> None:
    """Compare ways to choose one of n samples: votes, the best by a score, learned choices.

    One table, without a recipe or a model. Learned ways are cross-validated over lists; every row is tested against
    majority vote. --save trains a model as `rerank.fit` does, by its defaults: from all numbers and texts.
    """
    if twice := next((path for path in files if files.count(path) > 1), None):
        raise typer.BadParameter(f"{twice} is named twice; its lists would count twice, leave one out")
    if save is not None and comparing.columns is not None:
        raise typer.BadParameter("--columns chooses what the table looks at; --save learns from all, leave out one")
    from rerank.extraction.list_checks import refuse_systems
    from rerank.runs.vote import table_of_votes, write_curve
    from rerank.storage.files import check_output
    from rerank.storage.streams import read_once

    for output in filter(None, (curve, save)):
        check_output(output)
    measure = None if comparing.metric is None else metric_settings(comparing.metric)
    settings: dict[str, Any] = {} if answer is None else {"answer": answer}
    lists = [reading.read(path, **settings) for path in files]
    refuse_systems(lists)
    reusable = save is None or (len(lists) == 1 and not read_once(files[0]))
    every: Any = lists if reusable else list(chain.from_iterable(lists))
    table = table_of_votes(every, measure, curve=curve is not None, **comparing.how)
    show_table(table)
    if curve is not None:
        write_curve(table, curve)
    if save is not None:
        from rerank.runs.fitting import fit

        settings |= {"metric": measure, "seed": comparing.seed, "recipe": {"name": save.name}}
        fit(every[0] if reusable else every, **settings).save(save)
        cli.show(f"{save}: a model of all lists, by the defaults of `rerank.fit`; the rows above do not measure it")


@cli.command("weigh", "Train", "rerank weigh asr/dev --metric wer")
def weigh(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Lists with scores.")],
    references: cli.ListReferences = None,
    *,
    comparing: Comparing,
    reading: cli.ListOptions,
    resamples: Annotated[
        int, typer.Option(min=2, max=cli.MAX_SAMPLES, help="Bootstrap resamples for intervals of weights.")
    ] = 20,
    restarts: Annotated[int, typer.Option(min=0, max=10_000, help="Random restarts of the search.")] = 3,
    save: Annotated[Path | None, typer.Option(help="Write a model with the weights of all lists here.")] = None,
) -> None:
    """Weigh the few scores of lists so that a metric comes out best.

    The weights are found by exact line searches, and shown with intervals and how they vary over folds. The base score,
    maxent, the weights and the best possible choice are compared by cross-validation over lists, each with the p of its
    difference from the base.
    """
    from rerank.runs.weigh import model_of_weights, table_of_weights
    from rerank.storage.streams import read_once, single_stdin

    single_stdin(file, *(references or []))
    measure = metric_settings(comparing.metric or "gain")
    lists: Any = reading.read(file, references=references or None)
    if save is not None and read_once(file):
        lists = list(lists)
    table = table_of_weights(lists, measure, resamples=resamples, restarts=restarts, **comparing.how)
    show_table(table)
    if save is not None:
        model_of_weights(lists, measure, table).save(save)
        cli.show(f"{save}: a model with the weights of the row {table.learned}", model=save)
