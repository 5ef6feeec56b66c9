"""GPT-2 as Hugging Face exports it for generation: any batch and length, keys and values of earlier tokens in and out.

A step takes `sequence` new tokens behind `past` old ones. The causal mask is cut out of a constant for all positions at run
time, and the attention mask, one for each old and new token, is added to the scores. The last product uses the embeddings
of the words again.
"""

import math

import numpy as np
from onnx import TensorProto

from graph_builder import GraphBuilder

LOWEST = np.finfo(np.float32).min


def projection(b, x, size, name, gain=1.0):
    """Reshape to a matrix, Gemm, and back to whatever batch and length there are."""
    weight = b.weight(f"{name}.weight", (x.shape[-1], size), x.shape[-1], gain, 0)
    matrix = b.reshape(x, -1, x.shape[-1])
    y = b.node("Gemm", [matrix, weight, b.vector(f"{name}.bias", size)], (matrix.shape[0], size), alpha=1.0, beta=1.0)
    return b.view(y, b.size(x, 0), b.size(x, 1), size)


def cut(b, x, axis, begin, end):
    """Slice along one axis; begin and end are sizes as b.size() gives them."""
    shape = x.shape[:axis] + (end[1] - begin[1],) + x.shape[axis + 1:]
    return b.node("Slice", [x, begin[0], end[0], b.shape_of(axis)], shape, x.dtype)


def _split_heads(b, x, heads):
    parts = b.view(x, b.size(x, 0), b.size(x, 1), heads, x.shape[2] // heads)
    return b.transpose(parts, 0, 2, 1, 3)


def _attention(b, x, past, masks, heads):
    hidden = x.shape[-1]
    causal, bias = masks
    joined = projection(b, x, 3 * hidden, "c_attn", 1.2)
    q, k, v = (_split_heads(b, part, heads)
               for part in b.nodes("Split", [joined, b.shape_of(hidden, hidden, hidden)], [x.shape] * 3, axis=2))
    k, v = b.concat([past[0], k], 2), b.concat([past[1], v], 2)
    scores = b.div(b.matmul(q, b.transpose(k, 0, 1, 3, 2)), b.scalar(math.sqrt(q.shape[3])))
    scores = b.node("Where", [causal, scores, b.scalar(LOWEST)], scores.shape)
    context = b.transpose(b.matmul(b.softmax(b.add(scores, bias)), v), 0, 2, 1, 3)
    merged = b.view(context, b.size(context, 0), b.size(context, 1), hidden)
    return projection(b, merged, hidden, "c_proj"), (k, v)


def _masks(b, ids, past, mask, positions):
    """The rows of new tokens in the causal mask, and 0 or the lowest number for each key."""
    triangle = b.constant(np.tril(np.ones((1, 1, positions, positions), dtype=bool)), "causal_mask")
    old, new = b.size(past, 2), b.size(ids, 1)
    total = (b.add(old[0], new[0]), old[1] + new[1])
    rows = cut(b, triangle, 2, old, total)
    causal = cut(b, rows, 3, (b.shape_of(0), 0), total)
    wide = b.unsqueeze(b.unsqueeze(mask, 1), 2)
    seen = b.node("Cast", [wide], wide.shape, to=TensorProto.FLOAT)
    return causal, b.mul(b.sub(b.scalar(1.0), seen), b.scalar(LOWEST))


def gpt2_cache(seed, small):
    b = GraphBuilder("gpt2_cache", seed, opset=17)
    layers, hidden, heads, words, positions = 12, 768, 12, 50257, 1024
    if small:
        layers, hidden, heads, words, positions = 2, 64, 4, 100, 32
    batch, new, old = 2, 3, 5
    ids = b.input("input_ids", (batch, new), TensorProto.INT64, ("batch", "sequence"))
    caches = [[b.input(f"past_key_values.{layer}.{part}", (batch, heads, old, hidden // heads),
                       dims=("batch", heads, "past", hidden // heads)) for part in ("key", "value")]
              for layer in range(layers)]
    mask = b.input("attention_mask", (batch, old + new), TensorProto.INT64, ("batch", "past + sequence"))
    places = b.input("position_ids", (batch, new), TensorProto.INT64, ("batch", "sequence"))
    table = b.weight("wte.weight", (words, hidden), 1.0)
    x = b.add(b.gather(table, ids), b.gather(b.weight("wpe.weight", (positions, hidden), 1.0, 0.5), places))
    masks = _masks(b, ids, caches[0][0], mask, positions)
    presents = []
    for layer in range(layers):
        with b.scope(f"h.{layer}"):
            with b.scope("attn"):
                y, present = _attention(b, b.layer_norm(x), caches[layer], masks, heads)
                presents.append(present)
                x = b.add(y, x)
            with b.scope("mlp"):
                y = b.gelu_tanh(projection(b, b.layer_norm(x), 4 * hidden, "c_fc"))
                x = b.add(x, projection(b, y, hidden, "c_proj"))
    with b.scope("ln_f"):
        x = b.layer_norm(x)
    b.output(b.matmul(x, b.transpose(table, 1, 0)), "logits", ("batch", "sequence", words))
    for layer, present in enumerate(presents):
        for part, value in zip(("key", "value"), present):
            b.output(value, f"present.{layer}.{part}", ("batch", heads, "past + sequence", hidden // heads))
    return b
