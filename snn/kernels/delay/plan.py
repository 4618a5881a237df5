"""What depends on the delays alone, made once for each tensor of delays and kept as long as it lives."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary


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
    def padded(self) -> dict[int, Tensor]:
        """Multiple -> the packed delays with so many zeros behind each row that its length is a multiple."""
        return {}

    def rows_of(self, multiple: int) -> Tensor:
        """The packed delays (O, I padded to a multiple)."""
        if multiple not in self.padded:
            missing = -self.packed.shape[1] % multiple
            self.padded[multiple] = torch.nn.functional.pad(self.packed, (0, missing)) if missing else self.packed
        return self.padded[multiple]


_plans: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def plan_of(delay: Tensor) -> DelayPlan:
    """The plan of a tensor of delays, made at the first call and again when its values were written to."""
    plan = _plans.get(delay)
    if plan is None or plan.version != delay._version:
        plan = _plans[delay] = DelayPlan(delay)
    return plan
