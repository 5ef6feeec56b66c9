"""What the elementwise and broadcasting operators give, by NumPy: functions of attributes and arguments."""

import math

import numpy as np


def along(values, axis, rank):
    """A vector that lies along an axis of tensors of that rank."""
    return values.reshape([-1 if d == axis % rank else 1 for d in range(rank)])


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu(a, x):
    if a["approximate"] == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def elu(alpha, x):
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def shrink(a, x):
    return np.where(x < -a["lambd"], x + a["bias"], np.where(x > a["lambd"], x - a["bias"], 0))


# Of one tensor, f(attributes, x).
UNARY = {
    "nn.relu": lambda a, x: np.maximum(x, 0),
    "nn.leaky_relu": lambda a, x: np.where(x < 0, a["alpha"] * x, x),
    "clip": lambda a, x: np.clip(x, a["a_min"], a["a_max"]),
    "sigmoid": lambda a, x: sigmoid(x),
    "tanh": lambda a, x: np.tanh(x),
    "exp": lambda a, x: np.exp(x),
    "log": lambda a, x: np.log(x),
    "sqrt": lambda a, x: np.sqrt(x),
    "rsqrt": lambda a, x: 1 / np.sqrt(x),
    "erf": lambda a, x: erf(x),
    "abs": lambda a, x: np.abs(x),
    "negative": lambda a, x: np.negative(x),
    "ceil": lambda a, x: np.ceil(x),
    "floor": lambda a, x: np.floor(x),
    "round": lambda a, x: np.round(x),
    "trunc": lambda a, x: np.trunc(x),
    "sign": lambda a, x: np.sign(x),
    "sin": lambda a, x: np.sin(x),
    "cos": lambda a, x: np.cos(x),
    "tan": lambda a, x: np.tan(x),
    "asin": lambda a, x: np.arcsin(x),
    "acos": lambda a, x: np.arccos(x),
    "atan": lambda a, x: np.arctan(x),
    "sinh": lambda a, x: np.sinh(x),
    "cosh": lambda a, x: np.cosh(x),
    "asinh": lambda a, x: np.arcsinh(x),
    "acosh": lambda a, x: np.arccosh(x),
    "atanh": lambda a, x: np.arctanh(x),
    "reciprocal": lambda a, x: 1 / x,
    "nn.gelu": gelu,
    "nn.silu": lambda a, x: x * sigmoid(x),
    "nn.hard_sigmoid": lambda a, x: np.clip(a["alpha"] * x + a["beta"], 0, 1),
    "nn.hard_swish": lambda a, x: x * np.clip(x / 6 + 0.5, 0, 1),
    "nn.elu": lambda a, x: elu(a["alpha"], x),
    "nn.selu": lambda a, x: 1.0507009873554805 * elu(1.6732632423543772, x),
    "nn.celu": lambda a, x: np.maximum(x, 0) + np.minimum(0, a["alpha"] * np.expm1(x / a["alpha"])),
    "nn.softplus": lambda a, x: softplus(x),
    "nn.softsign": lambda a, x: x / (1 + np.abs(x)),
    "nn.mish": lambda a, x: x * np.tanh(softplus(x)),
    "nn.thresholded_relu": lambda a, x: np.where(x > a["alpha"], x, 0),
    "nn.shrink": shrink,
    "isnan": lambda a, x: np.isnan(x),
    "isinf": lambda a, x: np.isinf(x),
    "copy": lambda a, x: x,
    "cast": lambda a, x: x.astype(a["dtype"]),
    "reinterpret": lambda a, x: (x.astype(np.float32) if x.dtype == np.float64 else x).view(a["dtype"]),
    "bitwise_not": lambda a, x: np.invert(x),
    "logical_not": lambda a, x: np.logical_not(x),
}
def divide(a, x, y):
    if np.issubdtype(x.dtype, np.integer):  # toward zero
        return np.trunc(x / y).astype(x.dtype)
    return x / y


# Of tensors that are broadcast, f(attributes, x, y).
BROADCAST = {
    "add": lambda a, x, y: x + y,
    "subtract": lambda a, x, y: x - y,
    "multiply": lambda a, x, y: x * y,
    "divide": divide,
    "power": lambda a, x, y: np.power(x, y),
    "maximum": lambda a, x, y: np.maximum(x, y),
    "minimum": lambda a, x, y: np.minimum(x, y),
    "mod": lambda a, x, y: np.fmod(x, y),
    "floor_mod": lambda a, x, y: np.mod(x, y),
    "left_shift": lambda a, x, y: np.left_shift(x, y),
    "right_shift": lambda a, x, y: np.right_shift(x, y),
    "bitwise_and": lambda a, x, y: np.bitwise_and(x, y),
    "bitwise_or": lambda a, x, y: np.bitwise_or(x, y),
    "bitwise_xor": lambda a, x, y: np.bitwise_xor(x, y),
    "equal": lambda a, x, y: x == y,
    "not_equal": lambda a, x, y: x != y,
    "less": lambda a, x, y: x < y,
    "less_equal": lambda a, x, y: x <= y,
    "greater": lambda a, x, y: x > y,
    "greater_equal": lambda a, x, y: x >= y,
    "logical_and": lambda a, x, y: np.logical_and(x, y),
    "logical_or": lambda a, x, y: np.logical_or(x, y),
    "logical_xor": lambda a, x, y: np.logical_xor(x, y),
    "where": lambda a, c, x, y: np.where(c, x, y),
    "nn.prelu": lambda a, x, slope: np.where(x < 0, along(slope, a["axis"], x.ndim) * x, x),
}
