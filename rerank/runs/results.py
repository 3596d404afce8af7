"""What a run leaves behind: metrics, predictions, selections.

What ``metrics.json`` holds; shares are fractions from 0 to 1:

* ``schema``, ``version``: 1, and the version of the program
* ``code``: digests of the code that trained, that of parts of your own apart
* ``task``, ``name``, ``seed``: of the recipe, and the seed of the chosen run
* ``metric``, ``measure``: the metric's signature; the key in reports of the measure by which runs are chosen
* ``own_measure``: of a user's own metric only: how its measure is shown
* ``predictor``: the one that the model decides by, and the headline is about, a way of decoding where that is better on
  dev
* ``ranked_by``: the predictor whose scores order lists, and are decoded
* ``decision``: both, as in the model
* ``signatures.SPLIT``: texts: the signatures of the final figures by measure
* ``corpora.SPLIT``: ``lists``, ``candidates``, ``nonzeros``, ``columns``, ``duplicates``, ``seconds`` (processor time),
  ``skipped`` lists and ``skipped_candidates`` of other lists, by reason, ``statistics``
* ``doubts``: what looks wrong with the lists or their references, in words
* ``features``: ``seen``, ``kept``, ``pruned``, ``min_lists``; with ``hash_bits`` instead ``columns``, ``kept`` (used)
  and ``shared`` ones; ``scored``: whether training lists have base scores
* ``dev_split``: the name of the dev split, or ``held-out training lists``
* ``curve``: with ``training.curve``: ``points`` (``share``, ``lists``, ``dev``, and the scores of the ``splits``),
  ``slope`` (what doubling the lists brings on ``split``, as a fraction), and ``last``, the test of the last step; for
  classification the same by set, with ``examples`` in place of ``lists``
* ``reported``: as in the recipe
* ``chosen``: ``name`` and ``seed`` of the chosen run
* ``choice``: with ``data.holdout``: the ``split``, its ``lists``, the names of the ``best`` and the ``chosen``
  settings, these as ``settings`` by dotted key, and ``points``: ``name``, ``seeds``, mean ``score``, ``interval`` and
  ``report``, ``difference`` from the best with its standard ``error``, ``near`` (within it), mean ``dev`` score and
  ``nonzero_weights``
* ``blind``: ``splits``: the test splits on which nothing was chosen; ``chosen_on``: by split, what was
* ``logistic``: null, or the ``weights`` of the logistic regression on dense columns alone, and the number of ``lists``
  it was fitted on
* ``training``: of the chosen run, see below
* ``splits.SPLIT``: a report for each of ``base``, ``oracle``, ``last`` and ``average``, of ``voted``, ``mert``,
  ``mbr``, ``fuse`` and ``logistic``
* ``significance.SPLIT``: ``average_vs_base``, ``last_vs_base``, ``mbr_vs_base``, ``fuse_vs_base`` and the like:
  ``test``, ``difference``, ``p``, ``interval``
* ``figures``: the ``lines`` of every figure: ``name``, ``x``, ``y`` and ``spread``
* ``runs``: all runs: ``name``, ``seed``, ``learner``, ``dev`` (score), ``training``, ``splits``, ``significance``
* ``stages.STAGE``: of each stage
* ``seconds``: of the whole run

``corpora.SPLIT`` also has, where there are any, ``refused`` (lists of parses none of which has the words of its gold
tree), by score column ``absent`` candidates and ``unknown_columns``, ``sources``, ``lowest_first`` (lists whose first
candidate has the lowest base score), and ``normalized`` words. Its ``statistics`` are what ``rerank oracle`` prints:
reports of ``base``, ``oracle``, ``corpus_oracle``, ``anti_oracle`` and ``random``; ``smallest``, ``mean``, ``median``
and ``largest`` length; ``empty``, ``singletons``; ``unique_oracle`` (share of lists); ``oracle_ranks`` (lists whose
oracle has rank 0, 1, ... by base score).

A report of parses has ``f1``, ``precision``, ``recall``, ``exact_match``, ``average_crossing`` (brackets per sentence),
``no_crossing``, ``two_or_less_crossing``, ``tagging_accuracy``, and the counts ``sentences``, ``valid``, ``refused``
and ``skipped``. One of texts has the keys of its metric: ``bleu``, ``precision1`` to ``precision4``,
``brevity_penalty``, ``length_ratio``; ``chrf``; ``ter``; ``wer`` or ``cer`` with ``substitutions``, ``insertions``,
``deletions``; or ``gain``. ``bleu``, ``chrf`` and ``ter`` are on sacrebleu's scale from 0 to 100.

``training`` has ``learner``, ``loss``, ``settings``, ``lists``, ``ties``, ``epochs`` and ``updates`` (behind the
weights that were kept), ``epochs_run``, ``mistakes`` (each epoch's), ``nonzero_weights`` (of ``training.predictor``),
``nonzero_weights_last``, ``base_weight``, ``radius`` (the largest norm of an update's difference vector), ``seconds``,
``nonzeros_per_second``, ``bound``, ``voting_seconds`` by split, ``selected_columns``, and with MERT ``mert``:
``split``, ``start`` and ``score`` (on that split, before and after), ``dev``, ``start_weights`` and ``weights`` (for
the values as they are in the files), ``seconds``. Its ``base`` is about the base score: ``setting`` (of the recipe),
``training`` (its weight while the learner trained), ``votes`` (in the first of the predictors that vote), ``weights``
(by predictor), ``dev`` (the score of the base on ``split``), ``beaten`` (whether the epoch that was kept scores better)
and ``kept`` (whether the model is the base itself). ``decode`` has the kind that is used (``use``), the dev score of
the ``best`` candidates, and for ``mbr`` and ``fuse`` what was tuned; ``ensemble`` its ``members`` (``learner``,
``seed``, ``dev``, ``deviation`` of the scores) and ``dev``.
"""

import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from rerank import __version__
from rerank.base.progress import track
from rerank.data.shards import Lists, first_candidates, list_sizes, parts
from rerank.extraction.content.base import Content
from rerank.extraction.extraction import Extracted
from rerank.learn.base import Weights
from rerank.learn.scoring import scores
from rerank.models.model import Model
from rerank.models.scorer import Ranked, Scorer, led, rank, write_ranked
from rerank.readers.base import SkippedList
from rerank.readers.streams import open_output
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.sections import SplitSettings
from rerank.runs.corpora import Data
from rerank.runs.run import Run
from rerank.storage.outputs import output_file


def describe(
    recipe: ListRecipe, split: str, extracted: Extracted, chosen: Run, content: Content[Any]
) -> dict[str, str]:
    """Add what needs the texts to the chosen run's reports of a split; returns the signatures of measures."""
    first = first_candidates(extracted.corpus)
    places = {name: np.where(choice >= 0, choice - first, -1) for name, choice in chosen.choices[split].items()}
    lists = content.read_again(recipe.data, split, extracted.ids, list_sizes(extracted.corpus))
    found = content.describe(split, lists, places)
    for name, measures in found.reports.items():
        chosen.splits[split][name] = {**chosen.splits[split][name], **measures}
    return found.signatures


def prediction_files(split: str) -> tuple[str, str, str]:
    """What ``write_predictions``, ``Selections.save`` and ``write_answers`` write for a split, in ``predictions``."""
    return f"{split}.nbest.gz", f"{split}.selections.npz", f"{split}.decoded.gz"


def made_room(directory: Path, split: str, number: int) -> Path:
    """Where one of the ``prediction_files`` of a split goes."""
    target = output_file(directory, "predictions", prediction_files(split)[number])
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def write_answers(directory: Path, split: str, answers: list[bytes]) -> None:
    """What lists are decoded to, one per line."""
    with open_output(made_room(directory, split, 2)) as out:
        for text in answers:
            out.write(b" ".join(text.split(b"\n")).strip() + b"\n")


def write_predictions(
    recipe: ListRecipe, directory: Path, data: Data, model: Model, chosen: Run, tests: tuple[str, ...]
) -> None:
    """Every test split in the input's own format: the model's choice if it is a candidate, then the others by score."""
    for split in tests:
        scorer = Scorer(model)
        with open_output(made_room(directory, split, 0)) as out:
            extracted = data.others[split]
            weights, first = chosen.weights[recipe.predictor], chosen.answers.get(split)
            ranked = ranked_lists(scorer, recipe.data, split, extracted, weights, first)
            total = extracted.corpus.list_count
            write_ranked(out, scorer.reader, track(ranked, f"predict {split}", total=total))


def environment() -> list[str]:
    """Lines about machine, Python and libraries."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy"))
    return [
        f"rerank {__version__}",
        f"Python {platform.python_version()}, {libraries}",
        f"{platform.system()} {platform.machine()}",
    ]


def ranked_lists(
    scorer: Scorer,
    data: SplitSettings,
    split: str,
    extracted: Extracted,
    weights: Weights,
    first: np.ndarray | None = None,
) -> Iterator[Ranked | SkippedList]:
    """All lists of a split in the order of the scores that ``weights`` give in its corpus, the candidates ``first``
    (int64 [L], -1 for none) before the others if they are given; bad ones keep their places.

    What is written are scores of features' values as they are, so that lists can be compared: see ``Extracted``. A list
    that the corpus lacks, since its reference cannot be used, is scored by the model itself.
    """
    sizes, own = list_sizes(extracted.corpus), _scores(extracted.corpus, weights)
    ends, added = np.cumsum(sizes), np.zeros(sizes.size)
    if extracted.origins is not None:
        added = _scores(extracted.origins, Weights(weights.w, 0.0))
    for number, nbest in scorer.content.read_again(data, split, extracted.ids, sizes):
        if number < 0 or isinstance(nbest, SkippedList):
            opened = nbest if isinstance(nbest, SkippedList) else scorer.open(nbest)
            yield from scorer.rank([opened])
            continue
        start = ends[number] - sizes[number]
        found = own[start : ends[number]]
        place = None if first is None or first[number] < 0 else int(first[number] - start)
        yield Ranked(nbest, led(rank(found, nbest.base), place), found + added[number])


def _scores(lists: Lists, weights: Weights) -> np.ndarray:
    """float64 [N]: of every candidate."""
    return np.concatenate([scores(part, weights) for _, part in parts(lists)])
