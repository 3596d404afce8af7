"""Bracketed trees as flat arrays, parsed by a kernel over bytes.

Three lines this reads (one tree each; white space, including line breaks, is free)::

    (S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))
    ( (S (NP-SBJ (-NONE- *)) (VP (VB Go))))
    (TOP (NP (NN Art)))

A node with one word below it and nothing else is a preterminal; a word next to other children is an error, and so is a
tree whose words are ``0=It 1=rained``, as those of disco-dop that may be discontinuous. A failed parse, brackets
without a word such as ``(())`` or ``(S1)``, is read as a tree of one trace, ``(-NONE- *)``.

Words that treebanks and parsers write in different ways, as ``\\/`` and ``/``, can be brought to one form. Whether a
quote opens or closes is left to its tag. A bracket that is a word as it is, ``(-LRB- ()``, makes a tree that is
malformed otherwise; it is read where the brackets of its tree balance.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError
from rerank.data.corpus import offsets, ranges_of
from rerank.data.symbols import HashIndex, SymbolTable, find_slot, hash_bytes
from rerank.kernels.compile import kernel

if TYPE_CHECKING:
    import nltk  # takes a second and 95 MB: only where a user asks for its trees

TRACE = "-NONE-"  # the tag of traces, words that are not in the sentence
MAX_LEVELS = 500  # levels of an nltk.Tree; its methods are recursive and fail somewhere beyond
FAILED = b"(-NONE- *)"  # what takes the place of a failed parse: a tree without words
FOREST = "\0"  # the label of a node above several trees; no file holds it
OPEN, CLOSE = np.uint8(ord("(")), np.uint8(ord(")"))


class Trees(NamedTuple):
    """T trees with n nodes in total, each tree in preorder; a preterminal and its word are one node.

    The children of node i start at i + 1; the sibling after c is c + size[c].
    """

    first: np.ndarray  # int64 [T + 1]: nodes of tree t are first[t]..first[t + 1]
    label: np.ndarray  # int32 [n]: symbol id of the label
    word: np.ndarray  # int32 [n]: symbol id of a preterminal's word, -1 for nonterminals
    parent: np.ndarray  # int32 [n]: node index of the parent, -1 for a root
    size: np.ndarray  # int32 [n]: nodes of the subtree, itself included
    start: np.ndarray  # int32 [n]: first leaf position of the span
    end: np.ndarray  # int32 [n]: one past its last leaf position


def subset(trees: Trees, indices: Sequence[int]) -> Trees:
    """The trees ``indices``."""
    at = np.array(indices, np.int64)
    first, nodes = offsets(np.diff(trees.first)[at]), ranges_of(trees.first, at)
    out = Trees(first, *(array[nodes] for array in trees[1:]))
    shift = np.repeat(first[:-1] - trees.first[at], np.diff(first))
    return out._replace(parent=np.where(out.parent < 0, -1, out.parent + shift).astype(np.int32))


_DISCONTINUOUS = (
    "the words of the tree have their places before them, as 0=word, so its brackets need not be spans; write "
    "continuous trees, as with discodop treetransforms --splitdisc --inputfmt=discbracket --outputfmt=bracket (what "
    "scores discontinuous ones is discodop eval)"
)
_MESSAGES = {
    1: "text outside of a tree; a tree starts with '('",
    2: "a ')' without its '('",
    3: "the tree is not closed: a ')' is missing",
    4: "a word beside other children; every word needs a preterminal of its own, as (NN word)",
    5: "a node without children; expected (label word) or (label (child) ...)",
    6: "no tree; expected '(...)'",
    7: "more than one tree where one was expected",
}
_WORDLESS = 5, 6  # the errors that a failed parse can have
_FULL = 8  # the kernel's code for more new symbols than there is room for
FIRST_SYMBOLS = 1 << 8  # room for new symbols in one call, at first


@kernel
def _is_space(byte: np.uint8) -> bool:
    return bool(byte == 32 or 9 <= byte <= 13)


@kernel
def parse_trees(  # noqa: PLR0915 - one automaton; its states share all variables
    data: np.ndarray, bounds: np.ndarray, keys: np.ndarray, ids: np.ndarray, first_id: int, out: Trees, new: np.ndarray
) -> tuple[int, int, int, int]:
    """Parse the trees at ``data[bounds[t]:bounds[t + 1]]`` (uint8; int64 [T + 1]) into ``out``.

    ``keys, ids`` are a HashIndex with room for all symbols that ``new`` (int64 [:, 3]) can take; symbols not in it
    get the ids ``first_id, first_id + 1, ...``; their first and last bytes and their hashes go to ``new``.

    Returns (error code, byte position of the error, tree of the error, number of new symbols); code 0 is
    success, ``_FULL`` means that ``new`` is too short.
    """
    node, new_count = 0, 0
    for t in range(bounds.shape[0] - 1):
        out.first[t] = node
        position, current, leaves = bounds[t], -1, 0
        root = node
        while position < bounds[t + 1]:
            byte = data[position]
            if _is_space(byte):
                position += 1
                continue
            if byte == CLOSE:
                if current < 0:
                    return 2, position, t, new_count
                out.size[current] = node - current
                out.end[current] = leaves
                if out.size[current] == 1 and out.word[current] < 0:
                    return 5, position, t, new_count
                current = out.parent[current]
                position += 1
                continue
            if current < 0 and node > root:
                return (7 if byte == OPEN else 1), position, t, new_count
            is_label = byte == OPEN
            if is_label:
                position += 1
                while position < bounds[t + 1] and _is_space(data[position]):
                    position += 1
            elif current < 0:
                return 1, position, t, new_count
            begin = position
            while position < bounds[t + 1]:
                byte = data[position]
                if byte in (OPEN, CLOSE) or _is_space(byte):
                    break
                position += 1
            h = hash_bytes(data, begin, position)
            slot = find_slot(keys, h)
            if keys[slot] != h:
                if new_count == new.shape[0]:
                    return _FULL, begin, t, new_count
                keys[slot] = h
                ids[slot] = first_id + new_count
                new[new_count, 0], new[new_count, 1], new[new_count, 2] = begin, position, np.int64(h)
                new_count += 1
            if is_label:
                if current >= 0 and out.word[current] >= 0:
                    return 4, begin, t, new_count
                out.label[node], out.word[node] = ids[slot], -1
                out.parent[node], out.start[node] = current, leaves
                current = node
                node += 1
            else:
                if node != current + 1 or out.word[current] >= 0:
                    return 4, begin, t, new_count
                out.word[current] = ids[slot]
                leaves += 1
        if current >= 0:
            return 3, bounds[t + 1], t, new_count
        if node == root:
            return 6, bounds[t], t, new_count
    out.first[bounds.shape[0] - 1] = node
    return 0, 0, 0, new_count


def without_features(label: str) -> str:
    """A label without the features that treebanks of SPMRL give it between ``##``, as EVALB_SPMRL reads it.

    >>> without_features("DET##lemma=le|s=def##"), without_features("##")
    ('DET', '##')
    """
    return label[:1] + label[1:].partition("##")[0]


def is_failed(text: bytes) -> bool:
    """Whether ``text`` is a failed parse: nothing at all, or brackets, perhaps with labels, but no word."""
    if re.search(rb"[^\s()]\s+[^\s()]|\)\s*[^\s()]", text):  # what does not follow a bracket directly is a word
        return False
    depths = list(accumulate((1 if byte == OPEN else -1 for byte in text if byte in (OPEN, CLOSE)), initial=0))
    return min(depths) == depths[-1] == 0


def parse_brackets(
    texts: list[bytes], symbols: SymbolTable, *, path: str | None = None, lines: Sequence[int] | None = None,
    list_id: str | None = None,
) -> Trees:  # fmt: skip
    """The bracketed trees ``texts`` as ``Trees``; new labels and words are added to ``symbols``.

    Failed parses become ``FAILED``. ``lines`` (line number of every text), ``path`` and ``list_id`` tell in errors
    where the texts are from.
    """
    raw = b"".join(texts)
    for t, text in enumerate(texts) if b"0=" in raw else ():
        words = [word for bracket, word in re.findall(rb"(\(?)\s*([^\s()]+)", text) if not bracket]
        places = [int(match[1]) for word in words if (match := re.match(rb"(\d{1,9})=", word))]
        if words and sorted(places) == list(range(len(words))):
            raise DataError(_DISCONTINUOUS, path=path, line=None if lines is None else lines[t], list_id=list_id)
    data = np.frombuffer(raw, dtype=np.uint8)
    bounds = offsets(list(map(len, texts)))
    nodes = raw.count(b"(")
    out = Trees(np.zeros(len(texts) + 1, np.int64), *(np.empty(nodes, np.int32) for _ in range(6)))
    code, room = _FULL, FIRST_SYMBOLS
    while code == _FULL:  # when the trees are parsed again, the symbols that had room are known
        symbols.reserve(room)
        new = np.empty((room, 3), np.int64)
        index: HashIndex = symbols.index
        code, position, tree, new_count = parse_trees(data, bounds, index.keys, index.number, len(symbols), out, new)
        symbols.adopt(raw, new[:new_count])
        room *= 4
    if code in _WORDLESS and any(map(is_failed, texts)):
        replacements = [FAILED if is_failed(text) else text for text in texts]
        return parse_brackets(replacements, symbols, path=path, lines=lines, list_id=list_id)
    if code:
        line = None if lines is None else lines[tree] + raw.count(b"\n", bounds[tree], position)
        near = raw[max(position - 20, bounds[tree]) : min(position + 20, bounds[tree + 1])].decode("utf-8", "replace")
        raise DataError(f"{_MESSAGES[code]} (near {near!r})", path=path, line=line, list_id=list_id)
    return out


def brackets(trees: Trees, tree: int, symbols: SymbolTable) -> str:
    """Tree ``tree`` as a bracketed text."""
    text, open_nodes = "", list[int]()
    for node in range(int(trees.first[tree]), int(trees.first[tree + 1])):
        while open_nodes and open_nodes[-1] != trees.parent[node]:
            open_nodes.pop()
            text += ")"
        word = int(trees.word[node])
        text += f"{' ' if open_nodes else ''}({symbols.text(int(trees.label[node]))}"
        text += f" {symbols.text(word)}" if word >= 0 else ""
        open_nodes.append(node)
    return text + ")" * len(open_nodes)


def to_nltk(trees: Trees, tree: int, symbols: SymbolTable) -> "nltk.Tree":
    """Tree ``tree`` as an ``nltk.Tree``, the type users get."""
    import nltk

    first, last = int(trees.first[tree]), int(trees.first[tree + 1])
    nodes: dict[int, nltk.Tree] = {}
    level: dict[int, int] = {-1: 0}
    for node in range(first, last):
        parent, word = int(trees.parent[node]), int(trees.word[node])
        level[node] = level[parent] + 1
        if level[node] > MAX_LEVELS:
            raise DataError(f"a tree of more than {MAX_LEVELS} levels; nltk cannot handle it: leave this list out")
        nodes[node] = nltk.Tree(symbols.text(int(trees.label[node])), [] if word < 0 else [symbols.text(word)])
        if node > first:
            nodes[parent].append(nodes[node])
    return nodes[first]


CANDIDATES, GOLD = "candidates", "gold trees"  # the sides whose words are counted
_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
_ORNAMENTS = {"❨": "-LRB-", "❩": "-RRB-"}  # what parses as a word in place of ( and )
_FORMS = str.maketrans(_BRACKETS | _ORNAMENTS | dict.fromkeys("“”„‟", '"') | dict.fromkeys("`‘’‚‛", "'"))
_AFFECTED = re.compile(r"[][\\`'‘’‚‛“”„‟(){}❨❩]")
_WORD = re.compile(r"(\s)([^\s()]+)(?=\s*\))")  # not a label, which a bracket precedes and something follows
_LITERAL = re.compile(rb"\(([^\s()]+)\s+([()])\)")


def normal_word(word: str) -> str:
    """The form of a word that all ways to write it share."""
    if not _AFFECTED.search(word):
        return word
    form = word.replace("\\/", "/").replace("\\*", "*").translate(_FORMS)
    return '"' if form == "''" else form


def normal_text(text: bytes) -> bytes:
    """The text of a tree with its words in normal form."""
    (text,) = bracket_words([text])
    return encoded(_WORD.sub(lambda match: match[1] + normal_word(match[2]), decoded(text)))


def bracket_words(texts: list[bytes]) -> list[bytes]:
    """The texts of trees with brackets that are words, as in ``(-LRB- ()``, in a form that can be parsed, and that
    ``normal_word`` changes."""
    return [_without_brackets(text, "❨❩") for text in texts]


def escape_brackets(text: bytes) -> bytes:
    """The text of a tree with brackets that are words as -LRB- and -RRB-, as most programs need them."""
    return _without_brackets(text, (_BRACKETS["("], _BRACKETS[")"]))


def _without_brackets(text: bytes, forms: Sequence[str]) -> bytes:
    """The text of a tree with other ``forms`` of "(" and ")" where these are words; not a failed parse, ``(S1 ())``."""
    if (b" ()" not in text and b" ))" not in text) or is_failed(text):
        return text
    return _LITERAL.sub(lambda match: b"(%b %b)" % (match[1], forms[b"()".index(match[2])].encode()), text)


def bracket_advice(text: bytes) -> str:
    """The advice, for a message about a tree that is malformed, if brackets are words in it."""
    return "; brackets are words in it: set data.normalize: true (--normalize)" if escape_brackets(text) != text else ""


def no_changes() -> Counter[str]:
    """The numbers of words of both sides that have been changed so far: none."""
    return Counter({CANDIDATES: 0, GOLD: 0})


def changes(counts: Mapping[str, int]) -> str:
    """The ``counts`` of words that have been changed, for a message."""
    return f"words normalised: {', '.join(f'{number:,} of {side}' for side, number in counts.items())}"


def normal_trees(trees: Trees, symbols: SymbolTable, counts: Counter[str], side: str) -> Trees:
    """The trees with their words in normal form; ``counts``: of the words that this changes, by side."""
    leaves = trees.word >= 0
    words, inverse = np.unique(trees.word[leaves], return_inverse=True)
    forms = [symbols.intern(normal_word(symbols.text(word))) for word in words.tolist()]
    word = trees.word.copy()
    word[leaves] = np.array(forms, np.int32)[inverse]
    counts[side] += int(np.count_nonzero(word != trees.word))
    return trees._replace(word=word)


def same_yield(trees: Trees, other: Trees, t: int, trace: int) -> int:
    """The first of ``trees`` whose words differ from those of tree ``t`` of ``other``, -1 if all have the same words.

    Words under the label ``trace`` (a symbol id) do not count, nor do trees without words.
    """
    target, nodes = other.word[leaves(other, trace, t)], leaves(trees, trace)
    tree, words = np.searchsorted(trees.first, nodes, side="right") - 1, trees.word[nodes]
    counts = np.bincount(tree, minlength=trees.first.size - 1)
    position = np.arange(tree.size) - np.repeat(np.cumsum(counts) - counts, counts)
    unlike, fits = (counts != 0) & (counts != target.size), position < target.size
    unlike[tree[fits][words[fits] != target[position[fits]]]] = True
    return int(np.argmax(unlike)) if unlike.any() else -1


def leaves(trees: Trees, trace: int, t: int | None = None) -> np.ndarray:
    """int64: the nodes of all trees, or of tree ``t``, that have words which count."""
    nodes = slice(0, None) if t is None else slice(int(trees.first[t]), int(trees.first[t + 1]))
    return np.flatnonzero((trees.word[nodes] >= 0) & (trees.label[nodes] != trace)) + nodes.start


def yield_words(trees: Trees, t: int, symbols: SymbolTable) -> list[str]:
    """The words of tree ``t``, without traces."""
    return [symbols.text(word) for word in trees.word[leaves(trees, symbols.intern(TRACE), t)].tolist()]


def equal_form(trees: Trees, other: Trees, symbols: SymbolTable) -> str:
    """The advice, for a message about words that differ, if those of ``trees`` and of tree 0 are equal normalised."""
    forms = [normal_trees(side, symbols, no_changes(), GOLD) for side in (trees, other)]
    equal = same_yield(forms[0], forms[1], 0, symbols.intern(TRACE)) < 0
    return "; they differ in escapes, quotes or brackets only: set data.normalize: true (--normalize)" if equal else ""


def difference(one: list[str], two: list[str]) -> str:
    """The first difference between two sentences, for a message."""
    index = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    excerpts = [" ".join(words[index : index + 3]) or "the end" for words in (one, two)]
    return f"{len(one)} and {len(two)} words; at word {index + 1} {excerpts[0]!r} and {excerpts[1]!r}"
