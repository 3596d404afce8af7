"""Doubts about the lists of a run: splits that share lists, references that belong to other lists, and score
columns that mean something else in one file than in another."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rerank.data.shards import Corpora, selected
from rerank.extraction.content.base import Content
from rerank.extraction.list_checks import WRITTEN
from rerank.extraction.list_checks import shared as same_inputs
from rerank.extraction.seen import LEAST, MOST, SeenSample, shared
from rerank.features.dense import said_of
from rerank.metrics.base import Metric
from rerank.metrics.oracle import base_choice, list_gains
from rerank.models.drift import ALPHA, Drift, chance, columns_seen
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.sections import HOLDOUT
from rerank.runs.corpora import Data

APART = 0.5  # how far the gains of train are below those of dev at the least, as a difference of distribution functions
HARDLY = 0.05  # the share of what a random candidate lacks that an oracle gains at the least
FEWEST = 30  # lists that tell whether lengths go together,
CORRELATED = 0.3  # which they do if their correlation is this, of ranks
DEVIATIONS = 3.72  # of a normal distribution, beyond which it has the probability ALPHA
ASKED = "are the references those of other lists, off by a line?"


def doubts(recipe: ListRecipe, data: Data, content: Content[Any], corpora: Mapping[str, Any]) -> list[str]:
    """A line for everything that looks wrong with the splits of a run; corpora: their counts, see ``Data.counts``."""
    train, metric = data.training, content.metric
    counts = {split: entry["statistics"] for split, entry in corpora.items()}
    known = columns_seen(content.held, content.used, train.seen)
    table, found = data.table, list[str]()
    whole = {table.name(j).partition("|")[2]: 1 / table.scale[j] for j in range(table.free)}
    for name in known:
        low, high = train.seen.measures[:, content.held.index(name), LEAST:].T
        said = said_of(f"the score column {name!r}", low, high, whole.get(name, 0.0))
        found += [f"{recipe.data.training}: {line}" for line in said]
    for split, extracted in {recipe.data.training: train, **data.others}.items():
        if split == HOLDOUT:
            continue
        apart = written_apart(extracted.about.get("amiss", []))
        amiss = references_amiss(metric, counts[split], extracted.seen.lengths, apart)
        if extracted is train:
            found += [f"{split}: {line}" for line in amiss]
            continue
        found += [f"{split}: {line}" for line in amiss or filter(None, [apart])]
        if split == recipe.data.dev and not metric.measured and below_dev(train.corpus, extracted.corpus):
            here, there = (metric.text(counts[name]["base"][metric.primary]) for name in (recipe.data.training, split))
            shown = f"{metric.primary} {here}, on {split} {there}"
            why = written_apart(train.about.get("amiss", [])) or ASKED
            found.append(f"{recipe.data.training}: the base is far worse than on {split}: {shown}; {why}")
        unlike = unlike_training(extracted.seen, content, known, train.seen.digests)
        inputs = [each.about["inputs"] for each in (train, extracted) if "inputs" in each.about]
        same = shared(train.seen.digests, extracted.seen.digests)[0]
        if not same and len(inputs) == 2 and (what := same_inputs(*inputs)):
            unlike.append(f"the lists have the {what} of training lists: are these systems to merge, and not splits?")
        found += [f"{split}: {line}" for line in unlike]
    return found


def unlike_training(
    lists: SeenSample, content: Content[Any], columns: Mapping[str, Any], digests: np.ndarray
) -> list[str]:
    """A line if some of the ``lists`` are training lists, whose ``digests`` are known, or a sample of them, and one for
    every column that is unlike what it was in training, where the ``columns`` are known: see ``models.drift``."""
    same, looked_at = shared(digests, lists.digests)
    sampled = "a sample of " if MOST in (digests.size, lists.digests.size) else ""
    shown = (
        f"{same:,} of {sampled}{looked_at:,} lists are training lists; what is measured on them tells nothing of others"
    )
    drift = Drift({name: column for name, column in columns.items() if name in content.held})
    drift.take(*lists.measures[:, [content.held.index(name) for name in drift.names]])
    return [*([shown] if same else []), *drift.warnings()]


def written_apart(amiss: Iterable[str]) -> str:
    """What says, of the checks that failed, that references are written in another way; empty if nothing does."""
    return next((line for line in amiss if WRITTEN in line), "")


def references_amiss(metric: Metric, counts: Mapping[str, Any], lengths: np.ndarray, apart: str) -> list[str]:
    """Lines where the references of lists do not look like theirs.

    counts: the ``ListStatistics``; the oracle is to be better than a random candidate. lengths: those of candidates and
    references (int64 [S, 2]), which are to go together. apart: see ``written_apart``.
    """
    if metric.measured:
        return []
    lines, asked = list[str](), apart or ASKED
    best, random = (counts[name][metric.primary] for name in ("oracle", "random"))
    lacking = abs((0.0 if metric.lower_is_better else 100 / metric.percent) - random)
    if abs(best - random) < HARDLY * lacking and counts["candidates"] >= 2 * counts["lists"]:
        shown = f"{metric.primary} {metric.text(best)} beside {metric.text(random)}"
        lines.append(f"the oracle is hardly better than a random candidate ({shown}); {asked}")
    if (correlation := unlike_lengths(lengths)) is not None:
        shown = f"rank correlation {correlation:.2f}"
        lines.append(f"long candidates do not go with long references ({shown}); {asked}")
    return lines


def unlike_lengths(lengths: np.ndarray) -> float | None:
    """The rank correlation of lengths (int64 [S, 2]) that vary but do not go together; else None.

    They do not where it is below ``CORRELATED`` with a one-sided probability of error of ``ALPHA``, by Fisher's
    transformation.
    """
    if len(lengths) < FEWEST or (lengths == lengths[0]).all(axis=0).any():
        return None
    one, other = (np.unique(column, return_inverse=True)[1] for column in lengths.T)
    one, other = one - one.mean(), other - other.mean()
    correlation = float((one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum()))
    surely = np.arctanh(min(correlation, 0.999)) + DEVIATIONS / np.sqrt(len(lengths) - 3) < np.arctanh(CORRELATED)
    return correlation if surely else None


def below_dev(train: Corpora, dev: Corpora) -> bool:
    """Whether the gains of the base choices from ``train`` are far below those from ``dev``.

    They are where the distribution functions differ by more than ``APART`` and what chance explains, with a probability
    of at most ``ALPHA``.
    """
    bases = (selected(lists, lambda part: base_choice(part.lists, part.base)) for lists in (train, dev))
    low, high = (np.sort(list_gains(lists, base)) for lists, base in zip((train, dev), bases, strict=True))
    places = np.concatenate([low, high])
    apart = np.searchsorted(low, places, "right") / low.size - np.searchsorted(high, places, "right") / high.size
    return bool(apart.max(initial=0.0) > APART + chance(low.size, high.size, ALPHA))
