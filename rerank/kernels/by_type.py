"""Functions whose body numba picks by type: a skeleton calls ``step(state, …, q)``, and every learner has its own step.

``by_type`` declares such a function, and ``body`` gives it a body for a class, as a method is given to a class. Which
one is meant is settled while a kernel is compiled, so nothing is looked up while it runs, and no function is passed.

Whatever takes settings or a state is declared so, even where all learners share its body: a kernel is kept on disk
under the types that it was compiled for, and those of a user's module would be missed by programs that do not have it.
Only the kernels that are called from Python take them (see ``kernel_of``).
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba.extending import overload

from rerank.kernels.compile import OPTIONS
from rerank.kernels.shortcuts import LeafCompiler

F = TypeVar("F", bound=Callable[..., Any])
BODIES: dict[Callable[..., Any], dict[type, Callable[..., Any]]] = {}
# As a call, a body would be handed every array of a corpus and of a state in pieces, for each list anew.
INLINED = OPTIONS | {"forceinline": True, "pipeline_class": LeafCompiler}


def by_type(declared: F) -> F:
    """Declare a function of kernels whose body depends on the classes of its arguments; its own is the default.

    In plain Python it picks by the values that it is called with.
    """

    @functools.wraps(declared)
    def chosen(*arguments: Any) -> Any:
        return body_of(chosen, [type(argument) for argument in arguments])(*arguments)

    def pick(*arguments: Any) -> Callable[..., Any]:
        return body_of(chosen, [getattr(argument, "instance_class", None) for argument in arguments])

    pick.__signature__ = inspect.signature(declared)  # type: ignore[attr-defined] # numba looks there for the names
    BODIES[chosen] = {object: declared}
    overload(chosen, jit_options=cast(Any, INLINED), strict=False)(pick)
    return cast(F, chosen)


def body(declared: Callable[..., Any], kind: type) -> Callable[[F], F]:
    """The decorator of the body of ``declared`` for arguments of the class ``kind``, and of classes derived from it.

    A learner's settings (``Learner.Settings``) count as the learner.
    """

    def register(function: F) -> F:
        BODIES[declared][kind] = function
        return function

    return register


def body_of(declared: Callable[..., Any], kinds: list[Any]) -> Callable[..., Any]:
    """The body of ``declared`` for arguments of these classes; the last argument that has one decides.

    By convention that is a learner's settings. Of a class and those that it is derived from, the first counts.
    """
    bodies = BODIES[declared]
    for kind in reversed(kinds):
        owner = getattr(kind, "learner", kind)
        for each in owner.__mro__[:-1] if isinstance(owner, type) else ():
            if each in bodies:
                return bodies[each]
    return bodies[object]
