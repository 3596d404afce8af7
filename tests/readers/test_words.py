"""Words that are written in several ways: one form on both sides, counted, and nothing else changes."""

import re
from collections import Counter
from pathlib import Path

import pytest
import small
from commands import Command, refused
from pairs import read_pairs

from rerank.base.errors import DataError
from rerank.data.symbols import SymbolTable
from rerank.data.trees import GOLD, bracket_words, no_changes, normal_trees, normal_word, parse_brackets, yield_words
from rerank.metrics.evaluation import evaluate, refused_list
from rerank.metrics.parseval import Parseval
from rerank.readers.reader import SkipCount
from rerank.readers.trees.charniak import CharniakReader
from rerank.runs import experiment

# Forms, with the ways to write them.
WAYS = {
    "1/2": [r"1\/2"],
    "S&P*": [r"S&P\*"],
    '"': ["``", "''", "“", "”", "„"],
    "'": ["`", "‘", "’"],
    "don't": ["don’t"],
    "-LRB-": ["("],
    "-RRB-": [")"],
    "-LSB-a-RSB-": ["[a]"],
    "-LCB--RCB-": ["{}"],
    "5'": ["5’"],
    "5''": ["5’’"],
    "*T*-1": [],
    "und": [],
}


@pytest.mark.parametrize(("form", "way"), [(form, way) for form, ways in WAYS.items() for way in [form, *ways]])
def test_a_word_has_one_form(form: str, way: str) -> None:
    assert normal_word(way) == form


def words_of(text: str) -> tuple[list[str], Counter[str]]:
    symbols, changed = SymbolTable(), no_changes()
    trees = normal_trees(parse_brackets(bracket_words([text.encode()]), symbols), symbols, changed, GOLD)
    return yield_words(trees, 0, symbols), changed


def test_trees_are_normalized_and_changes_counted() -> None:
    found, changed = words_of(r"(S (NN 1\/2) (`` ``) (NN b) (NN 1\/2) (-NONE- *) (X (NN b)) ('' ”))")
    assert found == ["1/2", '"', "b", "1/2", "b", '"']
    assert changed == {"candidates": 0, "gold trees": 4}


def test_brackets_that_are_words_are_read() -> None:
    found, changed = words_of("( (S (-LRB- ()(NN a) (X (-RRB- ))) (NP (-LRB- -LRB-))) )")
    assert (found, changed[GOLD]) == (["-LRB-", "a", "-RRB-", "-LRB-"], 2)
    plain = [b"(S (NN a) (VP (VB b) ) )", b"( (S (NN a)) )", b"(S1 ())", b"( (S1 ()) )"]  # two failed parses
    assert bracket_words(plain) == plain


def pairs(directory: Path, candidates: list[str], gold: str, *, normalize: bool) -> tuple[SkipCount, list[bytes]]:
    """One list and its gold tree, read; returns the counts and the texts of the list. Other words are an error."""
    nbest, golds, count = directory / "nbest", directory / "gold", SkipCount()
    nbest.write_text(f"{len(candidates)}\tone\n" + "".join(f"-1\n{text}\n" for text in candidates) + "\n")
    golds.write_text(gold)
    metric, symbols = Parseval(), SymbolTable()
    found = list(read_pairs(CharniakReader(), nbest, golds, symbols, count=count, normalize=normalize))
    for each, trees, tree in found:
        if said := refused_list(metric, each, tree, trees, metric.stats(tree, trees, symbols)[1], symbols):
            raise DataError(said)
    return count, [text for each, *_ in found for text in each.texts]


def test_both_sides_are_compared_in_one_form(tmp_path: Path) -> None:
    candidates = [r"(S (`` ``) (NN 1\/2) (-LRB- ())", '(S (`` ") (NN 1/2) (-LRB- -LRB-))']
    count, texts = pairs(tmp_path, candidates, r"(S (`` “) (NN 1\/2) (-LRB- -LRB-))", normalize=True)
    assert texts == [text.encode() for text in candidates]  # as they are written
    assert count.as_dict()["normalized"] == {"candidates": 3, "gold trees": 2}
    assert "words normalised: 3 of candidates, 2 of gold trees" in str(count)
    twice = SkipCount()
    twice.add(count)
    twice.add(count)
    assert twice.as_dict()["normalized"] == {"candidates": 6, "gold trees": 4}
    for one in candidates:
        with pytest.raises(DataError):
            pairs(tmp_path, [one], "(S (`` “) (NN 1/2) (-LRB- -LRB-))", normalize=False)
    with pytest.raises(DataError, match="at word 2 found 'b', the reference has '2'"):
        pairs(tmp_path, ["(S (NN `) (NN b))"], "(S (NN ') (NN 2))", normalize=True)


def test_words_that_differ_in_form_only_are_said_to(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"set data\.normalize: true") as caught:
        pairs(tmp_path, ["(S (NN a) (`` ``))"], '(S (NN a) (`` "))', normalize=False)
    assert "at word 2" in str(caught.value)
    with pytest.raises(DataError) as caught:
        pairs(tmp_path, ["(S (NN a) (`` ``))"], '(S (NN b) (`` "))', normalize=False)
    assert "data.normalize" not in str(caught.value)


def test_brackets_that_are_words_are_named_where_words_stay_as_they_are(tmp_path: Path) -> None:
    good, bad, said = (
        "(S (NN a) (-LRB- -LRB-) (-RRB- -RRB-))",
        "(S (NN a) (-LRB- ()(-RRB- )))",
        r"; brackets are words in it: set data\.norm",
    )
    for candidates, gold in (([bad], good), ([good], bad)):
        with pytest.raises(DataError, match=said):
            pairs(tmp_path, candidates, gold, normalize=False)
        pairs(tmp_path, candidates, gold, normalize=True)
    with pytest.raises(DataError, match="word beside") as caught:
        pairs(tmp_path, ["(S a (NN b))"], good, normalize=True)
    assert "brackets are words" not in str(caught.value)


def test_evaluation_in_one_form() -> None:
    gold, test = r"(S (NP (NN 1\/2)) (-LRB- -LRB-))", "(S (NN 1/2) (-LRB- ())"
    changed = no_changes()
    found = evaluate([gold], [test], changed=changed).scores()
    assert found == evaluate([gold], [test.replace("1/2", r"1\/2").replace("()", "-LRB-)")]).scores()
    assert changed == {"candidates": 1, "gold trees": 1}


# In recipes and commands: words of the small lists, as candidates and gold trees write them, and their form.
WRITTEN = {"the": (r"1\/2", "1/2", "1/2"), "a": ("``", "”", '"'), "of": ("(", "-LRB-", "-LRB-")}


def written(root: Path, side: int | None) -> None:
    """The small lists in a folder, with words in the ways of either side, or (None) in normal form on both."""
    root.mkdir()
    small.write_slices(root)
    for split in small.SIZES:
        for place, name in enumerate((f"{split}.nbest.gz", f"{split}.gold.gz")):
            ways = {word: forms[2 if side is None else place] for word, forms in WRITTEN.items()}
            if place == 0:
                small.write_lists(root / name, [rewritten(one, ways) for one in small.lists_of(root / name)])
            else:
                small.write_golds(root / name, [rewritten(one, ways) for one in small.golds_of(root / name)])


def rewritten(text: str, ways: dict[str, str]) -> str:
    return re.sub(r"(\([^\s()]+) (\w+)\)", lambda match: f"{match[1]} {ways.get(match[2], match[2])})", text)


def test_recipes_and_commands_bring_words_to_one_form(tmp_path: Path, rerank: Command) -> None:
    written(tmp_path / "mixed", 0)
    written(tmp_path / "plain", None)
    mixed, plain = (str(tmp_path / name / "test") for name in ("mixed", "plain"))
    about = small.recipe(tmp_path / "mixed", data={"normalize": True})
    found = experiment.run(about, tmp_path / "a" / "run")
    expected = experiment.run(small.recipe(tmp_path / "plain"), tmp_path / "b" / "run")
    assert small.without_clock(found["splits"]) == small.without_clock(expected["splits"])
    golds = Counter(re.findall(r" (\w+)\)", "\n".join(small.golds_of(small.QUICKSTART / "test.gold.gz")[:40])))
    counts = found["corpora"]["test"]["normalized"]
    assert counts["gold trees"] == golds["a"]
    assert counts["candidates"] > golds["the"] + golds["a"] + golds["of"]
    oracle = rerank("oracle", f"{mixed}.nbest.gz", f"{mixed}.gold.gz", "--normalize")
    assert oracle.out == rerank("oracle", f"{plain}.nbest.gz", f"{plain}.gold.gz").out
    assert f"words normalised: {counts['candidates']:,} of candidates, {golds['a']:,} of gold trees" in oracle.err
    best = rerank("rank", str(tmp_path / "a/run/model"), f"{mixed}.nbest.gz").out
    forms = {forms[0]: forms[2] for forms in WRITTEN.values()}
    normal = re.sub(r"(?<=\(\w\w) (1\\/2|``|\()\)", lambda match: f" {forms[match[1]]})", best)
    assert normal == rerank("rank", str(tmp_path / "b/run/model"), f"{plain}.nbest.gz").out
    (tmp_path / "best").write_text(best.replace(" ()", " -LRB-)"))  # in a file of trees brackets must balance
    scored = rerank("evaluate", str(tmp_path / "best"), f"{mixed}.gold.gz", "--normalize").out
    assert f"best: words normalised: {golds['the'] + golds['a']:,} of candidates, {golds['a']:,} of gold" in scored
    refused(rerank("evaluate", "best", "gold", "--metric", "bleu", "--normalize"), "--normalize is for parseval")
    refused(rerank("oracle", "best", "gold", "--metric", "bleu", "--normalize"), "--normalize is for parseval")
