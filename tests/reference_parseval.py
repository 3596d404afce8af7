"""PARSEVAL from its definition, on ``nltk.Tree``: slow, and as close to the words of EVALB's README as code gets."""

from dataclasses import dataclass

import nltk
from reference_decoding import crossing, without_traces

from rerank.metrics.parseval import Parseval


@dataclass
class Counts:
    matched: int = 0
    gold: int = 0
    test: int = 0
    crossing: int = 0
    words: int = 0
    tags: int = 0
    refused: bool = False
    skipped: bool = False
    exact: bool = False


def plain(label: str) -> str:
    for at, letter in enumerate(label):
        if letter in "-=":
            return label[:at] if at > 0 else label
    return label


def same(a: str, b: str, pairs: tuple) -> bool:
    return a == b or (a, b) in pairs or (b, a) in pairs


def brackets(tree: nltk.Tree | None, keep: list[bool], metric: Parseval) -> list[tuple[str, int, int]]:
    """(label, start, end) of the nonterminals, in kept words."""
    found = []

    def walk(node: nltk.Tree, position: int) -> int:
        if not isinstance(node[0], nltk.Tree):
            return position + 1
        end = position
        here = len(found)
        for child in node:
            end = walk(child, end)
        start, stop = sum(keep[:position]), sum(keep[:end])
        deleted = any(same(plain(node.label()), label, metric.equal_labels) for label in metric.delete)
        if start < stop and not deleted:
            found.insert(here, (plain(node.label()), start, stop))
        return end

    if tree is not None:
        walk(tree, 0)
    return found


def match(gold: list, test: list, metric: Parseval) -> int:
    """Every gold bracket takes the first free test bracket that equals it."""
    free = list(test)
    matched = 0
    for label, start, end in gold:
        for other in free:
            if other[1:] == (start, end) and (not metric.labeled or same(label, other[0], metric.equal_labels)):
                free.remove(other)
                matched += 1
                break
    return matched


def parseval(gold_tree: nltk.Tree, test_tree: nltk.Tree, metric: Parseval) -> Counts:
    trees = without_traces(gold_tree), without_traces(test_tree)
    gold_words, test_words = ([] if tree is None else tree.pos() for tree in trees)

    def alike(one: list, other: list) -> bool:
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(same(a, b, metric.equal_words) for (a, _), (b, _) in pairs)

    evalb = metric.punctuation == "evalb"
    keep_gold, keep_test = ([tag not in metric.delete for _, tag in words] for words in (gold_words, test_words))
    if not evalb and alike(gold_words, test_words) and metric.punctuation == "reference":
        keep_test = keep_gold
    if not test_words or (not any(keep_test) and (evalb or not any(keep_gold))):
        return Counts(skipped=True)
    if not evalb and not alike(gold_words, test_words):
        return Counts(refused=True)
    if evalb and sum(keep_gold) != sum(keep_test) and len(gold_words) == len(test_words):
        for k, ((word, tag), (other_word, other_tag)) in enumerate(zip(gold_words, test_words, strict=True)):
            marks = word in "'\"/" and other_word in "'\"/"
            if marks and tag in metric.quote_labels and other_tag in metric.quote_labels:
                keep_gold[k] = keep_test[k] = keep_gold[k] or keep_test[k]
    sides = (gold_words, keep_gold), (test_words, keep_test if evalb else keep_gold)
    left, test_left = ([pair for pair, kept in zip(*side, strict=True) if kept] for side in sides)
    if not alike(left, test_left):
        return Counts(refused=True)
    tags = sum(same(plain(a), plain(b), metric.equal_labels) for (_, a), (_, b) in zip(left, test_left, strict=True))
    gold, test = brackets(trees[0], keep_gold, metric), brackets(trees[1], keep_test, metric)
    matched = match(gold, test, metric)
    crossed = sum(any(crossing(bracket, other) for other in gold) for bracket in test)
    exact = matched == len(gold) == len(test)
    return Counts(matched, len(gold), len(test), crossed, len(left), tags, exact=exact)
