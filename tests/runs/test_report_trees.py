"""Drawn trees: the layout's promises, the marks, and SVG that parses."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from synthetic_report import SENTENCES

from rerank.runs.report.trees import draw_example, read_trees, text_width

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg, kind):
    """[(text, x, y)] of one class of texts."""
    root = ET.fromstring(svg)
    return [
        ("".join(text.itertext()), float(text.get("x")), float(text.get("y")))
        for text in root.iter(f"{SVG}text")
        if text.get("class") == kind
    ]


def width_of(svg):
    return float(ET.fromstring(svg).get("viewBox").split()[2])


def boxes(svg, kind):
    """The texts in boxes of one kind."""
    groups = [group for group in ET.fromstring(svg).iter(f"{SVG}g") if group.get("class") == kind]
    return ["".join(group.itertext()) for group in groups]


def test_three_trees_or_two():
    assert [drawing.role for drawing in draw_example(*SENTENCES[0])] == ["gold", "base", "chosen"]
    drawings = draw_example(*SENTENCES[3])
    assert [(drawing.role, drawing.title) for drawing in drawings] == [("gold", "Gold"), ("both", "Base and chosen")]


def test_marks_of_a_sentence():
    gold, base, chosen = draw_example(
        "(S1 (S (NP (NN a) (NN b)) (VP (VB c) (NP (NN d) (NN e)))))",
        "(S1 (S (NN a) (NN b) (VP (VB c) (ADJP (NN d) (NN e)))))",
        "(S1 (S (NP (NN a) (NN b)) (VB c) (NP (NN d) (NN e))))",
    )
    assert boxes(gold.svg, "missed") == ["NP−B", "VP−C", "NP−B"]
    assert boxes(base.svg, "wrong") == ["ADJP×"]
    assert boxes(chosen.svg, "wrong") == boxes(gold.svg, "wrong") == []


@pytest.mark.parametrize("sentence", SENTENCES)
def test_layout(sentence):
    drawings, trees = draw_example(*sentence), read_trees(sentence)
    columns = {tuple(x for _, x, _ in texts(drawing.svg, "word")) for drawing in drawings}
    assert len(columns) == 1, "trees of the same words have the same columns"
    for drawing, tree in zip(drawings, trees, strict=False):
        words, tags = texts(drawing.svg, "word"), texts(drawing.svg, "tag")
        assert [text for text, _, _ in words] == [tree.words[leaf] for leaf in tree.leaves]
        assert len({y for _, _, y in words}) == len({y for _, _, y in tags}) == 1, "words are on one line"
        assert [x for _, x, _ in words] == [x for _, x, _ in tags]
        width = width_of(drawing.svg)
        for (_, x, _), (_, following, _) in pairwise(words):
            assert x < following
        for row in (words, tags, texts(drawing.svg, "label")):
            assert_apart(row, width)


def assert_apart(row, width):
    """Texts on one line do not overlap and stay within the picture."""
    spans = sorted((y, x - text_width(text) / 2, x + text_width(text) / 2) for text, x, y in row)
    for (y, _, right), (below, left, _) in pairwise(spans):
        assert y != below or right < left
    assert all(left >= 0 and right <= width for _, left, right in spans)


def test_parents_are_in_the_middle_of_their_words_and_above_them():
    gold = draw_example("(S (NPX (AA a) (BB a)) (VB a))", *["(S (AA a) (BB a) (VB a))"] * 2)[0]
    place = {text.partition("−")[0]: (x, y) for text, x, y in texts(gold.svg, "label") + texts(gold.svg, "tag")}
    assert place["NPX"][0] == pytest.approx((place["AA"][0] + place["BB"][0]) / 2, abs=2)
    assert place["S"][0] == pytest.approx(width_of(gold.svg) / 2, abs=0.11)
    assert place["S"][1] < place["NPX"][1] < place["AA"][1] == place["VB"][1]


def test_a_long_label_over_a_short_word_gets_its_room():
    gold = draw_example(*["(S (WHADVP (NN a)) (WHADVP (NN b)) (WHADVP (NN c)))"] * 3)[0]
    assert_apart(texts(gold.svg, "label"), width_of(gold.svg))


def test_a_failed_parse_is_drawn_as_a_trace():
    gold, base, _ = draw_example("(S (NP (NN a)) (NN b))", "(())", "(S (NP (NN a)) (NN b))")
    assert "-NONE-" in base.svg
    assert "NN" in gold.svg
