"""numba's compiler without what kernels do not need of it: half of the time.

A leaf is not made machine code of its own: it is linked into the kernels that call it, and optimised there. What an
operator or a function of numba's gives for arguments of certain types is found once, not for every line that has it.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding as _llvm
from numba.core import types as _types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.compiler import Flags as _Flags
from numba.core.targetconfig import ConfigStack as _ConfigStack

from rerank.kernels.cache import drop_damaged, list_written

llvm: Any = _llvm  # like the following, it has no types
types: Any = _types
Base: Any = Compiler
Flags: Any = _Flags
ConfigStack: Any = _ConfigStack
Result: Any = CompileResult
Library: Any = JITCodeLibrary
Kept: Any = CompileResultCacheImpl
KeptFunctions: Any = FunctionCache


class _Options(Flags):  # type: ignore[misc]
    """The options of kernels, apart from those of other functions."""


def _remembering(find: Callable[..., Any]) -> Callable[..., Any]:
    """``Function.get_call_type``, which looks up what it has found for a kernel before.

    It would try one declaration after the other, a hundred for ``+``, in each of the 11,000 places of a first run that
    call some 600 functions. All kernels have the same options, on which what it finds depends too.
    """

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if not isinstance(ConfigStack.top_or_none(), _Options):
            return find(self, context, args, kws)
        known = vars(self).setdefault("known_to_kernels", {})
        key = context, tuple(args), tuple(kws.items())
        if key not in known:
            known[key] = find(self, context, args, kws)
        return known[key]

    return get_call_type


types.Function.get_call_type = _remembering(types.Function.get_call_type)


class KernelCompiler(Base):  # type: ignore[misc]
    """How kernels are compiled that Python calls."""

    def _compile_core(self) -> Any:
        self.state.flags = _Options(self.state.flags)
        return super()._compile_core()


class _Linked(Library):  # type: ignore[misc]
    """Code that is part of that of its callers and nowhere else."""

    def finalize(self) -> None:
        """See ``CodeLibrary.finalize``: what it calls is linked in, for its callers to optimise."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


def _entry_point() -> Any:
    """What callers of a leaf find it by: a builtin function, as dispatchers ask for, that is like no other."""
    return [].append


class LeafCompiler(KernelCompiler):
    """How kernels are compiled that kernels call."""

    def _compile_core(self) -> Any:
        state = self.state
        state.library = _Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        found = super()._compile_core()._replace(entry_point=_entry_point())
        state.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
        return found


class _KeptLeaf(Kept):  # type: ignore[misc]
    """A leaf on the disk."""

    def reduce(self, cres: Any) -> Any:
        cres.fndesc.typemap = cres.fndesc.calltypes = None  # as numba leaves them out
        module = cres.library._get_module_for_linking()
        return cres.library.name, module.as_bitcode(), cres.fndesc, cres.signature

    def rebuild(self, target_context: Any, reduced_data: Any) -> Any:
        name, bitcode, fndesc, signature = reduced_data
        library = _Linked(target_context.codegen(), name)
        library._final_module, library._finalized = llvm.parse_bitcode(bitcode), True
        known = {
            "target_context": target_context, "typing_context": target_context.typing_context, "library": library,
            "fndesc": fndesc, "signature": signature, "objectmode": False, "entry_point": _entry_point(),
        }  # fmt: skip
        return Result(**dict.fromkeys(Result._fields) | known)


class KeptKernels(KeptFunctions):  # type: ignore[misc]
    """Where machine code of kernels is kept."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """See ``Cache.load_overload``, which has all of numba's declarations registered first: they are for what is
        compiled, and take a sixth of the start of a command."""
        drop_damaged(self.cache_path)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        super().save_overload(sig, data)
        list_written(self.cache_path)


class KeptLeaves(KeptKernels):
    """Where leaves are kept."""

    _impl_class = _KeptLeaf
