"""Which neurons a weighted layer of a spiking network listens to, and which neurons listen to it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Synapses:
    """One weighted layer of a network, seen as connections between neurons.

    A network declares all of them with a method `synapses() -> list[Synapses]`, in the order in which they run. Names
    are those of `named_modules()`. Norms are no layers of their own: they belong to the layer before them.

    Parameters
    ----------
    layer : str
        The module that holds the weights, such as an `nn.Linear`, `nn.Conv2d` or `FixedDelayLinear`.
    source : str or None
        The neuron whose spikes it receives; None where it receives the network's own input.
    target : str or None
        The neuron that its output is the current of; None for a readout.
    readers : tuple of str
        Every neuron that its output reaches before another weighted layer does, the target among them. Where a
        shortcut carries the output on these are several, and a sum may be left out only if none of them needs it.
    pool : str or None
        A max-pool module between the layer and its readers, which then have fewer places than the layer has outputs.

    Raises
    ------
    ValueError
        The target is not among the readers, or readers without a target.

    >>> Synapses("conv", source=None, target="neuron", readers=("neuron",)).target
    'neuron'
    """

    layer: str
    source: str | None
    target: str | None
    readers: tuple[str, ...] = ()
    pool: str | None = None

    def __post_init__(self) -> None:
        if (self.target is None) != (not self.readers) or (self.target is not None and self.target not in self.readers):
            raise ValueError(
                f"Synapses {self.layer!r}: the target must be one of the readers, and a readout has neither; "
                f"found target {self.target!r} and readers {self.readers}"
            )


def declared_synapses(model: nn.Module) -> list[Synapses]:
    """What `model.synapses()` declares, with every name checked.

    Raises
    ------
    TypeError
        The model has no such method.
    ValueError
        It names a module that the model does not have, or a layer twice.
    """
    declare = getattr(model, "synapses", None)
    if not callable(declare):
        raise TypeError(
            f"{type(model).__name__} does not say how it is wired: it needs a method synapses() -> list[snn.Synapses]"
        )
    declared = list(declare())
    names = {name for name, _ in model.named_modules()}
    for one in declared:
        for name in (one.layer, one.source, one.target, *one.readers, one.pool):
            if name is not None and name not in names:
                raise ValueError(
                    f"{type(model).__name__}.synapses(): {one.layer!r} names {name!r}, which is not in the model"
                )
    layers = [one.layer for one in declared]
    twice = sorted({name for name in layers if layers.count(name) > 1})
    if twice:
        raise ValueError(f"{type(model).__name__}.synapses(): declared twice: {', '.join(twice)}")
    return declared
