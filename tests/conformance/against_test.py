"""Importers compared: models through `collage verify --compare onnxruntime`, which gives the same file to a runtime that imports it by
itself. Small whole models (whole_models.py), and of the ONNX suite those with graphs inside nodes and every 80th other.

    python tests/conformance/against_test.py [STEP]      with every STEP-th of the suite
"""

import os
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

HERE = os.path.dirname(os.path.abspath(__file__))
for room in (os.path.join(HERE, ".."), os.path.join(HERE, "..", "cli")):
    sys.path.insert(0, room)

import checks
import command
import whole_models
import workbench

UNSUPPORTED, UNAVAILABLE = 4, 5
verified = set()  # of the suite; the other runtime does not run all of it


def verify(bench, model, feed):
    bench.save("model.onnx", model)
    flags = []
    for i, (name, array) in enumerate(feed.items()):
        np.save(bench.path(f"{i}.npy"), array)
        flags += ["--inputs", f"{name}={i}.npy"]
    arguments = ["verify", "model.onnx", "--targets", "reference", "--compare", "onnxruntime", *flags]
    return command.run(arguments, bench.folder, cache=bench.cache)


def agrees(model, feed):
    def check(bench):
        result = verify(bench, model, feed)
        assert result.returncode == 0, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        assert "verified against onnxruntime" in result.stdout, result.stdout

    return check


def agrees_where_both_run(case, feed):
    def check(bench):
        result = verify(bench, case.model, feed)
        # An output that is right and the same everywhere is told apart from one that was verified.
        all_the_same = "this proves nothing: output" in result.stderr and "all the same" in result.stderr
        assert result.returncode in (0, UNSUPPORTED, UNAVAILABLE) or all_the_same, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        if result.returncode == 0:
            verified.add(case.name)

    return check


def has_graphs(model):
    return any(attribute.HasField("g") for node in model.graph.node for attribute in node.attribute)


# What the suite draws at random has no one answer. Of sums that are 0, the other runtime's Fourier transforms give what is small beside
# the largest of the transform, not beside the terms of that sum.
LEFT_OUT = ("bernoulli", "dropout", "training", "random", "multinomial", "dft")


def of_the_suite(step):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # divisions by zero on purpose
        cases = collect_testcases(None)
    for i, case in enumerate(cases):
        if any(word in case.name for word in LEFT_OUT) or not (has_graphs(case.model) or i % step == 0):
            continue
        inputs = case.model.graph.input
        if not all(value.type.HasField("tensor_type") for value in inputs) or len(case.data_sets[0][0]) != len(inputs):
            continue
        arrays = [onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value) for value in case.data_sets[0][0]]
        if all(array.dtype.isbuiltin == 1 and array.dtype.kind in "fiub" for array in arrays):
            yield case, dict(zip((value.name for value in inputs), arrays))


def main():
    step = int(sys.argv[1]) if sys.argv[1:] else 80
    found = [(f"{family.__name__}: {name}", agrees(model, feed)) for family in whole_models.FAMILIES for name, model, feed in family()]
    of_suite = [(case.name, agrees_where_both_run(case, feed)) for case, feed in of_the_suite(step)]
    with tempfile.TemporaryDirectory() as cache:
        status = checks.run(found + of_suite, prepare=lambda folder: workbench.Bench(folder, cache))
    print(f"{len(verified)} of {len(of_suite)} models of the suite by both")
    return status or (0 if 3 * len(verified) >= len(of_suite) else 1)


if __name__ == "__main__":
    sys.exit(main())
