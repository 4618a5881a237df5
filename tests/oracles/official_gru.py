"""Forward pass of the two official decoders for one trial, in NumPy, one frame and one layer at a time."""

from __future__ import annotations

import numpy as np

Weights = dict[str, np.ndarray]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def gru_layer(x: np.ndarray, w: Weights, prefix: str, suffix: str, h: np.ndarray) -> np.ndarray:
    """One direction of one layer over ``x (T, N)`` from state ``h (H,)``; gates in torch's order reset, update, new."""
    w_ih, w_hh = w[f"{prefix}.weight_ih_{suffix}"], w[f"{prefix}.weight_hh_{suffix}"]
    b_ih, b_hh = w[f"{prefix}.bias_ih_{suffix}"], w[f"{prefix}.bias_hh_{suffix}"]
    out = []
    for frame in x:
        from_input = np.split(w_ih @ frame + b_ih, 3)
        from_state = np.split(w_hh @ h + b_hh, 3)
        reset = _sigmoid(from_input[0] + from_state[0])
        update = _sigmoid(from_input[1] + from_state[1])
        new = np.tanh(from_input[2] + reset * from_state[2])
        h = (1 - update) * new + update * h
        out.append(h)
    return np.array(out)


def smooth(x: np.ndarray, taps: np.ndarray) -> np.ndarray:
    """Each output bin is a weighted sum of its neighbours; an even kernel has one tap more ahead than behind."""
    behind = (len(taps) - 1) // 2
    out = np.zeros_like(x)
    for t in range(len(x)):
        for k, tap in enumerate(taps):
            if 0 <= t - behind + k < len(x):
                out[t] += tap * x[t - behind + k]
    return out


def _softsign(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.abs(x))


def decode_b2t24(x: np.ndarray, day: int, w: Weights, size: int, stride: int, depth: int, both: bool) -> np.ndarray:
    """Logits (T', symbols) of features (T, C): patches hold all bins of channel 0, then of channel 1, and so on."""
    x = smooth(x, w["gaussianSmoother.weight"][0, 0])
    x = _softsign(x @ w["dayWeights"][day] + w["dayBias"][day, 0])
    y = np.array([x[t : t + size].T.reshape(-1) for t in range(0, len(x) - size + 1, stride)])
    zero = np.zeros(w["gru_decoder.weight_hh_l0"].shape[1])
    for layer in range(depth):
        forward = gru_layer(y, w, "gru_decoder", f"l{layer}", zero)
        if both:
            backward = gru_layer(y[::-1], w, "gru_decoder", f"l{layer}_reverse", zero)[::-1]
            forward = np.concatenate([forward, backward], axis=1)
        y = forward
    return y @ w["fc_decoder_out.weight"].T + w["fc_decoder_out.bias"]


def decode_b2t25(
    x: np.ndarray, day: int, w: Weights, size: int, stride: int, depth: int, taps: np.ndarray
) -> np.ndarray:
    """Logits (T', symbols) of features (T, C): patches hold all channels of bin 0, then of bin 1, and so on."""
    x = smooth(x, taps)
    x = _softsign(x @ w[f"day_weights.{day}"] + w[f"day_biases.{day}"][0])
    y = np.array([x[t : t + size].reshape(-1) for t in range(0, len(x) - size + 1, stride)])
    for layer in range(depth):
        y = gru_layer(y, w, "gru", f"l{layer}", w["h0"][0, 0])
    return y @ w["out.weight"].T + w["out.bias"]
