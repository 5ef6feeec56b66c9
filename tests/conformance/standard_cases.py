"""One-node models of standard operators with what the ONNX suite does not try of them; ONNX Runtime says what they must give."""

import dataclasses

import numpy as np

import microsoft_cases
from microsoft_cases import ints, normal


@dataclasses.dataclass
class StandardCase(microsoft_cases.Case):
    domain: str = ""
    opset: int = 17

    def model(self):
        made = super().model()
        made.opset_import[0].version = self.opset
        return made


def case(op, *inputs, **options):
    fields = {field.name for field in dataclasses.fields(StandardCase)}
    given = {name: value for name, value in options.items() if name in fields}
    attributes = {name: value for name, value in options.items() if name not in fields}
    return StandardCase(op, list(inputs), attributes=attributes, **given)


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, SIZE, HIDDEN = 5, 3, 4, 2


def recurrent(op, direction="forward", lengths=None, bias=True, states=False, **options):
    count, rows = 2 if direction == "bidirectional" else 1, GATES[op] * HIDDEN
    weights = [normal(count, rows, SIZE), 0.5 * normal(count, rows, HIDDEN), 0.3 * normal(count, 2 * rows) if bias else None]
    initial = [normal(count, BATCH, HIDDEN) for _ in range(2 if op == "LSTM" else 1)] if states else []
    lengths = None if lengths is None else ints(lengths)
    return case(op, normal(STEPS, BATCH, SIZE), *weights, lengths, *initial, constants=(1, 2, 3), outputs=3 if op == "LSTM" else 2,
                direction=direction, hidden_size=HIDDEN, **options)


def lengths():
    for op in GATES:
        for direction in ("forward", "reverse", "bidirectional"):
            yield recurrent(op, direction, [5, 2, 3], states=True)
        yield recurrent(op, "bidirectional", [1, 5, 4], bias=False)
    yield recurrent("GRU", "bidirectional", [4, 1, 5], linear_before_reset=1, states=True)
    yield recurrent("LSTM", "reverse", [4, 1, 5], clip=0.5, input_forget=0)


FUNCTIONS = [("Affine", 0.8, 0.1), ("Elu", 0.7, None), ("HardSigmoid", 0.3, 0.4), ("LeakyRelu", 0.2, None), ("Relu", None, None),
             ("ScaledTanh", 0.9, 0.6), ("Sigmoid", None, None), ("Softplus", None, None), ("Softsign", None, None),
             ("Tanh", None, None), ("ThresholdedRelu", 0.3, None)]


def activations():
    for op, number in (("RNN", 1), ("GRU", 2), ("LSTM", 3)):
        for i in range(len(FUNCTIONS)):
            chosen = [FUNCTIONS[(i + 4 * k) % len(FUNCTIONS)] for k in range(number)]
            alphas, betas = [[f[k] for f in chosen if f[k] is not None] for k in (1, 2)]
            given = {name: values for name, values in (("activation_alpha", alphas), ("activation_beta", betas)) if values}
            yield recurrent(op, activations=[f[0] for f in chosen], **given)
    for op in ("LeakyRelu", "Elu", "HardSigmoid"):  # ThresholdedRelu's default is 1 in ONNX and 0 in ONNX Runtime
        yield recurrent("RNN", activations=[op])


def positions_of_maxima():
    for opset in (12, 17):
        yield case("MaxPool", normal(2, 3, 7, 9), outputs=2, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], dilations=[1, 2], opset=opset)
    yield case("MaxPool", normal(2, 3, 7, 9), outputs=2, kernel_shape=[3, 2], strides=[2, 1], storage_order=1)
    yield case("MaxPool", normal(1, 2, 11), outputs=2, kernel_shape=[3], strides=[2], auto_pad="SAME_UPPER")
    yield case("MaxPool", normal(1, 2, 4, 5, 6), outputs=2, kernel_shape=[2, 3, 2], strides=[1, 2, 2], ceil_mode=1)
    yield case("MaxPool", ints(normal(1, 2, 6, 6) * 20, np.int8), outputs=2, kernel_shape=[2, 2], strides=[2, 2])


def regions():
    corners = np.array([[1, 2, 20, 17], [0, 0, 3, 30], [10.5, 4.25, 31, 9]], np.float32)
    for opset in (10, 16):
        for mode in ("avg", "max"):
            yield case("RoiAlign", np.abs(normal(2, 3, 8, 9)), corners, ints([1, 0, 1], np.int64), mode=mode, output_height=3, output_width=4,
                       spatial_scale=0.25, sampling_ratio=0 if mode == "avg" else 1, opset=opset)


def deformed():
    yield case("DeformConv", normal(2, 4, 6, 7), 0.5 * normal(6, 2, 3, 2), normal(2, 24, 4, 6), normal(6), np.abs(normal(2, 12, 4, 6)),
               strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2], group=2, offset_group=2, opset=19)


FAMILIES = (lengths, activations, positions_of_maxima, regions, deformed)
