"""What the operators of quantised models give, by NumPy: functions of attributes and arguments. Sums are of integers, exact."""

import numpy as np


def lying(parameters, axis, rank):
    """Parameters of a whole tensor, or along an axis of tensors of that rank."""
    if parameters.ndim == 0:
        return parameters
    return parameters.reshape([-1 if d == axis % rank else 1 for d in range(rank)])


def quantize(a, x, scale, zero):
    x, scale = x.astype(np.float32), scale.astype(np.float32)
    steps = np.rint(x / lying(scale, a["axis"], x.ndim)).astype(np.float64)
    limits = np.iinfo(a["out_dtype"])
    return np.clip(steps + lying(zero, a["axis"], x.ndim), limits.min, limits.max).astype(a["out_dtype"])


def dequantize(a, q, scale, zero):
    steps = q.astype(np.int64) - lying(zero, a["axis"], q.ndim)
    return steps.astype(np.float32) * lying(scale.astype(np.float32), a["axis"], q.ndim)


def convolve(x, w, a):
    spatial, groups, kernel = x.ndim - 2, a["groups"], w.shape[2:]
    pads, strides, dilation = a["padding"], a["strides"], a["dilation"]
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:spatial], pads[spatial:])])
    sizes = [(x.shape[d + 2] - dilation[d] * (kernel[d] - 1) - 1) // strides[d] + 1 for d in range(spatial)]
    result = np.zeros((x.shape[0], w.shape[0], *sizes), np.int64)
    inputs, outputs = w.shape[1], w.shape[0] // groups
    for tap in np.ndindex(*kernel):
        at = tuple(slice(t * d, t * d + s * (n - 1) + 1, s) for t, d, s, n in zip(tap, dilation, strides, sizes))
        for g in range(groups):
            rows = slice(g * outputs, (g + 1) * outputs)
            part = x[(slice(None), slice(g * inputs, (g + 1) * inputs), *at)]
            result[:, rows] += np.einsum("nc...,oc->no...", part, w[(rows, slice(None), *tap)])
    return result


def product(multiply, weight_axis, result_axis):
    def compute(a, x, w, x_scale, x_zero, w_scale, w_zero):
        x = x.astype(np.int64) - x_zero
        w = w.astype(np.int64) - lying(w_zero, weight_axis(a), w.ndim)
        sums = multiply(x, w, a)
        return x_scale * lying(w_scale, result_axis, sums.ndim) * sums
    return compute


def matmul(x, y, a):
    turned = [np.swapaxes(v, -1, -2) if a[flag] else v for v, flag in ((x, "transpose_a"), (y, "transpose_b"))]
    return turned[0] @ turned[1]


QUANTISED = {
    "qnn.quantize": quantize,
    "qnn.dequantize": dequantize,
    "qnn.dense": product(lambda x, w, a: x @ w.T, lambda a: 0, -1),
    "qnn.matmul": product(matmul, lambda a: -2 if a["transpose_b"] else -1, -1),
    **{f"qnn.conv{rank}d": product(convolve, lambda a: 0, 1) for rank in (1, 2, 3)},
}
