"""Builds an ONNX graph node by node, with seeded weights.

A GraphBuilder hands out `Value`s (a name, its shape, its element type) and keeps shapes as it goes, so that a model's
file reads like the model. Weights are drawn from a generator seeded by (seed, model, tensor name): a layer's weights
depend on nothing but its name, two layers never share them, and the same seed gives a byte-identical file.

Initialisation keeps activations alive through deep networks without normalisation: variance 1 / fan-in times a gain.
`centred` weights sum to zero over the fan-in: the positive mean that relu leaves goes no further, so different inputs
stay different. But each such layer also magnifies small differences, rounding errors among them (about 1.2 times), so
deep networks centre few of their layers.

    b = GraphBuilder("tiny", seed=0)
    x = b.input("x", (1, 3, 8, 8))
    with b.scope("stem"):
        x = b.relu(b.conv(x, 16, 3, padding=1))
    b.output(x, "y")
    b.save("tiny.onnx")
"""

import atexit
import contextlib
import math
import os
import zlib
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RELU_GAIN = math.sqrt(2.0 / (1.0 - 1.0 / math.pi))  # for centred weights after a relu: 1 / its standard deviation
RELU_GAIN_UNCENTRED = math.sqrt(2.0)  # the usual one: 1 / its root mean square
EXTERNAL_ALIGNMENT = 4096
IR_VERSION_OF_OPSET = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8}


@dataclass(frozen=True)
class Value:
    name: str
    shape: tuple
    dtype: int = TensorProto.FLOAT

    @property
    def channels(self):
        return self.shape[1]


def _tuple(value, rank):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank


def _remove_if_there(path):
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


class GraphBuilder:
    """Weights larger than a kilobyte go to NAME.onnx.data while they are drawn when `external_path` is given."""

    def __init__(self, name, seed=0, opset=17, external_path=None):
        self.name = name
        self.seed = seed
        self.opset = opset
        self._nodes, self._initializers, self._inputs, self._outputs = [], [], [], []
        self._names, self._scopes, self._constants = set(), [], {}
        self.shapes = {}  # of every input, initializer and node output
        self._dims, self._domains = {}, set()
        self._external_path = external_path
        self._external_file = None

    # ---- names ----

    @contextlib.contextmanager
    def scope(self, name):
        self._scopes.append(name)
        yield
        self._scopes.pop()

    def _unique(self, name):
        candidate, count = name, 0
        while candidate in self._names:
            count += 1
            candidate = f"{name}_{count}"
        self._names.add(candidate)
        return candidate

    # ---- graph ends ----

    def input(self, name, shape, dtype=TensorProto.FLOAT, dims=None):
        """`dims` is what the file says of the shape: names of dimensions that are open, which have `shape` here as an example."""
        self._names.add(name)
        self._dims[name] = dims
        value = Value(name, tuple(shape), dtype)
        self._inputs.append(value)
        self.shapes[name] = value.shape
        return value

    def output(self, value, name, dims=None):
        """Makes `value` an output of the graph, under `name`; `dims` as for input()."""
        self._dims[name] = dims
        for node in self._nodes:
            for i, produced in enumerate(node.output):
                if produced == value.name:
                    node.output[i] = name
            for i, used in enumerate(node.input):
                if used == value.name:
                    node.input[i] = name
        self._names.add(name)
        self._outputs.append(Value(name, value.shape, value.dtype))
        self.shapes[name] = self.shapes.pop(value.name)

    # ---- nodes ----

    def node(self, op, inputs, shape, dtype=TensorProto.FLOAT, **attributes):
        """Adds a node with one output of the given shape; an input of None is an omitted one. `domain` is that of the operator."""
        return self.nodes(op, inputs, [shape], dtype, **attributes)[0]

    def nodes(self, op, inputs, shapes, dtype=TensorProto.FLOAT, **attributes):
        """A node with an output for each shape; None is an output that is omitted."""
        name = self._unique("/" + "/".join(self._scopes + [op]))
        outputs = ["" if s is None else self._unique(f"{name}_output_{i}") for i, s in enumerate(shapes)]
        names = ["" if value is None else value.name for value in inputs]
        self._nodes.append(helper.make_node(op, names, outputs, name=name, **attributes))
        self._domains.add(attributes.get("domain", ""))
        self.shapes.update((o, tuple(s)) for o, s in zip(outputs, shapes) if s is not None)
        return [None if s is None else Value(o, tuple(s), dtype) for o, s in zip(outputs, shapes)]

    def constant(self, array, name="const"):
        """An initializer holding `array`; equal unnamed small constants are shared, as exporters do."""
        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes()) if name == "const" and array.size <= 64 else None
        if key in self._constants:
            return self._constants[key]
        value = self.store(name, array) if name != "const" else self._store(self._unique(name), array)
        if key is not None:
            self._constants[key] = value
        return value

    def shape_of(self, *dims):
        return self.constant(np.array(dims, dtype=np.int64))

    def draw(self, name, shape, fan_in, gain=1.0, centre_axes=None):
        """The array that weight() stores: normal, of variance gain^2 / fan_in, summing to zero over `centre_axes`."""
        array = self._generator(name).standard_normal(shape, dtype=np.float32)
        array *= np.float32(gain / math.sqrt(fan_in))
        if centre_axes is not None:
            array -= array.mean(axis=centre_axes, keepdims=True, dtype=np.float64).astype(np.float32)
        return array

    def weight(self, name, shape, fan_in, gain=1.0, centre_axes=None):
        return self.store(name, self.draw(name, shape, fan_in, gain, centre_axes))

    def vector(self, name, size, mean=0.0, spread=0.05):
        """A small per-channel tensor: a bias, a scale, a running mean."""
        uniform = self._generator(name).uniform(-1, 1, size).astype(np.float32)
        return self.store(name, np.float32(mean) + np.float32(spread) * uniform)

    def store(self, name, array):
        """An initializer of its own, named within the current scope."""
        return self._store(self._unique(".".join(self._scopes + [name])), array)

    def _generator(self, name):
        full = ":".join([self.name] + self._scopes + [name])
        return np.random.Generator(np.random.PCG64([self.seed, zlib.crc32(full.encode())]))

    def _store(self, name, array):
        array = np.asarray(array, order="C")
        self.shapes[name] = array.shape
        if self._external_path is None or array.nbytes <= 1024:
            self._initializers.append(numpy_helper.from_array(array, name))
        else:
            self._initializers.append(self._store_external(name, array))
        return Value(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype))

    def _store_external(self, name, array):
        if self._external_file is None:
            self._external_file = open(f"{self._external_path}.tmp{os.getpid()}", "wb")
            atexit.register(_remove_if_there, self._external_file.name)  # gigabytes that a failed run would leave behind
        file = self._external_file
        file.write(b"\0" * (-file.tell() % EXTERNAL_ALIGNMENT))
        offset = file.tell()
        file.write(array.data)
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
        tensor.data_location = TensorProto.EXTERNAL
        fields = {"location": os.path.basename(self._external_path), "offset": offset, "length": array.nbytes}
        for key, value in fields.items():
            tensor.external_data.add(key=key, value=str(value))
        return tensor

    # ---- layers ----

    def conv(self, x, channels, kernel, stride=1, padding=0, groups=1, bias=True, gain=RELU_GAIN, centred=None):
        rank = len(x.shape) - 2
        kernel, stride, padding = _tuple(kernel, rank), _tuple(stride, rank), _tuple(padding, rank)
        fan_in = x.channels // groups * math.prod(kernel)
        centred = groups != x.channels if centred is None else centred  # a centred depthwise filter passes no mean at all
        name = self.layer_name("conv")
        weight = self.weight(f"{name}.weight", (channels, x.channels // groups) + kernel, fan_in, gain,
                             tuple(range(1, rank + 2)) if centred and fan_in > 1 else None)
        inputs = [x, weight] + ([self.vector(f"{name}.bias", channels)] if bias else [])
        spatial = tuple((s + 2 * p - k) // t + 1 for s, k, t, p in zip(x.shape[2:], kernel, stride, padding))
        return self.node("Conv", inputs, (x.shape[0], channels) + spatial, dilations=[1] * rank, group=groups,
                         kernel_shape=kernel, pads=padding * 2, strides=stride)

    def dense(self, x, size, gain=1.0, bias_spread=0.05):
        """Gemm with a transposed weight, as torch exports nn.Linear on a matrix."""
        name = self.layer_name("fc")
        weight = self.weight(f"{name}.weight", (size, x.shape[1]), x.shape[1], gain, 1)
        bias = self.vector(f"{name}.bias", size, spread=bias_spread)
        return self.node("Gemm", [x, weight, bias], (x.shape[0], size), alpha=1.0, beta=1.0, transB=1)

    def linear(self, x, size, gain=1.0, bias=True, name=None):
        """MatMul and Add, as torch exports nn.Linear on a tensor of rank 3."""
        name = name or self.layer_name("linear")
        weight = self.weight(f"{name}.weight", (x.shape[-1], size), x.shape[-1], gain, 0)
        y = self.matmul(x, weight)
        return self.add(self.vector(f"{name}.bias", size), y) if bias else y

    def batch_norm(self, x, scale=1.0, epsilon=1e-5):
        """Inference-time batch norm with running statistics of its own, not folded into its convolution."""
        name = self.layer_name("bn")
        statistics = [self.vector(f"{name}.weight", x.channels, scale, 0.2 * scale),
                      self.vector(f"{name}.bias", x.channels, 0.0, 0.1),
                      self.vector(f"{name}.running_mean", x.channels, 0.0, 0.2),
                      self.vector(f"{name}.running_var", x.channels, 1.0, 0.4)]
        return self.node("BatchNormalization", [x] + statistics, x.shape, epsilon=epsilon, momentum=0.9)

    def layer_norm(self, x, epsilon=1e-5, decomposed=False):
        name = self.layer_name("norm")
        weight = self.vector(f"{name}.weight", x.shape[-1], 1.0, 0.2)
        bias = self.vector(f"{name}.bias", x.shape[-1], 0.0, 0.1)
        if not decomposed:
            return self.node("LayerNormalization", [x, weight, bias], x.shape, axis=-1, epsilon=epsilon)
        rows = x.shape[:-1] + (1,)
        mean = self.node("ReduceMean", [x], rows, axes=[-1], keepdims=1)
        centred = self.sub(x, mean)
        squares = self.node("Pow", [centred, self.scalar(2.0)], x.shape)
        variance = self.node("ReduceMean", [squares], rows, axes=[-1], keepdims=1)
        deviation = self.node("Sqrt", [self.add(variance, self.scalar(epsilon))], rows)
        return self.add(self.mul(self.node("Div", [centred, deviation], x.shape), weight), bias)

    def layer_name(self, kind):
        """`conv1`, `conv2` … within the current scope."""
        count = 1
        while ".".join(self._scopes + [f"{kind}{count}"]) in self._names:
            count += 1
        self._names.add(".".join(self._scopes + [f"{kind}{count}"]))
        return f"{kind}{count}"

    # ---- element-wise ----

    def scalar(self, value, dtype=np.float32):
        return self.constant(np.array(value, dtype=dtype))

    def binary(self, op, a, b):
        return self.node(op, [a, b], np.broadcast_shapes(a.shape, b.shape), a.dtype)

    def add(self, a, b):
        return self.binary("Add", a, b)

    def sub(self, a, b):
        return self.binary("Sub", a, b)

    def mul(self, a, b):
        return self.binary("Mul", a, b)

    def div(self, a, b):
        return self.binary("Div", a, b)

    def unary(self, op, x, **attributes):
        return self.node(op, [x], x.shape, x.dtype, **attributes)

    def relu(self, x):
        return self.unary("Relu", x)

    def sigmoid(self, x):
        return self.unary("Sigmoid", x)

    def tanh(self, x):
        return self.unary("Tanh", x)

    def swish(self, x):
        return self.mul(x, self.sigmoid(x))

    def gelu_erf(self, x):
        ratio = self.div(x, self.scalar(math.sqrt(2.0)))
        return self.mul(self.mul(x, self.add(self.unary("Erf", ratio), self.scalar(1.0))), self.scalar(0.5))

    def gelu_tanh(self, x):
        cube = self.node("Pow", [x, self.scalar(3.0)], x.shape)
        inner = self.add(x, self.mul(cube, self.scalar(0.044715)))
        bend = self.tanh(self.mul(inner, self.scalar(math.sqrt(2.0 / math.pi))))
        return self.mul(self.mul(x, self.scalar(0.5)), self.add(bend, self.scalar(1.0)))

    def softmax(self, x):
        return self.unary("Softmax", x, axis=len(x.shape) - 1 if self.opset < 13 else -1)

    # ---- moving data ----

    def matmul(self, a, b):
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return self.node("MatMul", [a, b], batch + (a.shape[-2], b.shape[-1]))

    def pool(self, kind, x, kernel, stride, padding=0):
        """kind: MaxPool or AveragePool (which leaves the padding out of its averages)."""
        spatial = tuple((s + 2 * padding - kernel) // stride + 1 for s in x.shape[2:])
        rank = len(spatial)
        attributes = {"ceil_mode": 0} if self.opset >= 10 else {}
        if kind == "AveragePool":
            attributes["count_include_pad"] = 0
        return self.node(kind, [x], x.shape[:2] + spatial, kernel_shape=[kernel] * rank, pads=[padding] * 2 * rank,
                         strides=[stride] * rank, **attributes)

    def global_pool(self, x):
        return self.node("GlobalAveragePool", [x], x.shape[:2] + (1,) * (len(x.shape) - 2))

    def flatten(self, x):
        return self.node("Flatten", [x], (x.shape[0], math.prod(x.shape[1:])), axis=1)

    def reshape(self, x, *dims):
        """dims may hold one -1; the constant shape keeps it, so that a symbolic batch survives."""
        known = math.prod(d for d in dims if d != -1)
        shape = tuple(math.prod(x.shape) // known if d == -1 else d for d in dims)
        return self.node("Reshape", [x, self.shape_of(*dims)], shape, x.dtype)

    def transpose(self, x, *order):
        return self.node("Transpose", [x], tuple(x.shape[i] for i in order), x.dtype, perm=order)

    def concat(self, values, axis):
        shape = list(values[0].shape)
        shape[axis] = sum(v.shape[axis] for v in values)
        return self.node("Concat", values, shape, values[0].dtype, axis=axis)

    def gather(self, data, indices, axis=0):
        return self.node("Gather", [data, indices], data.shape[:axis] + indices.shape + data.shape[axis + 1:],
                         data.dtype, axis=axis)

    def unsqueeze(self, x, axis):
        shape = x.shape[:axis] + (1,) + x.shape[axis:]
        if self.opset < 13:
            return self.node("Unsqueeze", [x], shape, x.dtype, axes=[axis])
        return self.node("Unsqueeze", [x, self.shape_of(axis)], shape, x.dtype)

    def dim(self, x, axis):
        """One dimension read at run time (Shape, Gather, Unsqueeze), as exporters write `x.size(axis)`."""
        shape = self.node("Shape", [x], (len(x.shape),), TensorProto.INT64)
        return self.unsqueeze(self.gather(shape, self.scalar(axis, np.int64)), 0)

    def size(self, x, axis):
        """One dimension for view(): as the graph reads it, and as it is here."""
        return self.dim(x, axis), x.shape[axis]

    def view(self, x, *dims):
        """Reshape to a shape put together at run time; an element of `dims` is an integer or a value from dim()."""
        parts = [self.constant(np.array([d], dtype=np.int64)) if isinstance(d, int) else d[0] for d in dims]
        sizes = [d if isinstance(d, int) else d[1] for d in dims]
        known = math.prod(d for d in sizes if d != -1)
        shape = tuple(math.prod(x.shape) // known if d == -1 else d for d in sizes)
        return self.node("Reshape", [x, self.concat(parts, 0)], shape, x.dtype)

    def upsample(self, x, factor=2):
        scales = self.constant(np.array([1.0, 1.0, factor, factor], dtype=np.float32))
        shape = x.shape[:2] + tuple(s * factor for s in x.shape[2:])
        return self.node("Resize", [x, None, scales], shape, coordinate_transformation_mode="asymmetric",
                         mode="nearest", nearest_mode="floor")

    # ---- the file ----

    def open_dims(self):
        """The named dimensions of the inputs, with the sizes that they have here."""
        return {dim: size for value in self._inputs for dim, size in zip(self._dims[value.name] or (), value.shape)
                if isinstance(dim, str)}

    def stats(self):
        """Counts twice the multiply-adds of convolutions and products; other operations count nothing, as is customary."""
        shape, constant, total, folded = self.shapes, {t.name for t in self._initializers}, 0, 0
        for node in self._nodes:
            flops = 0
            if node.op_type in ("Conv", "MatMul", "Gemm"):
                inner = shape[node.input[1]][1:] if node.op_type == "Conv" else shape[node.input[0]][-1:]
                flops = 2 * math.prod(shape[node.output[0]]) * math.prod(inner)
            total += flops
            if all(not name or name in constant for name in node.input):
                constant.update(node.output)
                folded += flops
        sizes = {t.name: helper.tensor_dtype_to_np_dtype(t.data_type).itemsize for t in self._initializers}
        weights = sum(size * math.prod(shape[name]) for name, size in sizes.items())
        return {"nodes": len(self._nodes), "flops": total, "flops_folded": folded, "weight_bytes": weights}

    def save(self, path, dynamic_batch=False, change=None):
        """Writes the model, as `change` leaves it where that is given."""
        def info(value):
            dims = self._dims.get(value.name) or ["batch" if dynamic_batch and i == 0 else d for i, d in enumerate(value.shape)]
            return helper.make_tensor_value_info(value.name, value.dtype, dims)

        graph = helper.make_graph(self._nodes, self.name, [info(v) for v in self._inputs],
                                  [info(v) for v in self._outputs], self._initializers)
        opsets = [helper.make_opsetid(d, 1 if d else self.opset) for d in sorted(self._domains | {""})]
        model = helper.make_model(graph, opset_imports=opsets,
                                  ir_version=IR_VERSION_OF_OPSET[self.opset], producer_name="collage-models")
        if change is not None:
            change(model)
        if self._external_file is not None:
            self._external_file.close()
            os.replace(self._external_file.name, self._external_path)
        temporary = f"{path}.tmp{os.getpid()}"
        with open(temporary, "wb") as file:
            file.write(model.SerializeToString(deterministic=True))
        os.replace(temporary, path)
