"""What lists were taken for: their candidates, base scores, gains or references, columns, and what is not used."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from rerank.base.encoding import amount, decoded
from rerank.readers.lists import Lists, one_by_one

log = logging.getLogger("rerank")
MOST = 1000  # lists that are looked at
LENGTH = 60  # characters of an example
GAIN = "gain"


@dataclass(frozen=True)
class Account:
    """What the first lists of a file, MOST at most, were taken for."""

    format: str  # the format, and the form of JSON where it is one that is known
    lists: str  # how many were looked at
    candidates: str  # where they are, and one of them
    base: str = ""  # the base score
    right: str = ""  # the gain or the references, with an example; empty if nothing says what is right
    columns: str = ""  # the names of the scores besides
    unused: str = ""  # the keys that were taken for nothing, with their kind and count
    measure: str = ""  # what is measured, and why

    @staticmethod
    def of(name: str, items: Iterable[Lists], format: str = "", measure: str = "") -> "Account | None":
        """That of lists called ``name``, by default like their file; None if none of them has candidates."""
        every = list(islice(filled(items), MOST))
        if not every:
            return None
        first = next((nbest for nbest in every if len(nbest) > 1), every[0])
        form, key, unused = format or first.form or "lists", "", ""
        if (roles := first.roles) is not None:
            form += f" ({roles.form})" * bool(roles.form)
            key = ".".join(filter(None, (roles.many, *roles.text[: not roles.plain])))
            if roles.gain_key not in ("", GAIN):
                measure = measure.replace(f"mean {GAIN}", f"mean {GAIN}, of the key {roles.gain_key!r}", 1)
            unused = "; ".join(f"{key} ({what})" for key, what in roles.unused.items())
        sizes = [len(nbest) for nbest in every]
        shown = f"{amount(len(every), 'list')}{' or more' * (len(every) == MOST)} of {min(sizes)} to {max(sizes)}"
        return Account(
            f"{name or first.path or 'lists'}: {form}", f"{shown} candidates",
            f"{key}{': ' * bool(key)}{quoted(decoded(first.written(0)))}", _base(first), _right(first, every),
            _columns(first), unused, measure,
        )  # fmt: skip

    def as_data(self) -> dict[str, str]:
        """The account as JSON has it, without what is empty."""
        return {key: value for key, value in vars(self).items() if value}

    @property
    def lines(self) -> list[str]:
        """It in words, six to eight lines."""
        right = self.right or "not in the lists"
        said = {"candidates": self.candidates, "base score": self.base, "what is right": right}
        said |= {"columns": self.columns or "none" * bool(self.base), "not used": self.unused, "measure": self.measure}
        return [f"{self.format}, {self.lists}", *(f"{what}: {text}" for what, text in said.items() if text)]


def said_of(account: Account | None) -> dict[str, Any]:
    """The account as a part of results."""
    return {} if account is None else {"account": account.as_data()}


def tell(account: Account | None) -> None:
    """Say the account."""
    for line in [] if account is None else account.lines:
        log.info("%s", line)


def filled(items: Iterable[Lists]) -> Iterator[Lists]:
    """The lists with candidates."""
    return (nbest for nbest in one_by_one(items) if len(nbest))


def quoted(text: str) -> str:
    """The beginning of a text."""
    text = " ".join(text.split())
    return f'"{text[:LENGTH]}{"..." * (len(text) > LENGTH)}"'


def _base(nbest: Lists) -> str:
    if nbest.unscored or not nbest.scores.shape[1]:
        return "none; all are 0, and the first candidate is the base's choice"
    return f"{nbest.named().names[nbest.column]}, {nbest.base[0] + 0.0:.6g} of this one; higher is better"


def _right(first: Lists, lists: Sequence[Lists]) -> str:
    if first.of_trees:
        return f"gold trees, {quoted(decoded(first.gold.text))}" if first.gold is not None else ""
    said = [f"references, {quoted(decoded(first.references[0]))}"] if first.references else []
    if GAIN in first.names:
        values = np.concatenate([one.scores[:, one.names.index(GAIN)] for one in lists if GAIN in one.names])
        much, key = f"from {values.min():g} to {values.max():g}", ""
        if np.isin(values, (0, 1)).all():
            much = f"{int(values.sum()):,} of {values.size:,} candidates are right"
        if (roles := first.roles) is not None:
            key = roles.gain_key or (f"1 for the candidate that {roles.truth[0]} names" if roles.truth else "")
            key = key or (f"1 for the answer of {roles.right[0]}" if roles.right else "")
        said.append(f"gain{f' ({key})' * bool(key)}, {much}")
    elif first.roles is not None and first.roles.gains:
        said.append(f"{' or '.join(first.roles.gains)} could be; say which: --roles {first.roles.gains[0]}=gain")
    return "; ".join(said)


def _columns(nbest: Lists) -> str:
    names = [name for k, name in enumerate(nbest.names) if k != nbest.column and name != GAIN]
    said = [", ".join(names[:20]) + f" and {len(names) - 20} more" * (len(names) > 20)]
    if nbest.sparse is not None and (few := sorted({*map(decoded, nbest.sparse.names)})):
        said.append(f"sparse features that some candidates have: {', '.join(few[:5])}{', ...' * (len(few) > 5)}")
    return "; ".join(filter(None, said))
