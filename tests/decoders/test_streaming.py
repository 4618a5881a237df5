"""A decoder fed bin by bin gives the logits of the whole trial, for every causal core."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from decoders import PhonemeDecoder, StreamingDecoder
from decoders.cores import CORES
from neuro import DataError
from tests.decoders.test_phoneme_decoder import DAYS, SMALL, C, batch_of

pytestmark = pytest.mark.slow  # compiles

FRONTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "smooth": {"smoothing": "b2t25"},
    "even smooth": {"smoothing": "b2t24"},
    "patch": {"smoothing": "b2t25", "patch": (4, 2)},
    "gaps": {"patch": (2, 5)},
    "no day layers": {"n_days": 0, "smoothing": "b2t24", "patch": (3, 3)},
}


def decoder_of(name: str, **options: Any) -> PhonemeDecoder:
    torch.manual_seed(0)
    return PhonemeDecoder(C, core=name, **{"n_days": DAYS, "width": 16, **options})


def streamed(decoder: PhonemeDecoder, features: torch.Tensor, days: torch.Tensor, **options: Any) -> torch.Tensor:
    stream = StreamingDecoder(decoder, **options)
    state = stream.start(features.shape[1], days)
    return torch.cat([*(stream.step(x, state) for x in features), stream.finish(state)])


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("name", sorted(CORES))
def test_bins_equal_the_whole(name: str, front: str) -> None:
    decoder = decoder_of(name, core_options=SMALL[name], **FRONTS[front]).eval()
    if not decoder.core.causal:
        with pytest.raises(DataError, match="sees the future"):
            StreamingDecoder(decoder)
        return
    batch = batch_of([37, 37], days=[0, DAYS - 1])
    batch.features[5] = 0  # a masked frame, where the core knows such
    with torch.no_grad():
        want, _ = decoder(batch)
        got = streamed(decoder, batch.features, batch.days)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", ["auto", "scatter", "gather"])
@pytest.mark.parametrize("pool", [1, 3])
def test_the_spiking_core_runs_in_every_mode(mode: str, pool: int) -> None:
    decoder = decoder_of("residual_snn", core_options={"depth": 2, "max_delay": 5, "pool": pool}, smoothing="b2t25")
    for _ in range(3):
        decoder(batch_of([40, 30, 25]))
    decoder.eval()
    batch = batch_of([29])
    with torch.no_grad():
        want, _ = decoder(batch)
        got = streamed(decoder, batch.features, batch.days, mode=mode)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", [1, 2, 3, 9])
def test_trials_shorter_than_the_kernel(length: int) -> None:
    decoder = decoder_of("gru", core_options={"depth": 1}, smoothing="b2t24").eval()
    batch = batch_of([length])
    with torch.no_grad():
        torch.testing.assert_close(streamed(decoder, batch.features, batch.days), decoder(batch)[0])


def test_logits_come_as_soon_as_the_smoothing_allows() -> None:
    decoder = decoder_of("gru", core_options={"depth": 1}, smoothing="b2t25").eval()
    stream = StreamingDecoder(decoder)
    state = stream.start()
    counts = [len(stream.step(torch.randn(1, C), state)) for _ in range(10)]
    assert stream.lookahead == 4
    assert counts == [0] * 4 + [1] * 6
    assert len(stream.finish(state)) == 4


def test_wrong_channels_and_days_are_named() -> None:
    stream = StreamingDecoder(decoder_of("gru", core_options={"depth": 1}))
    with pytest.raises(DataError, match="no layer for"):
        stream.start(1, torch.tensor([DAYS]))
    with pytest.raises(DataError, match="number of channels"):
        stream.step(torch.zeros(1, C + 1), stream.start())
