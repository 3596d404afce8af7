"""Rules that find answers: what counts as one, in what is written in many ways, and in what would never end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.base.errors import DataError, RecipeError
from rerank.readers.texts.answers import finder, with_answers
from rerank.readers.texts.text_list import TextList


def found(rule: str, *texts: str) -> list[str | None]:
    nbest = TextList("7", "f", 1, [text.encode() for text in texts], [1] * len(texts), np.zeros((len(texts), 1)))
    answers = with_answers(nbest, rule).answers
    return [None if answer is None else answer.decode() for answer in answers or ()]


@pytest.mark.parametrize(
    ("rule", "texts", "answer"),
    [
        ("last-number", ["1,000", "it is 1000.0.", "= 1e3", "2, then 1,000, and no more", "5 kg+1000"], "1000"),
        ("last-number", ["-5", "x = −5.00", "(-5)", "-$5", "1,-5.0"], "-5"),
        ("last-number", ["1,2,5", "1,0000,5", "$5", "5 = 0x10"], "5"),
        ("last-number", ["9-5", "5kg", "5%", "H2O: 5"], "5"),
        ("last-number", ["none", "H2O", "v1.5", ""], None),
        ("last-number", ["0.10000000000000000000000000000001"], "0.10000000000000000000000000000001"),
        ("boxed", ["\\boxed{\\frac{1}{2}}", "\\boxed{3} or \\boxed{ \\frac{1}{2} }", "\\boxed{\\frac{1}{2}} \\boxed{"],
         "\\frac{1}{2}"),
        ("boxed", ["\\boxed{\\boxed{1,000}}", "{\\boxed{1e3}}"], "1000"),
        ("boxed", ["\\boxed{}", "\\boxed{1", "{{}}", "}}}"], None),
        ("letter", ["(B)", "**B**", "Answer: B", "A? No: B.", "\\text{B}"], "B"),
        ("letter", ["Because", "F", "AB", "A1", "b"], None),
        ("text", [".5", "(.5)", "0.5.", ".50"], "0.5"),
        ("text", ["The CAT!", " the cat ", '"The cat."'], "the cat"),
        ("json:x", ['{"x": 17}', '{"x": "17.0"}', '`{"y": {"x": 2}, "x": "17"}` {"x', '[{"x": 1}, {"x": 17}]'], "17"),
        ("json:x", ['{"x": {"b": [1.0, null], "a": "c"}}'], '{"a": "c", "b": ["1", null]}'),
        ("json:x", ['{"x": null}', '{"y": 1}', "{" * 5000, '{"x":' * 5000], None),
        ("regex:is (\\w+)", ["is 4, is five", "is five"], "five"),
    ],
)  # fmt: skip
def test_a_rule_finds_one_answer_in_all_that_say_the_same(rule: str, texts: list[str], answer: str | None) -> None:
    assert found(rule, *texts) == [answer] * len(texts)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=6))
def test_numbers_are_equal_as_they_are_written(number: object) -> None:
    one, other = found("last-number", f"{number:,}", f"{number:.6e}" if number else "0")
    assert one == found("last-number", f"{number}")[0]
    assert float(other or 0) == pytest.approx(float(one or 1), rel=1e-5, abs=1e-9)


def test_a_pattern_without_an_end_is_stopped() -> None:
    with pytest.raises(DataError, match=r"list 7.*ends sooner"):
        found("regex:(a|aa)+$", "a" * 60 + "b")
    assert found("last-number", "1,000" + ",000" * 200_000 + ",00") == ["0"]
    assert found("boxed", "\\boxed{" * 100_000) == found("json:x", '{"a":' * 100_000) == [None]
    for wrong in ("number", "json:", "regex:(", "regex:(?:(?:(?:(?:a?){50}){50}){50}){50}", "regex:(ab){1,9999999999}"):
        with pytest.raises(RecipeError, match="expect"):
            finder(wrong)
