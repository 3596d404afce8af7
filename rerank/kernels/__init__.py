"""Compiled code: how functions are compiled, where machine code is kept, and the digests that identify it."""
