"""One kernel for all lengths against a kernel for each: `native -symbolic=only` and `native`, in turns.

    python bench/symbolic_kernels.py [NAME...] [--lengths 32] [--threads N] [--duration 0.5] [--limit 1.25] [--json FILE]

Functions of a transformer, of which the length is one dimension or two: a softmax of scores, a layer norm, a bias with GELU, a scaled sum, products with
weights. Each is compiled for every length in both ways. Every turn gives both a block of runs, in an order that alternates; a length's ratio is the median
of those turn by turn. Both ways are called from Python alike, which is a part of what short lengths take. Leave the machine alone meanwhile.

Exit status 1: outputs differ by more than 1e-4 of the largest value, more kernels were compiled for all lengths together than for one (for products: than
there are tiles), or the median over the lengths is above --limit.
"""

import argparse
import os
import statistics
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import collage
import turns

LENGTHS = [1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 31, 32, 33, 48, 61, 64, 65, 77, 96, 97, 127, 128, 129, 160, 197, 211, 256, 331, 384, 448, 509, 512]
BLOCK = 0.01  # seconds of runs in a turn
WAYS = {"specialised": "native", "symbolic": "native -symbolic=only"}


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs, [output], **attributes)


# The nodes, the inputs' shapes for a length, and how wide constants are.
FUNCTIONS = {
    "softmax": (lambda: [node("Softmax", ["x"], "y", axis=-1)], lambda n: {"x": [1, 12, n, n]}, {}),
    "layer_norm": (lambda: [node("LayerNormalization", ["x", "gamma", "beta"], "y", axis=-1)], lambda n: {"x": [1, n, 768]},
                   {"gamma": 768, "beta": 768}),
    "bias_gelu": (lambda: [node("Add", ["x", "bias"], "a"), node("Mul", ["a", "root"], "b"), node("Erf", ["b"], "c"), node("Add", ["c", "one"], "d"),
                           node("Mul", ["a", "d"], "e"), node("Mul", ["e", "half"], "y")], lambda n: {"x": [1, n, 3072]}, {"bias": 3072}),
    "product": (lambda: [node("MatMul", ["x", "w"], "a"), node("Add", ["a", "bias"], "b"), node("Add", ["b", "z"], "y")],
                lambda n: {"x": [1, n, 768], "z": [1, n, 768]}, {"w": (768, 768), "bias": 768}),
    "wide_product": (lambda: [node("MatMul", ["x", "w"], "a"), node("Add", ["a", "bias"], "b"), node("Relu", ["b"], "y")],
                     lambda n: {"x": [1, n, 768]}, {"w": (768, 3072), "bias": 3072}),
    "long_product": (lambda: [node("MatMul", ["x", "w"], "y")], lambda n: {"x": [1, n, 3072]}, {"w": (3072, 768)}),
    "scaled_sum": (lambda: [node("Mul", ["x", "half"], "a"), node("Add", ["a", "z"], "y")], lambda n: {"x": [1, n, 768], "z": [1, n, 768]}, {}),
}
TILES = 8  # of rows, of which a product has one for each kernel
NUMBERS = {"root": 0.5 ** 0.5, "one": 1, "half": 0.5}


def model(name, length, path):
    nodes, shapes, widths = FUNCTIONS[name]
    made = nodes()
    read = {value for one in made for value in one.input}
    random = np.random.default_rng(1)
    constants = [numpy_helper.from_array(random.standard_normal(shape, np.float32), value)
                 for value, shape in widths.items()]
    constants += [numpy_helper.from_array(np.float32(number), value) for value, number in NUMBERS.items() if value in read]
    inputs = [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape) for value, shape in shapes(length).items()]
    graph = helper.make_graph(made, name, inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return collage.load(path)


def kernels_in(folder):
    kernels = os.path.join(folder, "kernels")
    return sum(file.startswith("native-") for file in os.listdir(kernels)) if os.path.isdir(kernels) else 0


def compiled(name, length, folder, options):
    """The programs by way, and how many kernels were compiled for each."""
    programs, counts = {}, {}
    for way, targets in WAYS.items():
        before = kernels_in(folder)
        programs[way] = model(name, length, os.path.join(folder, "model.onnx")).compile(
            targets=targets, threads=options.threads, database=os.path.join(folder, "costs.db"))
        counts[way] = kernels_in(folder) - before
    return programs, counts


def ratio_of(programs, inputs, duration):
    """The median ratio of blocks, and seconds a run of the specialised."""
    took = turns.medians(turns.blocks(programs, inputs, BLOCK, turns.until(duration, least=5)))
    return turns.ratio(took, "symbolic", "specialised"), statistics.median(took["specialised"])


def compare(name, folder, options):
    random, rows, worst = np.random.default_rng(0), [], 0.0
    totals = dict.fromkeys(WAYS, 0)
    for length in LENGTHS[:: max(1, len(LENGTHS) // options.lengths)]:
        programs, counts = compiled(name, length, folder, options)
        for way, count in counts.items():
            totals[way] += count
        inputs = [random.standard_normal(info.shape, np.float32) for info in programs["symbolic"].inputs]
        outputs = {way: np.asarray(program(*inputs)) for way, program in programs.items()}
        worst = max(worst, float(np.max(np.abs(outputs["symbolic"] - outputs["specialised"])) / np.max(np.abs(outputs["specialised"]))))
        ratio, seconds = ratio_of(programs, inputs, options.duration)
        rows.append({"length": length, "microseconds": 1e6 * seconds, "ratio": ratio})
    ratios = [row["ratio"] for row in rows]
    whole = sum(row["ratio"] * row["microseconds"] for row in rows) / sum(row["microseconds"] for row in rows)
    return {"function": name, "lengths": rows, "median": statistics.median(ratios), "largest": max(ratios), "all": whole, "compiled": totals,
            "difference": worst}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=", ".join(FUNCTIONS))
    parser.add_argument("--lengths", type=int, default=len(LENGTHS), help="about so many of them")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--duration", type=float, default=0.5, help="seconds of runs a length")
    parser.add_argument("--limit", type=float, default=1.25)
    parser.add_argument("--json", help="write the figures here")
    options = parser.parse_args()
    results, wrong = [], []
    print("| function | median | largest | all lengths together | kernels compiled: specialised | symbolic |\n| --- | --- | --- | --- | --- | --- |")
    for name in options.names or FUNCTIONS:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["COLLAGE_CACHE"] = folder
            result = compare(name, folder, options)
        results.append(result)
        print(f"| {name} | {result['median']:.2f} | {result['largest']:.2f} | {result['all']:.2f} | {result['compiled']['specialised']} "
              f"| {result['compiled']['symbolic']} |", flush=True)
        print(" ".join(f"{row['length']}:{row['ratio']:.2f}" for row in result["lengths"]), file=sys.stderr, flush=True)
        if not result["difference"] <= 1e-4:
            wrong.append(f"{name}: outputs differ by {result['difference']:.1e}")
        if result["compiled"]["symbolic"] > (TILES if "product" in name else 1):
            wrong.append(f"{name}: {result['compiled']['symbolic']} kernels were compiled for all lengths")
        if result["median"] > options.limit:
            wrong.append(f"{name}: {result['median']:.2f} times the time")
    return turns.finish({"threads": options.threads, "results": results}, options.json, wrong)


if __name__ == "__main__":
    sys.exit(main())
