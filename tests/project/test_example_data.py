"""The lists that come with the program, and how to make lists of one's own."""

import gzip
import importlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from commands import Command
from pages import FENCE, PAGES, fences, files, text_of
from small import lists_of

from rerank.readers.reader import make_reader

DATA = Path(__file__).parents[2] / "data"
SPLITS = ("train", "dev", "test")
README = (DATA / "README.md").read_text(encoding="utf-8")


def unpacked(name: str) -> str:
    return gzip.decompress((DATA / name).read_bytes()).decode()


def objects_of(kind: str, split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in unpacked(f"{kind}/{split}.jsonl.gz").splitlines()]


def module(name: str) -> ModuleType:
    """A script; it finds its neighbours as it does when run."""
    sys.path.insert(0, str(DATA))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DATA))


@pytest.mark.parametrize(
    ("kind", "endings", "size"),
    [
        ("quickstart", ("nbest", "gold"), 3_000_000),
        ("asr", ("jsonl",), 200_000),
        ("llm", ("jsonl",), 600_000),
        ("sums", ("jsonl",), 600_000),
    ],
)
def test_the_files_are_small_and_hold_neither_time_nor_name(kind: str, endings: tuple[str, ...], size: int) -> None:
    paths = sorted((DATA / kind).iterdir())
    assert [path.name for path in paths] == sorted(f"{split}.{end}.gz" for split in SPLITS for end in endings)
    assert sum(path.stat().st_size for path in paths) <= size
    assert all(path.read_bytes()[:8] == b"\x1f\x8b\x08" + bytes(5) for path in paths)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    ("files", "how", "key", "form"),
    [
        ("quickstart/{}.nbest.gz quickstart/{}.gold.gz", [], "f1", "{:.1f}"),
        ("asr/{}.jsonl.gz", ["--metric", "wer", "--reader", "jsonl"], "wer", "{:.1f}"),
        ("llm/{}.jsonl.gz", ["--metric", "gain", "--reader", "{name: jsonl, base: vote}"], "gain", "{:.3f}"),
    ],
    ids=["quickstart", "asr", "llm"],
)
def test_figures_of_the_readme(files: str, how: list[str], key: str, form: str, split: str, rerank: Command) -> None:
    paths = [DATA / name for name in files.format(split, split).split()]
    found = json.loads(rerank("oracle", *paths, *how, "--json").out)
    base, best, chance = (found[name][key] * (1 if key == "gain" else 100) for name in ("base", "oracle", "random"))
    assert best > base > chance or best < base < chance
    cells = f"{found['lists']:,}", f"{found['candidates']:,}", *map(form.format, (base, best, chance))
    assert f"| {split} | {' | '.join(cells)} |" in README


@pytest.mark.parametrize("split", SPLITS)
def test_what_candidates_hold(split: str) -> None:
    """Transcripts are different, the votes of answers are counts, and gains of sums are what the arithmetic says."""
    for item in objects_of("asr", split):
        assert len({each["text"] for each in item["candidates"]}) == len(item["candidates"]) <= 20
    for item in objects_of("llm", split):
        given = [each["answer"] for each in item["candidates"]]
        assert [each["vote"] for each in item["candidates"]] == [
            given.count(answer) / 8 if answer else 0 for answer in given
        ]
        assert {each["gain"] for each in item["candidates"]} <= {0, 1}
    for item in objects_of("sums", split):
        steps = re.findall(r"([-+*])(\d+)", item["source"])
        value = int(re.match(r"\d+", item["source"])[0])
        for operation, number in steps:
            value = {"+": value + int(number), "-": value - int(number), "*": value * int(number)}[operation]
        assert item["reference"] == str(value)
        for each in item["candidates"]:
            assert each["gain"] == (each["answer"] == str(value))
            assert each["answer"] == each["text"].rsplit("=", 1)[-1]
            assert all(each[by] <= each[f"{by}_min"] <= 0 for by in ("logprob", "verifier"))


@pytest.mark.parametrize("split", SPLITS)
def test_the_figures_of_the_sums(split: str) -> None:
    lists = objects_of("sums", split)
    pairs = [([each["answer"] for each in item["candidates"]], item["reference"]) for item in lists]
    first, any_of = (np.mean([right in answers[:most] for answers, right in pairs]) for most in (1, 12))
    votes = np.mean([Counter(answers).most_common(1)[0][0] == right for answers, right in pairs])
    assert f"| {split} | {len(lists)} | {12 * len(lists):,} | {first:.3f} | {votes:.3f} | {any_of:.3f} |" in README


def test_the_search_finds_the_best_path_there_is() -> None:
    """All paths of small networks, one by one."""
    script, language, draw = module("make_asr"), module("asr_language"), module("example_files").Draw("paths")
    model = script.Bigrams([language.sentence(draw) for _ in range(20)], 50)
    for number in range(20):
        words = language.sentence(draw)[:4]
        network = script.hear(words, language.confusions(), module("example_files").Draw(f"network {number}"))
        paths: list[tuple[list[str], int]] = [([], 0)]
        for options in network:
            paths = [(said + list(more), cost + added) for said, cost in paths for more, added in options]
        ranked: dict[str, float] = {}
        for said, cost in paths:
            marked = ["<s>", *said, "</s>"]
            spoken = sum(model.cost(a, b) for a, b in pairwise(marked))
            total = round(cost + script.LM_WEIGHT * spoken, 6)
            ranked[" ".join(said)] = min(total, ranked.get(" ".join(said), total))
        found = script.decode(network, model)
        totals = [round(acoustic + script.LM_WEIGHT * spoken, 6) for _, acoustic, spoken in found]
        assert totals == sorted(totals)
        assert totals[0] == min(ranked.values())
        assert all(ranked[text] == total for (text, _, _), total in zip(found, totals, strict=True))


def test_the_scripts_make_the_shipped_files() -> None:
    """Of the transcripts the first, of the parses the gold trees."""
    for name, text in module("make_search").make_files(1).items():
        assert unpacked(f"search/{name}.gz") == text
    assert module("make_asr").make_splits(1, {"train": 25})["train"] == objects_of("asr", "train")[:25]
    script = module("make_quickstart")
    for split, trees in script.treebank(script.SEED).items():
        assert script.gold_text(trees) == unpacked(f"quickstart/{split}.gold.gz")


@pytest.mark.parametrize("split", SPLITS)
def test_the_script_makes_the_shipped_parses(split: str) -> None:
    """The first five lists of at most 12 words, with the grammar of all training trees: a long one takes a minute."""
    script, lists = module("make_quickstart"), lists_of(DATA / "quickstart" / f"{split}.nbest.gz")
    treebank = script.treebank(script.SEED)
    short = [i for i, tree in enumerate(treebank[split]) if len(tree.leaves()) <= 12][:5]
    made = script.nbest_text(split, [treebank[split][i] for i in short], script.estimate(treebank["train"]))
    expected = [re.sub(r"\t.*", f"\t{split}-{number}", lists[i], count=1) for number, i in enumerate(short, start=1)]
    assert made.strip("\n").split("\n\n") == expected
    assert made.count("(S1 ") > len(expected)


def test_a_script_writes_over_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(SystemExit):
        module("make_asr").main(["--output", str(tmp_path / "file")])
    assert "choose another --output" in capsys.readouterr().err


FOLDER = Path("docs/making-lists")
CALLED = re.compile(r"^\[[^\n]*<!-- example (\w+\.py) -->\n+```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CALLS = {name: calls for page in PAGES if page.parent == FOLDER for name, calls in CALLED.findall(text_of(page))}
SHOWN = {name: body for page in PAGES if page.parent == FOLDER for name, body in files(page)}
(RECIPE,) = files("docs/best-of-n.md")
(PICK,) = fences("docs/best-of-n.md", "py")


def python(*arguments: object) -> bytes:
    """What a program writes; it fetches nothing and takes one processor."""
    called = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(called, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def follow(rerank: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call a script of the pages as its page does, in an empty directory; give what ``rerank`` printed."""
    monkeypatch.chdir(tmp_path)

    def call(name: str, **changed: str) -> str:
        Path(name).write_text(SHOWN[name], encoding="utf-8")
        printed = ""
        for line in CALLS[name].splitlines():
            for old, new in changed.items():
                line = line.replace(old, new)
            program, *words = shlex.split(line)
            if program == "rerank":
                done = rerank(*words)
                assert done.code == 0, done
                printed += done.out
            else:
                *words, arrow, target = words
                assert (program, arrow) == ("python", ">")
                Path(target).write_bytes(python(*words))
        return printed

    return call


def lists(name: str, reader: Any = "jsonl") -> list[Any]:
    """The lists of a file."""
    found = list(make_reader(reader, "reader").read(name))
    assert all(one.problem is None for one in found)
    return found


def write(name: str, *lines: str) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def figures(printed: str, choice: str) -> list[float]:
    """The line of a choice in the table of ``rerank oracle``."""
    (found,) = re.findall(rf"^ {choice}  +(.*)$", printed, re.MULTILINE)
    return [float(figure) for figure in found.split()]


def test_every_script_is_called_on_its_page() -> None:
    """Those that need transformers are not run here, as no extra installs it."""
    scripts = {name for name in SHOWN if name.endswith(".py")}
    assert scripts == set(CALLS)
    for name in scripts:
        compile(SHOWN[name], name, "exec")


# Parses

TREEBANK = """\
(S1 (S (NP (PRP I)) (VP (VBD saw) (NP (DT a) (NN man)) (PP (IN with) (NP (NNS dogs))))))
(S1 (S (NP (PRP I)) (VP (VBD saw) (NP (NP (DT a) (NN boat)) (PP (IN with) (NP (NNS dogs)))))))
(S1 (S (NP (PRP I)) (VP (VBD saw) (NP (DT a) (NN boat)))))
"""


def test_parses_of_a_pcfg_read_off_a_treebank(follow: Any) -> None:
    flat, nested, plain = (TREEBANK.replace("man", "boat")).splitlines()
    write("train.mrg", *TREEBANK.splitlines())
    write("dev.txt", "I saw a boat with dogs", "I saw a cat", "I saw a boat")
    write("dev.mrg", nested, plain.replace("boat", "cat"), plain)
    printed = follow("parse_with_nltk.py")
    ambiguous, unknown, single = lists("dev.nbest", "charniak")
    assert [one.text for one in ambiguous.candidates] == [flat, nested]
    # Of nine NP three are PRP, three DT NN, two NNS, one NP PP; of three VP two VBD NP; of three NN two boat.
    expected = [3 / 9 * 1 / 3 * 3 / 9 * 2 / 3 * 2 / 9, 3 / 9 * 2 / 3 * 1 / 9 * 3 / 9 * 2 / 3 * 2 / 9]
    assert ambiguous.scores[:, 0] == pytest.approx(np.log(expected))
    assert (len(unknown), [one.text for one in single.candidates]) == (0, [plain])
    assert figures(printed, "oracle")[0] == figures(printed, "base")[0] == 100  # precision: one parse is just flatter
    assert figures(printed, "oracle")[1] > figures(printed, "base")[1]


# Translations

PHRASES = """\
das ||| the ||| 0.5 0.25 ||| 0-0 ||| 4 4 2 ||| |||
haus ||| house ||| 1 0.5 ||| 0-0 ||| 2 2 2 ||| |||
haus ||| building ||| 0.25 0.5 ||| 0-0 ||| 2 2 2 ||| |||
das haus ||| the house ||| 0.5 0.5 ||| 0-0 1-1 ||| 2 2 2 ||| |||
"""


def test_translations_by_a_phrase_table(follow: Any) -> None:
    Path("phrase-table").write_text(PHRASES, encoding="utf-8")
    write("dev.src", "das haus das haus", "ein haus", "haus")
    write("dev.ref", "the building the house", "a house", "house")
    printed = follow("translate_with_phrases.py")
    first, unknown, last = lists("dev.nbest", "moses")
    assert [len(first), len(unknown), len(last)] == [9, 0, 2]
    assert first.candidates[0].text == "the house the house"
    assert np.exp(first.base[:2]) == pytest.approx([0.25 * 0.25, 0.25 * 0.5 * 0.25 * 0.5])
    segmentations = [line.split(" ||| ")[-1] for line in Path("dev.nbest").read_text(encoding="utf-8").splitlines()]
    assert segmentations[0] == "0-1=0-1 2-3=2-3"
    assert figures(printed, "oracle")[0] > figures(printed, "base")[0] > 0


# Servers

SAMPLES = {"What is 2 plus 2?": ["4", "it is 4 .", "5"], "What is 1 plus 1?": ["3", "2", "perhaps 2"]}


class Server(BaseHTTPRequestHandler):
    """Answers as the documentation of both interfaces says; every word has the log probability -0.5."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"/v1/chat/completions": self.chat, "/generate": self.generate}[self.path](asked)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def chat(self, asked: dict[str, Any]) -> dict[str, Any]:
        """OpenAI's chat completions."""
        (message,) = asked["messages"]
        choices = []
        for index, text in enumerate(drawn(message["content"], asked["n"])):
            words = [{"token": word, "logprob": -0.5, "bytes": None, "top_logprobs": []} for word in text.split()]
            one = {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            choices.append(one | {"logprobs": {"content": words} if asked.get("logprobs") else None})
        return {"object": "chat.completion", "model": asked["model"], "choices": choices}

    def generate(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Text Generation Inference: the first sample with its details, the others in them."""
        assert asked["parameters"]["do_sample"]
        samples = [
            {
                "generated_text": text,
                "finish_reason": "eos_token",
                "tokens": [{"id": 7, "text": word, "logprob": -0.5, "special": False} for word in text.split()],
            }
            for text in drawn(asked["inputs"], asked["parameters"]["best_of"])
        ]
        details = {"finish_reason": "eos_token", "tokens": samples[0]["tokens"], "best_of_sequences": samples[1:]}
        return {"generated_text": samples[0]["generated_text"], "details": details}

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


def drawn(prompt: str, n: int) -> list[str]:
    return [SAMPLES[prompt][i % 3] for i in range(n)]


@pytest.fixture
def address() -> Iterator[str]:
    """Where a server answers for the time of a test."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("script", "port"), [("sample_from_server.py", "8000"), ("sample_from_tgi.py", "8080")], ids=["vllm", "tgi"]
)
def test_samples_from_a_server(
    script: str, port: str, follow: Any, address: str, rerank: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write("dev.tsv", "What is 2 plus 2?\t4", "What is 1 plus 1?\t2")
    follow(script, **{f"http://localhost:{port}": address})
    first, last = lists("dev.jsonl", {"name": "jsonl", "base": "logprob"})
    assert [one.text for one in first.candidates] == ["4", "it is 4 .", "5", "4", "it is 4 .", "5", "4", "it is 4 ."]
    assert [first.source.decode(), last.source.decode()] == list(SAMPLES)
    assert first.base.tolist()[:3] == [-0.5, -2.0, -0.5]
    for split in ("train", "test"):
        Path(f"{split}.jsonl").write_bytes(Path("dev.jsonl").read_bytes())
    write(*RECIPE)
    done = rerank("run", RECIPE[0], "--set", "data.root=.", "--set", "training.epochs=2")
    assert done.code == 0, done
    found = json.loads(Path("runs/best-of-8/metrics.json").read_text(encoding="utf-8"))["splits"]["test"]
    assert found["average"]["gain"] > found["base"]["gain"] == 0.5
    pytest.importorskip("openai")
    exec(compile(PICK.replace("http://localhost:8000", address), "best-of-n", "exec"), {})
    assert capsys.readouterr().out.startswith("it is 4 . [")


# Other formats

FIRST = {  # the candidates of the first list that each script makes of the lines above it
    "hOCR": ["cat", "cut"],
    "PAGE": ["the cat", "the cut"],
    "SRILM": ["it rains", "it reigns"],
    "MLF": ["it rains", "it reigns"],
    "HFST": ["dog+N+Pl", "dog+V+3Sg"],
    "MeCab": ["time/noun flies/verb", "time/noun flies/noun"],
    "NCRF++": ["the/D dog/N", "the/D dog/V"],
    "depccg": ["(<T S 0 2> (<L NP NNP NNP Kim NP>) (<L S\\NP VBD VBD slept S\\NP>) )"],
    "M2": ["This are a test ."],
    "Percolator": ["K.PEPTIDE.R", "K.EDITPEP.R"],
}


def test_other_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path, written = tmp_path / "utt1.txt", tmp_path / "lists.jsonl"
    sections = text_of("docs/other-formats.md").split("\n## ")[1:-1]
    for section, (_, script) in zip(sections, files("docs/other-formats.md"), strict=True):
        *_, (_, lines) = FENCE.findall(section)
        path.write_text(lines, encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["script.py", str(path)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        exec(compile(script, section.partition("\n")[0], "exec"), {})
        written.write_text(capsys.readouterr().out, encoding="utf-8")
        first = lists(str(written))[0]
        expected = FIRST[section.partition("\n")[0]]
        assert [one.text for one in first.candidates][: len(expected)] == expected
        assert first.base[0] == max(first.base)
