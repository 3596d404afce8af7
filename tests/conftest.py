"""Settings of all tests: no deadline, as an example may wait for a compilation; what several of them share."""

import gc
import io
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import small
import small_rankings
import small_texts
import typer.main
from commands import Command, Result, pass_on
from ending import pytest_configure  # noqa: F401 - a hook
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers
from instances import first_instances, in_turn, multiply_examples

from rerank.base import interrupts
from rerank.cli import application as cli
from rerank.runs import experiment

# Where the tests run in the background of a shell or under nohup, signals are ignored, by all processes they start too.
for _number in interrupts.SIGNALS:
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

# Typer makes all commands of their functions anew for every call: in tests, once a process.
typer.main.get_command = cache(typer.main.get_command)

# Other processes test at the same time: threads that scikit-learn starts would spin while they wait for a processor.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # nor are kernels compiled ahead
os.fsync = lambda _: None  # tests need not wait for disks; one of tests/storage looks at when they are waited for
MEMORY = Path("/dev/shm")  # nor do some 50,000 small files, made and removed, have to reach one
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# Modules and kernels stay: looking through them for garbage would be a tenth of the time. Commands set this too.
gc.set_threshold(50_000, 20, 100)

# The same examples everywhere; `make test-random` draws others. Hypothesis would mix constants of the modules that
# happen to be imported into its examples, which would make them depend on the selection of tests.
settings.register_profile("fixed", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("random", settings.get_profile("fixed"), derandomize=False, print_blob=True)
settings.load_profile("fixed")
providers.is_local_module_file = lambda _: False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options beside hypothesis' own ``--hypothesis-profile`` and ``--hypothesis-seed``."""
    many = "so many times the generated examples that each test names, of which one in five is tried by default"
    parser.addoption("--examples", type=float, default=0.2, help=many)
    parser.addoption("--generated", action="store_true", help="only tests that generate examples")
    parser.addoption("--quick", action="store_true", help="each test with its first parameters alone, few examples")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the instances of tests and how many examples each tries."""
    factor, kept = config.getoption("examples"), items
    if config.getoption("generated"):
        kept = [item for item in kept if is_hypothesis_test(getattr(item, "obj", None))]
    if config.getoption("quick"):
        kept = first_instances(kept)
        factor *= 0.3
    config.hook.pytest_deselected(items=list({*items}.difference(kept)))
    items[:] = in_turn(kept)
    multiply_examples([item.obj for item in items if isinstance(item, pytest.Function)], factor)


@pytest.fixture(autouse=True)
def _signals_as_they_were() -> Iterator[None]:
    """Whatever a test calls leaves the handlers of signals and their mask as it found them."""
    before = signal_state()
    yield
    assert signal_state() == before


def signal_state() -> list[object]:
    """Who handles the signals that end a process, and which are held back."""
    return [*map(signal.getsignal, interrupts.SIGNALS), signal.pthread_sigmask(signal.SIG_BLOCK, [])]


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the first lists of the quickstart data; tests do not change it."""
    if not small.QUICKSTART.exists():
        pytest.skip("data/quickstart is missing; make it with data/make_quickstart.py")
    root = tmp_path_factory.mktemp("small")
    small.write_slices(root)
    return root


@pytest.fixture(scope="session")
def texts_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the made-up translations and samples; tests do not change it."""
    root = tmp_path_factory.mktemp("texts")
    small_texts.write_task(root)
    return small_rankings.write_task(root)


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tests put their runs: those below one directory share the extracted corpora."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def small_run(small_data: Path, workspace: Path) -> Path:
    """The output of a finished run of a voted RDA and a perceptron; tests do not change it."""
    runs = [{"name": "RDA", "set": {"learner": {"name": "vrda"}}}, {"name": "perceptron"}]
    experiment.run(small.recipe(small_data, runs=runs, training={"epochs": 3}), workspace / "finished")
    return workspace / "finished"


@pytest.fixture
def rerank(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process."""

    def run(*arguments: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["rerank", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        pass_on(ended.value)
        sys.stdout.flush()
        code = ended.value.code
        assert isinstance(code, int | None)
        return Result(code or 0, *capsys.readouterr())

    return run
