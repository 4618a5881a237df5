"""When dormant neurons wake: one class a mode of `DormantLIF`.

To add a mode, write a class with the methods of `Latch` and list it in `MODES`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


class Latch:
    """Never within a sequence, as in the paper."""

    listens = False

    def marks(self, clock: Tensor | None, drive: Tensor | None, current: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Steps at which a trial's dormant neurons wake.

        Parameters
        ----------
        clock : Tensor or None
            From the chunk before.
        drive : Tensor (T, B) or None
            Share of non-zero inputs of the layer beneath, for a mode that `listens`.
        current : Tensor (T, B, ...)

        Returns
        -------
        wake : bool Tensor (T, B) or None
        clock : Tensor or None
            For the next chunk.
        """
        return None, None

    def opens(self, clock: Any) -> Any:
        """Whether dormant neurons wake at the next step: one truth for all, one a trial (B,), or None for no.

        `clock` is a tensor, or a number or NumPy array that stands for it: one bin alone must not cost calls of torch.
        """
        return None

    def sleep(self, clock: Any) -> float:
        """Steps for which no dormant neuron wakes for sure, with the next one."""
        return math.inf

    def tick(self, clock: Any, drive: Any) -> Any:
        """The clock after one step, in which the layer beneath had the share `drive` (B,) of non-zero inputs."""
        return None

    def __repr__(self) -> str:
        return "latch"


class Window(Latch):
    """At every `window`-th step, counted from the start of the sequence.

    The clock is the number of steps so far, an int64 scalar.
    """

    def __init__(self, window: int) -> None:
        if not isinstance(window, int) or isinstance(window, bool) or window < 1:
            raise ValueError(f"DormantLIF: window is a number of steps, at least 1; found {window!r}")
        self.window = window

    def marks(self, clock: Tensor | None, drive: Tensor | None, current: Tensor) -> tuple[Tensor, Tensor]:
        """See `Latch`."""
        steps, batch = current.shape[:2]
        clock = torch.zeros((), dtype=torch.int64, device=current.device) if clock is None else clock
        at = (clock + torch.arange(steps, device=current.device)) % self.window == 0
        return at.unsqueeze(1).expand(steps, batch), clock + steps

    def opens(self, clock: Any) -> Any:
        """See `Latch`."""
        return clock is None or clock % self.window == 0

    def sleep(self, clock: Any) -> float:
        """See `Latch`."""
        return 0 if clock is None else int(-clock % self.window)

    def tick(self, clock: Any, drive: Any) -> Any:
        """See `Latch`."""
        return (0 if clock is None else clock) + 1

    def __repr__(self) -> str:
        return f"window of {self.window}"


class Wake(Latch):
    """Where more than a share `wake_above` of the inputs of the layer beneath were non-zero at the step before.

    Of the step before, because delays are at least 1: what arrives now was sent then, so that who wakes is known before
    anything is summed. An analogue input is never zero, and neurons right above it do not sleep. The clock is the
    share at the last step (B,).
    """

    listens = True

    def __init__(self, wake_above: float) -> None:
        if not isinstance(wake_above, (int, float)) or not 0 <= wake_above < 1:
            raise ValueError(
                f"DormantLIF: wake_above is a share of the inputs, at least 0 and below 1; found {wake_above!r}"
            )
        self.wake_above = float(wake_above)

    def marks(self, clock: Tensor | None, drive: Tensor | None, current: Tensor) -> tuple[Tensor, Tensor]:
        """See `Latch`."""
        steps, batch = current.shape[:2]
        if drive is None or drive.shape != (steps, batch):
            found = None if drive is None else tuple(drive.shape)
            raise ValueError(
                f"DormantLIF: the mode 'wake' needs drive (T, B) = {(steps, batch)}, the share of non-zero inputs of "
                f"the layer beneath; found {found}"
            )
        clock = drive.new_zeros(batch) if clock is None else clock
        before = torch.cat([clock.unsqueeze(0), drive])
        return before[:-1] > self.wake_above, before[-1]

    def opens(self, clock: Any) -> Any:
        """See `Latch`."""
        return None if clock is None else clock > self.wake_above

    def sleep(self, clock: Any) -> float:
        """See `Latch`."""
        return 0

    def tick(self, clock: Any, drive: Any) -> Any:
        """See `Latch`."""
        return drive

    def __repr__(self) -> str:
        return f"wake above {self.wake_above:g}"


MODES: dict[str, tuple[type[Latch], str | None]] = {
    "latch": (Latch, None),
    "window": (Window, "window"),
    "wake": (Wake, "wake_above"),
}
"""Mode -> its class, and the argument of `DormantLIF` that shapes it."""


def make_mode(mode: str, **settings: Any) -> Latch:
    """The mode of a name; settings of other modes must be None."""
    if mode not in MODES:
        raise ValueError(f"DormantLIF: mode must be one of {', '.join(MODES)}; found {mode!r}")
    kind, wanted = MODES[mode]
    for name, value in settings.items():
        if name == wanted and value is None:
            raise ValueError(f"DormantLIF: the mode {mode!r} needs {name}")
        if name != wanted and value is not None:
            raise ValueError(f"DormantLIF: {name} goes with another mode than {mode!r}")
    return kind() if wanted is None else kind(settings[wanted])  # type: ignore[call-arg]
