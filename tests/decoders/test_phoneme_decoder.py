"""The decoder as one piece: padding never matters for any core, parts are in order, counts add up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import snn
from decoders.cores import CORES
from decoders.phoneme_decoder import PhonemeDecoder
from neuro import Batch, DataError
from neuro.smoothing import gaussian_kernel, smooth

SMALL: dict[str, dict[str, Any]] = {
    "residual_snn": {"depth": 2, "max_delay": 5},
    "transformer": {"heads": 2, "depth": 2},
    "tcn": {"depth": 2},
    "mlp": {},
    **{name: {"depth": 2} for name in ("gru", "lstm", "gru_b2t24", "gru_b2t25")},
}
C, DAYS = 6, 3


def batch_of(lengths: list[int], days: list[int] | None = None, extra: int = 0, seed: int = 0) -> Batch:
    """Trials of noise whose values depend on their position alone."""
    features = torch.zeros(max(lengths) + extra, len(lengths), C)
    for b, length in enumerate(lengths):
        features[:length, b] = torch.randn(length, C, generator=torch.Generator().manual_seed(seed + b))
    return Batch(
        features=features,
        lengths=torch.tensor(lengths),
        phonemes=torch.ones(len(lengths), 1, dtype=torch.int64),
        phoneme_lengths=torch.ones(len(lengths), dtype=torch.int64),
        days=torch.tensor(days if days is not None else [b % DAYS for b in range(len(lengths))]),
        keys=[f"s/train/trial_{b:04d}" for b in range(len(lengths))],
        sentences=[None] * len(lengths),
    )


def pick(batch: Batch, b: int) -> Batch:
    """One trial of a batch, without its padding."""
    length = int(batch.lengths[b])
    return Batch(
        features=batch.features[:length, b : b + 1],
        lengths=batch.lengths[b : b + 1],
        phonemes=batch.phonemes[b : b + 1],
        phoneme_lengths=batch.phoneme_lengths[b : b + 1],
        days=batch.days[b : b + 1],
        keys=batch.keys[b : b + 1],
        sentences=batch.sentences[b : b + 1],
    )


def decoder_of(name: str, **options: Any) -> PhonemeDecoder:
    torch.manual_seed(0)
    options = {"n_days": DAYS, "day_dropout": 0.2, "input_dropout": 0.2, "width": 16, **options}
    decoder = PhonemeDecoder(C, core=name, core_options=SMALL[name], **options)
    if decoder.day_layers is not None:
        with torch.no_grad():  # days that differ, and biases that would show in padding
            decoder.day_layers.weights.add_(0.1 * torch.randn_like(decoder.day_layers.weights))
            decoder.day_layers.biases.add_(torch.randn_like(decoder.day_layers.biases))
    return decoder.eval()


def test_every_core_is_here() -> None:
    assert set(SMALL) == set(CORES)


@pytest.mark.parametrize("patch", [None, (5, 3)])
@pytest.mark.parametrize("smoothing", [None, "b2t24", "b2t25"])
@pytest.mark.parametrize("name", CORES)
def test_padding_never_matters(name: str, smoothing: str | None, patch: tuple[int, int] | None) -> None:
    decoder = decoder_of(name, smoothing=smoothing, patch=patch)
    batch = batch_of([31, 18, 47, 25], extra=9)
    with torch.no_grad():
        logits, lengths = decoder(batch)
        assert torch.equal(lengths, decoder.output_lengths(batch.lengths))
        for b in range(4):
            alone, length = decoder(pick(batch, b))
            assert alone.shape[0] == int(length) == int(lengths[b])
            torch.testing.assert_close(logits[: int(length), b], alone[:, 0], atol=1e-5, rtol=0)


def test_spikes_of_a_trial_do_not_depend_on_its_batch() -> None:
    decoder = decoder_of("residual_snn", smoothing="b2t25", patch=(5, 3), width=64)
    batch = batch_of([60, 35, 81], extra=5)
    with torch.no_grad(), snn.SpikeRecorder(decoder) as together:
        _, lengths = decoder(batch)
        kept = dict(together.spikes)
    assert sum(float(s.sum()) for s in kept.values()) > 0
    for b in range(3):
        with torch.no_grad(), snn.SpikeRecorder(decoder) as recorder:
            decoder(pick(batch, b))
        for layer, spikes in recorder.spikes.items():
            assert torch.equal(kept[layer][: int(lengths[b]), b], spikes[:, 0]), layer


def test_batch_norm_of_a_spiking_decoder_leaves_padding_out() -> None:
    decoders = [decoder_of("residual_snn", day_dropout=0.0, input_dropout=0.0).train() for _ in range(2)]
    decoders[0](batch_of([40, 25]))
    decoders[1](batch_of([40, 25], extra=30))
    for (name, a), (_, b) in zip(decoders[0].named_buffers(), decoders[1].named_buffers(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


def test_the_front_end_is_smoothing_then_day_layer_then_patches() -> None:
    decoder = decoder_of("gru", smoothing="b2t25", patch=(5, 3))
    batch = batch_of([20], days=[2])
    x, lengths = decoder.front_end(batch)
    assert decoder.day_layers is not None
    y = smooth(batch.features, gaussian_kernel("b2t25"))[:, 0]
    y = F.softsign(y @ decoder.day_layers.weights[2] + decoder.day_layers.biases[2])
    expected = torch.stack([y[t : t + 5].reshape(-1) for t in range(0, 16, 3)])
    assert lengths.tolist() == [6]
    torch.testing.assert_close(x[:, 0], expected)


def test_a_new_day_layer_is_softsign_alone_and_days_are_apart() -> None:
    torch.manual_seed(0)
    decoder = PhonemeDecoder(C, core="gru", width=8, n_days=2).eval()
    x, _ = decoder.front_end(batch_of([12], days=[1]))
    torch.testing.assert_close(x, F.softsign(batch_of([12]).features))
    decoder(batch_of([12, 9], days=[1, 1]))[0].sum().backward()
    assert decoder.day_layers is not None and decoder.day_layers.weights.grad is not None
    assert decoder.day_layers.weights.grad[1].any() and not decoder.day_layers.weights.grad[0].any()


def test_masked_frames_reach_the_mask_token_through_smoothing_and_day_layers() -> None:
    options = {"heads": 2, "depth": 1, "mask_token": True}
    decoder = PhonemeDecoder(C, core="transformer", width=8, core_options=options, n_days=1, smoothing="b2t25").eval()
    batch = batch_of([30], days=[0])
    batch.features[10:20] = 0
    x, _ = decoder.front_end(batch)
    assert (x[10:20] == 0).all() and (x[:10] != 0).all() and (x[20:] != 0).all()


@pytest.mark.parametrize("name", CORES)
def test_counts_add_up(name: str) -> None:
    decoder = decoder_of(name, patch=(5, 3))
    counts = decoder.parameter_counts()
    assert list(counts) == ["core", "day", "head", "total", "used", "buffers"]
    assert counts["core"] + counts["day"] + counts["head"] == counts["total"] == counts["used"]
    assert counts["total"] == sum(p.numel() for p in decoder.parameters())
    assert counts["day"] == DAYS * (C * C + C)
    assert counts["core"] == CORES[name].count(5 * C, 16, **SMALL[name])
    assert counts["buffers"] == sum(b.numel() for b in decoder.buffers())


def test_delays_are_counted_as_buffers() -> None:
    counts = decoder_of("residual_snn").parameter_counts()
    assert counts["buffers"] >= 16 * C + 2 * 16 * 16


def test_a_budget_is_met_by_the_core_alone() -> None:
    counts = PhonemeDecoder(64, core="gru", budget="100k", n_days=5, patch=(4, 4)).parameter_counts()
    assert counts["core"] == pytest.approx(100_000, rel=0.02)
    assert counts["day"] == 5 * (64 * 64 + 64) and counts["total"] > 120_000


def test_requests_that_cannot_be_met_are_one_sentence() -> None:
    decoder = decoder_of("gru", patch=(14, 4))
    with pytest.raises(DataError, match="day 1 to 3, expected 0 to 2"):
        decoder(batch_of([20, 20], days=[1, 3]))
    with pytest.raises(DataError, match=r"trial s/train/trial_0001.*found 13 bins, expected at least 14"):
        decoder(batch_of([20, 13]))
    batch = batch_of([20])
    with pytest.raises(DataError, match="found 12, expected 6"):
        decoder(Batch(**{**batch.__dict__, "features": batch.features.repeat(1, 1, 2)}))
    with pytest.raises(DataError, match="not among core_options"):
        PhonemeDecoder(C, core="gru", core_options={"width": 4})
    with pytest.raises(DataError, match="patch"):
        PhonemeDecoder(C, core="gru", width=4, patch=(0, 1))


def test_weights_survive_a_state_dict() -> None:
    one, other = decoder_of("residual_snn", smoothing="b2t24"), decoder_of("residual_snn", smoothing="b2t24")
    torch.manual_seed(5)
    for parameter in one.parameters():
        torch.nn.init.normal_(parameter)
    other.load_state_dict(one.state_dict())
    batch = batch_of([30, 20])
    np.testing.assert_array_equal(one(batch)[0].detach().numpy(), other(batch)[0].detach().numpy())
