"""What goes on inside the neurons of a trained network: membranes and gates, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import snn
from scripts.studies.dormancy.data import Split
from scripts.studies.dormancy.training import batches, logits_of

BATCH = 120


@torch.no_grad()
def watch(net: nn.Module, split: Split, look: Callable[[Any, Tensor], Tensor]) -> dict[str, Tensor]:
    """What `look` sees of each neuron's input, over all samples.

    Parameters
    ----------
    net : Module
    split : Split
        Of samples that all have as many steps.
    look : callable (neuron, current (T, B, ...)) -> Tensor of the same shape

    Returns
    -------
    dict
        Name of the neuron -> (T, samples, N).
    """
    seen: dict[str, list[Tensor]] = {}

    def hook(name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        return lambda neuron, inputs: seen.setdefault(name, []).append(look(neuron, inputs[0]).flatten(2))

    neurons = [(name, module) for name, module in net.named_modules() if isinstance(module, snn.SpikingNeuron)]
    handles = [neuron.register_forward_pre_hook(hook(name)) for name, neuron in neurons]
    try:
        for batch in batches(split, BATCH):
            logits_of(net, batch)
    finally:
        for handle in handles:
            handle.remove()
    return {name: torch.cat(parts, 1) for name, parts in seen.items()}


def membranes(neuron: Any, current: Tensor) -> Tensor:
    """The membrane that each step finds, after the reset of the one before: 0 at the first."""
    found, state = [torch.zeros_like(current[0])], None
    forward = type(neuron).forward  # past the hooks, which would see their own call
    for step in current[:-1]:
        _, state = forward(neuron, step.unsqueeze(0), state)
        found.append(state)
    return torch.stack(found)


def gates(neuron: snn.DormantLIF, current: Tensor) -> Tensor:
    """Where the neuron is awake, as bool."""
    return neuron.awake_trace(current)
