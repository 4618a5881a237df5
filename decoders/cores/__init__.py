"""The cores: one file each, and the table that lists them by name."""

from decoders.cores.base import Core
from decoders.cores.gru import GRU
from decoders.cores.gru_b2t24 import GRUB2T24
from decoders.cores.gru_b2t25 import GRUB2T25
from decoders.cores.lstm import LSTM
from decoders.cores.mlp import MLP
from decoders.cores.residual_snn import ResidualSNN
from decoders.cores.tcn import TCN
from decoders.cores.transformer import Transformer

CORES: dict[str, type[Core]] = {
    "residual_snn": ResidualSNN,
    "gru": GRU,
    "lstm": LSTM,
    "tcn": TCN,
    "mlp": MLP,
    "transformer": Transformer,
    "gru_b2t24": GRUB2T24,
    "gru_b2t25": GRUB2T25,
}
"""Every core by the name that recipes use. A new core is one file and one line here."""

__all__ = ["CORES", "Core"]
