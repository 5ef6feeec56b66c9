"""What a call from Python costs beside the kernel: a model of one small kernel, compiled here and loaded from an artifact, run from NumPy arrays and,
where there is torch, from its tensors.

    python bench/python_overhead.py [--limit 20]

Prints the median microseconds of a whole call, kernel included, for each way to call. Exit status 1: the slowest takes more than --limit.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy as np

import collage

MODEL = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 16), float32]) { nn.relu(%x) }
"""


def microseconds(call, blocks=200, calls=100):
    samples = []
    for _ in range(blocks):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        samples.append((time.perf_counter() - begin) / calls)
    return 1e6 * statistics.median(samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--limit", type=float, default=20, help="microseconds")
    limit = parser.parse_args().limit
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "relu.relay")
        with open(path, "w") as file:
            file.write(MODEL)
        program = collage.load(path).compile(targets="native", threads=1)
        artifact = os.path.join(folder, "relu.collage")
        program.save(artifact)
        loaded = collage.load(artifact)
    x, y = collage.empty((1, 16), "float32"), collage.empty((1, 16), "float32")
    x[...] = np.arange(16) - 8
    name, result = program.inputs[0].name, program.outputs[0].name
    ways = {"program(array)": lambda: program(x), "program.run({...})": lambda: program.run({name: x}),
            "program.run({...}, {...})": lambda: program.run({name: x}, {result: y}), "loaded(array)": lambda: loaded(x)}
    try:
        import torch

        tensor = torch.from_numpy(x)
        ways["program(tensor)"] = lambda: program(tensor)
    except ImportError:
        pass
    slowest = 0
    for way, call in ways.items():
        took = microseconds(call)
        slowest = max(slowest, took)
        print(f"{way:28} {took:6.2f} us")
    return slowest > limit


if __name__ == "__main__":
    sys.exit(main())
