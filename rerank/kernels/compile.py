"""``kernel``: the decorator of all compiled code, numba's ``njit`` with an on-disk cache that can be trusted.

numba's own cache notices only edits of the file that a kernel is in. Kernels call leaves in other files, so the cache
directory is keyed by a digest of sources: of every file of this program that holds kernels or, for a user's own kernel,
of its module and what that imports. A changed leaf means a new directory.

A function that is declared ``by_type`` has a body that numba picks by type: a skeleton calls ``step(state, …, q)``, and
every learner has its own step. ``body`` gives it a body for a class, as a method is given to a class. Which one is
meant is settled while a kernel is compiled, so nothing is looked up while it runs, and no function is passed.

Whatever takes settings or a state is declared so, even where all learners share its body: a kernel is kept on disk
under the types that it was compiled for, and those of a user's module would be missed by programs that do not have it.
Only the kernels that are called from Python take them (see ``kernel_of``).

A part that kernels work for (``KernelPart``) gives them its parameters as a named tuple of numbers.
"""

import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache, cached_property, update_wrapper
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from rerank.base.ranges import Checked, hints_of, number_of
from rerank.base.registry import nearest
from rerank.kernels.sources import kernel_state

F = TypeVar("F", bound=Callable[..., Any])
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class Callee:
    """A function that kernels call as a ``Leaf``, and Python in another way."""

    function: Callable[..., Any]

    def pick(self, *types: Any) -> Callable[..., Any]:  # noqa: ARG002 - by_type looks at them
        """The function that is compiled for arguments of these types."""
        return self.function

    @cached_property
    def _numba_type_(self) -> Any:
        """The type that it has for numba, wherever a kernel names it."""
        from rerank.kernels.leaves import Leaf

        return Leaf(self.function, self.pick)


class Kernel(Callee):
    """A function compiled for the types that it is called with, and kept with a state of sources, if one is named."""

    rehearsal: ClassVar["Rehearsal | None"] = None  # of this process

    def __init__(self, function: Callable[..., Any], state: str | None) -> None:
        self.function, self.state = function, state
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Any:
        """The functions that Python calls."""
        from rerank.kernels.leaves import compiled

        return compiled(self.function, self.state)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if Kernel.rehearsal is not None:
            return Kernel.rehearsal.call(self, *arguments, **keywords)
        return self.compiled(*arguments, **keywords)

    def __reduce__(self) -> str:
        return self.function.__qualname__


class Rehearsal:
    """Kernels run as plain Python, which shows what each is called with before any is compiled.

    calls: the kernels that Python has called, with numba's types of their arguments, in order. One in which Python has
    spent a tenth of a second is compiled, or the rest would take minutes.
    """

    LONG = 0.1  # seconds

    def __init__(self) -> None:
        self.calls, self._inside = dict[tuple[Kernel, Any], None](), False
        self._spent = defaultdict[Kernel, float](float)

    def call(self, kernel: Kernel, *arguments: Any, **keywords: Any) -> Any:
        """The result of ``kernel``; the kernels that it calls itself are compiled with it."""
        if self._inside:
            return kernel.function(*arguments, **keywords)
        self.calls[kernel, tuple(map(kernel.compiled.typeof_pyval, arguments))] = None
        if self._spent[kernel] > self.LONG:
            return kernel.compiled(*arguments, **keywords)
        self._inside, start = True, time.perf_counter()
        try:
            return kernel.function(*arguments, **keywords)
        finally:
            self._inside = False
            self._spent[kernel] += time.perf_counter() - start

    def compile(self) -> None:
        """Compile all kernels that were called, from the last one on."""
        for kernel, kinds in reversed(self.calls):
            kernel.compiled.compile(kinds)


class Prefetch(Callee):
    """Asks the processor to load array[index] (on the first axis, no wraparound) into its caches; it changes nothing.

    Lists are visited in random order: without this, every one of them would begin with a wait for memory.
    """

    @cached_property
    def _numba_type_(self) -> Any:
        from rerank.kernels.leaves import PREFETCH

        return PREFETCH

    def __call__(self, array: Any, index: int) -> None:
        """In Python there is nothing to do."""


prefetch: Any = Prefetch()


def _make_kernel(function: F, state: str | None) -> F:
    return function if INTERPRETED else cast(F, Kernel(function, state))


def kernel(function: F) -> F:
    """Compile ``function`` with numba in nopython mode, cached on disk; strict IEEE arithmetic, no fast-math.

    Sums are evaluated in the order in which they are written, so results have the same bits on every machine. A
    division by zero gives an infinity or NaN, not an exception.

    Kernels allocate nothing: every array, including scratch space, comes from the caller, and slices of arguments may
    be written but not returned. numba's runtime is therefore switched off (``_nrt=False``; a kernel that allocates does
    not compile: "NRT required but not enabled"). Without it no references are counted, which makes leaves that take
    tuples of arrays some ten times faster.

    Constants and leaves are frozen into the code: a user's own kernel is compiled again when its module, or one that
    the module imports from the same folder, has changed.
    """
    return _make_kernel(function, kernel_state({function.__module__: function.__code__.co_filename}))


@cache
def kernel_of(function: F, *kinds: type) -> F:
    """The kernel ``function`` for classes that give bodies to what it calls (see ``by_type``).

    It is a kernel apart for each of them: a call of one would take settings of other classes with fields of the same
    types for its own. For classes of a user's own modules it is kept with theirs: it is compiled again when one of the
    modules has changed, and what other programs keep names no module that they do not have. A class of a script is
    another one in every process, so nothing is kept for it.
    """
    if not isinstance(function, Kernel):
        return function
    modules = {function.function.__module__, *(kind.__module__ for kind in kinds)}
    files = {module: getattr(sys.modules.get(module), "__file__", None) for module in modules}
    return _make_kernel(cast(F, function.function), None if "__main__" in modules else kernel_state(files))


HOOKS: dict[str, "ByType"] = {}  # all declared functions, by name


class ByType(Callee):
    """A function with a body for each of several classes; that for ``object`` is the default."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.bodies: dict[type, Callable[..., Any]] = {object: function}
        self.function = function
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return self.body_of([type(argument) for argument in arguments])(*arguments)

    def pick(self, *arguments: Any) -> Callable[..., Any]:
        return self.body_of([getattr(argument, "instance_class", None) for argument in arguments])

    def body_of(self, kinds: list[Any]) -> Callable[..., Any]:
        """The body for arguments of these classes; the last argument that has one decides.

        By convention that is a learner's settings. Of a class and those that it is derived from, the first counts.
        """
        for kind in reversed(kinds):
            owner = getattr(kind, "owner", kind)
            for base in owner.__mro__[:-1] if isinstance(owner, type) else ():
                if base in self.bodies:
                    return self.bodies[base]
        return self.bodies[object]


def by_type(function: F) -> F:
    """Declare a function of kernels whose body depends on the classes of its arguments; its own is the default.

    In plain Python it picks by the values that it is called with.
    """
    HOOKS[function.__name__] = hook = ByType(function)
    return cast(F, hook)


def take_methods(kind: type) -> None:
    """Make the static methods of ``kind`` that are named like declared functions their bodies for it.

    Raises TypeError: a static method has a name that no kernel and no base class knows; it would never be called.
    """
    for name, method in vars(kind).items():
        if not isinstance(method, staticmethod) or method.__isabstractmethod__:
            continue
        if name in HOOKS:
            HOOKS[name].bodies[kind] = method.__func__
        elif not name.startswith("_") and not any(hasattr(base, name) for base in kind.__bases__):
            advice = f"{nearest(name, HOOKS)}; what only helps is a function of the module"
            raise TypeError(f"{kind.__name__} has a static method {name!r}, which no kernel calls: {advice}")


def body(hook: Callable[..., Any], kind: type) -> Callable[[F], F]:
    """The decorator of the body of ``hook`` for arguments of the class ``kind``, and of classes derived from it.

    A learner's settings (``Learner.Settings``) count as the learner.
    """

    def register(function: F) -> F:
        cast(ByType, hook).bodies[kind] = function
        return function

    return register


def thread_count() -> int:
    """The number of threads that may compute at once: one for each processor that this process may use, or as many as
    NUMBA_NUM_THREADS says; in a worker, beside which others compute, that is 1."""
    from numba import config

    return int(cast(Any, config).NUMBA_NUM_THREADS)


class SettingsClass:
    """``Settings`` of a part: a class of its own, by which kernels know which part they work for.

    It holds what the class of parts says that kernels take beside its parameters (``extra``), and then the part's other
    parameters under their names: numbers and switches as they are, None as ∞, a choice as its place in the ``Literal``
    of the field. A record of the same numbers would not do: two parts whose parameters have the same names would be one
    type, and the type says which update is compiled. Templates, of which one kernel takes many, are records.
    """

    _making = threading.Lock()  # threads that meet a part at once are to get the same class

    def __get__(self, instance: Any, owner: type) -> Any:
        with self._making:
            return _settings_class(owner)


class KernelPart(Checked):
    """A part that kernels work for: a frozen dataclass of parameters, whose static methods are compiled with them."""

    name: ClassVar[str] = ""  # that of the class if it says no other
    extra: ClassVar[tuple[str, ...]] = ()  # what its settings hold beside its parameters
    Settings = SettingsClass()  # no annotation: it is not a parameter

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        take_methods(cls)
        if "name" not in vars(cls):
            cls.name = cls.__name__


@cache
def _settings_class(owner: Any) -> Any:
    """The class; kernels in the disk cache name it by module and qualified name."""
    names = [item.name for item in fields(owner) if item.name not in owner.extra and item.name != "update"]
    settings: Any = NamedTuple("Settings", [(name, Any) for name in (*owner.extra, *names)])  # type: ignore[misc]
    settings.__module__ = owner.__module__
    settings.__qualname__ = f"{owner.__qualname__}.Settings"
    setattr(settings, "owner", owner)  # noqa: B010 - mypy takes it for a tuple
    return settings


def settings_of(part: Any, extra: Mapping[str, Any]) -> Any:
    """The settings of a part, with the values of what kernels take beside them."""
    owner: Any = type(part)
    hints = hints_of(owner)
    numbers = {
        name: number_of(getattr(part, name), hints[name]) for name in owner.Settings._fields if name not in extra
    }
    return owner.Settings(**extra, **numbers)
