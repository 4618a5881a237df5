"""What depends on the delays alone, made once for each tensor of delays and kept as long as it lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary


def in_groups(matrix: Tensor, together: int) -> Tensor:
    """(O, I) as (groups, O, together): so many neighbouring inputs of all outputs, then the next; zeros at the end."""
    outputs, inputs = matrix.shape
    padded = torch.nn.functional.pad(matrix, (0, -inputs % together))
    return padded.reshape(outputs, -1, together).transpose(0, 1).contiguous()


class DelayPlan:
    """Delays (O, I) packed into as few bits as they need, both ways round.

    Attributes
    ----------
    lowest, highest : int
        0 and 0 where there is no connection.
    version : int
        Of the tensor that it was made from; a write to that tensor makes a new plan.
    """

    def __init__(self, delay: Tensor) -> None:
        self.version = delay._version
        low, high = torch.aminmax(delay) if delay.numel() else (0, 0)
        self.lowest, self.highest = int(low), int(high)
        kind = torch.uint8 if self.lowest >= 0 and self.highest <= 255 else torch.int32
        # A copy even where nothing changes: a plan that held the tensor it is kept for would never be let go.
        self.packed = delay.detach().to(kind, memory_format=torch.contiguous_format, copy=True)

    @cached_property
    def transposed(self) -> Tensor:
        """The packed delays as (I, O)."""
        return self.packed.t().contiguous()

    @cached_property
    def _kept(self) -> dict[tuple[str, int], Tensor]:
        return {}

    def rows_of(self, multiple: int) -> Tensor:
        """The packed delays (O, I padded with zeros to a multiple)."""
        return self._keep(
            "rows", multiple, lambda: torch.nn.functional.pad(self.packed, (0, -self.packed.shape[1] % multiple))
        )

    def in_groups(self, together: int) -> Tensor:
        """The packed delays as `in_groups` lays them out."""
        return self._keep("groups", together, lambda: in_groups(self.packed, together))

    def transposed_in_groups(self, together: int) -> Tensor:
        """The transposed ones as `in_groups` lays them out."""
        return self._keep("back", together, lambda: in_groups(self.transposed, together))

    def _keep(self, what: str, number: int, make: Callable[[], Tensor]) -> Tensor:
        if (what, number) not in self._kept:
            self._kept[what, number] = make()
        return self._kept[what, number]


_plans: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def plan_of(delay: Tensor) -> DelayPlan:
    """The plan of a tensor of delays, made at the first call and again when its values were written to."""
    plan = _plans.get(delay)
    if plan is None or plan.version != delay._version:
        plan = _plans[delay] = DelayPlan(delay)
    return plan
