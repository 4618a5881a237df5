"""Run a decoder over trials and keep what a report needs: errors, confusions, spike rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

import snn
from decoders.ctc import greedy
from decoders.edits import ErrorCounts, error_counts
from neuro import Batch, DataError, collate


@dataclass(frozen=True)
class ScoredTrial:
    """One trial's reference and hypothesis (phoneme ids in torch order) and their differences."""

    key: str
    session: str
    sentence: str | None
    reference: list[int]
    hypothesis: list[int]
    counts: ErrorCounts


@dataclass(frozen=True)
class Decoded:
    """One decoded batch.

    Attributes
    ----------
    batch : Batch
        What went in; its days are the decoder's.
    logits : (T', B, K)
        On the CPU.
    lengths : (B,)
        Frames of logits of each trial.
    hypotheses : list of list of int
    spikes : dict of layer name to (T, B, N)
        Empty for a model without spiking layers, and without ``keep_spikes``.
    rates : dict of layer name to (N,)
        Spikes per step of each neuron, over the batch's real steps.
    steps : int
        Real steps that the core made for the batch.
    simulated : bool
        Whether the trials carry true phoneme onsets, which only a simulation knows.
    """

    batch: Batch
    logits: torch.Tensor
    lengths: torch.Tensor
    hypotheses: list[list[int]]
    spikes: dict[str, torch.Tensor]
    rates: dict[str, torch.Tensor]
    steps: int
    simulated: bool


def day_indices(
    sessions: Sequence[str], trained: Sequence[str], *, unknown: str = "error"
) -> tuple[dict[str, int], dict[str, str]]:
    """Which of a decoder's day layers each session goes through.

    Parameters
    ----------
    sessions
        Sessions to decode; their names sort by date.
    trained
        Sessions that the decoder has layers for, in the order of its layers.
    unknown
        "error", or "previous": a new session uses the layer of the last trained session before it.

    Returns
    -------
    days : dict of session to index
    borrowed : dict of session to session
        New sessions, each with the one whose layer it uses.

    Raises
    ------
    DataError
        If a session is new and ``unknown`` is "error", or none of the trained sessions comes before it.

    Examples
    --------
    >>> day_indices(["t15.2023.08.18"], ["t15.2023.08.11", "t15.2023.08.13"], unknown="previous")
    ({'t15.2023.08.18': 1}, {'t15.2023.08.18': 't15.2023.08.13'})
    """
    index = {name: position for position, name in enumerate(trained)}
    new = [name for name in sessions if name not in index]
    borrowed: dict[str, str] = {}
    if new and unknown == "error":
        raise DataError(
            "the checkpoint has no day layer for these sessions; score others, or let them use the layer of the last "
            "session before them with --new-sessions previous",
            field="session",
            found=", ".join(new),
            expected=f"sessions among the {len(trained)} from {trained[0]} to {trained[-1]}" if trained else None,
        )
    for name in new:
        earlier = [known for known in sorted(trained) if known < name]
        if not earlier:
            raise DataError("no trained session comes before this one, so it has no layer to use", field=name)
        borrowed[name] = earlier[-1]
    return {name: index[borrowed.get(name, name)] for name in sessions}, borrowed


def frame_geometry(decoder: Any) -> tuple[int, int]:
    """Bins that one frame of logits looks at, and bins from one frame to the next.

    Read off ``decoder.output_lengths``, so that it holds for any patching and pooling.

    Raises
    ------
    DataError
        If not even 4,096 bins make a frame.
    """
    frames = decoder.output_lengths(torch.arange(2**12 + 1))
    enough = torch.nonzero(frames >= 1).flatten()
    if not len(enough):
        raise DataError("the decoder makes no frame out of 4096 bins")
    few, many = decoder.output_lengths(torch.tensor([2**14, 2**15]))
    return int(enough[0]), round(2**14 / float(many - few))


@torch.inference_mode()
def decode(
    decoder: nn.Module,
    recordings: Any,
    days: Mapping[str, int] | None,
    *,
    batch_size: int = 16,
    device: torch.device | str = "cpu",
    keep_spikes: bool = False,
) -> Iterator[Decoded]:
    """Decode every trial once, trials of like length together.

    Parameters
    ----------
    recordings
        A view as `neuro.open_recordings` hands it out.
    days
        Session -> day layer, from `day_indices`; None for a decoder without day layers.

    Raises
    ------
    DataError
        As the recordings do, when a trial is read.
    """
    decoder = decoder.to(device).eval()
    # The lengths that the core is called with are those of its spikes: patches come before it, pooling after.
    seen: list[torch.Tensor] = []
    core = getattr(decoder, "core", nn.Identity())
    spiking = any(isinstance(module, snn.SpikingNeuron) for module in decoder.modules())
    hook = core.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[1]))
    try:
        order = np.argsort(recordings.lengths(), kind="stable")
        for start in range(0, len(order), batch_size):
            trials = [recordings[int(i)] for i in order[start : start + batch_size]]
            batch = collate(trials, recordings.sessions)
            own = [0 if days is None else days[trial.session] for trial in trials]
            batch = replace(batch, days=torch.tensor(own)).to(device)
            seen.clear()
            with snn.SpikeRecorder(decoder) if spiking else nullcontext() as recorder:
                logits, lengths = decoder(batch)
            core_lengths = seen[-1] if seen else lengths
            recorded = recorder.spikes if recorder is not None else {}
            rates = {name: value.cpu() for name, value in recorder.rates(core_lengths).items()} if recorder else {}
            yield Decoded(
                batch=batch.to("cpu"),
                logits=logits.float().cpu(),
                lengths=lengths.cpu(),
                hypotheses=greedy(logits, lengths),
                spikes={name: value.cpu() for name, value in recorded.items()} if keep_spikes else {},
                rates=rates,
                steps=int(core_lengths.sum()),
                simulated=any(trial.onsets is not None for trial in trials),
            )
    finally:
        hook.remove()


@dataclass
class Scores:
    """What accumulates over decoded batches."""

    trials: list[ScoredTrial] = field(default_factory=list)
    _spikes: dict[str, torch.Tensor] = field(default_factory=dict)
    _steps: int = 0

    def add(self, decoded: Decoded) -> None:
        """Score one batch against its labels."""
        batch = decoded.batch
        for b, hypothesis in enumerate(decoded.hypotheses):
            reference = batch.phonemes[b, : int(batch.phoneme_lengths[b])].tolist()
            session = batch.keys[b].split("/")[0]
            counts = error_counts(reference, hypothesis)
            self.trials.append(
                ScoredTrial(batch.keys[b], session, batch.sentences[b], reference, list(hypothesis), counts)
            )
        if decoded.steps:
            for name, rate in decoded.rates.items():
                self._spikes[name] = self._spikes.get(name, torch.zeros_like(rate)) + rate * decoded.steps
            self._steps += decoded.steps

    @property
    def references(self) -> list[list[int]]:
        """Labels of the trials."""
        return [trial.reference for trial in self.trials]

    @property
    def hypotheses(self) -> list[list[int]]:
        """What was decoded."""
        return [trial.hypothesis for trial in self.trials]

    @property
    def counts(self) -> ErrorCounts:
        """Errors of all trials together."""
        return sum((trial.counts for trial in self.trials), ErrorCounts())

    @property
    def layer_rates(self) -> dict[str, float]:
        """Spikes per neuron and step of each spiking layer; empty for a model without any."""
        return {name: float(total.mean()) / max(self._steps, 1) for name, total in self._spikes.items()}

    @property
    def spike_rate(self) -> float | None:
        """Spikes per neuron and step over all neurons; None for a model without spikes."""
        if not self._spikes:
            return None
        return float(torch.cat(list(self._spikes.values())).mean()) / max(self._steps, 1)

    def sessions(self) -> dict[str, Scores]:
        """The trials of each session, sessions in order of name."""
        names = sorted({trial.session for trial in self.trials})
        return {name: Scores([trial for trial in self.trials if trial.session == name]) for name in names}
