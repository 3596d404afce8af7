"""Labelled sentences: files of them, spans and their figures, templates of tokens and labels."""

import gzip
import io
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from reference_labels import DOG
from reference_texts import Lines, One, expected, extracted

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.structures.attributes import (
    FUNCTIONS,
    TokenFeatures,
    default_patterns,
    read_patterns,
)
from rerank.contrib.structures.metrics import SpanScore, TagAccuracy, label_view, spans_of
from rerank.contrib.structures.readers import (
    ConllReader,
    ConlluReader,
    SequenceReader,
    SlashReader,
    TaggedSentence,
    TaggedTrees,
    WordReader,
    sentences_of,
    text_lines,
)
from rerank.features.template import SETS
from rerank.metrics.significance import compare
from rerank.readers.problems import SkipCount

CONLL = "-DOCSTART- -X- O\n\nBoeing NNP B-NP\n's\tPOS  B-NP\n\n# # B-NP\n5 CD I-NP\n"
CONLLU = """# sent_id = a-1
1-2\tdel\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\tIN\t_\t0\troot\t_\t_
2\tel\tel\tDET\tDT\tGender=Masc|Number=Sing\t1\tdet\t_\t_
2.1\tx\tx\tX\tX\t_\t_\t_\t_\t_

1\tyo\tyo\tPRON\tPRP\tCase=Nom\t0\troot\t_\t_
"""


def read(reader: SequenceReader, path: Path, text: str, width: int | None = None) -> list[TaggedSentence]:
    path.write_text(text)
    return list(sentences_of(reader.read(path, width), SkipCount()))


def written(reader: SequenceReader, sentence: TaggedSentence, labels: list[str]) -> str:
    out = io.BytesIO()
    reader.write(out, sentence, labels)
    return out.getvalue().decode()


def test_conll_columns(tmp_path: Path) -> None:
    first, second = read(ConllReader(), tmp_path / "a", CONLL)
    assert first.tokens == (("Boeing", "NNP"), ("'s", "POS"))
    assert first.labels == ("B-NP", "B-NP")
    assert (first.id, first.line, second.id, second.words) == ("0", 3, "1", ["#", "5"])
    assert written(ConllReader(), first, ["X", "Y"]) == "Boeing NNP B-NP X\n's\tPOS  B-NP\tY\n\n"
    (packed := tmp_path / "a.gz").write_bytes(gzip.compress(CONLL.encode()))
    assert list(sentences_of(ConllReader().read(packed), SkipCount()))[1].labels == second.labels


def test_features_of_treebanks_are_no_part_of_tags(tmp_path: Path) -> None:
    tree = "<S>\n(S (NP##n=1## (DET##lemma=le## le) (N x)) (V y))\n</S>\n"
    (found,) = read(TaggedTrees(), tmp_path / "a", tree)
    assert found.labels == ("DET", "N", "V")
    assert read(TaggedTrees(label="chunks"), tmp_path / "a", tree)[0].labels == ("B-NP", "I-NP", "O")


def test_a_damaged_tree_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("(S (NP a) (V b))\n(S (NP) NP)\n(S (NP c) (V d))\n")
    count = SkipCount("skip")
    assert [each.words for each in sentences_of(TaggedTrees().read(tmp_path / "a"), count)] == [["a", "b"], ["c", "d"]]
    assert count.reasons == {"brackets": 1}
    with pytest.raises(DataError, match=r"a:2: list 1: .*fix or remove the sentence"):
        list(sentences_of(TaggedTrees().read(tmp_path / "a"), SkipCount()))


def test_conll_options(tmp_path: Path) -> None:
    text = "# a comment\n1|Words|NNS|x\n2|matter|VBP|y\n"
    (found,) = read(ConllReader(separator="|", label=3, columns=(2,), comments="#"), tmp_path / "a", text)
    assert found.tokens == (("Words",), ("matter",))
    assert found.labels == ("NNS", "VBP")
    assert found.token_rows == (1, 2)
    (plain,) = read(ConllReader(), tmp_path / "b", "Words NNS\nmatter VBP\n", width=2)
    assert plain.labels == ()
    assert plain.tokens[0] == ("Words", "NNS")
    with pytest.raises(DataError, match=r"b:1.*found 1 columns; expected 2 or 3"):
        read(ConllReader(), tmp_path / "b", "Words\n", width=2)
    for options in ({"separator": ""}, {"columns": (0,)}, {"columns": 2}, {"label": 0}):
        with pytest.raises(RecipeError):
            ConllReader(**options)


def test_bad_sentences_are_errors_or_counted(tmp_path: Path) -> None:
    text = "a X\n\nb X\nc\n\nd Y\n"
    with pytest.raises(DataError, match=r"a:4: list 1: found 1 columns, after 2 in the lines before; fix or remove"):
        read(ConllReader(), tmp_path / "a", text)
    count = SkipCount("skip")
    assert [each.id for each in sentences_of(ConllReader().read(tmp_path / "a"), count)] == ["0", "2"]
    assert count.reasons == {"columns": 1}
    assert count.lists == 2
    (tmp_path / "nul").write_bytes(b"a\0 X\n")
    with pytest.raises(DataError, match="NUL"):
        list(sentences_of(ConllReader().read(tmp_path / "nul"), SkipCount()))
    (tmp_path / "latin").write_bytes(b"a X\n\xe9 X\n")
    with pytest.raises(DataError, match=r"latin:2.*not UTF-8"):
        list(sentences_of(ConllReader().read(tmp_path / "latin"), SkipCount()))


def test_conllu(tmp_path: Path) -> None:
    first, second = read(ConlluReader(), tmp_path / "a", CONLLU)
    assert (first.words, first.labels, first.id) == (["de", "el"], ("ADP", "DET"), "a-1")
    assert (second.labels, second.id, second.line) == (("PRON",), "1", 7)
    assert written(ConlluReader(), first, ["ADP", "DET"]) + written(ConlluReader(), second, ["PRON"]) == CONLLU + "\n"
    reader = ConlluReader(label="xpos", columns=("form", "upos"))
    first, _ = read(reader, tmp_path / "a", CONLLU)
    assert (first.labels, first.tokens[1]) == (("IN", "DT"), ("el", "DET"))
    assert "\tADP\tX\t" in written(reader, first, ["X", "Y"])
    for text, message in (
        ("1\ta\n", "a:1.*found 2 columns with tabs"),
        ("x\ta\ta\tX\t_\t_\t_\t_\t_\t_\n", "found the id 'x'"),
        ("1\ta\ta\t_\t_\t_\t_\t_\t_\t_\n", "without upos"),
    ):
        with pytest.raises(DataError, match=message):
            read(ConlluReader(), tmp_path / "a", text)
    assert read(ConlluReader(), tmp_path / "a", text, width=1)[0].labels == ()
    with pytest.raises(RecipeError, match="label"):
        ConlluReader(label="pos")


def test_words_with_tags(tmp_path: Path) -> None:
    (found,) = read(SlashReader(), tmp_path / "a", "1/2/CD and/or/CC //SYM\n\n")
    assert found.words == ["1/2", "and/or", "/"]
    assert found.labels == ("CD", "CC", "SYM")
    assert written(SlashReader(), found, ["A", "B", "C"]) == "1/2/A and/or/B //C\n"
    with pytest.raises(DataError, match=r"a:1.*found .word."):
        read(SlashReader(), tmp_path / "a", "word\n")
    (plain,) = read(WordReader(), tmp_path / "a", "and/or it\n", width=1)
    assert plain.words == ["and/or", "it"]
    assert plain.labels == ()
    labels = ["(S\\NP)/NP", "N/"]
    assert written(WordReader(), plain, labels) == "and/or/(S\\NP)\\/NP it/N\\/\n"
    (again,) = read(SlashReader(), tmp_path / "a", written(WordReader(), plain, labels))
    assert (again.words, [*again.labels]) == (plain.words, labels)
    with pytest.raises(RecipeError, match="without labels"):
        read(WordReader(), tmp_path / "a", "a\n")


# The example in the documentation of conlleval's port to Python (https://github.com/kaniblu/conlleval), its right and
# guessed labels, and what it prints.
RIGHT = (
    "B-NP I-NP I-NP B-NP I-NP I-NP B-VP B-NP B-VP B-NP I-NP I-NP B-VP B-NP I-NP B-PP B-NP I-NP B-VP I-VP B-NP I-NP "
    "B-PP B-NP B-NP I-NP I-NP O"
)
GUESSED = (
    "I-NP I-NP I-NP B-NP I-NP I-NP B-VP B-NP B-VP B-NP I-NP I-NP B-VP B-NP I-NP B-PP I-NP I-NP B-PP I-VP I-NP I-NP "
    "B-PP I-NP B-NP I-NP I-NP O"
)


def test_the_published_example() -> None:
    right, guessed = RIGHT.split(), GUESSED.split()
    reference, rows = SpanScore().rows([guessed], [right])
    assert (reference.tolist(), rows.tolist()) == ([[15]], [[14, 16]])
    found = {name: round(100 * value, 2) for name, value in SpanScore().report(rows[0], reference[0]).items()}
    assert found == {"precision": 87.5, "recall": 93.33, "f1": 90.32}
    assert SpanScore().counts([guessed], [right]) == {"NP": [9, 9, 9], "PP": [2, 3, 2], "VP": [3, 4, 4]}
    reference, rows = TagAccuracy().rows([guessed], [right])
    assert round(100 * float(TagAccuracy().scores(rows[0], reference[0])), 2) == 82.14


def conlleval(labels: list[str]) -> set[tuple[int, int, str]]:
    """Spans as conlleval finds them: every pair of adjacent labels may end one and begin another."""
    spans, first = set[tuple[int, int, str]](), 0
    before, kind_before = "O", ""
    for place, label in enumerate([*labels, "O"]):
        tag, _, kind = label.partition("-")
        ends = (before, tag) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")}
        starts = (before, tag) in {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}
        ends |= before != "O" and kind_before != kind
        starts |= tag != "O" and kind_before != kind
        if ends:
            spans.add((first, place, kind_before))
        if starts:
            first = place
        before, kind_before = tag, kind
    return spans


@pytest.mark.parametrize("seed", range(3))
def test_spans_are_conlleval_s(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = ["O", "B-X", "I-X", "B-Y", "I-Y", "E-X", "E-Y"]
    for _ in range(500):
        drawn = [str(label) for label in random.choice(labels, random.integers(0, 9))]
        if any(a[0] == "E" and b[0] == "B" for a, b in pairwise(drawn)):
            continue  # it lets a span that has ended go on
        assert set(spans_of(drawn)) == conlleval(drawn), drawn


def test_rows_add_up_for_significance() -> None:
    right = [["B-X", "I-X", "O"], ["O", "B-Y"], ["B-X"]] * 20
    a = [labels if k % 3 else ["B-X", "O", "O"] for k, labels in enumerate(right)]
    (reference, rows), (_, others) = (SpanScore().rows(guessed, right) for guessed in (a, right))
    found = compare(SpanScore(), rows, others, reference, samples=1000)
    assert found.difference == pytest.approx(2 * 40 / 120 - 1)
    assert found.p < 0.01


def test_texts_are_words_with_labels() -> None:
    metric = SpanScore()
    reference, rows = metric.stats([b"a/b/B-X c/O", b"a/b/O c/O"], [b"a/b/B-X c/O"])
    assert (reference.tolist(), rows.tolist()) == ([1], [[1, 1], [0, 0]])
    assert metric.gain(np.zeros(2), np.zeros(1)) == 1.0
    assert TagAccuracy().counts([["A", "B"]], [["A", "A"]]) == {"A": [1, 1, 2], "B": [0, 1, 0]}
    assert TagAccuracy().stats([rb"a/N\/A b/c/X"], [rb"a/N\/A b/c/Y"])[1].tolist() == [[1]]
    for texts, message in (([b"a/O"], "found 1 labels for 2 words"), ([b"a b/O"], "expected a word and a tag")):
        with pytest.raises(DataError, match=message):
            metric.stats(texts, [b"a/b/B-X c/O"])
    for label, message in (("NN", "I-NP$"), ("B_X", "write B-X for it"), ("X-I", "write I-X"), ("s-x", "write S-x")):
        with pytest.raises(DataError, match=f"found the label '{label}'.*{message}"):
            metric.stats([f"a/{label}".encode()], [b"a/O"])


Tokens = list[tuple[str, ...]]
CRFPP = (
    "# Unigram\nU00:%x[-2,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[1,0]/%x[2,1]/%x[0,0]\nU:%x[-1,0]\nU:%x[1,0]\n\n# Bigram\nB\n"
)


def plain(line: str, tokens: Tokens, i: int) -> str | None:
    """A template filled in, as its documentation says."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        name, size, row, column = match[1], int(match[2] or 0), int(match[3]), int(match[4])
        j = i + row
        if j < 0:
            return f"_B-{-j}"
        if j >= len(tokens):
            return f"_B+{j - len(tokens) + 1}"
        word = tokens[j][column]
        if name in ("prefix", "suffix"):
            found = None if len(word) < size else word[:size] if name == "prefix" else word[len(word) - size :]
        else:
            found = FUNCTIONS[name](word)
        missing |= found is None
        return found or ""

    filled = re.sub(r"%([a-z]+)([0-9]*)\[(-?[0-9]+),([0-9]+)\]", value, line)
    return None if missing else filled


def sentences(seed: int, count: int) -> list[Tokens]:
    random = np.random.default_rng(seed)
    words = ["a", "The", "the", "1990s", "well-known", "USA", "é", "_B-1", "ab"]
    drawn = [random.choice([words, ["D", "N"] * 4 + ["D"]][k], (count, 6)) for k in range(2)]
    sizes = random.integers(1, 7, count)
    return [[(str(drawn[0][i, j]), str(drawn[1][i, j])) for j in range(sizes[i])] for i in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_attributes_are_lines_filled_in(seed: int) -> None:
    lines = [*CRFPP.splitlines(), *default_patterns(2), "U91:%shape[-1,0]/%marks[0,0]"]
    extractor = TokenFeatures(read_patterns(lines))
    given = sentences(seed, 30)
    found = extractor.learn(given, cutoff=2)
    expected = [
        {filled for line in lines if line.startswith("U") and (filled := plain(line, tokens, i)) is not None}
        for tokens in given
        for i in range(len(tokens))
    ]
    counts = {text: sum(text in each for each in expected) for each in expected for text in each}
    names = list(extractor.ids)
    assert sorted(extractor.ids.values()) == list(range(len(names)))
    assert set(names) == {text for text, count in counts.items() if count >= 2}
    again = extractor.extract(given)
    for starts, rows, attributes in (found, again):
        assert starts.tolist() == np.cumsum([0, *map(len, given)]).tolist()
        for token, texts in enumerate(expected):
            ids = attributes[rows[token] : rows[token + 1]]
            assert sorted(names[j] for j in ids) == sorted(text for text in texts if counts[text] >= 2)
    starts, _, unseen = extractor.extract([[("nie", "X")], []])
    assert set(unseen) <= set(extractor.ids.values())
    assert starts.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("B01:%x[0,0]", "do not look at words"),
        ("X:%x[0,0]", "expected U"),
        ("U:%y[0,0]", "unknown function 'y'"),
        ("U:%prefix[0,0]", "found prefix; expected"),
        ("U:%x[0]", "expected a macro"),
        ("U:%x[-999999999,0]", "expected a macro"),
    ],
)
def test_bad_templates_are_named(line: str, message: str) -> None:
    with pytest.raises(RecipeError, match=f"line 2: .*{message}"):
        read_patterns(["# one", line])


def test_a_template_file_and_a_column_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(CRFPP)
    patterns = read_patterns(line for _, line in text_lines(tmp_path / "t"))
    assert len(patterns) == 5
    with pytest.raises(RecipeError, match="looks at column 1; the tokens have 1"):
        TokenFeatures(patterns).learn([[("a",)]])


SPECS = ["LabelNGram", "LabelNGram(words=last)", "SpanNGram(n=1)", *SETS["labels"]]


@pytest.mark.parametrize("seed", range(4))
def test_templates_equal_their_twins(seed: int) -> None:
    random = np.random.default_rng(seed)
    for labels in (["O", "B-X", "I-X", "B-Y"], ["DT", "NN"]):
        for _ in range(10):
            words = random.choice(["a", "b/c", "/"], random.integers(1, 7))
            drawn = random.choice(labels, (3, words.size))
            ones = [
                One([f"{w}/{tag}" for w, tag in zip(words, row, strict=True)], base=-y) for y, row in enumerate(drawn)
            ]
            for spec in SPECS:
                assert extracted([spec], Lines([], ones)) == expected(spec, Lines([], ones)), spec


def test_texts_without_labels_give_nothing() -> None:
    plain = Lines([], [One(["and/or", "it"], base=-1.0), One(["so", "it"], base=-2.0)])
    assert extracted(SPECS, plain) == [{}, {}]
    assert label_view([], len).labels.size == label_view([b"/ a/"], len).labels.size == 0


def test_the_set_looks_at_labels_and_spans() -> None:
    first = extracted(SETS["labels"], DOG)[0]
    assert first["SpanNGram|NP barks </s>"] == first["LabelSpan(see=length)|NP 2"] == 1
    assert first["LabelNGram(n=3)|<s> B-NP I-NP"] == 1
