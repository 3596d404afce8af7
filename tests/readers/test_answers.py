"""Rules that find answers: what counts as one, in what is written in many ways, and in what would never end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rerank
from rerank.base.errors import DataError, RecipeError
from rerank.data.answers import finder, plain
from rerank.readers.lists import Lists
from rerank.readers.texts.answers import Grader, with_answers


def found(rule: str, *texts: str) -> list[str | None]:
    nbest = Lists.one("7", "f", 1, [text.encode() for text in texts], [1] * len(texts), np.zeros((len(texts), 1)))
    answers = with_answers(nbest, rule).answers
    return [None if answer is None else answer.decode() for answer in answers or ()]


@pytest.mark.parametrize(
    ("rule", "texts", "answer"),
    [
        ("last-number", ["1,000", "it is 1000.0.", "= 1e3", "2, then 1,000, and no more", "5 kg+1000"], "1000"),
        ("last-number", ["-5", "x = −5.00", "(-5)", "-$5", "5,-5.0 is wrong: -5"], "-5"),
        ("last-number", ["5.", "x=5", "$5", "5 = 0x10"], "5"),
        ("last-number", ["\\boxed{\\frac 12} of 3", "0.5", "so \\frac12.", "x = 1/2 cup", "$x=\\frac{1}{2}$"], "0.5"),
        ("last-number", ["[1, 2)", "It is [1,2).", "x \\in [1, 2)", "\\left[1, 2\\right)"], "[1, 2)"),
        ("last-number", ["x+5", "It is x + 5", "x^2=x+5", "\\boxed{x + 5}"], ["x+5", "x+5", "x^2=x+5", "x+5"]),
        ("last-number", ["1 000", "so 1\u202f000.", "x = 1,000", "f(2) = 1,000", "(1,000)", "≈ 1,000"], "1000"),
        ("last-number", ["It is .5.", "= .5", "**.5**", "½", "so ½ cup", "x ≈ 0.5", "≈ 0.5"], "0.5"),
        ("last-number", ["1½", "1½ cups", "1 1/2", "= 1.5"], "1.5"),
        ("last-number", ["x = 1,234,567", "2 + 3 = - 5", "1,234 2345"], ["1234567", "-5", "2345"]),
        ("last-number", ["9-5", "5kg", "5%", "H2O: 5"], "5"),
        ("last-number", ["none", "H2O", "v1.5", ""], None),
        ("last-number", ["0.10000000000000000000000000000001"], "0.10000000000000000000000000000001"),
        ("boxed", ["\\boxed{\\frac{1}{2}}", "\\boxed{3} or \\boxed{ \\frac{1}{2} }", "\\boxed{\\frac{1}{2}} \\boxed{"],
         "0.5"),
        ("boxed", ["\\boxed{\\boxed{1,000}}", "{\\boxed{1e3}}"], "1000"),
        ("boxed", ["\\boxed{1 000}", "\\boxed{x = 1,000}", "\\boxed{\\approx 1000}", "\\boxed{a = b = 1,000}"], "1000"),
        ("boxed", ["\\boxed{(1,234)}", "\\boxed{\\frac12 \\text{ units}^2}"], ["(1, 234)", "0.5"]),
        ("boxed", ["\\boxed{9.8 m/s^2}", "\\boxed{9.8\\text{ m/s}}", "\\boxed{\\boldsymbol{9.8}}"], "9.8"),
        ("boxed", ["\\boxed{}", "\\boxed{1", "{{}}", "}}}"], None),
        ("letter", ["(B)", "**B**", "Answer: B", "A? No: B.", "\\text{B}", "It is 'B'.", "I'd say B"], "B"),
        ("letter", ["B. A proof follows.", "B, as I said", "\\boxed{\\textbf{(B)} 5}", "\\boxed{B}, not A"], "B"),
        ("letter", ["\\boxed{A, B}", "\\boxed{5} (A)", "(F)"], ["A, B", "5", None]),
        ("letter:J", ["(J)", "So (K), or J?"], "J"),
        ("letter", ["Because", "F", "AB", "A1", "b"], None),
        ("boxed", ["\\boxed{p - q}", "\\boxed{p-q}"], "p-q"),
        ("text", [".5", "(.5)", "0.5.", ".50"], "0.5"),
        ("text", ["¿Qué?", "qué。", "（Qué）"], "qué"),
        ("text", ["The CAT!", " the cat ", '"The cat."'], "the cat"),
        ("json:x", ['{"x": 17}', '{"x": "17.0"}', '`{"y": {"x": 2}, "x": "17"}` {"x', '[{"x": 1}, {"x": 17}]'], "17"),
        ("json:x", ['{"y": {"x": 2}}', '{"x": 1, "y": [{"x": 3}]} {"y": {"x": 2}}', '{"x": 2, "y": {"x": 1}}'], "2"),
        ("json:x", ['{"x": {"b": [1.0, null], "a": "c"}}'], '{"a": "c", "b": ["1", null]}'),
        ("json:x", ['{"x": null}', '{"y": 1}', "{" * 5000, '{"x":' * 5000], None),
        ("json:x", ['{"y": "\\(y\\)", "x": "\\frac12"}', '{"x": "\\\\frac{1}{2}"}', '{"x": "0.5\\n"}'], "0.5"),
        ("regex:(a)|(b)", ["a, b", "b"], "b"),
        ("regex:is (\\w+)", ["is 4, is five", "is five"], "five"),
    ],
)  # fmt: skip
def test_a_rule_finds_one_answer_in_all_that_say_the_same(rule: str, texts: list[str], answer: Any) -> None:
    assert found(rule, *texts) == (answer if isinstance(answer, list) else [answer] * len(texts))


def gains(right: Any, *texts: str, rule: str | None = None) -> list[float]:
    candidates: list[dict[str, Any]] = [{"text": text} for text in texts]
    Grader(rule, [right]).grade(candidates, right, None)
    return [one["gain"] for one in candidates]


# Right answers, texts that give them, and texts that do not; in the manner of the pairs in the tests of math-verify,
# NeMo-Skills and MARIO's math_evaluation, and of the graders of MATH, PRM800K and Qwen2.5-Math.
PAIRS: list[tuple[Any, list[str], list[str]]] = [
    ("2", ["2", "2.0", "\\boxed{2}", "So 2.", "$x=2$", "#### 2.", "4/2", "2 cm", "\\boxed{2\\text{ cm}^2}"],
     ["3/2", "\\boxed{\\frac{1}{2}}", "\\boxed{x^2}", "x^2", "(1,2)", "\\boxed{1,2}", "2x", "\\boxed{2x}",
      "\\sqrt{2}", "\\boxed{\\{2, 3\\}}", "\\boxed{2 \\text{ or } 3}", "1:2", "\\boxed{2!}", "x \\ge 2", "2 million"]),
    ("5", ["5"], ["\\boxed{\\sqrt{5}}", "\\boxed{10^5}", "so 10^5", "\\boxed{5x}", "-5", "5 - x = 5y"]),
    ("\\frac{2}{9}", ["\\boxed{\\frac 29}", "\\boxed{\\dfrac{2}{9}}", "2/9", "\\tfrac29", "4/18"], ["9/2", ".2"]),
    ("12\\frac{3}{5}", ["12 \\frac{3}{5}", "12.6", "63/5", "12 3/5", "12\\dfrac35"], ["12 \\frac{5}{3}", "3/5"]),
    ("25{,}000", ["25,000", "$\\$25{,}000$", "25\\,000", "25,\\!000", "2.5 \\times 10^4", "2.5e4"], ["0", "25, 0"]),
    ("30,000", ["30{,}000", "30000"], ["25{,}000"]),
    ("(3,4)", ["(3, 4)", "\\boxed{\\left(3,\\,4\\right)}", "(x, y) = (3, 4)", "(\\frac{6}{2}, 4.0)"],
     ["(4,3)", "[3,4)", "3,4", "4", "(3,4,5)"]),
    ("[-2,7]", ["x \\in [-2, 7]", "\\boxed{[-2,7]}"], ["(-2,7)", "[-2,7)", "7"]),
    ("1,2", ["1, 2", "x=1, x=2", "\\boxed{2,1}", "1 and 2", "\\{1,2\\}"], ["12", "1.2", "2", "1,2,3", "(1,2)"]),
    ("x=3, y=4", ["y = 4, x = 3"], ["x=4, y=3", "\\boxed{3,4}"]),
    ("B", ["(B)", "Answer: B", "\\boxed{\\text{(B)}}", "\\textbf{B}"], ["\\boxed{A, B}", "(A)", "\\mathrm{B}*2", "b"]),
    ("\\text{(C)}", ["C", "\\boxed{C}", "(C) 12"], ["D"]),
    ("J", ["The answer is (J). A proof follows."], ["I", "A"]),
    ("90^\\circ", ["90", "90^{\\circ}", "90 degrees", "\\boxed{90°}"], ["9", "900"]),
    ("50\\%", ["50", "50%", "50 percent", "\\boxed{50\\%}"], ["0.5"]),
    ("3\\sqrt{13}", ["\\boxed{3 \\sqrt{13}}", "\\boxed{3\\sqrt {13}}", "So $3\\sqrt{13}$."], ["\\sqrt{13}", "3", "13"]),
    ("\\frac{\\pi}{2}", ["\\boxed{\\pi/2}", "\\dfrac{\\pi}{2}"], ["\\boxed{2/\\pi}", "\\pi", "2"]),
    ("(3, \\frac{\\pi}{2})", ["\\boxed{\\left( 3, \\frac{\\pi}{2} \\right)}"], ["\\boxed{(\\frac{\\pi}{2}, 3)}"]),
    ("x^2+2x+1", ["x^2 + 2x + 1", "\\boxed{x^{2}+2x+1}", "y = x^2+2x+1"], ["x^3+2x+1", "1", "x^2+2x"]),
    ("2516_8", ["\\boxed{2516_{8}}"], ["2516", "2516_9"]),
    ("\\text{Evelyn}", ["\\boxed{Evelyn}", "evelyn."], ["\\boxed{\\text{Debra}}", "not Evelyn"]),
    ("It is so: #### -1,000", ["-1000", "\\boxed{-1{,}000}"], ["1000", "1"]),
    (["42", "forty-two"], ["42", "\\boxed{\\text{Forty-two}}"], ["forty"]),
]  # fmt: skip


@pytest.mark.parametrize(("right", "texts", "others"), PAIRS, ids=[str(right) for right, *_ in PAIRS])
def test_what_is_right_gains_and_nothing_else(right: Any, texts: list[str], others: list[str]) -> None:
    assert gains(right, *texts, *others) == [1.0] * len(texts) + [0.0] * len(others)
    forms = [plain(text) for text in (*texts, *others)]
    assert [plain(form) for form in forms] == forms


@pytest.mark.parametrize("text", ["(" * 9999, "(" * 150 + "1" + ")" * 150, "1/" * 150, "9" * 99999, "1e9999", "1/0"])
def test_forms_are_bounded(text: str) -> None:
    assert len(plain(text)) <= len(text) + 10
    assert len(found("last-number", text)) == 1


def lists(path: Path, *items: dict[str, Any]) -> Any:
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return rerank.read(path)


def test_gains_that_are_derived_are_said_and_doubted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one, other = {"problem": "?", "completions": ["1", "2", "none"], "answer": 2}, {"answer": "7"}
    letters = [one | {"completions": [letter], "answer": letter} for letter in "AJ"]
    logs = [
        {"doc_id": k, "resps": [["4", "5"]], "target": right, "exact_match": 1.0} for k, right in enumerate(["5", "4"])
    ]
    files = {"some": [one, one | other], "letters": letters, "logs": logs}
    read = [lists(tmp_path / name, *items) for name, items in files.items()]
    with caplog.at_level("INFO", "rerank"):
        for _ in range(2):
            assert all(len(list(each)) == 2 for each in read)
        list(lists(tmp_path / "none", one | other))
    several, single = (f"{count} whose right answer nobody gives;" for count in ("0 lists", "1 list"))
    check = "check the right answers, and the rule that finds those of candidates (answer)"
    assert [message.removeprefix(f"{tmp_path}/") for message in caplog.messages] == [
        f"some: gains by answers (last-number): 1 of 6 right; {single} 33 % without an answer",
        f"letters: gains by answers (letter:J): 2 of 2 right; {several} 0 % without an answer",
        f"logs: gains by answers (last-number): 2 of 4 right; {several} 0 % without an answer",
        f"logs: the mean gain by answers is 0.50, the log's own exact_match 1.00; {check}",
        f"none: gains by answers (last-number): 0 of 3 right; {single} 33 % without an answer",
        f"none: all gains by answers are 0; {check}",
    ]


def test_math_verify_is_needed_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    finder.cache_clear()
    monkeypatch.setattr("rerank.data.answers.find_spec", lambda _: None)
    with pytest.raises(RecipeError, match=r"math-verify is not installed: pip install 'rerank-nbest\[math\]'"):
        finder("math-verify")


def test_math_verify_tells_what_expressions_are() -> None:
    pytest.importorskip("math_verify")
    texts = (
        "$\\frac{x}{7}+\\frac{2}{7}$",
        "\\boxed{(2+x)/7}",
        "\\boxed{\\frac{x-2}{7}}",
        "none",
        "\\boxed{10^{10^{10}}}",
    )
    assert gains("\\frac{x+2}{7}", *texts, rule="math-verify") == [1, 1, 0, 0, 0]
    assert found("math-verify", "$x=\\frac12$", "so 0.5", "$3/6$") == ["0.5"] * 3


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
