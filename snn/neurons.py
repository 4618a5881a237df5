"""Spiking neurons as modules."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from snn import functional


class SpikingNeuron(nn.Module):
    """Base of every neuron whose first output is spikes; `SpikeRecorder` finds neurons by it."""


class LIF(SpikingNeuron):
    """Leaky integrate-and-fire neurons; the module of `snn.functional.lif`, where the maths is written down.

    Parameters
    ----------
    beta : float or Tensor (N,)
        Membrane decay of one step, exp(-dt/tau), in 0..1. A tensor is kept as a buffer.
    threshold : float or Tensor (N,)
        In units of the membrane.
    spike_grad : callable, optional
        Surrogate gradient, default `snn.ArcTan(alpha=2)`.
    reset_mechanism : str
        "zero" (the only one that exports to hardware), "subtract" or "none".

    Raises
    ------
    ValueError
        beta outside 0..1, or an unknown reset mechanism.

    >>> neuron = LIF(beta=0.5)
    >>> spikes, state = neuron(torch.ones(3, 2, 4))
    >>> spikes.shape, state.shape
    (torch.Size([3, 2, 4]), torch.Size([2, 4]))
    """

    def __init__(
        self,
        *,
        beta: float | Tensor,
        threshold: float | Tensor = 1.0,
        spike_grad: Callable[[Tensor], Tensor] | None = None,
        reset_mechanism: str = "zero",
    ) -> None:
        super().__init__()
        for name, value in (("beta", beta), ("threshold", threshold)):
            if isinstance(value, Tensor):
                self.register_buffer(name, value.detach().clone())
            else:
                setattr(self, name, float(value))
        self.spike_grad = functional.DEFAULT_SURROGATE if spike_grad is None else spike_grad
        self.reset_mechanism = reset_mechanism
        if isinstance(beta, Tensor) and not bool(((beta >= 0) & (beta <= 1)).all()):
            raise ValueError("LIF: every beta must lie in 0..1")
        # An empty sequence goes through every check of the function, so that a bad value is found here.
        sizes = [value.shape[0] for value in (beta, threshold) if isinstance(value, Tensor) and value.dim() == 1]
        self(torch.zeros(0, 0, *sizes[:1] or (1,)))

    def forward(self, current: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the neurons over `current` (T, B, N) from the membrane `state` (B, N), or from rest.

        Returns
        -------
        spikes : Tensor (T, B, N)
        state : Tensor (B, N)
        """
        return functional.lif(
            current,
            beta=self.beta,
            threshold=self.threshold,
            spike_grad=self.spike_grad,
            reset_mechanism=self.reset_mechanism,
            state=state,
        )

    def extra_repr(self) -> str:
        """Constants of the neuron."""
        values = {"beta": self.beta, "threshold": self.threshold}
        shown = [f"{k}={tuple(v.shape) if isinstance(v, Tensor) else v}" for k, v in values.items()]
        return ", ".join([*shown, f"spike_grad={self.spike_grad}", f"reset_mechanism={self.reset_mechanism!r}"])
