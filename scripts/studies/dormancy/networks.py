"""The networks of the study: everything that decides one, so that both of a pair differ in their neurons alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import nn

import snn
from scripts.output import plain
from snn.functional.dormant_lif import DORMANT_SURROGATE

BETA = 0.5
"""Decay of every membrane in one step: the authors' 1 - 1/tau with tau 2."""


def _lif(**options: Any) -> snn.LIF:
    # The dormant neuron's surrogate, so that the gate is all that a pair differs in.
    return snn.LIF(**{"beta": BETA, "spike_grad": DORMANT_SURROGATE, **options})


def _dormant(**options: Any) -> snn.DormantLIF:
    return snn.DormantLIF(**{"beta": BETA, **options})


NEURONS: dict[str, Callable[..., nn.Module]] = {"lif": _lif, "dormant": _dormant}
"""Name -> neuron made from its options."""

FORMS: dict[str, Callable[..., nn.Module]] = {
    "conv": snn.ConvSNN,
    "ms_resnet": snn.MSResNet,
    "residual": snn.ResidualSNN,
}
"""Name -> network made from its options and `neuron`."""


@dataclass(frozen=True)
class Training:
    """How a network is trained: AdamW, its rate rising over a tenth of the updates and falling with a cosine.

    Attributes
    ----------
    epochs, batch_size : int
    lr, weight_decay : float
        Peak of the rate, and the decay.
    activity_weight : float
        Added to the loss: this times the mean spikes of a neuron and step.
    flip : bool
        Mirror every other image from left to right, at random.
    """

    epochs: int
    batch_size: int = 64
    lr: float = 2e-3
    weight_decay: float = 0.01
    activity_weight: float = 0.0
    flip: bool = False


@dataclass(frozen=True)
class Network:
    """A network to train.

    Attributes
    ----------
    data : str
        Name of a set of `scripts.studies.dormancy.data`.
    form : str
        Name of one of `FORMS`.
    neuron : str
        Name of one of `NEURONS`.
    training : Training
    options, neuron_options : mapping
        Of the form and of the neuron.
    seed : int
        Of weights and batches.
    """

    data: str
    form: str
    neuron: str
    training: Training
    options: Mapping[str, Any] = field(default_factory=dict)
    neuron_options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1

    def settings(self) -> dict[str, Any]:
        """Everything but the seed, as JSON knows it."""
        settings = plain(asdict(self))
        del settings["seed"]
        return settings

    @property
    def name(self) -> str:
        """Of its files: readable, and different wherever anything that decides the weights is."""
        digest = hashlib.sha256(json.dumps(self.settings(), sort_keys=True).encode()).hexdigest()[:10]
        return f"{self.data}-{self.neuron}-seed{self.seed}-{digest}"

    def build(self) -> nn.Module:
        """The untrained network: the same weights for every neuron at the same seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return FORMS[self.form](neuron=lambda: NEURONS[self.neuron](**self.neuron_options), **self.options)

    def of(self, neuron: str, **neuron_options: Any) -> Network:
        """The same network of other neurons."""
        return replace(self, neuron=neuron, neuron_options=neuron_options)


def replace_neurons(net: nn.Module, make: Callable[[str, nn.Module], nn.Module]) -> nn.Module:
    """Put `make(name, neuron)` in the place of every neuron of a network, which is changed and handed back."""
    for name, module in list(net.named_modules()):
        if isinstance(module, snn.SpikingNeuron):
            parent, _, own = name.rpartition(".")
            setattr(net.get_submodule(parent), own, make(name, module))
    return net
