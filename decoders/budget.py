"""Cores of a wanted size: the width that meets a parameter budget."""

from __future__ import annotations

import re
from typing import Any

from decoders.cores import CORES, Core
from neuro import DataError

TOLERANCE = 0.02
"""Largest relative distance between a core's parameters and its budget."""

_SUFFIXES = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_budget(budget: int | str) -> int:
    """Parameters meant by ``500k``, ``2M``, ``1.5M`` or a whole number.

    Examples
    --------
    >>> parse_budget("500k"), parse_budget("1.5M"), parse_budget(65_000)
    (500000, 1500000, 65000)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmM]?)", str(budget).replace("_", "").strip())
    parameters = round(float(match[1]) * _SUFFIXES[match[2].lower()]) if match else 0
    if parameters < 1:
        raise DataError("budget not understood", field="budget", found=budget, expected="500k, 2M, 5M or a number")
    return parameters


def find_core(name: str) -> type[Core]:
    """Class of the core called ``name`` in `CORES`."""
    if name not in CORES:
        raise DataError("unknown core", field="core", found=name, expected=", ".join(CORES))
    return CORES[name]


def solve_width(name: str, in_features: int, budget: int | str, **options: Any) -> int:
    """Width at which a core's parameters come nearest to a budget.

    Parameters grow with width, so the search doubles until it passes the budget and then halves the interval. Only
    sizes are computed; nothing is allocated.

    Parameters
    ----------
    name, in_features, options
        The core, its input channels, and its options other than ``width``.
    budget
        Core parameters wanted; see `parse_budget`.

    Raises
    ------
    DataError
        If no width comes within `TOLERANCE` of the budget.
    """
    core, wanted = find_core(name), parse_budget(budget)
    counts: dict[int, int] = {}

    def count(width: int) -> int:
        """Parameters at a width; -1 where the core cannot be that narrow."""
        if width not in counts:
            try:
                counts[width] = core.count(in_features, width, **options)
            except ValueError:
                if width >= 4096:  # not the width is at fault then, but an option
                    raise
                counts[width] = -1
        return counts[width]

    high = 1
    while count(high) < wanted:
        high *= 2
    low = high // 2  # count(low) < wanted <= count(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < wanted else (low, middle)
    reachable = [width for width in (low, high) if width > 0 and count(width) > 0]
    best = min(reachable, key=lambda width: abs(count(width) - wanted))
    if abs(count(best) - wanted) > TOLERANCE * wanted:
        near = " and ".join(f"{count(width):,} at width {width}" for width in reachable)
        raise DataError(
            f"no width of core {name} with {in_features} input channels meets the budget within {TOLERANCE:.0%}",
            field="budget",
            found=f"{near} core parameters",
            expected=f"{wanted:,}",
        )
    return best


def build_core(
    name: str, in_features: int, *, budget: int | str | None = None, width: int | None = None, **options: Any
) -> Core:
    """Make a core by name, at a width or at a budget.

    Parameters
    ----------
    name
        One of `decoders.CORES`.
    in_features
        Channels of one frame that reaches the core.
    budget
        Core parameters to meet within 2 %: ``500k``, ``2M``, ``5M`` or a number.
    width
        The width itself. Without budget and width the core's own default is taken.
    options
        Of the core; ``decoders.CORES[name].defaults()`` lists them.

    Raises
    ------
    DataError
        For an unknown core or option, both a budget and a width, or a budget that no width meets.
    """
    core = find_core(name)
    known = core.defaults()
    allowed = [option for option in known if option != "width"]
    unknown = [option for option in options if option not in allowed]
    if unknown:
        raise DataError(f"core {name} has no such option", field=", ".join(unknown), expected=", ".join(allowed))
    if budget is not None and width is not None:
        raise DataError("give a budget or a width, not both", found=f"budget {budget} and width {width}")
    if budget is not None:
        width = solve_width(name, in_features, budget, **options)
    return core(in_features, known["width"] if width is None else width, **options)
