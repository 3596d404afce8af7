"""The command that scores texts or trees against references."""

import logging
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rerank.base.encoding import amount, decoded
from rerank.base.errors import DataError
from rerank.cli.application import Encoding, command, show
from rerank.cli.measuring import Measuring, of_trees

if TYPE_CHECKING:
    import numpy as np

    from rerank.metrics.metric import Metric
    from rerank.metrics.parseval import Parseval
    from rerank.metrics.text import TextMetric

    # statistics of every system (float64 [L, K]), and of the references [L, R]
    Rows = tuple[list[np.ndarray], np.ndarray]

COUNTS = "sentences", "refused", "skipped", "valid"
log = logging.getLogger("rerank")


@command()
def evaluate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="HYP REF [HYP2 ...]", help="What to evaluate, its references, and other systems to compare."
        ),
    ],
    measuring: Measuring,
    *,
    encoding: Encoding = None,  # noqa: ARG001 - its callback acts
    sentences: Annotated[bool, typer.Option("--sentences", help="Also print a line for every sentence.")] = False,
) -> None:
    """Score trees (one bracketed tree per line or spread over lines) or texts (one per line) against references.

    Other systems are tested against the first. An empty line in a file of one tree per line, or brackets without words,
    is a failed parse. Of texts also ``--metric ter``, by sacrebleu.
    """
    from rerank.metrics.parseval import Parseval
    from rerank.metrics.text import TextMetric
    from rerank.readers.streams import single_stdin, stream_name

    if len(files) < 2:
        raise DataError("expected HYP REF [HYP2 ...]: what to evaluate, then its references")
    hypothesis, reference, *further = files
    if further and reference == "-":
        raise DataError("the references are read once for every system; name a file for them", path=stream_name("-"))
    more, normalize = measuring.references or [], measuring.normalize
    single_stdin(*files, *more)
    measure = measuring.make()
    if isinstance(measure, TextMetric):
        rows = _evaluate_texts(measure, [hypothesis, *further], [reference, *more], measuring.form, sentences)
    else:
        assert isinstance(measure, Parseval)
        with of_trees(*files):
            rows = _evaluate_trees(measure, [hypothesis, *further], reference, sentences, normalize)
    if further:
        _show_comparison(measure, shown_names([hypothesis, *further]), *rows)


def _evaluate_trees(
    measure: "Parseval", systems: list[str], reference: str, sentences: bool, normalize: bool
) -> "Rows":
    """Show the scores of files of trees; returns their statistics."""
    from rich.table import Table

    from rerank.metrics.evaluation import evaluate as evaluate_trees
    from rerank.readers.account import Account, said_of, tell
    from rerank.readers.streams import stream_name
    from rerank.readers.trees.treebank import gold_sentences, read_sentences, treebank_files
    from rerank.readers.trees.words import changes, unchanged

    results, said = [], []
    for path in systems:
        changed = unchanged() if normalize else None
        sides = gold_sentences(treebank_files(reference)), read_sentences(path)
        gold_path, test_path = stream_name(reference), stream_name(path)
        results.append(evaluate_trees(*sides, measure, gold_path=gold_path, test_path=test_path, changed=changed))
        said += [] if changed is None else [f"{Path(path).name}: {changes(changed)}"]
        if not len(results[-1].stats):
            raise DataError("no tree in the file", path=gold_path)
    size = amount(len(results[0].stats), "sentence")
    right = f"gold trees, {stream_name(reference)}"
    account = Account(
        f"{', '.join(map(stream_name, systems))}: trees", size, "", right=right, measure=measure.signature
    )
    tell(account)
    show(**said_of(account))
    if sentences:
        show(*results[0].table(), sentences=list(results[0].sentences()))
    for result in results:
        if result.first_error:
            errors = f"{amount(int(result.scores()['refused']), 'sentence')} in error, left out of the scores"
            log.warning("%s; the first: %s", errors, result.first_error)
    names = shown_names(systems)
    table = Table("", *names)
    for section in results[0].sections():
        table.add_row(section, *([""] * len(results)))
        for key in results[0].sections()[section]:
            values = [result.sections()[section][key] for result in results]
            text = "{:,.0f}" if key in COUNTS else "{:.2f}" if key == "average_crossing" else "{:.2%}"
            table.add_row(f"  {key}", *(text.format(value).removesuffix("%") for value in values))
    scores = {name: result.sections() for name, result in zip(names, results, strict=True)}
    show(table, *said, measure.signature, scores=scores, signature=measure.signature, changes=said)
    return [result.stats for result in results], results[0].reference


def _evaluate_texts(
    measure: "TextMetric", systems: list[str], references: list[str], form: str, sentences: bool
) -> "Rows":
    """Show the scores of files of texts, one sentence per line; returns their statistics."""
    import numpy as np
    from rich.table import Table

    from rerank.extraction.list_checks import doubts_of_references
    from rerank.readers.account import MOST, Account, quoted, said_of, tell
    from rerank.readers.streams import stream_name
    from rerank.readers.texts.text_files import TextFile, paired, present

    files = [TextFile(path, form) for path in references]
    files += [TextFile(path, "lines" if form == "lines" else "auto") for path in systems]
    found = paired(files[0], files[1:])
    golds = [present(chain(*one)) for one in zip(*found[: len(references)], strict=True)]
    texts = [[text for text, *_ in one] for one in found[len(references) :]]
    if not golds:
        raise DataError("no reference in the file", path=references[0])
    shown_golds = [list(map(decoded, gold)) for gold in golds]
    name, size = ", ".join(map(stream_name, systems)), amount(len(golds), "text")
    right = f"references of {', '.join(map(stream_name, references))}, {quoted(shown_golds[0][0])}"
    first = quoted(decoded(texts[0][0]))
    account = Account(f"{name}: texts", f"{size} each", first, right=right, measure=measure.signature)
    tell(account)
    sides = [([decoded(texts[0][k])], gold[0]) for k, gold in enumerate(shown_golds[:MOST])]
    amiss = doubts_of_references(sides, measure)
    show(*amiss, doubts=amiss, **said_of(account))
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
        show(*(f"{gain:.6f}" for gain in gains), sentences=[float(gain) for gain in gains])
    names, signature = shown_names(systems), measure.corpus_signature(shown_golds)
    table = Table("", *names)
    for key in reports[0]:
        written = {"length_ratio": "{:.3f}".format, measure.primary: measure.text}.get(key, "{:,.4g}".format)
        table.add_row(key, *(written(report[key]) for report in reports))
    show(table, signature, scores=dict(zip(names, reports, strict=True)), signature=signature)
    return stats, reference


def shown_names(paths: Sequence[str]) -> list[str]:
    """The names of files in tables: the last parts of paths, or their paths where names are the same; a number where
    paths are too."""
    names = [Path(path).name for path in paths]
    shown = [path if names.count(name) > 1 else name for path, name in zip(paths, names, strict=True)]
    return [f"{name} ({shown[: i + 1].count(name)})" if shown.count(name) > 1 else name for i, name in enumerate(shown)]


def _show_comparison(measure: "Metric", names: list[str], stats: "list[np.ndarray]", reference: "np.ndarray") -> None:
    """Show scores with intervals, and the tests of every other system against the first."""
    from rerank.runs.compared import Compared

    compared = Compared(measure, reference, dict(zip(names, stats, strict=True)), names[0], ())
    table = compared.table("", f"Δ and p: against {names[0]}.", heading=measure.primary, doubt="", of="system")
    show(table.rich(), table.note, compared=compared.as_data())
