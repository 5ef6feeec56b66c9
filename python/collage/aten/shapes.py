"""Views, joins, pieces, padding, and tensors that are made of nothing."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from .. import graph
from .table import (
    TORCH, Empty, Expression, Unsupported, axis_of, broadcast_to, call, cast, concrete, constant, operand, operator, reshape, scalar, sizes, transpose)


@operator("view", "_unsafe_view", "reshape", "view_copy", "_reshape_alias", "reshape_copy")
def view(x: Expression, shape: Sequence[Any], *_: Any) -> Expression:
    shape = sizes(shape)
    if -1 in shape:
        total = 1
        for extent in x.shape:
            total *= extent
        for extent in shape:
            total //= extent if extent != -1 else 1
        shape = [total if extent == -1 else extent for extent in shape]
    return reshape(x, shape)


@operator("permute", "permute_copy")
def permute(x: Expression, axes: Sequence[int]) -> Expression:
    return transpose(x, axes) if x.shape else x


@operator("transpose.int", "transpose_copy.int")
def transpose_(x: Expression, a: int, b: int) -> Expression:
    axes = list(range(len(x.shape)))
    if axes:
        a, b = axis_of(x, a), axis_of(x, b)
        axes[a], axes[b] = axes[b], axes[a]
    return transpose(x, axes) if axes else x


@operator("t", "t_copy")
def t(x: Expression) -> Expression:
    return transpose(x, [1, 0]) if len(x.shape) == 2 else x


@operator("unsqueeze", "unsqueeze_copy")
def unsqueeze(x: Expression, dim: int) -> Expression:
    shape = list(x.shape)
    shape.insert(dim % (len(shape) + 1), 1)
    return reshape(x, shape)


@operator("squeeze", "squeeze.dim", "squeeze.dims", "squeeze_copy", "squeeze_copy.dim", "squeeze_copy.dims")
def squeeze(x: Expression, dims: Any = None) -> Expression:
    if not x.shape:
        return x
    dims = range(len(x.shape)) if dims is None else [dims] if isinstance(dims, int) else dims
    gone = {axis_of(x, dim) for dim in dims}
    return reshape(x, [extent for d, extent in enumerate(x.shape) if d not in gone or extent != 1])


@operator("expand", "expand_copy")
def expand(x: Expression, shape: Sequence[Any], *, implicit: bool = False) -> Expression:
    shape = sizes(shape)
    own = [1] * (len(shape) - len(x.shape)) + list(x.shape)
    return broadcast_to(x, [extent if wanted == -1 else wanted for extent, wanted in zip(own, shape)])


@operator("slice.Tensor", "slice_copy.Tensor")
def slice_(x: Expression, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Expression:
    axis = axis_of(x, dim)
    start, end, step = slice(start, end, step).indices(x.shape[axis])
    return _slice(x, axis, start, max(start, end), step)


def _slice(x: Expression, axis: int, start: int, end: int, step: int = 1) -> Expression:
    if (start, step) == (0, 1) and end == x.shape[axis]:
        return x
    return call("strided_slice", x, begin=[start], end=[end], strides=[step], axes=[axis])


@operator("select.int", "select_copy.int")
def select(x: Expression, dim: int, index: Any) -> Expression:
    axis = axis_of(x, dim)
    index = int(index) % x.shape[axis]
    piece = _slice(x, axis, index, index + 1)
    return reshape(piece, [extent for d, extent in enumerate(x.shape) if d != axis])


@operator("split.Tensor", "split_copy.Tensor")
def split(x: Expression, size: Any, dim: int = 0) -> Any:
    axis = axis_of(x, dim)
    return tuple(_slice(x, axis, begin, min(begin + size, x.shape[axis])) for begin in range(0, x.shape[axis], size))


@operator("split_with_sizes", "split_with_sizes_copy")
def split_with_sizes(x: Expression, parts: Sequence[Any], dim: int = 0) -> Any:
    axis, begin, pieces = axis_of(x, dim), 0, []
    for size in sizes(parts):
        pieces.append(_slice(x, axis, begin, begin + size))
        begin += size
    return tuple(pieces)


@operator("unbind.int", "unbind_copy.int")
def unbind(x: Expression, dim: int = 0) -> Any:
    return tuple(select(x, dim, i) for i in range(x.shape[axis_of(x, dim)]))


@operator("diagonal", "diagonal_copy")
def diagonal(x: Expression, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Expression:
    a, b = axis_of(x, dim1), axis_of(x, dim2)
    rest = [d for d in range(len(x.shape)) if d not in (a, b)]
    x = transpose(x, [*rest, a, b])
    rows, columns = x.shape[-2:]
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    flat = reshape(x, [*x.shape[:-2], rows * columns])
    start = offset if offset >= 0 else -offset * columns
    return _slice(flat, len(flat.shape) - 1, start, start + (length - 1) * (columns + 1) + 1, columns + 1)


@operator("unfold", "unfold_copy")
def unfold(x: Expression, dim: int, size: int, step: int) -> Expression:
    axis = axis_of(x, dim)
    count = (x.shape[axis] - size) // step + 1
    places = torch.arange(count)[:, None] * step + torch.arange(size)[None]
    windows = call("take", x, constant(places), axis=axis)
    rank = len(windows.shape)
    return transpose(windows, [d for d in range(rank) if d != axis + 1] + [axis + 1])


@operator("as_strided", "as_strided_copy")
def as_strided(x: Expression, shape: Sequence[Any], strides: Sequence[Any], offset: Any = None, *, result: Any) -> Expression:
    """The same tensor, where only the strides of dimensions of extent 1 are others."""
    whole = result.node.args[0].meta["val"]
    own = [concrete(stride) for stride in whole.stride()]
    if sizes(shape) != list(x.shape) or any(n > 1 and a != b for n, a, b in zip(x.shape, own, sizes(strides))) or offset not in (None, 0):
        raise Unsupported("another view of memory")
    return x


@operator("cat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0, *, result: Any) -> Expression:
    parts = [cast(x, result.dtype) for x in tensors if not isinstance(x, Empty)]

    return parts[0] if len(parts) == 1 else call("concatenate", graph.tuple_of(*parts), axis=axis_of(parts[0], dim))


@operator("stack")
def stack(tensors: Sequence[Expression], dim: int = 0, *, result: Any) -> Expression:
    return call("stack", graph.tuple_of(*(cast(x, result.dtype) for x in tensors)), axis=dim % (len(tensors[0].shape) + 1))


@operator("repeat")
def repeat(x: Expression, repeats: Sequence[Any]) -> Expression:
    repeats = sizes(repeats)
    x = reshape(x, [1] * (len(repeats) - len(x.shape)) + list(x.shape))
    return x if all(count == 1 for count in repeats) else call("tile", x, reps=repeats)


@operator("repeat_interleave.self_int")
def repeat_interleave(x: Expression, repeats: Any, dim: Any = None, **_: Any) -> Expression:
    x = reshape(x, [-1]) if dim is None else x
    return call("repeat", x, repeats=int(repeats), axis=axis_of(x, dim or 0))


@operator("flip")
def flip(x: Expression, dims: Sequence[int]) -> Expression:
    return call("reverse", x, axis=[axis_of(x, dim) for dim in dims]) if dims and x.shape else x


@operator("roll")
def roll(x: Expression, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Expression:
    shape = x.shape
    if not dims:
        x = reshape(x, [-1])
        dims = [0]
    for shift, dim in zip(sizes(shifts), dims):
        axis = axis_of(x, dim)
        at = -shift % x.shape[axis]
        if at:
            parts = _slice(x, axis, at, x.shape[axis]), _slice(x, axis, 0, at)
            x = call("concatenate", graph.tuple_of(*parts), axis=axis)
    return reshape(x, shape)


@operator("tril")
def tril(x: Expression, diagonal: int = 0) -> Expression:
    return call("trilu", x, k=diagonal, upper=False)


@operator("triu")
def triu(x: Expression, diagonal: int = 0) -> Expression:
    return call("trilu", x, k=diagonal, upper=True)


@operator("pixel_shuffle")
def pixel_shuffle(x: Expression, factor: int) -> Expression:
    lead = list(x.shape[:-3])
    image = reshape(x, [-1, *x.shape[-3:]])
    y = call("nn.depth_to_space", image, block_size=factor, mode="CRD")
    return reshape(y, [*lead, *y.shape[1:]])


@operator("constant_pad_nd")
def constant_pad(x: Expression, pad: Sequence[Any], value: Any = 0) -> Expression:
    return _pad(x, pad, "constant", value)


@operator("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(x: Expression, pad: Sequence[Any]) -> Expression:
    return _pad(x, pad, "reflect", 0)


@operator("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(x: Expression, pad: Sequence[Any]) -> Expression:
    return _pad(x, pad, "edge", 0)


def _pad(x: Expression, pad: Sequence[Any], mode: str, value: Any) -> Expression:
    pad = sizes(pad)
    widths = [[0, 0] for _ in x.shape]
    for i in range(len(pad) // 2):
        widths[-1 - i] = [pad[2 * i], pad[2 * i + 1]]
    return call("nn.pad", x, scalar(value, x.dtype), pad_width=widths, pad_mode=mode)


# Of nothing.


@operator("full")
def full(shape: Sequence[Any], value: Any, *, result: Any, **_: Any) -> Expression:
    return call("full", operand(value, result.dtype), shape=sizes(shape))


@operator("full_like")
def full_like(x: Expression, value: Any, *, result: Any, **_: Any) -> Expression:
    return full(x.shape, value, result=result)


@operator("fill.Scalar", "fill.Tensor")
def fill(x: Expression, value: Any) -> Expression:
    return call("full", operand(value, x.dtype), shape=list(x.shape))


@operator("copy")
def copy(x: Expression, source: Expression, non_blocking: bool = False) -> Expression:
    return broadcast_to(cast(source, x.dtype), x.shape)


@operator("new_full")
def new_full(x: Expression, shape: Sequence[Any], value: Any, *, result: Any, **_: Any) -> Expression:
    return full(shape, value, result=result)


def _register_filled() -> None:
    for name, value in (("zeros", 0), ("ones", 1)):
        operator(name)(lambda shape, value=value, *, result, **_: full(shape, value, result=result))
        operator(name + "_like")(lambda x, value=value, *, result, **_: full(x.shape, value, result=result))
        operator("new_" + name)(lambda x, shape, value=value, *, result, **_: full(shape, value, result=result))


_register_filled()


@operator("arange.start_step", "arange.start", "arange")
def arange(*arguments: Any, result: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None) -> Expression:
    return constant(torch.arange(*arguments, dtype=TORCH[result.dtype]))


@operator("linspace")
def linspace(*arguments: Any, result: Any, **_: Any) -> Expression:
    return constant(torch.linspace(*arguments, dtype=TORCH[result.dtype]))


@operator("eye", "eye.m")
def eye(*arguments: Any, result: Any, **_: Any) -> Expression:
    return constant(torch.eye(*arguments, dtype=TORCH[result.dtype]))
