"""The lists of the Stanford parser, as its class for printing trees writes them."""

from functools import partial
from pathlib import Path

import numpy as np
import outcomes

from rerank.contrib.formats.parsers import StanfordReader
from rerank.readers.base import Lists

PENN = b"""\
# Parse 1 with score -38.3126
(ROOT
  (S
    (NP (PRP It))
    (VP (VBD rained))
    (. .)))

# Parse 2 with score -41.5E-1
(ROOT
  (S
    (NP (PRP It))
    (VP (VBN rained))
    (. .)))

# Parse 1 with score -7.25
(ROOT
  (NP (NN Art)))

"""
ONE = b"(ROOT (S (NP (PRP It)) (VP (VBD rained)) (. .)))"
TWO = b"(ROOT (S (NP (PRP It)) (VP (VBN rained)) (. .)))"
THREE = b"(ROOT (NP (NN Art)))"
written = partial(outcomes.written, StanfordReader())


def read(root: Path, data: bytes) -> list[Lists]:
    (root / "lists").write_bytes(data)
    return list(StanfordReader().read(root / "lists"))


def test_trees_over_several_lines(tmp_path: Path) -> None:
    first, second = read(tmp_path, PENN)
    assert (first.texts, second.texts) == ([ONE, TWO], [THREE])
    assert (first.base.tolist(), second.base.tolist()) == ([-38.3126, -4.15], [-7.25])
    assert (list(first.lines), first.id, second.id) == ([2, 9], "0", "1")


def test_trees_on_one_line_are_written_as_they_were_read(tmp_path: Path) -> None:
    text = b"# Parse 1 with score -38.5\n%s\n# Parse 2 with score -40.0\n%s\n# Parse 1 with score -7.0\n%s\n"
    text %= ONE, TWO, THREE
    assert b"".join(map(written, read(tmp_path, text))) == text
    (reranked,) = read(tmp_path, written(read(tmp_path, text)[0], None, np.array([0.25, 4.5])))
    assert reranked.scores.tolist() == [[0.25, -38.5], [4.5, -40.0]]


def test_other_output_of_the_parser_is_passed_over(tmp_path: Path) -> None:
    """As with -outputFormat wordsAndTags,penn,typedDependencies."""
    tagged = PENN.replace(b"\n(ROOT", b"\nIt/PRP rained/VBD ./.\n\n(ROOT")
    tagged = tagged.replace(b"(. .)))\n\n", b"(. .)))\n\nnsubj(rained-2, It-1)\nroot(ROOT-0, rained-2)\n\n")
    first, second = read(tmp_path, tagged)
    assert (first.texts, second.texts) == ([ONE, TWO], [THREE])


def test_a_sentence_without_a_parse_is_an_empty_list(tmp_path: Path) -> None:
    failed = b"SENTENCE_SKIPPED_OR_UNPARSABLE\n"
    lists = read(tmp_path, failed + failed + PENN + failed)
    assert [one.size for one in lists] == [0, 0, 2, 1, 0]
    assert written(lists[0]) == failed
    half = PENN.replace(b"# Parse 2 with score -41.5E-1", b"%s Parse #2 with score -Infinity" % failed.strip())
    assert [one.size for one in read(tmp_path, half)] == [1, 1]


def test_a_list_without_its_start_is_bad_and_says_where(tmp_path: Path) -> None:
    first, lost, last = read(tmp_path, PENN + PENN.replace(b"# Parse 1 with", b"# Parse 1 wiht", 1))[1:]
    assert (lost.problem.reason, lost.line) == ("header", 19)
    assert "found '# Parse 1 wiht score -38.3126' where a list starts" in lost.problem.message
    assert (first.texts, last.texts) == ([THREE], [THREE])
    (other,) = read(tmp_path, b"1\tx\n-3\n(NN x)\n")
    assert "expected '# Parse 1 with score ...'" in other.problem.message


def test_the_best_parse_by_itself_before_every_list_is_not_a_candidate(tmp_path: Path) -> None:
    """As ``ParseFiles.processResults`` prints them: the best parse, or ``(())``, then the k best if there are any."""
    text = (
        b"%s\n# Parse 1 with score -38.5\n%s\n# Parse 2 with score -40.0\n%s\n(())\n%s\n# Parse 1 with score -7.0\n%s\n"
    )
    for data in (
        text % (ONE, ONE, TWO, THREE, THREE),
        text.replace(b"%s\n", b"%s\n\n") % (ONE, ONE, TWO, THREE, THREE),
    ):
        lists = read(tmp_path, data)
        assert [one.texts for one in lists if one.problem is None] == [[ONE, TWO], [], [THREE]]
