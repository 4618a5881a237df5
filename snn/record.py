"""Record the spikes of every neuron in a model while it runs."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from snn.functional import frame_mask
from snn.neurons import SpikingNeuron


class SpikeRecorder:
    """Keeps the spikes of every spiking neuron of `model` inside a `with` block, through forward hooks.

    Each forward pass replaces what the one before left. Spikes keep their graph, so that `mean_rate` may be part of a
    loss.

    Parameters
    ----------
    model : Module
        Searched for instances of `snn.neurons.SpikingNeuron`.

    Attributes
    ----------
    spikes : dict of str to Tensor (T, B, N)
        By the neuron's name in the model.

    Raises
    ------
    ValueError
        The model has no spiking neuron.

    >>> from snn.residual import ResidualSNN
    >>> net = ResidualSNN(4, 8, 1, max_delay=2)
    >>> with SpikeRecorder(net) as recorder:
    ...     _ = net(torch.randn(6, 2, 4))
    >>> sorted(recorder.spikes), recorder.rates()["neuron"].shape
    (['blocks.0.neuron', 'neuron'], torch.Size([8]))
    """

    def __init__(self, model: nn.Module) -> None:
        self._neurons = {name: module for name, module in model.named_modules() if isinstance(module, SpikingNeuron)}
        if not self._neurons:
            raise ValueError(f"SpikeRecorder: {type(model).__name__} has no spiking neuron")
        self._handles: list[Any] = []
        self.spikes: dict[str, Tensor] = {}

    def __enter__(self) -> SpikeRecorder:
        for name, neuron in self._neurons.items():
            self._handles.append(neuron.register_forward_hook(self._hook(name)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _hook(self, name: str) -> Any:
        def keep(module: nn.Module, inputs: Any, output: Any) -> None:
            self.spikes[name] = output[0]

        return keep

    def rates(self, lengths: Tensor | None = None) -> dict[str, Tensor]:
        """Spikes per neuron and bin, (N,) for each layer, over real frames alone.

        Parameters
        ----------
        lengths : Tensor (B,), optional
            Real frames of each trial; all of them when absent.
        """
        return {name: self._mean(spikes, lengths) for name, spikes in self.spikes.items()}

    def mean_rate(self, lengths: Tensor | None = None) -> Tensor:
        """Mean over all neurons of all layers and all real frames, a scalar with a gradient."""
        if not self.spikes:
            raise ValueError("SpikeRecorder: nothing recorded: run the model inside the `with` block first")
        return torch.cat([rate.flatten() for rate in self.rates(lengths).values()]).mean()

    @staticmethod
    def _mean(spikes: Tensor, lengths: Tensor | None) -> Tensor:
        if lengths is None:
            return spikes.mean((0, 1))
        mask = frame_mask(lengths.to(spikes.device), spikes.shape[0])
        kept = spikes.masked_fill(~mask.unsqueeze(2), 0.0)
        return kept.sum((0, 1)) / mask.sum()
