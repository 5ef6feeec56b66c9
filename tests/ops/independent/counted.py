"""Operators whose lists are padded to the most that there can be: nonzero, unique, match_size, vision.non_max_suppression."""

import numpy as np


def padded(values, axis, extent):
    widths = [(0, 0)] * values.ndim
    widths[axis] = (0, extent - values.shape[axis])
    return np.pad(values, widths)


def nonzero(a, x):
    found = np.argwhere(np.atleast_1d(x)).T
    return [padded(found, 1, x.size), np.int64(found.shape[1])]


def match_size(a, x, count):
    assert count == a["size"]
    return np.take(x, range(a["size"]), axis=a["axis"])


def unique(a, x):
    _, first, of, counts = np.unique(x, axis=a["axis"], return_index=True, return_inverse=True, return_counts=True)
    order = np.arange(len(first)) if a["sorted"] else np.argsort(first)
    extent = x.shape[a["axis"]]
    return [padded(first[order], 0, extent), padded(counts[order], 0, extent), np.argsort(order)[of.reshape(-1)], np.int64(len(first))]


def overlap(one, other, centers):
    """Intersection over union, in float32 as ONNX Runtime computes it."""
    def corners(box):
        if centers:
            x, y, width, height = box
            return x - width / 2, x + width / 2, y - height / 2, y + height / 2
        return min(box[1], box[3]), max(box[1], box[3]), min(box[0], box[2]), max(box[0], box[2])

    (x0, x1, y0, y1), (u0, u1, v0, v1) = corners(one), corners(other)
    width, height = min(x1, u1) - max(x0, u0), min(y1, v1) - max(y0, v0)
    areas = (x1 - x0) * (y1 - y0), (u1 - u0) * (v1 - v0)
    if width <= 0 or height <= 0 or min(areas) <= 0:
        return 0
    return width * height / (sum(areas) - width * height)


def non_max_suppression(a, boxes, scores, count, threshold, score):
    rows = []
    for batch, of_batch in enumerate(scores):
        for label, of_class in enumerate(of_batch):
            chosen = []
            for i in np.argsort(-of_class, kind="stable"):
                if len(chosen) < count and (not a["by_score"] or of_class[i] > score) and all(
                        overlap(boxes[batch][i], boxes[batch][j], a["center_point_box"]) <= threshold for j in chosen):
                    chosen.append(i)
            rows += [(batch, label, i) for i in chosen]
    most = boxes.shape[1] if a["most_boxes"] < 0 else min(a["most_boxes"], boxes.shape[1])
    found = np.array(rows, np.int64).reshape(-1, 3)
    return [padded(found, 0, scores.shape[0] * scores.shape[1] * most), np.int64(len(rows))]


COUNTED = {"nonzero": nonzero, "match_size": match_size, "unique": unique, "vision.non_max_suppression": non_max_suppression}
