"""PARSEVAL from its definition, on ``nltk.Tree``: slow, and as close to the words of EVALB's README as code gets."""

from dataclasses import dataclass

import nltk


@dataclass
class Settings:
    mode: str = "reference"
    labeled: bool = True
    delete: tuple = ("", "TOP", "S1", "ROOT", "-NONE-", ",", ":", "``", "''", ".")
    equal: tuple = (("ADVP", "PRT"),)
    equal_words: tuple = ()
    quote_labels: tuple = ()


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


def without_empties(tree: nltk.Tree) -> nltk.Tree | None:
    """A copy without -NONE- preterminals and without nodes that then have no children."""
    if tree.label() == "-NONE-" and not isinstance(tree[0], nltk.Tree):
        return None
    if not isinstance(tree[0], nltk.Tree):
        return tree
    children = [kept for kept in map(without_empties, tree) if kept is not None]
    return nltk.Tree(tree.label(), children) if children else None


def plain(label: str) -> str:
    for at, letter in enumerate(label):
        if letter in "-=":
            return label[:at] if at > 0 else label
    return label


def same(a: str, b: str, pairs: tuple) -> bool:
    return a == b or (a, b) in pairs or (b, a) in pairs


def brackets(tree: nltk.Tree | None, keep: list[bool], settings: Settings) -> list[tuple[str, int, int]]:
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
        deleted = any(same(plain(node.label()), label, settings.equal) for label in settings.delete)
        if start < stop and not deleted:
            found.insert(here, (plain(node.label()), start, stop))
        return end

    if tree is not None:
        walk(tree, 0)
    return found


def match(gold: list, test: list, settings: Settings) -> int:
    """Every gold bracket takes the first free test bracket that equals it."""
    free = list(test)
    matched = 0
    for label, start, end in gold:
        for other in free:
            if other[1:] == (start, end) and (not settings.labeled or same(label, other[0], settings.equal)):
                free.remove(other)
                matched += 1
                break
    return matched


def crosses(a: tuple, b: tuple) -> bool:
    return a[1] < b[1] < a[2] < b[2] or b[1] < a[1] < b[2] < a[2]


def parseval(gold_tree: nltk.Tree, test_tree: nltk.Tree, settings: Settings | None = None) -> Counts:
    settings = settings or Settings()
    gold_tree, test_tree = without_empties(gold_tree), without_empties(test_tree)
    gold_words = gold_tree.pos() if gold_tree is not None else []
    test_words = test_tree.pos() if test_tree is not None else []
    same_words = len(gold_words) == len(test_words) and all(
        same(a, b, settings.equal_words) for (a, _), (b, _) in zip(gold_words, test_words, strict=True)
    )
    keep_gold = [tag not in settings.delete for _, tag in gold_words]
    keep_test = [tag not in settings.delete for _, tag in test_words]
    if settings.mode == "reference" and same_words:
        keep_test = keep_gold
    if not test_words or (not any(keep_test) and (settings.mode == "evalb" or not any(keep_gold))):
        return Counts(skipped=True)
    if settings.mode != "evalb" and not same_words:
        return Counts(refused=True)
    if settings.mode == "evalb":
        if sum(keep_gold) != sum(keep_test) and len(gold_words) == len(test_words):
            for k, ((word, tag), (other_word, other_tag)) in enumerate(zip(gold_words, test_words, strict=True)):
                marks = word in "'\"/" and other_word in "'\"/"
                if marks and tag in settings.quote_labels and other_tag in settings.quote_labels:
                    keep_gold[k] = keep_test[k] = keep_gold[k] or keep_test[k]
        left = [pair for pair, kept in zip(gold_words, keep_gold, strict=True) if kept]
        test_left = [pair for pair, kept in zip(test_words, keep_test, strict=True) if kept]
        agree = len(left) == len(test_left) and all(
            same(a, b, settings.equal_words) for (a, _), (b, _) in zip(left, test_left, strict=True)
        )
        if not agree:
            return Counts(refused=True)
    else:
        left = [pair for pair, kept in zip(gold_words, keep_gold, strict=True) if kept]
        test_left = [pair for pair, kept in zip(test_words, keep_gold, strict=True) if kept]
    tags = sum(same(plain(a), plain(b), settings.equal) for (_, a), (_, b) in zip(left, test_left, strict=True))
    gold, test = brackets(gold_tree, keep_gold, settings), brackets(test_tree, keep_test, settings)
    matched = match(gold, test, settings)
    crossing = sum(any(crosses(bracket, other) for other in gold) for bracket in test)
    exact = matched == len(gold) == len(test)
    return Counts(matched, len(gold), len(test), crossing, len(left), tags, exact=exact)
