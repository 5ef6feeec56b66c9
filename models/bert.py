"""BERT twice: the benchmark's bare stack of attention and products, and `bert_base` as an older transformers export writes it.

`bert_base` keeps what such exports carry: opset 11, embeddings of three kinds, a mask turned into an additive bias, layer
norm and GELU as elementary nodes, shapes put together from Shape and Concat, a pooler on the first token.
"""

import math

import numpy as np
from onnx import TensorProto

from graph_builder import GraphBuilder, RELU_GAIN


def _heads(b, x, heads):
    return b.transpose(b.reshape(x, x.shape[0], heads, x.shape[1] // heads), 1, 0, 2)


def _bare_layer(b, x, heads, inner):
    """Keys resemble queries, so a token attends mostly to itself; else the layers would average all tokens into one."""
    hidden = x.shape[1]
    of_query = b.draw("q.weight", (hidden, hidden), hidden, 1.6)
    of_key = 0.7 * of_query + 0.7 * b.draw("k.weight", (hidden, hidden), hidden, 1.6)
    query, key = b.store("q.weight", of_query), b.store("k.weight", of_key)
    q, k = _heads(b, b.matmul(x, query), heads), _heads(b, b.matmul(x, key), heads)
    v = _heads(b, b.linear(x, hidden, bias=False, name="v"), heads)
    scores = b.div(b.matmul(q, b.transpose(k, 0, 2, 1)), b.scalar(math.sqrt(q.shape[2])))
    merged = b.reshape(b.transpose(b.matmul(b.softmax(scores), v), 1, 0, 2), x.shape[0], hidden)
    y = b.relu(b.linear(merged, inner, bias=False, name="up"))
    return b.linear(y, hidden, RELU_GAIN, bias=False, name="down")


def bert(seed, small):
    b = GraphBuilder("bert", seed, opset=13)
    layers, tokens, hidden, heads, inner = (8, 64, 1024, 16, 4096) if not small else (2, 16, 64, 4, 128)
    x = b.input("input", (tokens, hidden))
    for layer in range(layers):
        with b.scope(f"layer{layer}"):
            x = _bare_layer(b, x, heads, inner)
    b.output(x, "hidden")
    return b


def _split_heads(b, x, batch, heads):
    size = x.shape[-1] // heads
    return b.transpose(b.view(x, batch, (b.dim(x, 1), x.shape[1]), heads, size), 0, 2, 1, 3)


def _attention(b, x, mask, heads):
    with b.scope("attention.self"):
        query, key, value = (b.linear(x, x.shape[-1], name=n) for n in ("query", "key", "value"))
        batch = (b.dim(x, 0), x.shape[0])
        q, k, v = (_split_heads(b, y, batch, heads) for y in (query, key, value))
        scores = b.div(b.matmul(q, b.transpose(k, 0, 1, 3, 2)), b.scalar(math.sqrt(q.shape[3])))
        context = b.transpose(b.matmul(b.softmax(b.add(scores, mask)), v), 0, 2, 1, 3)
        merged = b.view(context, batch, (b.dim(context, 1), context.shape[1]), x.shape[-1])
    with b.scope("attention.output"):
        return b.layer_norm(b.add(b.linear(merged, x.shape[-1], name="dense"), x), 1e-12, decomposed=True)


def _encoder_layer(b, x, mask, heads, inner):
    x = _attention(b, x, mask, heads)
    with b.scope("intermediate"):
        y = b.gelu_erf(b.linear(x, inner, name="dense"))
    with b.scope("output"):
        return b.layer_norm(b.add(b.linear(y, x.shape[-1], 1.5, name="dense"), x), 1e-12, decomposed=True)


def _embed(b, ids, types, words, positions, hidden, open_length):
    with b.scope("embeddings"):
        word = b.gather(b.weight("word_embeddings.weight", (words, hidden), 1.0), ids)
        kind = b.gather(b.weight("token_type_embeddings.weight", (2, hidden), 1.0, 0.5), types)
        row = b.constant(np.arange(positions if open_length else ids.shape[1], dtype=np.int64)[None], "position_ids")
        if open_length:
            row = b.node("Slice", [row, b.shape_of(0), b.dim(ids, 1), b.shape_of(1)], (1, ids.shape[1]), TensorProto.INT64)
        place = b.gather(b.weight("position_embeddings.weight", (positions, hidden), 1.0, 0.5), row)
        return b.layer_norm(b.add(b.add(word, kind), place), 1e-12, decomposed=True)


def _mask_bias(b, mask):
    """1 for tokens to see and 0 for padding becomes 0 and -10000, to be added to the scores."""
    wide = b.unsqueeze(b.unsqueeze(mask, 1), 2)
    seen = b.node("Cast", [wide], wide.shape, to=TensorProto.FLOAT)
    return b.mul(b.sub(b.scalar(1.0), seen), b.scalar(-10000.0))


def _exported(name, seed, small, rows, tokens, dims=None):
    """`dims` names the dimensions of the inputs where they are open; rows and tokens are then an example."""
    b = GraphBuilder(name, seed, opset=11)
    layers, hidden, heads, inner, words, positions = 12, 768, 12, 3072, 30522, 512
    if small:
        layers, hidden, heads, inner, words, positions = 2, 64, 4, 128, 100, 32
    ids, mask, types = (b.input(n, (rows, tokens), TensorProto.INT64, dims)
                        for n in ("input_ids", "attention_mask", "token_type_ids"))
    bias = _mask_bias(b, mask)
    x = _embed(b, ids, types, words, positions, hidden, dims is not None)
    for layer in range(layers):
        with b.scope(f"encoder.layer.{layer}"):
            x = _encoder_layer(b, x, bias, heads, inner)
    with b.scope("pooler"):
        first = b.gather(x, b.scalar(0, np.int64), axis=1)
        pooled = b.tanh(b.dense(first, hidden))
    b.output(x, "last_hidden_state", dims and (*dims, hidden))
    b.output(pooled, "pooler_output", dims and (dims[0], hidden))
    return b


def bert_base(seed, small):
    return _exported("bert_base", seed, small, 1, 16 if small else 128)


def bert_dynamic(seed, small):
    """bert_base for any number of texts of any length."""
    return _exported("bert_dynamic", seed, small, 2, 12, ("batch", "sequence"))
