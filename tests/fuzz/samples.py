"""Small good files of every format: the starts of real ones where there are any, written here where there are none."""

import gzip
import json
import os
import tempfile
from functools import cache
from itertools import islice
from pathlib import Path

import small_texts

REPOSITORY = Path(__file__).parents[2]
SHARED = Path(os.environ.get("RERANK_SHARED", REPOSITORY / "../shared")) / "data"

Files = dict[str, bytes]  # files that belong together, by name

FAIRSEQ = b"""\
2024-01-02 10:00:00 | INFO | fairseq_cli.generate | loading
S-7\tes regnet .
T-7\tit rains .
H-7\t-0.35\tit rains .
D-7\t-0.35\tIt rains.
P-7\t-0.25 -0.5 -0.75
H-7\t-0.5\tit rain .
D-7\t-0.5\tIt rain.
P-7\t-1.0 -0.5 -0.0

S-0\tja
T-0\tyes
H-0\t-2\tyes
D-0\t-2\tYes
P-0\t-1 -3
S-1\tnein
T-1\tno
H-1\t-1.5\tno
D-1\t-1.5\tNo
P-1\t-1.5
Generate test with beam=5: BLEU4 = 1
"""
SOCKEYE = b"""\
{"score": 0.3, "scores": [[0.3], [0.9]], "sentence_id": 1, "translation": "a b", "translations": ["a b", "a c"]}
{"score": 1.5, "scores": [1.5, 2.5], "sentence_id": 2, "translation": "d", "translations": ["d", "e"]}
{"score": 0.7, "sentence_id": 3, "translation": "f"}
{"factor1": "x", "score": 0.3, "scores": [[0.3, 1], [0.9, 2]], "sentence_id": "s", "translation": "a", \
"translations": ["a", "b"], "translations_factors": [{"factor1": "x"}, {"factor1": "y"}]}
"""
JSONL = b"""\
{"id": "a", "source": "Es regnet .", "references": ["It rains ."], "candidates": ["It rains .", "It rain ."]}
{"id": "b", "candidates": [{"text": "Yes .", "score": -1.5, "features": {"lm": -2.0, "rare": 1}}]}
{"id": "c", "reference": "4", "candidates": [{"text": "4", "logprob": -0.7, "gain": 1.0}, {"text": "5", "gain": 0}]}
"""
BARE = (
    b"(S1 (S (NP (PRP It))\n  (VP (VBD rained))))\n(S1 (S (NP (PRP It)) (VP (VBN rained))))\n\n(S1 (NN Art))\n\n(())\n",
    b"2\twsj-1\n(S1 (S (NP (PRP It)) (VP (VBD rained))))\n(())\n1 wsj-2\n(S1 (NP (NN Art)))\n\n0 wsj-3\n",
    b"-1.5\t(S1 (NP (NN a) (NN b)))\n-2\t(S1 (NN a) (NN b))\n\n-3\t(S1 (NP (NN Art)))\n",
)
STANFORD = b"""\
# Parse 1 with score -38.3126
(ROOT
  (S (NP (PRP It))
    (VP (VBD rained))))

# Parse 2 with score -41.5E-1
(ROOT (S (NP (PRP It)) (VP (VBN rained))))
nsubj(rained-2, It-1)

SENTENCE_SKIPPED_OR_UNPARSABLE
# Parse 1 with score -7.25
(ROOT (NP (NN Art)))
"""
OPENNMT = (
    b"it rains .\nit rain .\n\nyes\n", b"it rains .\t-0.35\nit rain . ||| 0-0 1-1\t-0.5\n\nyes\t-1\n",
    b"-0.35 ||| it rains .\n-0.5 ||| it rain . ||| 0-0 1-1\n-0.75 |||\n-1 ||| yes\n",
)  # fmt: skip
KALDI = {
    "lists": b"u-1-1 it rained .\nu-1-2 it rains .\nu-2-1 \nu-2-2\tyes\n",
    "other": b"u-1-1 35.25\nu-1-2 36.5\nu-2-1 4.75\nu-2-2 -5\n",
}
ESPNET = {
    "lists/1best_recog/text": b"u1 IT RAINED\nu2 YES\nu3  \n",
    "lists/1best_recog/score": b"u1 -3\nu2 tensor(-0.2)\nu3 0\n",
    "lists/2best_recog/text": b"u1 IT RAINS\nu3 \n",
    "lists/2best_recog/score": b"u1 tensor(-4., device='x')\nu3 0\n",
}  # fmt: skip
OPENAI = b"""\
{"id": "cmpl-1", "choices": [{"index": 0, "text": " Yes.", "logprobs": {"token_logprobs": [null, -0.25, -0.5]}}]}
{"id": "chat-1", "choices": [{"message": {"content": "4"}, "logprobs": {"content": [{"token": "4", "logprob": -0.1}]}}]}
{"id": "b1", "custom_id": "a", "response": {"body": {"choices": [{"message": {"content": "5"}, "score": -1}]}}}
{"id": "b2", "custom_id": "b", "response": null, "error": {"message": "late"}}
"""
PREFERENCES = b"""\
{"id": 1, "prompt": "2+2?", "chosen": "4", "rejected": "5", "a": 1.5, "b": -1}
{"id": 2, "chosen": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}], "rejected": \
[{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "5"}], "a": 1, "b": 0}
{"id": 3, "prompt": [{"role": "user", "content": "2+2?"}], "chosen": "4", "rejected": ["5", "22"], "a": 2, "b": [1, 0]}
"""
PARALLEL = b"""\
{"id": 1, "prompt": "2+2?", "responses": ["4", "5"], "scores": [-0.5, -0.75]}
{"id": 2, "prompt": "2+2?", "responses": ["4", "5", "22"], "scores": [-0.5, -0.75, -3], "models": ["a", "b", "c"]}
{"id": 7, "responses": ["6"], "reference": ["6", "six"], "scores": [1], "base_scores": [2], "gains": [1]}
"""
GROUPS = b"""\
-81.52\t( (S (NP (PRP It)) (VP (VBD rained))) )
-85.01\t( (S (NP (PRP It)) (VP (VBN rained))) )

-Infinity\t(())

-3.5\t( (NP (NN Art)) )

"""
HEADED = b"""\
2\twsj-1
-81.52 -79 .25
(S1 (S (NP (PRP It)) (VP (VBD rained)) (. .)))
-85.01 -80 .125
(S1 (S (NP (PRP It)) (VP (VBN rained)) (-NONE- *T*)  (. .)))

1\twsj-2
-7.5 0 1
(TOP (NP (-LRB- -LRB-) (CD 4) (-RRB- -RRB-)))
"""
MOSES = (
    b"0 ||| the house ||| LM0= -3.1 TM0= -0.5 -1.25 WT_the~das= 1 ||| -7.5 ||| 0=0 1=1 ||| 0-0 1-1\n"
    b"0 ||| a house ||| LM0= -3.9 TM0= -1.5 -1 ||| -8.25 ||| 0=0 1=1 ||| 0-0 1-1\n"
    b"1 ||| it rains ||| LM0= -2 TM0= -0.75 -2.5 ||| -5 ||| 0-1=0-1 ||| 0-0 1-1\n",
    b"0 ||| a b |0-1| c |2-2| ||| -3 -4 ||| -3\n0 ||| a |0-0| b c |1-2| ||| -3 -5 ||| -4\n",
    b"0 ||| a b ||| p= -1 q= 2 sparse_x=1\n0 ||| b ||| p= -2 q= 3\n3 ||| c ||| p= 0 q= 0 sparse_y=0.5\n",
    b"0 ||| a b ||| -3.5 ||| lm=-1 tm=2\n0 ||| a c ||| -4 ||| lm=-2 tm=1\n",
    b"0 ||| a b ||| 0-0 1-1 2-2 ||| WordScores= -.5 -1 -.25 ||| F0= -2 ||| -1\n"
    b"0 ||| a ||| 0-0 2-1 ||| WordScores= -1 -1 ||| F0= -2 ||| -1.5\n",
    b"0 ||| das haus ||| a b ||| lm=-1 path=.5 ||| -1\n0 ||| haus ||| b ||| lm=-2 path=1 ||| -2\n",
    b"0||| a b  ||| d: 0 -1 lm: -4 w: -2 ||| -3\n0||| b  ||| d: 1 -2 lm: -3 w: -1 ||| -4\n",
)
SVMLIGHT = (
    b"+1 qid:3 2:0.5 17:1 # a comment\n-1 qid:3 1:1 2:0.25\n# a line of comment\n\n+1 qid:4 9:1e-3 4:-2.5\n",
    b"spam 1:1 5:1 900:1\nham 2:1 4:1\nspam\nham 1:1 3:1\n",
    b"0 0:0.1 7:3.4028234e38\n1 1:1e-45 3:0.30000001192092895\n2 0:5\n",
)
PRM = b"""\
##------------------------------------------##
DEBUG 0
MAX_ERROR 3

CUTOFF_LEN\t25
LABELED 1
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL_FOR_LENGTH -NONE-
QUOTE_LABEL POS
EQ_LABEL ADVP PRT
EQ_WORD Example example
"""
FOLDS = b"0\n1\n2\n"
SENTENCES = (
    b"-DOCSTART- -X- O\n\nBoeing NNP B-NP\n's POS B-NP\n\n# # B-NP\n5 CD I-NP\n",
    b"The/DT dog/NN\nand/or/CC //SYM\n",
    b"# sent_id = a\n1-2\tdel\t_\t_\t_\t_\t_\t_\t_\t_\n1\tde\tde\tADP\tIN\t_\t0\troot\t_\t_\n"
    b"2\tel\tel\tDET\tDT\tGender=Masc\t1\tdet\t_\t_\n2.1\tx\tx\tX\tX\t_\t_\t_\t_\t_\n",
    b"(S1 (S (NP (DT The) (NN dog)) (VP (VBZ barks))))\n(S1 (NP (NN dog)))\n",
)
VOCABULARY = b"".join(b"word%d\n" % k for k in range(1, 18))
DOCUMENTS = b"pos\ta fine film , really\nneg\tbad , bad , bad\npos\tI liked it\nneg\tno\n"
SCORES = b"# nmt lm\n-12.5 -30.25\n-13 -29.5\n-1 -2\n"


def head(path: Path, lines: int) -> bytes:
    """The first lines of a .gz or plain file."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        return b"".join(islice(stream, lines))


def lists_head(path: Path, count: int) -> bytes:
    """The first lists of a file in which an empty line follows each."""
    with gzip.open(path) as stream:
        text = b""
        for line in stream:
            text += line
            count -= not line.strip()
            if not count:
                return text
    return text


@cache
def parses() -> list[Files]:
    own = REPOSITORY / "data/quickstart"
    found = [{"lists": lists_head(own / f"{s}.nbest.gz", 4), "gold": head(own / f"{s}.gold.gz", 4)} for s in SPLITS]
    gold = b"(S (NP (PRP It)) (VP (VBD rained)) (. .))\n( (NP (-LRB- -LRB-) (CD 4)\n (-RRB- -RRB-)))\n"
    found.append({"lists": HEADED, "gold": gold})
    real = SHARED / "parse/gum"
    if real.exists():
        found.append({"lists": lists_head(real / "dev.nbest.gz", 2), "gold": head(real / "dev.gold.gz", 2)})
    return found


SPLITS = ("train", "dev")


@cache
def moses() -> list[Files]:
    found: list[Files] = []
    with tempfile.TemporaryDirectory() as made:
        small_texts.write_task(Path(made))
        for split, count in (("train", 6), ("test", 9)):
            kinds = {"sources": ("src", count), "references": ("ref", count), "lists": ("nbest", 6 * count)}
            files = {name: head(Path(made) / f"{split}.{end}.gz", size) for name, (end, size) in kinds.items()}
            files["lists"] = b"".join(
                line for line in files["lists"].splitlines(keepends=True) if int(line.split()[0]) < count
            )
            found.append(files)
    for text in MOSES:
        lists = int(text.splitlines()[-1].split(b"|||")[0]) + 1
        found.append({"lists": text, "sources": b"das haus .\n" * lists, "references": b"the house .\n" * lists})
    real = SHARED / "translation/multi30k"
    if real.exists():
        lines = head(real / "dev.nbest.gz", 200).splitlines(keepends=True)
        files = {"sources": head(real / "dev.src.gz", 2), "references": head(real / "dev.ref.gz", 2)}
        found.append({"lists": b"".join(line for line in lines if line.startswith((b"0 ", b"1 "))), **files})
    return found


@cache
def jsonl() -> list[Files]:
    found = [{"lists": JSONL}]
    found += [{"lists": head(REPOSITORY / f"data/asr/{split}.jsonl.gz", 4)} for split in SPLITS]
    return found


@cache
def svmlight() -> list[bytes]:
    found = list(SVMLIGHT)
    for name in ("digits_09", "news_comp", "sentiment_books"):
        if (path := SHARED / f"binary/{name}.svm.gz").exists():
            found.append(head(path, 6))
    return found


@cache
def recipes() -> list[bytes]:
    """All recipes of the repository, and one that sets what they leave out."""
    every = {
        "seeds": [1, 2], "examples": 0, "grid": {"learner.eta": [0.1, 1]}, "oracle": {"ties": "any", "level": "corpus"},
        "data": {"tests": ["test"], "reader": {"name": "charniak", "score": 0, "duplicates": "drop"}},
        "features": {"set": "minimal", "hash_bits": 12, "heads": {"syntactic": {"NML": ["> NN NNS", "> *"]}}},
        "metric": {"name": "parseval"}, "significance": {"test": "paired_t", "samples": 500},
        "training": {"epochs": 2, "patience": 1, "vote": True, "select": {"learner": {"name": "pa"}, "keep": 0.5}},
    }  # fmt: skip
    return [path.read_bytes() for path in sorted((REPOSITORY / "recipes").rglob("*.yaml"))] + [
        json.dumps(every).encode()
    ]


@cache
def all_texts() -> list[bytes]:
    """One text of each format: what a user might name by mistake, and what two files glued together are made of."""
    return [
        parses()[0]["lists"], parses()[0]["gold"], GROUPS, moses()[0]["lists"], moses()[0]["references"], FAIRSEQ,
        SOCKEYE, JSONL, BARE[0], STANFORD, OPENNMT[2], KALDI["lists"], OPENAI, PREFERENCES, PARALLEL, SVMLIGHT[0],
        PRM, FOLDS, DOCUMENTS, SCORES, recipes()[0],
    ]  # fmt: skip
