"""One-node models of operators of the domain com.microsoft, and what they must give.

A Case is a node with values for its inputs. What ONNX Runtime gives is expected, or `expected` where it has no kernel for the
processor. `constants` are the positions of inputs that the model holds as weights.
"""

import dataclasses
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "com.microsoft"


@dataclasses.dataclass
class Case:
    op: str
    inputs: list  # arrays, None for one left out
    outputs: int = 1  # how many are asked for
    skipped: tuple = ()  # positions of outputs without a name
    constants: tuple = ()
    attributes: dict = dataclasses.field(default_factory=dict)
    domain: str = DOMAIN
    expected: list = None
    budget: float = 5e-6  # of the largest value, that outputs may differ by

    @property
    def named(self):
        return [(i, f"in{i}", array) for i, array in enumerate(self.inputs) if array is not None]

    @property
    def feed(self):
        return {name: array for i, name, array in self.named if i not in self.constants}

    def model(self):
        inputs = [f"in{i}" if array is not None else "" for i, array in enumerate(self.inputs)]
        outputs = ["" if i in self.skipped else f"out{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, inputs, outputs, "node", domain=self.domain, **self.attributes)
        values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                  for name, array in ((name, array) for i, name, array in self.named if i not in self.constants)]
        weights = [numpy_helper.from_array(array, name) for i, name, array in self.named if i in self.constants]
        wanted = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
        graph = helper.make_graph([node], "one", values, wanted, weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)])
        made.ir_version = 8
        return made


_generator = np.random.Generator(np.random.PCG64(11))


def normal(*shape):
    return _generator.standard_normal(shape).astype(np.float32)


def ints(array, dtype=np.int32):
    return np.asarray(array, dtype)


def case(op, *inputs, outputs=1, skipped=(), constants=(), domain=DOMAIN, expected=None, budget=5e-6, **attributes):
    return Case(op, list(inputs), outputs, skipped, constants, attributes, domain, expected, budget)


def gelu(x):
    return (x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))).astype(np.float32)


def activations():
    x, bias = 2 * normal(3, 5, 7), normal(7)
    wide, wide_bias = normal(2, 3, 10), normal(10)
    biased = wide + wide_bias
    return [
        case("Gelu", x),
        case("Gelu", normal(1)),
        case("FastGelu", x),
        case("FastGelu", x, bias),
        case("FastGelu", normal(4, 7), bias, constants=(1,)),
        case("BiasGelu", x, bias),
        case("QuickGelu", x),
        case("QuickGelu", x, alpha=1.0),
        case("QuickGelu", x, alpha=-0.5),
        case("BiasSplitGelu", wide, wide_bias, expected=[biased[..., :5] * gelu(biased[..., 5:])]),
    ]


def norms():
    x, skip, gamma, beta, bias = normal(2, 3, 7), normal(2, 3, 7), normal(7), normal(7), normal(7)
    last = dict(outputs=4, skipped=(1, 2))
    words, positions, segments = normal(11, 5), normal(6, 5), normal(2, 5)
    ids, segment_ids = ints([[1, 10, 0, 4], [3, 3, 9, 2]]), ints([[0, 0, 1, 1], [1, 0, 1, 0]])
    mask = ints([[1, 1, 1, 0], [1, 0, 0, 0]])
    norm = (normal(5), normal(5))
    skip_norm, skip_rms, embed = "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "EmbedLayerNormalization"
    return [
        case(skip_norm, x, skip, gamma),
        case(skip_norm, x, skip, gamma, beta),
        case(skip_norm, x, skip, gamma, beta, bias, constants=(2, 3, 4), epsilon=1e-3),
        case(skip_norm, x, skip, gamma, None, bias, **last),
        case(skip_norm, x, normal(1, 3, 7), gamma, beta, **last),
        case(skip_norm, x, normal(3, 7), gamma, beta),
        case(skip_norm, normal(6, 7), normal(6, 7), gamma, beta),
        case(skip_rms, x, skip, gamma),
        case(skip_rms, x, skip, gamma, epsilon=0.01, **last),
        case(skip_rms, normal(6, 7), normal(6, 7), gamma, constants=(2,)),
        case(skip_rms, x, skip, gamma, bias, **last),
        case("SimplifiedLayerNormalization", x, gamma, domain=""),
        case("SimplifiedLayerNormalization", x, normal(3, 7), domain="", axis=1, epsilon=0.1),
        case(embed, ids, segment_ids, words, positions, segments, *norm, outputs=2, constants=(2, 3, 4, 5, 6)),
        case(embed, ids, segment_ids, words, positions, segments, *norm, mask, outputs=2),
        case(embed, ids, None, words, positions, None, *norm, None, ints([[3, 2, 0, 5]]), outputs=3, epsilon=0.1),
        case(embed, ids, None, words, positions, None, *norm, None, ints([[3, 2, 0, 5], [0, 1, 2, 3]]), outputs=2),
    ]


def fused():
    a, b = normal(2, 3, 4, 5), normal(2, 3, 5, 7)
    image, filters, bias = normal(2, 3, 8, 9), normal(4, 3, 3, 3), normal(4)
    conv = dict(constants=(1, 2), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    convs = [case("FusedConv", image, filters, bias, activation=name, **{"activation_params": list(params)} if params else {}, **conv)
             for name, params in [("Relu", ()), ("Tanh", ()), ("Sigmoid", ()), ("LeakyRelu", (0.2,)), ("Clip", (-0.3, 0.4)),
                                  ("HardSigmoid", (0.3, 0.4))]]
    gemms = [case("FusedGemm", normal(3, 5), normal(5, 4), normal(4), activation=name, alpha=0.5, beta=2.0,
                  **{f"activation_{key}": value for key, value in params.items()})
             for name, params in [("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", {"alpha": 0.2}), ("Elu", {"alpha": 0.7}),
                                  ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}), ("Softplus", {}), ("Softsign", {}),
                                  ("ThresholdedRelu", {"alpha": 0.3}), ("Selu", {"alpha": 1.5, "gamma": 1.1})]]
    return convs + gemms + [
        case("FusedConv", image, filters),
        case("FusedConv", image, filters, bias, normal(2, 4, 4, 5), activation="Relu", strides=[2, 2], **conv),
        case("FusedConv", image, filters, None, normal(2, 4, 6, 7), activation="Relu"),
        case("FusedConv", image, normal(6, 1, 3, 2), normal(6), activation="Tanh", group=3, dilations=[2, 1]),
        case("FusedGemm", normal(5, 3), normal(4, 5), activation="Relu", transA=1, transB=1),
        case("FusedMatMul", a, b),
        case("FusedMatMul", a, b, alpha=0.25),
        case("FusedMatMul", normal(2, 3, 5, 4), b, transA=1),
        case("FusedMatMul", a, normal(2, 3, 7, 5), transB=1, alpha=-2.0),
        case("FusedMatMul", normal(2, 3, 5, 4), normal(2, 3, 7, 5), transA=1, transB=1),
        case("FusedMatMul", normal(4, 2, 3, 5), b, transBatchA=1),
        case("FusedMatMul", normal(5, 2, 3, 4), b, transA=1, transBatchA=1),
        case("FusedMatMul", a, normal(5, 2, 3, 7), transBatchB=1),
        case("FusedMatMul", normal(4, 2, 3, 5), normal(7, 2, 3, 5), transBatchA=1, transBatchB=1, transB=1),
        case("FusedMatMul", a, normal(5, 6), constants=(1,), alpha=3.0),
        case("FusedMatMul", normal(5), b, transA=1, alpha=3.0),
        case("FusedMatMul", a, normal(5), transB=1),
        case("TransposeMatMul", normal(5, 4), normal(6, 5), transA=1, transB=1, alpha=0.5),
    ]


def packed(codes, bits):
    """Rows of codes as bytes, the first code in the lowest bits."""
    each = 8 // bits
    padded = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % each)])
    parts = padded.reshape(*padded.shape[:-1], -1, each).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (np.arange(each, dtype=np.uint8) * bits), axis=-1).astype(np.uint8)


def quantised():
    cases = []
    for bits, k, n, size, zeros, biased in [(4, 32, 5, 16, "none", False), (4, 70, 3, 32, "packed", False), (4, 48, 4, 16, "packed", True),
                                            (4, 64, 3, 32, "float", False), (8, 32, 5, 16, "none", True), (8, 50, 3, 16, "packed", False)]:
        blocks = -(-k // size)
        weights = packed(_generator.integers(0, 1 << bits, (n, blocks, size)), bits)
        inputs = [normal(2, 3, k), weights, normal(n, blocks)]
        if zeros == "packed":
            inputs.append(packed(_generator.integers(0, 1 << bits, (n, blocks)), bits))
        if zeros == "float":
            inputs.append(_generator.uniform(0, 1 << bits, (n, blocks)).astype(np.float32))
        if biased:
            inputs += [None] * (5 - len(inputs)) + [normal(n)]
        cases.append(case("MatMulNBits", *inputs, constants=(1, 2, 3, 5), K=k, N=n, bits=bits, block_size=size))
    return cases


def integers(*shape, dtype=np.uint8):
    limits = np.iinfo(dtype)
    return _generator.integers(limits.min, limits.max + 1, shape).astype(dtype)


def qlinear():
    """Operators on quantised tensors. ONNX Runtime multiplies by quotients of scales, so that a result may round to a neighbour."""
    scale = lambda value: np.array(value, np.float32)
    u8, i8 = (lambda value: np.array(value, np.uint8)), (lambda value: np.array(value, np.int8))
    neighbour, wide = dict(budget=1 / 130), dict(budget=1e-5)  # below two integers
    a, b, i = integers(2, 3, 5, 4), integers(3, 1, 4), integers(2, 3, 5, 4, dtype=np.int8)
    of_a, of_b, of_y = (scale(0.02), u8(120)), (scale(0.05), u8(9)), (scale(0.11), u8(130))
    signed = (scale(0.02), i8(-3)), (scale(0.03), i8(5))
    # Of seven bits: ONNX Runtime's products saturate in 16 bits on processors without VNNI.
    matrix, weights = integers(6, 8), integers(8, 5, dtype=np.int8) // 2
    scales, zeros = np.linspace(0.01, 0.05, 5, dtype=np.float32), np.zeros(5, np.int8)
    bias = _generator.integers(-4000, 4000, 5).astype(np.int32)
    pool = dict(kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1])
    return [
        case("QLinearAdd", a, *of_a, b, *of_b, *of_y, **neighbour),
        case("QLinearAdd", i, *signed[0], i[0], *signed[1], scale(0.05), i8(1), constants=(1, 2, 4, 5, 6, 7), **neighbour),
        case("QLinearMul", a, *of_a, b, *of_b, *of_y, **neighbour),
        case("QLinearSigmoid", a, *of_a, scale(1 / 256), u8(0), constants=(1, 2, 3, 4), **neighbour),
        case("QLinearLeakyRelu", i, *signed[0], *signed[1], alpha=0.2, constants=(1, 2, 3, 4), **neighbour),
        case("QLinearGlobalAveragePool", a, *of_a, *of_b, **neighbour),
        case("QLinearGlobalAveragePool", a, *of_a, *of_b, channels_last=1, **neighbour),
        case("QLinearAveragePool", a, *of_a, *of_a, **pool, **neighbour),
        case("QLinearConcat", *of_y, a, *of_a, integers(2, 2, 5, 4), *of_b, axis=1, **neighbour),
        case("QLinearSoftmax", a, *of_a, scale(1 / 256), u8(0), constants=(1, 2, 3, 4), axis=-1, opset=13, **neighbour),
        case("QGemm", matrix, *of_a, weights, scale(0.01), i8(0), bias, *of_y, alpha=0.5, constants=(1, 2, 3, 4, 5, 6, 7, 8), **neighbour),
        case("QGemm", matrix, *of_a, weights.T.copy(), scales, zeros, bias, transB=1, constants=(1, 2, 3, 4, 5, 6), **wide),
        case("MatMulIntegerToFloat", matrix, weights, scale(0.02), scales, u8(120), zeros, normal(5), **wide),
        case("MatMulIntegerToFloat", integers(2, 6, 8), weights, scale(0.02), scale(0.01), **wide),
        # A number in the middle of two integers may become either.
        case("DynamicQuantizeMatMul", normal(3, 6, 8), weights, scale(0.03), i8(2), normal(5), constants=(1, 2, 3, 4), budget=1e-2),
        case("QuantizeLinear", normal(3, 4), scale(0.02), u8(7)),
        case("DequantizeLinear", i, *signed[0]),
    ]


def caches(positions, columns):
    angles = np.outer(np.arange(positions), 1.0 / 10 ** np.linspace(0, 2, columns)).astype(np.float32)
    return np.cos(angles), np.sin(angles)


def rotary():
    cases = []
    ids = ints([[0, 1, 2], [4, 3, 1]], np.int64)
    for interleaved in (0, 1):
        for position in (ids, ints([2], np.int64)):
            cases += [case("RotaryEmbedding", x, position, *caches(6, 4), interleaved=interleaved)
                      for x in (normal(2, 3, 24), normal(2, 5, 3, 8))]
            cases += [case("RotaryEmbedding", x, position, *caches(6, 2), interleaved=interleaved, num_heads=3, rotary_embedding_dim=4)
                      for x in (normal(2, 3, 24), normal(2, 3, 3, 8))]
    cases.append(case("RotaryEmbedding", normal(2, 3, 24), ids, *caches(6, 4), constants=(1, 2, 3)))
    cases.append(case("RotaryEmbedding", normal(1, 1, 8), ints([5], np.int64), *caches(6, 4), constants=(1, 2, 3)))
    return cases


def attention():
    x, weights, bias = normal(2, 5, 12), normal(12, 24) / 3, normal(24)
    two, three = ints([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]), ints(_generator.integers(0, 2, (2, 5, 5)))
    made = lambda *more, **attributes: case("Attention", x, weights, bias, *more, **{"num_heads": 2} | attributes)
    # Where all keys of a query are hidden, ONNX Runtime adds -10000 to each score and loses the score's last digits.
    hidden = dict(budget=1e-3)
    return [
        made(),
        made(constants=(1, 2)),
        made(num_heads=4, scale=0.3),
        made(unidirectional=1),
        made(two, constants=(1, 2)),
        made(two, unidirectional=1),
        made(ints([[0, 0, 1, 1, 1], [0, 1, 1, 1, 0]]), unidirectional=1, **hidden),
        made(ints([[0] * 5, [0] * 5]), **hidden),
        made(three),
        made(three, unidirectional=1, mask_filter_value=-3.0),
        made(ints([3, 5])),
        made(ints([3, 5, 1, 2])),
        made(ints([[1], [1]])),
        made(ints([[1]])),
        made(None, None, normal(2, 2, 5, 5)),
        made(two, None, normal(1, 1, 5, 5), unidirectional=1),
        made(None, None, normal(1, 2, 5, 5)),
        made(outputs=2),
        case("Attention", x, normal(12, 22) / 3, normal(22), num_heads=2, qkv_hidden_sizes=[8, 8, 6]),
        case("Attention", normal(1, 1, 12), weights, bias, num_heads=2, unidirectional=1),
    ]


def multi_head():
    q, k, v, bias = normal(2, 5, 12), normal(2, 7, 12), normal(2, 7, 8), normal(32)
    mask = ints([[1, 1, 1, 0, 0, 0, 1], [1] * 7])
    made = lambda *more, **attributes: case("MultiHeadAttention", q, k, v, *more, **{"num_heads": 4} | attributes)
    return [
        made(),
        made(num_heads=2, scale=0.3),
        made(bias),
        made(bias, constants=(3,)),
        made(None, mask),
        made(bias, mask, mask_filter_value=-5.0),
        made(None, ints([3, 7])),
        made(None, ints(_generator.integers(0, 2, (2, 5, 7))), budget=1e-3),
        made(None, None, normal(2, 4, 5, 7)),
        made(None, None, normal(1, 1, 5, 7)),
        made(bias, mask, normal(1, 4, 5, 7)),
        made(bias, outputs=3),
        case("MultiHeadAttention", q, normal(2, 5, 12), normal(2, 5, 12), num_heads=3, unidirectional=1),
        case("MultiHeadAttention", q, normal(2, 4, 7, 3), normal(2, 4, 7, 3), num_heads=4),
        case("MultiHeadAttention", q, normal(2, 4, 7, 3), normal(2, 4, 7, 3), None, mask, num_heads=4),
        case("MultiHeadAttention", normal(2, 1, 12), k, v, bias, num_heads=4, unidirectional=1),
        case("MultiHeadAttention", normal(2, 1, 12), normal(2, 1, 12), normal(2, 1, 12), normal(36), num_heads=4),
    ]


def grouped():
    size, length = 16, 5
    q, k, v = normal(2, length, 4 * size), normal(2, length, 2 * size), normal(2, length, 2 * size)
    lengths, total = ints([length - 1] * 2), ints([length])
    cosines = caches(8, size // 2)
    heads = {"num_heads": 4, "kv_num_heads": 2}
    made = lambda *more, **attributes: case("GroupQueryAttention", q, k, v, None, None, lengths, total, *more, outputs=3,
                                            **heads | attributes)
    packed_inputs = np.concatenate([q, k, v], axis=2)
    return [
        made(),
        made(constants=(5, 6)),
        made(scale=0.2),
        made(softcap=2.0),
        made(local_window_size=2),
        made(local_window_size=8),
        made(local_window_size=3, softcap=2.0),
        made(*cosines, do_rotary=1),
        made(*cosines, do_rotary=1, rotary_interleaved=1, constants=(5, 6, 7, 8)),
        made(*caches(8, 8), do_rotary=1),
        made(*cosines, ints(np.arange(length)[None] + [[0], [0]], np.int64), do_rotary=1),
        made(None, None, None, normal(2, 4, length, length)),
        made(None, None, None, normal(1, 1, length, length), softcap=3.0),
        case("GroupQueryAttention", packed_inputs, None, None, None, None, lengths, total, outputs=3, **heads),
        case("GroupQueryAttention", packed_inputs, None, None, None, None, lengths, total, *cosines, outputs=3, do_rotary=1, **heads),
        case("GroupQueryAttention", normal(1, 1, 32), normal(1, 1, 8), normal(1, 1, 8), None, None, ints([0]), ints([1]), outputs=3,
             num_heads=4, kv_num_heads=1),
    ] + grouped_with_cache()


def grouped_with_cache():
    """One token or several behind a cache, caches longer than what is in them, and a first prompt, which reads no cache."""
    size = 16

    def made(batch, length, past, total, lasts, *more, **attributes):
        rows = [normal(batch, length, heads * size) for heads in (4, 2, 2)]
        caches_before = [normal(batch, 2, past, size) for _ in range(2)]
        return case("GroupQueryAttention", *rows, *caches_before, ints(lasts), ints([total]), *more, outputs=3, constants=(6,),
                    **{"num_heads": 4, "kv_num_heads": 2} | attributes)

    rotation = caches(16, size // 2)
    return [
        made(2, 1, 5, 6, [5, 3]),
        made(2, 1, 5, 6, [[5], [4]], *rotation, do_rotary=1),
        made(1, 3, 5, 8, [7], *rotation, do_rotary=1, rotary_interleaved=1),
        made(1, 3, 5, 8, [6], softcap=2.0),
        made(2, 1, 5, 6, [5, 3], local_window_size=2),
        made(1, 2, 8, 6, [5], local_window_size=3),
        made(2, 1, 8, 6, [5, 4], *rotation, do_rotary=1),
        made(2, 4, 6, 4, [3, 3], *rotation, do_rotary=1),
        made(2, 1, 5, 6, [5, 3], *rotation, ints([[2], [9]], np.int64), do_rotary=1),
    ]


def standard():
    """Operators that com.microsoft shares with ONNX."""
    return [
        case("GatherND", normal(3, 4, 5), ints([[0, 1], [2, 3]], np.int64)),
        case("GridSample", normal(2, 3, 4, 5), np.tanh(normal(2, 3, 6, 2)) * 1.2, padding_mode="border"),
        case("GridSample", normal(1, 2, 4, 5), np.tanh(normal(1, 3, 6, 2)) * 1.2, mode="bicubic", align_corners=1),
        case("Trilu", normal(2, 4, 5), upper=0),
        case("Trilu", normal(4, 5), ints(1, np.int64), constants=(1,)),
    ]


FAMILIES = [activations, norms, fused, quantised, qlinear, rotary, attention, multi_head, grouped, standard]
