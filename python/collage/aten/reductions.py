"""Reductions over axes, softmax, running sums, and orders along an axis."""

from __future__ import annotations

from typing import Any

from .. import graph
from .table import DTYPES, FLOATS, Expression, Unsupported, axes_of, axis_of, call, cast, operator, reshape, scalar


def reduce(name: str, x: Expression, dims: Any, keepdims: bool) -> Expression:
    axes = axes_of(x, dims)
    if not axes:  # of a scalar
        return x
    return call(name, x, axis=axes, keepdims=keepdims)


@operator("sum", "sum.dim_IntList")
def sum_(x: Expression, dims: Any = None, keepdim: bool = False, *, dtype: Any = None, result: Any) -> Expression:
    return reduce("sum", cast(x, result.dtype), dims, keepdim)


@operator("mean", "mean.dim")
def mean(x: Expression, dims: Any = None, keepdim: bool = False, *, dtype: Any = None, result: Any) -> Expression:
    return reduce("mean", cast(x, result.dtype), dims, keepdim)


@operator("prod", "prod.dim_int")
def prod(x: Expression, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, result: Any) -> Expression:
    return reduce("prod", cast(x, result.dtype), dim, keepdim)


def _extreme(name: str, x: Expression, dims: Any, keepdim: bool) -> Expression:
    if x.dtype == "bool":
        return reduce("any" if name == "max" else "all", x, dims, keepdim)
    return reduce(name, x, dims, keepdim)


@operator("amax", "max")
def amax(x: Expression, dims: Any = (), keepdim: bool = False) -> Expression:
    return _extreme("max", x, dims, keepdim)


@operator("amin", "min")
def amin(x: Expression, dims: Any = (), keepdim: bool = False) -> Expression:
    return _extreme("min", x, dims, keepdim)


@operator("max.dim")
def max_dim(x: Expression, dim: int, keepdim: bool = False) -> Any:
    return amax(x, [dim], keepdim), argmax(x, dim, keepdim)


@operator("min.dim")
def min_dim(x: Expression, dim: int, keepdim: bool = False) -> Any:
    return amin(x, [dim], keepdim), argmin(x, dim, keepdim)


def _arg_extreme(name: str, x: Expression, dim: Any, keepdim: bool) -> Expression:
    if x.dtype == "bool":
        x = cast(x, "uint8")
    if dim is None:
        if keepdim:
            raise Unsupported("keepdim of all dimensions")
        return call(name, reshape(x, [-1]), axis=0)
    if not x.shape:
        raise Unsupported("of a scalar")
    return call(name, x, axis=axis_of(x, dim), keepdims=keepdim)


@operator("argmax")
def argmax(x: Expression, dim: Any = None, keepdim: bool = False) -> Expression:
    return _arg_extreme("argmax", x, dim, keepdim)


@operator("argmin")
def argmin(x: Expression, dim: Any = None, keepdim: bool = False) -> Expression:
    return _arg_extreme("argmin", x, dim, keepdim)


@operator("any", "any.dim", "any.dims")
def any_(x: Expression, dims: Any = None, keepdim: bool = False, *, result: Any) -> Expression:
    return cast(reduce("any", cast(x, "bool"), dims, keepdim), result.dtype)


@operator("all", "all.dim", "all.dims")
def all_(x: Expression, dims: Any = None, keepdim: bool = False, *, result: Any) -> Expression:
    return cast(reduce("all", cast(x, "bool"), dims, keepdim), result.dtype)


@operator("var.correction")
def var(x: Expression, dims: Any = None, *, correction: Any = None, keepdim: bool = False) -> Expression:
    return _moments(x, dims, correction, keepdim)[0]


@operator("std.correction")
def std(x: Expression, dims: Any = None, *, correction: Any = None, keepdim: bool = False) -> Expression:
    return call("sqrt", _moments(x, dims, correction, keepdim)[0])


@operator("var_mean.correction")
def var_mean(x: Expression, dims: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return _moments(x, dims, correction, keepdim)


def _moments(x: Expression, dims: Any, correction: Any, keepdim: bool) -> Any:
    axes, correction = axes_of(x, dims), 1 if correction is None else correction
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    if count - correction <= 0 or not axes:
        raise Unsupported("a variance of too few elements")
    middle = call("mean", x, axis=axes, keepdims=True)
    distance = call("subtract", x, middle)
    total = call("sum", call("multiply", distance, distance), axis=axes, keepdims=keepdim)
    variance = call("divide", total, scalar(float(count - correction), x.dtype))
    return variance, middle if keepdim else reshape(middle, variance.shape)


@operator("linalg_vector_norm")
def vector_norm(x: Expression, order: Any = 2, dims: Any = None, keepdim: bool = False, *, dtype: Any = None, result: Any) -> Expression:
    x = cast(x, result.dtype)
    if x.dtype not in FLOATS:
        raise Unsupported("of integers")
    if order == 2:
        return call("sqrt", reduce("sum", call("multiply", x, x), dims, keepdim))
    if order == 1:
        return reduce("sum", call("abs", x), dims, keepdim)
    if order in (float("inf"), float("-inf")):
        return reduce("max" if order > 0 else "min", call("abs", x), dims, keepdim)
    raise Unsupported(f"a norm of order {order}")


@operator("logsumexp")
def logsumexp(x: Expression, dims: Any, keepdim: bool = False, *, result: Any) -> Expression:
    x = cast(x, result.dtype)
    top = reduce("max", x, dims, True)
    top = call("where", call("isinf", top), scalar(0.0, x.dtype), top)
    total = call("log", reduce("sum", call("exp", call("subtract", x, top)), dims, True))
    y = call("add", total, top)
    return y if keepdim else reshape(y, [extent for d, extent in enumerate(x.shape) if d not in axes_of(x, dims)])


@operator("_softmax")
def softmax(x: Expression, dim: int, half_to_float: bool = False) -> Expression:
    return _softmax("nn.softmax", x, dim)


@operator("_log_softmax")
def log_softmax(x: Expression, dim: int, half_to_float: bool = False) -> Expression:
    return _softmax("nn.log_softmax", x, dim)


@operator("_safe_softmax")
def safe_softmax(x: Expression, dim: int, dtype: Any = None) -> Expression:
    """A row of -inf throughout gives zeros."""
    x = cast(x, DTYPES[dtype]) if dtype is not None else x
    least = scalar(float("-inf"), x.dtype)
    seen = call("any", call("not_equal", x, least), axis=[axis_of(x, dim)], keepdims=True)
    return call("where", seen, _softmax("nn.softmax", x, dim), scalar(0.0, x.dtype))


def _softmax(name: str, x: Expression, dim: int) -> Expression:
    if not x.shape:
        raise Unsupported("of a scalar")
    return call(name, x, axis=axis_of(x, dim))


@operator("cumsum")
def cumsum(x: Expression, dim: int, *, dtype: Any = None, result: Any) -> Expression:
    x = cast(x, result.dtype)
    return call("cumsum", x, axis=axis_of(x, dim)) if x.shape else x


@operator("topk")
def topk(x: Expression, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002, as PyTorch calls it
    if not x.shape:
        raise Unsupported("of a scalar")
    return _ordered(x, int(k), dim, largest)


@operator("sort", "sort.stable")
def sort(x: Expression, *arguments: Any, **named: Any) -> Any:
    given = [value for value in arguments if not isinstance(value, bool)]
    flags = [value for value in arguments if isinstance(value, bool)]
    dim = named.get("dim", given[0] if given else -1)
    descending = named.get("descending", flags[-1] if flags else False)
    if not x.shape or x.dtype == "bool":
        raise Unsupported("of a scalar, or of booleans")
    return _ordered(x, x.shape[axis_of(x, dim)], dim, descending)


def _ordered(x: Expression, k: int, dim: int, largest: bool) -> Any:
    both = call("topk", x, k=k, axis=axis_of(x, dim), largest=largest, sorted=True)
    return graph.item(both, 0), graph.item(both, 1)
