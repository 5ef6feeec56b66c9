"""Operators that a user defines (tests/operators) as a plugin, in ONNX models.

    python tests/cli/cli_operators_test.py

Takes the build that COLLAGE_BIN lies in. Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]

import numpy as np
from onnx import helper

import checks
import command
import tiny_models
import workbench

PLUGIN = os.path.join(os.path.dirname(command.COLLAGE), "tests", "libcollage_operators.so")


def custom(nodes, inputs, outputs, weights=()):
    """A model that may have nodes of com.example."""
    made = tiny_models.model(nodes, inputs, outputs, weights)
    made.opset_import.append(helper.make_opsetid("com.example", 1))
    return made


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, op.lower(), domain="com.example", **attributes)


def layer(rows=6):
    """Normalised, multiplied by a weight, gated, and split."""
    nodes = [node("RmsNorm", ["x", "gain"], ["a"], epsilon=0.25), helper.make_node("MatMul", ["a", "w"], ["b"], "product"),
             node("SwiGlu", ["b"], ["c"]), node("SplitAt", ["c"], ["y", "z"], at=5)]
    return custom(nodes, {"x": [rows, 16]}, {"y": [rows, 5], "z": [rows, 7]},
                  {"gain": tiny_models.weights(16), "w": tiny_models.weights(16, 24, seed=1)})


def check_models(bench):
    """They are imported, compiled, and compute what the reference says; native compiles all of them."""
    name = bench.save("layer.onnx", layer())
    for targets in ("native", "reference", "native,onednn"):
        report, _ = bench.report("verify", name, "--plugin", PLUGIN, "--targets", targets, "--effort", "fast")
        programs = [kernel["target"] for kernel in report["kernels"] for op in kernel["ops"] if op["op"] == "tensor_program"]
        assert len(programs) == 3 and set(programs) == {targets.split(",")[0]}, report["kernels"]


def check_interpreted(bench):
    """What they compute is what NumPy computes."""
    name = bench.save("layer.onnx", layer())
    generator = np.random.Generator(np.random.PCG64(7))
    x = generator.standard_normal((6, 16)).astype(np.float32)
    np.save(bench.path("x.npy"), x)
    result = command.run(["run", name, "--plugin", PLUGIN, "--targets", "native", "--effort", "fast", "--inputs", "x=x.npy", "--save-outputs", "out",
                          ], bench.folder, cache=bench.cache)
    assert result.returncode == 0, result
    gain, w = tiny_models.weights(16), tiny_models.weights(16, 24, seed=1)
    b = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 0.25) * gain @ w
    c = b[:, :12] / (1 + np.exp(-b[:, :12])) * b[:, 12:]
    for name, expected in (("0_y.npy", c[:, :5]), ("1_z.npy", c[:, 5:])):
        np.testing.assert_allclose(np.load(bench.path("out", name)), expected, rtol=1e-4, atol=1e-5)


def check_half_precision(bench):
    """In a model of float16 they are computed in float32, as everything is."""
    name = bench.save("half.onnx", tiny_models.in_float16(layer()))
    # Alone: fused, it holds the casts too.
    tiny_models.write(bench.folder, "alone.json", """{"targets": [{"name": "native", "rule": "is_op('tensor_program')"}]}""")
    report, _ = bench.report("verify", name, "--plugin", PLUGIN, "--config", "alone.json", "--effort", "fast", warned=True)
    types = {tensor["dtype"] for kernel in report["kernels"] for op in kernel["ops"] if op["op"] == "tensor_program"
             for tensor in kernel["inputs"] + kernel["outputs"]}
    assert types == {"float32"}, types


def check_refused(bench):
    """Errors name the node, the operator and what does not fit."""
    cases = {
        "odd.onnx": (custom([node("SwiGlu", ["x"], ["y"])], {"x": [2, 5]}, {"y": [2, 2]}),
                     "node 'swiglu' (com.example::SwiGlu): test.swiglu: dimension 1 of X is 5, not 2 * d"),
        "rank.onnx": (custom([node("SwiGlu", ["x"], ["y"])], {"x": [2, 5, 4]}, {"y": [2, 2]}),
                      "X is Tensor[(2, 5, 4), float32], not float32[n, 2 * d]"),
        "two.onnx": (custom([node("SwiGlu", ["x", "x"], ["y"])], {"x": [2, 4]}, {"y": [2, 2]}), "2 inputs, at most 1 are allowed"),
        "absent.onnx": (custom([node("SplitAt", ["x"], ["y", "z"])], {"x": [2, 4]}, {"y": [2, 2], "z": [2, 2]}), "at"),
        "past.onnx": (custom([node("SplitAt", ["x"], ["y", "z"], at=5)], {"x": [2, 4]}, {"y": [2, 5], "z": [2, 1]}),
                      "no extent d - at with at = 5, d = 4, n = 2"),
    }
    for name, (made, words) in cases.items():
        bench.save(name, made)
        result = command.run(["run", name, "--plugin", PLUGIN], bench.folder, cache=bench.cache)
        assert result.returncode == 3 and words in result.stderr and result.stderr.count("\n") == 1, (name, result)
    # Without the plugin the node means nothing.
    bench.save("layer.onnx", layer())
    result = command.run(["run", "layer.onnx"], bench.folder, cache=bench.cache)
    assert result.returncode == 4 and "com.example::SwiGlu" in result.stderr, result


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run([check_models, check_interpreted, check_half_precision, check_refused], sys.argv[1:],
                            lambda folder: workbench.Bench(folder, os.path.join(shared, "cache"))))
