"""The two official decoders: exact sizes, names of the releases, logits of a NumPy forward pass, safe loading."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from decoders.official import OFFICIAL, OfficialB2T24, OfficialB2T25, load_official
from neuro import Batch, DataError
from neuro.smoothing import gaussian_kernel
from tests.oracles import official_gru as oracle

TINY: dict[str, dict[str, Any]] = {
    "b2t24": {"n_channels": 5, "n_days": 3, "width": 4, "depth": 2, "patch": (6, 4)},
    "b2t25": {"n_channels": 5, "n_days": 3, "width": 4, "depth": 2, "patch": (6, 4)},
}


def tiny(form: str, **options: Any) -> Any:
    """A small decoder whose every weight is drawn, days and biases too."""
    torch.manual_seed(0)
    decoder = OFFICIAL[form][0](**{**TINY[form], **options})
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return decoder.eval()


def batch_of(lengths: list[int], days: list[int]) -> Batch:
    features = torch.zeros(max(lengths) + 3, len(lengths), 5)
    for b, length in enumerate(lengths):
        features[:length, b] = torch.randn(length, 5, generator=torch.Generator().manual_seed(b))
    return Batch(
        features=features,
        lengths=torch.tensor(lengths),
        phonemes=torch.ones(len(lengths), 1, dtype=torch.int64),
        phoneme_lengths=torch.ones(len(lengths), dtype=torch.int64),
        days=torch.tensor(days),
        keys=[f"trial_{b}" for b in range(len(lengths))],
        sentences=[None] * len(lengths),
    )


def names_b2t24(depth: int, n_days: int, both: bool) -> set[str]:
    """Names in a '24 release's state dictionary."""
    kinds = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    ways = ["", "_reverse"] if both else [""]
    names = {f"gru_decoder.{kind}_l{i}{way}" for kind, i, way in itertools.product(kinds, range(depth), ways)}
    names |= {f"inpLayer{day}.{kind}" for day in range(n_days) for kind in ("weight", "bias")}
    return names | {
        "dayWeights", "dayBias", "gaussianSmoother.weight", "fc_decoder_out.weight", "fc_decoder_out.bias",
    }  # fmt: skip


def names_b2t25(depth: int, n_days: int) -> set[str]:
    """Names in a '25 release's state dictionary."""
    kinds = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    names = {f"gru.{kind}_l{i}" for kind, i in itertools.product(kinds, range(depth))}
    names |= {f"day_{kind}.{day}" for kind in ("weights", "biases") for day in range(n_days)}
    return names | {"out.weight", "out.bias", "h0"}


def test_released_sizes_are_exact() -> None:
    with torch.device("meta"):
        b2t24, uni, b2t25 = OfficialB2T24(), OfficialB2T24(bidirectional=False), OfficialB2T25()
    counts = b2t24.parameter_counts()
    assert counts["total"] == 135_424_041
    assert counts["total"] - counts["used"] == 1_579_008 == counts["day"]
    assert counts["core"] + counts["day"] + counts["head"] == counts["used"]
    assert uni.parameter_counts()["total"] == 56_708_137
    counts = b2t25.parameter_counts()
    assert counts["total"] == counts["used"] == 44_315_177
    assert counts["day"] == 11_819_520
    assert counts["core"] + counts["day"] + counts["head"] == counts["total"]


def test_released_names_and_shapes() -> None:
    with torch.device("meta"):
        b2t24, uni, b2t25 = (
            dict(d.state_dict()) for d in (OfficialB2T24(), OfficialB2T24(bidirectional=False), OfficialB2T25())
        )
    assert set(b2t24) == names_b2t24(5, 24, True) and set(uni) == names_b2t24(5, 24, False)
    assert set(b2t25) == names_b2t25(5, 45)
    for tensors, name, shape in (
        (b2t24, "dayWeights", (24, 256, 256)),
        (b2t24, "dayBias", (24, 1, 256)),
        (b2t24, "gaussianSmoother.weight", (256, 1, 20)),
        (b2t24, "gru_decoder.weight_ih_l0", (3072, 8192)),
        (b2t24, "gru_decoder.weight_ih_l1_reverse", (3072, 2048)),
        (b2t24, "fc_decoder_out.weight", (41, 2048)),
        (b2t25, "day_weights.44", (512, 512)),
        (b2t25, "day_biases.44", (1, 512)),
        (b2t25, "gru.weight_ih_l0", (2304, 7168)),
        (b2t25, "h0", (1, 1, 768)),
    ):
        assert tuple(tensors[name].shape) == shape, name


@pytest.mark.parametrize("both", [True, False])
def test_b2t24_logits_equal_the_oracle(both: bool) -> None:
    decoder, batch = tiny("b2t24", bidirectional=both), batch_of([22, 31, 17], [1, 0, 2])
    with torch.no_grad():
        logits, lengths = decoder(batch)
    weights = {name: tensor.double().numpy() for name, tensor in decoder.state_dict().items()}
    for b in range(3):
        x = batch.features[: batch.lengths[b], b].double().numpy()
        expected = oracle.decode_b2t24(x, int(batch.days[b]), weights, 6, 4, 2, both)
        assert int(lengths[b]) == len(expected) == int(decoder.output_lengths(batch.lengths)[b])
        np.testing.assert_allclose(logits[: len(expected), b].numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("smoothing", [True, False])
def test_b2t25_logits_equal_the_oracle(smoothing: bool) -> None:
    decoder, batch = tiny("b2t25", smoothing=smoothing), batch_of([22, 31, 17], [1, 0, 2])
    with torch.no_grad():
        logits, lengths = decoder(batch)
    weights = {name: tensor.double().numpy() for name, tensor in decoder.state_dict().items()}
    taps = gaussian_kernel("b2t25").astype(float) if smoothing else np.ones(1)
    for b in range(3):
        x = batch.features[: batch.lengths[b], b].double().numpy()
        expected = oracle.decode_b2t25(x, int(batch.days[b]), weights, 6, 4, 2, taps)
        assert int(lengths[b]) == len(expected)
        np.testing.assert_allclose(logits[: len(expected), b].numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("form", OFFICIAL)
def test_every_used_parameter_has_a_gradient_whatever_the_days(form: str) -> None:
    decoder = tiny(form).train()
    decoder(batch_of([22, 31], [1, 1]))[0].square().sum().backward()
    without = [name for name, p in decoder.named_parameters() if p.requires_grad and p.grad is None]
    assert not without
    frozen = sum(p.numel() for p in decoder.parameters() if not p.requires_grad)
    counts = decoder.parameter_counts()
    assert frozen == counts["total"] - counts["used"]


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "module._orig_mod."])
@pytest.mark.parametrize("form", OFFICIAL)
def test_checkpoints_load_by_name(form: str, prefix: str, tmp_path: Path) -> None:
    decoder = tiny(form)
    tensors = {prefix + name: tensor for name, tensor in decoder.state_dict().items()}
    # The '25 release keeps its optimiser and its validation scores, which are NumPy numbers, in the same file.
    file: Any = tensors
    if form == "b2t25":
        score, loss = np.float64(0.1), np.float32(0.5)
        file = {"model_state_dict": tensors, "optimizer_state_dict": {"state": {}}, "val_PER": score, "val_loss": loss}
    torch.save(file, tmp_path / "weights")
    loaded = load_official(tmp_path / "weights", form)
    assert not loaded.training
    batch = batch_of([22, 31, 17], [1, 0, 2])
    torch.testing.assert_close(loaded(batch)[0], decoder(batch)[0], atol=0, rtol=0)


def test_the_one_way_variant_is_recognised(tmp_path: Path) -> None:
    torch.save(tiny("b2t24", bidirectional=False).state_dict(), tmp_path / "weights")
    assert load_official(tmp_path / "weights", "b2t24").parameter_counts() == (
        tiny("b2t24", bidirectional=False).parameter_counts()
    )


class Malicious:
    def __reduce__(self) -> Any:
        return eval, ("1 + 1",)


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    path, good = tmp_path / "weights", dict(tiny("b2t25").state_dict())

    def saved(content: Any) -> Path:
        torch.save(content, path)
        return path

    with pytest.raises(DataError, match=r"no official decoder.*found b2t26"):
        load_official(path, "b2t26")
    with pytest.raises(DataError, match="not found"):
        load_official(tmp_path / "absent", "b2t25")
    with pytest.raises(DataError, match=r"lacks out.bias"):
        load_official(saved({k: v for k, v in good.items() if k != "out.bias"}), "b2t25")
    with pytest.raises(DataError, match=r"has unknown names extra.weight"):
        load_official(saved({**good, "extra.weight": torch.zeros(1)}), "b2t25")
    with pytest.raises(DataError, match=r"has other shapes day_biases.1 \(1, 4\) instead of \(1, 5\)"):
        load_official(saved({**good, "day_biases.1": torch.zeros(1, 4)}), "b2t25")
    with pytest.raises(DataError, match=r"not a checkpoint of the official b2t24 decoder.*dayWeights"):
        load_official(saved(good), "b2t24")
    with pytest.raises(DataError, match="no dictionary of named tensors"):
        load_official(saved([1, 2]), "b2t25")
    with pytest.raises(DataError, match="cannot be read safely"):
        load_official(saved({**good, "code": Malicious()}), "b2t25")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="cannot be read safely"):
        load_official(path, "b2t25")
    path.write_bytes(b"")
    with pytest.raises(DataError, match="cannot be read safely"):
        load_official(path, "b2t24")
