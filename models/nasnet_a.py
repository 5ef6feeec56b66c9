"""NASNet-A as a stack of normal and reduction cells (five of the first, one of the second, at each resolution).

    normal cell     sep3(cur)+cur   sep3(prev)+sep3(cur)   avg3(cur)+prev   avg3(prev)+avg3(prev)   sep3(prev)+sep3(prev)
    reduction cell  first = sep7/2(prev)+sep5/2(cur)   second = max3/2(cur)+sep7/2(prev)   avg3/2(cur)+sep5/2(prev)
                    max3/2(cur)+sep3(first)   avg3(first)+second

A cell starts with a 1x1 convolution and relu on both inputs and ends with the concatenation of its five sums.
"""

from graph_builder import GraphBuilder

def _squeeze(b, x, channels):
    return b.relu(b.conv(x, channels, 1, bias=False, gain=1.1))


def _separable(b, x, kernel, stride=1):
    y = b.conv(x, x.channels, kernel, stride, kernel // 2, groups=x.channels, bias=False, gain=1.0)
    return b.conv(y, x.channels, 1, bias=False, gain=1.0)


def _average(b, x, stride=1):
    return b.pool("AveragePool", x, 3, stride, 1)


def _normal_cell(b, prev, cur, channels):
    cur, prev = _squeeze(b, cur, channels), _squeeze(b, prev, channels)
    return b.concat([b.add(_separable(b, cur, 3), cur),
                     b.add(_separable(b, prev, 3), _separable(b, cur, 3)),
                     b.add(_average(b, cur), prev),
                     b.add(_average(b, prev), _average(b, prev)),
                     b.add(_separable(b, prev, 3), _separable(b, prev, 3))], 1)


def _reduction_cell(b, prev, cur, channels):
    cur, prev = _squeeze(b, cur, channels), _squeeze(b, prev, channels)
    first = b.add(_separable(b, prev, 7, 2), _separable(b, cur, 5, 2))
    second = b.add(b.pool("MaxPool", cur, 3, 2, 1), _separable(b, prev, 7, 2))
    third = b.add(_average(b, cur, 2), _separable(b, prev, 5, 2))
    fourth = b.add(b.pool("MaxPool", cur, 3, 2, 1), _separable(b, first, 3))
    return b.concat([first, second, third, fourth, b.add(_average(b, first), second)], 1)


def nasnet_a(seed, small):
    b = GraphBuilder("nasnet_a", seed, opset=13)
    channels, size, stages, cells = (64, 56, 3, 5) if not small else (16, 16, 2, 2)
    x = b.input("input", (1, channels, size, size))
    for stage in range(stages):
        if stage > 0:
            channels *= 2
            with b.scope(f"reduction{stage}"):
                x = _reduction_cell(b, prev, x, channels)
        prev = x
        for cell in range(cells):
            with b.scope(f"stage{stage + 1}.cell{cell + 1}"):
                prev, x = x, _normal_cell(b, prev, x, channels)
    b.output(x, "features")
    return b
