"""Functions that a user registers (tests/operators/functions.cc) as a plugin, in ONNX models and modules.

    python tests/cli/cli_functions_test.py

Takes the build that COLLAGE_BIN lies in. Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]

import numpy as np
from onnx import TensorProto, helper

import checks
import command
import tiny_models
import workbench

PLUGIN = os.path.join(os.path.dirname(command.COLLAGE), "tests", "libcollage_functions.so")


def example(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, op.lower(), domain="com.example", **attributes)


def model(nodes):
    made = tiny_models.model(nodes, {"x": [6, 16]}, {"y": [6]})
    made.graph.output.append(helper.make_tensor_value_info("i", TensorProto.INT64, [6]))
    made.opset_import.append(helper.make_opsetid("com.example", 1))
    return made


def check_measured(bench):
    """Workers have the plugin too, so its kernels are measured, verified and known the next time."""
    name = bench.save("best.onnx", model([example("Cumulated", ["x"], ["a"], scale=-0.5), example("Best", ["a"], ["v", "i"]),
                                          helper.make_node("Exp", ["v"], ["y"], "exp")]))
    report, _ = bench.report("verify", name, "--plugin", PLUGIN, "--targets", "native,onednn", "--effort", "fast")
    kernels = {op["op"]: kernel for kernel in report["kernels"] for op in kernel["ops"]}
    assert kernels["tensor_program"]["target"] == "native" and kernels["external_function"]["target"] == "reference", kernels
    assert kernels["tensor_program"]["cost_ms"] is not None, kernels["tensor_program"]
    x = np.random.default_rng(3).standard_normal((6, 16)).astype(np.float32)
    np.save(bench.path("x.npy"), x)
    result = command.run(["run", name, "--plugin", PLUGIN, "--targets", "native", "--effort", "fast", "--inputs", "x=x.npy", "--save-outputs", "out",
                          ], bench.folder, cache=bench.cache)
    assert result.returncode == 0, result
    sums = np.cumsum(x, axis=1) * -0.5
    np.testing.assert_allclose(np.load(bench.path("out", "0_y.npy")), np.exp(sums.max(axis=1)), rtol=1e-4)
    np.testing.assert_array_equal(np.load(bench.path("out", "1_i.npy")), sums.argmax(axis=1))


def check_refused(bench):
    """One line each: a node that does not fit, and the same models without the plugin."""
    for nodes, words in (([example("Best", ["x"], ["y", "i"], axis=1)], "attributes that the function test.best does not declare"),
                         ([helper.make_node("Transpose", ["x"], ["a"], "flat"), helper.make_node("ReduceMax", ["a"], ["b"], "top", keepdims=0),
                           example("Best", ["b"], ["y", "i"])], "takes a matrix of float32")):
        refused = command.run(["inspect", bench.save("bad.onnx", model(nodes)), "--plugin", PLUGIN], bench.folder, cache=bench.cache)
        assert refused.returncode in (3, 4) and words in refused.stderr, refused
    text = '#[version = "0.0.5"]\nextern @f(Tensor[(6, 16), float32]) = "test.best";\ndef @main(%x: Tensor[(6, 16), float32]) {\n  @f(%x)\n}\n'
    tiny_models.write(bench.folder, "module.relay", text)
    assert command.run(["inspect", "module.relay", "--plugin", PLUGIN], bench.folder, cache=bench.cache).returncode == 0
    refused = command.run(["inspect", "module.relay"], bench.folder, cache=bench.cache)
    assert refused.returncode == 3 and "line 2, column 39" in refused.stderr and "there is no external function 'test.best'" in refused.stderr, refused


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run([check_measured, check_refused], sys.argv[1:],
                            lambda folder: workbench.Bench(folder, os.path.join(shared, "cache"))))
