"""The maths of the layers as pure functions: state goes in, new state comes out."""

from snn.functional.delay import fixed_delay_linear
from snn.functional.lif import DEFAULT_SURROGATE, RESET_MECHANISMS, lif
from snn.functional.norm import frame_mask, masked_batch_norm

__all__ = ["DEFAULT_SURROGATE", "RESET_MECHANISMS", "fixed_delay_linear", "frame_mask", "lif", "masked_batch_norm"]
