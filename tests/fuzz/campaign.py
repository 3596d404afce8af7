"""Many inputs tried by some processes: counts by target and outcome, and the inputs that failed, kept."""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rich.table import Table

from .judging import OUTCOMES
from .worker import SECONDS, Tried, Worker


@dataclass
class Summary:
    """Counts of a campaign."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: dict[str, tuple[float, int]] = field(default_factory=dict)  # by target: seconds and number of an input
    large: int = 0
    failures: list[tuple[int, Tried]] = field(default_factory=list)

    def add(self, number: int, tried: Tried) -> None:
        """Count an input."""
        name = tried.target
        self.counts.setdefault(name, Counter())[tried.outcome.kind] += 1
        self.slowest[name] = max(self.slowest.get(name, (0.0, 0)), (tried.seconds, number))
        self.large += tried.large
        if tried.outcome.failed:
            self.failures.append((number, tried))

    @property
    def total(self) -> int:
        """Number of inputs."""
        return sum(map(Counter.total, self.counts.values()))

    def table(self) -> Table:
        """A row a target: inputs, outcomes, and the slowest."""
        table = Table("target", "inputs", *OUTCOMES, "failed", "slowest, s", "input")
        for column in table.columns[1:]:
            column.justify = "right"
        for name, counts in [*sorted(self.counts.items()), ("all", sum(self.counts.values(), Counter()))]:
            failed = counts.total() - sum(counts[kind] for kind in OUTCOMES)
            slowest, number = max(self.slowest.values(), default=(0.0, 0)) if name == "all" else self.slowest[name]
            cells = [counts.total(), *(counts[kind] for kind in OUTCOMES), failed]
            table.add_row(name, *(f"{cell:,}" for cell in cells), f"{slowest:.1f}", f"{number}")
        return table


@dataclass(frozen=True)
class Campaign:
    """Inputs ``first`` .. ``first + count - 1`` of ``seed``, of one target alone if ``only`` names it.

    checked: which inputs are tried with kernels that check their bounds: all, half of them (the odd ones) or none;
    start: how processes begin (see ``Worker``).
    Failing inputs are kept below ``output``/failures with what is known about them.
    """

    seed: int
    count: int
    output: Path
    first: int = 0
    jobs: int = 1
    only: str | None = None
    checked: Literal["all", "half", "none"] = "half"
    seconds: float = SECONDS
    start: str = "spawn"

    def run(self) -> Summary:
        """Try all of them."""
        numbers = range(self.first, self.first + self.count)
        plain, bounds = [n for n in numbers if not self._bounds(n)], [n for n in numbers if self._bounds(n)]
        summary, lock = Summary(), threading.Lock()

        def serve(place: int, mine: Sequence[int], checked: bool) -> None:
            if not mine:
                return
            directory = self.output / f"worker-{place}"
            worker = Worker(directory, checked=checked, kernels=self.output / "kernels", start=self.start)
            try:
                for number in mine:
                    tried = worker.run(self.seed, number, self.only, self.seconds)
                    with lock:
                        if tried.outcome.failed:
                            self._keep(number, tried, worker.directory / "input", checked)
                        summary.add(number, tried)
            finally:
                worker.stop()
                shutil.rmtree(worker.directory, ignore_errors=True)

        if self.jobs == 1:
            serve(0, plain, False)
            serve(0, bounds, True)
            return summary
        half = round(self.jobs * len(plain) / self.count)
        shares = [(plain[k::half], False) for k in range(half)]
        shares += [(bounds[k :: self.jobs - half], True) for k in range(self.jobs - half)]
        threads = [threading.Thread(target=serve, args=(k, *share)) for k, share in enumerate(shares)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return summary

    def _bounds(self, number: int) -> bool:
        return self.checked == "all" or (self.checked == "half" and number % 2 == 1)

    def _keep(self, number: int, tried: Tried, place: Path, checked: bool) -> None:
        kept = self.output / "failures" / f"{number:07d}-{tried.target.replace(' ', '-')}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(place, kept) if place.exists() else kept.mkdir(parents=True)
        about = {"seed": self.seed, "number": number, "target": tried.target, "damaged": tried.damaged}
        about |= {"outcome": tried.outcome.kind, "details": tried.outcome.details, "kernels check bounds": checked}
        (kept / "failure.json").write_text(json.dumps(about, indent=1))
