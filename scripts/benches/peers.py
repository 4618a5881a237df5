"""Leaky integrate-and-fire neurons of other libraries, with the dynamics of ours: reset to zero, beta 0.5."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

BETA, THRESHOLD = 0.5, 1.0


class Peer(NamedTuple):
    """A library, and what turns currents (T, B, N) into spikes with it."""

    module: str
    build: Callable[[], Callable[[Tensor], Tensor]]


def _snntorch() -> Callable[[Tensor], Tensor]:
    import snntorch

    # Its own default resets a step later; at once is what ours does, and costs the same.
    neuron = snntorch.Leaky(beta=BETA, threshold=THRESHOLD, reset_mechanism="zero", reset_delay=False)

    def run(current: Tensor) -> Tensor:
        membrane, spikes = torch.zeros_like(current[0]), []
        for step in current:
            fired, membrane = neuron(step, membrane)
            spikes.append(fired)
        return torch.stack(spikes)

    return run


def _spikingjelly() -> Callable[[Tensor], Tensor]:
    from spikingjelly.activation_based import functional, neuron, surrogate

    layer = neuron.LIFNode(
        tau=1 / (1 - BETA), decay_input=False, v_threshold=THRESHOLD, v_reset=0.0, step_mode="m", detach_reset=True,
        surrogate_function=surrogate.ATan(alpha=2.0),
    )  # fmt: skip

    def run(current: Tensor) -> Tensor:
        functional.reset_net(layer)
        return layer(current)

    return run


def _norse() -> Callable[[Tensor], Tensor]:
    import norse.torch as norse

    parameters = norse.LIFBoxParameters(
        tau_mem_inv=torch.as_tensor((1 - BETA) * 1000.0), v_th=torch.as_tensor(THRESHOLD), method="super"
    )
    cell = norse.LIFBoxCell(p=parameters, dt=0.001)

    def run(current: Tensor) -> Tensor:
        state, spikes = None, []
        for step in current / (1 - BETA):  # it scales its input by 1 - beta
            fired, state = cell(step, state)
            spikes.append(fired)
        return torch.stack(spikes)

    return run


def _sinabs() -> Callable[[Tensor], Tensor]:
    import sinabs.activation
    import sinabs.layers

    layer = sinabs.layers.LIF(
        tau_mem=-1 / math.log(BETA), spike_threshold=THRESHOLD, norm_input=False,
        spike_fn=sinabs.activation.SingleSpike, reset_fn=sinabs.activation.MembraneReset(),
    )  # fmt: skip

    def run(current: Tensor) -> Tensor:
        layer.reset_states()
        return layer(current.transpose(0, 1)).transpose(0, 1)

    return run


LIF_PEERS: dict[str, Peer] = {
    "snnTorch loop": Peer("snntorch", _snntorch),
    "SpikingJelly multi-step": Peer("spikingjelly", _spikingjelly),
    "norse loop": Peer("norse", _norse),
    "sinabs": Peer("sinabs", _sinabs),
}
"""Name in the table -> how to get it. `pip install 'ranvier[bench]'` brings them all."""


def installed() -> tuple[dict[str, Callable[[Tensor], Tensor]], list[str]]:
    """Those that can be built here, and a note for each that cannot."""
    found, notes = {}, []
    for name, peer in LIF_PEERS.items():
        if importlib.util.find_spec(peer.module) is None:
            notes.append(f"{name} is left out: {peer.module} is not installed (pip install 'ranvier[bench]')")
            continue
        try:
            found[name] = peer.build()
        except Exception as error:  # another library's fault must not end the bench
            notes.append(f"{name} is left out: {type(error).__name__}: {error}")
    return found, notes
