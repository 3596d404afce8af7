"""Damaged files of every format: their lists keep the invariants, or an error says where."""

import io
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import formats
import numpy as np
import pytest
import small_lists
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import files_below, placed, refused
from small_pairs import KINDS as PAIRS
from small_pairs import files_of, recipe_of
from strategies_damage import Draw, Files, damaged_files

from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.sets import Sets
from rerank.contrib.formats.speech import WrittenAsJsonl
from rerank.contrib.structures.readers import SlashReader, TaggedSentence, sentences_of, sequence_readers
from rerank.data.symbols import SymbolTable
from rerank.data.trees import brackets, parse_brackets
from rerank.extraction.kinds import content_of
from rerank.features.text.view import make_view
from rerank.metrics.evaluation import evaluate
from rerank.metrics.parseval import Parseval
from rerank.readers.lists import Lists
from rerank.readers.reader import Problem, Reader, SkipCount, filter_usable, format_of, make_reader, readers
from rerank.readers.texts.jsonl import TableReader
from rerank.readers.texts.text_files import FORMS, TextFile, pair_texts
from rerank.readers.trees.treebank import parse_list, read_sentences
from rerank.recipes.settings import validate

Spec = dict[str, Any]
NAMES = [*(name for name, _ in readers), formats.OWN]


class Sample(NamedTuple):
    """Files, the reader of their lists, and its path to these in the directory ``{place}``."""

    spec: Spec
    path: str
    files: Files


MORE: tuple[tuple[Spec, bytes], ...] = (  # what the other samples have not
    ({"name": "charniak"}, b"2\twsj-1\n-81.52 -79 .25\n(())\n-85 -80 .125\n(S1 (NN a) (-NONE- *T*))\n0\twsj-2\n\n"),
    ({"name": "berkeley"}, b"-81.52\t( (S (NN a)) )\n\n-Infinity\t(())\n\n-3.5\t( (NP (NN Art)) )\n\n"),
    ({"name": "stanford"}, b"# Parse 1 with score -3.5E-1\n(ROOT\n (S (NN a)))\nnsubj(a-2, b-1)\n"),
    ({"name": "moses"}, b"0 ||| a b ||| LM= -3.1 TM= -0.5 -1.25 WT_a~b= 1 ||| -7.5 ||| 0=0 1=1 ||| 0-0 1-1\n"),
    ({"name": "moses"}, b"0 ||| a b |0-1| c |2-2| ||| -3 -4 ||| -3\n0 ||| a |0-0| b c |1-2| ||| -3 -5 ||| -4\n"),
    ({"name": "moses"}, b"0 ||| a b ||| p= -1 q= 2 sparse_x=1\n3 ||| c ||| p= 0 q= 0 sparse_y=0.5\n"),
    ({"name": "moses"}, b"0 ||| a b ||| 0-0 1-1 ||| WordScores= -.5 -1 ||| F0= -2 ||| -1\n"),
    ({"name": "fairseq"}, b"| loading\nS-7\tes\nH-7\t-0.35\tit rains .\nD-7\t-1\tIt rains.\nP-7\t-0.25 -0.5 -0.75\n"),
    ({"name": "jsonl"}, b'{"id": "a", "source": "Ja", "references": ["It"], "candidates": ["Yes", "No"]}\n{"id": "c", '
     b'"reference": "4", "candidates": [{"text": "4", "logprob": -0.7, "gain": 1, "features": {"x": 1}}]}\n'),
    ({"name": "jsonl"}, b'{"id": "a", "choices": [{"text": "b", "logprobs": {"token_logprobs": [null, -0.25]}}]}\n'
     b'{"custom_id": "a", "response": {"body": {"choices": [{"message": {"content": "5"}, "score": -1}]}}}\n'),
    ({"name": "jsonl"},
     b'{"id": 7, "prompt": "a", "responses": ["6"], "reference": ["6", "six"], "scores": [1], "gains": [1]}\n'),
    ({"name": "table"},
     b'query,text,score,gain\n1,Yes .,-1.5,1\n2,"It, he said,\nrains",-1,0\n1,No .,-2,0\n2,"a ""b""",,1\n'),
    ({"name": "table"}, b"id\tsource\ttext\tlogprob\na\tJa\tYes\t-0.5\na\tJa\tNo\t-1\nb\tNein\tNo\t-0.25\n"),
)  # fmt: skip


@cache
def samples() -> dict[str, list[Sample]]:
    """Samples of every reader."""
    found: dict[str, list[Sample]] = {name: [] for name in NAMES}
    writes: list[tuple[Spec, Callable[[Path], str]]] = [
        (case.spec, lambda place, case=case: case.write(place, formats.whole)) for case in formats.CASES
    ]
    writes += [
        (dict(form.reader), lambda place, form=form: form.write(place, small_lists.complete()[:3]))
        for name, form in small_lists.FORMATS.items()
        if name != "own"
    ]
    for spec, write in writes:
        with tempfile.TemporaryDirectory() as made:
            path = write(Path(made)).replace(made, "{place}")
            found[spec["name"]].append(Sample(spec, path, files_below(Path(made))))
    for spec, data in MORE:
        found[spec["name"]].append(Sample(spec, "{place}/lists", {"lists": data}))
    return found


@cache
def one_of_each() -> tuple[bytes, ...]:
    """A file of each format: what a user might name by mistake, and what two files glued together are made of."""
    return tuple(next(iter(each[0].files.values())) for each in samples().values())


@st.composite
def options(draw: st.DrawFn, spec: Spec) -> Spec:
    """A reader with some of its options; those of which all values are known."""
    found = dict(spec)
    for field in fields(readers.get(spec["name"])):
        choices = get_args(field.type) if get_origin(field.type) is Literal else ()
        choices = (False, True) if field.type is bool else (0, 1) if field.name in ("score", "first_id") else choices
        if choices and draw(st.integers(0, 3)) == 3:
            found[field.name] = draw(st.sampled_from(choices))
    return found


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=100)
@given(data=st.data())
def test_lists(name: str, data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(samples()[name]))
    spec = data.draw(options(sample.spec))
    json_lines = next(iter(sample.files.values())).startswith(b"{")
    files = data.draw(damaged_files(sample.files, others=one_of_each(), json_lines=json_lines))
    with placed(files) as place, refused(place):
        check_lists(spec, sample.path.format(place=place), place)


@pytest.mark.parametrize("name", NAMES)
def test_lists_that_are_whole(name: str) -> None:
    for sample in samples()[name]:
        with placed(sample.files) as place:
            check_lists(sample.spec, sample.path.format(place=place), place)


def check_lists(spec: dict[str, Any], path: str, place: Path) -> None:
    """Lists of candidates: shapes, finite scores, places, contents, and what is written can be read again."""
    reader, symbols = make_reader(spec, "reader"), SymbolTable()
    good: list[Lists] = []
    ids, bad = set[str](), 0
    for found in reader.read(path):
        assert all((found.id, found.line >= 1, any(found.path.startswith(part) for part in path.split(","))))
        if found.problem is not None:
            bad += 1
            assert all((found.problem.reason, found.problem.message, str(found.problem.with_advice())))
            continue
        assert spec.get("ids") == "ordinal" or found.id not in ids
        ids.add(found.id)
        _check_list(found)
        _look_into(found, symbols)
        good.append(found)
    if good and not (bad and spec.get("ids") == "ordinal"):  # without the bad list, two of one id may be neighbours
        _check_writing(reader, good, spec, place / "written")


def _check_list(nbest: Lists) -> None:
    """The fields of a list fit together, and its numbers are finite."""
    N, K = nbest.scores.shape
    assert len(nbest) == len(nbest.lines) == N
    assert np.isfinite(nbest.scores).all()
    assert all(line >= 1 for line in nbest.lines)
    assert all(b"\0" not in text for text in nbest.texts)
    assert not N or (0 <= nbest.column < K and nbest.base.shape == (N,))
    if not nbest.of_trees or nbest.names:
        assert len(nbest.names) == len(set(nbest.names)) == K
    if not nbest.of_trees:
        assert all(texts is None or len(texts) == N for texts in (nbest.segmentation, nbest.alignment))
        if nbest.sparse is not None:
            first, names, values = nbest.sparse
            assert first.shape == (N + 1,)
            assert first[-1] == len(names) == values.size
            assert first[0] == 0
            assert (np.diff(first) >= 0).all()
            assert np.isfinite(values).all()


def _look_into(nbest: Lists, symbols: SymbolTable) -> None:
    """The trees, or words and phrases, of a list, and its candidates as objects."""
    for candidate in nbest.candidates[:2]:
        assert isinstance(candidate.text, str)
        assert isinstance(candidate.tokens, list)
        if nbest.of_trees:
            with refused(nbest.path):
                assert candidate.tree is not None
    if not nbest.of_trees:
        with suppress(Problem):
            make_view(nbest, nbest.source or b"a b c", symbols)
        return
    with suppress(Problem):
        found, trees = parse_list(nbest, symbols)
        for t in range(min(len(found), 3)):
            again = parse_brackets([brackets(trees, t, symbols).encode("utf-8", "surrogateescape")], symbols)
            part = slice(int(trees.first[t]), int(trees.first[t + 1]))
            assert np.array_equal(again.label, trees.label[part])
            assert np.array_equal(again.word, trees.word[part])


def _check_writing(reader: Reader, lists: list[Lists], spec: dict[str, Any], path: Path) -> None:
    """What is written is what was read; new scores can be written too."""
    plain, scored = io.BytesIO(), io.BytesIO()
    for nbest in lists:
        reader.write(plain, nbest)
        reader.write(scored, nbest, list(range(len(nbest)))[::-1], np.arange(len(nbest)) * 0.5)
    if spec["name"] in ("joined", "merged", "letor"):  # of more than one file, or with lines for names
        return
    path.write_bytes(plain.getvalue())
    if isinstance(format_of(reader), WrittenAsJsonl | TableReader):
        reader = make_reader({"name": "jsonl"}, "reader")
    assert _texts(list(reader.read(str(path)))) == _texts(lists)


def _texts(lists: Sequence[Lists]) -> list[Any]:
    """The texts of all lists that have candidates; others are not in the files of all formats."""
    return [
        str(one.problem) if one.problem is not None else [text.strip() for text in one.texts]
        for one in lists
        if one.problem is not None or len(one)
    ]


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
    for texts in chain(*pair_texts(first, others)):
        assert texts
        assert all(b"\n" not in text for text in texts)
    list(TextFile(place / "one", "lines").in_order())


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
        for nbest, candidates, gold in filter_usable(content.read(recipe.data, "train"), content.pair, count):
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
