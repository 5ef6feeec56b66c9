"""A bidirectional LSTM over padded sequences, as torch exports pack_padded_sequence: lengths are an input.

Batch and length are open. The initial states are zeros of a shape put together at run time; what stands behind the end of
a sequence is neither read nor seen in the output.
"""

import numpy as np
from onnx import TensorProto, helper

from graph_builder import GraphBuilder


def _lstm(b, x, lengths, hidden):
    """(length, batch, features) to (length, batch, 2 * hidden), and the last states (2, batch, hidden)."""
    steps, batch, features = x.shape
    name = b.layer_name("lstm")
    weights = [b.weight(f"{name}.weight_ih", (2, 4 * hidden, features), features, 1.5),
               b.weight(f"{name}.weight_hh", (2, 4 * hidden, hidden), hidden, 1.5),
               b.store(f"{name}.bias", b.draw(f"{name}.bias", (2, 8 * hidden), 1.0, 0.1))]
    shape = b.concat([b.shape_of(2), b.dim(x, 1), b.shape_of(hidden)], 0)
    zeros = b.node("ConstantOfShape", [shape], (2, batch, hidden),
                   value=helper.make_tensor("value", TensorProto.FLOAT, [1], [0.0]))
    y, last, _ = b.nodes("LSTM", [x, *weights, lengths, zeros, zeros],
                         [(steps, 2, batch, hidden), (2, batch, hidden), (2, batch, hidden)],
                         hidden_size=hidden, direction="bidirectional")
    both = b.transpose(y, 0, 2, 1, 3)
    zero = b.shape_of(0, 0, -1)  # both dimensions stay, and the directions join
    return b.node("Reshape", [both, zero], (steps, batch, 2 * hidden)), last


def lstm_lengths(seed, small):
    b = GraphBuilder("lstm_lengths", seed, opset=17)
    features, hidden, layers, classes = (80, 256, 2, 64) if not small else (8, 12, 2, 5)
    batch, steps = 3, 6
    x = b.input("features", (batch, steps, features), dims=("batch", "length", features))
    lengths = b.input("lengths", (batch,), TensorProto.INT64, ("batch",))
    short = b.node("Cast", [lengths], lengths.shape, TensorProto.INT32, to=TensorProto.INT32)
    y = b.transpose(x, 1, 0, 2)
    for layer in range(layers):
        with b.scope(f"layer{layer}"):
            y, last = _lstm(b, y, short, hidden)
    y = b.transpose(y, 1, 0, 2)
    b.output(b.softmax(b.linear(y, classes, 2.0)), "classes", ("batch", "length", classes))
    b.output(last, "last", (2, "batch", hidden))
    return b
