"""Tensors as .npy files in a folder, named by position and name: `0_input_ids.npy`."""

import os
import re

import numpy as np


def file_name(position, name):
    return f"{position}_{re.sub('[^A-Za-z0-9._-]', '_', name)}.npy"


def save(folder, named_arrays):
    """Writes a sequence of (name, array), in order; returns the paths."""
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, file_name(i, name)) for i, (name, _) in enumerate(named_arrays)]
    for path, (_, array) in zip(paths, named_arrays):
        np.save(path, array)
    return paths


def load(folder):
    """The folder's arrays by position. Raises ValueError where two files claim one position or one is missing."""
    found = {}
    for entry in sorted(os.listdir(folder)):
        match = re.fullmatch(r"(\d+)_.*\.npy", entry)
        if match is None:
            continue
        position = int(match[1])
        if position in found:
            raise ValueError(f"{folder}: two files for position {position}")
        found[position] = np.load(os.path.join(folder, entry), allow_pickle=False)
    if sorted(found) != list(range(len(found))):
        raise ValueError(f"{folder}: positions {sorted(found)}, want 0 to {len(found) - 1} without a gap")
    return [found[i] for i in range(len(found))]
