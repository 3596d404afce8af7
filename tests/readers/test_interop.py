"""Lists that other programs wrote: what is read of every file, or why it is refused."""

import pytest
from outcomes import read_lists
from small import SHARED, needs

from rerank.base.errors import DataError
from rerank.readers.reader import SkipCount, make_reader

INTEROP = SHARED / "interop"
pytestmark = needs("interop")

WORDS = "sum", "mean", "min", "length"
JOSHUA = "lm_0", "OOVPenalty", "WordPenalty"
OLD = *(f"d_{k}" for k in range(7)), "lm", "w", *(f"tm_{k}" for k in range(5))
OLD_2 = *(f"d_{k}" for k in range(7)), "lm_0", "lm_1", *(f"tm_{k}" for k in range(5)), "w"
PHRASES = *(f"tm_pt_{k}" for k in range(4)), *JOSHUA, "Distortion", "PhrasePenalty"

# Lists, candidates, and the columns besides the base score; or what the message says.
FILES: dict[str, tuple[int, int, tuple[str, ...]] | str] = {
    "cdec.cfg_rescore": (1, 4, ()),
    "cdec.controlled_synparse": (2, 36, ("Glue", "F7")),
    "cdec.ftrans": (1, 4, ()),
    "cdec.lattice": (2, 9, ("SourceWordPenalty", "WordPenalty")),
    "fairseq.constrained.txt": (1, 1, WORDS),
    "fairseq.generate.txt": "no record 'P-721', the scores of its words, unlike others of the file; fairseq writes one",
    "fairseq.interactive_new.txt": (3, 3, WORDS),
    "fairseq.oldlog.txt": (1, 1, WORDS),
    "joshua.kbest_extraction.output.gold": (1, 3126, ("lm_0", "tm_pt_0", "tm_glue_0")),
    "joshua.kbest_extraction.output.scores.gold": (1, 3126, ()),
    "joshua.lattice-short.output.expected": (5, 18, ("tm_pt_0", "tm_glue_0", *JOSHUA, "SourcePath")),
    "joshua.lattice.output.expected": (
        4, 33, ("tm_pt_0", "tm_pt_1", "tm_pt_2", "tm_glue_0", *JOSHUA, "SourcePath"),
    ),
    "joshua.moses-compat.txt": (1, 2, ("tm_glue_0",)),
    "joshua.parser.output.gold": "this looks like one answer of Joshua for each input, without scores",
    "joshua.phrase_decoder.constrained.output.gold": (1, 5, PHRASES),
    "joshua.phrase_decoder.output.gold": (1, 1, PHRASES),
    "joshua.server.tcp-text.expected": "this looks like one answer of Joshua for each input, without scores",
    "joshua.source-annotations.txt": (1, 2, ("tm_pt_0", "tm_glue_0", *JOSHUA)),
    "marian.decoder.align.align_nbest.expected": (30, 90, ("F0",)),
    "marian.decoder.align.soft.nbest.expected": (30, 90, ("F0",)),
    "marian.decoder.wmt16.nbest.expected": (100, 500, ("F0",)),
    "marian.decoder.wmt17.nbest.expected": (100, 495, ("F0",)),
    "marian.decoder.wmt17.nbest.nematus": (100, 500, ()),
    "marian.decoder.word-scores.nbest.expected": (30, 90, ("F0", *WORDS)),
    "marian.decoder.word-scores.nbest_align_nrm.expected": (30, 90, ("F0", *WORDS)),
    "marian.models.ape.text.b4.nbest.expected": (100, 400, ("F0",)),
    "marian.models.transformer.text.b6.nbest.expected": (50, 300, ("F0",)),
    "marian.scorer.align.nbest.expected": (30, 150, ("F0", "Score")),
    "marian.scorer.align.nbest.trg.in": (30, 150, ("F0",)),
    "marian.scorer.nbest.nbest.expected": (20, 100, ("F0", "Score")),
    "marian.scorer.nbest.text.nbest.in": (20, 100, ("F0",)),
    "marian.scorer.scores.text.b3.nbest.out": (100, 300, ("F0",)),
    "marian.scorer.scores.word_scores_nbest.expected": (100, 300, ("F0", "Score", *WORDS)),
    "moses.mert-example.NBEST": (3, 300, OLD_2),
    "moses.promix.test.nbest.nbest": (1, 100, OLD),
    "moses.promix.test.nbest.nbest.segments": (1, 100, OLD),
    "moses.regr.run1.gz": (5, 1000, OLD),
    "moses.scorer.nbest.out.gz": (100, 10000, OLD_2),
    "sockeye.doc.jsonl": "the object has no 'score', which sockeye writes with --output-type json",
}  # fmt: skip


def reader_of(name: str) -> str | dict[str, str]:
    """The reader for a file; Nematus writes costs."""
    if name.endswith("nematus"):
        return {"name": "moses", "scores": "cost"}
    program = name.split(".")[0]
    return program if program in ("fairseq", "sockeye") else "moses"


def read(name: str) -> tuple[int, int, tuple[str, ...]] | str:
    """What is in a file, as in ``FILES``."""
    count, columns = SkipCount(), set[tuple[str, ...]]()
    try:
        for nbest in read_lists(make_reader(reader_of(name), "reader"), INTEROP / name, count=count):
            columns.add(tuple(column for k, column in enumerate(nbest.names) if k != nbest.column))
    except DataError as error:
        return str(error)
    assert len(columns) == 1
    return count.lists, count.candidates, columns.pop()


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_program_is_read_or_refused_with_its_name(name: str) -> None:
    expected, found = FILES[name], read(name)
    if isinstance(expected, str):
        assert isinstance(found, str)
        assert expected in found
        assert name.split(".")[0] in found.lower().replace(str(INTEROP / name), "")
    else:
        assert found == expected
