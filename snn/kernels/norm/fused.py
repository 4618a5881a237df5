"""Compiled loops of masked batch normalisation on channel-first rows (N, M), M = T * B."""

from __future__ import annotations

import numpy as np

from snn.kernels.native.compile import compiled

_SUMS = {"reassoc", "nsz"}
"""Lets the compiler sum a row in several lanes; the order stays the same for a given length."""


def _compiled_sums(function):
    return compiled(function, fastmath=_SUMS)


@_compiled_sums
def _sum(x, mask):
    total = x.dtype.type(0)
    for m in range(x.shape[0]):
        total += x[m] if mask[m] else x.dtype.type(0)
    return total


@_compiled_sums
def _sum_square(x, mask, mean):
    total = x.dtype.type(0)
    for m in range(x.shape[0]):
        d = x[m] - mean if mask[m] else x.dtype.type(0)
        total += d * d
    return total


@_compiled_sums
def _sum_product(x, mask, mean, g):
    total = x.dtype.type(0)
    for m in range(x.shape[0]):
        total += (x[m] - mean) * g[m] if mask[m] else x.dtype.type(0)
    return total


@compiled
def forward(x, mask, count, weight, bias, eps, y, means, variances, first, last):
    """Rows first..last: y (N, M), and the mean and biased variance of each row over the frames in `mask` (M,)."""
    for n in range(first, last):
        row, out = x[n], y[n]
        mean = _sum(row, mask) / count
        var = _sum_square(row, mask, mean) / count
        scale, shift = weight[n] / np.sqrt(var + eps), bias[n]
        for m in range(row.shape[0]):
            out[m] = (row[m] - mean) * scale + shift
        means[n], variances[n] = mean, var


@compiled
def backward(g, x, mask, count, weight, eps, means, variances, grad_x, grad_weight, grad_bias, first, last):
    """Rows first..last of the gradients of x (N, M), weight and bias (N,)."""
    for n in range(first, last):
        row, slope, out = x[n], g[n], grad_x[n]
        mean, width = means[n], x.dtype.type(1) / np.sqrt(variances[n] + eps)
        total, product = _sum(slope, mask), _sum_product(row, mask, mean, slope) * width
        scale = weight[n] * width
        level, tilt = total / count, product * width / count
        for m in range(row.shape[0]):
            out[m] = scale * (slope[m] - (level + (row[m] - mean) * tilt if mask[m] else x.dtype.type(0)))
        grad_weight[n], grad_bias[n] = product, total
