"""Count the operations of a network while it runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hardware.energy.arrivals import ARRIVALS
from hardware.energy.counts import Counts, LayerCounts, NeuronCounts, Tally
from snn import MaskedBatchNorm, SpikingNeuron, Synapses
from snn.functional import frame_mask
from snn.wiring import declared_synapses

FOLDED = (nn.BatchNorm1d, nn.BatchNorm2d, MaskedBatchNorm)
"""Norms whose scale is part of the weights before them, so that they are no operations of their own."""


@torch.no_grad()
def count(model: nn.Module, *inputs: Any, spiking_input: bool = False, **kwargs: Any) -> Counts:
    """Count the synaptic events of a network on real input, exactly and sample by sample.

    Runs `model(*inputs, **kwargs)` once, in the mode it is in; call `model.eval()` first unless you mean training mode.

    - A connection whose weight is zero costs nothing, nor does one whose input is zero, or padding of an image.
    - An event of a delayed connection counts at the step at which it arrives.
    - A neuron with a method `awake_trace(current, state) -> bool (T, B, ...)` may be dormant; others are always awake.
    - Padded frames count for nothing where the model is given `lengths`.
    - A layer that receives a static image runs once here, and counts once for each step (`events`, as published
      accountings do) and once in all (`events_once`).

    Parameters
    ----------
    model : Module
        With a method `synapses() -> list[snn.Synapses]` that names every weighted layer.
    *inputs, **kwargs
        Of its forward, batch on the second axis (the first of static images).
    spiking_input : bool
        The network's own input is spikes too, so that its first layer adds and does not multiply.

    Returns
    -------
    Counts
        On the CPU; add those of several batches up.

    Raises
    ------
    TypeError
        The model does not say how it is wired, or has a weighted layer of a kind that cannot be counted.
    ValueError
        A layer is not declared, does not run or runs twice, or should receive spikes and receives other values.

    References
    ----------
    Events as effective synaptic operations: Yik et al. 2025, NeuroBench, Nature Communications 16.

    >>> import snn
    >>> net = snn.ConvSNN(widths=(4, 4, 4)).eval()
    >>> counts = count(net, torch.rand(2, 1, 8, 8))
    >>> counts.layers["layers.0.conv.conv"].operation, counts.samples
    ('MAC', 2)
    """
    declared = declared_synapses(model)
    _check_all_is_declared(model, declared)
    operations = {one.layer: "MAC" if one.source is None and not spiking_input else "AC" for one in declared}
    heard = _Listener(model, operations)
    with heard:
        model(*inputs, **kwargs)
    bound = inspect.signature(model.forward).bind(*inputs, **kwargs)
    frames = heard.frames(bound.arguments.get("lengths"))
    layers = {}
    for synapses in declared:
        if synapses.layer not in heard.arrivals:
            raise ValueError(f"hardware.energy: layer {synapses.layer!r} did not run")
        if not heard.arrivals[synapses.layer].fits:
            raise ValueError(
                f"hardware.energy: layer {synapses.layer!r} should receive spikes of "
                f"{synapses.source or 'the input'} but received values other than 0 and 1"
                + (" (the model is in training mode)" if model.training else "")
            )
        layers[synapses.layer] = _layer(model, synapses, operations[synapses.layer], heard, frames)
    neurons = {name: neuron.counts(frames) for name, neuron in heard.neurons.items()}
    return Counts(layers, neurons, frames.shape[1])


class _Arrived(NamedTuple):
    """One pass of a layer: whether it received spikes if it should, and `Arrivals.events` and `.fan_in`."""

    fits: bool
    events: Tensor
    fan_in: Tensor


class _Fired(NamedTuple):
    """One pass of a layer of neurons of `shape` (T, B, ...): spikes (T, B) summed over the neurons, and which of them
    were awake; None for all."""

    spikes: Tensor
    shape: torch.Size
    awake: Tensor | None

    def counts(self, frames: Tensor) -> NeuronCounts:
        steps = frames.sum(0) * self.shape[2:].numel()
        awake = steps if self.awake is None else _total(self.awake.flatten(2).sum(2), frames)
        return NeuronCounts(steps.cpu(), awake.cpu(), _total(self.spikes, frames).cpu())


class _Listener:
    """Hears what arrives at every layer and which neurons are awake, in one forward pass."""

    def __init__(self, model: nn.Module, operations: dict[str, str]) -> None:
        modules = dict(model.named_modules())
        self._operations = operations
        self._layers = {name: modules[name] for name in operations}
        self._neurons = {name: module for name, module in modules.items() if isinstance(module, SpikingNeuron)}
        self._handles: list[Any] = []
        self.arrivals: dict[str, _Arrived] = {}
        self.neurons: dict[str, _Fired] = {}

    def __enter__(self) -> _Listener:
        for hook, modules in ((self._arrived, self._layers), (self._fired, self._neurons)):
            for name, module in modules.items():
                self._handles.append(module.register_forward_hook(hook(name), with_kwargs=True))
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _arrived(self, name: str) -> Callable[..., None]:
        def keep(layer: nn.Module, inputs: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            self._once(name, self.arrivals)
            # Half precision cannot count beyond 256 or 2048.
            with torch.autocast(inputs[0].device.type, enabled=False):
                received, events, fan_in = ARRIVALS[type(layer)](layer, inputs)
            fits = self._operations[name] == "MAC" or bool(((received == 0) | (received == 1)).all())
            self.arrivals[name] = _Arrived(fits, events, fan_in)

        return keep

    def _fired(self, name: str) -> Callable[..., None]:
        def keep(neuron: nn.Module, inputs: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            self._once(name, self.neurons)
            spikes = output[0]
            trace = getattr(neuron, "awake_trace", None)
            awake = None if trace is None else trace(*inputs, **kwargs)
            if awake is not None and awake.shape != spikes.shape:
                raise ValueError(
                    f"hardware.energy: awake_trace of {name!r} must have the shape of its spikes "
                    f"{tuple(spikes.shape)}; found {tuple(awake.shape)}"
                )
            self.neurons[name] = _Fired((spikes != 0).flatten(2).sum(2), spikes.shape, awake)

        return keep

    def _once(self, name: str, heard: dict[str, Any]) -> None:
        if name in heard:
            raise ValueError(f"hardware.energy: {name!r} runs more than once in one pass; run whole sequences")

    def frames(self, lengths: Tensor | None) -> Tensor:
        """Which steps of which samples are real, (T, B), from the neurons' shape and the model's `lengths`."""
        found = {tuple(fired.shape[:2]) for fired in self.neurons.values()}
        if len(found) != 1:
            raise ValueError(f"hardware.energy: neurons must share one (T, B); found {sorted(found) or 'no neuron'}")
        device = next(fired.spikes.device for fired in self.neurons.values())
        steps, batch = found.pop()
        if lengths is None:
            return torch.ones(steps, batch, dtype=torch.bool, device=device)
        return frame_mask(lengths.to(device), steps)


def _layer(model: nn.Module, synapses: Synapses, operation: str, heard: _Listener, frames: Tensor) -> LayerCounts:
    events, fan_in, outputs = _by_step(synapses.layer, heard.arrivals[synapses.layer], *frames.shape)

    def gate(names: tuple[str, ...]) -> Tensor | None:
        """Where any of these neurons is awake, as (T, B, outputs); None for everywhere."""
        seen = [_needed(model, synapses, heard.neurons.get(name), name, outputs) for name in names]
        needed = [one for one in seen if one is not None]
        return functools.reduce(torch.logical_or, needed) if seen and len(needed) == len(seen) else None

    target = None if synapses.target is None else gate((synapses.target,))
    gates = {"per-neuron": target, "strict": target if len(synapses.readers) < 2 else gate(synapses.readers)}
    held = events.shape[0] != frames.shape[0]

    def once(gate: Tensor | None) -> Tensor:
        needed = None if gate is None else (gate & frames.unsqueeze(2)).any(0, keepdim=True)
        return _total(_gated(events, needed), frames.any(0, keepdim=True))

    def always(gate: Tensor | None) -> Tensor:
        return _total(_gated(events, gate), frames)

    def dense(gate: Tensor | None) -> Tensor:
        if gate is None:
            return frames.sum(0) * fan_in.sum().long()
        return ((gate & frames.unsqueeze(2)).sum(0).double() @ fan_in).long()

    def tally(counted: Callable[[Tensor | None], Tensor]) -> Tally:
        none, per_neuron = counted(None).cpu(), counted(gates["per-neuron"]).cpu()
        alone = gates["strict"] is gates["per-neuron"]
        return Tally(none, per_neuron, per_neuron if alone else counted(gates["strict"]).cpu())

    events_always = tally(always)
    return LayerCounts(synapses, operation, events_always, tally(once) if held else events_always, tally(dense))


def _by_step(name: str, arrivals: _Arrived, steps: int, batch: int) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """Events (T, B, M) or, of a static input, (1, B, M); fan-in (M,) in float64; and the shape that M is of."""
    events, fan_in = arrivals.events, arrivals.fan_in
    lead = tuple(events.shape[: events.dim() - fan_in.dim()])
    if lead[:2] != (steps, batch):
        if lead == (steps * batch,):
            events = events.unflatten(0, (steps, batch))
        elif lead[:1] == (batch,):
            events = events.unsqueeze(0)
        else:
            raise ValueError(
                f"hardware.energy: layer {name!r} ran on {lead}; the neurons have {steps} steps of {batch} samples"
            )
    outputs = tuple(events.shape[2:])
    fan_in = fan_in.expand(outputs).flatten().double()
    # Sums of integers are exact in float32 up to 2^24, in any order; in float64 far beyond any network.
    return events.flatten(2).to(torch.float32 if fan_in.sum() <= 2**24 else torch.float64), fan_in, outputs


def _needed(
    model: nn.Module, synapses: Synapses, reader: _Fired | None, name: str, outputs: tuple[int, ...]
) -> Tensor | None:
    """At which steps one reader needs each output of a layer, as (T, B, outputs); None for always."""
    if reader is None:
        raise ValueError(f"hardware.energy: layer {synapses.layer!r} feeds {name!r}, which is no neuron that ran")
    if reader.awake is None:
        return None
    awake = reader.awake
    if synapses.pool is not None:
        awake = _before_pool(model.get_submodule(synapses.pool), awake, outputs)
    if awake.shape[2:].numel() != torch.Size(outputs).numel():
        raise ValueError(
            f"hardware.energy: layer {synapses.layer!r} has outputs {outputs}, its reader {name!r} neurons "
            f"{tuple(reader.shape[2:])}: they must be one to one"
        )
    return awake.flatten(2)


def _before_pool(pool: nn.Module, awake: Tensor, outputs: tuple[int, ...]) -> Tensor:
    """Places before a max-pool that lie in the window of any neuron awake after it: (T, B, C, H, W)."""
    if type(pool) is not nn.MaxPool2d or pool.dilation not in (1, (1, 1)):
        raise TypeError(f"hardware.energy: a plain MaxPool2d may lie between a layer and its neurons; found {pool}")
    size, stride, padding = (
        (value, value) if isinstance(value, int) else value for value in (pool.kernel_size, pool.stride, pool.padding)
    )
    windows = awake.flatten(0, 2).unsqueeze(1).to(torch.float32)
    reached = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(windows.shape[2:], stride, size, padding, strict=True)]
    beyond = [have - reach for have, reach in zip(outputs[1:], reached, strict=True)]
    kernel = torch.ones(1, 1, *size, device=awake.device)
    covered = F.conv_transpose2d(windows, kernel, None, stride, padding, beyond) > 0.5
    return covered.squeeze(1).unflatten(0, awake.shape[:3])


def _gated(events: Tensor, gate: Tensor | None) -> Tensor:
    """Events of each step and sample, at the awake places."""
    return (events if gate is None else events * gate).sum(2).to(torch.int64)


def _total(per_step: Tensor, frames: Tensor) -> Tensor:
    """Sum over the real frames of each sample, from (T, B) or what repeats to it."""
    return (per_step * frames).sum(0)


def _check_all_is_declared(model: nn.Module, declared: list[Synapses]) -> None:
    layers = {one.layer for one in declared}
    for name, module in model.named_modules():
        if name in layers:
            if type(module) not in ARRIVALS:
                known = ", ".join(kind.__name__ for kind in ARRIVALS)
                raise TypeError(
                    f"hardware.energy: layer {name!r} is a {type(module).__name__}, which cannot be counted; "
                    f"what can is {known}"
                )
        elif (
            not isinstance(module, (*FOLDED, SpikingNeuron))
            and next(module.parameters(recurse=False), None) is not None
        ):
            raise ValueError(
                f"hardware.energy: {name!r} ({type(module).__name__}) has weights, but "
                f"{type(model).__name__}.synapses() does not name it"
            )
