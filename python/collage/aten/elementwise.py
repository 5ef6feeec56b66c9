"""Elementwise operators: arithmetic, comparisons, logic, casts, activations."""

from __future__ import annotations

import math
from typing import Any

import torch

from .table import DTYPES, FLOATS, Expression, Unsupported, call, cast, operand, operator, promoted, scalar


def _register_unary() -> None:
    names = {"exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "rsqrt", "erf": "erf", "sin": "sin", "cos": "cos", "tan": "tan",
             "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh", "acosh": "acosh",
             "atanh": "atanh", "sigmoid": "sigmoid", "tanh": "tanh", "reciprocal": "reciprocal", "silu": "nn.silu", "mish": "nn.mish"}
    for name, ours in names.items():
        operator(name)(lambda x, ours=ours, *, result: call(ours, cast(x, result.dtype)))
    for name, ours in {"ceil": "ceil", "floor": "floor", "round": "round", "trunc": "trunc"}.items():
        operator(name)(lambda x, ours=ours: call(ours, x) if x.dtype in FLOATS else x)
    for name, ours in {"abs": "abs", "neg": "negative", "sign": "sign", "sgn": "sign", "relu": "nn.relu"}.items():
        operator(name)(lambda x, ours=ours: call(ours, x))


_register_unary()


@operator("bitwise_not")
def bitwise_not(x: Expression) -> Expression:
    return call("logical_not" if x.dtype == "bool" else "bitwise_not", x)


@operator("logical_not")
def logical_not(x: Expression) -> Expression:
    return call("logical_not", cast(x, "bool"))


@operator("isnan")
def isnan(x: Expression) -> Expression:
    return call("isnan", x) if x.dtype in FLOATS else call("not_equal", x, x)


@operator("isinf")
def isinf(x: Expression) -> Expression:
    return call("isinf", x) if x.dtype in FLOATS else call("not_equal", x, x)


@operator("add.Tensor", "add.Scalar")
def add(x: Any, y: Any, alpha: Any = 1, *, result: Any) -> Expression:
    return _sum(x, y, alpha, "add", result.dtype)


@operator("sub.Tensor", "sub.Scalar")
def sub(x: Any, y: Any, alpha: Any = 1, *, result: Any) -> Expression:
    return _sum(x, y, alpha, "subtract", result.dtype)


@operator("rsub.Tensor", "rsub.Scalar")
def rsub(x: Any, y: Any, alpha: Any = 1, *, result: Any) -> Expression:
    return _sum(y, x, alpha, "subtract", result.dtype)


def _sum(x: Any, y: Any, alpha: Any, name: str, dtype: str) -> Expression:
    if dtype == "bool":
        if name != "add" or alpha != 1:
            raise Unsupported("of booleans")
        return call("logical_or", operand(x, dtype), operand(y, dtype))
    y = operand(y, dtype)
    return call(name, operand(x, dtype), y if alpha == 1 else call("multiply", y, scalar(alpha, dtype)))


@operator("mul.Tensor", "mul.Scalar")
def mul(x: Any, y: Any, *, result: Any) -> Expression:
    return call("logical_and" if result.dtype == "bool" else "multiply", operand(x, result.dtype), operand(y, result.dtype))


@operator("div.Tensor", "div.Scalar")
def div(x: Any, y: Any, *, result: Any) -> Expression:
    return call("divide", operand(x, result.dtype), operand(y, result.dtype))


@operator("div.Tensor_mode", "div.Scalar_mode")
def div_mode(x: Any, y: Any, *, rounding_mode: Any = None, result: Any) -> Expression:
    if rounding_mode is None:
        return div(x, y, result=result)
    if rounding_mode == "floor":
        return floor_divide(x, y, result=result)
    if result.dtype in FLOATS:
        return call("trunc", call("divide", operand(x, result.dtype), operand(y, result.dtype)))
    return call("divide", operand(x, result.dtype), _divisor(y, result.dtype))


def _divisor(y: Any, dtype: str) -> Expression:
    """Of integers a number that is not 0: PyTorch raises another error than Collage where one of a tensor's elements is."""
    if dtype not in FLOATS and (isinstance(y, Expression) or y == 0):
        raise Unsupported("a division of integers by a tensor")
    return operand(y, dtype)


@operator("floor_divide", "floor_divide.Scalar")
def floor_divide(x: Any, y: Any, *, result: Any) -> Expression:
    if result.dtype in FLOATS:
        raise Unsupported("a floored quotient of floats")  # PyTorch's is no floor(x / y): 1.0 // 0.1 is 9
    x, y = operand(x, result.dtype), _divisor(y, result.dtype)
    return call("divide", call("subtract", x, call("floor_mod", x, y)), y)


@operator("remainder.Tensor", "remainder.Scalar")
def remainder(x: Any, y: Any, *, result: Any) -> Expression:
    return call("floor_mod", operand(x, result.dtype), _divisor(y, result.dtype))


@operator("fmod.Tensor", "fmod.Scalar")
def fmod(x: Any, y: Any, *, result: Any) -> Expression:
    return call("mod", operand(x, result.dtype), _divisor(y, result.dtype))


@operator("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def power(x: Any, y: Any, *, result: Any) -> Expression:
    dtype = result.dtype
    if isinstance(y, Expression) or not isinstance(x, Expression):
        if dtype not in FLOATS:
            raise Unsupported("a power of integers by a tensor")  # of negative ones PyTorch raises an error
        return call("power", operand(x, dtype), operand(y, dtype))
    x = cast(x, dtype)
    special = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if y in special and dtype in FLOATS:
        return call(special[y], x)
    if y == 1:
        return x
    if y == 2:
        return call("multiply", x, x)
    if y == 3:
        return call("multiply", call("multiply", x, x), x)
    if dtype not in FLOATS and y < 0:
        raise Unsupported("a negative power of integers")
    return call("power", x, scalar(y, dtype))


@operator("square")
def square(x: Expression) -> Expression:
    return call("multiply", x, x)


def _register_binary() -> None:
    for name, ours in {"maximum": "maximum", "minimum": "minimum"}.items():
        operator(name)(lambda x, y, ours=ours, *, result: _extreme(ours, operand(x, result.dtype), operand(y, result.dtype)))
    comparisons = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    for name, ours in comparisons.items():
        operator(name + ".Tensor", name + ".Scalar")(lambda x, y, ours=ours: _compare(ours, x, y))
    for name in ("and", "or", "xor"):
        operator("logical_" + name)(lambda x, y, ours="logical_" + name: call(ours, cast(x, "bool"), cast(y, "bool")))
        operator(f"bitwise_{name}.Tensor", f"bitwise_{name}.Scalar")(lambda x, y, name=name, *, result: call(
            ("logical_" if result.dtype == "bool" else "bitwise_") + name, operand(x, result.dtype), operand(y, result.dtype)))


def _extreme(name: str, x: Expression, y: Expression) -> Expression:
    if x.dtype == "bool":
        return call("logical_or" if name == "maximum" else "logical_and", x, y)
    return call(name, x, y)


def _compare(name: str, x: Any, y: Any) -> Expression:
    dtype = promoted(x, y)
    if dtype == "bool":  # ordered as numbers
        dtype = "uint8"
        x, y = (cast(v, "bool") if isinstance(v, Expression) else v for v in (x, y))
    return call(name, operand(x, dtype), operand(y, dtype))


_register_binary()


@operator("bitwise_left_shift.Tensor_Scalar", "__lshift__.Scalar")
def left_shift(x: Expression, y: int) -> Expression:
    return call("left_shift", x, _shift(x, y))


@operator("bitwise_right_shift.Tensor_Scalar", "__rshift__.Scalar")
def right_shift(x: Expression, y: int) -> Expression:
    return call("right_shift", x, _shift(x, y))


def _shift(x: Expression, y: int) -> Expression:
    if not isinstance(y, int) or not 0 <= y < 7:
        raise Unsupported(f"a shift by {y}")
    return scalar(y, x.dtype)


@operator("clamp", "clamp.Tensor")
def clamp(x: Expression, low: Any = None, high: Any = None, *, result: Any) -> Expression:
    x = cast(x, result.dtype)
    if x.dtype in FLOATS and all(isinstance(v, (int, float)) and math.isfinite(v) for v in (low, high)) and low <= high:
        return call("clip", x, a_min=float(low), a_max=float(high))
    for name, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            x = call(name, x, operand(bound, result.dtype))
    return x


@operator("clamp_min", "clamp_min.Tensor")
def clamp_min(x: Expression, low: Any, *, result: Any) -> Expression:
    return clamp(x, low, result=result)


@operator("clamp_max", "clamp_max.Tensor")
def clamp_max(x: Expression, high: Any, *, result: Any) -> Expression:
    return clamp(x, None, high, result=result)


@operator("hardtanh")
def hardtanh(x: Expression, low: Any = -1.0, high: Any = 1.0, *, result: Any) -> Expression:
    return clamp(x, low, high, result=result)


@operator("relu6")
def relu6(x: Expression, *, result: Any) -> Expression:
    return clamp(x, 0.0, 6.0, result=result)


@operator("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(condition: Expression, x: Any, y: Any, *, result: Any) -> Expression:
    return call("where", cast(condition, "bool"), operand(x, result.dtype), operand(y, result.dtype))


@operator("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(x: Expression, mask: Expression, value: Any) -> Expression:
    return call("where", mask, operand(value, x.dtype), x)


@operator("nan_to_num")
def nan_to_num(x: Expression, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Expression:
    if x.dtype not in ("float32", "float64"):
        raise Unsupported(f"of {x.dtype}")
    most = torch.finfo(getattr(torch, x.dtype)).max
    zero = scalar(0.0, x.dtype)
    finite = call("where", call("isinf", x), call("where", call("greater", x, zero), scalar(most if posinf is None else posinf, x.dtype),
                                                  scalar(-most if neginf is None else neginf, x.dtype)), x)
    return call("where", call("isnan", x), scalar(0.0 if nan is None else nan, x.dtype), finite)


@operator("lerp.Scalar")
def lerp(x: Expression, y: Expression, weight: float) -> Expression:
    difference = call("subtract", y, x)
    if abs(weight) < 0.5:
        return call("add", x, call("multiply", difference, scalar(weight, x.dtype)))
    return call("subtract", y, call("multiply", difference, scalar(1 - weight, x.dtype)))


@operator("addcmul")
def addcmul(x: Expression, a: Expression, b: Expression, *, value: Any = 1, result: Any) -> Expression:
    return _add_term("multiply", x, a, b, value, result.dtype)


@operator("addcdiv")
def addcdiv(x: Expression, a: Expression, b: Expression, *, value: Any = 1, result: Any) -> Expression:
    return _add_term("divide", x, a, b, value, result.dtype)


def _add_term(name: str, x: Expression, a: Expression, b: Expression, value: Any, dtype: str) -> Expression:
    if dtype not in FLOATS:
        raise Unsupported("of integers")
    term = call(name, cast(a, dtype), cast(b, dtype))
    return call("add", cast(x, dtype), term if value == 1 else call("multiply", term, scalar(value, dtype)))


@operator("_to_copy")
def to_copy(x: Expression, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None, non_blocking: Any = False,
            memory_format: Any = None) -> Expression:
    if layout not in (None, torch.strided) or (device is not None and torch.device(device).type != "cpu"):
        raise Unsupported("another device or layout")
    target = DTYPES.get(dtype) if dtype is not None else x.dtype
    if target is None:
        raise Unsupported(f"{dtype}")
    return cast(x, target)


@operator("prims::convert_element_type")
def convert_element_type(x: Expression, dtype: Any) -> Expression:
    return to_copy(x, dtype=dtype)


@operator("clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "contiguous", "alias_copy", "detach_copy")
def same(x: Expression, *, memory_format: Any = None) -> Expression:
    return x


@operator("scalar_tensor")
def scalar_tensor(value: Any, *, result: Any, **_: Any) -> Expression:
    return scalar(value, result.dtype)


# Activations.


@operator("gelu")
def gelu(x: Expression, *, approximate: str = "none") -> Expression:
    return call("nn.gelu", x, approximate=approximate)


@operator("softplus")
def softplus(x: Expression, beta: Any = 1, threshold: Any = 20) -> Expression:
    if beta != 1:
        scaled = call("multiply", x, scalar(float(beta), x.dtype))
        smooth = call("divide", call("nn.softplus", scaled), scalar(float(beta), x.dtype))
    else:
        scaled, smooth = x, call("nn.softplus", x)
    return call("where", call("greater", scaled, scalar(float(threshold), x.dtype)), x, smooth)


@operator("elu")
def elu(x: Expression, alpha: Any = 1.0, scale: Any = 1.0, input_scale: Any = 1.0) -> Expression:
    if input_scale != 1:
        raise Unsupported("input_scale")
    y = call("nn.elu", x, alpha=float(alpha))
    return y if scale == 1 else call("multiply", y, scalar(float(scale), x.dtype))


@operator("celu")
def celu(x: Expression, alpha: Any = 1.0) -> Expression:
    return call("nn.celu", x, alpha=float(alpha))


@operator("selu")
def selu(x: Expression) -> Expression:
    return call("nn.selu", x, alpha=1.6732632423543772848170429916717, gamma=1.0507009873554804934193349852946)


@operator("leaky_relu")
def leaky_relu(x: Expression, slope: Any = 0.01) -> Expression:
    return call("nn.leaky_relu", x, alpha=float(slope))


@operator("hardsigmoid")
def hardsigmoid(x: Expression) -> Expression:
    return call("nn.hard_sigmoid", x, alpha=1 / 6, beta=0.5)


@operator("hardswish")
def hardswish(x: Expression) -> Expression:
    return call("nn.hard_swish", x)


@operator("log_sigmoid_forward")
def log_sigmoid(x: Expression) -> Any:
    return call("negative", call("nn.softplus", call("negative", x))), None


@operator("threshold")
def threshold(x: Expression, limit: Any, value: Any) -> Expression:
    return call("where", call("less_equal", x, scalar(limit, x.dtype)), scalar(value, x.dtype), x)


@operator("hardshrink")
def hardshrink(x: Expression, limit: Any = 0.5) -> Expression:
    return call("nn.shrink", x, lambd=float(limit), bias=0.0)


@operator("softshrink")
def softshrink(x: Expression, limit: Any = 0.5) -> Expression:
    return call("nn.shrink", x, lambd=float(limit), bias=float(limit))


@operator("_prelu_kernel", "prelu")
def prelu(x: Expression, slope: Expression) -> Expression:
    if slope.shape not in (x.shape, ()) and len(slope.shape) == 1 and len(x.shape) > 1:
        slope = call("reshape", slope, newshape=[-1 if d == 1 else 1 for d in range(len(x.shape))])
    return call("where", call("greater", x, scalar(0, x.dtype)), x, call("multiply", x, slope))


@operator("glu")
def glu(x: Expression, dim: int = -1) -> Expression:
    half = x.shape[dim] // 2
    parts = [call("strided_slice", x, begin=[i * half], end=[(i + 1) * half], strides=[1], axes=[dim % len(x.shape)]) for i in range(2)]
    return call("multiply", parts[0], call("sigmoid", parts[1]))


@operator("logit")
def logit(x: Expression, eps: Any = None) -> Expression:
    if eps is not None or x.dtype not in FLOATS:
        raise Unsupported("eps")
    return call("log", call("divide", x, call("subtract", scalar(1.0, x.dtype), x)))
