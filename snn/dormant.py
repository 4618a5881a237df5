"""The Dormant Spiking Neuron as a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from snn import functional
from snn.functional.dormant_lif import DORMANT_SURROGATE, DormantState
from snn.neurons import SpikingNeuron
from snn.waking import make_mode


class DormantLIF(SpikingNeuron):
    """Leaky integrate-and-fire neurons that fall dormant; the maths is written down in `snn.functional.dormant_lif`.

    Parameters
    ----------
    beta : float or Tensor (N,)
        Membrane decay of one step, exp(-dt/tau), in 0..1. A tensor is kept as a buffer.
    threshold : float or Tensor (N,)
        In units of the membrane.
    dormancy_threshold : float
        Below 0. A membrane at or below it puts its neuron to sleep.
    mode : str
        "latch", as in the paper: a dormant neuron sleeps to the end of the sequence. Extensions for long sequences, of
        our own: "window" wakes all neurons at every `window`-th step, "wake" wakes a trial's neurons when more than
        `wake_above` of the layer's inputs were non-zero at the step before. Neurons wake at rest, membrane 0.
    window : int, optional
        Steps; for the mode "window".
    wake_above : float, optional
        Share of the inputs, in 0..1; for the mode "wake".
    spike_grad, dormancy_grad : callable, optional
        Surrogate gradients of the spike, default `snn.Sigmoid(alpha=4)`, and of the gate, default `spike_grad`.
    detach_gate : bool
        No gradient through the gate's test.
    reset_mechanism : str
        "zero", "subtract" or "none".

    Raises
    ------
    ValueError
        A constant out of its range, an unknown name, or a setting of another mode.

    >>> neuron = DormantLIF(beta=0.5)
    >>> spikes, state = neuron(torch.randn(6, 2, 4))
    >>> spikes.shape, state.awake.shape
    (torch.Size([6, 2, 4]), torch.Size([2, 4]))
    """

    def __init__(
        self,
        *,
        beta: float | Tensor,
        threshold: float | Tensor = 1.0,
        dormancy_threshold: float = -0.05,
        mode: str = "latch",
        window: int | None = None,
        wake_above: float | None = None,
        spike_grad: Callable[[Tensor], Tensor] | None = None,
        dormancy_grad: Callable[[Tensor], Tensor] | None = None,
        detach_gate: bool = False,
        reset_mechanism: str = "zero",
    ) -> None:
        super().__init__()
        for name, value in (("beta", beta), ("threshold", threshold)):
            if isinstance(value, Tensor):
                self.register_buffer(name, value.detach().clone())
            else:
                setattr(self, name, float(value))
        self.dormancy_threshold = dormancy_threshold
        self.spike_grad = DORMANT_SURROGATE if spike_grad is None else spike_grad
        self.dormancy_grad = self.spike_grad if dormancy_grad is None else dormancy_grad
        self.detach_gate = detach_gate
        self.reset_mechanism = reset_mechanism
        self.mode = mode
        self.waking = make_mode(mode, window=window, wake_above=wake_above)
        if isinstance(beta, Tensor) and not bool(((beta >= 0) & (beta <= 1)).all()):
            raise ValueError("DormantLIF: every beta must lie in 0..1")
        # An empty sequence goes through every check of the function, so that a bad value is found here.
        sizes = [value.shape[0] for value in (beta, threshold) if isinstance(value, Tensor) and value.dim() == 1]
        functional.dormant_lif(torch.zeros(0, 0, *sizes[:1] or (1,)), **self._options())
        self.dormancy_threshold = float(dormancy_threshold)

    @property
    def listens(self) -> bool:
        """Whether `forward` needs `drive`."""
        return self.waking.listens

    def forward(
        self, current: Tensor, state: DormantState | None = None, drive: Tensor | None = None
    ) -> tuple[Tensor, DormantState]:
        """Run the neurons over `current` (T, B, N) from `state`, or awake and at rest.

        Parameters
        ----------
        current : Tensor (T, B, N)
        state : DormantState, optional
        drive : Tensor (T, B), optional
            Share of non-zero inputs of the layer beneath, for a mode that listens to it.

        Returns
        -------
        spikes : Tensor (T, B, N)
        state : DormantState
        """
        wake, clock = self.waking.marks(None if state is None else state.clock, drive, current)
        spikes, state = functional.dormant_lif(current, state=state, wake=wake, **self._options())
        return spikes, DormantState(state.membrane, state.awake, clock)

    def awake(self, state: DormantState) -> Tensor:
        """Neurons that are updated at the next step, bool (B, N): the sums of the others need not be made."""
        awake = (state.awake != 0) & (state.membrane > self.dormancy_threshold)
        wakes = self.waking.opens(state.clock)
        if wakes is None:
            return awake
        wakes = torch.as_tensor(wakes, device=awake.device)
        return awake | (wakes.view(-1, *[1] * (awake.dim() - 1)) & (state.awake == 0))

    def awake_trace(self, current: Tensor, state: DormantState | None = None, drive: Tensor | None = None) -> Tensor:
        """Where the gate D is 1, bool (T, B, N), for the arguments of `forward`."""
        wake, _ = self.waking.marks(None if state is None else state.clock, drive, current)
        return functional.awake_trace(current, state=state, wake=wake, **self._options())

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _OPTIONS}

    def extra_repr(self) -> str:
        """Constants of the neuron."""
        values = {"beta": self.beta, "threshold": self.threshold, "dormancy_threshold": self.dormancy_threshold}
        shown = [f"{k}={tuple(v.shape) if isinstance(v, Tensor) else v}" for k, v in values.items()]
        return ", ".join([*shown, f"mode={self.waking}", f"spike_grad={self.spike_grad}"])


_OPTIONS = (
    "beta", "threshold", "dormancy_threshold", "spike_grad", "dormancy_grad", "detach_gate", "reset_mechanism",
)  # fmt: skip
