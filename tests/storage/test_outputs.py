"""The output directory: one run at a time, what a new run removes, what is kept, and the log."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import small
from programs import PATIENCE

from rerank.base.errors import RecipeError, RunError
from rerank.storage import outputs
from rerank.storage.outputs import NOTE, log_file, output_directory, output_file, prepare_output, sole_run

RESULTS = (".runs", "metrics.json", "history.jsonl", "predictions")
HOLD = """
import sys
from pathlib import Path
from rerank.storage.outputs import sole_run
with sole_run(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def filled(directory: Path, resolved: str) -> dict[str, bytes]:
    """A directory with results of a run, and what is in it."""
    prepare_output(directory, resolved, RESULTS, resume=False)
    for names in ((".runs", "0000.npz"), ("predictions", "test"), ("metrics.json",), ("history.jsonl",), ("model",)):
        path = output_file(directory, *names)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"of {resolved}")
    (directory / ".runs" / "0000.training.npz").write_text("beside it")
    return files(directory)


def files(directory: Path) -> dict[str, bytes]:
    """All files but the note of what runs have written."""
    return {name: content for name, content in small.files_of(directory).items() if name != NOTE}


class TestOneRunAtATime:
    def test_in_this_process(self, tmp_path):
        with sole_run(tmp_path / "out"):
            with pytest.raises(
                RunError, match=rf"another run uses this directory \(process {os.getpid()} on .* since 2"
            ):
                sole_run(tmp_path / "out").__enter__()
            with sole_run(tmp_path / "other"):
                pass
        with sole_run(tmp_path / "out"):
            pass
        assert files(tmp_path) == {}

    @pytest.mark.parametrize("end", ["done", "killed"])
    def test_in_others(self, tmp_path, end):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], **pipes) as other:
            assert other.stdout.readline() == b"held\n"
            with pytest.raises(RunError, match=rf"\(process {other.pid} on "):
                sole_run(tmp_path).__enter__()
            if end == "killed":
                other.send_signal(signal.SIGKILL)
            other.communicate(b"", timeout=PATIENCE)
        assert (tmp_path / ".rerank.lock").exists() == (end == "killed")
        with sole_run(tmp_path):
            assert str(os.getpid()) in (tmp_path / ".rerank.lock").read_text()
        assert not (tmp_path / ".rerank.lock").exists()

    def test_a_refused_run_changes_nothing(self, tmp_path):
        before = filled(tmp_path, "mine")
        with sole_run(tmp_path):
            with pytest.raises(RunError), output_directory(tmp_path, "other", RESULTS, resume=False):
                pass
            (tmp_path / ".rerank.lock").rename(tmp_path / "lock")
        (tmp_path / "lock").unlink()
        assert files(tmp_path) == before


class TestPreparing:
    def test_a_new_run_starts_empty(self, tmp_path):
        filled(tmp_path, "old")
        prepare_output(tmp_path, "new", RESULTS, resume=False)
        assert files(tmp_path) == {"recipe.yaml": b"new", "model": b"of old"}
        assert (tmp_path / "predictions").is_dir()

    def test_a_resumed_run_keeps_everything(self, tmp_path):
        before = filled(tmp_path, "same")
        prepare_output(tmp_path, "same", RESULTS, resume=True)
        assert files(tmp_path) == before

    @pytest.mark.parametrize("steps", range(9))
    def test_killed_while_it_makes_room(self, tmp_path, monkeypatch, steps):
        """Whatever was done when the process died: the new run can be resumed, and finds nothing of the old one."""
        filled(tmp_path, "old")
        left = iter(range(steps))

        class KilledError(Exception):
            pass

        def dies(function):
            def step(*arguments, **options):
                if next(left, None) is None:
                    raise KilledError
                return function(*arguments, **options)

            return step

        with monkeypatch.context() as patched:
            patched.setattr(outputs, "write_text", dies(outputs.write_text))
            patched.setattr(outputs, "remove", dies(outputs.remove))
            try:
                prepare_output(tmp_path, "new", RESULTS, resume=False)
                done = True
            except KilledError:
                done = False
        assert done == (steps >= 7)
        if steps == 0:  # nothing has happened yet: the old run is as it was
            with pytest.raises(RecipeError, match="other settings"):
                prepare_output(tmp_path, "new", RESULTS, resume=True)
            return
        prepare_output(tmp_path, "new", RESULTS, resume=True)
        assert files(tmp_path) == {"recipe.yaml": b"new", "model": b"of old"}

    def test_leftovers_go(self, tmp_path):
        prepare_output(tmp_path, "same", RESULTS, resume=False)
        for place in ("", "predictions", ".runs", "figures", "mine"):
            (tmp_path / place).mkdir(parents=True, exist_ok=True)
            (tmp_path / place / ".x.01234567.rerank").write_text("")
            (tmp_path / place / ".x.partial").write_text("somebody else's")
        prepare_output(tmp_path, "same", RESULTS, resume=True)
        foreign = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob(".x.partial")}
        assert len(foreign) == 5
        assert set(files(tmp_path)) == {"recipe.yaml", "mine/.x.01234567.rerank", *foreign}


class TestLog:
    def test_it_is_added_to(self, tmp_path):
        logging.getLogger("rerank").setLevel(logging.INFO)
        for text in ("one", "two"):
            with log_file(tmp_path):
                logging.getLogger("rerank").info(text)
        lines = (tmp_path / "log.txt").read_text().splitlines()
        assert [line.split(" INFO ")[1] for line in lines] == ["one", "two"]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_its_failure_hides_nothing(self, tmp_path, caplog, capsys, monkeypatch):
        monkeypatch.setattr(logging.getLogger("rerank"), "propagate", False)
        monkeypatch.setattr(logging.getLogger("rerank"), "handlers", [caplog.handler])
        (tmp_path / "log.txt").symlink_to("/dev/full")
        with pytest.raises(ValueError, match="mine"), log_file(tmp_path):  # noqa: PT012
            logging.getLogger("rerank").warning("first")
            logging.getLogger("rerank").warning("second")
            raise ValueError("mine")
        said = [record.getMessage() for record in caplog.records]
        assert [text for text in said if "can no longer be written" not in text] == ["first", "second"]
        assert len(said) == 3
        assert "Traceback" not in capsys.readouterr().err

    def test_one_that_cannot_be_opened(self, tmp_path):
        (tmp_path / "log.txt").mkdir()
        with pytest.raises(RunError, match=r"cannot write .*log\.txt: Is a directory"):
            log_file(tmp_path).__enter__()
