"""image.grid_sample and nn.deformable_conv, place by place."""

import itertools

import numpy as np


def mirrored(x, extent, corners):
    low, high = (0, extent - 1) if corners else (-0.5, extent - 0.5)
    if high == low:
        return 0
    while not low <= x <= high:
        x = 2 * low - x if x < low else 2 * high - x
    return x


def cubic(d):
    d = abs(d)
    return 1.25 * d**3 - 2.25 * d**2 + 1 if d <= 1 else -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)


def taps(x, extent, method, padding, corners):
    """(pixel, weight) along one axis."""
    if method == "nearest":
        read = [(np.round(x), 1)]
    else:
        width, weight = (1, lambda d: 1 - abs(d)) if method == "linear" else (2, cubic)
        read = [(p, weight(x - p)) for p in np.floor(x) + np.arange(1 - width, 1 + width)]
    if padding == "zeros":
        return [(int(p), w) for p, w in read if 0 <= p < extent]
    fold = (lambda p: p) if padding == "border" else lambda p: mirrored(p, extent, corners)
    return [(int(np.clip(fold(p), 0, extent - 1)), w) for p, w in read]


def read_at(image, place, method="linear", padding="zeros", corners=False):
    """All channels of image (C, spatial...) at a place in pixels."""
    axes = [taps(x, extent, method, padding, corners) for x, extent in zip(place, image.shape[1:])]
    total = np.zeros(len(image))
    for chosen in itertools.product(*axes):
        total += np.prod([w for _, w in chosen]) * image[(slice(None), *(p for p, _ in chosen))]
    return total


def grid_sample(a, data, grid):
    extents = np.array(data.shape[2:])
    result = np.zeros(data.shape[:2] + grid.shape[1:-1])
    for n, *at in np.ndindex(grid.shape[:-1]):
        x = grid[(n, *at)][::-1] + 1
        place = x * (extents - 1) / 2 if a["align_corners"] else (x * extents - 1) / 2
        result[(n, slice(None), *at)] = read_at(data[n], place, a["method"], a["padding_mode"], a["align_corners"])
    return result


def deformable_conv(a, data, weight, offset, mask=None):
    kernel, positions, groups = weight.shape[2:], offset.shape[2:], a["offset_groups"]
    dims, count = len(kernel), int(np.prod(kernel))
    offset = offset.reshape(len(data), groups, count, dims, *positions)
    mask = np.ones((len(data), groups, count, *positions)) if mask is None else mask.reshape(len(data), groups, count, *positions)
    columns = np.zeros((len(data), data.shape[1], count, *positions))
    shared = data.shape[1] // groups
    for n, group, (tap, of_kernel), *at in itertools.product(range(len(data)), range(groups), enumerate(np.ndindex(kernel)), *map(range, positions)):
        start = np.array(at) * a["strides"] - np.array(a["padding"][:dims]) + np.array(of_kernel) * a["dilation"]
        channels = slice(group * shared, (group + 1) * shared)
        columns[(n, channels, tap, *at)] = read_at(data[n, channels], start + offset[(n, group, tap, slice(None), *at)]) * mask[(n, group, tap, *at)]
    columns = columns.reshape(len(data), a["groups"], -1, int(np.prod(positions)))
    matrix = weight.reshape(a["groups"], weight.shape[0] // a["groups"], -1)
    return (matrix @ columns).reshape(len(data), weight.shape[0], *positions)


SAMPLED = {"image.grid_sample": grid_sample, "nn.deformable_conv": deformable_conv}
