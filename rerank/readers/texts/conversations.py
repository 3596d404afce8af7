"""Texts of data sets: as they are, or as the last message of a conversation."""

from typing import Any, NamedTuple

from rerank.readers.base import Problem
from rerank.readers.texts.json_lines import shown, text_of


class Said(NamedTuple):
    """A text, and what was said before it; None if that is unknown."""

    text: bytes
    before: bytes | None


def said(value: Any, what: str) -> Said:
    """A text, or the content of the last of several messages, ``{"role": ..., "content": ...}``. Raises Problem."""
    if not is_conversation(value):
        return Said(text_of(value, what), None)
    for message in value:
        if "content" not in message:
            raise Problem("text", f"found {shown(message)} in {what}; expected messages with a role and a content")
    *before, last = [text_of(message["content"], what) for message in value]
    return Said(last, b"\n".join(before) if before else None)


def is_conversation(value: Any) -> bool:
    """Is it a list of messages?"""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def whole(value: Any, what: str) -> bytes:
    """A text, or all messages of a conversation, one to a line. Raises Problem."""
    text, before = said(value, what)
    return text if before is None else before + b"\n" + text
