"""The answers of lists: found in their candidates by a rule, and right ones that give gains."""

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

import regex  # type: ignore[import-untyped]

from rerank.base.encoding import amount, decoded, encoded
from rerank.data.answers import LAST_LETTER, MATH, PATTERN_SECONDS, WORD, find_box, finder, letter_in, plain
from rerank.readers.lists import Lists
from rerank.readers.problems import Problem, say_once

MAX_MEAN_DIFFERENCE = 0.1  # the difference between two means from which on one of them is doubted


def with_answers(nbest: Lists, rule: str | None) -> Lists:
    """A list with the answers that a rule finds in its candidates, besides those that it has already.

    Raises
    ------
    Problem: a pattern takes too long with a candidate.
    """
    if rule is None:
        return nbest
    answers = list(nbest.answers or [None] * len(nbest))
    try:
        for y, text in enumerate(nbest.texts):
            if answers[y] is None and (answer := answer_in(rule, decoded(text))):
                answers[y] = encoded(answer)
    except Problem as problem:
        raise problem.at(nbest.id, nbest.path, nbest.line) from None
    return nbest.replace(answers=answers)


def answer_in(rule: str, text: str) -> str | None:
    """The form of the answer in a text, None if there is none. Raises Problem."""
    try:
        return plain(finder(rule)(text) or "") or None
    except TimeoutError:
        message = f"the rule {rule!r} takes more than {PATTERN_SECONDS:g} s with a candidate"
        raise Problem("answer", f"{message}; expected a pattern that ends sooner") from None


class Grader:
    """Gives candidates answers and, where these are right, gains, and counts what it gives.

    rule: the one for answers; by default, what is of the right answer's kind is found. rights: the first right answers,
    which say how far letters reach, and by which ``rule`` most answers are found.
    """

    def __init__(self, rule: str | None, rights: Iterable[Any]) -> None:
        self._rule, self._count, self._rules = rule, Counter[str](), dict[str, None]()
        names = [name for right in rights for name in _names(right)[:1]]
        self._reach = max([LAST_LETTER, *map(letter_in, names)])
        self.rule = next((rule for rule, _ in Counter(map(self._rule_of, names)).most_common(1)), None)

    def grade(self, candidates: list[dict[str, Any]], right: Any, log_gain: Any) -> None:
        """Give candidates, objects with a "text", their "answer" and, unless they have one, their "gain", where a right
        answer is known. Raises Problem.

        right: the right answer, or all that it is called. log_gain: what a log says itself of the gain.
        """
        if not (names := _names(right)):
            return
        rule = self._rule_of(names[0])
        forms = (name for name in names if rule == MATH or WORD.search(plain(name)))
        answers, own_answers = {*map(plain, names), *(answer_in(rule, name) for name in forms)} - {None}, list[Any]()
        for one in candidates:
            if not isinstance(text := one.get("answer", one.get("text")), str):
                continue
            one["answer"] = answer_in(rule, text)
            if "gain" not in one:
                own_answers.append(one["answer"])
                one["gain"] = float(one["answer"] in answers)
        if own_answers:
            self._rules[rule], right = None, [answer in answers for answer in own_answers]
            self._count.update(all=len(right), right=sum(right), hopeless=not any(right), none=own_answers.count(None))
            if log_gain in (0, 1):
                self._count.update(logs=1, logged=log_gain, first=right[0])

    def _rule_of(self, right: str) -> str:
        """The rule, or the one that finds what is of the kind of a right answer."""
        if self._rule not in (None, "letter"):
            return str(self._rule)
        if letter := letter_in(right) or (self._rule and LAST_LETTER):
            reach = max(letter, self._reach)
            return "letter" if reach == LAST_LETTER else f"letter:{reach}"
        form = plain(right)
        return "last-number" if regex.search(r"\d", form) and not WORD.search(form) else "text"

    def say(self, path: str) -> None:
        """Log what was given, and what speaks against it; once, though a file is read again."""
        n, advice = self._count, "check the right answers, and the rule that finds those of candidates (answer)"
        if not n["all"]:
            return
        path = f"{path}: " if path else ""
        message = f"{path}gains by answers ({', '.join(self._rules)}): {n['right']:,} of {n['all']:,} right"
        hopeless = f"{amount(n['hopeless'], 'list')} whose right answer nobody gives"
        say_once(f"{message}; {hopeless}; {100 * n['none'] / n['all']:.0f} % without an answer")
        if not n["right"]:
            say_once(f"{path}all gains by answers are 0; {advice}", logging.WARNING)
        means = [n["right"] / n["all"], n["first"] / max(n["logs"], 1)]
        if n["logs"] and min(abs(n["logged"] / n["logs"] - mean) for mean in means) > MAX_MEAN_DIFFERENCE:
            log = f"the log's own exact_match {n['logged'] / n['logs']:.2f}"
            say_once(f"{path}the mean gain by answers is {means[0]:.2f}, {log}; {advice}", logging.WARNING)


def _names(right: Any) -> list[str]:
    """A right answer, or all that it is called; it may stand at the end of a solution."""
    ends = [str(one).rpartition("####")[2].strip() for one in (right if isinstance(right, list) else [right])]
    return [find_box(end) or end for end in ends if end not in ("", "None")]
