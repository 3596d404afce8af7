"""What lists were taken for: their candidates, base scores, gains or references, columns, and what is not used."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from rerank.base.encoding import amount, decoded
from rerank.readers.lists import Lists, one_by_one
from rerank.readers.texts.text_list import SCORE

log = logging.getLogger("rerank")
MOST = 1000  # lists that are looked at
LENGTH = 60  # characters of an example
GAIN = "gain"


@dataclass(frozen=True)
class Account:
    """What the first lists of a file, MOST at most, were taken for.

    | field      | meaning |
    |------------|---------|
    | format     | the format, and the form of JSON where it is one that is known |
    | lists      | how many were looked at |
    | candidates | where they are, and one of them |
    | base       | the base score |
    | right      | the gain or the references, with an example; empty if nothing says what is right |
    | columns    | the names of the scores besides |
    | unused     | the keys that were taken for nothing, with their kind and count |
    | measure    | what is measured, and why |
    """

    format: str
    lists: str
    candidates: str
    base: str = ""
    right: str = ""
    columns: str = ""
    unused: str = ""
    measure: str = ""

    @staticmethod
    def of(name: str, items: Iterable[Lists], format: str = "", measure: str = "") -> "Account | None":
        """That of lists called ``name``, by default like their file; None if none of them has candidates."""
        every = list(islice(filled(items), MOST))
        if not every:
            return None
        first = next((nbest for nbest in every if len(nbest) > 1), every[0])
        roles = getattr(first, "roles", None)
        name = name or first.path or "lists"
        known = f" ({roles.form})" if roles is not None and roles.form else ""
        sizes = [len(nbest) for nbest in every]
        shown = f"{amount(len(every), 'list')}{' or more' * (len(every) == MOST)} of {min(sizes)} to {max(sizes)}"
        key = "" if roles is None else ".".join(filter(None, (roles.many, *roles.text[: not roles.plain])))
        where = f"{key}: " if key else ""
        return Account(
            f"{name}: {format or first.form or 'lists'}{known}", f"{shown} candidates",
            f"{where}{quoted(decoded(first.written(0)))}", _base(first), _right(first, every), _columns(first),
            "" if roles is None else "; ".join(f"{key} ({what})" for key, what in roles.unused.items()), measure,
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

    def __str__(self) -> str:
        return "\n".join(self.lines)


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
    names = nbest.names
    if getattr(nbest, "unscored", False) or not nbest.scores.shape[1]:
        return "none; all are 0, and the first candidate is the base's choice"
    name = names[nbest.column] if names else SCORE
    return f"{name}, {nbest.base[0] + 0.0:.6g} of this one; higher is better"


def _right(first: Lists, lists: Sequence[Lists]) -> str:
    if first.of_trees:
        return f"gold trees, {quoted(decoded(first.gold.text))}" if first.gold is not None else ""
    said = [f"references, {quoted(decoded(first.references[0]))}"] if first.references else []
    if GAIN in first.names:
        columns = (nbest.scores[:, nbest.names.index(GAIN)] for nbest in lists if GAIN in nbest.names)
        values = np.concatenate(list(columns))
        much = f"from {values.min():g} to {values.max():g}"
        if np.isin(values, (0, 1)).all():
            much = f"{int(values.sum()):,} of {values.size:,} candidates are right"
        key = "" if first.roles is None else _gain_key(first.roles)
        said.append(f"gain{f' ({key})' * bool(key)}, {much}")
    return "; ".join(said)


def _gain_key(roles: Any) -> str:
    """Where the gain of candidates is from."""
    if not roles.gain_key and roles.truth:
        return f"1 for the candidate that {roles.truth[0]} names"
    return str(roles.gain_key) or (f"1 for the answer of {roles.right[0]}" if roles.right else "")


def _columns(nbest: Lists) -> str:
    names = [name for k, name in enumerate(nbest.names) if k != nbest.column and name != GAIN]
    sparse = getattr(nbest, "sparse", None)
    few = sorted(set(map(decoded, sparse.names))) if sparse is not None else []
    said = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    shown = f"sparse features that some candidates have: {', '.join(few[:5])}{', ...' * (len(few) > 5)}" if few else ""
    return "; ".join(filter(None, [said, shown]))
