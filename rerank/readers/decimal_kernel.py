"""Decimal numbers in bytes, rounded to single precision as if through double precision."""

from typing import Any

import numpy as np

from rerank.kernels.compile import kernel

# A number was read; there is none; it is infinite in single precision; slower arithmetic must decide.
DECIMAL, NO_DECIMAL, TOO_LARGE, UNDECIDED = range(4)

DIGITS = 18  # digits of a mantissa that are kept: any 18 fit an int64
POWER = 70  # 10^POWER is the highest in the table; beyond it everything is 0 or infinite
POWERS = np.array([float(f"1e{k}") for k in range(POWER + 1)])
POWERS.flags.writeable = False
EXACT_MANTISSA, EXACT_POWER = 1 << 53, 22  # up to these, doubles are exact
SLACK = 2.0**-50  # relative; exceeds the errors of the approximation and of the correctly rounded double together
FLOAT32_MAX = float(np.finfo(np.float32).max)


@kernel
def is_blank(c: Any) -> Any:
    """Whether this is white space within a line, or a line end."""
    return c == 32 or (9 <= c <= 13)


@kernel
def number(data: np.ndarray, p: int, powers: np.ndarray) -> tuple[Any, Any, Any]:
    """(DECIMAL, value, end) of the number at p, which ends at a blank or a comment; else (why not, 0, where).

    The value is what rounding the nearest double to float32 gives. A mantissa below 2^53 and a power of ten up to
    10^22 take one correctly rounded operation (Clinger 1990). For others the double is off by a few units in its last
    place, which matters only where two float32 numbers are about equally near.
    """
    c: Any = np.int64(data[p])
    negative = c == 45
    if negative or c == 43:
        p += 1
        c = np.int64(data[p])
    mantissa: Any = np.int64(0)
    digits, exponent, any_digit, point = 0, 0, False, False
    cut: Any = False
    while True:
        if 48 <= c <= 57:
            any_digit = True
            if digits < DIGITS:
                mantissa = mantissa * 10 + (c - 48)
                digits += mantissa > 0
                exponent -= point
            else:
                cut = cut or c > 48
                exponent += not point
        elif c == 46 and not point:
            point = True
        else:
            break
        p += 1
        c = np.int64(data[p])
    if not any_digit:
        return NO_DECIMAL, 0.0, p
    if c == 69 or c == 101:
        p += 1
        c = np.int64(data[p])
        minus = c == 45
        if minus or c == 43:
            p += 1
            c = np.int64(data[p])
        if not 48 <= c <= 57:
            return NO_DECIMAL, 0.0, p
        power: Any = np.int64(0)
        while 48 <= c <= 57:
            power = min(power * 10 + (c - 48), np.int64(1) << 40)
            p += 1
            c = np.int64(data[p])
        exponent += -power if minus else power
    if not is_blank(c) and c != 35:
        return NO_DECIMAL, 0.0, p
    if mantissa == 0 or exponent < -POWER:
        return DECIMAL, -0.0 if negative else 0.0, p
    if exponent > POWER:
        return TOO_LARGE, 0.0, p
    if exponent < 0:
        value = np.float64(mantissa) / powers[-exponent]
    else:
        value = np.float64(mantissa) * powers[exponent]
    if cut or mantissa > EXACT_MANTISSA or abs(exponent) > EXACT_POWER:
        if np.float32(value * (1.0 - SLACK)) != np.float32(value * (1.0 + SLACK)):
            return UNDECIDED, 0.0, p
    if np.float64(np.float32(value)) > FLOAT32_MAX:
        return TOO_LARGE, 0.0, p
    return DECIMAL, -value if negative else value, p
