"""What ONNX Runtime makes of a model: the outputs that tests compare with.

    python bench/peers/expected.py MODEL [--inputs DIR | --seed N] [--batch N] -o DIR

Writes DIR/inputs/0_name.npy … and DIR/outputs/0_name.npy …. Inputs come from --inputs (the same naming) or are drawn from
the seed: standard normal numbers, valid indices, masks. --batch gives symbolic dimensions a size (default 1).
"""

import argparse
import os
import sys

import no_telemetry  # before the runtime
import onnx
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "models"))

import tensor_files
from random_inputs import random_inputs


def main():
    parser = argparse.ArgumentParser(description="Save inputs, and the outputs that ONNX Runtime gives for them.")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--inputs", metavar="DIR", help="take the inputs from here")
    parser.add_argument("--seed", type=int, default=1, help="draw the inputs (default 1)")
    parser.add_argument("--batch", type=int, default=1, help="size of symbolic dimensions (default 1)")
    parser.add_argument("-o", "--output", required=True, metavar="DIR")
    options = parser.parse_args()
    session_options = onnxruntime.SessionOptions()
    session_options.log_severity_level = 3
    session = onnxruntime.InferenceSession(options.model, session_options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    if options.inputs:
        feed = dict(zip(names, tensor_files.load(options.inputs), strict=True))
    else:
        drawn = random_inputs(onnx.load(options.model, load_external_data=False), options.seed, options.batch)
        feed = {name: drawn[name] for name in names}
    outputs = session.run(None, feed)
    tensor_files.save(os.path.join(options.output, "inputs"), list(feed.items()))
    tensor_files.save(os.path.join(options.output, "outputs"),
                      [(value.name, array) for value, array in zip(session.get_outputs(), outputs)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
