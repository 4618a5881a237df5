"""Patches in both official layouts, compared with the torch operations that the official decoders use."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from neuro import DataError
from neuro.patching import LAYOUTS, patch, patched_length

SIZES = [(1, 1), (3, 1), (3, 2), (4, 4), (5, 7), (14, 4), (32, 4)]


def by_hand(trial: torch.Tensor, size: int, stride: int, layout: str) -> torch.Tensor:
    """(T, N) -> (T', size * N), one number at a time."""
    T, N = trial.shape
    rows = []
    for start in range(0, T - size + 1, stride):
        window = [[float(trial[start + k, n]) for n in range(N)] for k in range(size)]
        if layout == "time":
            rows.append([window[k][n] for k in range(size) for n in range(N)])
        else:
            rows.append([window[k][n] for n in range(N) for k in range(size)])
    return torch.tensor(rows)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize(("size", "stride"), SIZES)
def test_equals_the_loop_for_every_trial(size: int, stride: int, layout: str) -> None:
    lengths = torch.tensor([size, size + 1, size + stride, 41])
    x = torch.randn(41, 4, 3)
    for b, length in enumerate(lengths):
        x[length:, b] = 0
    before = x.clone()
    patches, new_lengths = patch(x, lengths, size, stride, layout)  # type: ignore[arg-type]
    assert torch.equal(x, before)
    assert patches.shape == ((41 - size) // stride + 1, 4, size * 3)
    for b, length in enumerate(lengths):
        alone = by_hand(x[:length, b], size, stride, layout)
        assert len(alone) == new_lengths[b] == patched_length(int(length), size, stride)
        assert torch.equal(patches[: len(alone), b], alone)
        assert patches[len(alone) :, b].abs().sum() == 0
    assert torch.equal(patched_length(lengths, size, stride), new_lengths)


@pytest.mark.parametrize(("size", "stride"), SIZES)
def test_layouts_are_the_official_ones(size: int, stride: int) -> None:
    x = torch.randn(50, 2, 3)
    lengths = torch.tensor([50, 50])
    batch_first = x.permute(1, 0, 2)
    # '24: nn.Unfold over (B, C, T, 1)
    unfolded = nn.Unfold((size, 1), stride=stride)(batch_first.permute(0, 2, 1).unsqueeze(3)).permute(2, 0, 1)
    assert torch.equal(patch(x, lengths, size, stride, "channel")[0], unfolded)
    # '25: Tensor.unfold over time, frames before channels
    windows = batch_first.permute(0, 2, 1).unfold(2, size, stride).permute(2, 0, 3, 1)
    assert torch.equal(patch(x, lengths, size, stride)[0], windows.reshape(len(windows), 2, -1))


def test_no_more_than_one_copy() -> None:
    """Of all operations, at most an allocation and the copy into it give something as large as the input."""
    x, lengths = torch.randn(400, 4, 64), torch.tensor([400, 100, 200, 300])
    made = []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if (
                isinstance(out, torch.Tensor)
                and out.numel() >= x.numel()
                and not func.is_view
                and "_." not in str(func)
            ):
                made.append(str(func))
            return out

    with Count():
        patch(x, lengths, 14, 4)
    assert len(made) <= 2, made


def test_zeroing_the_tail_never_writes_into_the_input() -> None:
    x = torch.ones(6, 2, 3)
    patches, _ = patch(x, torch.tensor([6, 2]), 1, 1)
    assert x.sum() == 36 and patches[2:, 1].sum() == 0 and patches[:2, 1].sum() == 6


def test_gradient_flows_only_from_real_frames() -> None:
    x = torch.randn(20, 2, 2, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([20, 9])
    assert torch.autograd.gradcheck(lambda value: patch(value, lengths, 4, 3)[0], (x,))


@pytest.mark.parametrize(("length", "frames"), list(zip(range(12, 23), (0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3), strict=True)))
def test_official_frame_count(length: int, frames: int) -> None:
    assert patched_length(length, 14, 4) == frames


def test_trial_shorter_than_a_patch_is_refused() -> None:
    with pytest.raises(DataError, match="found 13 frames, expected at least 14"):
        patch(torch.zeros(30, 2, 3), torch.tensor([30, 13]), 14, 4)


@pytest.mark.parametrize(("size", "stride"), [(0, 1), (1, 0), (-2, 4)])
def test_impossible_patches(size: int, stride: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        patch(torch.zeros(5, 1, 1), torch.tensor([5]), size, stride)


def test_unknown_layout() -> None:
    with pytest.raises(ValueError, match="time, channel"):
        patch(torch.zeros(5, 1, 1), torch.tensor([5]), 2, 1, "space")  # type: ignore[arg-type]


def test_empty_batch() -> None:
    patches, lengths = patch(torch.zeros(20, 0, 3), torch.zeros(0, dtype=torch.int64), 14, 4)
    assert patches.shape == (2, 0, 42) and lengths.shape == (0,)
