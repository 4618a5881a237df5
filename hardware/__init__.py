"""From a trained spiking network to hardware: what its operations are and what they would cost."""

from hardware import energy

__all__ = ["energy"]
