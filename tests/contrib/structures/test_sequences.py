"""Files of labelled sentences."""

import gzip
import io
from pathlib import Path

import pytest

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.structures.readers import (
    ConllReader,
    ConlluReader,
    SequenceReader,
    SlashReader,
    TaggedSentence,
    TaggedTrees,
    WordReader,
    sentences_of,
)
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


def test_conll_options(tmp_path: Path) -> None:
    text = "# a comment\n1|Words|NNS|x\n2|matter|VBP|y\n"
    (found,) = read(ConllReader(separator="|", label=3, columns=(2,), comments="#"), tmp_path / "a", text)
    assert found.tokens == (("Words",), ("matter",))
    assert found.labels == ("NNS", "VBP")
    assert found.places == (1, 2)
    (plain,) = read(ConllReader(), tmp_path / "b", "Words NNS\nmatter VBP\n", width=2)
    assert plain.labels == ()
    assert plain.tokens[0] == ("Words", "NNS")
    with pytest.raises(DataError, match=r"b:1.*found 1 columns; expected 2 or 3"):
        read(ConllReader(), tmp_path / "b", "Words\n", width=2)
    for options in ({"separator": ""}, {"columns": (0,)}, {"label": 0}):
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
    reader = ConlluReader(label="Number", columns=("form", "upos", "Gender"))
    first, second = read(reader, tmp_path / "a", CONLLU)
    assert first.labels == ("_", "Sing")
    assert first.tokens[1] == ("el", "DET", "Masc")
    assert "Gender=Masc\t" in written(reader, first, ["_", "_"])
    assert "Case=Nom|Number=Plur" in written(reader, second, ["Plur"])
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


@pytest.mark.parametrize(
    ("reader", "text", "said"),
    [
        (
            SlashReader(),
            "a/A b\\/c/C\nd/D b/c/C d/e/E\n",
            ["a:2: b/c/C is read as b/c with the label C; the option at"],
        ),
        (SlashReader(at="first"), "b/c/C\nb/c/C\n", ["a:1: b/c/C is read as b with the label c/C; the option at"]),
        (SlashReader(), "a/A\\/B //C\n", []),
        (WordReader(), "b/c/C\n", []),
    ],
)
def test_which_of_several_slashes_counts_is_said_once(
    reader: SlashReader, text: str, said: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "rerank"):
        read(reader, tmp_path / "a", text, width=1)
    assert [message.partition("/a:")[2].partition(", last")[0] for message in caplog.messages] == [
        each.removeprefix("a:") for each in said
    ]


def test_words_with_tags(tmp_path: Path) -> None:
    (found,) = read(SlashReader(), tmp_path / "a", "1/2/CD and/or/CC //SYM\n\n")
    assert found.words == ["1/2", "and/or", "/"]
    assert found.labels == ("CD", "CC", "SYM")
    assert written(SlashReader(), found, ["A", "B", "C"]) == "1/2/A and/or/B //C\n"
    with pytest.raises(DataError, match=r"a:1.*found .word."):
        read(SlashReader(), tmp_path / "a", "word\n")
    categories = SlashReader(at="first")
    (found,) = read(categories, tmp_path / "a", "a/NP/N saw/(S\\NP)/NP it/NP\n")
    assert (found.words, found.labels) == (["a", "saw", "it"], ("NP/N", "(S\\NP)/NP", "NP"))
    assert written(categories, found, [*found.labels]) == "a/NP/N saw/(S\\NP)/NP it/NP\n"
    (plain,) = read(WordReader(), tmp_path / "a", "and/or it\n", width=1)
    assert plain.words == ["and/or", "it"]
    assert plain.labels == ()
    labels = ["(S\\NP)/NP", "N/"]
    assert written(WordReader(), plain, labels) == "and/or/(S\\NP)\\/NP it/N\\/\n"
    (again,) = read(SlashReader(), tmp_path / "a", written(WordReader(), plain, labels))
    assert (again.words, [*again.labels]) == (plain.words, labels)
    with pytest.raises(RecipeError, match="without labels"):
        read(WordReader(), tmp_path / "a", "a\n")
