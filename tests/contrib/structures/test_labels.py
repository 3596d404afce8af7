"""Labels that are no labels: one for all, numbers, analyses, ids."""

from pathlib import Path

import pytest

import rerank
from rerank.base.errors import DataError
from rerank.contrib.structures.readers import TaggedSentence
from rerank.contrib.structures.recipe import doubt_of_labels
from rerank.recipes.loading import read_settings
from rerank.runs import experiment


def sentences(*rows: tuple[str, str]) -> list[TaggedSentence]:
    return [TaggedSentence(tuple((word,) for word in words.split()), tuple(labels.split())) for words, labels in rows]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("it rains", "A A")], "have one label for all, 'A'"),
        ([("a a", "1.5 2.5"), ("b", "x")], "have labels that are numbers, and not whole"),
        ([("a b", "n v/n")], "have labels with slashes between them"),
        ([("a b/n", "n v")], "have words with slashes between them"),
        ([("a a", "x y")], "repeat one token, with another label each"),
        ([("^we/prn ^saw/see<v>", "pl$ saw<n>$")], "are analyses, as Apertium writes them"),
        ([("# a", "x y")], "begin with the token '#'"),
        ([("it rains", "P V"), ("a dog", "D N")], ""),
    ],
)
def test_labels(rows: list[tuple[str, str]], said: str) -> None:
    assert (said in doubt_of_labels(sentences(*rows))) if said else not doubt_of_labels(sentences(*rows))


@pytest.mark.parametrize(
    ("reader", "rows", "said"),
    [
        ("conllu", [f"# sent_id = 1\n1\tit\t_\t{tag}\t_\t_\t0\t_\t_\t_" for tag in "AB"], "have ids"),
        ("conll", ["it A B\nruns B C\nnow C A", "no C B\nit A A"], "have columns besides with the same labels"),
    ],
)  # fmt: skip
def test_labels_are_those_that_the_reader_names(reader: str, rows: list[str], said: str, tmp_path: Path) -> None:
    path, label = tmp_path / "words", {"conllu": "upos", "conll": "last"}[reader]
    path.write_text("".join(f"{row}\n\n" for row in rows))
    with pytest.raises(DataError, match=said):
        rerank.tagger(path, reader=reader, epochs=1)
    rerank.tagger(path, reader={"name": reader, "label": label}, epochs=1)
    settings = {"name": "t", "task": "tagging", "data": {"file": str(path), "dev": None, "reader": reader}}
    with pytest.raises(DataError, match=f"label: {label}}}"):
        experiment.run(read_settings(settings), tmp_path / "run")
