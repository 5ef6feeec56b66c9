"""Schedules that a search found, against the best of the handful that is measured in any case: kernels without a template, as the ten benchmark models have
them.

    python bench/schedule_search.py [NAME...] [--threads N] [--duration 2] [--json FILE]

Each kernel is a model of its own, compiled twice: with --effort max, which searches, and with the default effort. Every turn gives both a block of
runs, in an order that alternates; ratios are medians of those turn by turn.

Exit status 1: outputs differ by more than 1e-3 of the largest value, some kernel takes more than 1.05 times as long with the search as without, or
without it less than 1.15 times as long in the geometric mean.
"""

import argparse
import math
import os
import statistics
import sys
import tempfile

import numpy as np

import collage
import turns

BLOCK = 0.05  # seconds of runs in a turn
MOST_SLOWER, LEAST_GAIN = 1.05, 1.15

# Name: parameters' shapes, and the body over %a, %b …
KERNELS = {
    "gpt2 layer norm": ([(1, 1024, 768), (768,), (768,)], "nn.layer_norm(%a, %b, %c, axis=2, epsilon=1e-05)"),
    "gpt2 embedding": ([(1024, 768), (1024, 768)], "add(%a, %b)"),
    "gpt2 split": ([(1, 1024, 2304)], "split(%a, indices_or_sections=[768, 1536], axis=2)"),
    "gpt2 gelu": ([(1024, 3072), (3072,)], 'nn.gelu(nn.bias_add(%a, %b, axis=-1), approximate="tanh")'),
    "gpt2 heads": ([(1, 1024, 12, 64)], "transpose(%a, axes=[0, 2, 1, 3])"),
    "gpt2 keys": ([(1, 1024, 12, 64)], "transpose(%a, axes=[0, 2, 3, 1])"),
    "bert softmax": ([(16, 64, 64)], "nn.softmax(%a, axis=-1)"),
    "bert residual norm": ([(64, 1024), (64, 1024), (1024,), (1024,)], "nn.layer_norm(add(%a, %b), %c, %d, axis=1, epsilon=1e-05)"),
    "mobilenet pool": ([(1, 1280, 7, 7)], "nn.global_avg_pool2d(%a)"),
    "resnet50 pool": ([(1, 2048, 7, 7)], "nn.global_avg_pool2d(%a)"),
    "resnet50 max pool": ([(1, 64, 112, 112)], "nn.max_pool2d(%a, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])"),
    "resnet50 residual": ([(1, 256, 56, 56), (1, 256, 56, 56)], "nn.relu(add(%a, %b))"),
    "resnet50_3d pool": ([(1, 2048, 2, 7, 7)], "nn.global_avg_pool3d(%a)"),
    "nasnet pool 56": ([(1, 64, 56, 56)], "nn.avg_pool2d(%a, pool_size=[3, 3], padding=[1, 1, 1, 1])"),
    "nasnet pools 28": ([(1, 128, 28, 28)] * 2, "add(nn.avg_pool2d(%a, pool_size=[3, 3], padding=[1, 1, 1, 1]), %b)"),
    "nasnet pool 14": ([(1, 256, 28, 28)], "nn.avg_pool2d(%a, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])"),
    "nasnet max pool": ([(1, 256, 28, 28)], "nn.max_pool2d(%a, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])"),
    "nasnet cell": ([(1, 64, 56, 56)] * 5, "concatenate((%a, %b, %c, %d, %e), axis=1)"),
    "yolov3 enlarged": (
        [(1, 128, 26, 26), (1, 256, 52, 52)],
        'concatenate((image.resize2d(%a, size=[52, 52], scales=[2f, 2f], method="nearest_neighbor", coordinate_transformation_mode="asymmetric", '
        'rounding_method="floor"), %b), axis=1)',
    ),
    "dcgan tanh": ([(1, 3, 64, 64)], "tanh(%a)"),
}
WAYS = {"searched": "max", "listed": "default"}  # effort


def text(shapes, body):
    params = ", ".join(f"%{name}: Tensor[({', '.join(map(str, shape))}), float32]" for name, shape in zip("abcde", shapes))
    return f'#[version = "0.0.5"]\ndef @main({params}) {{\n  {body}\n}}\n'


def compiled(name, folder, options):
    path = os.path.join(folder, name.replace(" ", "_") + ".relay")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text(*KERNELS[name]))
    return {
        way: collage.load(path).compile(
            targets="native", exclude=["reference"], threads=options.threads, effort=effort, always_measure=True, database=os.path.join(folder, "costs.db")
        )
        for way, effort in WAYS.items()
    }


def outputs_of(program, inputs):
    outputs = program(*inputs)
    return [np.asarray(output) for output in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]


def compare(name, folder, options):
    programs = compiled(name, folder, options)
    random = np.random.default_rng(0)
    inputs = [(random.random(info.shape) - 0.5).astype("float32") for info in programs["listed"].inputs]
    ours, theirs = (outputs_of(programs[way], inputs) for way in WAYS)
    took = turns.medians(turns.blocks(programs, inputs, BLOCK, turns.until(options.duration * len(programs))))
    return {
        "kernel": name,
        "milliseconds": {way: 1e3 * statistics.median(took[way]) for way in took},
        "gain": turns.ratio(took, "listed", "searched"),
        "difference": max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in zip(ours, theirs)),
        "variants": {way: [kernel["variant"] for kernel in program.report["kernels"]] for way, program in programs.items()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=", ".join(KERNELS))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--duration", type=float, default=2, help="seconds of runs a contender")
    parser.add_argument("--json", help="write the figures here")
    options = parser.parse_args()
    results, wrong = [], []
    print("| kernel | searched ms | listed ms | gain | schedule |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or KERNELS:
            result = compare(name, folder, options)
            results.append(result)
            ms = result["milliseconds"]
            print(f"| {name} | {ms['searched']:.4f} | {ms['listed']:.4f} | {result['gain']:.2f} | {'; '.join(result['variants']['searched'])} |", flush=True)
            if not result["difference"] <= 1e-3:
                wrong.append(f"{name}: outputs differ by {result['difference']:.1e}")
            if result["gain"] < 1 / MOST_SLOWER:
                wrong.append(f"{name}: slower with the search")
    gain = math.exp(statistics.mean(math.log(result["gain"]) for result in results))
    print(f"geometric mean of {len(results)}: {gain:.2f}")
    if gain < LEAST_GAIN:
        wrong.append(f"gain {gain:.2f}")
    return turns.finish({"threads": options.threads, "gain": gain, "results": results}, options.json, wrong)


if __name__ == "__main__":
    sys.exit(main())
