"""Scales of figures: where a number stands on an axis, and which round numbers are written there."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

STEPS = 1, 2, 5  # times a power of ten


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``; ``ticks`` are the numbers that are written, with their texts."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def place(self, value: float) -> float:
        """Where ``value`` stands: 0 at the low end, 1 at the high one."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def short_count(value: float) -> str:
    """A count as an axis has room for it.

    >>> short_count(0), short_count(950), short_count(12500), short_count(3_000_000)
    ('0', '950', '12.5k', '3M')
    """
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.4g}{letter}"
    return f"{value:.4g}".replace("-", "−")


def linear(
    values: Iterable[float],
    *,
    zero: bool = False,
    margin: float = 0.0,
    integer: bool = False,
    most: int = 6,
    text: Callable[[float], str] | None = None,
) -> Scale:
    """A scale that has room for ``values``, from 0 if ``zero``, with at most ``most`` steps between ticks.

    margin: what is left free at both ends, as a share of the range; integer: ticks at whole numbers alone; text: how
    ticks are written, by default with as many digits as they need.
    """
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    low = min(low, 0.0) if zero else low
    if high == low:
        low, high = (low, low + 1.0) if zero else (low - 0.5, high + 0.5)
    room = margin * (high - low)
    low, high = low if zero else low - room, high + room
    step = _step((high - low) / most, integer)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    shown = text or (lambda value: f"{value:,.{digits}f}".replace("-", "−"))
    return Scale(low, high, tuple((k * step, shown(k * step)) for k in range(first, last + 1)))


def logarithmic(values: Iterable[float], *, margin: float = 0.0, text: Callable[[float], str] = short_count) -> Scale:
    """A logarithmic scale that has room for ``values``, all above 0; ticks at powers of ten, and between them if there
    are few."""
    known = [value for value in values if value > 0] or [1.0, 10.0]
    low, high = min(known), max(known)
    if high < 1.5 * low:
        low, high = low / 1.5, high * 1.5
    room = (high / low) ** margin
    low, high = low / room, high * room
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inner = STEPS if high / low < 1000 else (1,)
    every = max(1, len(powers) // 6)
    found = [step * 10.0**power for power in powers if power % every == 0 for step in inner]
    return Scale(low, high, tuple((at, text(at)) for at in found if low <= at <= high), log=True)


def _step(least: float, integer: bool) -> float:
    """The smallest round number that is at least ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * factor for factor in (*STEPS, 10) if power * factor >= least * (1 - 1e-9))
    return max(step, 1.0) if integer else step
