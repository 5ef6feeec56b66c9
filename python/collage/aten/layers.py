"""What layers of networks are made of: products, convolutions, poolings, normalisations, attention, resizing."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

import torch

from .. import graph
from .table import FLOATS, Expression, Unsupported, call, cast, constant, operator, reshape, scalar, sizes, transpose

# Products.


@operator("mm")
def mm(x: Expression, y: Expression) -> Expression:
    return _product(x, y)


@operator("bmm")
def bmm(x: Expression, y: Expression) -> Expression:
    return _product(x, y)


def _product(x: Expression, y: Expression) -> Expression:
    if x.dtype == "bool":
        raise Unsupported("of booleans")
    return call("nn.matmul", x, y)


@operator("addmm")
def addmm(bias: Expression, x: Expression, y: Expression, *, beta: Any = 1, alpha: Any = 1) -> Expression:
    return _plus(bias, _product(x, y), beta, alpha)


@operator("baddbmm")
def baddbmm(bias: Expression, x: Expression, y: Expression, *, beta: Any = 1, alpha: Any = 1) -> Expression:
    return _plus(bias, _product(x, y), beta, alpha)


@operator("addmv")
def addmv(bias: Expression, x: Expression, y: Expression, *, beta: Any = 1, alpha: Any = 1) -> Expression:
    return _plus(bias, mv(x, y), beta, alpha)


@operator("addbmm")
def addbmm(bias: Expression, x: Expression, y: Expression, *, beta: Any = 1, alpha: Any = 1) -> Expression:
    return _plus(bias, call("sum", _product(x, y), axis=[0]), beta, alpha)


def _plus(bias: Expression, product: Expression, beta: Any, alpha: Any) -> Expression:
    if alpha != 1:
        product = call("multiply", product, scalar(alpha, product.dtype))
    if beta == 0:  # then the bias counts for nothing, NaN included
        return product
    if beta != 1:
        bias = call("multiply", bias, scalar(beta, bias.dtype))
    return call("add", product, bias)


@operator("mv")
def mv(x: Expression, y: Expression) -> Expression:
    return reshape(_product(x, reshape(y, [-1, 1])), x.shape[:1])


@operator("dot", "vdot")
def dot(x: Expression, y: Expression) -> Expression:
    return reshape(_product(reshape(x, [1, -1]), reshape(y, [-1, 1])), [])


@operator("linear")
def linear(x: Expression, weight: Expression, bias: Optional[Expression] = None) -> Expression:
    if len(weight.shape) != 2:
        raise Unsupported("a vector of weights")
    y = call("nn.dense", x, weight)
    return y if bias is None else call("add", y, bias)


# Convolutions and poolings.


@operator("convolution")
def convolution(x: Expression, weight: Expression, bias: Optional[Expression], stride: Sequence[Any], padding: Sequence[Any],
                dilation: Sequence[Any], transposed: bool, output_padding: Sequence[Any], groups: Any) -> Expression:
    spatial = len(weight.shape) - 2
    unbatched = len(x.shape) == spatial + 1
    if not 1 <= spatial <= 3:
        raise Unsupported(f"of {spatial} dimensions")
    if unbatched:
        x = reshape(x, [1, *x.shape])
    attributes = {"strides": _each(stride, spatial), "padding": _each(padding, spatial) * 2, "dilation": _each(dilation, spatial),
                  "groups": int(groups)}
    if transposed:
        y = call(f"nn.conv{spatial}d_transpose", x, weight, output_padding=_each(output_padding, spatial), **attributes)
    else:
        y = call(f"nn.conv{spatial}d", x, weight, **attributes)
    if bias is not None:
        y = call("nn.bias_add", y, bias, axis=1)
    return reshape(y, y.shape[1:]) if unbatched else y


def _each(values: Any, count: int, default: Any = None) -> list[int]:
    values = sizes(values if isinstance(values, (list, tuple)) else [values]) or (default or [])
    return values * count if len(values) == 1 else values


def _pooled(name: str, spatial: int, x: Expression, **attributes: Any) -> Expression:
    unbatched = len(x.shape) == spatial + 1
    y = call(f"nn.{name}{spatial}d", reshape(x, [1, *x.shape]) if unbatched else x, **attributes)
    return reshape(y, y.shape[1:]) if unbatched else y


def _max_pool(spatial: int, x: Expression, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Expression:
    size = _each(kernel, spatial)
    return _pooled("max_pool", spatial, x, pool_size=size, strides=_each(stride, spatial, size), dilation=_each(dilation, spatial),
                   padding=_each(padding, spatial) * 2, ceil_mode=ceil_mode)


def _avg_pool(spatial: int, x: Expression, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
              divisor: Any = None) -> Expression:
    if divisor is not None:
        raise Unsupported("a divisor of one's own")
    size = _each(kernel, spatial)
    return _pooled("avg_pool", spatial, x, pool_size=size, strides=_each(stride, spatial, size), padding=_each(padding, spatial) * 2,
                   ceil_mode=ceil_mode, count_include_pad=count_include_pad)


def _adaptive(name: str, spatial: int, x: Expression, size: Any) -> Expression:
    """Windows of one size where extents divide; else PyTorch's, which overlap and differ in size, as slices."""
    size, extents = _each(size, spatial), list(x.shape[-spatial:])
    if all(extent % wanted == 0 for extent, wanted in zip(extents, size)):
        window = [extent // wanted for extent, wanted in zip(extents, size)]
        return _pooled(name + "_pool", spatial, x, pool_size=window, strides=window)
    if name != "avg":
        raise Unsupported("windows of several sizes")
    first = len(x.shape) - spatial
    for d, (extent, wanted) in enumerate(zip(extents, size)):
        if extent == wanted:
            continue
        weights = torch.zeros(extent, wanted)
        for i in range(wanted):
            begin, end = i * extent // wanted, -(-(i + 1) * extent // wanted)
            weights[begin:end, i] = 1 / (end - begin)
        axes = [axis for axis in range(len(x.shape)) if axis != first + d] + [first + d]
        y = call("nn.matmul", transpose(x, axes), cast(constant(weights), x.dtype))
        x = transpose(y, [axes.index(axis) for axis in range(len(axes))])
    return x


def _register_pools() -> None:
    for n in (1, 2, 3):
        operator(f"max_pool{n}d")(lambda *a, n=n, **k: _max_pool(n, *a, **k))
        operator(f"max_pool{n}d_with_indices")(lambda *a, n=n, **k: (_max_pool(n, *a, **k), None))
        operator(f"avg_pool{n}d")(lambda *a, n=n, **k: _avg_pool(n, *a, **k))
        operator(f"_adaptive_avg_pool{n}d", f"adaptive_avg_pool{n}d")(lambda x, size, n=n: _adaptive("avg", n, x, size))
        operator(f"adaptive_max_pool{n}d")(lambda x, size, n=n: (_adaptive("max", n, x, size), None))


_register_pools()


# Normalisations.


@operator("_native_batch_norm_legit_no_training")
def batch_norm(x: Expression, weight: Any, bias: Any, mean: Expression, variance: Expression, momentum: Any, eps: float) -> Any:
    return _batch_norm(x, weight, bias, mean, variance, eps), None, None


@operator("native_batch_norm", "cudnn_batch_norm")
def native_batch_norm(x: Expression, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: Any, eps: float) -> Any:
    if training:
        raise Unsupported("statistics of the batch")
    return _batch_norm(x, weight, bias, mean, variance, eps), None, None


def _batch_norm(x: Expression, weight: Any, bias: Any, mean: Expression, variance: Expression, eps: float) -> Expression:
    if x.dtype != mean.dtype or len(x.shape) < 2:
        raise Unsupported("statistics of another dtype")
    weight, bias = _scale(weight, [x.shape[1]], 1.0, x.dtype), _scale(bias, [x.shape[1]], 0.0, x.dtype)
    return graph.item(call("nn.batch_norm", x, weight, bias, mean, variance, axis=1, epsilon=eps), 0)


def _scale(given: Optional[Expression], shape: Sequence[int], default: float, dtype: str) -> Expression:
    return cast(given, dtype) if given is not None else cast(constant(torch.full(list(shape), default)), dtype)


@operator("native_layer_norm")
def layer_norm(x: Expression, shape: Sequence[Any], weight: Any, bias: Any, eps: float) -> Any:
    shape = sizes(shape)
    y = call("nn.layer_norm", x, _scale(weight, shape, 1.0, x.dtype), _scale(bias, shape, 0.0, x.dtype), axis=len(x.shape) - len(shape), epsilon=eps)
    return y, None, None


@operator("_fused_rms_norm")
def fused_rms_norm(x: Expression, shape: Sequence[Any], weight: Any, eps: Any) -> Any:
    shape = sizes(shape)
    if eps is None:
        eps = torch.finfo(getattr(torch, x.dtype)).eps
    return call("nn.rms_norm", x, _scale(weight, shape, 1.0, x.dtype), axis=len(x.shape) - len(shape), epsilon=eps), None


@operator("native_group_norm")
def group_norm(x: Expression, weight: Any, bias: Any, n: Any, channels: Any, pixels: Any, groups: int, eps: float) -> Any:
    y = call("nn.group_norm", x, _scale(weight, [x.shape[1]], 1.0, x.dtype), _scale(bias, [x.shape[1]], 0.0, x.dtype), num_groups=groups,
             axis=1, epsilon=eps)
    return y, None, None


@operator("_weight_norm_interface")
def weight_norm(v: Expression, g: Expression, dim: int = 0) -> Any:
    axes = [d for d in range(len(v.shape)) if d != dim]
    norms = call("sqrt", call("sum", call("multiply", v, v), axis=axes, keepdims=True))
    return call("multiply", v, call("divide", g, norms)), norms


# Attention.


@operator("scaled_dot_product_attention")
def attention(q: Expression, k: Expression, v: Expression, mask: Optional[Expression] = None, dropout: float = 0.0, causal: bool = False,
              *, scale: Any = None, enable_gqa: bool = False) -> Expression:
    if dropout:
        raise Unsupported("dropout")
    return _attention(q, k, v, mask, causal, scale)


@operator("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(q: Expression, k: Expression, v: Expression, dropout: float = 0.0, causal: bool = False, *, attn_mask: Any = None,
                    scale: Any = None) -> Any:
    if dropout:
        raise Unsupported("dropout")
    return _attention(q, k, v, attn_mask, causal, scale), None


@operator("_scaled_dot_product_attention_math_for_mps", "_scaled_dot_product_attention_math")
def math_attention(q: Expression, k: Expression, v: Expression, mask: Any = None, dropout: float = 0.0, causal: bool = False, *_: Any,
                   scale: Any = None, enable_gqa: bool = False) -> Any:
    return attention(q, k, v, mask, dropout, causal, scale=scale, enable_gqa=enable_gqa), None


def _attention(q: Expression, k: Expression, v: Expression, mask: Optional[Expression], causal: bool, scale: Any) -> Expression:
    if q.dtype not in FLOATS or (causal and mask is not None):
        raise Unsupported("a mask beside the causal one")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    groups = q.shape[-3] // k.shape[-3] if len(q.shape) > 2 and len(k.shape) > 2 else 1
    if groups > 1:  # several heads of queries look at the same keys
        k, v = (call("repeat", x, repeats=groups, axis=len(x.shape) - 3) for x in (k, v))
    if mask is None:
        return call("nn.attention", q, k, v, scale=scale, causal=causal)
    least = scalar(float("-inf"), q.dtype)
    if mask.dtype == "bool":
        allowed, mask = mask, call("where", mask, scalar(0.0, q.dtype), least)
    else:
        mask = cast(mask, q.dtype)
        allowed = call("not_equal", mask, least)
    y = call("nn.attention", q, k, v, mask, scale=scale, causal=False)
    # A query that may look at nothing gives zeros.
    seen = call("any", allowed, axis=[len(allowed.shape) - 1], keepdims=True)
    return call("where", seen, y, scalar(0.0, q.dtype))


# Images.


def _register_resizes() -> None:
    for n in (1, 2, 3):
        operator(f"upsample_nearest{n}d")(lambda x, size, *s, n=n: _resize(n, x, size, s, method="nearest_neighbor",
                                                                          coordinate_transformation_mode="asymmetric", rounding_method="floor"))
        operator(f"_upsample_nearest_exact{n}d")(lambda x, size, *s, n=n: _resize(
            n, x, size, s, method="nearest_neighbor", coordinate_transformation_mode="half_pixel", rounding_method="round_prefer_ceil"))
    for n, name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
        operator(f"upsample_{name}")(lambda x, size, corners, *s, n=n: _resize(
            n, x, size, s, method="linear", coordinate_transformation_mode="align_corners" if corners else "half_pixel"))
    operator("upsample_bicubic2d")(lambda x, size, corners, *s: _resize(
        2, x, size, s, method="cubic", coordinate_transformation_mode="align_corners" if corners else "half_pixel"))


@operator("_upsample_bicubic2d_aa")
def antialiased_bicubic(x: Expression, size: Any, corners: bool, *scales: Any) -> Expression:
    if corners or any(scale is not None for scale in scales):
        raise Unsupported("aligned corners, or scales that are not those of the sizes")
    return _resize(2, x, size, scales, method="cubic", cubic_alpha=-0.5, coordinate_transformation_mode="half_pixel", antialias=True,
                   cubic_exclude=True)


def _resize(spatial: int, x: Expression, size: Any, scales: Sequence[Any], **attributes: Any) -> Expression:
    if x.dtype not in FLOATS:
        raise Unsupported(f"of {x.dtype}")
    known = [float(scale) for scale in scales if scale is not None]
    own = {"scales": known} if len(known) == spatial else {}
    return call(f"image.resize{spatial}d", x, size=_each(size, spatial), **own, **attributes)


_register_resizes()
