"""Reading and writing by index."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch

from .. import graph
from .table import Expression, Unsupported, axis_of, broadcast_to, call, cast, constant, operand, operator, reshape, scalar, transpose


@operator("embedding")
def embedding(weight: Expression, indices: Expression, *_: Any, **__: Any) -> Expression:
    return call("take", weight, indices, axis=0)


@operator("index_select")
def index_select(x: Expression, dim: int, index: Expression) -> Expression:
    if not x.shape:
        raise Unsupported("of a scalar")
    return call("take", x, reshape(index, [-1]), axis=axis_of(x, dim))


@operator("gather")
def gather(x: Expression, dim: int, index: Expression, *, sparse_grad: bool = False) -> Expression:
    if not x.shape:
        raise Unsupported("of a scalar")
    return call("gather", x, index, axis=axis_of(x, dim))


@operator("take")
def take(x: Expression, index: Expression) -> Expression:
    return call("take", reshape(x, [-1]), index, axis=0)


@operator("scatter.src", "scatter.value")
def scatter(x: Expression, dim: int, index: Expression, source: Any) -> Expression:
    return _scatter(x, dim, index, source, "update")


@operator("scatter_add")
def scatter_add(x: Expression, dim: int, index: Expression, source: Expression) -> Expression:
    return _scatter(x, dim, index, source, "add")


def _scatter(x: Expression, dim: int, index: Expression, source: Any, how: str) -> Expression:
    if not x.shape or len(index.shape) != len(x.shape) or (how == "add" and x.dtype == "bool"):
        raise Unsupported("of a scalar, or of booleans")
    if isinstance(source, Expression) and source.shape:  # only what lies under the indices counts
        source = _cut(source, index.shape)
    else:
        source = broadcast_to(reshape(operand(source, x.dtype), [1] * len(index.shape)), index.shape)
    return call("scatter_elements", x, index, source, axis=axis_of(x, dim), reduction=how)


def _cut(x: Expression, shape: Sequence[int]) -> Expression:
    axes = [d for d, extent in enumerate(shape) if x.shape[d] != extent]
    if not axes:
        return x
    return call("strided_slice", x, begin=[0] * len(axes), end=[shape[d] for d in axes], strides=[1] * len(axes), axes=axes)


@operator("slice_scatter")
def slice_scatter(x: Expression, source: Expression, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Expression:
    axis = axis_of(x, dim)
    places = range(*slice(start, end, step).indices(x.shape[axis]))
    if not places or list(source.shape) != [*x.shape[:axis], len(places), *x.shape[axis + 1:]]:
        raise Unsupported("an empty slice")
    return _write_along(x, axis, places, cast(source, x.dtype))


@operator("select_scatter")
def select_scatter(x: Expression, source: Expression, dim: int, index: Any) -> Expression:
    axis = axis_of(x, dim)
    source = reshape(cast(source, x.dtype), [*x.shape[:axis], 1, *x.shape[axis + 1:]])
    return _write_along(x, axis, [int(index) % x.shape[axis]], source)


def _write_along(x: Expression, axis: int, places: Sequence[int], source: Expression) -> Expression:
    if list(places) == list(range(x.shape[axis])):
        return source
    shape = [1] * len(x.shape)
    shape[axis] = len(places)
    index = torch.tensor(list(places)).reshape(shape).expand(list(source.shape))
    return call("scatter_elements", x, constant(index), source, axis=axis, reduction="update")


@operator("index_copy")
def index_copy(x: Expression, dim: int, index: Expression, source: Expression) -> Expression:
    return _along(x, dim, index, source, "update")


@operator("index_add")
def index_add(x: Expression, dim: int, index: Expression, source: Expression, *, alpha: Any = 1) -> Expression:
    if alpha != 1:
        source = call("multiply", source, scalar(alpha, source.dtype))
    return _along(x, dim, index, source, "add")


@operator("index_fill.int_Scalar")
def index_fill(x: Expression, dim: int, index: Expression, value: Any) -> Expression:
    axis = axis_of(x, dim)
    shape = [*x.shape[:axis], _length(index), *x.shape[axis + 1:]]
    return _along(x, dim, index, call("full", scalar(value, x.dtype), shape=shape), "update")


def _length(index: Expression) -> int:
    return index.shape[0] if index.shape else 1


def _along(x: Expression, dim: int, index: Expression, source: Expression, how: str) -> Expression:
    if not x.shape or (how == "add" and x.dtype == "bool"):
        raise Unsupported("of a scalar, or of booleans")
    axis, count = axis_of(x, dim), _length(index)
    shape = [1] * len(x.shape)
    shape[axis] = count
    full = [*x.shape[:axis], count, *x.shape[axis + 1:]]
    return call("scatter_elements", x, broadcast_to(reshape(index, shape), full), reshape(source, full), axis=axis, reduction=how)


@operator("index.Tensor", "_unsafe_index.Tensor")
def index(x: Expression, indices: Sequence[Optional[Expression]]) -> Expression:
    axes = _indexed(x, indices)
    found = [i for i in indices if i is not None]
    if len(axes) == 1:
        return call("take", x, found[0], axis=axes[0])
    # The indexed dimensions come first for the lookup; their result goes where they were if they stood side by side.
    rest = [d for d in range(len(x.shape)) if d not in axes]
    looked = call("gather_nd", transpose(x, axes + rest), _joined(found), batch_dims=0)
    count = len(looked.shape) - len(rest)
    if axes == list(range(axes[0], axes[0] + len(axes))):
        before = axes[0]
        order = [count + i for i in range(before)] + list(range(count)) + [count + i for i in range(before, len(rest))]
        return transpose(looked, order) if order else looked
    return looked


@operator("index_put", "_unsafe_index_put")
def index_put(x: Expression, indices: Sequence[Optional[Expression]], values: Expression, accumulate: bool = False) -> Expression:
    axes = _indexed(x, indices)
    if axes != list(range(len(axes))) or (accumulate and x.dtype == "bool"):
        raise Unsupported("dimensions that are not the first")
    places = _joined([i for i in indices if i is not None])
    values = broadcast_to(cast(values, x.dtype), [*places.shape[:-1], *x.shape[len(axes):]])
    return call("scatter_nd", x, places, values, mode="add" if accumulate else "update")


def _indexed(x: Expression, indices: Sequence[Optional[Expression]]) -> list[int]:
    """The dimensions that are indexed. Masks, whose result's shape depends on values, are not here."""
    axes = [d for d, index in enumerate(indices) if index is not None]
    if not axes or any(index is not None and index.dtype in ("bool", "uint8") for index in indices):
        raise Unsupported("a mask")
    return axes


def _joined(indices: Sequence[Expression]) -> Expression:
    """Index tuples along a new last dimension."""
    shape = list(torch.broadcast_shapes(*(tuple(index.shape) for index in indices)))
    columns = [reshape(broadcast_to(cast(index, "int64"), shape), [*shape, 1]) for index in indices]
    if len(columns) == 1:
        return columns[0]
    return call("concatenate", graph.tuple_of(*columns), axis=len(shape))
