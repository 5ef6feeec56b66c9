"""What two devices gain by computing side by side: a model of two equal branches, on the processor alone and on the processor and an OpenCL device.

    python bench/side_by_side.py [--device opencl:0] [--size 384] [--threads N] [--duration 5] [--json FILE]

Each branch is a chain of products. Programs take turns (turns.py). Where the device is PoCL's, which computes on the processor's own cores, both are given
half of them: `--threads` of the processor, the rest as POCL_MAX_PTHREAD_COUNT.

Exit status 1: outputs differ by more than 1e-3 of the largest value, the plan with both devices does not use both, what it is predicted to take is more than 25%
off, or it is slower than the processor alone.
"""

import argparse
import os
import statistics
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import collage
import turns

BLOCK = 0.1  # seconds of runs in a turn
DEPTH = 6  # products in a branch


def model(size, path):
    random = np.random.default_rng(0)
    nodes, weights = [], []
    for branch in "ab":
        value = "x"
        for i in range(DEPTH):
            name = f"{branch}{i}"
            weights.append(numpy_helper.from_array((random.standard_normal((size, size)) / size**0.5).astype(np.float32), name + "_weight"))
            nodes.append(helper.make_node("MatMul", [value, name + "_weight"], [name + "_sum"]))
            nodes.append(helper.make_node("Tanh", [name + "_sum"], [name]))
            value = name
    nodes.append(helper.make_node("Add", [f"a{DEPTH - 1}", f"b{DEPTH - 1}"], ["y"]))
    shape = [size, size]
    graph = helper.make_graph(nodes, "branches", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return collage.load(path)


def main():
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--size", type=int, default=384)
    parser.add_argument("--threads", type=int, default=max(1, cores // 2))
    parser.add_argument("--duration", type=float, default=5, help="seconds of runs a program")
    parser.add_argument("--json", help="write the figures here")
    options = parser.parse_args()
    os.environ.setdefault("POCL_MAX_PTHREAD_COUNT", str(max(1, cores - options.threads)))
    target = f"opencl -device={options.device}"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COLLAGE_CACHE"] = folder
        read = model(options.size, os.path.join(folder, "model.onnx"))
        ways = {"processor": "native", "both": f"native,{target}"}
        programs = {way: read.compile(targets=targets, threads=options.threads) for way, targets in ways.items()}
        inputs = [np.random.default_rng(1).standard_normal((options.size, options.size)).astype(np.float32)]
        ours, theirs = (np.asarray(programs[way](*inputs)) for way in ("both", "processor"))
        took = turns.medians(turns.blocks(programs, inputs, BLOCK, turns.until(options.duration * len(programs))))
        report = programs["both"].report
    measured = 1e3 * statistics.median(took["both"])
    result = {"processor_ms": 1e3 * statistics.median(took["processor"]), "both_ms": measured, "gain": turns.ratio(took, "processor", "both"),
              "predicted_ms": report["predicted_ms"], "isolated_ms": report["isolated_ms"], "overlap_ms": report["overlap_ms"],
              "used": sorted({kernel["target"] for kernel in report["kernels"]}), "difference": float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))}
    print("\n".join(f"{name}: {value}" for name, value in result.items()))
    wrong = []
    if not result["difference"] <= 1e-3:
        wrong.append(f"outputs differ by {result['difference']:.1e}")
    if len(result["used"]) < 2 or result["overlap_ms"] <= 0:
        wrong.append("the devices do not compute side by side")
    if abs(result["predicted_ms"] / measured - 1) > 0.25:
        wrong.append("the prediction is off")
    if result["gain"] < 1:
        wrong.append("slower than the processor alone")
    return turns.finish({"threads": options.threads, "result": result}, options.json, wrong)


if __name__ == "__main__":
    sys.exit(main())
