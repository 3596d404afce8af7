"""Functions whose body numba picks by type: a skeleton calls ``step(state, …, q)``, and every learner has its own step.

``by_type`` declares such a function, and ``body`` gives it a body for a class, as a method is given to a class. Which
one is meant is settled while a kernel is compiled, so nothing is looked up while it runs, and no function is passed.

Whatever takes settings or a state is declared so, even where all learners share its body: a kernel is kept on disk
under the types that it was compiled for, and those of a user's module would be missed by programs that do not have it.
Only the kernels that are called from Python take them (see ``kernel_of``).
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

from rerank.kernels.compile import Called

F = TypeVar("F", bound=Callable[..., Any])
HOOKS: dict[str, "ByType"] = {}  # all declared functions, by name


class ByType(Called):
    """A function with a body for each of several classes; that for ``object`` is the default."""

    def __init__(self, declared: Callable[..., Any]) -> None:
        self.bodies: dict[type, Callable[..., Any]] = {object: declared}
        self.declared = declared
        update_wrapper(self, declared)

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


def by_type(declared: F) -> F:
    """Declare a function of kernels whose body depends on the classes of its arguments; its own is the default.

    In plain Python it picks by the values that it is called with.
    """
    HOOKS[declared.__name__] = made = ByType(declared)
    return cast(F, made)


def take_methods(kind: type) -> None:
    """Make the static methods of ``kind`` that are named like declared functions their bodies for it."""
    for name, method in vars(kind).items():
        if isinstance(method, staticmethod) and name in HOOKS and not method.__isabstractmethod__:
            HOOKS[name].bodies[kind] = method.__func__


def body(declared: Callable[..., Any], kind: type) -> Callable[[F], F]:
    """The decorator of the body of ``declared`` for arguments of the class ``kind``, and of classes derived from it.

    A learner's settings (``Learner.Settings``) count as the learner.
    """

    def register(function: F) -> F:
        cast(ByType, declared).bodies[kind] = function
        return function

    return register
