"""ResNet-50 and ResNeXt-50 (torchvision's v1.5 bottleneck: the stride sits on the 3x3), 2D and 3D, with and without norm.

The benchmark forms start at the first stage (64 channels at 56x56) and have neither stem nor batch norm. `resnet50_full`
has both, its batch norms as separate nodes.
"""

from graph_builder import GraphBuilder, RELU_GAIN, RELU_GAIN_UNCENTRED

DEPTHS = (3, 4, 6, 3)


def _unit(b, x, channels, kernel, stride=1, groups=1, norm=False, branch_scale=1.0, centred=False):
    """Convolution, and batch norm if asked; `branch_scale` keeps a sum of branches from growing with depth.

    A block's 1x1 convolutions are centred, its 3x3 and the shortcuts are not: see graph_builder.
    """
    gain = (RELU_GAIN if centred else RELU_GAIN_UNCENTRED) * (1.0 if norm else branch_scale)
    y = b.conv(x, channels, kernel, stride, kernel // 2, groups, bias=not norm, gain=gain, centred=centred)
    return b.batch_norm(y, branch_scale) if norm else y


def _bottleneck(b, x, width, channels, stride, groups, norm):
    y = b.relu(_unit(b, x, width, 1, norm=norm, centred=True))
    y = b.relu(_unit(b, y, width, 3, stride, groups, norm))
    y = _unit(b, y, channels, 1, norm=norm, branch_scale=0.6, centred=True)
    if stride != 1 or x.channels != channels:
        with b.scope("downsample"):
            x = _unit(b, x, channels, 1, stride, norm=norm, branch_scale=0.8)
    return b.relu(b.add(y, x))


def _stages(b, x, depths, base, groups, group_width, norm):
    for stage, depth in enumerate(depths):
        channels = base << stage
        width = channels * group_width * groups // 64
        for block in range(depth):
            with b.scope(f"layer{stage + 1}.{block}"):
                stride = 2 if block == 0 and stage > 0 else 1
                x = _bottleneck(b, x, width, channels * 4, stride, groups, norm)
    return x


def _head(b, x, classes):
    b.output(b.dense(b.flatten(b.global_pool(x)), classes), "logits")


def headless(seed, small, name, groups=1, group_width=64, three_d=False):
    b = GraphBuilder(name, seed, opset=13)
    depths, base, size, classes = (DEPTHS, 64, 56, 1000) if not small else ((2, 1, 2, 1), 16, 16, 10)
    if small:
        group_width, groups = (64, 1) if groups == 1 else (16, 4)
    if small and three_d:
        base = 8
    x = b.input("input", (1, base) + ((3,) if three_d else ()) + (size, size))
    _head(b, _stages(b, x, depths, base, groups, group_width, norm=False), classes)
    return b


def resnet50(seed, small):
    return headless(seed, small, "resnet50")


def resnext50(seed, small):
    return headless(seed, small, "resnext50", groups=32, group_width=4)


def resnet50_3d(seed, small):
    return headless(seed, small, "resnet50_3d", three_d=True)


def resnet50_full(seed, small):
    b = GraphBuilder("resnet50_full", seed, opset=13)
    depths, base, size, classes = (DEPTHS, 64, 224, 1000) if not small else ((2, 1, 2, 1), 16, 64, 10)
    x = b.input("input", (1, 3, size, size))
    with b.scope("stem"):
        x = b.relu(b.batch_norm(b.conv(x, base, 7, 2, 3, bias=False, gain=1.0)))
        x = b.pool("MaxPool", x, 3, 2, 1)
    _head(b, _stages(b, x, depths, base, 1, 64, norm=True), classes)
    return b
