"""The command line: the application that the modules of commands add to, the options that they share, how it ends.

Results go to stdout, progress and messages to stderr. Exit codes: 0 done, 1 the run failed, 2 wrong usage, recipe,
model or data, 130 interrupted (128 plus the number of the signal).
"""

import dataclasses
import errno
import functools
import gc
import inspect
import io
import logging
import os
import select
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from rerank import __version__
from rerank.base.errors import DISK_FULL, DataError, RecipeError, RerankError, RunError, StoppedError, UnforeseenError
from rerank.base.interrupts import Interrupted, take_signals
from rerank.base.progress import DETAIL, PlainConsole, console
from rerank.base.registry import Registry
from rerank.storage.places import file_of, files_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rerank.runs.report.table import TextTable

# Trees, features and names are shown as they are, whatever brackets and colons they hold. Without a terminal there
# is no width to fit: tables keep their natural one.
_width = None if sys.stdout and sys.stdout.isatty() else 200
out = PlainConsole(markup=False, emoji=False, highlight=False, soft_wrap=True, width=_width)


class Command:
    """The command under way. findings: its results by name, if they are to be printed as one object."""

    findings: dict[str, Any] | None = None


def shown_as_json() -> bool:
    """Whether the command under way prints an object."""
    return Command.findings is not None


def show(*lines: "str | TextTable", **values: Any) -> None:
    """Print lines and tables; with --json, keep in their place what they show: values by name, in full precision."""
    if Command.findings is not None:
        Command.findings |= values
        return
    for line in lines:
        out.print(line if isinstance(line, str) else _fitting(line))


def _fitting(table: "TextTable") -> "RenderableType":
    """A table as the output has room for it: narrow on a terminal, else as text of its natural width."""
    from rerank.runs.report.table import plain_text

    return table.rich(narrow=True) if out.is_terminal else plain_text(table.rich()).rstrip("\n")


@contextmanager
def answering(as_object: bool) -> Iterator[None]:
    """Print what the block finds as lines, as it comes, or when the block has ended, as an object."""
    Command.findings = {} if as_object else None
    try:
        yield
        if Command.findings:
            from rerank.storage.documents import as_json

            def plain(value: Any) -> Any:
                """A number of numpy's, or a path, as JSON knows it."""
                return value.item() if hasattr(value, "item") else str(value)

            sys.stdout.write(f"{as_json(Command.findings, indent=2, default=plain)}\n")
    finally:
        Command.findings = None


DEVELOPER = "RERANK_TRACEBACK"  # where it is set, tracebacks are shown


def command_line() -> list[str]:
    """The words that started this process, as a user would type them."""
    program = Path(sys.argv[0])
    return [*(["python", "-m", "rerank"] if program.name == "__main__.py" else [program.name]), *sys.argv[1:]]


def unforeseen(error: BaseException) -> RunError:
    """The message about ``error``: what happened, in which command, with which file, and in which temporary file its
    traceback is."""
    if os.environ.get(DEVELOPER):
        raise error
    if isinstance(error, OSError) and error.errno in DISK_FULL and error.filename is None:
        where = "standard output, or a file that is no result"  # results' writers name their files
        return RunError(f"cannot write {where}: {error.strerror}; free some space, or redirect it elsewhere")
    report = UnforeseenError.of(error)
    command = shlex.join(word if word.isprintable() else ascii(word) for word in command_line())
    try:
        number, name = tempfile.mkstemp(prefix="rerank-traceback-", suffix=".txt")
        with os.fdopen(number, "wb") as file:
            file.write(f"{command}\n{report.traceback}".encode("utf-8", "backslashreplace"))
        hint = f"the traceback is in {name}"
    except OSError as failure:
        hint = f"the traceback cannot be written ({failure.strerror or failure})"
    return RunError(f"{report}\nThis ended `{command}`; {hint}, or set {DEVELOPER}=1 to see it.")


log = logging.getLogger("rerank")
commands = Registry[object]("command")  # their modules
# Arguments that are files of lists, or of what is right.
LISTS = "FILE", "FILE...", "RUN...", "NBEST", "[REF]", "[REF...]", "HYP REF [HYP2 ...]"
GC_OBJECTS = 50_000  # objects made until Python looks for cycles again: a tenth of the start went into that, in vain
Value = TypeVar("Value")

# Wrong usage, in the terms of click, which typer may bring itself.
UsageError = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


Group = Literal["Start", "Look", "Train", "Use", "Serve"]  # of commands, in the order of the help
EXPERT = "Seldom needed"  # the second panel of options
SELDOM = {  # options that are in it, in all commands
    "address", "encoding", "engine", "folds", "form", "json", "normalize", "on_bad_list", "predictor", "reader",
    "resamples", "restarts", "roles", "samples", "seed", "trust", "workers",
}  # fmt: skip


class Commands(TyperGroup):
    """The group of all commands. Whatever ends one is a ``RerankError``: an interrupt too, and an unforeseen error."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # noqa: ARG002
        """Group by group, `run` and `new` first; a command without a group last."""
        groups: tuple[Any, ...] = (*get_args(Group), None)
        ranks = {name: groups.index(getattr(found, "rich_help_panel", None)) for name, found in self.commands.items()}
        return sorted(ranks, key=lambda name: (ranks[name], name != "run", name != "new", name))

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run the command."""
        try:
            return copy_context().run(super().invoke, ctx)
        except KeyboardInterrupt as stop:
            code = stop.exit_code if isinstance(stop, Interrupted) else 128 + signal.SIGINT
            message = "interrupted"
            if ctx.invoked_subcommand in ("run", "tune"):
                resume = shlex.join([*(word for word in command_line() if word != "--resume"), "--resume"])
                message += f"; what is done so far is kept. Continue with:\n  {resume}"
            raise StoppedError(message, code) from None
        except (Exception, SystemExit) as error:
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                raise DataError("the name is longer than the system allows", path=str(error.filename)) from None
            if _foreseen(error):
                raise
            raise unforeseen(error) from error


def _foreseen(error: BaseException) -> bool:
    """Whether a command ends with ``error``: an error of the user's, or stdout whose reader is gone."""
    if isinstance(error, BrokenPipeError):
        with suppress(OSError, ValueError):  # not a file at all
            pipe = select.poll()
            pipe.register(sys.stdout.fileno(), 0)
            if any(event & select.POLLERR for _, event in pipe.poll(0)):
                return True
    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):  # rich has caught it
        return True
    kinds = RerankError, UsageError, typer.Exit, typer.Abort
    return isinstance(error, kinds) and not isinstance(error, UnforeseenError)


app = typer.Typer(
    cls=Commands,
    name="rerank",
    help="Pick the best of N candidates for each input: learn to, and test what that gains.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def allow_local_imports(value: Value) -> Value:
    """Look for modules in the current directory too, where the user's own are, if ``value`` can name some.

    Otherwise whatever lies there and is called like a package that is not installed would be imported in its place.
    """
    names = ":" in value if isinstance(value, str) else value
    if names and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return value


def check_files(nbest: str, sources: str | None, output: str, model: str | None) -> None:
    """Refuse a command's files where standard input is named twice, or the output is an input."""
    from rerank.models.model import model_files
    from rerank.storage.outputs import check_apart
    from rerank.storage.streams import single_stdin

    inputs = [*nbest.split(","), *([] if sources is None else [sources])]
    single_stdin(*inputs)
    check_apart([output], [nbest, *inputs, *([] if model is None else model_files(model))])


ModelPlace = Annotated[str, typer.Argument(metavar="MODEL", help="A model directory.")]
OnBadList = Annotated[
    Literal["error", "skip"],
    typer.Option("--on-bad-list", help="Stop at a list that cannot be used, or skip and count it."),
]
MAX_SAMPLES, MAX_SEED = 1_000_000, (1 << 63) - 1  # of resampling tests and random numbers, as in recipes
Predictor = Annotated[
    Literal["last", "average", "voted", "mert", "mbr", "fuse", "learned", "base"] | None,
    typer.Option(
        "--predictor",
        metavar="NAME",
        help="Which predictor of the model to use: last, average, voted, mert, mbr, fuse, learned or base.",
        show_default="what the model has decided on dev",
    ),
]
ListReader = Annotated[
    str | None,
    typer.Option(
        "--reader",
        help="Format of the lists, by name or with options, as moses or {name: moses, scores: cost}.",
        callback=allow_local_imports,
    ),
]
Roles = Annotated[
    str | None,
    typer.Option(
        "--roles", metavar="KEY=ROLE,...", help="Roles of keys of JSON, as answer=text,passed=gain; see `rerank look`."
    ),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Import and call code that the model names.", callback=allow_local_imports)
]


def _read_in(name: str | None) -> str | None:
    """Let the command read files in the encoding that it names."""
    from rerank.storage.streams import check_encoding, encoding

    try:
        encoding.set(None if name is None else check_encoding(name))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return name


def _seed(number: int) -> int:
    """A seed; its bounds are too long for the help."""
    if not 0 <= number <= MAX_SEED:
        raise typer.BadParameter(f"{number} is not from 0 to {MAX_SEED}")
    return number


Seed = Annotated[int, typer.Option(help="Random seed.", callback=_seed)]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Encoding of all text files, as Python names it: latin-1. By default UTF-8, or as the model's lists.",
        callback=_read_in,
    ),
]
OutputFile = Annotated[str, typer.Option("--output", "-o", help="Output file; .gz, .bz2, .xz and .zst compress.")]
ListReferences = Annotated[list[str] | None, typer.Argument(metavar="[REF...]", help="References, for lists without.")]


@dataclasses.dataclass
class ReadOptions:
    """The options by which a command reads a file of lists."""

    reader: ListReader = None
    roles: Roles = None
    encoding: Encoding = None


@dataclasses.dataclass
class ListOptions(ReadOptions):
    """The options by which a command reads lists, all of which count."""

    on_bad_list: OnBadList = "error"

    def read(self, path: str, **more: Any) -> Any:
        """The lists of a file, see ``rerank.read``."""
        from rerank.readers.memory.reading import read

        return read(path, self.reader, on_bad_list=self.on_bad_list, roles=self.roles, **more)


def set_logging(*, quiet: bool) -> None:
    """Messages to stderr, only errors if ``quiet``: rich on a terminal, plain lines elsewhere.

    On a terminal, where a bar shows the progress, there are no lines for epochs.
    """
    handler: logging.Handler
    if console.is_terminal:
        from rich.logging import RichHandler

        handler = RichHandler(console=console, show_path=False)
        handler.addFilter(lambda record: not getattr(record, DETAIL, False))
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    logger = logging.getLogger("rerank")
    logger.handlers[:] = [handler]
    handler.setLevel(logging.ERROR if quiet else logging.INFO)
    logger.setLevel(logging.INFO)  # log.txt of a run says everything
    logger.propagate = False


class PathsCommand(TyperCommand):
    """A command with file names. They may begin with standard input: ``-,scores`` is no option. Shipped lists go by
    their names."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Names with standard input are parsed under a mark, which no argument can hold."""
        rest = super().parse_args(ctx, [f"\0{arg}" if arg.startswith("-,") else arg for arg in args])
        metavars = {parameter.name: parameter.metavar or "" for parameter in self.params}
        for name, value in ctx.params.items():
            if isinstance(value, str):
                ctx.params[name] = value = value.removeprefix("\0")
            if value and metavars.get(name, "") in LISTS:
                ctx.params[name] = file_of(value) if isinstance(value, str) else files_of(value)
        return rest


TYPES = {bool: "", int: "N", float: "X", str: "TEXT", Path: "PATH"}  # what the help says of a value without a name


def describe_option(parameter: inspect.Parameter, seldom: bool) -> None:
    """Put an option into its panel, with a short word for its type, which leaves room for what it means."""
    kind, *options = get_args(parameter.annotation)
    for option in options:
        if isinstance(option, OptionInfo):
            option.rich_help_panel = EXPERT if seldom else None
            names = [TYPES[each] for each in (kind, *get_args(kind)) if each in TYPES]
            option.metavar = option.metavar or next(iter(names), None)


Json = Annotated[bool, typer.Option("--json", help="Print the results as one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only results and errors.")]
BehindCommand = Annotated[bool, typer.Option("--quiet", "-q", hidden=True)]  # where many look for it


def command(
    name: str | None = None, group: Group | None = None, example: str = "", *, seldom: str = "", as_object: bool = True
) -> Callable[[Callable[..., None]], Any]:
    """The decorator that makes a function a command, called ``name`` or as it is; group and example stand in the help.

    Its options are the function's parameters and, if its results can be had ``as_object``, --json; a parameter whose
    type is a dataclass stands for an option for every field. The help shows those that are ``seldom`` needed last. What
    the function imports is imported when it runs, so that help and completion need not wait for compilers and readers.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        keyword, parameters, groups = inspect.Parameter.KEYWORD_ONLY, list[inspect.Parameter](), dict[str, Any]()
        for parameter in signature.parameters.values():
            kind: Any = parameter.annotation
            if isinstance(kind, type) and dataclasses.is_dataclass(kind):
                groups[parameter.name] = kind
                parameters += inspect.signature(kind, eval_str=True).parameters.values()
            else:
                parameters.append(parameter)
        if as_object:
            parameters.append(inspect.Parameter("json", keyword, default=False, annotation=Json))
        parameters.append(inspect.Parameter("quiet", keyword, default=False, annotation=BehindCommand))
        parameters = [parameter.replace(kind=keyword) for parameter in parameters]
        for parameter in parameters:
            describe_option(parameter, parameter.name in SELDOM | set(seldom.split()))

        @functools.wraps(function)
        def call(*, json: bool = False, quiet: bool = False, **options: Any) -> None:
            if quiet:
                set_logging(quiet=True)
            for key, kind in groups.items():
                options[key] = kind(**{field.name: options.pop(field.name) for field in dataclasses.fields(kind)})
            with answering(json):
                function(**options)

        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        parts = [*(function.__doc__ or "").split("\n\n"), *([f"Example: {example}"] if example else [])]
        text = "\n\n".join(" ".join(each.split()) for each in parts)
        app.command(name, cls=PathsCommand, help=text, rich_help_panel=group)(call)
        return function

    return register


def _version(value: bool) -> None:
    if value:
        out.print(f"rerank {__version__}")
        raise typer.Exit


@app.callback()
def common(
    quiet: Quiet = False,
    version: Annotated[  # noqa: ARG001 - its callback acts
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of all commands."""
    set_logging(quiet=quiet)


def load_commands(only: str | None = None) -> None:
    """Import the module of the command ``only``, or those of all, which add them to ``app``."""
    names = commands.names()
    for name in [only] if only in names else names:
        try:
            commands.get(name)
        except RecipeError as error:
            log.warning("%s", error)


def main() -> None:
    """Run the command line; whatever goes wrong is one message without a traceback."""
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - a stream that is closed has no file: None
    if sys.stdout is None:
        _fail("standard output is closed: redirect it, to a file or /dev/null", 2)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names may have bytes that are not text; stderr is like this anyway
        sys.stdout.reconfigure(errors="backslashreplace")
    gc.set_threshold(GC_OBJECTS, 20, 50)
    try:
        with take_signals():
            load_commands(next(iter(sys.argv[1:]), None))  # an interrupt may come meanwhile
            try:
                app(standalone_mode=True)
            finally:
                sys.stdout.flush()  # a full disk shows here, not when Python exits
    except RerankError as error:
        _fail(str(error), error.exit_code)
    except Interrupted as stop:  # before a command has started
        _fail("interrupted", stop.exit_code)
    except BrokenPipeError:
        # The reader of our output is gone: there is nothing more to say, and nothing must be flushed at exit.
        _drop_output()
        sys.exit(1)
    except Exception as error:  # before a command has started, or when its output is flushed
        _drop_output()
        _fail(str(unforeseen(error)), 1)


def _drop_output() -> None:
    """Discard what is left for a stdout that cannot be written: Python would try again when it exits, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> None:
    console.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True, highlight=False)
    raise SystemExit(code)
