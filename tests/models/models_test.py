"""The generated models are valid, alive, distinct and reproducible; run at reduced size.

    python tests/models/models_test.py [NAME...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models")
sys.path[:0] = [MODELS, os.path.join(MODELS, "..", "tests")]

import activations
import checks
import generate
import nasrnn
from graph_builder import GraphBuilder
from random_inputs import random_inputs


def read(path):
    with open(path, "rb") as file:
        return file.read()


def run(path, feed, optimised=True):
    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def check_model(name, folder):
    """Valid ONNX, small, every activation alive, every shape what the builder says, no two layers share weights."""
    path, builder = generate.generate(name, folder, small=True)
    if all(opset.domain == "" for opset in onnx.load(path).opset_import):  # the checker knows no other operators
        onnx.checker.check_model(path, full_check=True)
    assert os.path.getsize(path) < 3e6, f"{os.path.getsize(path)} bytes"
    assert builder.stats()["flops"] < 1e8, builder.stats()
    assert not (wrong := activations.problems(path, builder.open_dims())), "; ".join(wrong)
    _, _, tensors = next(activations.run_exposed(path, (3,), builder.open_dims()))
    for tensor, array in tensors.items():
        assert array.shape == builder.shapes[tensor], f"{tensor}: {array.shape}, not {builder.shapes[tensor]}"
    large = [t.raw_data for t in onnx.load(path).graph.initializer if len(t.raw_data) > 256]
    assert len(set(large)) == len(large), "two large initializers are equal"


def check_reproducible(folder):
    """The same seed gives the same bytes; another seed gives other weights in a graph of the same size."""
    first, second, other = (os.path.join(folder, d) for d in ("a", "b", "c"))
    for name in ("resnet50", "gpt2"):
        same = [read(generate.generate(name, d, small=True, seed=7)[0]) for d in (first, second)]
        changed = read(generate.generate(name, other, small=True, seed=8)[0])
        assert same[0] == same[1], f"{name}: two runs differ"
        assert same[0] != changed and len(same[0]) == len(changed), f"{name}: the seed changes nothing, or too much"


def check_dynamic_batch(folder):
    """With a symbolic batch, each row of a batch gives what the fixed model gives for it alone."""
    for name in generate.DYNAMIC_BATCH:
        fixed = generate.generate(name, os.path.join(folder, "fixed"), small=True)[0]
        dynamic = generate.generate(name, os.path.join(folder, "dynamic"), small=True, dynamic_batch=True)[0]
        graph = onnx.load(dynamic).graph
        assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch", name
        batch = max(2, onnx.load(fixed).graph.input[0].type.tensor_type.shape.dim[0].dim_value)
        feed = random_inputs(onnx.load(dynamic), 1, batch + 1)
        key = graph.input[0].name
        whole = run(dynamic, feed)[0]
        rows = onnx.load(fixed).graph.input[0].type.tensor_type.shape.dim[0].dim_value
        part = run(fixed, {key: feed[key][-rows:]})[0]
        assert np.allclose(whole[-rows:], part, rtol=1e-4, atol=1e-5), name


def check_external_data(folder):
    """Weights in a file beside the model are the weights that the model would hold."""
    inline, beside = os.path.join(folder, "inline.onnx"), os.path.join(folder, "beside.onnx")
    nasrnn.nasrnn(0, True).save(inline)
    nasrnn.nasrnn(0, True, external_path=beside + ".data").save(beside)
    onnx.checker.check_model(beside)
    assert os.path.getsize(beside) < os.path.getsize(inline) / 4
    feed = random_inputs(onnx.load(inline), 1)
    assert np.array_equal(run(inline, feed)[0], run(beside, feed)[0])


def check_float16(folder):
    """Of float16 from end to end, and close to the float32 model; but for what only float32 can be."""
    for name in ("resnet50", "mobilenet_v2", "bert_base", "yolov3"):
        wide, half = (generate.generate(name, folder, small=True, dtype=d)[0] for d in ("float32", "float16"))
        assert os.path.basename(half) == f"{name}_float16.onnx"
        model = onnx.load(half)
        onnx.checker.check_model(model, full_check=True)
        feed = random_inputs(model, 3)
        in_float32 = {k: v.astype(np.float32) if v.dtype == np.float16 else v for k, v in feed.items()}
        for narrow, exact in zip(run(half, feed), run(wide, in_float32)):
            assert narrow.dtype == np.float16 and exact.dtype == np.float32, name
            error = np.abs(narrow.astype(np.float32) - exact).max() / np.abs(exact).max()
            assert error < 0.05, f"{name}: differs by {error} of the largest value"


def check_quantised(folder):
    """Weights of int8 with a scale a channel, activations of uint8; close to the float32 model, and the same file each time."""
    for name, bits in [(name, 8) for name in generate.QUANTISED] + [("mobilenet_v2", 7)]:
        real = generate.generate(name, folder, small=True)[0]
        made, again = (generate.generate(name, os.path.join(folder, d), small=True, quantised=True, weight_bits=bits)[0]
                       for d in ("a", "b"))
        assert os.path.basename(made) == f"{name}_int{bits}.onnx" and read(made) == read(again), name
        model = onnx.load(made)
        onnx.checker.check_model(model, full_check=True)
        weights = {t.name: t for t in model.graph.initializer}
        channels = [n for n in model.graph.node if n.op_type == "DequantizeLinear" and n.input[0] in weights
                    and weights[n.input[0]].data_type == onnx.TensorProto.INT8 and weights[n.input[1]].dims]
        assert channels, f"{name}: no weights with a scale a channel"
        largest = max(np.abs(onnx.numpy_helper.to_array(weights[n.input[0]]).astype(int)).max() for n in channels)
        assert largest == (127 if bits == 8 else 64), f"{name}: weights of up to {largest}"
        feed = random_inputs(model, 3)
        # As the model says it: ONNX Runtime's kernels of bytes saturate in 16 bits on processors without VNNI.
        for rounded, exact in zip(run(made, feed, optimised=False), run(real, feed)):
            error = np.abs(rounded - exact).max() / np.abs(exact).max()
            assert error < 0.3, f"{name}: differs by {error} of the largest value"


def check_dead_layers_are_found(folder):
    """The check of activations itself: it sees a layer that relu switches off, and an output that ignores its input."""
    b = GraphBuilder("dead", 0)
    x = b.input("x", (1, 4))
    b.output(b.add(b.relu(b.sub(b.mul(x, b.scalar(1e-6)), b.scalar(1.0))), b.constant(np.arange(4, dtype=np.float32))), "y")
    path = os.path.join(folder, "dead.onnx")
    b.save(path)
    wrong = activations.problems(path)
    assert any("all zeros" in w for w in wrong) and any("same result" in w for w in wrong), wrong


def check_command(folder):
    """Bad usage is one message and exit status 2, and writes nothing; a good call prints the file."""
    def call(*arguments):
        command = [sys.executable, os.path.join(MODELS, "generate.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    out = os.path.join(folder, "out")
    for bad in ([], ["no_such_model"], ["bert", "--dynamic-batch"], ["mnist", "--seed", "-1"],
                ["nasrnn", "--dtype", "float16"], ["mnist", "--dtype", "float8"], ["dcgan", "--quantise"],
                ["mnist", "--quantise", "--dtype", "float16"], ["mnist", "--weight-bits", "7"]):
        result = call(*bad, "-o", out)
        assert result.returncode == 2 and "error:" in result.stderr, (bad, result)
    assert not os.path.exists(out)
    good = call("mnist", "-o", out, "--small")
    assert good.returncode == 0 and good.stdout.strip() == os.path.join(out, "mnist.onnx"), good
    assert call("--list").stdout.split() == list(generate.MODELS)


CHECKS = [(name, lambda folder, name=name: check_model(name, folder)) for name in generate.MODELS]
CHECKS += [check_reproducible, check_dynamic_batch, check_external_data, check_float16, check_quantised, check_dead_layers_are_found, check_command]

if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:]))
