"""The UNet of a latent diffusion model: what Stable Diffusion's is, with fewer channels, as torch exports it.

Noisy latents, a time step and the states of a text go in, the noise comes out. Batch, height, width (multiples of 8) and the
text's length are open. Group norm is an instance norm between two reshapes, as opset 17 has it; transformer blocks attend to
places and to the text; skip connections join the way down with the way up.
"""

import math

import numpy as np
from onnx import TensorProto

from graph_builder import GraphBuilder


def _group_norm(b, x, groups, epsilon=1e-5):
    name = b.layer_name("norm")
    merged = (x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    y = b.node("Reshape", [x, b.shape_of(0, groups, -1)], merged)
    one, zero = (b.constant(np.full(groups, v, dtype=np.float32)) for v in (1, 0))
    y = b.node("InstanceNormalization", [y, one, zero], merged, epsilon=epsilon)
    y = b.node("Reshape", [y, b.node("Shape", [x], (len(x.shape),), TensorProto.INT64)], x.shape)
    uniform = [b.draw(f"{name}.{part}", (x.channels, 1, 1), 1.0, 0.1) for part in ("weight", "bias")]
    return b.add(b.mul(y, b.store(f"{name}.weight", uniform[0] + np.float32(1))), b.store(f"{name}.bias", uniform[1]))


def _conv(b, x, channels, kernel=3, stride=1):
    return b.conv(x, channels, kernel, stride, kernel // 2, gain=1.0, centred=False)


def _time_embedding(b, sample, step, channels):
    """Sines and cosines of the step at many frequencies, through two layers; one row a sample."""
    half = channels // 2
    frequencies = np.exp(-math.log(10000.0) * np.arange(half, dtype=np.float32) / half).astype(np.float32)[None]
    rows = b.node("Expand", [step, b.dim(sample, 0)], (sample.shape[0],))
    angles = b.mul(b.unsqueeze(rows, 1), b.constant(frequencies, "frequencies"))
    waves = b.concat([b.unary("Cos", angles), b.unary("Sin", angles)], 1)
    return b.dense(b.swish(b.dense(waves, 4 * channels, 1.4)), 4 * channels, 1.4)


def _residual(b, x, time, channels, groups):
    y = _conv(b, b.swish(_group_norm(b, x, groups)), channels)
    shift = b.unsqueeze(b.unsqueeze(b.dense(b.swish(time), channels), 2), 3)
    y = _conv(b, b.swish(_group_norm(b, b.add(y, shift), groups)), channels)
    return b.add(x if x.channels == channels else _conv(b, x, channels, 1), y)


def _attention(b, x, context, heads):
    def split(y):
        return b.transpose(b.view(y, b.size(y, 0), b.size(y, 1), heads, y.shape[2] // heads), 0, 2, 1, 3)

    width = x.shape[2]
    q = split(b.linear(x, width, 1.4, bias=False, name="to_q"))
    k, v = (split(b.linear(context, width, g, bias=False, name=n)) for n, g in (("to_k", 1.4), ("to_v", 1.0)))
    scores = b.mul(b.matmul(q, b.transpose(k, 0, 1, 3, 2)), b.scalar(1 / math.sqrt(width // heads)))
    y = b.transpose(b.matmul(b.softmax(scores), v), 0, 2, 1, 3)
    return b.linear(b.view(y, b.size(y, 0), b.size(y, 1), width), width, name="to_out")


def _gated(b, x):
    """GEGLU: one half of a wide layer times the GELU of the other."""
    wide = b.linear(x, 8 * x.shape[2], name="proj")
    half = wide.shape[:2] + (4 * x.shape[2],)
    value, gate = b.nodes("Split", [wide, b.shape_of(half[2], half[2])], [half, half], axis=2)
    return b.linear(b.mul(value, b.gelu_erf(gate)), x.shape[2], 1.5, name="out")


def _transformer(b, x, text, heads, groups):
    """Places become the positions of a sequence, and places again."""
    batch, height, width = (b.size(x, axis) for axis in (0, 2, 3))
    y = b.transpose(_conv(b, _group_norm(b, x, groups, 1e-6), x.channels, 1), 0, 2, 3, 1)
    area = (b.mul(height[0], width[0]), height[1] * width[1])
    y = b.view(y, batch, area, x.channels)
    with b.scope("attn1"):
        y = b.add(_attention(b, *[b.layer_norm(y)] * 2, heads), y)
    with b.scope("attn2"):
        y = b.add(_attention(b, b.layer_norm(y), text, heads), y)
    with b.scope("ff"):
        y = b.add(_gated(b, b.layer_norm(y)), y)
    y = b.transpose(b.view(y, batch, height, width, x.channels), 0, 3, 1, 2)
    return b.add(_conv(b, y, x.channels, 1), x)


def diffusion_unet(seed, small):
    b = GraphBuilder("diffusion_unet", seed, opset=17)
    levels, layers, heads, groups, text_width, side, words = ((64, 128, 256, 256), 2, 8, 32, 768, 64, 77)
    if small:
        levels, layers, heads, groups, text_width, side, words = ((16, 16, 32, 32), 1, 2, 4, 24, 16, 5)
    batch = 2 if small else 1
    sample = b.input("sample", (batch, 4, side, side), dims=("batch", 4, "height", "width"))
    step = b.input("timestep", (1,))
    text = b.input("encoder_hidden_states", (batch, words, text_width), dims=("batch", "words", text_width))
    with b.scope("time_embedding"):
        time = _time_embedding(b, sample, step, levels[0])
    x = _conv(b, sample, levels[0])
    skips, last = [x], len(levels) - 1

    def block(x, channels, level, layer):
        with b.scope(f"layer{layer}"):
            x = _residual(b, x, time, channels, groups)
            return x if level == last else _transformer(b, x, text, heads, groups)

    for level, channels in enumerate(levels):
        with b.scope(f"down{level}"):
            for layer in range(layers):
                x = block(x, channels, level, layer)
                skips.append(x)
            if level < last:
                x = _conv(b, x, channels, stride=2)
                skips.append(x)
    with b.scope("mid"):
        x = _transformer(b, _residual(b, x, time, levels[-1], groups), text, heads, groups)
        x = _residual(b, x, time, levels[-1], groups)
    for level in range(last, -1, -1):
        with b.scope(f"up{level}"):
            for layer in range(layers + 1):
                x = block(b.concat([x, skips.pop()], 1), levels[level], level, layer)
            if level > 0:
                x = _conv(b, b.upsample(x), levels[level])
    b.output(_conv(b, b.swish(_group_norm(b, x, groups)), 4), "out_sample", ("batch", 4, "height", "width"))
    return b
