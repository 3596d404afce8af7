"""Sentences whose parses have other words than the reference: EVALB's errors, what is said of them and when to stop."""

import numpy as np

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.metrics.parseval import Parseval
from rerank.metrics.parseval_kernel import REFUSED
from rerank.readers.base import NBestList
from rerank.readers.trees.trees import Trees
from rerank.readers.trees.yields import equal_form

FEW = 10  # errors that say nothing about the other sentences


def refusal(metric: Parseval, gold: Trees, candidates: Trees, symbols: SymbolTable) -> str:
    """Why the first of ``candidates`` that is refused is refused; ``gold`` is their one reference."""
    mismatch = metric.yield_mismatch(gold, candidates, symbols)
    if mismatch is None:
        return "what the trees' own punctuation tags leave are different words"
    return f"{mismatch}{equal_form(candidates, gold, symbols)}"


def refused_list(
    metric: Parseval, nbest: NBestList, gold: Trees, candidates: Trees, stats: np.ndarray, symbols: SymbolTable
) -> str:
    """Why a list with statistics ``stats`` (float64 [N, K]) is an error, with its place; empty if it is none.

    It is one if no candidate is valid, and not all of them are failed parses.
    """
    if metric.valid(stats).any() or not stats[:, REFUSED].any():
        return ""
    message = refusal(metric, gold, candidates, symbols)
    return str(DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id))


def check_errors(metric: Parseval, errors: int, sentences: int, first: str) -> None:
    """Stop at too many errors among ``sentences``; ``first`` is the message of the first of them.

    ``max_error`` plus one are allowed. Where that is None, so is any number that is not more than ``FEW`` and more than
    half of all: where most sentences have other words, the references are those of other sentences.

    Raises
    ------
    DataError: says how many there are, and what to do.
    """
    most = metric.max_error
    found = f"{errors:,} of {sentences:,} sentences have other words than their references; the first: {first}; "
    if most is not None and errors > most + 1:
        message = f"{found}MAX_ERROR is {most}: raise it to leave such sentences out of the scores"
        raise DataError(message)
    if most is None and errors > FEW and 2 * errors > sentences:
        message = f"{found}are these the references of the same sentences, in the same order?"
        raise DataError(f"{message} (max_error allows any number)")
