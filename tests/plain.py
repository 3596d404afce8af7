"""Kernels as plain Python, where NUMBA_DISABLE_JIT asks for it, so that coverage sees them; to be imported first."""

from numba.core import config

from rerank.kernels import compile as kernels

if config.DISABLE_JIT:  # what the interpreter does not have
    kernels.prefetch = lambda *_: None
