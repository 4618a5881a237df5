"""The official Brain-to-Text '24 and '25 baselines, so that their released checkpoints load by name."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from decoders.cores import recurrent
from decoders.day_layers import check_days, day_affine
from decoders.phoneme_decoder import check_batch, count_parameters
from neuro import Batch, DataError
from neuro.patching import patch as patch_frames
from neuro.patching import patched_length
from neuro.smoothing import gaussian_kernel, smooth


class _OfficialDecoder(nn.Module):
    """What both baselines share: the order of their parts, and how they are called."""

    n_channels: int
    n_days: int
    patch: tuple[int, int]

    def output_lengths(self, lengths: torch.Tensor) -> torch.Tensor:
        """Frames of logits for trials of ``lengths`` bins: floor((T - size) / stride) + 1."""
        return patched_length(lengths, *self.patch)

    def _day_parameters(self, days: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        raise NotImplementedError

    def _front_end(
        self,
        batch: Batch,
        kernel: torch.Tensor | np.ndarray | None,
        dropout: nn.Module,
        layout: Literal["time", "channel"],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        check_batch(batch, self.n_channels, self.patch)
        check_days(batch.days, self.n_days)
        x = batch.features if kernel is None else smooth(batch.features, kernel, batch.lengths)
        x = dropout(day_affine(x, *self._day_parameters(batch.days)))
        x = torch.where(batch.mask()[..., None], x, 0.0)
        return patch_frames(x, batch.lengths, *self.patch, layout=layout)

    def _counts(self, core: int, day: int, head: int, unused: int = 0) -> dict[str, int]:
        total = count_parameters(self)
        buffers = sum(b.numel() for b in self.buffers())
        return {"core": core, "day": day, "head": head, "total": total, "used": total - unused, "buffers": buffers}


class _Smoother(nn.Module):
    """Holder of the '24 release's smoothing taps, one copy a channel, under the release's name."""

    weight: torch.Tensor

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        taps = torch.as_tensor(gaussian_kernel("b2t24"), dtype=torch.float32)
        self.register_buffer("weight", taps.repeat(n_channels, 1, 1))


class OfficialB2T24(_OfficialDecoder):
    """The '24 PyTorch baseline: smoothing, day affine, softsign, patches of 32 every 4 bins, five GRU layers, head.

    Called like `PhonemeDecoder`. 135,424,041 parameters in the released size, of which 1,579,008 are linear layers
    (``inpLayer0``...) that the release makes and never uses; they are carried so that checkpoints load, frozen, and
    ``parameter_counts`` leaves them out of ``used``. Two faults of the release are not repeated: the backward
    direction starts at the trial's end and not in the padding, and the last frame is kept.

    Parameters
    ----------
    n_channels, n_days, width, depth, patch, bidirectional, dropout, n_outputs
        The defaults are the released size. ``bidirectional=False`` is the 56,708,137-parameter variant.

    Source: cffan/neural_seq_decoder, src/neural_decoder/model.py.
    """

    form = "b2t24"

    def __init__(
        self,
        n_channels: int = 256,
        n_days: int = 24,
        *,
        width: int = 1024,
        depth: int = 5,
        patch: tuple[int, int] = (32, 4),
        bidirectional: bool = True,
        dropout: float = 0.4,
        n_outputs: int = 41,
    ) -> None:
        super().__init__()
        self.n_channels, self.n_days, self.patch = n_channels, n_days, (int(patch[0]), int(patch[1]))
        self.gaussianSmoother = _Smoother(n_channels)
        self.dayWeights = nn.Parameter(torch.eye(n_channels).repeat(n_days, 1, 1))
        self.dayBias = nn.Parameter(torch.zeros(n_days, 1, n_channels))
        self.gru_decoder = nn.GRU(
            n_channels * self.patch[0],
            width,
            depth,
            dropout=dropout if depth > 1 else 0.0,
            bidirectional=bidirectional,
        )
        recurrent.initialise(self.gru_decoder)
        for day in range(n_days):
            unused = nn.Linear(n_channels, n_channels)
            nn.init.eye_(unused.weight)
            # Without gradients they would stop distributed training, which waits for every parameter.
            self.add_module(f"inpLayer{day}", unused.requires_grad_(False))
        self.fc_decoder_out = nn.Linear(width * (2 if bidirectional else 1), n_outputs)

    def _day_parameters(self, days: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.dayWeights[days], self.dayBias[days, 0]

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (T', B, n_outputs) and their lengths (B,); see `PhonemeDecoder.forward`."""
        kernel = self.gaussianSmoother.weight[0, 0]
        x, lengths = self._front_end(batch, kernel, nn.Identity(), "channel")
        layers = self.gru_decoder.num_layers * (2 if self.gru_decoder.bidirectional else 1)
        first = x.new_zeros(layers, x.shape[1], self.gru_decoder.hidden_size)
        features, _ = recurrent.run(self.gru_decoder, x, lengths, first)
        return self.fc_decoder_out(features), lengths

    def parameter_counts(self) -> dict[str, int]:
        """Sizes as `PhonemeDecoder.parameter_counts`; ``used`` leaves the idle layers out."""
        day = self.dayWeights.numel() + self.dayBias.numel()
        unused = sum(p.numel() for name, p in self.named_parameters() if name.startswith("inpLayer"))
        return self._counts(count_parameters(self.gru_decoder), day, count_parameters(self.fc_decoder_out), unused)


class OfficialB2T25(_OfficialDecoder):
    """The '25 baseline: smoothing, day affine, softsign, dropout, patches of 14 every 4 bins, five GRU layers, head.

    Called like `PhonemeDecoder`. 44,315,177 parameters in the released size. The release smooths outside the model,
    with ``same`` padding in training; here smoothing is inside, and the same in evaluation.

    Parameters
    ----------
    n_channels, n_days, width, depth, patch, dropout, input_dropout, n_outputs
        The defaults are the released size.
    smoothing
        False for features that are smoothed already.

    Source: Neuroprosthetics-Lab/nejm-brain-to-text, model_training/rnn_model.py.
    """

    form = "b2t25"

    def __init__(
        self,
        n_channels: int = 512,
        n_days: int = 45,
        *,
        width: int = 768,
        depth: int = 5,
        patch: tuple[int, int] = (14, 4),
        dropout: float = 0.4,
        input_dropout: float = 0.2,
        smoothing: bool = True,
        n_outputs: int = 41,
    ) -> None:
        super().__init__()
        self.n_channels, self.n_days, self.patch = n_channels, n_days, (int(patch[0]), int(patch[1]))
        self.kernel = gaussian_kernel("b2t25") if smoothing else None
        self.day_weights = nn.ParameterList(nn.Parameter(torch.eye(n_channels)) for _ in range(n_days))
        self.day_biases = nn.ParameterList(nn.Parameter(torch.zeros(1, n_channels)) for _ in range(n_days))
        self.day_layer_dropout = nn.Dropout(input_dropout)
        self.gru = nn.GRU(n_channels * self.patch[0], width, depth, dropout=dropout if depth > 1 else 0.0)
        recurrent.initialise(self.gru)
        self.out = nn.Linear(width, n_outputs)
        nn.init.xavier_uniform_(self.out.weight)
        self.h0 = recurrent.learned_state(width)

    def _day_parameters(self, days: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # Every day takes part, so that every day has a gradient (zeros) in every batch, as distributed training needs.
        return torch.stack(list(self.day_weights))[days], torch.cat(list(self.day_biases))[days]

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (T', B, n_outputs) and their lengths (B,); see `PhonemeDecoder.forward`."""
        x, lengths = self._front_end(batch, self.kernel, self.day_layer_dropout, "time")
        first = self.h0.expand(self.gru.num_layers, x.shape[1], self.gru.hidden_size).contiguous()
        features, _ = recurrent.run(self.gru, x, lengths, first)
        return self.out(features), lengths

    def parameter_counts(self) -> dict[str, int]:
        """Sizes as `PhonemeDecoder.parameter_counts`."""
        core = count_parameters(self.gru) + self.h0.numel()
        day = count_parameters(self.day_weights) + count_parameters(self.day_biases)
        return self._counts(core, day, count_parameters(self.out))


def _numbered(names: Mapping[str, Any], prefix: str, suffix: str = "") -> int:
    """How many names are ``prefix``, a number, ``suffix``."""
    return sum(
        name.startswith(prefix) and name.endswith(suffix) and name[len(prefix) : len(name) - len(suffix)].isdigit()
        for name in names
    )


def _sizes_b2t24(tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    n_days, n_channels, _ = tensors["dayWeights"].shape
    gates, fan_in = tensors["gru_decoder.weight_ih_l0"].shape
    return {
        "n_channels": n_channels,
        "n_days": n_days,
        "width": gates // 3,
        "depth": _numbered(tensors, "gru_decoder.weight_hh_l"),
        "patch": (fan_in // n_channels, 4),
        "bidirectional": "gru_decoder.weight_ih_l0_reverse" in tensors,
        "n_outputs": tensors["fc_decoder_out.weight"].shape[0],
    }


def _sizes_b2t25(tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    n_channels = tensors["day_weights.0"].shape[0]
    gates, fan_in = tensors["gru.weight_ih_l0"].shape
    return {
        "n_channels": n_channels,
        "n_days": _numbered(tensors, "day_weights."),
        "width": gates // 3,
        "depth": _numbered(tensors, "gru.weight_hh_l"),
        "patch": (fan_in // n_channels, 4),
        "n_outputs": tensors["out.weight"].shape[0],
    }


OFFICIAL: dict[str, tuple[type[OfficialB2T24] | type[OfficialB2T25], Callable[..., dict[str, Any]]]] = {
    "b2t24": (OfficialB2T24, _sizes_b2t24),
    "b2t25": (OfficialB2T25, _sizes_b2t25),
}
"""For each form: the decoder, and what reads its sizes from a checkpoint's tensors."""

_PREFIXES = ("module.", "_orig_mod.")

# The '25 checkpoints keep their validation score as a NumPy number; these are all it takes to read one.
_NUMPY_NUMBERS: list[Any] = [
    np.dtype,
    np._core.multiarray.scalar,  # type: ignore[attr-defined]
    (np._core.multiarray.scalar, "numpy.core.multiarray.scalar"),  # type: ignore[attr-defined] # its name in NumPy 1
    *{type(np.dtype(kind)) for kind in ("f4", "f8", "i4", "i8")},
]


def _plain_name(name: str) -> str:
    """A parameter's name without the prefixes that DataParallel and torch.compile put in front."""
    while prefix := next((p for p in _PREFIXES if name.startswith(p)), None):
        name = name[len(prefix) :]
    return name


def read_tensors(path: str | Path) -> dict[str, torch.Tensor]:
    """Tensors of a released checkpoint by plain name, read without running any code in it.

    A bare state dictionary ('24) and a dictionary with ``model_state_dict`` ('25) are both understood.

    Raises
    ------
    DataError
        If the file is missing, damaged, holds more than tensors and numbers, or holds no parameters.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError("checkpoint not found", file=path)
    try:
        with torch.serialization.safe_globals(_NUMPY_NUMBERS):
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        raise DataError(
            "checkpoint cannot be read safely (damaged, or more in it than tensors and numbers)",
            file=path,
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
        ) from error
    if isinstance(loaded, Mapping):
        loaded = loaded.get("model_state_dict", loaded)
    if not isinstance(loaded, Mapping) or not loaded or not all(isinstance(t, torch.Tensor) for t in loaded.values()):
        raise DataError("checkpoint holds no dictionary of named tensors", file=path, found=type(loaded).__name__)
    return {_plain_name(str(name)): tensor for name, tensor in loaded.items()}


def _listed(names: list[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def load_official(path: str | Path, form: str) -> OfficialB2T24 | OfficialB2T25:
    """The official decoder of a released checkpoint, with its weights, in evaluation mode.

    Parameters
    ----------
    path
        The '24 release's ``modelWeights`` or the '25 release's ``best_checkpoint``.
    form
        "b2t24" or "b2t25". Sizes are read from the tensors; the stride of the patches, which no tensor tells, is 4
        as in both releases (set ``decoder.patch`` for another).

    Raises
    ------
    DataError
        If the file cannot be read safely, or names are missing, extra, or of another shape.
    """
    if form not in OFFICIAL:
        raise DataError("no official decoder of this form", field="form", found=form, expected=" or ".join(OFFICIAL))
    make, read_sizes = OFFICIAL[form]
    tensors = read_tensors(path)
    try:
        sizes = read_sizes(tensors)
        with torch.device("meta"):
            decoder = make(**sizes)
        wanted = {name: tensor.shape for name, tensor in decoder.state_dict().items()}
    except KeyError as error:
        raise DataError(
            f"not a checkpoint of the official {form} decoder",
            file=path,
            field=str(error.args[0]),
            found="no such name",
        ) from error
    except ValueError as error:
        raise DataError(f"not a checkpoint of the official {form} decoder: {error}", file=path) from error
    faults = (
        ("lacks", [name for name in wanted if name not in tensors]),
        ("has unknown names", [name for name in tensors if name not in wanted]),
        (
            "has other shapes",
            [
                f"{name} {tuple(tensors[name].shape)} instead of {tuple(shape)}"
                for name, shape in wanted.items()
                if name in tensors and tensors[name].shape != shape
            ],
        ),
    )
    problems = [f"{what} {_listed(names)}" for what, names in faults if names]
    if problems:
        raise DataError(f"checkpoint does not fit the official {form} decoder: it " + "; it ".join(problems), file=path)
    # The file's tensors become the parameters: drawing first weights only to replace them takes many seconds.
    decoder.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    return decoder.eval()
