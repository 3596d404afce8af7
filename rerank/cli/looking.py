"""Commands that look: what a file of lists is taken for, and a recipe for it; the parts that a recipe may name; what is
in models, and their weights as text."""

import dataclasses
import difflib
import logging
import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from rerank.base.encoding import plain
from rerank.base.errors import DataError, ModelError, RecipeError
from rerank.base.registry import Registry
from rerank.cli import application as cli

if TYPE_CHECKING:
    from rerank.extraction.content import Pair
    from rerank.models.scorer import Contribution, Scorer
    from rerank.readers.reader import Reader

MAX_VOTERS = 12  # candidates that are shown of those who have a bracket
OPEN_PROBABILITIES = 0.05, 0.9995  # probabilities of brackets that are shown: the others are hardly in question
MAX_IDS = 10_000  # ids that are compared with an unknown one
log = logging.getLogger("rerank")
SHOWN_LINES = 5  # lines of a file that is there


@cli.command("inspect", "Look", "rerank inspect runs/quickstart/model --top 5", seldom="provenance")
def inspect(
    model: cli.ModelPlace,
    top: Annotated[int, typer.Option(min=0, help="Features to show of every template.")] = 3,
    feature: Annotated[str | None, typer.Option(help="Only features whose name contains this text.")] = None,
    provenance: Annotated[
        bool, typer.Option("--provenance", help="Show the origin of the model: files, settings, versions.")
    ] = False,
    predictor: cli.Predictor = None,
) -> None:
    """Show the strongest weights of a model, and the share of each template."""
    from rerank.models.model import Model
    from rerank.models.weights import find_features, shares
    from rerank.runs.report.table import TextTable
    from rerank.storage.documents import as_yaml

    model_ = Model.load(model, trust=True)  # nothing that it names is imported for this
    if provenance:
        about = {key: value for key, value in model_.about.items() if key != "columns"}  # pages of quantiles
        entries = {"provenance": about, "table": model_.table.about, "settings": model_.settings}
        return cli.show(as_yaml(entries), **entries)
    predictor = predictor or model_.decision.ranked_by
    if predictor == "voted":
        raise RecipeError("the voted predictor has no weights of its own; inspect average or last")
    weights, counts = model_.weights_of(predictor, linear=False), model_.table.about
    if feature is not None:
        features = find_features(model_, predictor, feature)
        rows = [[name, f"{weight:+.5g}"] for name, weight in features]
        return cli.show(TextTable("", ["feature", "weight"], rows), features=dict(features))
    learner, nonzero = str(model_.about.get("learner", "")), int((weights.strength != 0).sum())
    seen_count, kept_count = counts.get("seen", 0), counts.get("kept", 0)
    cli.show(
        f"{plain(learner)}, {predictor}: {nonzero:,} nonzero of {model_.table.width:,} weights, "
        f"base score × {weights.base:.4g}; features seen {seen_count:,}, kept {kept_count:,}",
        learner=learner, predictor=predictor, nonzero=nonzero, columns=model_.table.width, base=weights.base,
        seen=seen_count, kept=kept_count,
    )  # fmt: skip
    templates, rows = shares(model_, predictor, top), []
    for each in templates:
        sizes = f"{each['columns']:,}", f"{each['nonzero']:,}", f"{100 * each['share']:.1f} %"
        rows.append([each["template"], *sizes])
    cli.show(TextTable("", ["template", "columns", "nonzero", "share"], rows), templates=templates)
    for each in templates if top else []:
        lines = (f"  {one['weight']:+9.4g}  {plain(one['feature'].partition('|')[2])}" for one in each["strongest"])
        cli.show(f"\n{plain(each['template'])}", *lines)


@cli.command("explain", "Look", "rerank explain runs/asr/model asr/dev --list dev-1")
def explain(
    model: cli.ModelPlace,
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="N-best lists.")],
    list_id: Annotated[str, typer.Option("--list", metavar="ID", help="The id of the list to explain.")],
    gold: Annotated[
        str | None, typer.Option(metavar="FILE", help="Gold trees or references, to compare with the oracle too.")
    ] = None,
    sources: Annotated[
        str | None, typer.Option(help="The inputs of lists of texts that do not hold their own.")
    ] = None,
    reader: cli.ListReader = None,
    trust: cli.Trust = False,
    top: Annotated[int, typer.Option(min=1, help="Features to show.")] = 15,
    predictor: cli.Predictor = None,
) -> None:
    """Show by which features and weights a candidate wins its list.

    The winner is compared with the base choice and, given --gold, with the oracle.
    """
    from rerank.models.model import Model
    from rerank.models.scorer import Ranked, Scorer, rank
    from rerank.readers.reader import make_reader
    from rerank.runs.report.table import TextTable

    scorer = Scorer(Model.load(model, trust), predictor)
    form = scorer.reader if reader is None else make_reader(reader)
    item, best = _find(scorer, form, nbest, gold, sources, list_id)
    (ranking,) = list(scorer.rank([item]))
    if not isinstance(ranking, Ranked) or not len(item.nbest):
        raise DataError("the list has no candidates", path=nbest, list_id=list_id)
    winner = int(ranking.order[0])
    base = int(rank(item.nbest.base, item.nbest.base)[0])
    choices = [("winner", winner), ("base choice", base)] + ([("oracle", best)] if best >= 0 else [])
    rows, texts, candidates = [], [], list[dict[str, Any]]()
    for name, y in choices:
        text = item.nbest.original(y).decode("utf-8", "replace")
        score, base_score = float(ranking.scores[y]), float(item.nbest.base[y])
        rows.append([name, str(y + 1), f"{score:.4f}", f"{base_score:.4f}"])
        texts.append(f"{name}: {plain(text)}")
        candidates.append({"name": name, "candidate": y + 1, "score": score, "base_score": base_score, "text": text})
    table = TextTable("", ["", "candidate", "score", "base score"], rows)
    cli.show(table, *texts, list=list_id, candidates=candidates)
    _show_answer(scorer, item)
    against = dict[str, Any]()
    for name, other in choices[1:]:
        if other == winner:
            cli.show(f"the winner is the {name}")
        else:
            against[name] = _show_parts(name, scorer.explain(item, winner, other), top)
    cli.show(against=against)


def _show_answer(scorer: "Scorer", item: "Pair") -> None:
    """Show what the model decodes a list to and, for a fused tree, which candidates have its brackets."""
    from rerank.runs.report.table import TextTable

    how, use = scorer.how, scorer.predictor
    cli.show(f"predictor {use}", predictor=use)
    if how is None:
        return
    answer = scorer.answer(item, how)
    of = "a tree of its own" if answer.place is None else f"candidate {answer.place + 1}"
    cli.show(
        f"decoded by {use}: {of}", plain(answer.text), decoded={"by": use, "place": answer.place, "text": answer.text}
    )
    if not answer.votes:
        return
    rows = []
    for vote in (vote for vote in answer.votes if OPEN_PROBABILITIES[0] <= vote.weight < OPEN_PROBABILITIES[1]):
        voters = [str(y + 1) for y in vote.candidates]
        if voters[MAX_VOTERS:]:
            voters[MAX_VOTERS - 1 :] = [f"{voters[MAX_VOTERS - 1]} ..."]
        in_answer, words = "yes" if vote.weight > how.threshold else "", f"{vote.start + 1} to {vote.end}"
        rows.append([vote.label, words, ", ".join(voters), in_answer, f"{vote.weight:.3f}"])
    head = "bracket", "words", "candidates that have it", "in the answer", "probability"
    cli.show(
        TextTable("brackets in question", head, rows, texts=4), brackets=[vote.as_object() for vote in answer.votes]
    )


def _show_parts(name: str, parts: "list[Contribution]", top: int) -> dict[str, Any]:
    """Show by what the winner is ahead of the candidate called ``name``; returns the same as values."""
    from rerank.runs.report.table import TextTable

    rows = [
        [part.feature, f"{part.weight:+.4g}", f"{part.value:g}", f"{part.other:g}", f"{part.amount:+.4f}"]
        for part in parts[:top]
    ]
    rest, whole = sum(part.amount for part in parts[top:]), sum(part.amount for part in parts)
    if parts[top:]:
        rows.append([f"{len(parts[top:])} more", "", "", "", f"{rest:+.4f}"])
    rows.append(["all", "", "", "", f"{whole:+.4f}"])
    head = "feature", "weight", "winner", name, "contribution"
    cli.show(TextTable(f"winner against {name}", head, rows))
    features = [{**part._asdict(), "amount": part.amount} for part in parts[:top]]
    return {"features": features, "more": len(parts[top:]), "amount_of_more": rest, "amount": whole}


def _find(
    scorer: "Scorer", reader: "Reader", nbest: str, gold: str | None, sources: str | None, list_id: str
) -> "tuple[Pair, int]":
    """The list called ``list_id``, and its oracle (-1 without references)."""
    from rerank.extraction.content import Pair
    from rerank.metrics.metric import measured_corpus, oracles
    from rerank.readers.reader import SkipCount
    from rerank.storage.streams import stream_name

    content, count, ids = scorer.content, SkipCount("skip"), list[str]()
    if gold is None:
        items: Iterable[Any] = scorer.read(reader, nbest, SkipCount("skip"), sources)
    else:
        data = scorer.recipe.data.of_files(nbest, gold, sources).model_copy(update={"reader": reader})
        items = content.read(data, "")
    for item in items:
        ids.append(item.nbest.id if isinstance(item, Pair) else item.id)
        if ids[-1] == list_id:
            break
    else:
        near = difflib.get_close_matches(list_id, ids[:MAX_IDS]) or [*ids[:3], *ids[3:][-1:]]
        hint = f"; it has {len(ids):,}, such as {', '.join(map(repr, near))}" if ids else ": it holds none"
        raise DataError(f"no usable list {list_id!r} in the file{hint}", path=stream_name(nbest))
    pair = item if gold is None else content.pair(item, count)
    if not isinstance(pair, Pair):
        raise DataError(f"the list cannot be used: {next(iter(count.first.values()), pair)}")
    if gold is None:
        return pair, -1
    reference, stats = content.stats(*pair)
    corpus = measured_corpus([(pair.nbest.first, pair.nbest.base, stats, reference[None])], content.metric)
    return pair, int(oracles(corpus)[0])


@cli.command("export", "Use", "rerank export runs/quickstart/model --output weights.txt", as_object=False)
def export(
    model: cli.ModelPlace,
    output: cli.OutputFile = "-",
    form: Annotated[
        Literal["text", "moses"],
        typer.Option("--format", help="All weights, or the file of sparse weights that Moses reads."),
    ] = "text",
    predictor: cli.Predictor = None,
    top: Annotated[int | None, typer.Option(min=0, help="Only this many features, the strongest.")] = None,
) -> None:
    """Write the weights of a model as text, one name and weight per line, the strongest first."""
    from rerank.models.model import Model, model_files
    from rerank.models.weights import moses_lines, weight_lines
    from rerank.storage.files import open_output
    from rerank.storage.outputs import check_apart

    if form == "moses" and output.endswith((".gz", ".bz2", ".xz", ".zst")):
        raise RecipeError(f"Moses does not read compressed weights: write to {output.rpartition('.')[0]}")
    check_apart([output], model_files(model))
    model_ = Model.load(model, trust=True)  # nothing that it names is imported for this
    decision, option = model_.decision, predictor
    predictor = option or decision.ranked_by
    try:
        weights = model_.weights_of(predictor)
    except ModelError as error:
        raise ModelError(error.message, path=str(model)) from None
    table, left_out = model_.table, Counter[str]()
    moses = form == "moses"
    lines = moses_lines(table, weights, left_out, top=top) if moses else weight_lines(table, weights, top=top)
    with open_output(output) as stream:
        for line in lines:
            stream.write(line.encode("utf-8", "surrogateescape") + b"\n")
    log.info("weights of the predictor %s", predictor)
    for template, count in sorted(left_out.items()):
        log.warning("%s: Moses cannot hold its %s weights", template, f"{count:,}")
    if option is None and decision.predictor != predictor:
        log.warning(
            "the model decodes lists by %s: its choices may differ from the best candidates by these weights",
            decision.predictor,
        )


@cli.command("import", "Use", "rerank import weights.txt --like runs/quickstart/model --output mine", as_object=False)
def import_weights(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Weights as `rerank export` writes them; - for stdin.")],
    like: Annotated[str, typer.Option(metavar="MODEL", help="The model with the same features.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Directory of the new model.")],
) -> None:
    """Make a model with the weights of a text file, and everything else from another model.

    Features that the file does not name weigh 0. Last and average of the new model are the same; it has no votes, and
    no state to continue training from.
    """
    from rerank.models.model import Model
    from rerank.models.provenance import imported_provenance
    from rerank.models.weights import read_weights
    from rerank.storage.streams import stream_name

    if output.exists():
        raise DataError("already exists; name a new directory", path=str(output))
    model = Model.load(like, trust=True)  # nothing that it names is imported for this
    imported_weights = read_weights(file, model.table)
    weights = dict.fromkeys(("last", "average"), imported_weights.weights)
    about = imported_provenance(model.about, stream_name(file), imported_weights.sha256)
    dataclasses.replace(model, about=about, weights=weights, state={}, votes={}, brackets={}).save(output)
    log.info("%s weights, the others are 0", f"{imported_weights.features:,}")


@cli.command("look", "Look", "rerank look llm/test")
def look(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Lists, in any format.")],
    references: cli.ListReferences = None,
    *,
    reading: cli.ReadOptions,
) -> None:
    """Say what a file is taken for: candidates, base score, what is right, columns.

    It is what every command says before its results, with the keys that are not used; --roles overrules it.
    """
    from rerank.extraction.list_checks import doubts_of_lists
    from rerank.readers.detection import ACCOUNT_LISTS, Account, with_candidates
    from rerank.readers.lists import one_by_one
    from rerank.readers.memory.reading import ListFile, read
    from rerank.readers.reader import SkipCount, count_usable, filter_usable

    lists = read(file, reading.reader, references=references or None, roles=reading.roles)
    count = SkipCount("skip")
    assert isinstance(lists, ListFile)
    first = list(with_candidates(filter_usable(islice(one_by_one(lists.blocks()), ACCOUNT_LISTS), count_usable, count)))
    if (account := Account.of(file, first, str(lists.settings["name"]))) is None:
        list(lists)  # says why no list is good, if there is one
        raise DataError("no list with candidates", path=file)
    cli.show(*account.lines, account=account.as_data())
    count.warn()
    doubts = doubts_of_lists(first, roles=lists.settings.get("roles"))
    cli.show(*doubts, doubts=doubts)


@cli.command("new", "Start", "rerank new lists/train.jsonl lists/dev.jsonl lists/test.jsonl")
def new(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Lists: of training, dev and tests.")],
    *,
    references: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="References, or gold trees, of each file in turn; judgements (qrels) of all."
        ),
    ] = None,
    sources: Annotated[list[str] | None, typer.Option(metavar="FILE", help="Inputs of each file in turn.")] = None,
    reader: cli.ListReader = None,
    roles: cli.Roles = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="Metric of the recipe.", show_default="as the lists suggest")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Recipe to write; NAME.yaml.")] = None,
) -> None:
    """Look at your files of lists, and write a recipe with comments for them.

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
    path = output if output is not None else Path(f"{name}.yaml")
    recipe = new_recipe(name, files, references or [], sources or [], reader, roles, metric)
    if path.exists():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        missing = [line for line in lines if line.strip() and line not in recipe.text.splitlines()]
        what = f"and would lose: {' / '.join(missing[:SHOWN_LINES])}" if missing else "the same that would be written"
        raise RecipeError(
            f"there is already a file, {what}; choose another with --output, or remove it", path=str(path)
        )
    write_text(path, recipe.text)
    model, arguments = shlex.quote(f"runs/{name}/model"), shlex.join(recipe.arguments)
    tries = [text.replace("MODEL", model).replace("FILE", arguments) for text in task_named(recipe.task).tries]
    commands = [f"rerank run {shlex.quote(str(path))}", *tries]
    later = [f"  {line}" for line in commands[1:]]
    cli.show(
        f"{path}: {recipe.description}",
        "later:",
        *later,
        f"now: {commands[0]}  # {recipe.shows}",
        recipe=str(path),
        next=commands,
    )


Kind = Literal["readers", "templates", "metrics", "learners", "losses", "pairs", "recipes"]
REGISTRIES = {
    "readers": "reader", "templates": "template", "metrics": "metric", "learners": "learner", "losses": "loss",
    "pairs": "pair source",
}  # fmt: skip
PAPERS, LINE_WIDTH = "papers", 120


@cli.command("list", "Look", "rerank list recipes")
def list_(
    kind: Annotated[Kind | None, typer.Argument(help="Kind of parts; everything by default.")] = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="All learners, not only those that docs/choosing.md recommends; and settings.")
    ] = False,
) -> None:
    """List the parts that a recipe can name; with --all or --json, with their settings."""
    from rerank.recipes.loading import uses

    advice = Registry[str]("recommended")  # learners that docs/choosing.md names
    for registry in [kind] if kind else get_args(Kind):
        if kind is None and not cli.shown_as_json():
            cli.out.print(registry, style="bold")
        parts = _parts(registry)
        selection = [part for part in parts if every or registry != "learners" or part["name"] in advice]
        lines = [_line(part, every) for part in selection]
        if registry == "recipes":  # in groups, those of papers last
            of_use = {use: [f"  {_line(part)}" for part in parts if part["use"] == use] for use in (*uses(), PAPERS)}
            lines = [line for use, own in of_use.items() if own for line in (f"{use}:", *own)]
        cli.show(*lines, **{registry: parts})
        if len(selection) < len(parts):
            cli.show(f"and {len(parts) - len(selection)} more: rerank list learners --all")
        if registry == "templates":
            from rerank.features.template import SETS

            sets = [{"name": name, "templates": list(members)} for name, members in SETS.items()]
            cli.show(*(f"set {name}: {len(members)} templates" for name, members in SETS.items()), sets=sets)
        if registry == "readers":
            note = "every reader: scores='score', or 'cost' where lower is better"
            cli.show(note, note=note)


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
    parts = list[dict[str, Any]]()
    for name, part in Registry[type](REGISTRIES[kind]):
        settings = {
            f.name: None if f.default is dataclasses.MISSING else repr(f.default) for f in dataclasses.fields(part)
        }
        about = " ".join((part.__doc__ or "").strip().split("\n\n")[0].split()).replace("``", "")
        parts.append({"name": name, "settings": settings, "about": about})
    return parts


def _line(part: dict[str, Any], full: bool = False) -> str:
    """A part and what it is in one line, its first sentence; ``full``: all of it, with settings and their defaults."""
    settings = [key if default is None else f"{key}={default}" for key, default in part.get("settings", {}).items()]
    name = f"{part['name']}({', '.join(settings)})" if full and "settings" in part else part["name"]
    about = part.get("about", "")
    about = about if full else re.split(r"(?<=[\w)]\.) (?=[A-Z])", about)[0]
    line = "  ".join(filter(None, [name, about]))
    return line if full else textwrap.shorten(line, LINE_WIDTH, placeholder=" ...").replace(f"{name} ", f"{name}  ", 1)
