"""What all commands print: with --json one object that holds what the tables show, with --quiet nothing else."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small
from commands import COMMANDS, Command

from rerank import tagger

CASES = {
    "evaluate": "evaluate {data}/best.txt {data}/gold.txt",
    "evaluate systems": "evaluate {data}/best.txt {data}/gold.txt {data}/gold.txt",
    "evaluate texts": "evaluate {data}/gold.txt {data}/best.txt --metric wer --sentences",
    "oracle": "oracle {data}/test.nbest.gz {data}/test.gold.gz",
    "look": "look {data}/samples.jsonl",
    "inspect": "inspect {run}/model --top 2",
    "inspect feature": "inspect {run}/model --feature NP",
    "inspect provenance": "inspect {run}/model --provenance",
    "explain": "explain {run}/model {data}/test.nbest.gz --list test-3 --gold {data}/test.gold.gz --top 3",
    "compare": "compare {run} {run} --samples 100",
    "run --until extract": "run {data}/mine.yaml --output {work}/answers --until extract",
    "run": "run {data}/mine.yaml --output {work}/answers",
    "run --until train": "run {data}/mine.yaml --output {work}/answers --until train",
    "tune": "tune {data}/several.yaml --output {work}/answers-tune",
    "list": "list",
    "list recipes": "list recipes",
    "rank": "rank {run}/model {data}/test.nbest.gz",
    "rank base": "rank base {data}/test.nbest.gz",
    "tag": "tag {data}/tagger {data}/words.txt",
    "tag --n-best": "tag {data}/tagger {data}/words.txt --n-best 2 --output {new}/lists.jsonl",
    "new": "new {data}/samples.jsonl --output {new}/new.yaml",
    "fuse": "fuse search/lexical search/neural --qrels search/qrels",
    "vote": "vote {data}/samples.jsonl --samples 20 --folds 2",
    "weigh": "weigh {data}/samples.jsonl --samples 20 --folds 3 --resamples 2",
}
OTHERS = ("serve", "export", "import")  # have no results to print as an object
NUMBER = re.compile(r"(?<![\w.:|/(-])[+-]?\d[\d,]*(?:\.\d+)?(?![\w.:|/-]*[A-Za-z:|/])")


@pytest.fixture(scope="module")
def places(
    small_data: Path, small_run: Path, workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The files that the cases name."""
    data = tmp_path_factory.mktemp("answers")
    shutil.copytree(small_data, data, dirs_exist_ok=True)
    golds = small.golds_of(data / "test.gold.gz")
    (data / "gold.txt").write_text("".join(f"{tree}\n" for tree in golds))
    lists = small.lists_of(data / "test.nbest.gz")
    (data / "best.txt").write_text("".join(f"{block.splitlines()[2]}\n" for block in lists))
    sample = {"candidates": [{"text": "a", "answer": a, "lm": n, "gain": n % 2} for n, a in enumerate("112")]}
    (data / "samples.jsonl").write_text(f"{json.dumps(sample)}\n" * 6)
    tagger([[("a", "X"), ("b", "Y")]] * 2, reader="slash").save(data / "tagger")
    (data / "words.txt").write_text("a b\n")
    (data / "mine.yaml").write_text(json.dumps(small.settings(small_data, training={"epochs": 1, "vote": False})))
    several = small.settings(small_data, training={"epochs": 1}, grid={"training.epochs": [1, 2]}, seeds=[1])
    (data / "several.yaml").write_text(json.dumps(several))
    return {"data": data, "run": small_run, "work": workspace}


def words_of(name: str, places: dict[str, Path], new: Path) -> list[str]:
    """The words of a case, ``new`` being a directory for what it writes."""
    new.mkdir(exist_ok=True)
    return [word.format(**places, new=new) for word in CASES[name].split()]


def strict(text: str) -> Any:
    """``text`` as JSON, without NaN and repeated keys."""

    def no_constant(name: str) -> None:
        raise AssertionError(name)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), [key for key, _ in pairs]
        return dict(pairs)

    return json.loads(text, parse_constant=no_constant, object_pairs_hook=once)


def leaves(value: Any) -> Iterator[Any]:
    """All values and keys."""
    if isinstance(value, dict):
        yield from value
        value = [*value.values()]
    if isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def holds(found: list[Any], shown: str) -> bool:
    """Is the number ``shown`` one of those ``found``, rounded, or part of a text?"""
    number, digits = float(shown.replace(",", "")), len(shown.partition(".")[2])
    numbers = [float(value) for value in found if isinstance(value, int | float)]
    close = 0.5000001 * 10**-digits
    return any(abs(abs(scale * value) - abs(number)) <= close for value in numbers for scale in (1, 100)) or any(
        shown in value for value in found if isinstance(value, str)
    )


def test_every_command_has_a_case() -> None:
    assert [name for name in COMMANDS if not any(f"{case} ".startswith(f"{name} ") for case in (*CASES, *OTHERS))] == []


@pytest.mark.parametrize("name", CASES)
def test_json_holds_what_the_tables_show(rerank: Command, places: dict[str, Path], tmp_path: Path, name: str) -> None:
    plain = rerank(*words_of(name, places, tmp_path / "a"))
    answer = rerank(*words_of(name, places, tmp_path / "b"), "--json")
    assert (plain.code, answer.code) == (0, 0), (plain.err, answer.err)
    if name in ("rank", "rank base"):
        objects = [strict(line) for line in answer.out.splitlines()]
        texts = [each["text"] for each in objects]
        assert texts == plain.out.splitlines()
        assert [each["id"] for each in objects] == [f"test-{number}" for number in range(1, len(objects) + 1)]
        return
    found = [*leaves(strict(answer.out))]
    assert found, answer.out
    if name != "list":  # whose numbers are in the texts
        missing = [shown for shown in NUMBER.findall(plain.out.replace("95 % interval", "")) if not holds(found, shown)]
        assert not missing, (missing, plain.out)


def test_errors_are_shown_to_the_quiet(rerank: Command, tmp_path: Path) -> None:
    result = rerank("--quiet", "oracle", tmp_path / "none", tmp_path / "none", "--json")
    assert (result.code, result.out) == (2, "")
    assert "no such file" in result.err
