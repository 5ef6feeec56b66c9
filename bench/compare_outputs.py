"""Compares two folders of outputs (0_name.npy …), or two .npy files, position by position; B is what is expected.

    python bench/compare_outputs.py A B [--scale 1e-4] [--relative 1e-3]

Floats agree where |a - b| <= scale * max|b| + relative * |b|, and NaN and infinities stand in the same places; integers and
booleans must be equal. Prints one line an output. Exit status: 0 all agree, 1 they do not, 2 they cannot be compared.
"""

import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))

import tensor_files


def compare(a, b, scale=1e-4, relative=1e-3):
    """(agree, what to say about it)."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False, f"{a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
    if b.size == 0:
        return True, "empty"
    if b.dtype.kind != "f":
        different = int((a != b).sum())
        return different == 0, f"{different} of {b.size} differ"
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return False, f"{int((~np.isfinite(a)).sum())} elements are not finite, {int((~finite).sum())} should be"
    a, b = a[finite].astype(np.float64), b[finite].astype(np.float64)
    largest = float(np.abs(b).max(initial=0.0))
    error = np.abs(a - b)
    wrong = int((error > scale * largest + relative * np.abs(b)).sum())
    return wrong == 0, f"{wrong} of {b.size} differ, largest error {error.max(initial=0.0):.3g} beside values up to {largest:.3g}"


def main():
    parser = argparse.ArgumentParser(description="Compare outputs A with the expected ones B.")
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("--scale", type=float, default=1e-4, help="of the largest expected value (default 1e-4)")
    parser.add_argument("--relative", type=float, default=1e-3, help="of each expected value (default 1e-3)")
    options = parser.parse_args()
    try:
        a, b = ([np.load(p)] if os.path.isfile(p) else tensor_files.load(p) for p in (options.a, options.b))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if len(a) != len(b) or not b:
        parser.error(f"{options.a} holds {len(a)} tensors, {options.b} {len(b)}")
    results = [compare(x, y, options.scale, options.relative) for x, y in zip(a, b)]
    for position, (agree, text) in enumerate(results):
        print(f"{position}: {'same' if agree else 'DIFFERENT'}, {text}")
    return 0 if all(agree for agree, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
