"""Operators of the domain com.microsoft against ONNX Runtime, which defines them: one node a model (microsoft_cases.py).

    python tests/conformance/microsoft_test.py [OPERATOR...]

All on the reference; the first of some operators on all targets of this build too. What is refused says why in one line.
"""

import os
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
for room in (os.path.join(HERE, ".."), os.path.join(HERE, "..", "cli")):
    sys.path.insert(0, room)

import checks
import command
import microsoft_cases
import workbench
from microsoft_cases import case, ints, normal


ON_ALL_TARGETS = {"BiasGelu", "SkipLayerNormalization", "FusedConv", "FusedGemm", "MatMulNBits", "RotaryEmbedding", "Attention",
                  "MultiHeadAttention", "GroupQueryAttention"}


def compare(bench, made, *flags):
    path = bench.path(bench.save("one.onnx", made.model()))
    expected = made.expected or workbench.onnxruntime_outputs(path, made.feed)
    inputs = []
    for name, array in made.feed.items():
        np.save(bench.path(f"{name}.npy"), array)
        inputs += ["--inputs", f"{name}={name}.npy"]
    bench.run("verify", "one.onnx", *flags, *inputs, "--save-outputs", "outputs")
    given = list(bench.outputs().values())
    assert len(given) == len(expected), f"{len(given)} outputs instead of {len(expected)}"
    for actual, wanted in zip(given, expected):
        workbench.close(actual, np.asarray(wanted), budget=made.budget, relative=2e-5)


def on_reference(made):
    return lambda bench: compare(bench, made, "--targets", "reference")


def on_all_targets(made):
    return lambda bench: compare(bench, made, "--effort", "fast")


def refusals():
    q, k = normal(1, 3, 8), normal(1, 2, 4, 4)
    attention = dict(num_heads=2)
    grouped = dict(num_heads=2, kv_num_heads=2, outputs=3)
    lengths = (ints([2]), ints([3]))
    return [
        (case("BeamSearch", q), "BeamSearch): control flow"),
        (case("QLinearReduceMean", q), "QLinearReduceMean): quantised types"),
        (case("FancyGelu", q), "FancyGelu): unknown operator"),
        (case("SkipLayerNormalization", q, q, normal(8), outputs=2), "output 1 ('out1') is used"),
        (case("Attention", q, normal(8, 24), normal(24), None, normal(2, 1, 2, 4, 4), **attention),
         "input 4: a cache of keys and values (past)"),
        (case("Attention", q, normal(8, 24), normal(24), ints(np.ones((1, 1, 3, 3))), **attention),
         "a mask of shape (1, 1, 3, 3) over 1 batches and 3 keys"),
        (case("Attention", q, normal(8, 24), normal(24), do_rotary=1, **attention), "do_rotary"),
        (case("MultiHeadAttention", q, q, q, None, None, None, k, k, **attention),
         "input 6: a cache of keys and values (past_key, past_value)"),
        (case("MultiHeadAttention", q, normal(1, 4, 8), normal(1, 4, 8), unidirectional=1, **attention),
         "unidirectional over 3 queries and 4 keys"),
        (case("MultiHeadAttention", normal(1, 3, 2, 3, 4), **attention), "queries, keys and values packed into one input"),
        (case("GroupQueryAttention", q, q, q, k, k, *lengths, **grouped), "3 are new and 4 in the cache"),
        (case("GroupQueryAttention", q, q, q, None, None, *lengths, smooth_softmax=1, **grouped), "smooth_softmax"),
        (case("GroupQueryAttention", q, q, q, None, None, ints([6]), ints([7]), constants=(5, 6), **grouped),
         "7 positions in all, 3 are new and 0 in the cache"),
        (case("FusedConv", normal(1, 1, 4, 4), normal(1, 1, 3, 3), activation="Swirl"), "activation 'Swirl'"),
        (case("MatMulNBits", q, np.zeros((2, 1, 8), np.uint8), normal(2, 1), K=8, N=2, bits=3, block_size=16, constants=(1, 2)), "3 bits"),
        (case("RotaryEmbedding", q, ints([0], np.int64), normal(4, 4), normal(4, 4), scale=2.0), "scale"),
    ]


def refused(made, reason):
    def check(bench):
        bench.save("one.onnx", made.model())
        result = command.run(["run", "one.onnx", "--targets", "reference"], bench.folder, cache=bench.cache)
        lines = result.stderr.strip().split("\n")
        assert result.returncode == 4 and len(lines) == 1 and reason in lines[0], f"{result.returncode}: {result.stderr}"

    return check


def main():
    found, seen = [], set()
    for family in microsoft_cases.FAMILIES:
        for i, made in enumerate(family()):
            if sys.argv[1:] and made.op not in sys.argv[1:]:
                continue
            found.append((f"{made.op} {i} {made.attributes}", on_reference(made)))
            if made.op in ON_ALL_TARGETS and made.op not in seen:
                seen.add(made.op)
                found.append((f"{made.op} {i} on all targets", on_all_targets(made)))
    if not sys.argv[1:]:
        found += [(f"{made.op}: {reason}", refused(made, reason)) for made, reason in refusals()]
    with tempfile.TemporaryDirectory() as cache:
        return checks.run(found, prepare=lambda folder: workbench.Bench(folder, cache))


if __name__ == "__main__":
    sys.exit(main())
