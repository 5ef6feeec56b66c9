"""Runs the node tests of the installed onnx package, newer than Debian's, through conformance_test: the interpreter, and the
whole pipeline with default targets. long_newest_test.py runs them on each backend.

They come as Python code, so they are first written out as files. Expectations: expectations_newest.txt.
"""

import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

HERE = os.path.dirname(os.path.abspath(__file__))


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def write_values(folder, stem, values, infos):
    for i, (value, info) in enumerate(zip(values, infos)):
        if not info.type.HasField("tensor_type"):
            continue  # sequences and optionals: the importer refuses the model before it asks for data
        if not isinstance(value, TensorProto):
            value = numpy_helper.from_array(np.asarray(value), info.name)
        write(os.path.join(folder, f"{stem}_{i}.pb"), value.SerializeToString())


def write_suite(root):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # divisions by zero on purpose
        cases = collect_testcases(None)
    for case in cases:
        folder = os.path.join(root, "node", case.name)
        os.makedirs(folder)
        write(os.path.join(folder, "model.onnx"), case.model.SerializeToString())
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = os.path.join(folder, f"test_data_set_{i}")
            os.makedirs(data)
            write_values(data, "input", inputs, case.model.graph.input)
            write_values(data, "output", outputs, case.model.graph.output)
    return len(cases)


def run(program, tests):
    """The exit status of those tests of a program, named as --gtest_filter has them."""
    program = os.path.join(os.path.dirname(os.environ["COLLAGE_BIN"]), "tests", program)
    with tempfile.TemporaryDirectory() as root:
        count = write_suite(root)
        print(f"{count} node tests of the onnx package", flush=True)
        if count < 1000:
            print("fewer than expected: the onnx package has changed")
            return 1
        environment = {
            **os.environ,
            "COLLAGE_ONNX_SUITE": root,
            "COLLAGE_ONNX_EXPECTATIONS": os.path.join(HERE, "expectations_newest.txt"),
        }
        return subprocess.run([program, f"--gtest_filter={tests}"], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(run("conformance_test", "*Conformance*/node:Backends.*"))
