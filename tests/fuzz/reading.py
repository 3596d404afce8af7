"""What must hold of whatever a reader makes of a file; each check returns how many things it has read."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rerank.base.errors import DataError
from rerank.contrib.classification.scikit import read_texts
from rerank.contrib.classification.sets import read_vocabulary
from rerank.data.labelled import Labelled
from rerank.data.symbols import SymbolTable
from rerank.features.text.view import make_view
from rerank.metrics.evaluation import evaluate
from rerank.metrics.parseval import Parseval
from rerank.metrics.prm import read_prm
from rerank.readers.base import NBestList, Problem, Reader, SkippedList
from rerank.readers.examples.svmlight import read_folds, read_svmlight, write_svmlight
from rerank.readers.sequences.base import TaggedSentence, sentences_of, sequence_readers
from rerank.readers.sequences.slash import SlashReader
from rerank.readers.several import format_of, make_reader
from rerank.readers.skip_count import SkipCount
from rerank.readers.texts.jsonl import WrittenAsJsonl
from rerank.readers.texts.text_list import TextList
from rerank.readers.texts.text_pairs import read_lines, read_references
from rerank.readers.trees.pairs import parse_list
from rerank.readers.trees.treebank import read_sentences
from rerank.readers.trees.trees import brackets, parse_brackets

Rng = np.random.Generator
FEW = 2000  # candidates up to which everything is looked at

SAME: dict[str, list[Any]] = {"ids": ["file", "ordinal"], "duplicates": ["keep", "drop"]}
SIGNS: dict[str, list[Any]] = {"scores": ["score", "cost"]}
ORDINAL = {"name": "charniak", "ids": "ordinal"}
OPTIONS: dict[str, dict[str, list[Any]]] = {
    "charniak": SAME | {"score": [0, 1]},
    "berkeley": SAME | {"score": [0, 1]} | SIGNS,
    "moses": SAME | {"first_id": [0, 1], "features": ["auto", "dense", "sparse"]} | SIGNS,
    "fairseq": {"text": ["H", "D"], "order": ["file", "id"], "duplicates": ["keep", "drop"]},
    "sockeye": SAME | {"scores": ["cost", "score", "logprob"]},
    "jsonl": SAME,
    "trees": SAME | {"score": [0, 1]} | SIGNS,
    "stanford": SAME | {"score": [0, 1]} | SIGNS,
    "opennmt": {"n": [2], "duplicates": ["keep", "drop"]} | SIGNS,
    "kaldi": {"duplicates": ["keep", "drop"], "costs": [[], ["score"], ["lm"]]} | SIGNS,
    "espnet": {"duplicates": ["keep", "drop"]} | SIGNS,
    "openai": SAME | {"id": ["id", "custom_id"]} | SIGNS,
    "preferences": SAME | {"numbers": [None, {"lm": ["a", "b"]}, {"gain": ["a", "b"]}], "prompt": ["prompt", "a"]},
    "parallel": SAME | {"numbers": [None, {"score": "scores"}], "prompt": ["prompt", "id"]} | SIGNS,
    "joined": {"of": ["moses"]},
    "joined parses": {"of": ["charniak", {"name": "charniak", "scores": "cost"}]},
    "merged parses": {"of": [[ORDINAL, "berkeley"], ORDINAL | {"name": "berkeley"}], "duplicates": ["drop", "keep"]},
    "merged": {"of": ["moses"], "duplicates": ["drop", "keep"]},
}


def options(name: str, rng: Rng) -> dict[str, Any]:
    """The reader ``name`` (without what its lists hold) with options, mostly its defaults."""
    spec: dict[str, Any] = {"name": name.split()[0]}
    for key, values in OPTIONS[name].items():
        if rng.random() < 0.3 or key == "of":
            spec[key] = values[int(rng.integers(len(values)))]
    return spec


def holds(condition: object, what: str) -> None:
    """Fail where something that must be so is not."""
    if not condition:
        raise AssertionError(what)


def check_lists(name: str, directory: Path, rng: Rng) -> int:
    """Lists of candidates: shapes, finite scores, places, contents, and what is written can be read again."""
    spec = options(name, rng)
    reader, symbols = make_reader(spec, "reader"), SymbolTable()
    path = str(directory / "lists")
    if spec["name"] in ("joined", "merged") or spec.get("costs"):
        path += f",{directory / 'other'}"
    good: list[NBestList] = []
    ids, count, bad = set[str](), 0, 0
    for found in reader.read(path):
        count += 1
        holds(
            found.id and (found.path in path or found.path.startswith(path)) and found.line >= 1,
            f"a place: {found.id!r} {found.path!r}",
        )
        if isinstance(found, SkippedList):
            bad += 1
            holds(found.reason and found.message and str(found.problem.advised()), "a reason")
            continue
        holds(spec.get("ids") == "ordinal" or found.id not in ids, f"an id twice: {found.id!r}")
        ids.add(found.id)
        check_list(found)
        if len(found) <= FEW:
            look_into(found, symbols)
            good.append(found)
        del good[50:]
    if good and not (bad and spec.get("ids") == "ordinal"):  # without the bad list, two of one id may be neighbours
        check_writing(reader, good, spec, directory)
    return count


def check_list(nbest: NBestList) -> None:
    """The fields of a list fit together, and its numbers are finite."""
    N = len(nbest)
    holds(nbest.scores.ndim == 2 and nbest.scores.shape[0] == N and nbest.scores.dtype == np.float64, "scores [N, K]")
    holds(np.isfinite(nbest.scores).all(), "finite scores")
    holds(len(nbest.lines) == N and all(line >= 1 for line in nbest.lines[:FEW]), "lines")
    holds(all(b"\0" not in text for text in nbest.texts[:FEW]), "no NUL")
    holds(nbest.duplicates >= 0, "duplicates")
    if N:
        holds(0 <= nbest.column < nbest.scores.shape[1] and nbest.base.shape == (N,), "a base score")
    if isinstance(nbest, TextList) or nbest.names:
        K = nbest.scores.shape[1]
        holds(len(nbest.names) == K and len(set(nbest.names)) == K, f"names of columns: {nbest.names}, {K}")
    if isinstance(nbest, TextList):
        for texts in (nbest.segmentation, nbest.alignment):
            holds(texts is None or len(texts) == N, "a derivation each")
        if nbest.sparse is not None:
            first, names, values = nbest.sparse
            holds(first.shape == (N + 1,) and first[0] == 0 and (np.diff(first) >= 0).all(), "places of sparse scores")
            holds(first[-1] == len(names) == values.size and np.isfinite(values).all(), "finite sparse scores")


def look_into(nbest: NBestList, symbols: SymbolTable) -> None:
    """The trees, or words and phrases, of a list, and its candidates as objects."""
    for candidate in nbest.candidates[:2]:
        holds(isinstance(candidate.text, str) and isinstance(candidate.tokens, list), "a candidate")
        if not isinstance(nbest, TextList):
            try:
                holds(candidate.tree is not None, "a tree")
            except DataError as error:
                holds(error.path == nbest.path and error.line, "a place")
    if isinstance(nbest, TextList):
        try:
            make_view(nbest, nbest.source or b"a b c", symbols)
        except Problem as error:
            holds(error.reason and error.message, "a reason")
        return
    parsed = parse_list(nbest, symbols)
    if not isinstance(parsed, SkippedList):
        found, trees = parsed
        for t in range(min(len(found), 3)):
            again = parse_brackets([brackets(trees, t, symbols).encode("utf-8", "surrogateescape")], symbols)
            part = slice(int(trees.first[t]), int(trees.first[t + 1]))
            holds(np.array_equal(again.label, trees.label[part]), "the labels of a tree, written and read again")
            holds(np.array_equal(again.word, trees.word[part]), "the words of a tree, written and read again")


def check_writing(reader: Reader, lists: list[NBestList], spec: dict[str, Any], directory: Path) -> None:
    """What is written, with new scores too, is what was read."""
    plain, scored = io.BytesIO(), io.BytesIO()
    for nbest in lists:
        reader.write(plain, nbest)
        reader.write(scored, nbest, list(range(len(nbest)))[::-1], np.arange(len(nbest)) * 0.5)
    if spec["name"] in ("joined", "merged"):
        return
    where = directory / "written"
    where.write_bytes(plain.getvalue())
    if isinstance(format_of(reader), WrittenAsJsonl):
        reader = make_reader({"name": "jsonl"}, "reader")
    again = list(reader.read(str(where)))
    holds(_texts(again) == _texts(lists), "texts, written and read again")


def _texts(lists: Sequence[NBestList | SkippedList]) -> list[Any]:
    """The texts of all lists that have candidates; others are not in the files of all formats."""
    return [
        one if isinstance(one, SkippedList) else [text.strip() for text in one.texts]
        for one in lists
        if isinstance(one, SkippedList) or len(one)
    ]


def check_trees(directory: Path, rng: Rng) -> int:
    golds = list(read_sentences(directory / "gold"))
    tests = list(read_sentences(directory / "test", chunk=int(rng.choice([7, 64, 1 << 18]))))
    metric = Parseval(punctuation=str(rng.choice(["reference", "own", "evalb"])), labeled=bool(rng.integers(2)))
    paths = {"gold_path": str(directory / "gold"), "test_path": str(directory / "test")}
    found = evaluate(golds, tests, metric, **paths)
    counts = found.stats[:, [not name.endswith("_shift") for name in Parseval.columns]]  # shifts may be below 0
    holds(np.isfinite(found.stats).all() and (counts >= 0).all(), "statistics")
    holds(all(-1e-9 <= score <= 1 + 1e-9 for score in (found.scores()["f1"],)), "a fraction")
    list(found.table())
    return len(golds)


def check_references(directory: Path, rng: Rng) -> int:
    form = str(rng.choice(["lines", "tab", "id"]))
    paths = [str(directory / name) for name in (("one", "two") if form == "lines" else ("one",))]
    found = list(read_references(paths, form, int(rng.integers(2))))
    holds(all(texts and all(b"\n" not in text for text in texts) for texts in found), "a reference at least")
    return len(found) + len(list(read_lines(paths[0])))


def check_svmlight(directory: Path, rng: Rng) -> int:
    """Labelled examples: the arrays fit together, and what is written can be read again."""
    base = ("auto", 0, 1)[int(rng.integers(3))]
    chunk = int(rng.choice([1, 13, 100, 1 << 20])) if (directory / "examples").stat().st_size < 10_000 else 1 << 20
    found = read_svmlight(str(directory / "examples"), index_base=base, chunk=chunk)
    holds(np.isfinite(found.values).all(), "finite values")
    holds(found.rows[0] == 0 and found.rows[-1] == found.columns.size and (np.diff(found.rows) >= 0).all(), "rows")
    holds(not found.columns.size or (found.columns.min() >= 0 and found.columns.max() < found.width), "columns")
    holds(len(found.classes) > found.label.max() and found.label.min() >= 0, "labels")
    where = directory / "written"
    write_svmlight(found, str(where))
    again: Labelled = read_svmlight(str(where), index_base=1, width=max(found.width, 1))
    for part in ("rows", "columns", "values", "label", "classes", "group"):
        holds(np.array_equal(getattr(again, part), getattr(found, part)), f"{part}, written and read again")
    return found.size


def check_sentences(directory: Path, rng: Rng) -> int:
    """Labelled sentences: as many labels as tokens, and what is written with labels can be read again."""
    trees = (directory / "sentences").read_bytes()[:1] == b"("  # others are refused as trees
    name = str(rng.choice([name for name in sequence_readers.names() if trees or name != "trees"]))
    reader, width = sequence_readers.get(name)(), [None, 1, 2][int(rng.integers(3))]
    read = reader.read(directory / "sentences", width if name != "words" else 1)
    found = list(sentences_of(read, SkipCount("skip")))
    for sentence in found:
        holds(bool(sentence.tokens) and all(map(all, sentence.tokens)), "tokens")
        holds(len(sentence.labels) in (0, len(sentence.tokens)) and all(sentence.labels), "labels")
    with (directory / "written").open("wb") as out:
        for sentence in found:
            reader.write(out, sentence, ["X"] * len(sentence.tokens))
    form = SlashReader() if name in ("words", "trees") else reader
    again = [each for each in form.read(directory / "written") if isinstance(each, TaggedSentence)]
    if name in ("slash", "conllu"):
        holds([each.words for each in again] == [each.words for each in found], "words, written and read again")
        holds(all({*each.labels} == {"X"} for each in again), "labels, written and read again")
    return len(found)


def check_folds(directory: Path, _: Rng) -> int:
    found = read_folds(str(directory / "folds"), 3)
    holds(found.shape == (3,) and (found >= 0).all(), "folds")
    return 3


def check_vocabulary(directory: Path, _: Rng) -> int:
    return len(read_vocabulary(str(directory / "words"), 17))


def check_documents(directory: Path, rng: Rng) -> int:
    (found,), names = read_texts([str(directory / "texts")], {"name": str(rng.choice(["count", "tfidf"]))})
    holds(len(names) == found.width and np.isfinite(found.values).all(), "names")
    return found.size


def check_prm(directory: Path, _: Rng) -> int:
    """EVALB's parameter files, and trees compared by them."""
    found = read_prm(directory / "prm")
    tree = b"(S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))"
    evaluate([tree], [tree], Parseval.from_prm(directory / "prm"))
    return len(found["delete"])
