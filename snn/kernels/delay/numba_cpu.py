"""Fixed-delay linear on the CPU, compiled by numba: forward and both gradients.

Two ways, with the same result bit for bit in the forward pass. Shifted accumulation reads every number, in vectors: a
delay costs a shifted read, so time and memory do not grow with the largest delay. The event path walks over the
non-zero inputs alone, for the forward pass and for the gradient of the weights, and wins below a few per cent of them.
The path "numba" counts them and chooses; "numba_shifted" and "numba_events" are one way each.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from snn.dispatch import Backend
from snn.kernels.delay import operator
from snn.kernels.delay.plan import DelayPlan, in_groups, plan_of
from snn.kernels.layout import rows_of
from snn.kernels.native.compile import numba_is_missing
from snn.kernels.native.threads import in_parts

ROWS, NEAREST = 16, 48 * 1024
"""Rows of the source that stay in the nearest cache during a dense forward pass, half as many where they are too long
for so many bytes of it."""

CHUNK = 16
"""Pairs of vectors of time that stay in the nearest cache during a dense weight gradient."""

FORWARD_CROSSOVER, WEIGHT_CROSSOVER = 0.05, 0.08
"""Share of non-zero inputs above which the path "numba" is dense: forward, and for the gradient of the weights."""

SAMPLE = 8
"""One row in so many is looked at first: where it shows far more spikes than pay off, no others are counted."""


class _Events(NamedTuple):
    """Non-zero numbers of rows: those of row i are `starts[i]..starts[i + 1]`; no `values` where all are ones."""

    starts: np.ndarray
    positions: np.ndarray
    values: np.ndarray


def _events(rows: Tensor, past: Tensor | None, share: float) -> _Events | None:
    """Events of `rows` (I, M) after those of `past`; None when more than this share of the numbers are."""
    from snn.kernels.delay import events
    from snn.kernels.native.vectors import lanes

    parts = (rows[:, :0] if past is None else past).numpy(), rows.numpy()
    width = lanes(rows.element_size())
    starts = np.empty(len(rows) + 1, np.int64)
    positions = np.empty(int(share * (parts[0].size + parts[1].size)) + width, np.uint32)
    total, ones = events.find(*parts, starts, positions, width)
    if total < 0:
        return None
    values = np.empty(0 if ones else total, parts[0].dtype)
    if values.size:
        events.take(*parts, starts, positions, values)
    return _Events(starts, positions, values)


def _chosen_events(rows: Tensor, past: Tensor | None, path: str, crossover: float) -> _Events | None:
    """The events to work on, or None for the dense way."""
    if path == "numba_shifted" or (path == "numba" and _busy(rows, 1.2 * crossover)):
        return None
    return _events(rows, past, 1.0 if path == "numba_events" else crossover)


def _busy(rows: Tensor, share: float) -> bool:
    """Whether more than this share of a sample of the rows is not zero."""
    from snn.kernels.delay import events

    sample = rows[::SAMPLE].numpy()
    return events.count(sample) > share * sample.size


def _checked_plan(delay: Tensor, max_delay: int) -> DelayPlan:
    plan = plan_of(delay)
    if plan.lowest < 0 or plan.highest > max_delay:
        raise ValueError(f"fixed_delay_linear: delays must lie in 0..{max_delay}; found {plan.lowest}..{plan.highest}")
    return plan


def forward(
    x: Tensor, weight: Tensor, delay: Tensor, bias: Tensor | None, history: Tensor | None, max_delay: int, path: str
) -> Tensor:
    """`y` (T, B, O) of `ranvier::fixed_delay_linear`."""
    plan = _checked_plan(delay, max_delay)
    steps, batch, _ = x.shape
    rows, past = rows_of(x), None if history is None else rows_of(history)
    start = weight.new_zeros(weight.shape[0]) if bias is None else bias
    weight, start = weight.detach().contiguous(), start.detach().contiguous()
    chosen = _chosen_events(rows, past, path, FORWARD_CROSSOVER)
    if chosen is None:
        y = _accumulate(rows, past, weight, plan, start, batch, -1, 0, steps)
    else:
        y = _scatter(chosen, weight, plan.packed, start, batch, max_delay, 0 if past is None else past.shape[1], rows)
    return y.view(-1, steps, batch).permute(1, 2, 0)


def backward(
    grad: Tensor, x: Tensor, weight: Tensor, delay: Tensor, history: Tensor | None, max_delay: int, path: str,
    for_x: bool, for_weight: bool, for_history: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of `ranvier::fixed_delay_linear_grad`."""
    plan = _checked_plan(delay, max_delay)
    steps, batch, inputs = x.shape
    g = rows_of(grad)
    grad_weight, grad_x, grad_history = weight.new_empty(0), x.new_empty(0), x.new_empty(0)
    if for_weight:
        rows, past = rows_of(x), None if history is None else rows_of(history)
        chosen = _chosen_events(rows, past, path, WEIGHT_CROSSOVER)
        if chosen is None:
            grad_weight = _correlate(g, rows, past, plan, batch)
        else:
            before = 0 if past is None else past.shape[1]
            grad_weight = _gather(chosen, g, plan.packed, batch, max_delay, before)
    if for_x or for_history:
        # The gradient of the history is that of x in the bins before the first.
        lead = max_delay if for_history else 0
        start = weight.new_zeros(inputs)
        number = lead + steps if for_x else lead
        whole = _accumulate(g, None, weight.detach().t(), plan, start, batch, 1, -lead, number)
        whole = whole.view(inputs, -1, batch).permute(1, 2, 0)
        if for_history:
            grad_history = whole[:max_delay]
        if for_x:
            grad_x = whole[lead:]
        if for_x and for_history:
            # Results of an operator may not share memory.
            grad_x, grad_history = (
                t.permute(2, 0, 1).clone(memory_format=torch.contiguous_format).permute(1, 2, 0)
                for t in (grad_x, grad_history)
            )
    return grad_x, grad_weight, grad_history


def _accumulate(
    rows: Tensor, past: Tensor | None, weight: Tensor, plan: DelayPlan, bias: Tensor, batch: int, sign: int, begin: int,
    steps: int,
) -> Tensor:  # fmt: skip
    """(O, steps * B) of `accumulate_rows`, over as many threads as torch has; `weight` is (O, I)."""
    from snn.kernels.delay.shifted import accumulate_rows, strip_of, tiles_of
    from snn.kernels.native.vectors import VECTORS, lanes

    width = lanes(weight.element_size())
    y = torch.empty(weight.shape[0], steps * batch, dtype=weight.dtype)
    window = (plan.highest * strip_of(batch, width) + VECTORS * width) * y.element_size()
    together = ROWS if ROWS * window <= NEAREST else ROWS // 2
    delay = plan.in_groups(together) if sign < 0 else plan.transposed_in_groups(together)
    before = rows[:, :0] if past is None else past
    arrays = [t.numpy() for t in (y, rows, before, in_groups(weight, together), delay, bias)]

    def work(first: int, last: int) -> None:
        accumulate_rows(*arrays, batch, sign, plan.highest, begin, width, first, last)

    in_parts(work, tiles_of(steps, batch, width))
    return y


def _correlate(g: Tensor, rows: Tensor, past: Tensor | None, plan: DelayPlan, batch: int) -> Tensor:
    """(O, I) of `correlate_rows`, over as many threads as torch has."""
    from snn.kernels.delay.shifted import correlate_rows
    from snn.kernels.native.vectors import lanes, rows_together

    width, together = lanes(rows.element_size()), rows_together(rows.element_size())
    delay = plan.rows_of(together)
    out = torch.empty(delay.shape, dtype=rows.dtype)
    before = rows[:, :0] if past is None else past
    arrays = [t.numpy() for t in (out, g, rows, before, delay)]

    def work(first: int, last: int) -> None:
        correlate_rows(*arrays, batch, plan.highest, CHUNK, width, together, first, last)

    in_parts(work, delay.shape[1] // together)
    return out[:, : rows.shape[0]].contiguous()


def _scatter(
    found: _Events, weight: Tensor, delay: Tensor, bias: Tensor, batch: int, longest: int, before: int, rows: Tensor
) -> Tensor:
    """(O, M) of `scatter_rows`, over as many threads as torch has."""
    from snn.kernels.delay.events import ROWS as TOGETHER
    from snn.kernels.delay.events import scatter_rows

    y = torch.empty(weight.shape[0], rows.shape[1], dtype=rows.dtype)
    arrays = (y.numpy(), weight.numpy(), delay.numpy(), bias.numpy(), *found)

    def work(first: int, last: int) -> None:
        scatter_rows(*arrays, batch, longest, before, first, last)

    in_parts(work, y.shape[0], least=TOGETHER)
    return y


def _gather(found: _Events, g: Tensor, delay: Tensor, batch: int, longest: int, before: int) -> Tensor:
    """(O, I) of `gather_rows`, over as many threads as torch has."""
    from snn.kernels.delay.events import ROWS as TOGETHER
    from snn.kernels.delay.events import gather_rows

    out = torch.empty(delay.shape, dtype=g.dtype)
    arrays = (out.numpy(), g.numpy(), delay.numpy(), *found)

    def work(first: int, last: int) -> None:
        gather_rows(*arrays, batch, longest, before, first, last)

    in_parts(work, out.shape[0], least=TOGETHER)
    return out


def run(
    x: Tensor, weight: Tensor, delay: Tensor, bias: Tensor | None, history: Tensor | None, max_delay: int,
    *, path: str = "numba",
) -> Tensor:  # fmt: skip
    """Apply the layer to `x` (T, B, I) that follows `history` (max_delay, B, I), or silence; returns (T, B, O)."""
    # Turned round here and not in the operator, which would do it again on the way back.
    x = x.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    return operator.fixed_delay_linear(x, weight, delay, bias, history, max_delay, path)


def supports(arguments: Mapping[str, Any]) -> str | None:
    """Float32 and float64 on the CPU, and fewer than 2^31 numbers of delay."""
    x = arguments["x"]
    if x.device.type != "cpu":
        return f"it runs on the CPU, the call is on {x.device.type}"
    if x.dtype not in (torch.float32, torch.float64):
        return f"it takes float32 and float64, the call is {x.dtype}"
    if (x.shape[0] + 2 * arguments["max_delay"]) * x.shape[1] >= 2**31:
        return "the bins and delays of the batch do not fit 31 bits"
    return None


def _backend(name: str, priority: int, summary: str) -> Backend:
    return Backend(name, priority, summary, numba_is_missing, supports, partial(run, path=name))


BACKENDS = (
    _backend(
        "numba", 100, f"compiled; over the spikes below {FORWARD_CROSSOVER:.0%} activity, else shifted accumulation"
    ),
    _backend("numba_shifted", 60, "compiled shifted accumulation, whatever the activity"),
    _backend("numba_events", 50, "compiled, over the spikes alone, whatever the activity"),
)
