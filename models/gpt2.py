"""GPT-2 small as transformers exports it: 1x1 "convolutions" as Gemm on a matrix, a causal mask by Where, tanh GELU.

The output is the last layer's hidden states after the final norm.
"""

import math

import numpy as np
from onnx import TensorProto

from graph_builder import GraphBuilder


def _projection(b, x, size, name, gain=1.0):
    """Reshape to a matrix, Gemm with an untransposed weight, reshape back."""
    weight = b.weight(f"{name}.weight", (x.shape[-1], size), x.shape[-1], gain, 0)
    matrix = b.reshape(x, -1, x.shape[-1])
    y = b.node("Gemm", [matrix, weight, b.vector(f"{name}.bias", size)], (matrix.shape[0], size), alpha=1.0, beta=1.0)
    return b.reshape(y, x.shape[0], x.shape[1], size)


def _attention(b, x, heads, causal, lowest):
    rows, tokens, hidden = x.shape
    joined = _projection(b, x, 3 * hidden, "c_attn", 1.2)
    parts = b.nodes("Split", [joined, b.shape_of(hidden, hidden, hidden)], [x.shape] * 3, axis=2)
    q, k, v = (b.transpose(b.reshape(p, rows, tokens, heads, hidden // heads), 0, 2, 1, 3) for p in parts)
    scores = b.div(b.matmul(q, b.transpose(k, 0, 1, 3, 2)), b.scalar(math.sqrt(q.shape[3])))
    masked = b.node("Where", [causal, scores, lowest], scores.shape)
    context = b.transpose(b.matmul(b.softmax(masked), v), 0, 2, 1, 3)
    return _projection(b, b.reshape(context, rows, tokens, hidden), hidden, "c_proj")


def gpt2(seed, small, tokens=1024):
    b = GraphBuilder("gpt2", seed, opset=17)
    layers, hidden, heads, words, positions = 12, 768, 12, 50257, 1024
    if small:
        layers, hidden, heads, words, positions, tokens = 2, 64, 4, 100, 32, min(tokens // 8, 24)
    ids = b.input("input_ids", (1, tokens), TensorProto.INT64)
    word = b.gather(b.weight("wte.weight", (words, hidden), 1.0), ids)
    row = b.constant(np.arange(tokens, dtype=np.int64)[None], "position_ids")
    x = b.add(word, b.gather(b.weight("wpe.weight", (positions, hidden), 1.0, 0.5), row))
    causal = b.constant(np.tril(np.ones((1, 1, tokens, tokens), dtype=bool)), "causal_mask")
    lowest = b.scalar(np.finfo(np.float32).min)
    for layer in range(layers):
        with b.scope(f"h.{layer}"):
            with b.scope("attn"):
                x = b.add(_attention(b, b.layer_norm(x), heads, causal, lowest), x)
            with b.scope("mlp"):
                y = b.gelu_tanh(_projection(b, b.layer_norm(x), 4 * hidden, "c_fc"))
                x = b.add(x, _projection(b, y, hidden, "c_proj"))
    with b.scope("ln_f"):
        b.output(b.layer_norm(x), "last_hidden_state")
    return b


def gpt2_128(seed, small):
    return gpt2(seed, small, tokens=128)
