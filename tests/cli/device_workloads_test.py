"""Reduced workloads on a device wholly, and split in the middle by pins: on the simulated accelerator, where the host may not touch device memory,
and on an OpenCL device where there is one.

    python tests/cli/device_workloads_test.py [NAME...]

Takes the build that COLLAGE_BIN lies in; long_device_workloads_test.py takes OpenCL's three. Prints "N passed, 0 failed" or what went wrong.
"""

import functools
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(ROOT, "models")]

import onnx

import checks
import command
import generate
import workbench

PLUGIN = os.path.join(os.path.dirname(command.COLLAGE), "tests", "libcollage_simulated.so")
NAMES = ("mobilenet_v2", "bert", "resnet50")
DEVICES = {"simulated": ("--plugin", PLUGIN), "opencl": ()}


def halves(path):
    """Regular expressions of the names of the first nodes, and of the others."""
    names = [re.escape(node.name) for node in onnx.load(path, load_external_data=False).graph.node]
    middle = len(names) // 2
    return ["^(" + "|".join(some) + ")$" for some in (names[:middle], names[middle:])]


def verified(bench, model, targets, *flags):
    """Kernels by backend, and how many tensors pass between host and device. `verify` compares every kernel and the whole with the reference.
    Covers that want more of the scratch memory than there is are left out with warnings."""
    report, _ = bench.report("verify", model, "--targets", targets, "--effort", "fast", "--threads", "2", "-q", *flags)
    backends = [kernel["target"].split()[0] for kernel in report["kernels"]]
    return backends, sum(("@" in c["from"]) != ("@" in c["to"]) for c in report["conversions"])


def check(name, device, bench):
    model = generate.generate(name, bench.folder, small=True)[0]
    backends, transfers = verified(bench, model, device, *DEVICES[device])
    assert set(backends) == {device} and transfers == 2, (backends, transfers)
    first, second = halves(bench.path(model))
    backends, transfers = verified(bench, model, f"{device},native", "--pin", f"{first}={device}:0", "--pin", f"{second}=native", *DEVICES[device])
    assert set(backends) == {device, "native"} and transfers >= 2, (backends, transfers)
    assert backends.index("native") >= len(backends) // 4, backends


def main(names, devices=("simulated",)):
    with tempfile.TemporaryDirectory() as shared:
        cases = [(f"{name} on {device}", functools.partial(check, name, device)) for name in names for device in devices]
        return checks.run(cases, prepare=lambda folder: workbench.Bench(folder, os.path.join(shared, "cache")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or NAMES))
