"""Names that users give to splits, sets, figures and recipes, and the file names made from them."""

import os
import re
import zlib

RULE = "letters, digits and _, with . + - and spaces between them"
LONGEST = 100  # bytes: names made from it have to be file names too
_NAME = re.compile(r"\w([\w .+-]*[\w+-])?")


def is_name(text: str) -> bool:
    """Can ``text`` be part of a file's name as it is? It follows ``RULE``, is not empty, and not too long."""
    return _NAME.fullmatch(text) is not None and len(os.fsencode(text)) <= LONGEST


def file_name(name: str) -> str:
    """``name`` as (part of) the name of a file: as it is, or with a digest, so that two names never share a file."""
    if is_name(name):
        return name
    data = name.encode("utf-8", "surrogatepass")
    cleaned = re.sub(r"[^\w.+-]+", "_", name).strip("._+-")[: LONGEST // 8]
    return f"{cleaned or '_'}-{zlib.crc32(data):08x}"


def check_split(name: str) -> str:
    """``name``, if it can be the name of a split.

    Raises
    ------
    ValueError: it cannot be; the message says what to write instead.
    """
    if is_name(name):
        return name
    message = f"the name of a split may have {RULE}, and at most {LONGEST} bytes"
    folder, slash, last = name.rpartition("/")
    if slash and is_name(last):
        message += f"; for files elsewhere, name the folder in data.root ({folder or '/'}) and the split {last!r}"
    elif slash:
        message += "; for files elsewhere, name the folder in data.root"
    raise ValueError(message)
