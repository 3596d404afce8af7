"""Compiled code: how functions are compiled, where machine code is kept, and the digests that identify it."""

import os

# numba's errors go to log files, which have no colours; numba looks when it is imported.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
