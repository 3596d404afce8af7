"""``rerank fuse``, which compares runs of search engines with their fusion."""

from typing import Annotated

import typer

from rerank.cli import application as cli


@cli.command("fuse", "Start", "rerank fuse search/lexical search/neural --qrels search/qrels")
def fuse(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs of the same queries, two or more.")],
    *,
    qrels: Annotated[str, typer.Option(metavar="FILE", help="Judgements of relevance.")],
    metric: Annotated[str, typer.Option(metavar="NAME", help="Measure of the order.")] = "ndcg@10",
) -> None:
    """Compare ways to fuse runs of search engines: by ranks, by sums, by learned weights.

    Every row is tested against reciprocal rank fusion. Learned weights are cross-validated over queries. They are
    weights of scores from 0 to 1 in each run, as OpenSearch and Elasticsearch take them.
    """
    from rerank.cli.choosing import show_table
    from rerank.cli.evaluating import metric_settings
    from rerank.contrib.search.fuse import fuse_runs
    from rerank.storage.streams import single_stdin

    single_stdin(*runs, qrels)
    if len(runs) < 2:
        raise typer.BadParameter("found one run; expected two or more to fuse")
    table = fuse_runs(runs, qrels, metric_settings(metric))
    show_table(table)
    cli.show(table.advice, pipeline=table.pipeline)
