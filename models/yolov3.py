"""YOLO v3: Darknet-53 without norm, three detection heads at strides 32, 16 and 8 with 255 channels each."""

from graph_builder import GraphBuilder, RELU_GAIN, RELU_GAIN_UNCENTRED

STAGES = ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4))  # channels, residual blocks


def _unit(b, x, channels, kernel, stride=1, scale=1.0):
    """The 3x3 convolutions are centred, the 1x1 are not: see graph_builder."""
    gain = 0.96 * scale * (RELU_GAIN if kernel == 3 else RELU_GAIN_UNCENTRED)
    y = b.conv(x, channels, kernel, stride, kernel // 2, gain=gain, centred=kernel == 3)
    return b.unary("LeakyRelu", y, alpha=0.1)


def _backbone(b, x, stages, stem):
    x, taps = _unit(b, x, stem, 3), []
    for stage, (channels, blocks) in enumerate(stages):
        with b.scope(f"stage{stage + 1}"):
            x = _unit(b, x, channels, 3, 2)
            for _ in range(blocks):
                x = b.add(x, _unit(b, _unit(b, x, channels // 2, 1), channels, 3, scale=0.5))
        taps.append(x)
    return taps[-3:]


def _head(b, x, channels, outputs):
    for _ in range(2):
        x = _unit(b, _unit(b, x, channels, 1), channels * 2, 3)
    x = _unit(b, x, channels, 1)
    return x, b.conv(_unit(b, x, channels * 2, 3), outputs, 1, gain=1.0)


def yolov3(seed, small):
    b = GraphBuilder("yolov3", seed, opset=13)
    stages, stem, size, outputs = STAGES, 32, 416, 255
    if small:
        stages, stem, size, outputs = ((8, 1), (8, 1), (16, 2), (24, 2), (32, 1)), 8, 64, 21
    x = b.input("image", (1, 3, size, size))
    with b.scope("backbone"):
        shallow, middle, deep = _backbone(b, x, stages, stem)
    x, channels = deep, deep.channels // 2
    for index, tap in enumerate((None, middle, shallow)):
        with b.scope(f"head{index + 1}"):
            if tap is not None:
                x = b.concat([b.upsample(_unit(b, x, channels // 2, 1)), tap], 1)
                channels //= 2
            x, detections = _head(b, x, channels, outputs)
            b.output(detections, f"detections_{8 << (2 - index)}")
    return b
