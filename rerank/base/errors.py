"""The errors a user can cause or meet; each says where it is, what was found and what was expected.

``RerankError`` is the common base: the command line prints its message without a traceback.
Exit codes of the command line: 1 for a failed run (``RunError``), 2 for everything the user can fix in
a recipe, a data file, a model or a command line, 128 + n if signal n stopped it.
"""

from rerank.base.escaping import plain, shown

LONGEST_NAME = 100  # characters of an id or key in a message
LONGEST_MESSAGE = 2000


def _shown(text: str, longest: int = LONGEST_NAME, kept: str = "") -> str:
    """The start of a text, as a message shows it."""
    start = plain(text[:longest], kept)
    return start if len(text) <= longest else f"{start}..."


def placed(place: str, message: str, kept: str = "\t") -> str:
    """A message preceded by its place, both made plain except for the characters ``kept``, and without secrets."""
    message = _shown(shown(message), LONGEST_MESSAGE, kept)
    return f"{_shown(place, LONGEST_MESSAGE)}: {message}" if place else message


class RerankError(Exception):
    """Base of all errors that are reported to the user as one message."""

    exit_code = 2


class DataError(RerankError):
    """A data file holds something that no reader or metric can use.

    Parameters
    ----------
    message: what was found, what was expected and what to do.
    path: the file, as the user named it.
    line: 1-based line number in that file.
    list_id: the id of the N-best list concerned.
    """

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None, list_id: str | None = None
    ) -> None:
        self.message, self.path, self.line, self.list_id = message, path, line, list_id
        place = ":".join(str(part) for part in (path and shown(path), line) if part is not None)
        if list_id is not None:
            place = f"{place}: list {_shown(list_id)}" if place else f"list {_shown(list_id)}"
        super().__init__(placed(place, message))


class RecipeError(RerankError):
    """A recipe or a ``--set`` value is wrong; ``key`` is the dotted path of the setting."""

    def __init__(self, message: str, *, key: str | None = None, path: str | None = None) -> None:
        self.message, self.key, self.path = message, key, path
        place = ": ".join(part for part in (shown(path or ""), _shown(key or "")) if part)
        super().__init__(placed(place, message, kept="\n\t"))  # YAML's own messages have several lines


class ModelError(RerankError):
    """A model directory is missing, damaged, or of another version or task."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        self.message, self.path = message, path
        super().__init__(placed(shown(path or ""), message))


class RunError(RerankError):
    """A run could not be carried out for reasons outside the user's input (disk full, unwritable output)."""

    exit_code = 1


class StoppedError(RunError):
    """A signal stopped the command; ``exit_code`` is 128 plus its number."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
