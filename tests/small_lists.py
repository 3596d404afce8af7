"""The same small lists in every format of lists with score columns, which may be left out here and there."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rerank.recipes.recipe import ListRecipe, Recipe, TextRecipe

Candidate = dict[str, Any]  # text, and numbers by name
COLUMNS = "lm", "tm"
LISTS = 12  # of a file in which one of them lacks a label, nine candidates in ten have it


def complete() -> list[list[Candidate]]:
    """Lists of three candidates; the order by ``lm + tm`` is not that by ``score``, which falls."""
    return [
        [
            {"text": f"w{i} {'abc'[y]}", "score": -1.0 - y, "lm": float((i + 2 * y) % 5), "tm": 0.5 * ((3 * i + y) % 4)}
            for y in range(3)
        ]
        for i in range(LISTS)
    ]


def _moses(found: list[list[Candidate]], names: tuple[str, ...], mark: str) -> str:
    lines = []
    for i, candidates in enumerate(found):
        for one in candidates:
            values = " ".join(f"{name}{mark}{one[name]}" for name in names if name in one)
            lines.append(f"{i} ||| {one['text']} ||| {values} ||| {one['score']}\n")
    return "".join(lines)


def _numbers(one: Candidate) -> tuple[str, ...]:
    return tuple(name for name in one if name not in ("text", "score"))


def _write(root: Path, name: str, text: str) -> str:
    (root / name).write_text(text)
    return str(root / name)


def moses(root: Path, found: list[list[Candidate]]) -> str:
    return _write(root, "moses", _moses(found, _numbers(found[-1][0]), "= "))


def joshua(root: Path, found: list[list[Candidate]]) -> str:
    return _write(root, "joshua", _moses(found, _numbers(found[-1][0]), "="))


def jsonl(root: Path, found: list[list[Candidate]]) -> str:
    return _write(root, "jsonl", "".join(json.dumps({"candidates": one}) + "\n" for one in found))


def table(root: Path, found: list[list[Candidate]]) -> str:
    """With the columns that any candidate has."""
    names = [n for n in ("text", "score", *COLUMNS) if any(n in one for candidates in found for one in candidates)]
    rows = [[str(i), *(str(one.get(n, "")) for n in names)] for i, candidates in enumerate(found) for one in candidates]
    return _write(root, "table", "".join(",".join(row) + "\n" for row in [["query_id", *names], *rows]))


def sockeye(root: Path, found: list[list[Candidate]]) -> str:
    """Sockeye's scores are costs: those of the columns are written negated."""
    lines = []
    for i, candidates in enumerate(found):
        rows = [[-one[name] for name in ("score", "lm", "tm") if name in one] for one in candidates]
        texts = [one["text"] for one in candidates]
        item = {"sentence_id": i, "translation": texts[0], "score": rows[0][0], "translations": texts, "scores": rows}
        lines.append(json.dumps(item) + "\n")
    return _write(root, "sockeye", "".join(lines))


def fairseq(root: Path, found: list[list[Candidate]]) -> str:
    """With ``lm`` and ``tm`` as the scores of two words; without one of them there are no such scores."""
    lines = []
    for i, candidates in enumerate(found):
        lines.append(f"S-{i}\tx")
        for one in candidates:
            lines.append(f"H-{i}\t{one['score']}\t{one['text']}")
            if "lm" in one and "tm" in one:
                lines.append(f"P-{i}\t{one['lm']} {one['tm']}")
    return _write(root, "fairseq", "\n".join(lines) + "\n")


def opennmt(root: Path, found: list[list[Candidate]]) -> str:
    return _write(root, "opennmt", "".join(f"{one['score']} ||| {one['text']}\n" for each in found for one in each))


def kaldi(root: Path, found: list[list[Candidate]]) -> str:
    """With the base scores in an archive of their own."""
    lines = [(f"utt{i}-{y}", one) for i, candidates in enumerate(found) for y, one in enumerate(candidates, start=1)]
    words = _write(root, "kaldi", "".join(f"{key} {one['text']}\n" for key, one in lines))
    return f"{words}," + _write(root, "kaldi.score", "".join(f"{key} {one['score']}\n" for key, one in lines))


def espnet(root: Path, found: list[list[Candidate]]) -> str:
    for y in range(len(found[0])):
        (folder := root / "espnet" / f"{y + 1}best_recog").mkdir(parents=True, exist_ok=True)
        for file, key in (("text", "text"), ("score", "score")):
            _write(folder, file, "".join(f"utt{i} {candidates[y][key]}\n" for i, candidates in enumerate(found)))
    return str(root / "espnet")


def joined(root: Path, found: list[list[Candidate]]) -> str:
    """``lm`` and what else there is in the lists, ``tm`` in the file of scores, whose header names what is there."""
    lists = _write(root, "joined", _moses(found, tuple(n for n in _numbers(found[-1][0]) if n != "tm"), "= "))
    rows = [f"{one.get('tm', '')}\n" for candidates in found for one in candidates]
    there = any("tm" in one for candidates in found for one in candidates)
    return f"{lists}," + _write(root, "joined.scores", "".join(["# tm\n", *rows] if there else ["# other\n", *rows]))


def merged(root: Path, found: list[list[Candidate]]) -> str:
    """The first candidate of every list from one system, without ``tm``; the others from another."""
    one = _moses([candidates[:1] for candidates in found], ("lm",), "= ")
    two = _moses([candidates[1:] for candidates in found], _numbers(found[-1][-1]), "= ")
    return f"{_write(root, 'merged.1', one)},{_write(root, 'merged.2', two)}"


def own(root: Path, found: list[list[Candidate]]) -> str:
    """A list has the columns of its last candidate."""
    blocks = []
    for candidates in found:
        names = "score", *_numbers(candidates[-1])
        rows = ["\t".join(["text", *names])]
        rows += ["\t".join([one["text"], *(str(one.get(name, "nan")) for name in names)]) for one in candidates]
        blocks.append("\n".join(rows) + "\n\n")
    return _write(root, "own", "".join(blocks))


def _parses(root: Path, name: str, found: list[list[Candidate]], given: tuple[str, ...]) -> str:
    """Lists of parses, in which the second word of a text is a label, and a file with the numbers ``given``."""
    lines = []
    for i, candidates in enumerate(found):
        lines.append(f"{len(candidates)}\t{i}\n")
        for one in candidates:
            word, label = one["text"].split()
            lines.append(f"{one['score']}\n(S1 ({label} (NN {word})))\n")
    rows = [" ".join(str(one[key]) for key in given if key in one) for candidates in found for one in candidates]
    scores = _write(root, f"{name}.scores", "\n".join(["# " + " ".join(given), *rows, ""]))
    return f"{_write(root, name, ''.join(lines))},{scores}"


def joined_parses(root: Path, found: list[list[Candidate]]) -> str:
    """All numbers in the file of scores."""
    return _parses(root, "parses", found, _numbers(found[-1][0]))


def merged_parses(root: Path, found: list[list[Candidate]]) -> str:
    """The first candidate of every list from one parser, without ``tm``; the others from another."""
    one = _parses(root, "parses.1", [candidates[:1] for candidates in found], ("lm",))
    return f"{one},{_parses(root, 'parses.2', [candidates[1:] for candidates in found], _numbers(found[-1][-1]))}"


def trec(root: Path, found: list[list[Candidate]]) -> str:
    lines = [f"{i} Q0 d{k} {k} {one['score']} run\n" for i, many in enumerate(found) for k, one in enumerate(many)]
    return _write(root, "trec", "".join(lines))


def letor(root: Path, found: list[list[Candidate]]) -> str:
    """With the score as feature 1, and ``lm`` and ``tm`` as 2 and 3."""
    lines = []
    for i, candidates in enumerate(found):
        for k, one in enumerate(candidates):
            values = " ".join(f"{j}:{one[name]}" for j, name in enumerate(("score", *COLUMNS), 1) if name in one)
            lines.append(f"{k} qid:{i} {values} # {one['text']}\n")
    return _write(root, "letor", "".join(lines))


@dataclass(frozen=True)
class Format:
    """How lists are written, and read; the columns that they have then beside the base score."""

    write: Callable[[Path, list[list[Candidate]]], str]
    reader: Mapping[str, Any]
    columns: tuple[str, ...] = COLUMNS
    sparse: bool = False  # a candidate may leave out a value, which is 0 then
    base: str = "score"
    trees: bool = False


FORMATS: dict[str, Format] = {
    "moses": Format(moses, {"name": "moses"}),
    "joshua": Format(joshua, {"name": "moses"}, sparse=True),
    "jsonl": Format(jsonl, {"name": "jsonl"}),
    "table": Format(table, {"name": "table"}),
    "fairseq": Format(fairseq, {"name": "fairseq"}, ("sum", "mean", "min", "length")),
    "sockeye": Format(sockeye, {"name": "sockeye"}, ("factor1", "factor2")),
    "opennmt": Format(opennmt, {"name": "opennmt", "n": 3}, ()),
    "kaldi": Format(kaldi, {"name": "kaldi", "costs": ["score"]}, ()),
    "espnet": Format(espnet, {"name": "espnet"}, ()),
    "trec": Format(trec, {"name": "trec"}, ()),
    "letor": Format(letor, {"name": "letor", "first": "1"}, ()),
    "merged": Format(merged, {"name": "merged"}, ("lm", "tm", "system_1", "system_2")),
    "joined": Format(joined, {"name": "joined"}),
    "own": Format(own, {"name": "own_reader:Tables"}),
    "joined parses": Format(joined_parses, {"name": "joined", "of": "charniak"}, trees=True),
    "merged parses": Format(
        merged_parses, {"name": "merged", "of": {"name": "joined", "of": {"name": "charniak"}}},
        ("lm", "tm", "score_2", "system_1", "system_2"), base="score_1", trees=True,
    ),
}  # fmt: skip


def recipe(form: Format, train: str, dev: str = "", **data: Any) -> ListRecipe:
    """A recipe over lists at the path ``train``, or ``dev``; references are made up."""
    lists = {"train": train, "dev": dev or train}
    if form.trees:
        gold = Path(train.split(",")[0]).parent / "gold"
        gold.write_text("".join(f"(S1 (a (NN w{i})))\n" for i in range(LISTS)))
        own = {"nbest": lists["dev"], "gold": str(gold), "tests": [], "reader": dict(form.reader)}
        features = {"set": None, "templates": ["Dense"]}
        return Recipe.model_validate({"name": "columns", "task": "parse", "data": own | data, "features": features})
    references = Path(train.split(",")[0]).parent / "references"
    references.write_text("w a\n" * LISTS)
    return TextRecipe.model_validate(
        {
            "name": "columns",
            "task": "speech",
            "data": {"nbest": lists["dev"], "references": str(references), "sources": None, "tests": []}
            | {"reader": dict(form.reader)}
            | data,
            "features": {"set": None, "templates": ["Dense"]},
        }
    )
