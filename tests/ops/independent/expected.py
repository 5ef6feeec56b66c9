"""What each operator gives, computed by NumPy in double precision or by ONNX Runtime.

EXPECTED maps an operator's name to a function of its attributes and its arguments (floats are doubles) that gives the result,
or the list of results.
"""

import functools

import numpy as np
import onnx
import onnxruntime

import counted
import elementwise
import quantised
import recurrent
import sample
from elementwise import along

EXPECTED = {**elementwise.UNARY, **elementwise.BROADCAST, **counted.COUNTED, **quantised.QUANTISED, **recurrent.RECURRENT, **sample.SAMPLED}
# On either side, values of these are rounded to float32 more than once.
ROUNDED_OFTEN = {"scatter_elements", "scatter_nd"}


def operator(*names):
    def register(function):
        for name in names:
            EXPECTED[name] = functools.partial(function, name) if len(names) > 1 else function
        return function
    return register


# Products.

def transposed(x, flag):
    return np.swapaxes(x, -1, -2) if flag else x


@operator("nn.dense")
def dense(a, x, w):
    return x @ w.T


@operator("nn.matmul", "nn.batch_matmul")
def matmul(name, a, x, y):
    return transposed(x, a["transpose_a"]) @ transposed(y, a["transpose_b"])


@operator("nn.packed_dense")
def packed_dense(a, x, codes, scales, zeros):
    bits = a["bits"]
    codes = np.stack([codes >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)], axis=1).reshape(-1, codes.shape[1])
    by_block = lambda values: np.repeat(values, a["block_size"], axis=0) if values.ndim else values
    return x @ ((codes - by_block(zeros)) * by_block(scales))


@operator("nn.bias_add")
def bias_add(a, x, bias):
    return x + along(bias, a["axis"], x.ndim)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@operator("nn.attention")
def attention(a, q, k, v, mask=0.0):
    scores = a["scale"] * (q @ np.swapaxes(k, -1, -2)) + mask
    if a["causal"]:
        scores = np.where(np.tri(q.shape[-2], k.shape[-2], dtype=bool), scores, -np.inf)
    return softmax(scores, -1) @ v


# By ONNX Runtime: windows.

def run_onnx(kind, inputs, opset=21, outputs=1, **attributes):
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    inputs = [x.astype(np.float32) if x is not None and x.dtype == np.float64 else x for x in inputs]
    infos = [onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
             for n, x in zip(names, inputs) if n]
    results = [onnx.helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)]
    node = onnx.helper.make_node(kind, names, [r.name for r in results], **attributes)
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "node", infos, results), ir_version=10,
                                   opset_imports=[onnx.helper.make_opsetid("", opset)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {n: x for n, x in zip(names, inputs) if n})[0]


def window(a):
    return {"strides": a["strides"], "dilations": a["dilation"], "pads": a["padding"]}


for rank in (1, 2, 3):
    EXPECTED[f"nn.conv{rank}d"] = lambda a, x, w: run_onnx("Conv", [x, w], group=a["groups"], **window(a))
    EXPECTED[f"nn.conv{rank}d_transpose"] = lambda a, x, w: run_onnx(
        "ConvTranspose", [x, w], group=a["groups"], output_padding=a["output_padding"], **window(a))
    EXPECTED[f"nn.max_pool{rank}d"] = lambda a, x: run_onnx(
        "MaxPool", [x], kernel_shape=a["pool_size"], ceil_mode=a["ceil_mode"], **window(a))
    EXPECTED[f"nn.avg_pool{rank}d"] = lambda a, x: run_onnx(
        "AveragePool", [x], kernel_shape=a["pool_size"], ceil_mode=a["ceil_mode"],
        count_include_pad=a["count_include_pad"], **window(a))
    ROUNDED_OFTEN |= {f"nn.{kind}{rank}d{end}" for kind, end in (("conv", ""), ("conv", "_transpose"), ("max_pool", ""), ("avg_pool", ""))}
    EXPECTED[f"nn.global_avg_pool{rank}d"] = lambda a, x: x.mean(tuple(range(2, x.ndim)), keepdims=True)
    EXPECTED[f"nn.global_max_pool{rank}d"] = lambda a, x: x.max(tuple(range(2, x.ndim)), keepdims=True)


def resize(a, x):
    rounding = a["rounding_method"]
    mode = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}[a["method"]]
    attributes = {"nearest_mode": rounding} if rounding else {}
    if mode == "cubic":
        attributes["cubic_coeff_a"] = a["cubic_alpha"]
    if a["antialias"]:  # ONNX Runtime wants images of two dimensions there
        attributes["antialias"] = 1
        if x.ndim == 3:
            one = dict(a, size=[1, *a["size"]])
            return resize(one, x[:, :, None])[:, :, 0]
    return run_onnx("Resize", [x, None, None, np.array([*x.shape[:2], *a["size"]], np.int64)], mode=mode,
                    coordinate_transformation_mode=a["coordinate_transformation_mode"], **attributes)


for rank in (1, 2, 3):
    EXPECTED[f"image.resize{rank}d"] = resize
    ROUNDED_OFTEN.add(f"image.resize{rank}d")


@operator("vision.roi_align")
def roi_align(a, x, rois, batch_indices):
    height, width = a["pooled_size"]
    if not len(rois):
        return np.zeros((0, x.shape[1], height, width))
    return run_onnx("RoiAlign", [x, rois, batch_indices % x.shape[0]], mode=a["mode"], output_height=height, output_width=width,
                    sampling_ratio=a["sample_ratio"], spatial_scale=a["spatial_scale"],
                    coordinate_transformation_mode="half_pixel" if a["half_pixel"] else "output_half_pixel")


ROUNDED_OFTEN.add("vision.roi_align")


@operator("nn.pad")
def pad(a, x, value):
    widths = a["pad_width"]
    for axis, (before, after) in enumerate(widths):  # negative widths crop
        x = x[(slice(None),) * axis + (slice(max(0, -before), x.shape[axis] - max(0, -after)),)]
    widths = [[max(0, w) for w in pair] for pair in widths]
    if a["pad_mode"] == "constant":
        return np.pad(x, widths, constant_values=value)
    return np.pad(x, widths, mode=a["pad_mode"])


# Normalisations.

@operator("nn.softmax")
def softmax_along(a, x):
    return softmax(x, a["axis"])


@operator("nn.log_softmax")
def log_softmax(a, x):
    shifted = x - x.max(a["axis"], keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(a["axis"], keepdims=True))


def standardised(x, axes, epsilon):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


@operator("nn.layer_norm")
def layer_norm(a, x, gamma, beta):
    return standardised(x, tuple(range(a["axis"] % x.ndim, x.ndim)), a["epsilon"]) * gamma + beta


@operator("nn.rms_norm")
def rms_norm(a, x, gamma):
    axes = tuple(range(a["axis"] % x.ndim, x.ndim))
    return x / np.sqrt(np.square(x).mean(axes, keepdims=True) + a["epsilon"]) * gamma


@operator("nn.batch_norm")
def batch_norm(a, x, gamma, beta, mean, variance):
    gamma, beta, mean, variance = (along(v, a["axis"], x.ndim) for v in (gamma, beta, mean, variance))
    return [(x - mean) / np.sqrt(variance + a["epsilon"]) * gamma + beta, mean.ravel(), variance.ravel()]


@operator("nn.instance_norm")
def instance_norm(a, x, gamma, beta):
    result = standardised(x, tuple(range(2, x.ndim)), a["epsilon"])
    return result * along(gamma, 1, x.ndim) + along(beta, 1, x.ndim)


@operator("nn.group_norm")
def group_norm(a, x, gamma, beta):
    grouped = x.reshape(x.shape[0], a["num_groups"], -1)
    result = standardised(grouped, 2, a["epsilon"]).reshape(x.shape)
    return result * along(gamma, 1, x.ndim) + along(beta, 1, x.ndim)


@operator("nn.lrn")
def lrn(a, x):
    moved = np.moveaxis(np.square(x), a["axis"], -1)
    size = a["size"]
    padded = np.pad(moved, [(0, 0)] * (x.ndim - 1) + [((size - 1) // 2, size // 2)])
    sums = np.moveaxis(sum(padded[..., i:i + moved.shape[-1]] for i in range(size)), -1, a["axis"])
    return x / np.power(a["bias"] + a["alpha"] / size * sums, a["beta"])


@operator("nn.l2_normalize")
def l2_normalize(a, x):
    return x / np.sqrt(np.maximum(np.square(x).sum(tuple(a["axis"]), keepdims=True), a["eps"]))


# Reductions, and what runs along an axis.

REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod, "all": np.all, "any": np.any}


@operator(*REDUCTIONS)
def reduce(name, a, x):
    axes = a["axis"]
    axes = [axes] if isinstance(axes, int) else list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes]
    if a["exclude"]:
        axes = [axis for axis in range(x.ndim) if axis not in axes]
    result = REDUCTIONS[name](x, axis=tuple(axes), keepdims=a["keepdims"])
    return np.trunc(result).astype(x.dtype) if np.issubdtype(x.dtype, np.integer) else result


@operator("argmax", "argmin")
def arg_extreme(name, a, x):
    find = np.argmax if name == "argmax" else np.argmin
    axis = a["axis"]
    if a["select_last_index"]:
        result = x.shape[axis] - 1 - find(np.flip(x, axis), axis)
    else:
        result = find(x, axis)
    return np.expand_dims(result, axis) if a["keepdims"] else result


@operator("cumsum")
def cumsum(a, x):
    axis = a["axis"]
    x = np.flip(x, axis) if a["reverse"] else x
    result = np.cumsum(x, axis)
    result = result - x if a["exclusive"] else result
    return np.flip(result, axis) if a["reverse"] else result


@operator("topk")
def topk(a, x):
    order = np.argsort(-x if a["largest"] else x, axis=a["axis"], kind="stable")
    order = np.take(order, range(a["k"]), axis=a["axis"])
    return [np.take_along_axis(x, order, a["axis"]), order]


@operator("trilu")
def trilu(a, x):
    return (np.triu if a["upper"] else np.tril)(x, a["k"])


@operator("reverse_sequence")
def reverse_sequence(a, x, lengths):
    result = np.moveaxis(x, (a["batch_axis"], a["seq_axis"]), (0, 1)).copy()
    for row, length in zip(result, lengths):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(result, (0, 1), (a["batch_axis"], a["seq_axis"]))


# Random numbers.

def mixed(x):
    """The finaliser of splitmix64."""
    x = x + np.uint64(0x9e3779b97f4a7c15)
    for shift, factor in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def drawn(key, run, numbers, bits):
    """In [0, 1), of so many bits."""
    base = mixed(key.astype(np.uint64))
    if run:
        base = mixed(base + np.asarray(run).astype(np.uint64))
    words = mixed(base + numbers.astype(np.uint64))
    return (words >> np.uint64(64 - bits)) * 2.0 ** -bits


@operator("random.run")
def random_run(a):
    return np.int64(0)


@operator("random.uniform")
def random_uniform(a, key, run=0):
    numbers = drawn(key, run, np.arange(np.prod(a["shape"])), 24 if a["dtype"] == "float32" else 53)
    return a["low"] + (a["high"] - a["low"]) * numbers.reshape(a["shape"])


@operator("random.normal")
def random_normal(a, key, run=0):
    first, second = (drawn(key, run, np.arange(np.prod(a["shape"])) * 2 + i, 53) for i in range(2))
    numbers = np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * np.pi * second)
    return a["mean"] + a["scale"] * numbers.reshape(a["shape"])


# Views, and moving elements by position.

@operator("reshape")
def reshape(a, x):
    return x.reshape(a["newshape"])


@operator("squeeze")
def squeeze(a, x):
    return np.squeeze(x, None if a["axis"] is None else tuple(a["axis"]))


@operator("expand_dims")
def expand_dims(a, x):
    axis, count = a["axis"], a["num_newaxis"]
    first = axis if axis >= 0 else axis + x.ndim + 1
    return x.reshape(*x.shape[:first], *[1] * count, *x.shape[first:])


@operator("nn.batch_flatten")
def batch_flatten(a, x):
    return x.reshape(x.shape[0], -1)


@operator("transpose")
def transpose(a, x):
    return np.transpose(x, None if a["axes"] is None else [axis % x.ndim for axis in a["axes"]])


@operator("strided_slice")
def strided_slice(a, x):
    axes = a["axes"] if a["axes"] is not None else range(len(a["begin"]))
    slices = [slice(None)] * x.ndim
    for axis, begin, end, stride in zip(axes, a["begin"], a["end"], a["strides"]):
        slices[axis] = slice(begin, end, stride)
    return x[tuple(slices)]


@operator("reverse")
def reverse(a, x):
    return np.flip(x, a["axis"])


@operator("tile")
def tile(a, x):
    return np.tile(x, a["reps"])


@operator("repeat")
def repeat(a, x):
    return np.repeat(x, a["repeats"], a["axis"])


@operator("broadcast_to")
def broadcast_to(a, x):
    return np.broadcast_to(x, a["shape"])


operator("full")(lambda a, x: np.full(a["shape"], x.reshape(())))
operator("shape_of")(lambda a, x: np.array(x.shape, np.int64))


@operator("nn.depth_to_space")
def depth_to_space(a, x):
    n, c, h, w = x.shape
    b = a["block_size"]
    if a["mode"] == "DCR":
        parts = x.reshape(n, b, b, c // b ** 2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, c // b ** 2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, c // b ** 2, h * b, w * b)


@operator("nn.space_to_depth")
def space_to_depth(a, x):
    n, c, h, w = x.shape
    b = a["block_size"]
    return x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)


@operator("concatenate")
def concatenate(a, *parts):
    return np.concatenate(parts, a["axis"])


@operator("stack")
def stack(a, *parts):
    return np.stack(parts, a["axis"])


@operator("split")
def split(a, x):
    return np.split(x, a["indices_or_sections"], a["axis"])


# By index.

@operator("take")
def take(a, x, indices):
    return np.take(x, indices, a["axis"])


@operator("gather")
def gather(a, x, indices):
    positions = list(np.indices(indices.shape))
    positions[a["axis"]] = indices
    return x[tuple(positions)]


@operator("gather_nd")
def gather_nd(a, x, indices):
    batch = a["batch_dims"]
    if batch == 0:
        return x[tuple(np.moveaxis(indices, -1, 0))]
    inner = dict(a, batch_dims=batch - 1)
    return np.stack([gather_nd(inner, *pair) for pair in zip(x, indices)])


@operator("one_hot")
def one_hot(a, indices, on, off):
    lit = np.expand_dims(indices, -1) % a["depth"] == np.arange(a["depth"])
    return np.moveaxis(np.where(lit, on.reshape(()), off.reshape(())), -1, a["axis"])


COMBINE = {"update": lambda old, new: new, "none": lambda old, new: new, "add": np.add, "mul": np.multiply,
           "min": np.minimum, "max": np.maximum}


@operator("scatter_elements")
def scatter_elements(a, x, indices, updates):
    result = x.copy()
    for at in np.ndindex(indices.shape):
        to = list(at)
        to[a["axis"]] = indices[at]
        result[tuple(to)] = COMBINE[a["reduction"]](result[tuple(to)], updates[at])
    return result


@operator("scatter_nd")
def scatter_nd(a, x, indices, updates):
    result = x.copy()
    for at in np.ndindex(indices.shape[:-1]):
        result[tuple(indices[at])] = COMBINE[a["mode"]](result[tuple(indices[at])], updates[at])
    return result
