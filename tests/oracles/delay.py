"""Fixed-delay linear as its definition says it, one connection and one step at a time, in NumPy float64."""

import numpy as np


def fixed_delay_linear(x, weight, delay, bias=None, history=None):
    """`x` (T, B, I), `weight` and `delay` (O, I), `history` (D, B, I) oldest first -> y (T, B, O)."""
    steps, batch, inputs = x.shape
    outputs = weight.shape[0]
    y = np.zeros((steps, batch, outputs))
    for t in range(steps):
        for j in range(outputs):
            for i in range(inputs):
                source = t - int(delay[j, i])
                if source >= 0:
                    y[t, :, j] += float(weight[j, i]) * x[source, :, i]
                elif history is not None:
                    y[t, :, j] += float(weight[j, i]) * history[len(history) + source, :, i]
            if bias is not None:
                y[t, :, j] += float(bias[j])
    return y


def fixed_delay_linear_gradient(x, weight, delay, grad):
    """Gradients of x, weight and bias for the gradient `grad` (T, B, O) of y, without a history."""
    steps = x.shape[0]
    grad_x, grad_weight = np.zeros(x.shape), np.zeros(weight.shape)
    for t in range(steps):
        for j in range(weight.shape[0]):
            for i in range(weight.shape[1]):
                source = t - int(delay[j, i])
                if source >= 0:
                    grad_x[source, :, i] += float(weight[j, i]) * grad[t, :, j]
                    grad_weight[j, i] += float(grad[t, :, j] @ x[source, :, i])
    return grad_x, grad_weight, grad.sum((0, 1))
