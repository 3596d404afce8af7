"""Words of messages."""


def amount(count: int, thing: str) -> str:
    """A count of things, in the plural unless there is one.

    >>> amount(1, "list"), amount(1200, "list")
    ('1 list', '1,200 lists')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
