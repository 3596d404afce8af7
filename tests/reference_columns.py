"""The columns of brackets as they are defined, a loop for each."""

import math
from collections import defaultdict

import nltk
import numpy as np
from reference_decoding import Span, posteriors, softmax, spans


def crossing(a: Span, b: Span) -> bool:
    return a[1] < b[1] < a[2] < b[2] or b[1] < a[1] < b[2] < a[2]


def same_words(a: Span, b: Span) -> bool:
    return a != b and a[1:3] == b[1:3]


def log_odds(p: float, least: float = 1e-6) -> float:
    p = min(max(p, least), 1 - least)
    return math.log(p / (1 - p))


def children(found: list[Span], place: int, first: int, last: int, tags: list[str]) -> list[tuple[str, int]]:
    """Of the words from ``first`` to before ``last``, which the bracket before ``place`` holds: the label of each child
    and its place, the tag and -1 of each word that no other bracket holds."""
    own, word = list[tuple[str, int]](), first
    while word < last:
        holder = next((p for p in range(place, len(found)) if found[p][1] <= word < found[p][2]), -1)
        own.append((found[holder][0] if holder >= 0 else tags[word], holder))
        word = found[holder][2] if holder >= 0 else word + 1
    return own


def kin(tree: nltk.Tree, span: Span) -> tuple[list[str], int]:
    """What is around a bracket of a tree: parent, grandparent, siblings, first and last child; how many children."""
    found, tags = spans(tree), [tag for _, tag in tree.pos()]
    place = found.index(span)
    holders = [p for p in range(place) if found[p][1] <= span[1] and span[2] <= found[p][2]]
    above = ["", "", *(found[p][0] for p in holders)]
    whole = (holders[-1] + 1, *found[holders[-1]][1:3]) if holders else (0, 0, len(tags))
    siblings = children(found, *whole, tags)
    at = [p for _, p in siblings].index(place)
    beside = ["", *(label for label, _ in siblings), ""]
    own = [label for label, _ in children(found, place + 1, span[1], span[2], tags)]
    return [above[-1], above[-2], beside[at], beside[at + 2], own[0], own[-1]], len(own)


def columns(
    trees: list[nltk.Tree], scores: np.ndarray, base: np.ndarray, sharpness: float
) -> dict[Span, tuple[list[str], list[float]]]:
    """The symbols and numbers of every bracket that any of the trees has."""
    weights = [softmax(scores, sharpness * scale) for scale in (0.5, 1.0, 2.5)] + [softmax(base, 1.0)]
    flat, middle, sharp, by_base = (posteriors(trees, p) for p in weights)
    has = [set(spans(tree)) for tree in trees]
    best_first = sorted(range(len(trees)), key=lambda t: (-scores[t], t))
    tagged = trees[best_first[0]].pos()
    tags, words = ["", *(tag for _, tag in tagged), ""], ["", *(word.lower() for word, _ in tagged), ""]
    entropy = -sum(p * math.log(p) for p in weights[1] if p > 0)
    found = {}
    for span in middle:
        label, start, end, _ = span
        own = [t for t in best_first if span in has[t]]
        others = [t for t in best_first if span not in has[t]]
        margin = min(max(scores[own[0]] - scores[others[0]], -20.0), 20.0) if others else 20.0
        mass: dict[str, float] = defaultdict(float)
        for t in others:
            crosses = any(crossing(span, other) for other in has[t])
            relabels = not crosses and any(same_words(span, other) for other in has[t])
            for k in (1, 3):
                mass[f"crossed {k}"] += weights[k][t] * crosses
                mass[f"relabelled {k}"] += weights[k][t] * relabels
        numbers = [log_odds(p[span]) for p in (flat, middle, sharp, by_base)]
        numbers += [log_odds(len(own) / len(trees), 0.5 / len(trees)), margin]
        numbers += [mass[f"{what} {k}"] for what in ("crossed", "relabelled") for k in (1, 3)]
        numbers.append(max((middle[other] for other in middle if crossing(span, other)), default=0.0))
        numbers.append(max((middle[other] for other in middle if same_words(span, other)), default=0.0))
        around, size = kin(trees[own[0]], span)
        numbers += [end - start, len(tags) - 2, start, len(trees), entropy, size]
        edges = (start + 1, end, start, end + 1)
        found[span] = [label, *around, *(tags[k] for k in edges), *(words[k] for k in edges)], numbers
    return found


def kept(judged: dict[Span, float], threshold: float) -> list[Span]:
    """The brackets above a threshold, without those that cross a more probable one."""
    found: list[Span] = []
    for span in sorted(judged, key=lambda span: -judged[span]):
        if judged[span] > threshold and not any(crossing(span, other) for other in found):
            found.append(span)
    return found
