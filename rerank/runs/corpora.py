"""The lists of a recipe: corpora, extracted or from the cache, and the files, opened before anything is read.

A corpus holds features and statistics, not texts: all lists of a split need not fit into memory. So what compares
candidates with one another, or writes them, reads the files again, by the blocks and the workers of extraction, once
for all that looks at them.
"""

import dataclasses
import logging
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import DataError, RecipeError, RerankError
from rerank.base.progress import counting
from rerank.data.corpus import remarks_on, share_of
from rerank.extraction.blocks import Block, BlockJob, Spool, cut_blocks, run_blocks
from rerank.extraction.content import Content, Pair
from rerank.extraction.extraction import CorpusCache, ExtractedSplit, extract_split, extract_training
from rerank.extraction.kinds import metric_of
from rerank.extraction.list_checks import LACKING_TOKENS
from rerank.extraction.list_checks import shared as same_inputs
from rerank.extraction.sample import LOWEST, SAMPLE_SIZE, ListSample, shared
from rerank.features.table import FeatureTable
from rerank.metrics.metric import Metric, list_statistics
from rerank.models.decoding import Evidence, gain_functions
from rerank.models.model import Model, recipe_of
from rerank.models.provenance import columns_seen, columns_unlike
from rerank.pool import Engine
from rerank.readers.lines import Place
from rerank.readers.lists import Lists, one_by_one
from rerank.readers.reader import ScoreColumns
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.sections import HOLDOUT
from rerank.storage.outputs import key_of
from rerank.storage.streams import Inputs

log = logging.getLogger("rerank")
COUNTS = "seconds", "skipped", "skipped_candidates", "duplicates"  # reported always
RARE_COUNTS = "absent", "unknown_columns", "lowest_first", "normalized", "refused"  # where it applies; see SkipCount


@dataclasses.dataclass
class Data:
    """The corpora of a recipe: its training split, table, and the other splits by name; engine: whose workers extract
    them, and read their lists again."""

    recipe: ListRecipe
    metric: Metric
    training: ExtractedSplit
    table: FeatureTable
    others: dict[str, ExtractedSplit]
    engine: Engine

    @staticmethod
    def load(
        recipe: ListRecipe,
        directory: Path | None,
        splits: tuple[str, ...],
        engine: Engine | None = None,
        inputs: Inputs | None = None,
        start: Model | None = None,
    ) -> "Data":
        """Extract, by ``engine``, the training split and ``splits``, from ``inputs``, or take them from the cache that
        all runs beside ``directory`` share; without one they are in memory. start: a model with the table to use."""
        store = None if directory is None else CorpusCache(directory.absolute().parent / ".cache", inputs)

        def extract(split: str, table: FeatureTable, key: str) -> ExtractedSplit:
            """A split with the columns of ``table``, which is that of lists, or of a model, with this ``key``."""
            if store is None:
                return extract_split(recipe, split, table, engine)
            return store.split(recipe, split, table, key, engine)

        if start is not None:
            table = table_of(start, recipe)
            training = extract(recipe.data.training, table, start.digest)
        elif store is None:
            training, table = extract_training(recipe, engine)
        else:
            training, table, _ = store.training(recipe, engine)
        if store is None:
            settings = recipe.model_dump(mode="json", include={"data", "features", "metric"})
            training = dataclasses.replace(training, key=key_of(settings, training.sample.digests.tolist()))
        others = {
            split: training if split == recipe.data.training else extract(split, table, training.key)
            for split in splits
            if not recipe.data.is_holdout(split)
        }
        if (share := recipe.data.holdout) is not None:  # of the training lists, drawn by their ids
            names, inverse = np.unique(np.array(training.ids, dtype=np.str_), return_inverse=True)
            if names.size < 2:
                raise DataError(f"found {names.size} list; setting some apart takes at least 2")
            order = np.random.default_rng([1, names.size, 3]).permutation(names.size)  # no other draw has this 3
            count = min(max(math.ceil(share * names.size - 0.5), 1), names.size - 1)
            mask, about = np.isin(inverse, order[:count]), f"{training.key} {HOLDOUT} {share!r}"
            others[HOLDOUT], training = part_of(training, mask, f"{about} apart"), part_of(training, ~mask, about)
        return Data(recipe, metric_of(recipe), training, table, others, engine or Engine())

    @property
    def dev(self) -> ExtractedSplit | None:
        """The split on which choices are made, if there is one."""
        return self.others.get(self.recipe.data.dev or "")

    def shared(self, recipe: ListRecipe) -> ExtractedSplit:
        """The share of the training lists that a run of this ``recipe`` sees."""
        lists, share, seed = self.training, recipe.training.share, recipe.seed
        if share == 1:
            return lists
        mask = np.zeros(lists.corpus.list_count, np.bool_)
        mask[share_of(mask.size, share, seed)] = True
        return part_of(lists, mask, f"{lists.key} {share!r} {seed}")

    def counts(self) -> dict[str, Any]:
        """The entry of metrics.json on every split."""
        entries = dict[str, Any]()
        for split, lists in {self.recipe.data.training: self.training, **self.others}.items():
            corpus, about = lists.corpus, lists.about
            size = {"lists": corpus.list_count, "candidates": corpus.candidate_count, "nonzeros": corpus.nonzeros}
            counts = {key: about[key] for key in (*COUNTS, *(key for key in RARE_COUNTS if key in about))}
            counts = {"columns": corpus.width, **counts, "statistics": list_statistics(corpus, self.metric)}
            entries[split] = size | counts
        return entries


def table_of(start: Model, recipe: ListRecipe) -> FeatureTable:
    """The features of the model that training continues from, which the recipe must ask for as well."""
    features, model_features = (settings.features.model_dump(mode="json") for settings in (recipe, recipe_of(start)))
    if differing := sorted(key for key in features if features[key] != model_features[key]):
        raise DataError(
            "training cannot continue from this model: its feature table is another one; it was made with other "
            f"settings of features: {', '.join(differing)}",
            path=recipe.training.start,
        )
    return start.table


def part_of(lists: ExtractedSplit, mask: np.ndarray, key: str) -> ExtractedSplit:
    """The lists of a split where ``mask`` (bool [L]) holds."""
    ids = [name for name, taken in zip(lists.ids, mask, strict=True) if taken]
    corpus, indices = lists.corpus.take(np.flatnonzero(mask)), lists.indices[mask]
    return dataclasses.replace(lists, corpus=corpus, ids=ids, indices=indices, key=key)


def open_files(recipe: ListRecipe, inputs: Inputs) -> None:
    """Open every file of the recipe's splits. For a missing file, no file of another split is suggested."""
    files = {split: recipe.data.files(split) for split in recipe.splits}
    names = {split: {Path(path).name for path in chain(*kinds.values())} for split, kinds in files.items()}
    for split, kinds in files.items():
        others = set().union(*(own for other, own in names.items() if other != split))
        for kind, path in ((kind, path) for kind, paths in kinds.items() for path in paths):
            if path == "-":
                raise RecipeError("a recipe reads its files more than once; name a file", key=f"data.{kind}")
            try:
                inputs.open(path, others=others)
            except DataError as error:
                message, missing = error.message, not os.path.exists(path)
                if missing and recipe.data.root == type(recipe.data).model_fields["root"].default:
                    message += "; name the folder of the lists with --set data.root=DIR"
                if missing and split == recipe.data.dev:
                    message += "; `data.dev: null` trains without a dev split"
                raise DataError(message, path=path) from None


ROUNDING = 1e-9
MIN_ORACLE_SHARE = 0.05  # the share of what a random candidate lacks that an oracle gains at the least
MIN_LENGTHS = 30  # lists that tell whether lengths go together,
MIN_CORRELATION = 0.3  # which they do if their correlation is this, of ranks
DEVIATIONS = 3.72  # of a normal distribution, beyond which it has the probability ALPHA
OFF_BY_A_LINE = "are the references those of other lists, off by a line?"


def doubts(data: Data, content: Content[Any], corpora: Mapping[str, Any]) -> list[str]:
    """A line for everything that looks wrong with the splits of a run; corpora: their counts, see ``Data.counts``."""
    recipe, train, dev = data.recipe, data.training, data.dev
    counts = {split: entry["statistics"] for split, entry in corpora.items()}
    columns = columns_seen(content.column_names, content.live_columns, train.sample)
    table, lines = data.table, list[str]()
    units = {table.name(j).partition("|")[2]: 1 / table.scale[j] for j in range(table.free)}
    for name in columns:
        low, high = train.sample.measures[:, content.column_names.index(name), LOWEST:].T
        remarks = remarks_on(f"the score column {name!r}", low, high, units.get(name, 0.0))
        lines += [f"{recipe.data.training}: {line}" for line in remarks]
    for split, lists in {recipe.data.training: train, **data.others}.items():
        if split == HOLDOUT:
            continue
        spelling = spelling_doubt(lists.about.get("amiss", []))
        mismatches = reference_doubts(content.metric, counts[split], lists.sample.lengths, spelling)
        if split not in data.others:
            lines += [f"{split}: {line}" for line in mismatches]
            continue
        lines += [f"{split}: {line}" for line in mismatches or filter(None, [spelling])]
        notes = training_differences(lists.sample, content, columns, train.sample.digests)
        if split in recipe.data.tests and dev is not None:
            notes += repeats(lists.sample, dev.sample.digests, f"those of {recipe.data.dev}, where choices are made")
        inputs = [each.about["inputs"] for each in (train, lists) if "inputs" in each.about]
        same = shared(train.sample.digests, lists.sample.digests)[0]
        if not same and len(inputs) == 2 and (what := same_inputs(*inputs)):
            notes.append(f"the lists have the {what} of training lists: are these systems to merge, and not splits?")
        lines += [f"{split}: {line}" for line in notes]
    return lines


def training_differences(
    lists: ListSample, content: Content[Any], columns: Mapping[str, Any], digests: np.ndarray
) -> list[str]:
    """A line if some of the ``lists`` are training lists, whose ``digests`` are known, or a sample of them, and one for
    every column that is unlike what it was in training, of those in ``columns``: see ``models.provenance``."""
    columns = {name: column for name, column in columns.items() if name in content.column_names}
    measures = lists.measures[:, [content.column_names.index(name) for name in columns]]
    return [*repeats(lists, digests), *columns_unlike(columns, measures)]


def repeats(lists: ListSample, digests: np.ndarray, those: str = "training lists") -> list[str]:
    """A line if some of the ``lists`` are ``those`` with these digests, or a sample of them."""
    same, count = shared(digests, lists.digests)
    scope = "a sample of " if SAMPLE_SIZE in (digests.size, lists.digests.size) else ""
    line = f"{same:,} of {scope}{count:,} lists are {those}; what is measured on them tells nothing of others"
    return [line] if same else []


def spelling_doubt(amiss: Iterable[str]) -> str:
    """The failed check that says that references are written in another way; empty if none does."""
    return next((line for line in amiss if LACKING_TOKENS in line), "")


def reference_doubts(metric: Metric, counts: Mapping[str, Any], lengths: np.ndarray, spelling: str) -> list[str]:
    """Lines where the references of lists do not look like theirs.

    counts: ``list_statistics``; the oracle is to be better than a random candidate. lengths: those of candidates and
    references (int64 [S, 2]), which are to go together if they vary: their rank correlation is below MIN_CORRELATION
    with a one-sided probability of error of ALPHA, by Fisher's transformation. spelling: see ``spelling_doubt``.
    """
    lines, question = list[str](), spelling or OFF_BY_A_LINE
    best, random = (counts[name][metric.primary] for name in ("oracle", "random"))
    if metric.measured:
        alike = abs(best - random) < ROUNDING and counts["candidates"] > counts["lists"]
        return [f"the candidates of each list have the same {metric.primary}; is it that of these lists?"] * alike
    room = abs((0.0 if metric.lower_is_better else 100 / metric.percent) - random)
    if abs(best - random) < MIN_ORACLE_SHARE * room and counts["candidates"] >= 2 * counts["lists"]:
        scores = f"{metric.primary} {metric.text(best)} beside {metric.text(random)}"
        lines.append(f"the oracle is hardly better than a random candidate ({scores}); {question}")
    if len(lengths) >= MIN_LENGTHS and not (lengths == lengths[0]).all(axis=0).any():
        first, second = (np.unique(column, return_inverse=True)[1] for column in lengths.T)
        first, second = first - first.mean(), second - second.mean()
        correlation = float((first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum()))
        most = np.arctanh(min(correlation, 0.999)) + DEVIATIONS / np.sqrt(len(lengths) - 3)
        if most < np.arctanh(MIN_CORRELATION):
            scores = f"rank correlation {correlation:.2f}"
            lines.append(f"long candidates do not go with long references ({scores}); {question}")
    return lines


class RereadList(NamedTuple):
    """A list of the corpus, read again. stats: of its candidates (float64 [N, K]); pair, evidence: what these are, None
    where nobody asks, or there are none; findings: by those who looked at it before."""

    nbest: Lists
    stats: np.ndarray
    pair: Pair | None
    evidence: Evidence | None
    findings: list[Any]


class Visitor(NamedTuple):
    """Something that looks at ``lists`` of a split, all or some of them.

    add: takes over what is found, in the order of the lists, with the index of the list in the files and its number in
    the corpus. see: finds it in a list, in any process, given what the arrays ``of_candidates`` (N values each) have
    for its candidates, and ``of_lists`` (L values each) for itself. opens: whether it asks what candidates are; whole:
    whether lists that are in no corpus, with the number -1, are taken over as they are.
    """

    lists: ExtractedSplit
    add: Callable[[int, int, Any], None]
    see: Callable[..., Any]
    of_candidates: Sequence[np.ndarray] = ()
    of_lists: Sequence[np.ndarray] = ()
    opens: bool = True
    whole: bool = False


Finding = tuple[int, int, Any]  # the number of a visitor, that of a list in its corpus, and what it has found
# By index in a block and id: the statistics of candidates, and with what inputs, as which list, each visitor sees them.
Visits = dict[tuple[int, str], tuple[np.ndarray, list[tuple[int, int, list[Any]]]]]


def visits_between(visitors: Sequence[Visitor], begin: int, end: int) -> Visits:
    """The visits to the lists of the files from ``begin`` to ``end``."""
    visits: Visits = {}
    for k, visitor in enumerate(visitors):
        lists, corpus = visitor.lists, visitor.lists.corpus
        first, last = np.searchsorted(lists.indices, [begin, end]).tolist()
        for number, (a, b) in enumerate(pairwise(corpus.lists[first : last + 1].tolist()), start=first):
            inputs = [*(each[a:b] for each in visitor.of_candidates), *(each[number] for each in visitor.of_lists)]
            name = int(lists.indices[number]) - begin, lists.ids[number]
            visits.setdefault(name, (corpus.stats[a:b], []))[1].append((k, number, inputs))
    return visits


class RereadBlock(NamedTuple):
    """The findings in a block, by list index; how many lists have more candidates than are compared; and the places of
    the lists of a stretch, by their ids."""

    lists: list[tuple[int, list[Finding]]]
    long: int
    id_places: Mapping[str, Place]


def reread(
    job: BlockJob, sees: Sequence[Callable[..., Any]], opens: bool, whole: Sequence[int], block: Block
) -> RereadBlock:
    """Read the lists of a block, and look at them; those of the corpus have its candidates alone. sees: ``see`` of
    every visitor; opens: whether any of them opens lists; whole: the numbers of those that take them whole."""
    (begin, visits), content, decode, places = block.visits, job.content(), job.recipe.decode, dict(block.earlier)
    gains, lists, long = None if decode.gains is None else gain_functions.get(decode.gains), [], 0
    for index, nbest in enumerate(one_by_one(block.read(places))):
        if (visit := visits.get((index if nbest.problem is None else -1, nbest.id))) is None:
            lists.append((begin + index, [(k, -1, nbest) for k in whole]))
            continue
        stats, inputs_by_visitor = visit
        survivors = nbest if len(nbest) == len(stats) else content.without_bad(nbest)
        pair = content.comparable(survivors) if opens and len(stats) else None
        evidence = pair and Evidence(content, pair.nbest, pair.content, decode.most, gains)
        entry = RereadList(survivors, stats, pair, evidence, [])
        for k, _, inputs in inputs_by_visitor:
            entry.findings.append(sees[k](entry, *inputs))
        found = zip(inputs_by_visitor, entry.findings, strict=True)
        lists.append((begin + index, [(k, number, finding) for (k, number, _), finding in found]))
        long += evidence is not None and evidence.cut
    return RereadBlock(lists, long, {name: place for name, place in places.items() if name not in block.earlier})


def visit_lists(data: Data, split: str, visitors: Sequence[Visitor]) -> int:
    """Read the lists of a split again, once for all ``visitors``, by the workers of ``data``; returns how many the
    files have."""
    recipe, failure, count, long = data.recipe, list[RerankError](), 0, 0
    masks = [np.zeros(visitor.lists.corpus.list_count, np.bool_) for visitor in visitors]
    indices = np.unique(np.concatenate([visitor.lists.indices for visitor in visitors]))
    job = BlockJob(recipe, Spool(None), tuple(sys.path), ScoreColumns.of_table(data.table.about))
    sees, opens = [visitor.see for visitor in visitors], any(visitor.opens for visitor in visitors)
    whole = [k for k, visitor in enumerate(visitors) if visitor.whole]

    def blocks() -> Iterator[Block]:
        nonlocal count
        for block in cut_blocks(job.content(), recipe.data, split, failure, again=True):
            begin, count = count, count + block.list_count
            if (visits := visits_between(visitors, begin, count)) or whole:
                yield block._replace(visits=(begin, visits))

    with counting(f"read {split} again", total=indices.size) as progress:
        for _, result in run_blocks(data.engine, partial(reread, job, sees, opens, whole), blocks()):
            for index, findings in result.lists:
                for k, number, finding in findings:
                    if number >= 0:
                        masks[k][number] = True
                    if finding is not None:
                        visitors[k].add(index, number, finding)
                progress.advance(more=any(number >= 0 for _, number, _ in findings))
            long += result.long
    if failure:
        raise failure[0]
    for visitor, mask in zip(visitors, masks, strict=True):
        if not mask.all():
            name = visitor.lists.ids[int(np.argmin(mask))]
            message = f"the list {name} of {split} is not found when lists are read again; have files changed?"
            raise DataError(message, list_id=name)
    if long:
        message = "%s: of %d lists only the %d candidates with the best scores were compared with each other"
        log.warning(f"{message} (decode.most)", split, long, recipe.decode.most)
    return count
