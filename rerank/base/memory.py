"""The memory that a process may take, compared with what work needs before it is begun."""

import logging
import resource
from pathlib import Path

from rerank.base.errors import RecipeError

log = logging.getLogger("rerank")
GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def allowed() -> int:
    """The bytes that this process may take: the memory of the machine, or a lower limit of its control group, of the
    groups around it (version 1 or 2), or of its address space."""
    import psutil  # only where there is work of which this is asked

    limits: list[int] = [psutil.virtual_memory().total]
    for line in OWN.read_text().splitlines() if OWN.is_file() else ():
        controllers, path = line.split(":", 2)[1:]
        if controllers not in ("", "memory"):
            continue
        root, name = (GROUPS / "memory", "memory.limit_in_bytes") if controllers else (GROUPS, "memory.max")
        places = [root, *(root.joinpath(*Path(path).parts[1 : k + 1]) for k in range(1, len(Path(path).parts)))]
        held = [(place / name).read_text().strip() for place in places if (place / name).is_file()]
        limits += [int(text) for text in held if text.isdigit()]  # or max
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    return min(limits if space == resource.RLIM_INFINITY else [*limits, space])


def require(need: float, what: str, advice: str, key: str) -> None:
    """Refuse work that needs more bytes than there may be beside what this process holds, and warn where it needs more
    than half of those that are free. what: takes them; advice: how to need fewer, with ``key``."""
    import psutil

    info = psutil.Process().memory_info()
    room = max(0, allowed() - (info.rss - getattr(info, "shared", 0)))  # mapped files give way
    said = f"{what} takes {need / 1e9:.1f} GB"
    if need > room:
        raise RecipeError(f"{said}, and this process may have {room / 1e9:.1f} GB more; {advice}", key=key)
    if need > (free := min(room, psutil.virtual_memory().available)) / 2:
        log.warning("%s; %.1f GB of memory are free", said, free / 1e9)
