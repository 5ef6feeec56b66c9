"""Whisper tiny as Hugging Face exports it: an encoder of spectrograms, and a decoder for the first tokens and for later ones.

`whisper_encoder` takes 30 seconds of log-mel features. `whisper_decoder` takes all tokens so far and the encoder's states,
and gives the keys and values of both attentions; `whisper_decoder_with_past` takes those and the tokens behind them.
"""

import math

import numpy as np
from onnx import TensorProto

from gpt2_cache import LOWEST, cut
from graph_builder import GraphBuilder


def _sizes(small):
    """layers, width, heads, inner width, words, text positions, mel bands, frames"""
    return (2, 48, 3, 96, 120, 32, 16, 40) if small else (4, 384, 6, 1536, 51865, 448, 80, 3000)


def _split_heads(b, x, heads):
    return b.transpose(b.view(x, b.size(x, 0), b.size(x, 1), heads, x.shape[2] // heads), 0, 2, 1, 3)


def _attend(b, x, queries, keys, values, mask=None):
    """`queries` have heads already, and their scale."""
    scores = b.matmul(queries, b.transpose(keys, 0, 1, 3, 2))
    if mask is not None:
        scores = b.add(scores, mask)
    context = b.transpose(b.matmul(b.softmax(scores), values), 0, 2, 1, 3)
    merged = b.view(context, b.size(context, 0), b.size(context, 1), x.shape[2])
    return b.linear(merged, x.shape[2], name="out_proj")


def _queries(b, x, heads):
    scaled = b.mul(b.linear(x, x.shape[2], 1.4, name="q_proj"), b.scalar(1 / math.sqrt(x.shape[2] // heads)))
    return _split_heads(b, scaled, heads)


def _keys_and_values(b, states, heads):
    return (_split_heads(b, b.linear(states, states.shape[2], 1.4, bias=False, name="k_proj"), heads),
            _split_heads(b, b.linear(states, states.shape[2], name="v_proj"), heads))


def _feed_forward(b, x, inner):
    y = b.gelu_erf(b.linear(b.layer_norm(x), inner, name="fc1"))
    return b.add(x, b.linear(y, x.shape[2], 1.5, name="fc2"))


def whisper_encoder(seed, small):
    b = GraphBuilder("whisper_encoder", seed, opset=17)
    layers, width, heads, inner, _, _, bands, frames = _sizes(small)
    batch = 2 if small else 1
    x = b.input("input_features", (batch, bands, frames), dims=("batch", bands, frames))
    x = b.gelu_erf(b.conv(x, width, 3, padding=1, centred=False))
    x = b.gelu_erf(b.conv(x, width, 3, stride=2, padding=1, centred=False))
    x = b.transpose(x, 0, 2, 1)
    x = b.add(x, b.weight("embed_positions.weight", x.shape[1:], 1.0, 0.5))
    for layer in range(layers):
        with b.scope(f"layers.{layer}"):
            with b.scope("self_attn"):
                y = b.layer_norm(x)
                x = b.add(x, _attend(b, y, _queries(b, y, heads), *_keys_and_values(b, y, heads)))
            x = _feed_forward(b, x, inner)
    b.output(b.layer_norm(x), "last_hidden_state", ("batch", frames // 2, width))
    return b


def _causal_mask(b, ids, positions, old):
    """(1, 1, new, old + new): 0 where a key may be seen, the lowest number elsewhere."""
    triangle = np.triu(np.full((1, 1, positions, positions), LOWEST, dtype=np.float32), 1)
    new = b.size(ids, 1)
    zero = (b.shape_of(0), 0)
    total = new if old is None else (b.add(old[0], new[0]), old[1] + new[1])
    return cut(b, cut(b, b.constant(triangle, "causal_mask"), 2, old or zero, total), 3, zero, total)


def _decoder_layer(b, x, states, past, mask, heads, inner):
    """The new x, and what the cache takes of this layer: keys and values of the text, and those of the sound once."""
    with b.scope("self_attn"):
        y = b.layer_norm(x)
        keys, values = _keys_and_values(b, y, heads)
        if past:
            keys, values = b.concat([past[0], keys], 2), b.concat([past[1], values], 2)
        x = b.add(x, _attend(b, y, _queries(b, y, heads), keys, values, mask))
    with b.scope("encoder_attn"):
        y = b.layer_norm(x)
        heard = past[2:] if past else _keys_and_values(b, states, heads)
        x = b.add(x, _attend(b, y, _queries(b, y, heads), *heard))
    return _feed_forward(b, x, inner), (keys, values) if past else (keys, values, *heard)


PARTS = ("decoder.key", "decoder.value", "encoder.key", "encoder.value")


def _decoder(name, seed, small, with_past):
    b = GraphBuilder("whisper_decoder", seed, opset=17)
    b.name = name
    layers, width, heads, inner, words, positions, _, frames = _sizes(small)
    batch, new, old, heard, size = 2, 3, 4, frames // 2, width // heads
    ids = b.input("input_ids", (batch, new), TensorProto.INT64, ("batch", "sequence"))
    states, pasts = None, [None] * layers
    if with_past:
        lengths = {"decoder": ("past", old), "encoder": ("encoder_sequence", heard)}
        pasts = [[b.input(f"past_key_values.{layer}.{part}", (batch, heads, lengths[part[:7]][1], size),
                          dims=("batch", heads, lengths[part[:7]][0], size)) for part in PARTS] for layer in range(layers)]
    else:
        states = b.input("encoder_hidden_states", (batch, heard, width), dims=("batch", "encoder_sequence", width))
    earlier = b.size(pasts[0][0], 2) if with_past else None
    mask = _causal_mask(b, ids, positions, earlier)
    table = b.weight("embed_tokens.weight", (words, width), 1.0)
    places = b.weight("embed_positions.weight", (positions, width), 1.0, 0.5)
    new_size = b.size(ids, 1)
    end = new_size if earlier is None else (b.add(earlier[0], new_size[0]), old + new)
    x = b.add(b.gather(table, ids), cut(b, places, 0, earlier or (b.shape_of(0), 0), end))
    presents = []
    for layer in range(layers):
        with b.scope(f"layers.{layer}"):
            x, present = _decoder_layer(b, x, states, pasts[layer], mask, heads, inner)
            presents.append(present)
    b.output(b.matmul(b.layer_norm(x), b.transpose(table, 1, 0)), "logits", ("batch", "sequence", words))
    text = "past + sequence" if with_past else "sequence"
    for layer, present in enumerate(presents):
        for part, value in zip(PARTS, present):
            length = text if part.startswith("decoder") else "encoder_sequence"
            b.output(value, f"present.{layer}.{part}", ("batch", heads, length, size))
    return b


def whisper_decoder(seed, small):
    return _decoder("whisper_decoder", seed, small, with_past=False)


def whisper_decoder_with_past(seed, small):
    return _decoder("whisper_decoder_with_past", seed, small, with_past=True)
