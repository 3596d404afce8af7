"""The Gaussian learners: a dense mean and a dense covariance matrix; and the second-order perceptron.

The step sizes are the papers' formulas as they are printed (misprints apart), in extended precision, because some of
them cancel.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from entries import walking
from reference_walks import Rule, Shown
from scipy.optimize import brentq

Long = np.longdouble
COLLAPSED = 1e-5  # a variance below which rounding decides


Number = Any  # of extended precision, or decimal: what the formulas are worked out in


class Sizes(NamedTuple):
    """μ ← μ + αΣz; Σ ← Σ − βΣzzᵀΣ, or Σ⁻¹ ← Σ⁻¹ + ξ·diag(z²)."""

    alpha: Number
    beta: Number
    xi: Number


def of_alpha(form: str, alpha: Number, v: Number, phi: Number) -> Sizes:
    """β and ξ of an α (Crammer et al. 2012, Fig. 1)."""
    if form == "var":
        return Sizes(alpha, 2 * alpha * phi / (1 + 2 * alpha * phi * v), 2 * alpha * phi)
    root = (-alpha * v * phi + np.sqrt(alpha**2 * v**2 * phi**2 + 4 * v)) / 2  # √v⁺
    return Sizes(alpha, alpha * phi / (root + v * alpha * phi), alpha * phi / root)


def cw_alpha(form: str, m: Number, v: Number, phi: Number) -> Number:
    """Crammer et al. (2012), eqs. 15 (var) and 22 (stdev)."""
    if form == "var":
        c = 1 + 2 * phi * m
        return max(0 * m, (-c + np.sqrt(c**2 - 8 * phi * (m - phi * v))) / (4 * phi * v))
    one, two = 1 + phi**2 / 2, 1 + phi**2
    return max(0 * m, (-m * one + np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * two)) / (v * two))


def excess(form: str, alpha: Number, m: Number, part: np.ndarray, phi: Number) -> Number:
    """m⁺ − φv⁺, or m⁺ − φ√v⁺ as m⁺ − φ²v⁺/m⁺, of the exact diagonal update; part_j = Σ_jj z_j²."""
    after = m + alpha * part.sum()
    if form == "var":
        return after - (phi * part / (1 + 2 * alpha * phi * part)).sum()
    return after - (phi**2 * part / (after + alpha * phi**2 * part)).sum()


def cw_exact(form: str, m: Long, part: np.ndarray, phi: Long) -> Long:
    """The root of ``excess`` on [max(0, −m/v), ∞): the upper end by doubling, then by bisection."""
    low = max(Long(0), -m / part.sum())
    if m > 0 and excess(form, low, m, part, phi) >= 0:  # met, but for rounding
        return low
    width = Long(1)
    while excess(form, low + width, m, part, phi) < 0:
        width *= 2
    f = lambda size: float(excess(form, low + Long(size), m, part, phi))  # noqa: E731
    found = brentq(f, 1e-300, float(width), xtol=1e-300, maxiter=5000)
    return low + Long(found)


def sizes_of(name: str, parameters: dict[str, Any], m: Long, v: Long, part: np.ndarray, weight: float) -> Sizes:
    """The step sizes for a z with margin m and variance v."""
    exact = parameters["covariance"] == "exact"
    if name == "cw":
        form, phi = parameters["form"], Long(parameters["phi"])
        if not exact:
            return Sizes(*map(float, of_alpha(form, weight * cw_alpha(form, m, v, phi), v, phi)))
        alpha = cw_exact(form, m, part, phi)
        xi = 2 * alpha * phi if form == "var" else alpha * phi / ((m + alpha * v) / phi)
        return Sizes(float(weight * alpha), 0.0, float(weight * xi))
    if name == "scw":
        phi, C = Long(parameters["phi"]), Long(parameters["C"]) * weight
        return Sizes(*map(float, of_alpha("stdev", min(C, cw_alpha("stdev", m, v, phi)), v, phi)))
    if name == "arow":
        r = Long(parameters["r"]) / weight
        return Sizes(float((1 - m) / (v + r)), float(1 / (v + r)), float(1 / r))
    C = Long(parameters["C"]) * weight  # nherd
    xi = C**2 * v + 2 * C
    return Sizes(float((1 - m) / (v + 1 / C)), float(xi / (1 + C * v) ** 2), float(xi))


def shortfall(name: str, parameters: dict[str, Any], m: float, v: float) -> float:
    """How far the margin is below what the rule asks for, or the loss of one that is never content."""
    if name == "cw" and parameters["form"] == "var":
        return parameters["phi"] * v - m
    if name in ("cw", "scw"):
        return parameters["phi"] * float(np.sqrt(v)) - m
    return 1.0 - m


def moved(covariance: str, sigma: np.ndarray, z: np.ndarray, sizes: Sizes) -> np.ndarray:
    """The covariance after the update; diagonal ones are those of the full update, or of its inverse."""
    Sz = sigma @ z
    full = sigma - sizes.beta * np.outer(Sz, Sz)
    if covariance == "full":
        return full
    if covariance == "l2":
        return np.diag(np.diag(full))
    return np.diag(1.0 / (1.0 / np.diag(sigma) + sizes.xi * z**2))


def gaussian(name: str) -> Callable[..., Rule]:
    """μ₁ = 0, Σ₁ = I: the rule of CW (Crammer, Dredze & Pereira 2012), AROW (Crammer, Kulesza & Dredze 2009), soft CW
    (Wang, Zhao & Hoi 2012) or normal herding (Crammer & Lee 2010)."""

    def make(width: int, **parameters: Any) -> Rule:
        state = {"sigma": np.eye(width)}

        def learn(mu: np.ndarray, z: np.ndarray, fixed: float, weight: float) -> Shown:
            sigma = state["sigma"]
            m, v = fixed + float(mu @ z), float(z @ sigma @ z)
            short = shortfall(name, parameters, m, v)
            if short <= 0.0 or not z.any():
                return Shown(max(0.0, short), None, abs(short))
            sizes = sizes_of(name, parameters, Long(m), Long(v), np.diag(sigma)[z != 0] * z[z != 0] ** 2, weight)
            after = moved(parameters["covariance"], sigma, z, sizes)
            state["sigma"] = after
            collapsed = np.linalg.eigvalsh(after).min() < COLLAPSED
            return Shown(short, mu + sizes.alpha * (sigma @ z), 0.0 if collapsed else abs(short))

        return learn

    return make


def solve(covariance: str, A: np.ndarray, s: np.ndarray) -> np.ndarray:
    """A⁻¹s, with the diagonal of A alone where the covariance is diagonal."""
    return s / np.diag(A) if covariance == "diagonal" else np.linalg.solve(A, s)


def sop(width: int, *, a: float, covariance: str) -> Rule:
    """Cesa-Bianchi, Conconi & Gentile (2005), Fig. 2: A = aI + Σ weight·zzᵀ, s = Σ weight·z over the updates.

    A holds the current z when that is judged. A list of weight 0, or with two equal rows, can be a mistake, but teaches
    nothing.
    """
    state = {"A": a * np.eye(width), "s": np.zeros(width)}

    def learn(_: np.ndarray, z: np.ndarray, fixed: float, weight: float) -> Shown:
        A, s = state["A"], state["s"]
        m = fixed + float(solve(covariance, A + np.outer(z, z), s) @ z)
        mistake = m <= 0.0
        if not mistake or not z.any() or weight == 0.0:
            return Shown(max(0.0, -m), None, abs(m), mistake)
        state["A"], state["s"] = A + weight * np.outer(z, z), s + weight * z
        return Shown(-m, solve(covariance, state["A"], state["s"]), abs(m), mistake)

    return learn


CW_VARIANTS: list[dict[str, Any]] = [
    {},
    {"covariance": "l2", "base": 0.0, "top": 2},
    {"covariance": "exact", "phi": 0.5, "base_rate": 0.25},
    {"covariance": "full", "phi": 0.5, "top": 3, "base_rate": 0.25},
    {"form": "stdev", "phi": 0.0625},
    {"form": "stdev", "covariance": "l2", "phi": 0.25, "base_rate": 0.5},
    {"form": "stdev", "covariance": "exact", "phi": 0.0625, "top": 2},
    {"form": "stdev", "covariance": "full", "phi": 0.0625, "base": 0.5, "base_rate": 0.25},
]
AROW_VARIANTS: list[dict[str, Any]] = [
    {},
    {"r": 0.1, "covariance": "l2", "base": 0.0, "top": 3},
    {"r": 10.0, "base": 0.5, "base_rate": 0.25, "top": 2},
    {"covariance": "full", "base_rate": 0.5},
    {"covariance": "full", "r": 0.25, "top": 3, "base": 0.5},
]
SCW_VARIANTS: list[dict[str, Any]] = [
    {},
    {"phi": 0.5, "top": 3},
    {"covariance": "l2", "C": 0.25, "base": 0.0, "base_rate": 0.25},
    {"covariance": "l2", "C": 4.0, "phi": 0.25},
]
NHERD_VARIANTS: list[dict[str, Any]] = [
    {},
    {"C": 0.25, "covariance": "l2", "base": 0.0, "top": 3},
    {"C": 0.5, "base_rate": 0.25},
]

PHI = [0.0625, 0.25, 1.0]


def with_covariance(*names: str) -> dict[str, list[Any]]:
    return {"covariance": list(names)}


SOP: list[dict[str, Any]] = [
    {},
    {"a": 0.25, "base": 0.0, "top": 2},
    {"a": 4.0, "base": 0.5, "base_rate": 0.25, "top": 3},
    {"covariance": "full", "base": 0.0},
    {"covariance": "full", "a": 0.5, "base": 0.25, "base_rate": 0.25, "top": 3},
]

# A full matrix for CW and AROW alone: the others differ from them in ``gaussian_step``, which diagonals use too.
ENTRIES = {
    "cw": walking(
        gaussian("cw"), CW_VARIANTS,
        with_covariance("kl", "l2", "exact", "full") | {"form": ["var", "stdev"], "phi": PHI}, "phi",
    ),
    "arow": walking(
        gaussian("arow"), AROW_VARIANTS,
        with_covariance("kl", "l2", "full") | {"r": [0.1, 1.0, 10.0]}, "r",
    ),
    "scw": walking(
        gaussian("scw"), SCW_VARIANTS,
        with_covariance("kl", "l2") | {"phi": [0.25, 1.0], "C": [0.5, 2.0]}, "phi C",
    ),
    "nherd": walking(
        gaussian("nherd"), NHERD_VARIANTS, with_covariance("kl", "l2") | {"C": [0.1, 1.0, 4.0]}, "C"
    ),
    "sop": walking(sop, SOP, {"covariance": ["diagonal", "full"], "a": [0.1, 1.0, 8.0]}, "a"),
}  # fmt: skip
