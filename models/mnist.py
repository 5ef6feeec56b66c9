"""The classic MNIST digit classifier: explicit padding, biases as separate additions. It is small already."""

import numpy as np

from graph_builder import GraphBuilder, RELU_GAIN


def _pad(b, x, amount):
    pads = b.shape_of(0, 0, amount, amount, 0, 0, amount, amount)
    shape = x.shape[:2] + tuple(s + 2 * amount for s in x.shape[2:])
    return b.node("Pad", [x, pads, b.scalar(0.0)], shape, mode="constant")


def _layer(b, x, channels, pool, gain):
    y = b.conv(_pad(b, x, 2), channels, 5, bias=False, gain=gain, centred=x.channels > 1)
    y = b.relu(b.add(y, b.constant(np.linspace(-0.2, 0.3, channels, dtype=np.float32).reshape(channels, 1, 1), "bias")))
    return b.pool("MaxPool", y, pool, pool)


def mnist(seed, small):
    b = GraphBuilder("mnist", seed, opset=13)
    x = b.input("x", (1, 1, 28, 28))
    with b.scope("layer1"):
        x = _layer(b, x, 8, 2, 1.0)
    with b.scope("layer2"):
        x = _layer(b, x, 16, 3, RELU_GAIN)
    with b.scope("dense"):
        x = b.linear(b.reshape(x, -1, 256), 10)
    b.output(x, "digits")
    return b
