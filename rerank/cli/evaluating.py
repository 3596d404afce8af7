"""Commands that measure: oracle, what lists hold; evaluate, texts or trees against references; and their options."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rerank.base.encoding import amount, decoded
from rerank.base.errors import DataError, RecipeError
from rerank.base.progress import track
from rerank.cli import application as cli

if TYPE_CHECKING:
    import numpy as np

    from rerank.metrics.metric import Metric
    from rerank.metrics.parseval import Parseval
    from rerank.metrics.text import TextMetric
    from rerank.readers.reader import SkipCount

    # statistics of every system (float64 [L, K]), and of the references [L, R]
    Rows = tuple[list[np.ndarray], np.ndarray, str]

MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="The measure: parseval, bleu, chrf, wer, cer, match; or, of columns of the lists, gain, counts, ndcg, "
        "map, mrr, recall, precision, also with a cut-off, ndcg@10; or settings, {name: bleu, tokenize: 13a}, or your "
        "own, module:Class.",
        callback=cli.allow_local_imports,
    ),
]


@dataclass
class Measuring:
    """A metric, and the references that it compares with."""

    metric: MetricName = None
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
    from rerank.recipes.settings import as_settings
    from rerank.storage.documents import yaml_options

    settings = as_settings(yaml_options([f"metric={metric}"], "--metric NAME")["metric"])
    if not isinstance(settings, dict) or "name" not in settings:
        message = f"found {metric!r}; expected a name, or settings, as {{name: gain, column: x}}"
        raise RecipeError(message, key="--metric")
    return settings


def reader_of(path: str, reader: Any, roles: str | None, usual: str = "jsonl") -> dict[str, Any]:
    """The settings of the reader of a file: ``reader``, or the one that the file is recognised as."""
    from rerank.readers.detection import format_of
    from rerank.readers.reader import readers, settings_of
    from rerank.readers.texts.roles import with_roles

    return with_roles(settings_of(reader or format_of(path, readers, usual), "--reader"), roles)


@cli.command("oracle", "Look", "rerank oracle asr/test --metric wer")
def oracle(
    nbest: Annotated[str, typer.Argument(metavar="NBEST", help="N-best lists.")],
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="[REF]",
            help="References, by id or in the same order; not for a gain, nor for lists that hold their own.",
        ),
    ] = None,
    *,
    reading: cli.ListOptions,
    measuring: Measuring,
) -> None:
    """Measure lists: what the base, the best, the worst and a random choice score."""
    from rerank.extraction.kinds import content_of
    from rerank.extraction.list_checks import doubts_of_lists
    from rerank.extraction.sample import ListSampler
    from rerank.metrics.metric import list_statistics, measured_corpus
    from rerank.readers.detection import ACCOUNT_LISTS, Account, account_entry, log_account
    from rerank.readers.lists import one_by_one
    from rerank.readers.memory.reading import ListFile, read
    from rerank.readers.reader import Lists, SkipCount, format_of, make_reader, with_judgements
    from rerank.readers.trees.charniak import ParseReader
    from rerank.recipes.loading import measuring_recipe
    from rerank.runs.corpora import reference_doubts, spelling_doubt
    from rerank.storage.streams import stream_name

    path = stream_name(nbest)
    usual = "jsonl" if reference is None else "charniak" if measuring.metric in (None, "parseval") else "moses"
    judgements = [] if reference is None else [reference, *(measuring.references or [])]
    form, golds = with_judgements(reader_of(nbest, reading.reader, reading.roles, usual), judgements)
    bare = not golds and not isinstance(format_of(make_reader(form)), ParseReader)
    settings = measuring.settings("gain" if bare else "parseval")
    parses = settings["name"] == "parseval"
    if reference is None and (parses or measuring.references):
        what = "parses are measured against gold trees" if parses else "--reference names further references"
        raise DataError(f"expected NBEST REF: {what}", path=path)
    lists = read(nbest, form, references=golds, form=measuring.form, on_bad_list=reading.on_bad_list)
    if not isinstance(lists, ListFile) or (parses and not lists.trees):
        message = "these are lists of texts; for texts, name their measure, as --metric bleu; trees are measured where "
        message += "each is on a line behind its score and a tab, with a blank line behind each list (--reader trees)"
        raise DataError(message, path=path)
    data = {"normalize": measuring.normalize} if parses else {}
    content = content_of(measuring_recipe("parse" if parses else "ranking", settings, data))
    count, first = SkipCount(reading.on_bad_list), list[Lists]()
    measure, sample, every = content.metric, ListSampler(content.column_names), list[tuple[Any, ...]]()
    with of_trees(*(golds or ()) if parses else ()):
        for one in content.measure(track(one_by_one(lists.blocks(normal=measuring.normalize)), "read"), count):
            usable = one.pair.nbest
            every.append((usable.first, usable.base, one.stats, one.reference))
            sample.add(usable)
            first += [usable][: ACCOUNT_LISTS - len(first)]
    if not any(base.size for _, base, *_ in every):
        raise count.nothing(path)
    content.check(count)
    log_account(account := Account.of(path, first, metric=measure))
    amiss = doubts_of_lists(first, measure, form.get("roles"))
    cli.show(*amiss, doubts=amiss, **account_entry(account))
    statistics = list_statistics(measured_corpus(every, measure), measure)
    _show_statistics(statistics, count, measure)
    for line in reference_doubts(measure, statistics, sample.finish().lengths, spelling_doubt(amiss)):
        log.warning("%s", line)


def _show_statistics(of: dict[str, Any], count: "SkipCount", measure: "Metric") -> None:
    from rerank.metrics.parseval import Parseval
    from rerank.runs.report.table import TextTable

    keys = {"precision": "P", "recall": "R", "f1": "F", "exact_match": "exact match", "valid": "valid sentences"}
    texts = {"length_ratio": "{:.3f}".format, "valid": "{:,.0f}".format}
    if not isinstance(measure, Parseval):
        keys = {measure.primary: measure.heading} | {key: key for key in ("length_ratio",) if key in of["base"]}
    rows, first = [], [] if of["first"] == of["base"] else ["first"]
    for name in ("base", *first, "oracle", "corpus_oracle", "anti_oracle", "random"):
        report = of[name]
        rows.append([name.replace("_", " "), *(texts.get(key, measure.text)(report[key]) for key in keys)])
    counts = {"skipped": count.skipped, "skipped_candidates": count.skipped_candidates, "duplicates": count.duplicates}
    cli.show(TextTable("", ["chosen by", *keys.values()], rows), **of, **counts)
    cli.show(
        f"lists {of['lists']:,}: {of['empty']} without, {of['singletons']} with one candidate; {count.skipped} skipped",
        f"candidates {of['candidates']:,}: least {of['smallest']}, mean {of['mean']:.1f}, median {of['median']:g}, "
        f"most {of['largest']}; {count.duplicates:,} duplicates; {count.skipped_candidates} skipped",
    )
    count.warn()
    if total := sum(of["oracle_ranks"]):
        share, unique = of["oracle_ranks"][0] / total, f"{100 * of['unique_oracle']:.1f} %"
        line = f"the oracle is the base choice in {100 * share:.1f} % of lists, unique in {unique}"
        cli.show(line, oracle_is_base=share)
    cli.show(of["signature"])


COUNTS = "sentences", "refused", "skipped", "valid"
log = logging.getLogger("rerank")


@cli.command("evaluate", "Look", "rerank evaluate ours.txt references.txt theirs.txt --metric bleu")
def evaluate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="HYP REF [HYP2 ...]", help="File to evaluate, its references, and other systems to compare."
        ),
    ],
    measuring: Measuring,
    *,
    encoding: cli.Encoding = None,  # noqa: ARG001 - its callback acts
    sentences: Annotated[bool, typer.Option("--sentences", help="Also print a line for every sentence.")] = False,
) -> None:
    """Score trees or texts against references.

    Trees are bracketed, one per line or spread over lines; texts stand one per line. Other systems are tested against
    the first. An empty line in a file of one tree per line, or brackets without words, is a failed parse. Of texts also
    --metric ter, by sacrebleu.
    """
    from rerank.extraction.texts import make_text_metric
    from rerank.extraction.trees import make_parseval
    from rerank.storage.streams import single_stdin, stream_name

    if len(files) < 2:
        raise DataError("expected HYP REF [HYP2 ...]: what to evaluate, then its references")
    hypothesis, reference, *further = files
    if further and reference == "-":
        raise DataError("the references are read once for every system; name a file for them", path=stream_name("-"))
    more, normalize = measuring.references or [], measuring.normalize
    single_stdin(*files, *more)
    settings, systems = measuring.settings(), [hypothesis, *further]
    if settings["name"] == "parseval":
        measure: Any = make_parseval(settings)
        with of_trees(*files):
            rows = _evaluate_trees(measure, systems, reference, sentences, normalize)
    else:
        measure = make_text_metric(settings, reported=True)
        rows = _evaluate_texts(measure, systems, [reference, *more], measuring.form, sentences)
    if further:
        from rerank.runs.compared import Compared

        names, (stats, of_references, doubt) = shown_names(systems), rows
        rows_of = dict(zip(names, stats, strict=True))
        comparison = Compared(measure, of_references, rows_of, names[0], (), doubt=doubt)
        note = f"Δ and p: against {names[0]}."
        table = comparison.table("", note, heading=measure.heading, of="system")
        cli.show(table, table.note, compared=comparison.as_data())


def _evaluate_trees(
    measure: "Parseval", systems: list[str], reference: str, sentences: bool, normalize: bool
) -> "Rows":
    """Show the scores of files of trees; returns their statistics."""
    from rerank.data.trees import changes, no_changes
    from rerank.metrics.evaluation import evaluate as evaluate_trees
    from rerank.readers.detection import Account, account_entry, log_account
    from rerank.readers.trees.treebank import gold_sentences, read_sentences, treebank_files
    from rerank.runs.report.table import TextTable
    from rerank.storage.streams import stream_name

    results, lines = [], []
    for path in systems:
        counter = no_changes() if normalize else None
        sides = gold_sentences(treebank_files(reference)), read_sentences(path)
        gold_path, test_path = stream_name(reference), stream_name(path)
        results.append(evaluate_trees(*sides, measure, gold_path=gold_path, test_path=test_path, changed=counter))
        lines += [] if counter is None else [f"{Path(path).name}: {changes(counter)}"]
        if not len(results[-1].stats):
            raise DataError("no tree in the file", path=gold_path)
    size = amount(len(results[0].stats), "sentence")
    right = f"gold trees, {stream_name(reference)}"
    account = Account(
        f"{', '.join(map(stream_name, systems))}: trees", size, "", right=right, measure=measure.signature
    )
    log_account(account)
    cli.show(**account_entry(account))
    if sentences:
        cli.show(*results[0].table(), sentences=list(results[0].sentences()))
    for result in results:
        if result.first_error:
            errors = f"{amount(int(result.scores()['refused']), 'sentence')} in error, left out of the scores"
            log.warning("%s; the first: %s", errors, result.first_error)
    names = shown_names(systems)
    rows = list[list[str]]()
    for section in results[0].sections():
        rows.append([section, *([""] * len(results))])
        for key in results[0].sections()[section]:
            values = [result.sections()[section][key] for result in results]
            text = "{:,.0f}" if key in COUNTS else "{:.2f}" if key == "average_crossing" else "{:.2%}"
            rows.append([f"  {key}", *(text.format(value).removesuffix("%") for value in values)])
    scores = {name: result.sections() for name, result in zip(names, results, strict=True)}
    table = TextTable("", ["", *names], rows)
    cli.show(table, *lines, measure.signature, scores=scores, signature=measure.signature, changes=lines)
    return [result.stats for result in results], results[0].reference, ""


def _evaluate_texts(
    measure: "TextMetric", systems: list[str], references: list[str], form: str, sentences: bool
) -> "Rows":
    """Show the scores of files of texts, one sentence per line; returns their statistics."""
    import numpy as np

    from rerank.extraction.list_checks import doubts_of_references
    from rerank.readers.detection import ACCOUNT_LISTS, Account, account_entry, log_account, quote
    from rerank.readers.texts.text_files import TextFile, pair_texts, present_texts
    from rerank.runs.report.table import TextTable
    from rerank.storage.streams import stream_name

    files = [TextFile(path, form) for path in references]
    files += [TextFile(path, "lines" if form == "lines" else "auto") for path in systems]
    columns = pair_texts(files[0], files[1:])
    golds = [present_texts(chain(*one)) for one in zip(*columns[: len(references)], strict=True)]
    texts = [[text for text, *_ in one] for one in columns[len(references) :]]
    if not golds:
        raise DataError("no reference in the file", path=references[0])
    shown_golds = [list(map(decoded, gold)) for gold in golds]
    name, size = ", ".join(map(stream_name, systems)), amount(len(golds), "text")
    right = f"references of {', '.join(map(stream_name, references))}, {quote(shown_golds[0][0])}"
    first = quote(decoded(texts[0][0]))
    account = Account(f"{name}: texts", f"{size} each", first, right=right, measure=measure.signature)
    log_account(account)
    sides = [([decoded(texts[0][k])], gold[0]) for k, gold in enumerate(shown_golds[:ACCOUNT_LISTS])]
    amiss = doubts_of_references(sides, measure)
    cli.show(*amiss, doubts=amiss, **account_entry(account))
    stats, reports, reference = [], [], np.zeros((0, 0))
    for path, lines in zip(systems, texts, strict=True):
        rows = []
        for line, (text, gold) in enumerate(zip(lines, golds, strict=True), 1):
            try:
                rows.append(measure.stats([text], gold))
            except DataError as error:
                raise DataError(error.message, path=stream_name(path), line=line) from None
        reference = np.stack([row for row, _ in rows])
        stats.append(np.concatenate([row for _, row in rows]))
        hypotheses = list(map(decoded, lines))
        report = measure.report(stats[-1].sum(axis=0), reference.sum(axis=0))
        reports.append({**report, **measure.corpus(hypotheses, shown_golds)})
    if sentences:
        gains = measure.gain(stats[0], reference)
        cli.show(*(f"{gain:.6f}" for gain in gains), sentences=[float(gain) for gain in gains])
    names, signature = shown_names(systems), measure.corpus_signature(shown_golds)
    cells, other = list[list[str]](), measure.text if measure.percent != 1 else "{:,.4g}".format
    for key in reports[0]:
        style = {"length_ratio": "{:.3f}".format, measure.primary: measure.text}.get(key, other)
        cells.append([key, *(style(report[key]) for report in reports)])
    table = TextTable("", ["", *names], cells)
    cli.show(table, signature, scores=dict(zip(names, reports, strict=True)), signature=signature)
    return stats, reference, " ".join(amiss)


def shown_names(paths: Sequence[str]) -> list[str]:
    """The names of files in tables: the last parts of paths, or their paths where names are the same; a number where
    paths are too."""
    names = [Path(path).name for path in paths]
    labels = [path if names.count(name) > 1 else name for path, name in zip(paths, names, strict=True)]
    return [
        f"{name} ({labels[: i + 1].count(name)})" if labels.count(name) > 1 else name for i, name in enumerate(labels)
    ]
