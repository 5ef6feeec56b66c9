"""Every case of every operator: what the interpreter gives against NumPy or ONNX Runtime (expected.py).

    python tests/ops/independent/independent_test.py [OPERATOR...]

The program write_cases, beside COLLAGE_BIN, writes the cases. The reference backend gives the interpreter's values bit for bit
(tests/backend/reference). Prints "N passed, M failed" and what went wrong.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import expected

# Operators that nothing else computes, with the reason.
NOT_COVERED = {}
# The reference computes in double and rounds once; ONNX Runtime adds up in float32.
ONCE, SUMS = 1.5e-7, 2e-6


def tensor(data, place):
    dtype, shape = np.dtype(place["dtype"]), place["shape"]
    return np.frombuffer(data, dtype, int(np.prod(shape)), place["at"]).reshape(shape)


def widened(x):
    return x.astype(np.float64) if x.dtype == np.float32 else x


def difference(given, wanted, sums):
    """How the results differ, "" where they do not."""
    wanted = np.asarray(wanted)
    if given.shape != wanted.shape:
        return f"shape {given.shape} instead of {wanted.shape}"
    if not np.issubdtype(given.dtype, np.floating):
        wrong = given != wanted
    else:
        with np.errstate(over="ignore"):
            wanted = wanted.astype(given.dtype)
        special = ~np.isfinite(wanted) | ~np.isfinite(given)
        same = (given == wanted) | (np.isnan(given) & np.isnan(wanted))
        size = np.abs(np.where(special, 0, wanted).astype(np.float64))
        if sums:
            size = np.maximum(size, size.max(initial=0))
        error = np.abs(np.where(special, 0, given).astype(np.float64) - np.where(special, 0, wanted))
        wrong = np.where(special, ~same, error > (SUMS if sums else ONCE) * size + 1e-12)
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{given[at]!r} instead of {wanted[at]!r} at {at}, {int(wrong.sum())} of {wrong.size} elements"


def problem(case, data):
    if case["op"] not in expected.EXPECTED:
        return "nothing to compare with: the operator wants a line in expected.py or elementwise.py"
    args = [widened(tensor(data, place)) for place in case["args"]]
    with np.errstate(all="ignore"):
        wanted = expected.EXPECTED[case["op"]](case["attrs"], *args)
    wanted = wanted if isinstance(wanted, list) else [wanted]
    if len(wanted) != len(case["results"]):
        return f"{len(case['results'])} results instead of {len(wanted)}"
    sums = case["op"] in expected.ROUNDED_OFTEN
    found = (difference(tensor(data, place), want, sums) for place, want in zip(case["results"], wanted))
    return next(filter(None, found), "")


def main():
    program = os.path.join(os.path.dirname(os.environ["COLLAGE_BIN"]), "tests", "write_cases")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True)
        with open(os.path.join(folder, "cases.json")) as file:
            cases = json.load(file)
        with open(os.path.join(folder, "data.bin"), "rb") as file:
            data = file.read()
    chosen = sys.argv[1:]
    passed, failed, reached = 0, 0, set()
    for case in cases:
        if case["op"] in NOT_COVERED or (chosen and case["op"] not in chosen):
            continue
        reached.add(case["op"])
        try:
            wrong = problem(case, data)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            print(f"FAILED {case['text']}: {wrong}")
        passed, failed = passed + (not wrong), failed + bool(wrong)
    for name, reason in NOT_COVERED.items():
        print(f"SKIPPED {name}: {reason}")
    stale = set() if chosen else (set(expected.EXPECTED) | set(NOT_COVERED)) - {case["op"] for case in cases}
    if stale:
        print(f"FAILED no operator, or none with cases: {', '.join(sorted(stale))}")
    print(f"{len(reached)} operators")
    print(f"{passed} passed, {failed + len(stale)} failed")
    return 1 if failed or stale or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
