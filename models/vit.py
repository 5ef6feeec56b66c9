"""ViT-B/16: patches by a 16x16 convolution, a class token, pre-norm encoder with fused-norm nodes and erf GELU."""

import math

import numpy as np
from onnx import TensorProto

from graph_builder import GraphBuilder


def _attention(b, x, heads):
    """One product for q, k and v, unpacked by a transpose and three Gathers, as torch's packed projection exports."""
    rows, tokens, hidden = x.shape
    packed = b.reshape(b.linear(x, 3 * hidden, 1.2, name="in_proj"), rows, tokens, 3, heads, hidden // heads)
    packed = b.transpose(packed, 2, 0, 3, 1, 4)
    q, k, v = (b.gather(packed, b.scalar(i, np.int64)) for i in range(3))
    scores = b.matmul(b.mul(q, b.scalar(1 / math.sqrt(q.shape[3]))), b.transpose(k, 0, 1, 3, 2))
    context = b.transpose(b.matmul(b.softmax(scores), v), 0, 2, 1, 3)
    return b.linear(b.reshape(context, rows, tokens, hidden), hidden, name="out_proj")


def _with_class_token(b, image, patches, hidden):
    token = b.weight("class_token", (1, 1, hidden), 1.0)
    shape = b.concat([b.dim(image, 0), b.shape_of(-1), b.shape_of(-1)], 0)
    ones = b.constant(np.ones(3, dtype=np.int64), "ones")
    minus = b.node("Equal", [shape, b.shape_of(-1)], (3,), TensorProto.BOOL)
    expanded = b.node("Expand", [token, b.node("Where", [minus, ones, shape], (3,), TensorProto.INT64)],
                      (image.shape[0], 1, hidden))
    return b.concat([expanded, patches], 1)


def vit_b16(seed, small):
    b = GraphBuilder("vit_b16", seed, opset=17)
    layers, hidden, heads, inner, size, patch, classes = 12, 768, 12, 3072, 224, 16, 1000
    if small:
        layers, hidden, heads, inner, size, patch, classes = 2, 48, 3, 96, 32, 8, 10
    image = b.input("pixel_values", (1, 3, size, size))
    with b.scope("embeddings"):
        x = b.conv(image, hidden, patch, patch, gain=1.0)
        x = b.transpose(b.view(x, (b.dim(x, 0), x.shape[0]), hidden, -1), 0, 2, 1)
        x = _with_class_token(b, image, x, hidden)
        x = b.add(x, b.weight("position_embeddings", (1,) + x.shape[1:], 1.0, 0.5))
    for layer in range(layers):
        with b.scope(f"encoder.layers.{layer}"):
            with b.scope("attention"):
                x = b.add(_attention(b, b.layer_norm(x, 1e-6), heads), x)
            with b.scope("mlp"):
                y = b.gelu_erf(b.linear(b.layer_norm(x, 1e-6), inner))
                x = b.add(b.linear(y, hidden, 1.5), x)
    with b.scope("head"):
        first = b.gather(b.layer_norm(x, 1e-6), b.scalar(0, np.int64), axis=1)
        b.output(b.dense(first, classes), "logits")
    return b
