"""MobileNet v2 (torchvision's layout, relu instead of relu6, no norm) and EfficientNet b0 (batch norm, swish, squeeze-excite)."""

from graph_builder import GraphBuilder, RELU_GAIN

MOBILENET_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                    (6, 320, 1, 1))  # expansion, channels, repeats, stride
EFFICIENTNET_STAGES = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
                       (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))  # and the depthwise kernel


def _inverted_residual(b, x, expansion, channels, stride):
    y = x
    if expansion != 1:
        y = b.relu(b.conv(y, x.channels * expansion, 1, gain=1.0))
    y = b.relu(b.conv(y, y.channels, 3, stride, 1, groups=y.channels, gain=1.4))
    residual = stride == 1 and x.channels == channels
    y = b.conv(y, channels, 1, gain=RELU_GAIN * (0.6 if residual else 1.0))
    return b.add(x, y) if residual else y


def mobilenet_v2(seed, small, batch=1):
    b = GraphBuilder("mobilenet_v2", seed, opset=13)
    stages, size, stem, last, classes = (MOBILENET_STAGES, 224, 32, 1280, 1000)
    if small:
        stages, size, stem, last, classes = ((1, 8, 1, 1), (6, 12, 2, 2), (6, 16, 2, 1)), 32, 16, 64, 10
        batch = min(batch, 2)
    x = b.input("input", (batch, 3, size, size))
    with b.scope("features.0"):
        x = b.relu(b.conv(x, stem, 3, 2, 1, gain=1.4))
    block = 1
    for expansion, channels, repeats, stride in stages:
        for repeat in range(repeats):
            with b.scope(f"features.{block}"):
                x = _inverted_residual(b, x, expansion, channels, stride if repeat == 0 else 1)
            block += 1
    with b.scope(f"features.{block}"):
        x = b.relu(b.conv(x, last, 1, gain=1.0))
    with b.scope("classifier"):
        b.output(b.dense(b.flatten(b.global_pool(x)), classes), "logits")
    return b


def mobilenet_v2_b32(seed, small):
    return mobilenet_v2(seed, small, batch=32)


def _squeeze_excite(b, x, squeezed):
    with b.scope("se"):
        scale = b.swish(b.conv(b.global_pool(x), squeezed, 1, gain=1.5))
        return b.mul(b.sigmoid(b.conv(scale, x.channels, 1, gain=1.5)), x)


def _mbconv(b, x, expansion, channels, stride, kernel):
    y = x
    if expansion != 1:
        y = b.swish(b.batch_norm(b.conv(y, x.channels * expansion, 1, bias=False, gain=1.0)))
    y = b.swish(b.batch_norm(b.conv(y, y.channels, kernel, stride, kernel // 2, y.channels, bias=False, gain=1.6)))
    y = _squeeze_excite(b, y, max(1, x.channels // 4))
    residual = stride == 1 and x.channels == channels
    y = b.batch_norm(b.conv(y, channels, 1, bias=False, gain=2.4), 0.6 if residual else 1.0)
    return b.add(y, x) if residual else y


def efficientnet_b0(seed, small):
    b = GraphBuilder("efficientnet_b0", seed, opset=13)
    stages, size, stem, last, classes = EFFICIENTNET_STAGES, 224, 32, 1280, 1000
    if small:
        stages, size, stem, last, classes = ((1, 8, 1, 1, 3), (6, 12, 2, 2, 5), (6, 16, 2, 1, 3)), 32, 16, 64, 10
    x = b.input("input", (1, 3, size, size))
    with b.scope("features.0"):
        x = b.swish(b.batch_norm(b.conv(x, stem, 3, 2, 1, bias=False, gain=1.4)))
    for stage, (expansion, channels, repeats, stride, kernel) in enumerate(stages, 1):
        for repeat in range(repeats):
            with b.scope(f"features.{stage}.{repeat}"):
                x = _mbconv(b, x, expansion, channels, stride if repeat == 0 else 1, kernel)
    with b.scope(f"features.{len(stages) + 1}"):
        x = b.swish(b.batch_norm(b.conv(x, last, 1, bias=False, gain=1.0)))
    with b.scope("classifier"):
        b.output(b.dense(b.flatten(b.global_pool(x)), classes), "logits")
    return b
