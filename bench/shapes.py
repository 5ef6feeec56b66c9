"""One program for many shapes: Collage, compiled for buckets of them, and ONNX Runtime, which takes each as it comes.

    python bench/shapes.py bert_dynamic.onnx --dim batch=1,2,8 --dim sequence=8,100,512 [--buckets batch=1,8] [--buckets sequence=64,512]

All combinations of the sizes are run, every output compared, and each shape timed in turns. Inputs named "mask" are ones, other integers random
below --below. Exit status 1: outputs differ.
"""

import argparse
import itertools
import math
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))

import no_telemetry  # before the runtime
import numpy as np
import onnxruntime

import collage


def sizes(texts):
    split = (text.split("=", 1) for text in texts)
    return {name: [int(size) for size in values.split(",")] for name, values in split}


def random_inputs(session, dims, below, random):
    given = {}
    for value in session.get_inputs():
        shape = [dims.get(dim, dim) for dim in value.shape]
        if value.type == "tensor(float)":
            given[value.name] = random.standard_normal(shape, np.float32)
        else:
            given[value.name] = np.ones(shape, np.int64) if "mask" in value.name else random.integers(0, below, shape)
    return given


def seconds_of(runs, inputs, turns):
    """The median of each, one run after the other of one, then of the next."""
    taken = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            run(inputs)
            begin = time.perf_counter()
            run(inputs)
            taken[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in taken.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("model")
    parser.add_argument("--dim", action="append", required=True, metavar="NAME=SIZE,…")
    parser.add_argument("--buckets", action="append", default=[], metavar="NAME=SIZE,…")
    parser.add_argument("--below", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--targets", default="")
    parser.add_argument("--database", default="")
    options = parser.parse_args()

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    theirs = onnxruntime.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
    names = [value.name for value in theirs.get_outputs()]
    ours = collage.load_dynamic(options.model, buckets=sizes(options.buckets), threads=options.threads, targets=options.targets,
                                database=options.database)
    random = np.random.default_rng(5)
    dims = sizes(options.dim)
    worst, ratios = 0.0, []
    for combination in itertools.product(*dims.values()):
        given = random_inputs(theirs, dict(zip(dims, combination)), options.below, random)
        ours.prepare(given)
        found, expected = ours.run(given), theirs.run(None, given)
        error = max(float(np.abs(found[name] - output).max() / np.abs(output).max()) for name, output in zip(names, expected))
        taken = seconds_of({"collage": ours.run, "onnxruntime": lambda inputs: theirs.run(None, inputs)}, given, options.turns)
        ratios.append(taken["onnxruntime"] / taken["collage"])
        worst = max(worst, error)
        print(f"{dict(zip(dims, combination))}: collage {1e3 * taken['collage']:.2f} ms, onnxruntime {1e3 * taken['onnxruntime']:.2f} ms, "
              f"error {error:.2e} of the largest", flush=True)
    for made in ours.specialisations:
        print(f"{made.part}: {made.kernels} kernels, compiled in {made.compile_seconds:.1f} s, {made.runs} runs: {made.shapes[:100]}")
    speed = math.exp(statistics.mean(math.log(ratio) for ratio in ratios))
    print(f"{len(ratios)} shapes; over onnxruntime {speed:.2f}x (geometric mean); largest error {worst:.2e}")
    return 1 if not worst < 1e-3 else 0


if __name__ == "__main__":
    sys.exit(main())
