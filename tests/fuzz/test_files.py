"""Damaged files that hold no lists: what is read of them is well formed, or the message says where they are bad."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import placed, refused
from small_pairs import KINDS as PAIRS
from small_pairs import files_of, recipe_of
from strategies_damage import Draw, Files, damaged_files

from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.sets import Sets
from rerank.contrib.structures.readers import SlashReader, TaggedSentence, sentences_of, sequence_readers
from rerank.extraction.kinds import content_of
from rerank.metrics.evaluation import evaluate
from rerank.metrics.parseval import Parseval
from rerank.readers.base import SkipCount
from rerank.readers.texts.text_files import FORMS, TextFile, paired
from rerank.readers.trees.treebank import read_sentences
from rerank.recipes.settings import validate


def check_trees(place: Path, draw: Draw) -> None:
    metric = Parseval(punctuation=draw(["reference", "own", "evalb"]), labeled=draw([True, False]))
    golds, tests = (list(read_sentences(place / name, chunk=draw([1 << 18, 7]))) for name in ("gold", "test"))
    found = evaluate(golds, tests, metric, gold_path=str(place / "gold"), test_path=str(place / "test"))
    counts = found.stats[:, [not name.endswith("_shift") for name in Parseval.columns]]  # shifts may be below 0
    assert np.isfinite(found.stats).all()
    assert (counts >= 0).all()
    assert -1e-9 <= found.scores()["f1"] <= 1 + 1e-9
    list(found.table())


def check_prm(place: Path, _: Draw) -> None:
    evaluate([b"(S (NN a))"], [b"(S (NN a))"], Parseval.from_prm(place / "prm"))


def check_references(place: Path, draw: Draw) -> None:
    first, *others = (TextFile(str(place / name), draw(FORMS)) for name in ("one", "two"))
    for texts in chain(*paired(first, others)):
        assert texts
        assert all(b"\n" not in text for text in texts)
    list(TextFile(place / "one", "lines").by_place())


def check_labelled_set(place: Path, draw: Draw) -> None:
    """Examples with their folds, as a recipe of classification reads them."""
    data = {"path": str(place / "examples"), "folds": str(place / "folds"), "scale": draw([None, "l2", "max"])}
    recipe = validate(ClassificationRecipe, {"name": "x", "task": "classification", "data": data})
    examples = Sets(recipe).draw("x", 1)
    assert all(np.isfinite(examples.split(number, 0.0, 1)[0].values).all() for number in range(examples.splits))


def check_sentences(place: Path, draw: Draw) -> None:
    """As many labels as tokens, and what is written with labels can be read again."""
    trees = (place / "sentences").read_bytes()[:1] == b"("  # others are refused as trees
    name = draw([name for name in sequence_readers.names() if trees or name != "trees"])
    reader = sequence_readers.get(name)()
    read = reader.read(place / "sentences", draw([None, 1, 2]) if name != "words" else 1)
    found = list(sentences_of(read, SkipCount("skip")))
    for sentence in found:
        assert sentence.tokens
        assert all(map(all, sentence.tokens))
        assert len(sentence.labels) in (0, len(sentence.tokens))
    with (place / "written").open("wb") as out:
        for sentence in found:
            reader.write(out, sentence, ["X"] * len(sentence.tokens))
    form = SlashReader() if name in ("words", "trees") else reader
    again = [each for each in form.read(place / "written") if isinstance(each, TaggedSentence)]
    if name in ("slash", "conllu"):
        assert [each.words for each in again] == [each.words for each in found]
        assert all({*each.labels} == {"X"} for each in again)


def check_pairs(kind: str) -> Callable[[Path, Draw], None]:
    """Lists with what they belong to: features and statistics of every usable one."""

    def check(place: Path, draw: Draw) -> None:
        recipe = recipe_of(kind, place, {"on_bad_list": draw(["error", "skip"])}, **draw(PAIRS[kind]))
        content, count, found = content_of(recipe), SkipCount(recipe.data.on_bad_list), 0
        for nbest, candidates, gold in content.pairs(recipe.data, "train", count):
            reference, stats = content.stats(nbest, candidates, gold)
            gain = content.metric.gain(stats, np.broadcast_to(reference, (len(nbest), reference.size)))
            features = content.features(nbest, candidates)
            assert stats.shape[0] == gain.size == len(nbest)
            assert all(np.isfinite(numbers).all() for numbers in (stats, reference, gain, features.value))
            assert features.candidate.size == 0 or features.candidate.max() < len(nbest)
            found += 1
        assert found == count.lists + count.reasons["missing"]  # those that only the references have are empty ones

    return check


class Kind(NamedTuple):
    """Files that belong together, and what must hold of them."""

    files: Files
    check: Callable[[Path, Draw], None]


TREES = (
    b"(S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))\n( (S (NP (-NONE- *T*) (-LRB- -LRB-) (CD 4)\n (-RRB- -RRB-))))\n"
)
EXAMPLES = b"+1 qid:3 2:0.5 17:1 # a comment\n-1 qid:3 1:1 2:0.25\n# another\n\n+1 qid:4 9:1e-3 4:-2.5\n"
FOLDS = {"folds": b"0\n1\n2\n", "words": b"".join(b"word%d\n" % k for k in range(1, 18))}
CONLLU = b"# sent_id = a\n1-2\tdel" + b"\t_" * 8 + b"\n1\tde\tde\tADP\tIN\t_\t0\troot\t_\t_\n2.1\tx\tx\tX" + b"\t_" * 6
PRM = b"##--##\nDEBUG 0\nCUTOFF_LEN\t25\nDELETE_LABEL TOP\nDELETE_LABEL_FOR_LENGTH -NONE-\nEQ_LABEL A B\nEQ_WORD A a\n"
KINDS: dict[str, Kind] = {
    "trees": Kind({"gold": TREES, "test": TREES}, check_trees),
    "prm": Kind({"prm": PRM}, check_prm),
    "references": Kind({"one": b"0 ||| a\n0 ||| b\n1 ||| c\n2 ||| d\n", "two": b"a\tb\tc\n\nd\te\n"}, check_references),
    "labelled set": Kind({"examples": EXAMPLES, **FOLDS}, check_labelled_set),
    "conll": Kind({"sentences": b"-DOCSTART- -X- O\n\nBoeing NNP B-NP\n's POS B-NP\n\n# # B-NP\n"}, check_sentences),
    "slash": Kind({"sentences": b"The/DT dog/NN\nand/or/CC //SYM\n"}, check_sentences),
    "conllu": Kind({"sentences": CONLLU}, check_sentences),
    "treebank": Kind({"sentences": TREES}, check_sentences),
    **{f"pairs of {kind}": Kind(files_of(kind), check_pairs(kind)) for kind in PAIRS},
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_damaged(name: str, data: st.DataObject) -> None:
    files = data.draw(damaged_files(KINDS[name].files, others=(TREES, EXAMPLES, CONLLU)))
    with placed(files) as place, refused(place):
        KINDS[name].check(place, lambda values: data.draw(st.sampled_from(values)))


@pytest.mark.parametrize("name", KINDS)
def test_whole(name: str) -> None:
    with placed(KINDS[name].files) as place, refused(place):
        KINDS[name].check(place, lambda values: values[0])
