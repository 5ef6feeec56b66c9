"""A Llama-like decoder as ONNX Runtime's model builder writes it: com.microsoft's grouped attention with rotation and cache.

Batch, new and earlier tokens are open. The attention mask, ones for old and new tokens, gives each sequence's length and
that of the longest; root mean square norms, alone or joined with the sum before them, are ONNX Runtime's operators; the
feed-forward part is SwiGLU.
"""

import numpy as np
from onnx import TensorProto

from graph_builder import GraphBuilder

MICROSOFT = "com.microsoft"
EPSILON = 1e-5


def _caches(positions, size):
    """Cosines and sines of every position for half of a head, base 10000."""
    angles = np.outer(np.arange(positions), 10000.0 ** (-np.arange(0, size, 2) / size))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _product(b, x, size, name, gain=1.0):
    return b.matmul(x, b.weight(f"{name}.weight", (x.shape[-1], size), x.shape[-1], gain, 0))


def _scale(b, size):
    return b.vector(f"{b.layer_name('norm')}.weight", size, 1.0, 0.2)


def _lengths(b, mask):
    """The last position of each sequence, and how many positions the longest has, both int32."""
    count = b.node("ReduceSum", [mask, b.shape_of(1)], (mask.shape[0], 1), TensorProto.INT64, keepdims=1)
    last = b.sub(count, b.constant(np.array([1], dtype=np.int64)))
    total = b.gather(b.node("Shape", [mask], (2,), TensorProto.INT64), b.scalar(1, np.int64))
    return (b.node("Cast", [last], last.shape, TensorProto.INT32, to=TensorProto.INT32),
            b.node("Cast", [total], (), TensorProto.INT32, to=TensorProto.INT32))


def _attention(b, x, past, lengths, rotation, heads, kv_heads, size):
    queries = _product(b, x, heads * size, "q_proj", 1.4)
    keys, values = (_product(b, x, kv_heads * size, n, g) for n, g in (("k_proj", 1.4), ("v_proj", 1.0)))
    total = past[0].shape[2] + x.shape[1]
    present = (x.shape[0], kv_heads, total, size)
    y, *presents = b.nodes("GroupQueryAttention", [queries, keys, values, *past, *lengths, *rotation],
                           [queries.shape, present, present], domain=MICROSOFT, num_heads=heads, kv_num_heads=kv_heads,
                           scale=float(size) ** -0.5, do_rotary=1, rotary_interleaved=0)
    return _product(b, y, x.shape[2], "o_proj"), presents


def _feed_forward(b, x, inner):
    return _product(b, b.mul(b.swish(_product(b, x, inner, "gate_proj", 1.4)), _product(b, x, inner, "up_proj", 1.4)),
                    x.shape[2], "down_proj", 1.5)


def llama(seed, small):
    b = GraphBuilder("llama", seed, opset=17)
    layers, width, heads, kv_heads, inner, words, positions = 6, 512, 8, 2, 1408, 8000, 2048
    if small:
        layers, width, heads, kv_heads, inner, words, positions = 2, 64, 4, 2, 128, 100, 64
    batch, new, old, size = 2, 1, 5, width // heads
    ids = b.input("input_ids", (batch, new), TensorProto.INT64, ("batch_size", "sequence_length"))
    mask = b.input("attention_mask", (batch, old + new), TensorProto.INT64, ("batch_size", "total_sequence_length"))
    cache = ("batch_size", kv_heads, "past_sequence_length", size)
    pasts = [[b.input(f"past_key_values.{layer}.{part}", (batch, kv_heads, old, size), dims=cache)
              for part in ("key", "value")] for layer in range(layers)]
    lengths = _lengths(b, mask)
    rotation = [b.store(n, a) for n, a in zip(("cos_cache", "sin_cache"), _caches(positions, size))]
    x = b.gather(b.weight("embed_tokens.weight", (words, width), 1.0), ids)
    presents, y = [], b.node("SimplifiedLayerNormalization", [x, _scale(b, width)], x.shape, axis=-1, epsilon=EPSILON)

    def add_and_norm(x, y):
        normed, _, _, total = b.nodes("SkipSimplifiedLayerNormalization", [x, y, _scale(b, width)],
                                      [x.shape, None, None, x.shape], domain=MICROSOFT, epsilon=EPSILON)
        return total, normed

    for layer in range(layers):
        with b.scope(f"layers.{layer}"):
            with b.scope("attn"):
                y, present = _attention(b, y, pasts[layer], lengths, rotation, heads, kv_heads, size)
                presents.append(present)
            x, y = add_and_norm(x, y)
            with b.scope("mlp"):
                y = _feed_forward(b, y, inner)
            if layer + 1 < layers:
                x, y = add_and_norm(x, y)
    y = b.node("SkipSimplifiedLayerNormalization", [x, y, _scale(b, width)], x.shape, domain=MICROSOFT, epsilon=EPSILON)
    b.output(_product(b, y, words, "lm_head"), "logits", ("batch_size", "sequence_length", words))
    for layer, present in enumerate(presents):
        for part, value in zip(("key", "value"), present):
            b.output(value, f"present.{layer}.{part}", ("batch_size", kv_heads, "total_sequence_length", size))
    return b
