"""Price lists: what one operation costs, with the source of every number."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "price_lists"

DEFAULT_PRICES = "45nm"


@dataclass(frozen=True)
class Price:
    """One operation.

    Parameters
    ----------
    value : float
        In the unit of the list.
    what, kind, source : str
        What is priced; "published" or "derived" from such values; where it was published.
    """

    value: float
    what: str
    kind: str
    source: str


@dataclass(frozen=True)
class PriceList:
    """Prices of one technology.

    Parameters
    ----------
    name : str
        As shown beside every energy.
    unit : str
        "pJ".
    node_nm, voltage : float
        Of the technology, in nanometres and volts.
    prices : dict of str to Price
        "AC" and "MAC" for one operation, "neuron" for one update of an active neuron.
    """

    name: str
    unit: str
    node_nm: float
    voltage: float
    prices: dict[str, Price]

    def __getitem__(self, operation: str) -> float:
        """Price of one operation, in the unit of the list; ValueError where there is none."""
        if operation not in self.prices:
            known = ", ".join(self.prices)
            raise ValueError(f"price list {self.name!r} has no price for {operation!r}; it has {known}")
        return self.prices[operation].value


def load_prices(name_or_path: str | Path = DEFAULT_PRICES) -> PriceList:
    """Read a price list.

    Parameters
    ----------
    name_or_path : str or Path
        Name of one that comes with the package, or a TOML file of the same form.

    Raises
    ------
    ValueError
        No such list, or one with a field missing or not of its kind: named, with the file.

    >>> prices = load_prices("45nm")
    >>> prices["AC"], prices["MAC"], prices.unit
    (0.9, 4.6, 'pJ')
    """
    path = FOLDER / f"{name_or_path}.toml"
    if not path.is_file():
        path = Path(name_or_path)
    if not path.is_file():
        shipped = ", ".join(sorted(found.stem for found in FOLDER.glob("*.toml")))
        raise ValueError(f"no price list {str(name_or_path)!r}: neither a file nor one of {shipped}")
    try:
        read = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"price list {path}: not TOML: {error}") from None
    priced = _field(path, "", read, "prices", dict)
    prices = {}
    for operation in priced:
        where = f"prices.{operation}."
        entry = _field(path, "prices.", priced, operation, dict)
        texts = [_field(path, where, entry, field, str) for field in ("what", "kind", "source")]
        prices[operation] = Price(_number(path, where, entry, "value"), *texts)
    return PriceList(
        name=_field(path, "", read, "name", str),
        unit=_unit(path, read),
        node_nm=_number(path, "", read, "node_nm"),
        voltage=_number(path, "", read, "voltage"),
        prices=prices,
    )


def _field(path: Path, where: str, table: dict[str, Any], field: str, kind: type) -> Any:
    found = table.get(field)
    if not isinstance(found, kind) or not found:
        raise ValueError(f"price list {path}: {where}{field} must be a {kind.__name__}, not empty; found {found!r}")
    return found


def _unit(path: Path, table: dict[str, Any]) -> str:
    unit: str = _field(path, "", table, "unit", str)
    if unit != "pJ":
        raise ValueError(f"price list {path}: unit must be 'pJ'; found {unit!r}")
    return unit


def _number(path: Path, where: str, table: dict[str, Any], field: str) -> float:
    found = table.get(field)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found) or found < 0:
        raise ValueError(f"price list {path}: {where}{field} must be a number of 0 or more; found {found!r}")
    return float(found)
