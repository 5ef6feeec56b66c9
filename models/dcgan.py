"""DCGAN: a generator from 100 numbers to a 256x256 image by upsampling and 3x3 convolutions, then a discriminator on it."""

from graph_builder import GraphBuilder, RELU_GAIN


def dcgan(seed, small):
    b = GraphBuilder("dcgan", seed, opset=13)
    channels, size, discriminator = (128, 64, (16, 32, 64, 128)) if not small else (16, 8, (8, 16, 24, 32))
    x = b.input("noise", (1, 100))
    with b.scope("generator"):
        x = b.reshape(b.dense(x, channels * size * size), -1, channels, size, size)
        x = b.relu(b.conv(b.upsample(x), channels, 3, padding=1, gain=1.0))
        x = b.relu(b.conv(b.upsample(x), channels // 2, 3, padding=1))
        image = b.tanh(b.conv(x, 3, 3, padding=1, gain=1.2))
    with b.scope("discriminator"):
        x = image
        for out in discriminator:
            x = b.relu(b.conv(x, out, 3, 2, 1))
        score = b.sigmoid(b.dense(b.flatten(x), 1))
    b.output(image, "image")
    b.output(score, "score")
    return b
