"""Cross-validation chooses columns and penalty: dense ones alone where others bring nothing, all where they do."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import corpus_of

from rerank.data.corpus import Corpus
from rerank.data.shards import Corpora
from rerank.learn import folds
from rerank.learn.folds import FEW, Choice, choose, held_out, with_base_column
from rerank.learn.rules.maxent import Maxent
from rerank.metrics.gain import Gain
from rerank.metrics.oracle import oracles

DENSE, SPARSE = 2, 30


def lists(count: int, *, dense: float = 0.0, sparse: float = 0.0, seed: int = 1) -> Corpus:
    """Lists of six with dense columns, of which one shows the right candidate by so much, and indicators, of which one
    does with this probability."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        right = int(rng.integers(6))
        rows = []
        for y in range(6):
            row = {j: float(rng.normal()) for j in range(DENSE)} | {
                int(j): 1.0 for j in rng.integers(DENSE + 1, SPARSE, 3)
            }
            row[0] += dense * (y == right)
            if y == right and rng.random() < sparse:
                row[DENSE] = 1.0
            rows.append((dict(sorted(row.items())), float(rng.normal()), float(y == right)))
        made.append(rows)
    found = corpus_of(made, width=SPARSE)
    return replace(found, free=DENSE, stats=found.gain[:, np.newaxis], reference=np.ones((count, 1)))


def chosen(corpus: Corpora, learner: Maxent | None = None) -> Choice:
    return choose(with_base_column(learner or Maxent(), corpus), corpus, Gain(), oracles, any_ties=True)


def test_dense_columns_alone_where_the_others_are_noise() -> None:
    found = chosen(lists(60, dense=2.0))
    assert found.columns == "dense"
    assert found.other is not None
    assert found.score > 0.6 > 0.4 > found.base
    assert found.lists == 60


def test_all_columns_where_they_are_better() -> None:
    found = chosen(lists(60, dense=0.5, sparse=0.9))
    assert found.columns == "all"
    assert found.other is not None
    assert found.score - found.other > found.error > 0


def test_what_is_given_is_not_chosen() -> None:
    corpus = lists(60, dense=0.5, sparse=0.9)
    dense = chosen(corpus, Maxent(columns="dense", l2=3.0))
    assert (dense.columns, dense.l2, dense.other, len(dense.tried)) == ("dense", 3.0, None, 1)
    assert chosen(corpus, Maxent(columns="all", l2=3.0)).columns == "all"
    alone = corpus.keep_columns(np.arange(SPARSE) < DENSE)
    assert chosen(replace(alone, width=DENSE), Maxent(columns="dense")).columns == "all"  # those that there are
    assert chosen(replace(corpus, free=0)).other is None


def test_a_single_list_has_nothing_to_hold_out() -> None:
    assert chosen(lists(1)) == Choice("dense", FEW)
    assert chosen(lists(2, dense=1.0)).lists == 2


def test_sections_are_neighbours_and_together_all_lists() -> None:
    corpus = lists(13)
    pairs = list(held_out(corpus))
    assert [apart.list_count for _, apart in pairs] == [2, 3, 2, 3, 3]
    assert np.concatenate([apart.gain for _, apart in pairs]).tolist() == corpus.gain.tolist()
    assert all(rest.list_count + apart.list_count == 13 for rest, apart in pairs)


def test_large_lists_hold_out_the_last_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense columns are still tried on all of them, and compared where both were."""
    corpus = lists(60, dense=2.0)
    monkeypatch.setattr(folds, "BUDGET", 2 * corpus.nonzeros)
    apart = [apart for _, apart in held_out(corpus)]
    assert np.concatenate([each.gain for each in apart]).tolist() == corpus.slice(36, 60).gain.tolist()
    found = chosen(corpus)
    assert (found.columns, found.lists) == ("dense", 60)
    assert {each.columns: len(each.rows) for each in found.tried} == {"dense": 60, "all": 24}


def test_few_lists_are_enough_for_dense_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = lists(60, dense=2.0)
    monkeypatch.setattr(folds, "ENOUGH", 30)
    found, last = chosen(corpus), chosen(corpus.slice(30, 60))
    assert (found.columns, found.lists, found.held.size) == ("dense", 30, 30 * 6)
    assert [each.score for each in found.tried][:4] == [each.score for each in last.tried][:4]


def test_the_text_says_what_was_compared() -> None:
    found = chosen(lists(60, dense=2.0))
    said = found.text(Gain())
    assert said.startswith("dense columns alone, l2 ")
    for part in ("on 60 training lists held out in turn", "; base ", "; all columns ", ", standard error "):
        assert part in said
