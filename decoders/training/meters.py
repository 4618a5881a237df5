"""Running means that cost no synchronisation with a device, and survive a checkpoint."""

from __future__ import annotations

import torch


def widest(device: torch.device) -> torch.dtype:
    """The widest floating type of a device: Apple's has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


class Means:
    """Weighted means of named values, kept as sums on the values' own device until somebody asks.

    Examples
    --------
    >>> means = Means()
    >>> means.add(loss=torch.tensor(1.0))
    >>> means.add(loss=torch.tensor(3.0))
    >>> means.take()
    {'loss': 2.0}
    >>> means.take()
    {}
    """

    def __init__(self) -> None:
        self.sums: dict[str, torch.Tensor] = {}
        self.weights: dict[str, float] = {}

    def add(self, weight: float = 1.0, **values: torch.Tensor) -> None:
        """Add scalars, each with the same weight; no gradient is kept."""
        for name, value in values.items():
            value = value.detach().to(widest(value.device)) * weight
            self.sums[name] = self.sums[name] + value if name in self.sums else value
            self.weights[name] = self.weights.get(name, 0.0) + weight

    def take(self) -> dict[str, float]:
        """The means, by name; forgets them."""
        means = {name: float(total) / self.weights[name] for name, total in self.sums.items() if self.weights[name]}
        self.sums, self.weights = {}, {}
        return means

    def finite(self) -> bool:
        """Whether everything added since the last `take` was finite."""
        return all(bool(torch.isfinite(total)) for total in self.sums.values())

    def state_dict(self) -> dict[str, dict[str, float]]:
        """Plain numbers; float64 sums are kept exactly."""
        return {"sums": {name: float(total) for name, total in self.sums.items()}, "weights": dict(self.weights)}

    def load_state_dict(self, state: dict[str, dict[str, float]], device: torch.device | str = "cpu") -> None:
        """Go on from what `state_dict` gave."""
        self.sums = {
            name: torch.tensor(total, dtype=widest(torch.device(device)), device=device)
            for name, total in state["sums"].items()
        }
        self.weights = dict(state["weights"])
