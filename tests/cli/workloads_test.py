"""The ten workloads at reduced size, end to end, against ONNX Runtime on two different inputs.

    python tests/cli/workloads_test.py [--targets LIST] [NAME...]

Each model is partitioned by measured cost, with little effort, over all backends of this build. long_workloads_test.py does
the same with the second family of models, and with one backend at a time. All share one cache, so that what two models have
in common is measured once. Prints one line a model, then "N passed, N failed"; exits with 1 if anything failed.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback

import onnx
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
for room in (HERE, os.path.join(ROOT, "models"), os.path.join(ROOT, "bench", "peers")):
    sys.path.insert(0, room)

import command
import generate
import tensor_files
from random_inputs import random_inputs

SEEDS = (1, 2)


def expected_outputs(path, folder, seed):
    """Saves inputs drawn from the seed and ONNX Runtime's outputs; returns the flags that give the inputs."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    drawn = random_inputs(onnx.load(path), seed)
    names = [value.name for value in session.get_inputs()]
    saved = tensor_files.save(os.path.join(folder, "inputs"), [(name, drawn[name]) for name in names])
    outputs = zip([value.name for value in session.get_outputs()], session.run(None, drawn))
    tensor_files.save(os.path.join(folder, "outputs"), list(outputs))
    return [flag for name, file in zip(names, saved) for flag in ("--inputs", f"{name}={file}")]


def check(name, targets, folder, cache):
    """The command finds its outputs within tolerance of ONNX Runtime's, for each seed."""
    path = generate.generate(name, folder, small=True)[0]
    for seed in SEEDS:
        here = os.path.join(folder, str(seed))
        inputs = expected_outputs(path, here, seed)
        result = command.run(["verify", path, *targets, *inputs, "--expect", os.path.join(here, "outputs"),
                              "--effort", "fast"], folder, cache=cache)
        assert result.returncode == 0, f"exit status {result.returncode}: {result.stderr}{result.stdout}"
        assert result.stderr == "", result.stderr


def run_all(cases):
    """Checks every (model, list of targets or None for the default ones); the exit status."""
    passed = failed = 0
    with tempfile.TemporaryDirectory() as cache:
        os.chmod(cache, 0o700)
        for name, targets in cases:
            label, begin = f"{name} on {targets or 'all targets'}", time.monotonic()
            try:
                with tempfile.TemporaryDirectory() as folder:
                    check(name, ["--targets", targets] if targets else [], folder, cache)
                passed += 1
                print(f"{label}: {time.monotonic() - begin:.1f} s", flush=True)
            except Exception as wrong:
                failed += 1
                print(f"FAILED {label}: {wrong if isinstance(wrong, AssertionError) else traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main():
    parser = argparse.ArgumentParser(description="Run small models end to end.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--targets", action="append", metavar="LIST")
    options = parser.parse_args()
    names = options.names or generate.WORKLOADS
    return run_all([(name, targets) for targets in options.targets or [None] for name in names])


if __name__ == "__main__":
    sys.exit(main())
