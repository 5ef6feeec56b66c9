"""What it costs at run time that a user's program reads a constant weight in another layout: a product whose program has a stage
P[j1, k, j0] = B[k, j1 * 16 + j0], against the same product whose weight is given in that layout.

    python bench/stored_layouts.py [--rows 16] [--size 1024] [--threads 1] [--limit 1.05]

Prints the kernels of both, the milliseconds of runs that take turns (their first decile), and their ratio. Exit status 1: one has more kernels,
their outputs differ, or the ratio exceeds --limit.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import numpy as np

import collage

STAGE = "stage P[j1:{blocks}, k:{size}, j0:16] = B[k, j1 * 16 + j0]; "
PROGRAM = (
    "program {{ param A: float32[{rows}, {size}]; param {weight}; {stage}"
    "result C[i:{rows}, j:{size}] = sum(k:{size}) A[i, k] * P[j / 16, k, j % 16]; "
    "schedule {{ {stored}C.vectorise(j, 16); C.update(0).split(i, i1, i0, 4); C.update(0).split(j, j1, j0, 16); "
    "C.update(0).reorder(j0, i0, k, j1, i1); C.update(0).vectorise(j0); C.update(0).unroll(i0); C.update(0).parallel(i1); }} }}"
)
MODULE = """#[version = "0.0.5"]
def @main(%x: Tensor[({rows}, {size}), float32]) {{
  tensor_program(%x, meta[relay.Constant][0] /*Tensor[{shape}, float32]*/, program="{program}")
}}

#[metadata]
{metadata}
"""


def module(weight, layout, rows, size):
    sizes = {"rows": rows, "size": size, "blocks": size // 16}
    text = PROGRAM.format(
        weight=("B: float32[{size}, {size}]" if layout else "P: float32[{blocks}, {size}, 16]").format(**sizes),
        stage=STAGE.format(**sizes) if layout else "",
        stored="P.compute_root(); " if layout else "",
        **sizes,
    )
    constant = {"dtype": "float32", "shape": list(weight.shape), "values": weight.ravel().tolist()}
    return MODULE.format(program=text, shape="(" + ", ".join(map(str, weight.shape)) + ")", metadata=json.dumps({"relay.Constant": [constant]}), **sizes)


def compiled(folder, name, text, threads):
    path = os.path.join(folder, name + ".relay")
    with open(path, "w") as file:
        file.write(text)
    begin = time.perf_counter()
    model = collage.load(path)
    print(f"{name:8} loaded in {time.perf_counter() - begin:.2f} s")
    return model.compile(targets=["native"], threads=threads)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--size", type=int, default=1024, help="of the square weight; a multiple of 16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1.05)
    args = parser.parse_args()
    random = np.random.default_rng(1)
    weight = (random.integers(-8, 9, (args.size, args.size)) / 64).astype(np.float32)
    blocked = weight.reshape(args.size, -1, 16).transpose(1, 0, 2)
    with tempfile.TemporaryDirectory() as folder:
        programs = {
            "stage": compiled(folder, "stage", module(weight, True, args.rows, args.size), args.threads),
            "given": compiled(folder, "given", module(blocked, False, args.rows, args.size), args.threads),
        }
    x = collage.empty((args.rows, args.size), "float32")
    x[:] = random.standard_normal(x.shape)
    outputs = {name: program(x) for name, program in programs.items()}
    samples = {name: [] for name in programs}
    for _ in range(1000):
        for name, program in programs.items():
            begin = time.perf_counter()
            program(x)
            samples[name].append(1e3 * (time.perf_counter() - begin))
    # Others may use the machine: the first decile of each.
    quick = {name: statistics.quantiles(times, n=10)[0] for name, times in samples.items()}
    kernels = {name: len(program.report["kernels"]) for name, program in programs.items()}
    for name in programs:
        print(f"{name:8} {kernels[name]} kernels, {quick[name]:.3f} ms")
    ratio = quick["stage"] / quick["given"]
    equal = np.array_equal(outputs["stage"], outputs["given"])
    print(f"ratio {ratio:.3f}, outputs {'equal' if equal else 'DIFFER'}")
    return 0 if equal and kernels["stage"] <= kernels["given"] and ratio <= args.limit else 1


if __name__ == "__main__":
    sys.exit(main())
