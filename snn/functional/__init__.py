"""The maths of the layers as pure functions: state goes in, new state comes out."""

from snn.functional.delay import fixed_delay_linear
from snn.functional.dormant_lif import DORMANT_SURROGATE, DormantState, awake_trace, dormant_lif
from snn.functional.lif import DEFAULT_SURROGATE, RESET_MECHANISMS, lif
from snn.functional.norm import frame_mask, masked_batch_norm

__all__ = [
    "DEFAULT_SURROGATE",
    "DORMANT_SURROGATE",
    "RESET_MECHANISMS",
    "DormantState",
    "awake_trace",
    "dormant_lif",
    "fixed_delay_linear",
    "frame_mask",
    "lif",
    "masked_batch_norm",
]
