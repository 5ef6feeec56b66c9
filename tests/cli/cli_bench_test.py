"""bench and diff: statistics, other runtimes, and the time of every kernel.

    python tests/cli/cli_bench_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import tiny_models
from workbench import Bench


def check_bench(bench):
    """Statistics, and other runtimes beside them."""
    name = bench.save("net.onnx", tiny_models.small_net())
    line = rf"\s+median\s+\d+\.\d+ ms   p10\s+\d+\.\d+   p90\s+\d+\.\d+   p95\s+\d+\.\d+   p99\s+\d+\.\d+   \d+ runs"
    report, printed = bench.report("bench", name, "--duration", "0.1", "--compare", "onnxruntime,openvino")
    for runtime in ("collage", "onnxruntime", "openvino"):
        assert re.search(rf"^{runtime}{line}$", printed, re.MULTILINE), printed
    assert re.search(r"^memory        \d+\.\d MB of intermediate tensors, \d+\.\d MB of the process at most$", printed, re.MULTILINE), printed
    assert report["peak_memory"]["measured"] > report["peak_memory"]["planned"], report["peak_memory"]
    assert report["latency_ms"]["p90"] <= report["latency_ms"]["p95"] <= report["latency_ms"]["p99"], report["latency_ms"]
    ratio = r"\d+\.\d\dx \(\d+\.\d\d to \d+\.\d\d in 95%, (\d+) turns\)[a-z :,0-9%]*"
    faster = re.search(rf"^speed-up over the faster of them: {ratio}$", printed, re.MULTILINE)
    assert faster and int(faster[1]) >= 6, printed
    assert report["latency_ms"]["count"] >= 5
    for peer in ("onnxruntime", "openvino"):
        entry = report["peers"][peer]
        assert entry["version"].startswith(peer) and entry["count"] >= 5, entry
        call = r"\d+\.\d\dx without the (\d+\.\d+) ms that calling it from Python takes at most"
        line = re.search(rf"^over {peer} {ratio}, {call}; outputs differ by \S+ at most, \S+ of the largest value$", printed, re.MULTILINE)
        assert line and abs(float(line[2]) - entry["call_ms"]) < 1e-3, printed
        assert 0 < entry["call_ms"] and entry["speed_up_without_call"]["median"] <= entry["speed_up"]["median"], entry
        assert entry["difference"]["within"] and 0 <= entry["difference"]["max_rel"] < 1e-4, entry
        assert entry["speed_up"]["turns"] == int(faster[1]) and entry["speed_up"]["verdict"] != "few turns", entry


def check_names(bench):
    """A run's timeline holds every step once."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, printed = bench.report("bench", name, "--duration", "0.1", "--layers")
    steps = [step["name"] for step in report["timeline"]]
    kernels = {kernel["name"] for kernel in report["kernels"]}
    assert kernels | {c["name"] for c in report["conversions"]} == set(steps) - {s for s in steps if s.startswith("copy")}
    assert all(name in printed for name in steps) and re.search(rf"^{len(steps)} steps .*, roofline ", printed, re.MULTILINE), printed


def check_names_of_commands(bench):
    """bench, explain and the log call kernels the same."""
    name = bench.save("net.onnx", tiny_models.small_net())

    def compare():
        report, _ = bench.report("bench", name, "--duration", "0.1")
        explained = bench.run("explain", name)
        logged = command.run(["run", name, "-v"], bench.folder, cache=bench.cache).stderr
        for kernel in report["kernels"]:
            assert kernel["name"] in explained and kernel["name"] in logged, kernel["name"]

    checks.once_settled(compare)


def check_diff(bench):
    """A report against itself changed nothing; a planted slow-down of 5% is status 7."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, _ = bench.report("bench", name, "--duration", "0.2")
    report["latency_ms"]["samples"] = [10 + 0.01 * (i % 7) for i in range(100)]
    for file, factor in (("before.json", 1), ("slower.json", 1.05), ("faster.json", 0.95)):
        latency = dict(report["latency_ms"], samples=[factor * s for s in report["latency_ms"]["samples"]])
        with open(bench.path(file), "w") as out:
            json.dump(dict(report, latency_ms=latency), out)
    for after, status, words in (("before.json", 0, "no change beyond noise"), ("slower.json", 7, "+5.0%"),
                                 ("faster.json", 0, ": faster")):
        result = command.run(["diff", "before.json", after], bench.folder)
        assert result.returncode == status and words in result.stdout, (result.stdout, result.stderr)
    assert "slower.json is slower than before.json by 5.0%, beyond noise" in command.run(
        ["diff", "before.json", "slower.json"], bench.folder).stderr


def products_model():
    """A product of real numbers and one of integers, each bound by its arithmetic."""
    weights = np.random.default_rng(0)
    node, numpy_tensor = onnx.helper.make_node, onnx.numpy_helper.from_array
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node("MatMul", ["x", "w"], ["y"]), node("MatMulInteger", ["i", "v"], ["z"])], "products",
        [tensor("x", onnx.TensorProto.FLOAT, [256, 1024]), tensor("i", onnx.TensorProto.UINT8, [256, 1024])],
        [tensor("y", onnx.TensorProto.FLOAT, [256, 1024]), tensor("z", onnx.TensorProto.INT32, [256, 1024])],
        [numpy_tensor(weights.standard_normal((1024, 1024), np.float32), "w"),
         numpy_tensor(weights.integers(-64, 64, (1024, 1024), np.int8), "v")])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)


def check_no_kernel_beats_its_roof(bench):
    """No kernel takes less than the least that its work can take by the machine's peaks. These are only ever measured too low, where the
    machine is disturbed."""
    name = bench.save("products.onnx", products_model())

    def compare():
        bench.run("bench", name, "--duration", "0.1", "--json", "report.json", warned=None)
        told = subprocess.run([sys.executable, os.path.join(command.ROOT, "bench", "check_roofs.py"), bench.path("report.json")],
                              capture_output=True, text=True)
        assert told.returncode == 0, told.stdout + told.stderr

    checks.once_settled(compare, tries=3)


CHECKS = (check_bench, check_names, check_names_of_commands, check_diff, check_no_kernel_beats_its_roof)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run(CHECKS, sys.argv[1:], lambda folder: Bench(folder, os.path.join(shared, "cache"))))
