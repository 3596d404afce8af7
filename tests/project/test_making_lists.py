"""The scripts of docs/making-lists do what their pages say, and make lists that the program reads."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Command
from pages import FENCE, PAGES, fences, files, text_of

from rerank.readers.several import make_reader

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
    (found,) = re.findall(rf"^│ {choice} +│(.*)│$", printed, re.MULTILINE)
    return [float(figure) for figure in found.split("│")]


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


def test_other_formats_become_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
